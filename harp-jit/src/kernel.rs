//! A compiled kernel: machine code and information about it.

use std::sync::Arc;

use cranelift_codegen::ir::TrapCode;
use harp_isa::ArchId;
use harp_isa::object::{Chunk, Object};
use serde::{Deserialize, Serialize};

use crate::builder::{KernelSource, Param};
use crate::error::CompileError;
use crate::function::{self, CompiledFunction, FunctionCode, Linked};
use crate::groups::Grouping;
use crate::print::PrintSites;
use crate::profile::BranchCounters;
use crate::source::SourcePlace;
use crate::stats::CompileStats;
use harp_check::CodeError;

mod saved;

use saved::SavedKernel;

/// A compiled kernel.
///
/// The code takes the address of its [argument block](harp_isa::abi::ArgumentBlock) in `%r0` and
/// may be placed anywhere. Offsets count bytes from its first instruction.
///
/// # Saving and loading
///
/// A kernel implements serde's traits, so it can be saved in any of its formats, and loaded where the same version of
/// this crate reads it. A loaded kernel does what the original does. Only the record for [`check`](Self::check) is not
/// saved. Bytes that are no kernel are an error of the format; those that are one, but not of this compiler, have
/// methods that do not panic. `CodeCache` of harp-runtime saves kernels in files.
///
/// ```
/// # use harp_jit::prelude::*;
/// # let mut source = KernelSource::new("nothing", "harp32".parse()?);
/// # let mut b = KernelBuilder::new(&mut source);
/// # b.return_();
/// # b.finalize()?;
/// let kernel = source.compile(&CompileOptions::default())?;
/// let saved = postcard::to_stdvec(&kernel)?;
/// let loaded: Kernel = postcard::from_bytes(&saved)?;
/// assert_eq!(loaded.disassembly(), kernel.disassembly());
/// assert!(postcard::from_bytes::<Kernel>(&saved[1..]).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(into = "SavedKernel", try_from = "SavedKernel")]
pub struct Kernel {
    pub(crate) params: Vec<Param>,
    pub(crate) object: Arc<Object>,
    pub(crate) entry: FunctionCode,
    pub(crate) functions: Vec<FunctionCode>,
    /// How many of the object's last chunks each datum has.
    pub(crate) data_chunks: Vec<u32>,
    pub(crate) lane_stack_bytes: u32,
    pub(crate) grouping: Grouping,
    pub(crate) by_rows: bool,
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
        data: Vec<Vec<Chunk>>,
    ) -> Result<Kernel, CompileError> {
        let all = std::iter::once((entry, Linked::Global)).chain(functions.iter().copied());
        let all: Vec<_> = all.collect();
        let placed = function::place(&all, source.arch());
        let mut placed = placed.map_err(|error| error.explain(source.name()))?.into_iter();
        let entry_code = placed.next().expect("one function in, one out");
        let own = if source.uses_groups() { Grouping::Groups } else { Grouping::Indifferent };
        let uses = all.iter().map(|(function, _)| function.grouping);
        Ok(Kernel {
            params: source.params().to_vec(),
            lane_stack_bytes: entry.lane_stack_bytes,
            grouping: uses.fold(own, Grouping::max),
            by_rows: entry.by_rows,
            group_bytes: source.group_bytes(),
            counters: entry.counters.clone(),
            reports_accesses: entry.reports_accesses,
            prints: source.prints(),
            stats: CompileStats { code_bytes: entry_code.code().len(), ..entry.stats },
            ..Kernel::linked(entry_code, placed.collect(), data)
        })
    }

    /// A kernel of this code with data behind it, of which nothing else is known.
    fn linked(entry: FunctionCode, functions: Vec<FunctionCode>, data: Vec<Vec<Chunk>>) -> Kernel {
        let data_chunks = data.iter().map(|chunks| chunks.len() as u32).collect();
        let code = std::iter::once(&entry).chain(&functions);
        let chunks = code.flat_map(FunctionCode::chunks).chain(data.into_iter().flatten());
        Kernel {
            object: Arc::new(function::object(entry.arch(), chunks.collect())),
            params: Vec::new(),
            entry,
            functions,
            data_chunks,
            lane_stack_bytes: 0,
            grouping: Grouping::default(),
            by_rows: false,
            group_bytes: 0,
            counters: None,
            reports_accesses: false,
            prints: None,
            stats: CompileStats::default(),
        }
    }

    /// The kernel's name.
    pub fn name(&self) -> &str {
        self.entry.name()
    }

    /// The machine that the kernel is for.
    pub fn arch(&self) -> ArchId {
        self.entry.arch()
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
    /// The first property that cannot be proved, or that there is no record, as in kernels that were
    /// [loaded](Self#saving-and-loading).
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
        all.by_ref().take(function).for_each(|before| first += before.chunks().len());
        let broken = all.next()?;
        *broken = broken.with_bytes(code)?;
        let chunks = broken.chunks();
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
        self.grouping == Grouping::Groups
    }

    /// Whether work-groups make a difference to the kernel: it [uses](Self::uses_groups) them, or it asks the other lanes
    /// of its warp, or for the number of its own lane. A launch with groups then runs only work-items of one group
    /// in a warp. To other kernels the groups of a launch mean nothing.
    pub fn sees_groups(&self) -> bool {
        self.grouping != Grouping::Indifferent
    }

    /// Whether launches must walk by rows of the grid: see [`CompileOptions::by_rows`](crate::CompileOptions::by_rows).
    pub fn is_by_rows(&self) -> bool {
        self.by_rows
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

    /// The data of its module that it includes: the linker's name and the size in bytes of each.
    pub fn data(&self) -> impl Iterator<Item = (&str, u64)> {
        let count = self.data_chunks.iter().sum::<u32>() as usize;
        let mut chunks = self.object.chunks[self.object.chunks.len() - count..].iter();
        self.data_chunks.iter().filter_map(move |&count| {
            let first = chunks.next()?;
            let rest = chunks.by_ref().take(count as usize - 1);
            let bytes = rest.map(|chunk| chunk.data.len()).sum::<usize>() + first.data.len();
            Some((first.name.as_str(), bytes as u64))
        })
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
