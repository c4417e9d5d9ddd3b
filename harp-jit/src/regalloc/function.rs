//! VCode as regalloc2's `Function`.
//!
//! The operands of an instruction are its registers in the order of [`MInst::for_each_reg`].

use std::ops::Range;

use regalloc2::{
    Block, Inst, InstRange, Operand, OperandConstraint, OperandKind, OperandPos, PRegSet, VReg,
};

use hashbrown::HashMap;
use smallvec::SmallVec;

use super::{class, gpr_preg, pred_preg};
use crate::vcode::{Access, MInst, Reg, SharedReg, VCode};

/// A copy of the function in regalloc2's own types.
#[derive(Debug)]
pub(super) struct Adapter {
    operands: Vec<Operand>,
    /// The end of each instruction's operands.
    operand_ends: Vec<usize>,
    kinds: Vec<Kind>,
    /// The registers that calls change besides their results, by instruction.
    clobbers: HashMap<usize, PRegSet>,
    /// The registers that a call may change.
    caller_saved: PRegSet,
    /// The lists of block parameters and jump arguments.
    lists: Vec<VReg>,
    blocks: Vec<AdapterBlock>,
    num_vregs: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Plain,
    Call,
    Branch,
    Ret,
}

#[derive(Debug)]
struct AdapterBlock {
    insts: InstRange,
    succs: SmallVec<[Block; 2]>,
    preds: SmallVec<[Block; 2]>,
    /// The range of its parameters in the lists.
    params: Range<usize>,
    /// The range in the lists of the arguments of the jump that ends it.
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
            adapter.add_inst(vcode, inst);
        }
        let ids = |blocks: &[crate::vcode::BlockId]| {
            blocks.iter().map(|block| Block::new(block.index())).collect()
        };
        for block in &vcode.blocks {
            let params = adapter.list(vcode, &block.params);
            let args = match &vcode.insts[block.insts.end - 1] {
                MInst::Jump { args, .. } => adapter.list(vcode, args),
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

    /// Appends these registers to the lists and returns their range. A shared parameter has its argument in its place.
    fn list(&mut self, vcode: &VCode, regs: &[Reg]) -> Range<usize> {
        let start = self.lists.len();
        let allocated = regs.iter().filter(|reg| !vcode.shared.contains_key(*reg));
        self.lists.extend(allocated.copied().map(vreg));
        start..self.lists.len()
    }

    fn add_inst(&mut self, vcode: &VCode, inst: &MInst) {
        let first = self.operands.len();
        inst.for_each_reg(|reg, access| {
            let operand = match vcode.shared.get(&reg) {
                Some(place) => shared_operand(*place, access),
                None => operand(reg, access, self.operands.len() - first),
            };
            self.operands.extend(operand);
        });
        let kind = match inst {
            MInst::Call { results, .. } => {
                let mut clobbers = self.caller_saved;
                results.iter().for_each(|&(_, reg)| clobbers.remove(gpr_preg(reg)));
                self.clobbers.insert(self.kinds.len(), clobbers);
                Kind::Call
            }
            MInst::Jump { .. } | MInst::CondBr { .. } => Kind::Branch,
            // A trap ends the function like a return, as the allocator sees it.
            MInst::Ret { .. } | MInst::TailCall { .. } | MInst::Trap { .. } => Kind::Ret,
            _ => Kind::Plain,
        };
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

/// An operand in a register that is not the allocator's.
fn shared_operand(place: SharedReg, access: Access) -> Option<Operand> {
    let place = match place {
        SharedReg::Gpr(gpr) => gpr_preg(gpr),
        SharedReg::Pred(pred) => pred_preg(pred),
    };
    (access != Access::Passed).then(|| Operand::fixed_nonallocatable(place))
}

/// An operand that follows `before` others of its instruction. Arguments of a jump are not operands.
fn operand(reg: Reg, access: Access, before: usize) -> Option<Operand> {
    let reg = vreg(reg);
    Some(match access {
        Access::Passed => return None,
        Access::Use => Operand::reg_use(reg),
        Access::FixedUse(place) => Operand::reg_fixed_use(reg, gpr_preg(place)),
        Access::Def => Operand::reg_def(reg),
        Access::FixedDef(place) => Operand::reg_fixed_def(reg, gpr_preg(place)),
        Access::ReusedDef => Operand::reg_reuse_def(reg, before - 1),
        Access::EarlyDef => {
            Operand::new(reg, OperandConstraint::Reg, OperandKind::Def, OperandPos::Early)
        }
        Access::Temp => Operand::reg_temp(reg),
        Access::Undefined => Operand::any_def(reg),
    })
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
        match self.kind(inst) {
            Kind::Call => self.clobbers[&inst.index()],
            Kind::Plain | Kind::Branch | Kind::Ret => PRegSet::empty(),
        }
    }

    fn num_vregs(&self) -> usize {
        self.num_vregs
    }

    fn spillslot_size(&self, _class: regalloc2::RegClass) -> usize {
        1
    }
}
