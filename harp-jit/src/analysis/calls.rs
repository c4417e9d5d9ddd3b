//! Facts that cross calls: about a function from its callers, and about a call from its callee.

use cranelift_codegen::ir::{FuncRef, Function};

use crate::width::Width;

/// Facts about a function before its own analysis.
#[derive(Clone, Copy)]
pub(crate) struct Known<'a> {
    pub(crate) params: Params<'a>,
    pub(crate) callees: &'a dyn Callees,
}

impl Known<'static> {
    /// For a kernel whose callees do not wait for other lanes; nothing else is known of these.
    #[cfg(test)]
    pub(crate) const KERNEL: Known<'static> =
        Known { params: Params::Uniform, callees: &NobodyGathers };
    /// For a function about which nothing is known, nor about its callees.
    pub(crate) const FUNCTION: Known<'static> =
        Known { params: Params::Divergent, callees: &NothingKnown };
}

/// What is known about the parameters of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Params<'a> {
    /// The same in the whole grid: those of a kernel.
    Uniform,
    /// Nothing.
    Divergent,
    /// The width of each parameter among the lanes that call the function together; nothing is known of
    /// further ones.
    Widths(&'a [Width]),
}

impl Params<'_> {
    /// The width of a parameter.
    pub(crate) fn width(self, index: usize) -> Width {
        match self {
            Params::Uniform => Width::Grid,
            Params::Divergent => Width::Thread,
            Params::Widths(widths) => widths.get(index).copied().unwrap_or(Width::Thread),
        }
    }
}

/// What a function's result depends on. This holds at every call site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ResultFact {
    /// Its width if all arguments are the same in the whole grid.
    pub(crate) width: Width,
    /// The arguments whose width limits that of the result.
    pub(crate) depends: Arguments,
}

/// A set of arguments by index. It always contains all arguments beyond the first 64.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Arguments(pub(crate) u64);

impl Arguments {
    /// Adds an argument.
    pub(crate) fn insert(&mut self, index: usize) {
        self.0 |= u32::try_from(index).ok().and_then(|index| 1_u64.checked_shl(index)).unwrap_or(0);
    }

    pub(crate) fn contains(self, index: usize) -> bool {
        let shifted = u32::try_from(index).ok().and_then(|index| self.0.checked_shr(index));
        shifted.is_none_or(|bits| bits & 1 == 1)
    }
}

/// The callees of a function.
pub(crate) trait Callees {
    /// What is known about a result of `callee`, which `func` declares.
    fn result(&self, func: &Function, callee: FuncRef, index: usize) -> Option<ResultFact>;

    /// Whether lanes may wait for others in `callee`, which is not an intrinsic, or look at what these have.
    fn may_gather(&self, func: &Function, callee: FuncRef) -> bool;
}

/// No facts about any callee.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NothingKnown;

impl Callees for NothingKnown {
    fn result(&self, _: &Function, _: FuncRef, _: usize) -> Option<ResultFact> {
        None
    }

    fn may_gather(&self, _: &Function, _: FuncRef) -> bool {
        true
    }
}

/// No facts except that lanes gather in no callee.
#[cfg(test)]
struct NobodyGathers;

#[cfg(test)]
impl Callees for NobodyGathers {
    fn result(&self, _: &Function, _: FuncRef, _: usize) -> Option<ResultFact> {
        None
    }

    fn may_gather(&self, _: &Function, _: FuncRef) -> bool {
        false
    }
}

/// Facts about a function of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FunctionFacts {
    /// The widths of its parameters among the lanes that call it together, at every call site.
    pub(crate) params: Vec<Width>,
    pub(crate) results: Vec<ResultFact>,
}

/// What a function passes to its callees and callers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Linkages {
    pub(crate) calls: Vec<DirectCall>,
    /// The functions whose address it takes.
    pub(crate) addresses: Vec<FuncRef>,
    /// The widths of its results.
    pub(crate) results: Vec<Width>,
}

/// A direct call of a function.
#[derive(Clone, Debug)]
pub(crate) struct DirectCall {
    pub(crate) callee: FuncRef,
    pub(crate) args: Vec<Width>,
}
