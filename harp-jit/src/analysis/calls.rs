//! What is known of a function from its callers, and of a call from the function that is called.

use cranelift_codegen::ir::{FuncRef, Function};

use crate::width::Width;

/// What is known of a function before it is analysed.
#[derive(Clone, Copy)]
pub(crate) struct Known<'a> {
    pub(crate) params: Params<'a>,
    pub(crate) callees: &'a dyn Callees,
}

impl Known<'static> {
    /// A kernel whose functions, of which nothing else is known, wait for nobody.
    #[cfg(test)]
    pub(crate) const KERNEL: Known<'static> =
        Known { params: Params::Uniform, callees: &NobodyWaits };
    /// A function of which nothing is known, nor of those that it calls.
    pub(crate) const FUNCTION: Known<'static> =
        Known { params: Params::Divergent, callees: &NothingKnown };
}

/// What is known about the parameters of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Params<'a> {
    /// They are the same in the whole grid: a kernel's.
    Uniform,
    /// Nothing.
    Divergent,
    /// How far each is the same in all lanes that call the function together; nothing about more.
    Widths(&'a [Width]),
}

impl Params<'_> {
    /// How far a parameter is the same.
    pub(crate) fn width(self, index: usize) -> Width {
        match self {
            Params::Uniform => Width::Grid,
            Params::Divergent => Width::Thread,
            Params::Widths(widths) => widths.get(index).copied().unwrap_or(Width::Thread),
        }
    }
}

/// What a function's result depends on. It holds wherever the function is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ResultFact {
    /// How far it is the same if all arguments are the same in the whole grid.
    pub(crate) width: Width,
    /// The arguments that it is no wider than.
    pub(crate) depends: Arguments,
}

/// A set of arguments by their indices. Whatever is beyond the first 64 is in every set.
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

/// The functions that a function calls.
pub(crate) trait Callees {
    /// What is known about a result of `callee`, which `func` declares.
    fn result(&self, func: &Function, callee: FuncRef, index: usize) -> Option<ResultFact>;

    /// Whether a call of `callee`, which is no intrinsic, may wait for other lanes.
    fn may_wait(&self, func: &Function, callee: FuncRef) -> bool;
}

/// Nothing is known about any function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NothingKnown;

impl Callees for NothingKnown {
    fn result(&self, _: &Function, _: FuncRef, _: usize) -> Option<ResultFact> {
        None
    }

    fn may_wait(&self, _: &Function, _: FuncRef) -> bool {
        true
    }
}

/// Nothing but that no function waits for other lanes.
#[cfg(test)]
struct NobodyWaits;

#[cfg(test)]
impl Callees for NobodyWaits {
    fn result(&self, _: &Function, _: FuncRef, _: usize) -> Option<ResultFact> {
        None
    }

    fn may_wait(&self, _: &Function, _: FuncRef) -> bool {
        false
    }
}

/// What is known about a function of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FunctionFacts {
    /// How far its parameters are the same in the lanes that call it together, whoever calls it.
    pub(crate) params: Vec<Width>,
    pub(crate) results: Vec<ResultFact>,
}

/// What other functions get from a function.
#[derive(Clone, Debug, Default)]
pub(crate) struct Linkages {
    pub(crate) calls: Vec<DirectCall>,
    /// The functions of which it takes the address.
    pub(crate) addresses: Vec<FuncRef>,
    /// How far its results are the same.
    pub(crate) results: Vec<Width>,
}

/// A call of a function by its name.
#[derive(Clone, Debug)]
pub(crate) struct DirectCall {
    pub(crate) callee: FuncRef,
    pub(crate) args: Vec<Width>,
}
