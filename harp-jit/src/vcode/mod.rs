//! VCode: machine instructions over virtual registers, in blocks.
//!
//! Invariants, from instruction selection to emission:
//!
//! * every virtual register has one definition (SSA), an instruction's or a block parameter's;
//! * blocks lie in a reverse post-order, block 0 is the entry;
//! * no edge is critical: a block that ends in [`MInst::CondBr`] has successors without parameters
//!   and without other predecessors, so moves on edges have a place that is theirs alone;
//! * a write that lanes may skip ([`MOperand::Mod`], guards) names the register that holds the old
//!   value, so that the allocator sees it live.

use std::fmt;
use std::ops::Range;

use cranelift_codegen::ir::{SourceLoc, TrapCode};
use harp_isa::abi::LaneField;
use harp_isa::{Gpr, Opcode, RegClass};
use smallvec::SmallVec;

/// A virtual register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Reg {
    index: u32,
    class: RegClass,
}

impl Reg {
    pub(crate) fn class(self) -> RegClass {
        self.class
    }

    /// The number among all virtual registers of a function; the classes share one index space.
    pub(crate) fn index(self) -> usize {
        self.index as usize
    }
}

impl fmt::Display for Reg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.class {
            RegClass::Gpr => write!(f, "%v{}", self.index),
            RegClass::Pred => write!(f, "@v{}", self.index),
        }
    }
}

/// A block of VCode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct BlockId(u32);

impl BlockId {
    pub(crate) fn new(index: usize) -> BlockId {
        BlockId(u32::try_from(index).expect("CLIF numbers its blocks with 32 bits"))
    }

    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for BlockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b{}", self.0)
    }
}

/// An operand of a machine instruction, before allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MOperand {
    /// Written in every executing lane.
    Def(Reg),
    /// Read.
    Use(Reg),
    /// Written where the guard holds, or from the old value: `new` starts as `old`.
    Mod { old: Reg, new: Reg },
    /// An immediate.
    Imm(i64),
}

/// An instruction of VCode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MInst {
    /// One machine instruction.
    Op { opcode: Opcode, guard: Option<Reg>, operands: SmallVec<[MOperand; 3]> },
    /// The function's arguments arrive in registers.
    Args { defs: SmallVec<[(Reg, Gpr); 1]> },
    /// A constant of any size.
    Const { dst: Reg, value: i64 },
    /// A word of the lane control block.
    LaneWord { dst: Reg, field: LaneField },
    /// Reconvergence: the first instruction of a join block.
    Join,
    /// Stops the launch.
    Trap { code: TrapCode },
    /// Goes to `target`, with arguments for its parameters.
    Jump { target: BlockId, args: SmallVec<[Reg; 4]> },
    /// Lanes where `condition` is true go to `taken`, the others to `not_taken`; `split` precedes
    /// it where they may disagree.
    CondBr { condition: Reg, taken: BlockId, not_taken: BlockId, split: bool },
    /// Returns to the caller.
    Ret,
}

impl MInst {
    /// Calls `rewrite` on every register that is named.
    pub(crate) fn for_each_reg(&mut self, mut rewrite: impl FnMut(&mut Reg)) {
        match self {
            MInst::Op { guard, operands, .. } => {
                guard.iter_mut().for_each(&mut rewrite);
                for operand in operands {
                    match operand {
                        MOperand::Def(reg) | MOperand::Use(reg) => rewrite(reg),
                        MOperand::Mod { old, new } => {
                            rewrite(old);
                            rewrite(new);
                        }
                        MOperand::Imm(_) => {}
                    }
                }
            }
            MInst::Args { defs } => defs.iter_mut().for_each(|(reg, _)| rewrite(reg)),
            MInst::Const { dst, .. } | MInst::LaneWord { dst, .. } => rewrite(dst),
            MInst::Jump { args, .. } => args.iter_mut().for_each(rewrite),
            MInst::CondBr { condition, .. } => rewrite(condition),
            MInst::Join | MInst::Trap { .. } | MInst::Ret => {}
        }
    }
}

/// One block: where its instructions lie and how it hangs together with others.
#[derive(Clone, Debug, Default)]
pub(crate) struct VBlock {
    /// Indices into [`VCode::insts`].
    pub(crate) insts: Range<usize>,
    /// Parameters; the arguments stand in the predecessors' jumps.
    pub(crate) params: Vec<Reg>,
    /// Successors, in the order of the terminator.
    pub(crate) succs: SmallVec<[BlockId; 2]>,
    /// Predecessors, once an edge.
    pub(crate) preds: Vec<BlockId>,
}

/// A function in VCode.
#[derive(Clone, Debug, Default)]
pub(crate) struct VCode {
    /// All instructions, block after block.
    pub(crate) insts: Vec<MInst>,
    /// The place in the source of each instruction.
    pub(crate) srclocs: Vec<SourceLoc>,
    /// The blocks; the entry is the first.
    pub(crate) blocks: Vec<VBlock>,
    /// How many virtual registers there are.
    pub(crate) num_regs: usize,
}

impl VCode {
    /// A fresh virtual register.
    pub(crate) fn new_reg(&mut self, class: RegClass) -> Reg {
        let index = u32::try_from(self.num_regs).expect("memory ends before 2^32 registers");
        self.num_regs += 1;
        Reg { index, class }
    }

    /// The blocks with their ids.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = (BlockId, &VBlock)> {
        self.blocks.iter().enumerate().map(|(i, block)| (BlockId::new(i), block))
    }

    /// Fills in the predecessors from the successors.
    pub(crate) fn compute_preds(&mut self) {
        for block in &mut self.blocks {
            block.preds.clear();
        }
        for index in 0..self.blocks.len() {
            for succ in self.blocks[index].succs.clone() {
                self.blocks[succ.index()].preds.push(BlockId::new(index));
            }
        }
    }
}

impl fmt::Display for VCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (id, block) in self.blocks() {
            write!(f, "{id}(")?;
            write_list(f, &block.params)?;
            writeln!(f, "):")?;
            for inst in &self.insts[block.insts.clone()] {
                writeln!(f, "    {inst}")?;
            }
        }
        Ok(())
    }
}

fn write_list<T: fmt::Display>(f: &mut fmt::Formatter<'_>, items: &[T]) -> fmt::Result {
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            f.write_str(", ")?;
        }
        write!(f, "{item}")?;
    }
    Ok(())
}

impl fmt::Display for MOperand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MOperand::Def(reg) | MOperand::Use(reg) => write!(f, "{reg}"),
            MOperand::Mod { old, new } => write!(f, "{new}<-{old}"),
            MOperand::Imm(imm) => write!(f, "#{imm}"),
        }
    }
}

impl fmt::Display for MInst {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MInst::Op { opcode, guard, operands } => {
                if let Some(guard) = guard {
                    write!(f, "{guard} ? ")?;
                }
                write!(f, "{} ", opcode.mnemonic())?;
                write_list(f, operands)
            }
            MInst::Args { defs } => {
                f.write_str("args")?;
                defs.iter().try_for_each(|(reg, fixed)| write!(f, " {reg}={fixed}"))
            }
            MInst::Const { dst, value } => write!(f, "const {dst}, {value:#x}"),
            MInst::LaneWord { dst, field } => write!(f, "lane_word {dst}, {field:?}"),
            MInst::Join => f.write_str("join"),
            MInst::Trap { code } => write!(f, "trap {code}"),
            MInst::Jump { target, args } => {
                write!(f, "jump {target}(")?;
                write_list(f, args)?;
                f.write_str(")")
            }
            MInst::CondBr { condition, taken, not_taken, split } => {
                let kind = if *split { "split_br" } else { "br" };
                write!(f, "{kind} {condition}, {taken}, {not_taken}")
            }
            MInst::Ret => f.write_str("ret"),
        }
    }
}
