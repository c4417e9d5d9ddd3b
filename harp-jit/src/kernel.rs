//! A compiled kernel: machine code and what is known about it.

use cranelift_codegen::ir::TrapCode;
use harp_isa::ArchId;
use harp_isa::object::{Chunk, Object};

use crate::builder::{KernelSource, ParamType};
use crate::error::CompileError;
use crate::function::{self, CompiledFunction, FunctionCode, Linked};
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
    pub(crate) params: Vec<ParamType>,
    pub(crate) object: Object,
    pub(crate) entry: FunctionCode,
    pub(crate) functions: Vec<FunctionCode>,
    pub(crate) lane_stack_bytes: u32,
    pub(crate) uses_groups: bool,
    pub(crate) group_bytes: u32,
    pub(crate) counters: Option<BranchCounters>,
    pub(crate) stats: CompileStats,
}

impl Kernel {
    /// The kernel with functions and data of its module.
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
            object: function::object(arch, chunks),
            lane_stack_bytes: entry.lane_stack_bytes,
            uses_groups: source.reads_group_extents()
                || source.group_bytes() > 0
                || all.iter().any(|function| function.uses_groups),
            group_bytes: source.group_bytes(),
            counters: entry.counters.clone(),
            stats: CompileStats { code_bytes: entry_code.code().len(), ..entry.stats },
            entry: entry_code,
            functions: functions_code,
        })
    }

    /// The kernel's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The machine that it is for.
    pub fn arch(&self) -> ArchId {
        self.arch
    }

    /// The types of its parameters.
    pub fn params(&self) -> &[ParamType] {
        &self.params
    }

    /// The kernel as an object to link: global chunks with the kernel's name, then the functions and
    /// data of its module that it needs.
    pub fn object(&self) -> &Object {
        &self.object
    }

    /// The machine code.
    pub fn code(&self) -> &[u8] {
        self.entry.code()
    }

    /// Proves that lanes keep together as they must, in the kernel and in what came with it: see
    /// [`FunctionCode::check`].
    ///
    /// # Errors
    ///
    /// What cannot be proved first.
    pub fn check(&self) -> Result<(), CodeError> {
        self.entry.check()?;
        self.functions.iter().try_for_each(FunctionCode::check)
    }

    /// The kernel with other machine code in place of its own, if `function` is 0, or of one of its
    /// [functions](Self::functions), counted from 1: for tests of what finds broken code. None if there is no such
    /// function, or it is not as long.
    pub fn with_code(&self, function: usize, code: &[u8]) -> Option<Kernel> {
        let mut kernel = self.clone();
        let mut first = 0;
        let mut all = std::iter::once(&mut kernel.entry).chain(&mut kernel.functions);
        all.by_ref().take(function).for_each(|before| first += before.chunks(Linked::Global).len());
        let broken = all.next()?;
        *broken = broken.with_bytes(code)?;
        let chunks = broken.chunks(Linked::Global);
        for (chunk, broken) in kernel.object.chunks[first..].iter_mut().zip(chunks) {
            chunk.data = broken.data;
        }
        Some(kernel)
    }

    /// The size of the stack that each lane needs, lane control block included: a power of two.
    pub fn lane_stack_bytes(&self) -> u32 {
        self.lane_stack_bytes
    }

    /// Whether it can only be launched with work-groups: it, or a function that came with it, asks for the
    /// place in a group, for its memory, or waits for it.
    pub fn uses_groups(&self) -> bool {
        self.uses_groups
    }

    /// Bytes of memory that each work-group gets.
    pub fn group_bytes(&self) -> u32 {
        self.group_bytes
    }

    /// The functions of its module that came with it, then the library routines that all need.
    pub fn functions(&self) -> &[FunctionCode] {
        &self.functions
    }

    /// Where in the source the instruction at a byte offset was built; none if it belongs to no
    /// place, such as the function's prolog.
    pub fn place_at(&self, offset: u64) -> Option<&SourcePlace> {
        self.entry.place_at(offset)
    }

    /// The code of the `trap` instruction at a byte offset.
    pub fn trap_code_at(&self, offset: u64) -> Option<TrapCode> {
        self.entry.trap_code_at(offset)
    }

    /// The machine code and what is known about it.
    pub fn entry(&self) -> &FunctionCode {
        &self.entry
    }

    /// [`FunctionCode::branch_fingerprint`] of the kernel, which a
    /// [`BranchProfile`](crate::BranchProfile) of it holds.
    pub fn branch_fingerprint(&self) -> u64 {
        self.entry.branch_fingerprint()
    }

    /// How the kernel counts its branches, if it was
    /// [compiled to](crate::CompileOptions::count_branches). It takes one more argument then than
    /// [`params`](Kernel::params) says.
    pub fn counters(&self) -> Option<&BranchCounters> {
        self.counters.as_ref()
    }

    /// What compiling came to.
    pub fn stats(&self) -> CompileStats {
        self.stats
    }

    /// The machine code as text: an instruction a line after its offset, jumps with the offset that
    /// they lead to, and where the source changes its place.
    ///
    /// ```text
    ///         ; src/main.rs:12:9
    ///     48  @p0 ? jmpi #0xc;  ; to 58
    /// ```
    pub fn disassembly(&self) -> String {
        self.entry.disassembly()
    }
}
