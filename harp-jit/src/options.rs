//! Compile options.

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
    /// Any number: kernels, and functions that they call. Branches on which lanes may disagree are managed by
    /// the [`DivergenceStrategy`]. A function's parameters may differ from lane to lane, unless it passes
    /// them through `%harp_assume_uniform`.
    #[default]
    Simt,
    /// One lane, so nothing diverges: any control flow compiles, without splits or joins. Do not run the code
    /// with more lanes: where they disagree on a branch, the machine traps.
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
    /// Counts of the branches from a run of the same kernel or function, compiled with the same options
    /// except for the strategy. It is checked under every strategy.
    pub profile: Option<Arc<BranchProfile>>,
    /// Whether a kernel counts its branches itself, wherever it runs: see
    /// [`Kernel::counters`](crate::Kernel::counters). The counting code costs time, and keeps the kernel's
    /// branches from being predicated. Functions that it calls do not count.
    pub count_branches: bool,
    /// Techniques for branches that the strategy does not decide about.
    pub assignment: Option<Arc<Assignment>>,
    /// How many lanes run the code together.
    pub execution: Execution,
    /// The size of the stack of kernels that call functions, and of those functions, including the lane
    /// control block: a power of two. The code contains it, because lanes find the end of their stacks by it,
    /// so all code that is linked together must agree on it. Kernels without calls get as much as they need.
    pub stack_bytes: u32,
    /// Whether functions are verified before they are compiled. If both this and `verify` are off, only
    /// references, types and the shape of blocks are checked: operands of wrong types, and uses that no
    /// definition dominates, may make the compiler panic or produce wrong code. Turn it off for front ends
    /// that are sure of what they build, as users of Cranelift turn its verifier off.
    pub verify_input: bool,
    /// Whether every stage's result is checked: by the CLIF verifier, by a walk of the divergence stack along
    /// all paths, by a comparison of each lane's effects before and after control flow was rearranged, on
    /// random inputs, and by regalloc2's symbolic checker. On in debug builds.
    pub verify: bool,
    /// Whether the finished machine code must be proved to keep lanes converged where they must be: splits
    /// and joins match on all paths, lanes do not diverge at a branch without a split, and no lane reads a
    /// value that it did not write. The proof uses the code and the calling convention, not the analysis that
    /// the code was made by. It may fail for correct code, and can take longer than all else: milliseconds
    /// for most functions, seconds for large ones with much divergent control flow. So it is off unless asked
    /// for. Code that was compiled with `verify` can be checked later:
    /// [`Kernel::check`](crate::Kernel::check).
    pub check_code: bool,
    /// Whether loads and stores that promise an aligned address check it, and trap with `user128` if it is
    /// not. These are the accesses of CLIF with the flag `aligned` and without `notrap`, and
    /// [`load_elem`](crate::KernelBuilder::load_elem) and [`store_elem`](crate::KernelBuilder::store_elem).
    /// Without the check, a word access at an unaligned address moves only the bytes up to the end of the
    /// aligned word in which it begins.
    pub check_alignment: bool,
    /// Whether the code reports each access to memory that the program makes before it makes it, for launches that
    /// [check](crate::MemoryAccess) them. The code is larger and slower, and traps on machines without a device that takes
    /// the reports.
    pub report_accesses: bool,
    /// Whether launches walk by rows of the grid on machines whose lanes share registers: then all lanes of a warp have the
    /// same position in the second dimension and the third, and positions in the first that follow each other, so that
    /// much more is shared. Rows are filled up to whole warps, which does not pay where they are short:
    /// `LaunchConfig::fills_rows` of harp-runtime knows. Without effect on kernels to which work-groups make a
    /// [difference](crate::Kernel::sees_groups), and on other machines.
    pub by_rows: bool,
    /// Whether the code comes with a table of the blocks in which all lanes are known to be together:
    /// [`FunctionCode::convergence`](crate::FunctionCode::convergence).
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
            report_accesses: false,
            by_rows: true,
            convergence: false,
        }
    }
}

impl CompileOptions {
    /// The same options without a profile, which belongs to one function: [`DivergenceStrategy::Profile`]
    /// becomes [`DivergenceStrategy::Static`].
    pub fn without_profile(&self) -> CompileOptions {
        let divergence = match self.divergence {
            DivergenceStrategy::Profile(_) => DivergenceStrategy::Static,
            other => other,
        };
        CompileOptions { profile: None, divergence, ..self.clone() }
    }

    /// Refuses invalid values.
    ///
    /// # Errors
    ///
    /// If the size of the stacks is not a power of two, or is too large.
    pub(crate) fn check(&self) -> Result<(), CompileError> {
        let given = self.stack_bytes;
        if given.is_power_of_two() && given <= MAX_STACK_BYTES {
            return Ok(());
        }
        Err(CompileError::StackBytes { given, limit: MAX_STACK_BYTES })
    }

    /// The flags for Cranelift's passes and its verifier.
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

    /// Whether the code comes with the record that its checker needs.
    pub(crate) fn records(&self) -> bool {
        self.verify || self.check_code
    }
}
