//! Compiled functions: before they are placed next to others, and after.

use std::sync::Arc;

use cranelift_codegen::ir::{SourceLoc, TrapCode};
use harp_isa::object::{Chunk, Object, Permissions, Reference};
use harp_isa::{ArchId, Encoding, Instruction, Layout, Operand, OperandKind};
use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

use crate::accesses::MemoryAccess;
use crate::convergence::{BlockConvergence, BlockProof};
use crate::emit::{self, Body, EmitError, Placed, StackUse, Unplaced};
use crate::groups::Grouping;
use crate::profile::{BranchCounters, BranchSite};
use crate::source::SourcePlace;
use crate::stats::CompileStats;
use crate::times::StageTimes;
use harp_check::{Bytes, CodeError, Record};

mod saved;

pub(crate) use saved::SavedFunction;

/// A compiled function without an address.
///
/// How it calls other functions depends on how far away they are, so its machine code is made when it is
/// placed next to them: see [`Module`](crate::Module).
#[derive(Clone, Debug)]
pub struct CompiledFunction {
    pub(crate) name: String,
    pub(crate) arch: ArchId,
    pub(crate) body: Body,
    pub(crate) symbols: Vec<String>,
    pub(crate) stack: StackUse,
    /// The size of the stacks by which the function finds its lane's control block.
    pub(crate) lane_stack_bytes: u32,
    pub(crate) grouping: Grouping,
    /// Whether lanes may wait for others in it, or look at what these have.
    pub(crate) may_gather: bool,
    /// Whether launches must walk by rows of the grid.
    pub(crate) by_rows: bool,
    pub(crate) sources: HashMap<SourceLoc, SourcePlace>,
    /// The accesses that it reports, if it does.
    pub(crate) accesses: Arc<[MemoryAccess]>,
    pub(crate) reports_accesses: bool,
    /// The messages of traps, by source location.
    pub(crate) messages: HashMap<SourceLoc, Arc<str>>,
    pub(crate) stats: CompileStats,
    pub(crate) branch_fingerprint: u64,
    /// How the function counts its branches, if it does.
    pub(crate) counters: Option<BranchCounters>,
    pub(crate) times: StageTimes,
    /// Why lanes are together in each block, if that was asked for.
    pub(crate) proofs: Vec<BlockProof>,
    /// The record for the checker, if the function is to be checked; notes on instructions are added at
    /// placement.
    pub(crate) record: Option<Record>,
}

impl CompiledFunction {
    /// How long each stage of its compilation took.
    pub fn stage_times(&self) -> StageTimes {
        self.times
    }

    /// The linker's name of the function.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The machine that the function is for.
    pub fn arch(&self) -> ArchId {
        self.arch
    }

    /// The linker's names of the functions and data that the function refers to.
    pub fn references(&self) -> impl Iterator<Item = &str> {
        self.symbols.iter().map(String::as_str)
    }

    /// Bytes of stack per call, without callees.
    pub fn frame_bytes(&self) -> u64 {
        self.stack.frame
    }

    /// Whether the function checks the stack's limit on entry, and traps if too little is left.
    pub fn checks_stack(&self) -> bool {
        self.stack.checks
    }

    /// Statistics of the compilation. The code size is not known yet and is 0.
    pub fn stats(&self) -> CompileStats {
        self.stats
    }

    /// Bytes of stack that the function and all its callees may use without checking the stack's limit; none
    /// if the function checks it itself.
    pub(crate) fn unchecked_stack(&self) -> Option<u64> {
        self.stack.total.filter(|_| !self.stack.checks)
    }

    fn unplaced(&self, linked: Linked) -> Unplaced<'_> {
        let is_shared = linked == Linked::Local;
        Unplaced { name: &self.name, body: &self.body, symbols: &self.symbols, is_shared }
    }

    fn placed(&self, placed: Placed, linked: Linked) -> FunctionCode {
        let place = |place: SourceLoc| self.sources.get(&place).cloned();
        let message = |at: u32| {
            let after = placed.places.partition_point(|&(start, _)| start <= at);
            let &(_, from) = placed.places[..after].last()?;
            self.messages.get(&from).map(|message| (at, Arc::clone(message)))
        };
        FunctionCode {
            messages: placed.traps.iter().filter_map(|&(at, _)| message(at)).collect(),
            name: self.name.clone(),
            arch: self.arch,
            linked,
            places: placed.places.iter().map(|&(at, from)| (at, place(from))).collect(),
            convergence: convergence(&placed.blocks, placed.bytes.len(), &self.proofs),
            bytes: placed.bytes,
            literals: placed.literals,
            references: placed.references,
            traps: placed.traps,
            branches: placed.branches,
            branch_fingerprint: self.branch_fingerprint,
            record: self.record.clone().map(|record| Record { notes: placed.notes, ..record }),
            grouping: self.grouping,
            accesses: Arc::clone(&self.accesses),
        }
    }
}

/// Whether other objects can see a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Linked {
    Local,
    Global,
}

/// Places functions next to each other in this order, and makes their machine code.
///
/// # Errors
///
/// If a function is too large for its own jumps; the error comes with the function's index.
pub(crate) fn place(
    functions: &[(&CompiledFunction, Linked)],
    arch: ArchId,
) -> Result<Vec<FunctionCode>, EmitError> {
    let unplaced: Vec<_> =
        functions.iter().map(|(function, linked)| function.unplaced(*linked)).collect();
    let placed = functions.iter().zip(emit::place(&unplaced, arch)?);
    Ok(placed.map(|((function, linked), placed)| function.placed(placed, *linked)).collect())
}

/// Machine code of one function and information about it. Offsets count bytes from its first instruction.
#[derive(Clone, Debug)]
pub struct FunctionCode {
    name: String,
    arch: ArchId,
    linked: Linked,
    bytes: Vec<u8>,
    literals: Vec<u32>,
    references: Vec<Reference>,
    places: Vec<(u32, Option<SourcePlace>)>,
    traps: Vec<(u32, TrapCode)>,
    /// The messages of some of the traps.
    messages: Vec<(u32, Arc<str>)>,
    branches: Vec<(u32, BranchSite)>,
    branch_fingerprint: u64,
    convergence: Vec<BlockConvergence>,
    /// The record for the checker, if the code is to be checked.
    record: Option<Record>,
    grouping: Grouping,
    accesses: Arc<[MemoryAccess]>,
}

impl FunctionCode {
    /// The branches that are executed as branches, with the byte offset of the instruction that decides for a
    /// warp: the `split`, or the conditional jump of a uniform branch.
    pub fn branches(&self) -> impl ExactSizeIterator<Item = (u64, BranchSite)> + '_ {
        self.branches.iter().map(|&(offset, id)| (offset.into(), id))
    }

    /// The blocks of the code in the order of their addresses, each with the proof, if there is one, that all
    /// lanes which entered the function execute it together. Blocks have no numbers here, and empty ones are
    /// left out. The list is empty unless the function was compiled with
    /// [`CompileOptions::convergence`](crate::CompileOptions::convergence).
    pub fn convergence(&self) -> &[BlockConvergence] {
        &self.convergence
    }

    /// A number that distinguishes the branches of this function from those of another one, however they are
    /// executed.
    pub fn branch_fingerprint(&self) -> u64 {
        self.branch_fingerprint
    }

    /// The linker's name of the function.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The machine that it is for.
    pub(crate) fn arch(&self) -> ArchId {
        self.arch
    }

    /// Whether the function uses its position in a work-group, the group's memory, or a barrier. If so, it
    /// can only run in launches with work-groups.
    pub fn uses_groups(&self) -> bool {
        self.grouping == Grouping::Groups
    }

    /// The accesses to memory that the code reports, by their numbers; empty unless it was compiled with
    /// [`CompileOptions::report_accesses`](crate::CompileOptions::report_accesses).
    pub fn accesses(&self) -> &[MemoryAccess] {
        &self.accesses
    }

    /// The machine code, with placeholders for the addresses that the linker fills in.
    pub fn code(&self) -> &[u8] {
        &self.bytes
    }

    /// Proves that lanes stay converged where they must: see [`CodeFault`](crate::CodeFault) for what is
    /// checked. This needs a record that is kept only when compiling with
    /// [`CompileOptions::verify`](crate::CompileOptions::verify) or
    /// [`CompileOptions::check_code`](crate::CompileOptions::check_code).
    ///
    /// # Errors
    ///
    /// The first property that cannot be proved, or that there is no record: also of a kernel that was
    /// [loaded](crate::Kernel#saving-and-loading).
    pub fn check(&self) -> Result<(), CodeError> {
        let Some(record) = &self.record else { return Err(CodeError::not_recorded()) };
        let linked: Vec<u32> =
            self.references.iter().map(|reference| reference.byte_offset as u32).collect();
        let code = Bytes {
            arch: self.arch,
            bytes: &self.bytes,
            literals: &self.literals,
            linked: &linked,
        };
        harp_check::check(code, record)
    }

    /// The same function with other code bytes of the same length.
    pub(crate) fn with_bytes(&self, bytes: &[u8]) -> Option<FunctionCode> {
        let same = bytes.len() == self.bytes.len();
        same.then(|| FunctionCode { bytes: bytes.to_vec(), ..self.clone() })
    }

    /// The source place where the instruction at a byte offset was built. None if it has no place, such as
    /// the function's prologue.
    pub fn place_at(&self, offset: u64) -> Option<&SourcePlace> {
        if offset >= self.bytes.len() as u64 {
            return None;
        }
        let after = self.places.partition_point(|&(start, _)| u64::from(start) <= offset);
        self.places[..after].last()?.1.as_ref()
    }

    /// The trap code of the `trap` instruction at a byte offset.
    pub fn trap_code_at(&self, offset: u64) -> Option<TrapCode> {
        let found = self.traps.binary_search_by_key(&offset, |&(at, _)| u64::from(at)).ok()?;
        Some(self.traps[found].1)
    }

    /// The message of the `trap` instruction at a byte offset, if it was built with one:
    /// [`KernelBuilder::assert`](crate::KernelBuilder::assert).
    pub fn trap_message_at(&self, offset: u64) -> Option<&str> {
        let found = self.messages.binary_search_by_key(&offset, |&(at, _)| u64::from(at)).ok()?;
        Some(&self.messages[found].1)
    }

    /// The machine code as text: one instruction per line after its offset, jumps with their target's offset
    /// or name, and the source place wherever it changes.
    ///
    /// ```text
    ///         ; src/main.rs:12:9
    ///     48  @p0 ? jmpi #0xc;  ; to 58
    /// ```
    pub fn disassembly(&self) -> String {
        self.annotated_disassembly(|_| String::new())
    }

    /// As [`disassembly`](Self::disassembly), with `margin` before each line: of the instruction at an offset, or
    /// (`None`) of a line that is none.
    pub fn annotated_disassembly(&self, mut margin: impl FnMut(Option<u64>) -> String) -> String {
        let mut text = String::new();
        let mut last_place = None;
        for (start, end, literal) in self.pieces() {
            if literal {
                let name = self.reference_in(start, end).unwrap_or_default();
                text.push_str(&margin(None));
                text.push_str(&format!("{start:6x}  .word {name}\n"));
                continue;
            }
            let base = start as u64;
            for (offset, instruction) in
                harp_isa::disassemble(&self.bytes[start..end], base, self.arch)
            {
                let place = self.place_at(offset);
                if let Some(place) = place
                    && last_place != Some(place)
                {
                    text.push_str(&margin(None));
                    text.push_str(&format!("        ; {place}\n"));
                }
                last_place = place;
                text.push_str(&margin(Some(offset)));
                text.push_str(&match instruction {
                    Ok(instruction) => {
                        let shown = instruction.display(self.arch);
                        match self.jump_target(offset, &instruction) {
                            Some(target) => format!("{offset:6x}  {shown}  ; to {target}\n"),
                            None => format!("{offset:6x}  {shown}\n"),
                        }
                    }
                    Err(error) => format!("{offset:6x}  ; {error}\n"),
                });
            }
        }
        text
    }

    /// The target of an instruction with a displacement or an address.
    fn jump_target(&self, offset: u64, instruction: &Instruction) -> Option<String> {
        let opcode = instruction.op.opcode();
        let size = Layout::new(self.arch).size(opcode);
        let start = usize::try_from(offset).ok()?;
        if let Some(name) = self.reference_in(start, start + size) {
            return Some(name.to_owned());
        }
        let relative = opcode.operands().iter().any(|o| o.kind == OperandKind::Rel);
        let mut displacement = None;
        instruction.op.for_each_operand(|operand| {
            if let Operand::Imm(imm) = operand {
                displacement = Some(imm);
            }
        });
        let next = offset + size as u64;
        let target = displacement.filter(|_| relative)?;
        next.checked_add_signed(target).map(|target| format!("{target:x}"))
    }

    /// The name that the code between two offsets refers to.
    fn reference_in(&self, start: usize, end: usize) -> Option<&str> {
        let (start, end) = (start as u64, end as u64);
        let after = self.references.partition_point(|reference| reference.byte_offset < start);
        let found = self.references.get(after).filter(|reference| reference.byte_offset < end)?;
        Some(&found.name)
    }

    /// Instructions and literals in turn: start, end, and whether it is a literal.
    fn pieces(&self) -> impl Iterator<Item = (usize, usize, bool)> {
        let word = usize::from(self.arch.word().bytes());
        let mut pieces = Vec::new();
        let mut start = 0;
        for &literal in &self.literals {
            let literal = literal as usize;
            pieces.push((start, literal, false));
            pieces.push((literal, literal + word, true));
            start = literal + word;
        }
        pieces.push((start, self.bytes.len(), false));
        pieces.into_iter().filter(|(start, end, _)| start < end)
    }

    /// The function as chunks of an object, all of which carry its name. Literals are chunks of their own, so
    /// that they are not taken for instructions.
    pub(crate) fn chunks(&self) -> Vec<Chunk> {
        let word = u64::from(self.arch.word().bytes());
        let alignment = if self.arch.encoding() == Encoding::Word { word } else { 0 };
        let mut references = self.references.iter().peekable();
        let chunks = self.pieces().map(|(start, end, literal)| {
            let mut own = Vec::new();
            while let Some(reference) = references.next_if(|r| r.byte_offset < end as u64) {
                own.push(Reference {
                    base_offset: reference.base_offset - start as u64,
                    byte_offset: reference.byte_offset - start as u64,
                    ..reference.clone()
                });
            }
            Chunk {
                name: self.name.clone(),
                // Literals are read as words: they need the alignment that the first piece gives.
                alignment: if start == 0 && !self.literals.is_empty() { alignment } else { 0 },
                permissions: if literal { Permissions::READ } else { Permissions::EXECUTE },
                global: self.linked == Linked::Global,
                address: None,
                data: self.bytes[start..end].to_vec(),
                references: own,
            }
        });
        chunks.collect()
    }
}

/// The blocks that begin at these offsets, with their proofs, which are indexed by block.
fn convergence(blocks: &[(u32, u32)], end: usize, proofs: &[BlockProof]) -> Vec<BlockConvergence> {
    let ends = blocks.iter().skip(1).map(|&(start, _)| u64::from(start)).chain([end as u64]);
    let ranges = blocks.iter().zip(ends).filter(|&(&(start, _), end)| u64::from(start) < end);
    ranges
        .filter_map(|(&(start, block), end)| {
            let &BlockProof { proof, returns } = proofs.get(block as usize)?;
            Some(BlockConvergence { start: start.into(), end, proof, returns })
        })
        .collect()
}

/// An object with these chunks.
pub(crate) fn object(arch: ArchId, chunks: Vec<Chunk>) -> Object {
    Object { arch, chunks, entry: 0 }
}
