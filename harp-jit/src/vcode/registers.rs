//! Which registers an instruction reads and which it writes. What is changed on the way counts as written.

use super::{Callee, MInst, MOperand, Reg, VCode};

/// What an instruction does with a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Use,
    Def,
}

impl VCode {
    /// Numbers the registers anew, in the same order, without those that are not `used`. Of the registers
    /// that selection makes, a quarter comes to nothing, and the allocator has memory for each number.
    pub(crate) fn drop_unused_regs(&mut self, used: &[bool]) {
        let mut met = 0;
        let number = |&used: &bool| {
            let number = met;
            met += u32::from(used);
            used.then_some(number)
        };
        let numbers: Vec<Option<u32>> = used.iter().map(number).collect();
        let renamed = |reg: Reg| numbers[reg.index()].map(|index| Reg { index, ..reg });
        let rename = |reg: &mut Reg| *reg = renamed(*reg).expect("it is used");
        self.insts.iter_mut().for_each(|inst| inst.for_each_reg(rename));
        for block in &mut self.blocks {
            block.params.iter_mut().for_each(rename);
        }
        self.promises.rename(renamed);
        self.num_regs = met as usize;
    }
}

impl MInst {
    /// Calls `visit` on every register that is read or written; what is read comes first where a
    /// register is written in place of another. Arguments of a jump are read.
    pub(crate) fn for_each_access(&self, mut visit: impl FnMut(Reg, Access)) {
        let callee = |callee: &Callee| match callee {
            Callee::Symbol { .. } => None,
            Callee::Register { address, .. } => Some(*address),
        };
        match self {
            MInst::Op { guard, operands, .. } => {
                guard.iter().for_each(|&guard| visit(guard, Access::Use));
                for operand in operands {
                    match *operand {
                        MOperand::Def(reg) => visit(reg, Access::Def),
                        MOperand::Use(reg) => visit(reg, Access::Use),
                        MOperand::Mod { old, new } => {
                            visit(old, Access::Use);
                            visit(new, Access::Def);
                        }
                        MOperand::Imm(_) | MOperand::StackSlots => {}
                    }
                }
            }
            MInst::Args { defs } => defs.iter().for_each(|&(reg, _)| visit(reg, Access::Def)),
            MInst::Const { dst, .. }
            | MInst::LaneWord { dst, .. }
            | MInst::LoadWord { dst, .. }
            | MInst::FrameValue { dst, .. }
            | MInst::Address { dst, .. } => visit(*dst, Access::Def),
            MInst::StoreWord { src, .. } => visit(*src, Access::Use),
            MInst::Call { callee: target, args, results, .. } => {
                callee(target).into_iter().for_each(|reg| visit(reg, Access::Use));
                args.iter().for_each(|&(reg, _)| visit(reg, Access::Use));
                results.iter().for_each(|&(reg, _)| visit(reg, Access::Def));
            }
            MInst::TailCall { callee: target, args, .. } => {
                callee(target).into_iter().for_each(|reg| visit(reg, Access::Use));
                args.iter().for_each(|&(reg, _)| visit(reg, Access::Use));
            }
            MInst::Jump { args, .. } => args.iter().for_each(|&reg| visit(reg, Access::Use)),
            MInst::CondBr { condition, .. } => visit(*condition, Access::Use),
            MInst::Ret { results } => results.iter().for_each(|&(reg, _)| visit(reg, Access::Use)),
            MInst::GroupWord { dst, .. } | MInst::Undef { dst } => visit(*dst, Access::Def),
            MInst::Any { dst, src, address, temp } => {
                [*src, *address].iter().for_each(|&reg| visit(reg, Access::Use));
                [*temp, *dst].iter().for_each(|&reg| visit(reg, Access::Def));
            }
            MInst::OfSomeLane { dst, src, address } => {
                [*src, *address].iter().for_each(|&reg| visit(reg, Access::Use));
                visit(*dst, Access::Def);
            }
            MInst::Barrier { temps } => temps.iter().for_each(|&reg| visit(reg, Access::Def)),
            MInst::Shuffle { dst, value, lane, temps, preds } => {
                [*value, *lane].iter().for_each(|&reg| visit(reg, Access::Use));
                temps.iter().chain(preds).chain([dst]).for_each(|&reg| visit(reg, Access::Def));
            }
            MInst::Join | MInst::Trap { .. } => {}
        }
    }

    /// Whether it ends a block.
    pub(crate) fn is_terminator(&self) -> bool {
        match self {
            MInst::Jump { .. }
            | MInst::CondBr { .. }
            | MInst::Ret { .. }
            | MInst::TailCall { .. }
            | MInst::Trap { .. } => true,
            MInst::Op { .. }
            | MInst::Args { .. }
            | MInst::LoadWord { .. }
            | MInst::FrameValue { .. }
            | MInst::StoreWord { .. }
            | MInst::Address { .. }
            | MInst::Call { .. }
            | MInst::Const { .. }
            | MInst::LaneWord { .. }
            | MInst::GroupWord { .. }
            | MInst::Undef { .. }
            | MInst::Barrier { .. }
            | MInst::Shuffle { .. }
            | MInst::Any { .. }
            | MInst::OfSomeLane { .. }
            | MInst::Join => false,
        }
    }
}
