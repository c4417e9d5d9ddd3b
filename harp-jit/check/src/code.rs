//! Finished code as instructions and the control flow between them.

use harp_isa::{ArchId, Instruction, Op, OpcodeFlags, Operand};
use hashbrown::HashMap;

use crate::error::{CodeError, CodeFault, MachineRegister};
use crate::record::{Note, Record};

/// The most private bytes of a frame: no function spills so much.
const PRIVATE_LIMIT: u64 = 1 << 24;

/// The bytes of one function, and their layout.
#[derive(Clone, Copy, Debug)]
pub struct Bytes<'a> {
    /// The machine that they are for.
    pub arch: ArchId,
    /// The machine code, with anything where the linker fills places in.
    pub bytes: &'a [u8],
    /// The offsets of words of data among the instructions, ascending.
    pub literals: &'a [u32],
    /// The offsets of the fields that the linker fills in, ascending.
    pub linked: &'a [u32],
}

/// Where control goes from an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// On to the next.
    Next,
    /// To another for good: instructions with this flow are looked through.
    Jump(usize),
    /// To another where the guard is true, else on.
    Branch(usize),
    /// Away, and back to the next.
    Call,
    /// Away.
    Leave,
    /// Nowhere.
    Stop,
}

/// An instruction in its place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placed<'a> {
    pub(crate) offset: u32,
    pub(crate) instruction: Instruction,
    pub(crate) flow: Flow,
    pub(crate) note: Option<&'a Note>,
}

/// The instructions of a function.
#[derive(Debug)]
pub(crate) struct Code<'a> {
    pub(crate) arch: ArchId,
    pub(crate) insts: Vec<Placed<'a>>,
}

impl<'a> Code<'a> {
    /// Decodes `bytes`.
    pub(crate) fn decode(
        bytes: Bytes<'_>,
        notes: &'a [(u32, Note)],
    ) -> Result<Code<'a>, CodeError> {
        let mut insts = Vec::new();
        for (start, end) in pieces(bytes) {
            let code = &bytes.bytes[start..end];
            for (offset, decoded) in harp_isa::disassemble(code, start as u64, bytes.arch) {
                let offset = offset as u32;
                let instruction = decoded.map_err(|error| {
                    CodeError::new(offset, String::new(), CodeFault::Undecodable(error))
                })?;
                let note = notes.binary_search_by_key(&offset, |&(at, _)| at).ok();
                let note = note.map(|index| &notes[index].1);
                insts.push(Placed { offset, instruction, flow: Flow::Next, note });
            }
        }
        let mut code = Code { arch: bytes.arch, insts };
        code.find_flow(bytes)?;
        Ok(code)
    }

    /// Whether there is all that the record names, and it can be followed.
    pub(crate) fn check_names(&self, record: &Record) -> Result<(), CodeError> {
        let wrong = |fault| Err(CodeError::new(0, String::new(), fault));
        let described = record.described();
        if let Some(block) = record.blocks().find(|&block| block as usize >= described) {
            return wrong(CodeFault::NoSuchBlock { block, described });
        }
        let is_there = |operand: &Operand| match *operand {
            Operand::Gpr(reg) => reg.index() < self.arch.all_gprs(),
            Operand::Pred(reg) => reg.index() < self.arch.all_preds(),
            Operand::Imm(_) => true,
        };
        if let Some(operand) = record.registers().find(|operand| !is_there(operand)) {
            let register = MachineRegister { arch: self.arch, operand };
            return wrong(CodeFault::NoSuchRegister(register));
        }
        let (bytes, limit) = (record.entry.private_bytes(), PRIVATE_LIMIT);
        if bytes > limit {
            return wrong(CodeFault::PrivateTooLarge { bytes, limit });
        }
        Ok(())
    }

    fn find_flow(&mut self, bytes: Bytes<'_>) -> Result<(), CodeError> {
        let index: HashMap<u32, usize> =
            self.insts.iter().enumerate().map(|(index, inst)| (inst.offset, index)).collect();
        for at in 0..self.insts.len() {
            let flow = self.flow(at, bytes, &index).map_err(|fault| self.error(at, fault))?;
            self.insts[at].flow = flow;
        }
        for at in 0..self.insts.len() {
            let goes_on = matches!(self.insts[at].flow, Flow::Next | Flow::Branch(_) | Flow::Call);
            if goes_on && at + 1 == self.insts.len() {
                let target = bytes.bytes.len() as i64;
                return Err(self.error(at, CodeFault::Outside { target }));
            }
        }
        Ok(())
    }

    fn flow(
        &self,
        at: usize,
        bytes: Bytes<'_>,
        index: &HashMap<u32, usize>,
    ) -> Result<Flow, CodeFault> {
        let Placed { offset, instruction, .. } = self.insts[at];
        let guarded = instruction.guard.is_some();
        let size = harp_isa::Layout::new(self.arch).size(instruction.op.opcode()) as u32;
        // A reference may name a field of the instruction.
        let linked = {
            let after = bytes.linked.partition_point(|&place| place < offset);
            bytes.linked.get(after).is_some_and(|&place| place < offset + size)
        };
        let target = |rel: i64| {
            let target = i64::from(offset) + i64::from(size) + rel;
            let found = u32::try_from(target).ok().and_then(|target| index.get(&target));
            found.copied().ok_or(CodeFault::Outside { target })
        };
        let flags = instruction.op.opcode().flags();
        Ok(match instruction.op {
            Op::Jmpi { rel } if !linked => {
                let target = target(rel)?;
                if guarded { Flow::Branch(target) } else { Flow::Jump(target) }
            }
            // The link is wanted, and what it names is a word of data.
            Op::Jali { rel, .. } if !linked => {
                if guarded || target(rel)? != at + 1 {
                    return Err(CodeFault::Foreign);
                }
                Flow::Next
            }
            Op::Trap {} if guarded => Flow::Next,
            Op::Trap {} => Flow::Stop,
            Op::Jmpi { .. } | Op::Jmpr { .. } if !guarded => Flow::Leave,
            Op::Jali { .. } | Op::Jalr { .. } if !guarded => Flow::Call,
            Op::Halt {} | Op::Wspawn { .. } => return Err(CodeFault::Foreign),
            _ if flags.intersects(OpcodeFlags::PRIVILEGED | OpcodeFlags::CONTROL) => {
                return Err(CodeFault::Foreign);
            }
            _ => Flow::Next,
        })
    }

    /// The first instruction at or behind `at` in the way of control that is no plain jump; none if
    /// there are only jumps.
    pub(crate) fn resolve(&self, mut at: usize) -> Option<usize> {
        for _ in 0..=self.insts.len() {
            match self.insts[at].flow {
                Flow::Jump(target) => at = target,
                _ => return Some(at),
            }
        }
        None
    }

    /// Whether the instruction is the branch of a split.
    pub(crate) fn is_split_branch(&self, at: usize) -> bool {
        at > 0 && self.is_split(at - 1) && matches!(self.insts[at].flow, Flow::Branch(_))
    }

    pub(crate) fn is_split(&self, at: usize) -> bool {
        matches!(self.insts[at].instruction.op, Op::Split {})
    }

    pub(crate) fn is_join(&self, at: usize) -> bool {
        matches!(self.insts[at].instruction.op, Op::Join {})
    }

    /// The register as the machine calls it.
    pub(crate) fn register(&self, operand: impl Into<Operand>) -> MachineRegister {
        MachineRegister { arch: self.arch, operand: operand.into() }
    }

    pub(crate) fn error(&self, at: usize, fault: CodeFault) -> CodeError {
        let Placed { offset, instruction, .. } = &self.insts[at];
        CodeError::new(*offset, instruction.display(self.arch).to_string(), fault)
    }
}

/// From where to where there are instructions.
fn pieces(bytes: Bytes<'_>) -> Vec<(usize, usize)> {
    let word = usize::from(bytes.arch.word().bytes());
    let mut pieces = Vec::new();
    let mut start = 0;
    for &literal in bytes.literals {
        pieces.push((start, literal as usize));
        start = literal as usize + word;
    }
    pieces.push((start, bytes.bytes.len()));
    pieces
}
