//! VCode: machine instructions over virtual registers, in blocks.
//!
//! Invariants, from instruction selection to emission:
//!
//! * every virtual register has one definition (SSA), an instruction's or a block parameter's;
//! * blocks are in a reverse post-order, block 0 is the entry;
//! * no edge is critical: the successors of a block that ends in [`MInst::CondBr`] have no parameters and no
//!   other predecessors, so moves on an edge have a block of their own;
//! * a write that lanes may skip ([`MOperand::Mod`], guards) names the register that holds the old value, so
//!   that the allocator keeps it live.

use std::ops::Range;

use cranelift_codegen::ir::{SourceLoc, TrapCode};
use harp_isa::abi::{GroupField, LaneField};
use harp_isa::{Gpr, Opcode, Pred, RegClass};
use hashbrown::{HashMap, HashSet};
use smallvec::SmallVec;

use crate::profile::BranchSite;

mod print;
mod registers;
mod validate;

pub(crate) use registers::Access;

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

    /// The index among all virtual registers of a function; both classes share one index space.
    pub(crate) fn index(self) -> usize {
        self.index as usize
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

/// An operand of a machine instruction, before allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MOperand {
    /// Written in every executing lane.
    Def(Reg),
    /// Read in every executing lane.
    Use(Reg),
    /// Written where the guard holds, or derived from the old value: `new` starts as `old`.
    Mod { old: Reg, new: Reg },
    /// An immediate.
    Imm(i64),
    /// The start of the function's stack slots as a base register. The immediate that follows is the offset
    /// from the first slot and may be of any size.
    StackSlots,
}

/// A word of the frame that the calling convention defines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameWord {
    /// An argument or result of a callee: words from the stack pointer upwards.
    Outgoing(u32),
    /// An argument or result of this function: words from its first stack argument upwards. Below it are
    /// arguments of a tail call that has more.
    Incoming(i64),
}

/// A property of the frame that code can read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameValue {
    /// The stack pointer.
    Start,
    /// The stack pointer at the entry.
    End,
    /// The return address of this function.
    ReturnAddress,
    /// The control block of the warp's lane 0, in kernels on machines on which the stacks of a warp are
    /// [aligned](harp_isa::abi::warp_alignment) for that.
    FirstBlock,
}

/// Where the warp's scratch word is: so many bytes behind an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scratch {
    pub(crate) address: Reg,
    pub(crate) offset: u32,
}

/// The name of a function or datum, by its index in [`VCode::symbols`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Symbol(u32);

impl Symbol {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// The target of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Callee {
    /// A function by its name.
    Symbol { symbol: Symbol, far: FarCall },
    /// The function at an address, with its name if it is known.
    Register { address: Reg, symbol: Option<Symbol> },
}

/// How to call a function that turns out to be out of reach of a call instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FarCall {
    /// It is never out of reach.
    Reached,
    /// Through a free register.
    Free(Gpr),
    /// Through a register whose value is kept during the call in the given word above the stack pointer.
    Kept { register: Gpr, word: u32 },
}

/// Virtual registers, each with the register that the calling convention requires. Calls have two of these lists, so
/// more room in place would make all instructions larger.
pub(crate) type Fixed = SmallVec<[(Reg, Gpr); 1]>;

/// An instruction of VCode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MInst {
    /// One machine instruction.
    Op { opcode: Opcode, guard: Option<Reg>, operands: SmallVec<[MOperand; 3]> },
    /// Defines the function's arguments, which arrive in registers.
    Args { defs: Fixed },
    /// Reads a word of the frame.
    LoadWord { dst: Reg, word: FrameWord },
    /// Writes a word of the frame.
    StoreWord { src: Reg, word: FrameWord },
    /// Reads a property of the frame.
    FrameValue { dst: Reg, value: FrameValue },
    /// The address of a function or datum.
    Address { dst: Reg, symbol: Symbol },
    /// Calls a function. The callee takes `popped` words of stack arguments off the stack, which the caller
    /// puts back.
    Call { callee: Callee, args: Fixed, results: Fixed, popped: u32 },
    /// Calls a function in place of this one, which ends. The address of a callee in a register is in
    /// `target`. The stack pointer ends `shift` words above where it was at the entry.
    TailCall { callee: Callee, target: Gpr, args: Fixed, shift: i64 },
    /// A constant of any size.
    Const { dst: Reg, value: i64 },
    /// An undefined value: the register's contents, whatever they are.
    Undef { dst: Reg },
    /// A word of the lane control block.
    LaneWord { dst: Reg, field: LaneField },
    /// A word of the group control block at the address `block`.
    GroupWord { dst: Reg, block: Reg, field: GroupField },
    /// Waits for the other warps of the work-group, at the barrier with this number, which so many must reach.
    Barrier { id: Reg, warps: Reg },
    /// The `value` of the lane with number `lane`, exchanged through the lane control blocks; the lane's own
    /// value if that lane does not execute this. Changes the other registers.
    Shuffle { dst: Reg, value: Reg, lane: Reg, temps: [Reg; 2], preds: [Reg; 2] },
    /// Whether `src` holds in any executing lane, found out through the warp's scratch word.
    /// Changes `temp`.
    Any { dst: Reg, src: Reg, scratch: Scratch, temp: Reg },
    /// The `src` of one executing lane, in all of them, exchanged through the warp's scratch word.
    OfSomeLane { dst: Reg, src: Reg, scratch: Scratch },
    /// Reconvergence: the first instruction of a join block.
    Join,
    /// Stops the launch.
    Trap { code: TrapCode },
    /// Goes to `target`, with arguments for its parameters.
    Jump { target: BlockId, args: SmallVec<[Reg; 4]> },
    /// Lanes where `condition` is true go to `taken`, the others to `not_taken`; `split` precedes the branch
    /// if they may disagree.
    CondBr {
        condition: Reg,
        taken: BlockId,
        not_taken: BlockId,
        split: bool,
        /// The id of the branch.
        site: Option<BranchSite>,
    },
    /// Returns to the caller.
    Ret { results: Fixed },
}

impl Callee {
    /// The callee's name, if it is known.
    pub(crate) fn symbol(self) -> Option<Symbol> {
        match self {
            Callee::Symbol { symbol, .. } => Some(symbol),
            Callee::Register { symbol, .. } => symbol,
        }
    }
}

impl MInst {
    /// Whether the instruction reads the group control block or the lane's place in the group.
    pub(crate) fn uses_groups(&self) -> bool {
        match self {
            MInst::GroupWord { .. } | MInst::Barrier { .. } => true,
            MInst::LaneWord { field, .. } => matches!(
                field,
                LaneField::LocalIndex
                    | LaneField::LocalIdX
                    | LaneField::LocalIdY
                    | LaneField::LocalIdZ
            ),
            _ => false,
        }
    }
}

/// One block: the range of its instructions and its edges.
#[derive(Clone, Debug, Default)]
pub(crate) struct VBlock {
    /// Indices into [`VCode::insts`].
    pub(crate) insts: Range<usize>,
    /// The parameters; the arguments are in the predecessors' jumps.
    pub(crate) params: Vec<Reg>,
    /// Successors, in the order of the terminator.
    pub(crate) succs: SmallVec<[BlockId; 2]>,
    /// The predecessors, one entry per edge.
    pub(crate) preds: SmallVec<[BlockId; 2]>,
}

/// A function in VCode.
#[derive(Clone, Debug, Default)]
pub(crate) struct VCode {
    /// All instructions, block after block.
    pub(crate) insts: Vec<MInst>,
    /// The source location of each instruction.
    pub(crate) srclocs: Vec<SourceLoc>,
    /// The blocks; the entry is the first.
    pub(crate) blocks: Vec<VBlock>,
    /// The number of virtual registers.
    pub(crate) num_regs: usize,
    /// The names that the code refers to.
    pub(crate) symbols: Vec<String>,
    /// What the instructions need of the frame.
    pub(crate) frame: FrameNeeds,
    /// Facts that instructions do not show.
    pub(crate) promises: Promises,
    /// The registers that the lanes of a warp share, which are not left to the allocator.
    pub(crate) shared: HashMap<Reg, SharedReg>,
    /// Shared addresses at which lanes access a row of memory.
    pub(crate) rows: HashSet<Reg>,
    /// Registers in which lanes have the same only because what they are computed from was loaded once for all of them.
    pub(crate) once: HashSet<Reg>,
}

/// A shared register of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum SharedReg {
    Gpr(Gpr),
    Pred(Pred),
}

impl SharedReg {
    pub(crate) fn class(self) -> RegClass {
        match self {
            SharedReg::Gpr(_) => RegClass::Gpr,
            SharedReg::Pred(_) => RegClass::Pred,
        }
    }
}

/// Facts about registers and functions that instructions do not show. They are passed on to the checker of
/// the finished code.
#[derive(Clone, Debug, Default)]
pub(crate) struct Promises {
    /// Registers loaded from memory that is not written during a launch.
    pub(crate) read_only: HashSet<Reg>,
    /// Registers that the user promised to be uniform.
    pub(crate) uniform: HashSet<Reg>,
    /// Predicates that steer lanes since control flow was rearranged. The checker follows what they are
    /// computed from, but assumes nothing because of them.
    pub(crate) steering: HashSet<Reg>,
    /// Known properties of callees.
    pub(crate) callees: HashMap<Symbol, Contract>,
    /// Known properties of the function itself.
    pub(crate) own: Contract,
}

/// What a function and its callers rely on. Both must keep it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Contract {
    /// Arguments that are uniform.
    pub(crate) arguments: SmallVec<[Gpr; 4]>,
    /// Results, each of which is uniform if the values passed in the registers beside it are.
    pub(crate) results: Vec<(Gpr, SmallVec<[Gpr; 4]>)>,
}

impl Promises {
    /// Moves what is known of the result of an instruction, whatever lanes execute it, from `old` to `new`, which it now
    /// defines.
    pub(crate) fn move_to(&mut self, old: Reg, new: Reg) {
        for known in [&mut self.read_only, &mut self.steering] {
            if known.remove(&old) {
                known.insert(new);
            }
        }
    }

    /// Renames the registers; facts about registers without a new name are dropped.
    pub(crate) fn rename(&mut self, name: impl Fn(Reg) -> Option<Reg>) {
        for known in [&mut self.read_only, &mut self.uniform, &mut self.steering] {
            *known = known.drain().filter_map(&name).collect();
        }
    }
}

/// What a function's instructions need of its frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FrameNeeds {
    /// Words for stack arguments and results of callees, followed by one for [`FarCall::Kept`].
    pub(crate) outgoing_words: u32,
    /// Whether the word for [`FarCall::Kept`] is included.
    pub(crate) keeps_register: bool,
    /// Words of stack arguments that this function takes off the stack when it returns.
    pub(crate) popped_words: u32,
    /// The words by which the arguments of a tail call exceed those of this function.
    pub(crate) tail_growth_words: u32,
    /// Bytes of stack slots.
    pub(crate) slot_bytes: u64,
}

impl VCode {
    /// A fresh virtual register.
    pub(crate) fn new_reg(&mut self, class: RegClass) -> Reg {
        let index = u32::try_from(self.num_regs).expect("memory ends before 2^32 registers");
        self.num_regs += 1;
        Reg { index, class }
    }

    /// Adds a name that the code refers to.
    pub(crate) fn add_symbol(&mut self, name: String) -> Symbol {
        self.symbols.push(name);
        let index = self.symbols.len() - 1;
        Symbol(u32::try_from(index).expect("memory ends before 2^32 names"))
    }

    /// The names that the code refers to.
    pub(crate) fn references(&self) -> impl Iterator<Item = &str> {
        self.symbols.iter().map(String::as_str)
    }

    /// Drops the instructions that `keep` refuses, of which it gets the indices. No block may become empty.
    pub(crate) fn retain_insts(&mut self, mut keep: impl FnMut(usize, &MInst) -> bool) {
        let old = std::mem::take(&mut self.insts).into_iter();
        let mut old = old.zip(std::mem::take(&mut self.srclocs)).enumerate();
        for block in &mut self.blocks {
            let start = self.insts.len();
            for (index, (inst, srcloc)) in old.by_ref().take(block.insts.len()) {
                if keep(index, &inst) {
                    self.insts.push(inst);
                    self.srclocs.push(srcloc);
                }
            }
            block.insts = start..self.insts.len();
        }
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
