//! VCode as regalloc2 wants to see it.
//!
//! Register operands of an instruction appear in this order: the guard, then the operands as they
//! stand; a [`MOperand::Mod`] is a use of the old value followed by a definition that reuses its
//! register.

use std::ops::Range;

use regalloc2::{
    Block, Inst, InstRange, Operand, OperandConstraint, OperandKind, OperandPos, PRegSet, VReg,
};

use harp_isa::Gpr;
use hashbrown::HashMap;
use smallvec::SmallVec;

use super::{class, gpr_preg};
use crate::vcode::{Callee, MInst, MOperand, Reg, VCode};

/// A copy of what regalloc2 asks for, in its own types.
#[derive(Debug)]
pub(super) struct Adapter {
    operands: Vec<Operand>,
    /// Where the operands of each instruction end.
    operand_ends: Vec<usize>,
    kinds: Vec<Kind>,
    /// What calls change besides their results, by instruction.
    clobbers: HashMap<usize, PRegSet>,
    /// What a call may change.
    caller_saved: PRegSet,
    /// Parameters of blocks and arguments of jumps.
    lists: Vec<VReg>,
    blocks: Vec<AdapterBlock>,
    num_vregs: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Plain,
    Branch,
    Ret,
}

#[derive(Debug)]
struct AdapterBlock {
    insts: InstRange,
    succs: SmallVec<[Block; 2]>,
    preds: SmallVec<[Block; 2]>,
    /// Where in the lists its parameters stand.
    params: Range<usize>,
    /// Where in the lists the arguments stand of the jump that ends it.
    args: Range<usize>,
}

impl Adapter {
    /// Calls change the registers in `caller_saved`.
    pub(super) fn new(vcode: &VCode, caller_saved: PRegSet) -> Adapter {
        let mut adapter = Adapter {
            clobbers: HashMap::new(),
            caller_saved,
            operands: Vec::with_capacity(3 * vcode.insts.len()),
            operand_ends: Vec::with_capacity(vcode.insts.len()),
            kinds: Vec::with_capacity(vcode.insts.len()),
            lists: Vec::new(),
            blocks: Vec::with_capacity(vcode.blocks.len()),
            num_vregs: vcode.num_regs,
        };
        for inst in &vcode.insts {
            adapter.add_inst(inst);
        }
        let ids = |blocks: &[crate::vcode::BlockId]| {
            blocks.iter().map(|block| Block::new(block.index())).collect()
        };
        for block in &vcode.blocks {
            let params = adapter.list(&block.params);
            let args = match &vcode.insts[block.insts.end - 1] {
                MInst::Jump { args, .. } => adapter.list(args),
                _ => 0..0,
            };
            adapter.blocks.push(AdapterBlock {
                insts: InstRange::new(Inst::new(block.insts.start), Inst::new(block.insts.end)),
                succs: ids(&block.succs),
                preds: ids(&block.preds),
                params,
                args,
            });
        }
        adapter
    }

    /// Where in the lists these registers stand now.
    fn list(&mut self, regs: &[Reg]) -> Range<usize> {
        let start = self.lists.len();
        self.lists.extend(regs.iter().copied().map(vreg));
        start..self.lists.len()
    }

    fn add_inst(&mut self, inst: &MInst) {
        let first = self.operands.len();
        let ops = &mut self.operands;
        let mut kind = Kind::Plain;
        match inst {
            MInst::Op { guard, operands, .. } => {
                ops.extend(guard.map(|guard| Operand::reg_use(vreg(guard))));
                for operand in operands {
                    match *operand {
                        MOperand::Def(reg) => ops.push(Operand::reg_def(vreg(reg))),
                        MOperand::Use(reg) => ops.push(Operand::reg_use(vreg(reg))),
                        MOperand::Mod { old, new } => {
                            let reused = ops.len() - first;
                            ops.push(Operand::reg_use(vreg(old)));
                            ops.push(Operand::reg_reuse_def(vreg(new), reused));
                        }
                        MOperand::Imm(_) | MOperand::StackSlots => {}
                    }
                }
            }
            MInst::Args { defs } => ops.extend(defs.iter().map(fixed_def)),
            MInst::Const { dst, .. }
            | MInst::LaneWord { dst, .. }
            | MInst::GroupWord { dst, .. }
            | MInst::LoadWord { dst, .. }
            | MInst::FrameValue { dst, .. }
            | MInst::Address { dst, .. } => ops.push(Operand::reg_def(vreg(*dst))),
            MInst::StoreWord { src, .. } => ops.push(Operand::reg_use(vreg(*src))),
            MInst::Call { callee, args, results, .. } => {
                if let Callee::Register { address, .. } = callee {
                    ops.push(Operand::reg_use(vreg(*address)));
                }
                ops.extend(args.iter().map(fixed_use));
                ops.extend(results.iter().map(fixed_def));
                let mut clobbers = self.caller_saved;
                results.iter().for_each(|&(_, reg)| clobbers.remove(gpr_preg(reg)));
                self.clobbers.insert(self.kinds.len(), clobbers);
            }
            MInst::TailCall { callee, target, args, .. } => {
                kind = Kind::Ret;
                if let Callee::Register { address, .. } = callee {
                    ops.push(fixed_use(&(*address, *target)));
                }
                ops.extend(args.iter().map(fixed_use));
            }
            MInst::Any { dst, src, address, temp } => {
                // Written before the others are read for the last time.
                let temp = Operand::reg_temp(vreg(*temp));
                ops.extend([*src, *address].map(|reg| Operand::reg_use(vreg(reg))));
                ops.extend([temp, Operand::reg_def(vreg(*dst))]);
            }
            MInst::OfSomeLane { dst, src, address } => {
                ops.extend([*src, *address].map(|reg| Operand::reg_use(vreg(reg))));
                ops.push(Operand::reg_def(vreg(*dst)));
            }
            MInst::Barrier { temps } => {
                ops.extend(temps.map(|temp| Operand::reg_temp(vreg(temp))));
            }
            MInst::Shuffle { dst, value, lane, temps, preds } => {
                ops.extend([*value, *lane].map(|reg| Operand::reg_use(vreg(reg))));
                let temps = temps.iter().chain(preds).copied();
                ops.extend(temps.map(|temp| Operand::reg_temp(vreg(temp))));
                // Written while the value is still to be read.
                ops.push(Operand::new(
                    vreg(*dst),
                    OperandConstraint::Reg,
                    OperandKind::Def,
                    OperandPos::Early,
                ));
            }
            MInst::Undef { dst } => ops.push(Operand::any_def(vreg(*dst))),
            MInst::Join => {}
            MInst::Jump { .. } => kind = Kind::Branch,
            MInst::CondBr { condition, .. } => {
                kind = Kind::Branch;
                ops.push(Operand::new(
                    vreg(*condition),
                    OperandConstraint::Reg,
                    OperandKind::Use,
                    OperandPos::Early,
                ));
            }
            MInst::Ret { results } => {
                kind = Kind::Ret;
                ops.extend(results.iter().map(fixed_use));
            }
            // A trap ends its block for good: to the allocator, a return.
            MInst::Trap { .. } => kind = Kind::Ret,
        }
        self.operand_ends.push(self.operands.len());
        self.kinds.push(kind);
    }

    fn kind(&self, inst: Inst) -> Kind {
        self.kinds[inst.index()]
    }
}

fn vreg(reg: Reg) -> VReg {
    VReg::new(reg.index(), class(reg.class()))
}

fn fixed_use(&(reg, fixed): &(Reg, Gpr)) -> Operand {
    Operand::reg_fixed_use(vreg(reg), gpr_preg(fixed))
}

fn fixed_def(&(reg, fixed): &(Reg, Gpr)) -> Operand {
    Operand::reg_fixed_def(vreg(reg), gpr_preg(fixed))
}

impl regalloc2::Function for Adapter {
    fn num_insts(&self) -> usize {
        self.kinds.len()
    }

    fn num_blocks(&self) -> usize {
        self.blocks.len()
    }

    fn entry_block(&self) -> Block {
        Block::new(0)
    }

    fn block_insns(&self, block: Block) -> InstRange {
        self.blocks[block.index()].insts
    }

    fn block_succs(&self, block: Block) -> &[Block] {
        &self.blocks[block.index()].succs
    }

    fn block_preds(&self, block: Block) -> &[Block] {
        &self.blocks[block.index()].preds
    }

    fn block_params(&self, block: Block) -> &[VReg] {
        &self.lists[self.blocks[block.index()].params.clone()]
    }

    fn is_ret(&self, inst: Inst) -> bool {
        self.kind(inst) == Kind::Ret
    }

    fn is_branch(&self, inst: Inst) -> bool {
        self.kind(inst) == Kind::Branch
    }

    fn branch_blockparams(&self, block: Block, _inst: Inst, _succ: usize) -> &[VReg] {
        &self.lists[self.blocks[block.index()].args.clone()]
    }

    fn inst_operands(&self, inst: Inst) -> &[Operand] {
        let index = inst.index();
        let start = if index == 0 { 0 } else { self.operand_ends[index - 1] };
        &self.operands[start..self.operand_ends[index]]
    }

    fn inst_clobbers(&self, inst: Inst) -> PRegSet {
        self.clobbers.get(&inst.index()).copied().unwrap_or(PRegSet::empty())
    }

    fn num_vregs(&self) -> usize {
        self.num_vregs
    }

    fn spillslot_size(&self, _class: regalloc2::RegClass) -> usize {
        1
    }
}
