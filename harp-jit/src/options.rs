//! Options of compilation.

use std::sync::Arc;

use cranelift_codegen::settings::{self, Configurable, Flags};

use crate::error::CompileError;
use crate::profile::BranchProfile;
use crate::strategy::{Assignment, DivergenceStrategy};

/// The largest stack that a lane can be given.
pub(crate) const MAX_STACK_BYTES: u32 = 1 << 28;

/// Whether the mid-end rewrites the kernel before code is generated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OptLevel {
    /// Only what code generation needs.
    None,
    /// Cranelift's e-graph mid-end: algebraic rules, common subexpressions, loop-invariant code,
    /// redundant loads.
    #[default]
    Speed,
}

/// How many lanes of a warp run the code together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Execution {
    /// Any number: kernels, and functions that they call. Branches on which lanes may disagree are
    /// handled as the [`DivergenceStrategy`] says; a function's parameters may differ from lane to
    /// lane, unless it passes them through `%harp_assume_uniform`.
    #[default]
    Simt,
    /// One, so there is nothing that lanes could disagree on: any control flow compiles, and nothing
    /// is split or joined. With more lanes the code is wrong where they do disagree; the machine
    /// traps then.
    SingleLane,
}

/// Options of compilation.
///
/// ```
/// use harp_jit::{CompileOptions, OptLevel};
///
/// let options = CompileOptions { opt_level: OptLevel::None, ..CompileOptions::default() };
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CompileOptions {
    /// Whether the mid-end rewrites the kernel.
    pub opt_level: OptLevel,
    /// How divergent branches are handled.
    pub divergence: DivergenceStrategy,
    /// What the branches did in a run of the same kernel or function, compiled with the same options
    /// but for the strategy. It is checked under every strategy.
    pub profile: Option<Arc<BranchProfile>>,
    /// Whether a kernel counts what its branches do, wherever it runs: see
    /// [`Kernel::counters`](crate::Kernel::counters). What it counts with costs time, and keeps its
    /// branches from being predicated. Its functions do not count.
    pub count_branches: bool,
    /// Techniques for branches that the strategy does not decide about.
    pub assignment: Option<Arc<Assignment>>,
    /// How many lanes run the code together.
    pub execution: Execution,
    /// The size of the stacks, lane control block included, of kernels that call functions, and of
    /// those functions: a power of two. It is a part of the code, by which lanes find the end of their
    /// stacks, so all that is linked together must agree on it. Kernels without calls get what they
    /// need.
    pub stack_bytes: u32,
    /// Whether functions are verified before they are compiled. Without it, and without `verify`, only their
    /// references, types and the shape of their blocks are looked at: operands of wrong types, and uses that
    /// no definition comes before, may make the compiler panic, or become code that is wrong. For front ends
    /// that are sure of what they build, as those of Cranelift's users are who turn its verifier off.
    pub verify_input: bool,
    /// Whether every stage's result is checked: the CLIF verifier, the divergence stack along all
    /// paths, the effects of each lane before and after control flow was rearranged, on random inputs,
    /// regalloc2's symbolic checker. On in debug builds.
    pub verify: bool,
    /// Whether the finished machine code must be proved to keep lanes together: splits and joins match on all
    /// paths, no branch without a split parts lanes, nothing is read where no lane wrote it. The proof
    /// starts from the code and what the calling convention says, not from the analysis that the code
    /// was made by. Such a proof need not be found for all code that is right, and can take longer than
    /// all else: milliseconds for most functions, seconds for large ones with much divergent control
    /// flow. So it is asked for. Code that was compiled with `verify` can be checked later:
    /// [`Kernel::check`](crate::Kernel::check).
    pub check_code: bool,
    /// Whether loads and stores that promise an aligned address look whether it is one, and trap with
    /// `user128` otherwise: those of CLIF with the flag `aligned` and without `notrap`, and
    /// [`load_elem`](crate::KernelBuilder::load_elem) and [`store_elem`](crate::KernelBuilder::store_elem).
    /// Without it an access of a word at an address that is no multiple of the word moves only the bytes up
    /// to the word's end.
    pub check_alignment: bool,
    /// Whether the code comes with a table of its blocks that says in which of them all lanes are known to be
    /// together: [`FunctionCode::convergence`](crate::FunctionCode::convergence).
    pub convergence: bool,
}

impl Default for CompileOptions {
    fn default() -> Self {
        CompileOptions {
            opt_level: OptLevel::default(),
            divergence: DivergenceStrategy::default(),
            profile: None,
            count_branches: false,
            assignment: None,
            execution: Execution::default(),
            stack_bytes: 16 << 10,
            verify_input: true,
            verify: cfg!(debug_assertions),
            check_code: false,
            check_alignment: false,
            convergence: false,
        }
    }
}

impl CompileOptions {
    /// The same without a profile, which is of one function alone: [`DivergenceStrategy::Profile`] becomes
    /// [`DivergenceStrategy::Static`].
    pub fn without_profile(&self) -> CompileOptions {
        let divergence = match self.divergence {
            DivergenceStrategy::Profile(_) => DivergenceStrategy::Static,
            other => other,
        };
        CompileOptions { profile: None, divergence, ..self.clone() }
    }

    /// Refuses values that mean nothing.
    ///
    /// # Errors
    ///
    /// If the size of the stacks is no power of two, or too large.
    pub(crate) fn check(&self) -> Result<(), CompileError> {
        let given = self.stack_bytes;
        if given.is_power_of_two() && given <= MAX_STACK_BYTES {
            return Ok(());
        }
        Err(CompileError::StackBytes { given, limit: MAX_STACK_BYTES })
    }

    /// What Cranelift's passes and its verifier are told.
    pub(crate) fn flags(&self) -> Flags {
        let mut builder = settings::builder();
        let opt_level = match self.opt_level {
            OptLevel::None => "none",
            OptLevel::Speed => "speed",
        };
        let verifier = if self.verify { "true" } else { "false" };
        for (name, value) in [("opt_level", opt_level), ("enable_verifier", verifier)] {
            builder.set(name, value).expect("Cranelift has this setting");
        }
        Flags::new(builder)
    }

    /// Whether the code takes along what its checker must be told.
    pub(crate) fn records(&self) -> bool {
        self.verify || self.check_code
    }
}
