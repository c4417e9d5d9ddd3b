//! A compiled kernel: machine code and information about it.

use std::sync::Arc;

use cranelift_codegen::ir::TrapCode;
use harp_isa::ArchId;
use harp_isa::object::{Chunk, Object};

use crate::builder::{KernelSource, Param};
use crate::error::CompileError;
use crate::function::{self, CompiledFunction, FunctionCode, Linked};
use crate::print::PrintSites;
use crate::profile::BranchCounters;
use crate::source::SourcePlace;
use crate::stats::CompileStats;
use harp_check::CodeError;

/// A compiled kernel.
///
/// The code takes the address of its [argument block](harp_isa::abi::ArgumentBlock) in `%r0` and
/// may be placed anywhere. Offsets count bytes from its first instruction.
#[derive(Clone, Debug)]
pub struct Kernel {
    pub(crate) name: String,
    pub(crate) arch: ArchId,
    pub(crate) params: Vec<Param>,
    pub(crate) object: Arc<Object>,
    pub(crate) entry: FunctionCode,
    pub(crate) functions: Vec<FunctionCode>,
    pub(crate) lane_stack_bytes: u32,
    pub(crate) uses_groups: bool,
    pub(crate) group_bytes: u32,
    pub(crate) counters: Option<BranchCounters>,
    pub(crate) reports_accesses: bool,
    pub(crate) prints: Option<PrintSites>,
    pub(crate) stats: CompileStats,
}

impl Kernel {
    /// Puts the kernel together with functions and data of its module.
    pub(crate) fn new(
        source: &KernelSource,
        entry: &CompiledFunction,
        functions: &[(&CompiledFunction, Linked)],
        data: Vec<Chunk>,
    ) -> Result<Kernel, CompileError> {
        let arch = source.arch();
        let all: Vec<_> =
            std::iter::once(entry).chain(functions.iter().map(|&(function, _)| function)).collect();
        let mut placed =
            function::place(&all, arch).map_err(|error| error.explain(source.name()))?.into_iter();
        let entry_code = placed.next().expect("one function in, one out");
        let functions_code: Vec<_> = placed.collect();
        let mut chunks = entry_code.chunks(Linked::Global);
        for (code, (_, linked)) in functions_code.iter().zip(functions) {
            chunks.extend(code.chunks(*linked));
        }
        chunks.extend(data);
        Ok(Kernel {
            name: source.name().to_owned(),
            arch,
            params: source.params().to_vec(),
            object: Arc::new(function::object(arch, chunks)),
            lane_stack_bytes: entry.lane_stack_bytes,
            uses_groups: source.reads_group_extents()
                || source.group_bytes() > 0
                || all.iter().any(|function| function.uses_groups),
            group_bytes: source.group_bytes(),
            counters: entry.counters.clone(),
            reports_accesses: entry.reports_accesses,
            prints: source.prints(),
            stats: CompileStats { code_bytes: entry_code.code().len(), ..entry.stats },
            entry: entry_code,
            functions: functions_code,
        })
    }

    /// The kernel's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The machine that the kernel is for.
    pub fn arch(&self) -> ArchId {
        self.arch
    }

    /// Its parameters, in the order of their arguments.
    pub fn params(&self) -> &[Param] {
        &self.params
    }

    /// The kernel as an object to link: global chunks with the kernel's name, then the functions and data of
    /// its module that it needs.
    pub fn object(&self) -> &Arc<Object> {
        &self.object
    }

    /// The machine code.
    pub fn code(&self) -> &[u8] {
        self.entry.code()
    }

    /// Proves that lanes stay converged where they must, in the kernel and in the functions that it includes:
    /// see [`FunctionCode::check`].
    ///
    /// # Errors
    ///
    /// The first property that cannot be proved.
    pub fn check(&self) -> Result<(), CodeError> {
        self.entry.check()?;
        self.functions.iter().try_for_each(FunctionCode::check)
    }

    /// The kernel with other machine code: its own is replaced if `function` is 0, or that of one of its
    /// [functions](Self::functions), counted from 1. This is for tests of checks that find broken code. None
    /// if there is no such function, or if the length differs.
    pub fn with_code(&self, function: usize, code: &[u8]) -> Option<Kernel> {
        let mut kernel = self.clone();
        let mut first = 0;
        let mut all = std::iter::once(&mut kernel.entry).chain(&mut kernel.functions);
        all.by_ref().take(function).for_each(|before| first += before.chunks(Linked::Global).len());
        let broken = all.next()?;
        *broken = broken.with_bytes(code)?;
        let chunks = broken.chunks(Linked::Global);
        let object = Arc::make_mut(&mut kernel.object);
        for (chunk, broken) in object.chunks[first..].iter_mut().zip(chunks) {
            chunk.data = broken.data;
        }
        Some(kernel)
    }

    /// The size of the stack that each lane needs, including the lane control block: a power of two.
    pub fn lane_stack_bytes(&self) -> u32 {
        self.lane_stack_bytes
    }

    /// Whether the kernel can only be launched with work-groups: it, or a function that it includes, uses the
    /// position in a group, the group's memory, or a barrier.
    pub fn uses_groups(&self) -> bool {
        self.uses_groups
    }

    /// Bytes of memory that each work-group gets.
    pub fn group_bytes(&self) -> u32 {
        self.group_bytes
    }

    /// The functions of its module that it includes, then the library routines that these and the kernel
    /// need.
    pub fn functions(&self) -> &[FunctionCode] {
        &self.functions
    }

    /// The source place where the instruction at a byte offset was built. None if it has no place, such as
    /// the function's prologue.
    pub fn place_at(&self, offset: u64) -> Option<&SourcePlace> {
        self.entry.place_at(offset)
    }

    /// The trap code of the `trap` instruction at a byte offset.
    pub fn trap_code_at(&self, offset: u64) -> Option<TrapCode> {
        self.entry.trap_code_at(offset)
    }

    /// The message of the `trap` instruction at a byte offset, if it was built with one:
    /// [`KernelBuilder::assert`](crate::KernelBuilder::assert).
    pub fn trap_message_at(&self, offset: u64) -> Option<&str> {
        self.entry.trap_message_at(offset)
    }

    /// The kernel's own machine code and information about it.
    pub fn entry(&self) -> &FunctionCode {
        &self.entry
    }

    /// [`FunctionCode::branch_fingerprint`] of the kernel, which its [`BranchProfile`](crate::BranchProfile)
    /// holds.
    pub fn branch_fingerprint(&self) -> u64 {
        self.entry.branch_fingerprint()
    }

    /// How the kernel counts its branches, if it was [compiled to](crate::CompileOptions::count_branches). It
    /// then takes one more argument than [`params`](Kernel::params) says, which comes last.
    pub fn counters(&self) -> Option<&BranchCounters> {
        self.counters.as_ref()
    }

    /// What the kernel prints, if it [does](crate::KernelBuilder::print). It then takes one more argument, right
    /// behind those that [`params`](Kernel::params) says.
    pub fn prints(&self) -> Option<&PrintSites> {
        self.prints.as_ref()
    }

    /// Whether the code was compiled to
    /// [report its accesses to memory](crate::CompileOptions::report_accesses).
    pub fn reports_accesses(&self) -> bool {
        self.reports_accesses
    }

    /// Statistics of the compilation.
    pub fn stats(&self) -> CompileStats {
        self.stats
    }

    /// The machine code as text: one instruction per line after its offset, jumps with their target's offset,
    /// and the source place wherever it changes.
    ///
    /// ```text
    ///         ; src/main.rs:12:9
    ///     48  @p0 ? jmpi #0xc;  ; to 58
    /// ```
    pub fn disassembly(&self) -> String {
        self.entry.disassembly()
    }
}
