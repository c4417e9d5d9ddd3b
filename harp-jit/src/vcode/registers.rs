//! The registers of an instruction, and how it accesses each.

use harp_isa::Gpr;

use super::{Callee, MInst, MOperand, Reg, Scratch, VCode};

/// How an instruction accesses a register, and where the register must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Reads it.
    Use,
    /// Reads it in this machine register.
    FixedUse(Gpr),
    /// Passes it on to a parameter of its target.
    Passed,
    /// Writes it, after all reads.
    Def,
    /// Writes it in this machine register.
    FixedDef(Gpr),
    /// Writes it, in the same place as the preceding register.
    ReusedDef,
    /// Writes it before all reads are done.
    EarlyDef,
    /// Writes it before all reads are done; the result is not used.
    Temp,
    /// Declares its contents, in a register or a slot, undefined.
    Undefined,
}

impl Access {
    /// Whether it is written, which includes registers changed temporarily.
    pub(crate) fn is_def(self) -> bool {
        match self {
            Access::Use | Access::FixedUse(_) | Access::Passed => false,
            Access::Def
            | Access::FixedDef(_)
            | Access::ReusedDef
            | Access::EarlyDef
            | Access::Temp
            | Access::Undefined => true,
        }
    }
}

/// The only place that lists the registers of each instruction, for readers and for rewriters. The order is
/// that of the allocator's operands: the guard of a machine instruction comes before its operands; an old
/// value comes before the one that replaces it.
macro_rules! walk {
    ($inst:expr, $visit:ident) => {
        match $inst {
            MInst::Op { guard, operands, .. } => {
                if let Some(guard) = guard {
                    $visit(guard, Access::Use);
                }
                for operand in operands {
                    match operand {
                        MOperand::Def(reg) => $visit(reg, Access::Def),
                        MOperand::Use(reg) => $visit(reg, Access::Use),
                        MOperand::Mod { old, new } => {
                            $visit(old, Access::Use);
                            $visit(new, Access::ReusedDef);
                        }
                        MOperand::Imm(_) | MOperand::StackSlots => {}
                    }
                }
            }
            MInst::Args { defs } => {
                for (reg, place) in defs {
                    $visit(reg, Access::FixedDef(*place));
                }
            }
            MInst::Const { dst, .. }
            | MInst::LaneWord { dst, .. }
            | MInst::LoadWord { dst, .. }
            | MInst::FrameValue { dst, .. }
            | MInst::Address { dst, .. } => $visit(dst, Access::Def),
            MInst::StoreWord { src, .. } => $visit(src, Access::Use),
            MInst::Undef { dst } => $visit(dst, Access::Undefined),
            MInst::Call { callee, args, results, .. } => {
                if let Callee::Register { address, .. } = callee {
                    $visit(address, Access::Use);
                }
                for (reg, place) in args {
                    $visit(reg, Access::FixedUse(*place));
                }
                for (reg, place) in results {
                    $visit(reg, Access::FixedDef(*place));
                }
            }
            MInst::TailCall { callee, target, args, .. } => {
                if let Callee::Register { address, .. } = callee {
                    $visit(address, Access::FixedUse(*target));
                }
                for (reg, place) in args {
                    $visit(reg, Access::FixedUse(*place));
                }
            }
            MInst::Any { dst, src, scratch: Scratch { address, .. }, temp } => {
                $visit(src, Access::Use);
                $visit(address, Access::Use);
                $visit(temp, Access::Temp);
                $visit(dst, Access::Def);
            }
            MInst::OfSomeLane { dst, src, scratch: Scratch { address, .. } } => {
                $visit(src, Access::Use);
                $visit(address, Access::Use);
                $visit(dst, Access::Def);
            }
            MInst::GroupWord { dst, block, .. } => {
                $visit(block, Access::Use);
                $visit(dst, Access::Def);
            }
            MInst::Barrier { id, warps } => {
                $visit(id, Access::Use);
                $visit(warps, Access::Use);
            }
            MInst::Shuffle { dst, value, lane, temps, preds } => {
                $visit(value, Access::Use);
                $visit(lane, Access::Use);
                for temp in temps {
                    $visit(temp, Access::Temp);
                }
                for temp in preds {
                    $visit(temp, Access::Temp);
                }
                $visit(dst, Access::EarlyDef);
            }
            MInst::Jump { args, .. } => {
                for arg in args {
                    $visit(arg, Access::Passed);
                }
            }
            MInst::CondBr { condition, .. } => $visit(condition, Access::Use),
            MInst::Ret { results } => {
                for (reg, place) in results {
                    $visit(reg, Access::FixedUse(*place));
                }
            }
            MInst::Join | MInst::Trap { .. } => {}
        }
    };
}

impl MInst {
    /// Calls `visit` on every register of the instruction.
    pub(crate) fn for_each_reg(&self, mut visit: impl FnMut(Reg, Access)) {
        let mut visit = |reg: &Reg, access| visit(*reg, access);
        walk!(self, visit);
    }

    /// Calls `rewrite` on every register of the instruction.
    pub(crate) fn rewrite_regs(&mut self, mut rewrite: impl FnMut(&mut Reg)) {
        let mut visit = |reg: &mut Reg, _| rewrite(reg);
        walk!(self, visit);
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

impl VCode {
    /// Renumbers the registers, in the same order, without those that are not `used`. A quarter of the
    /// registers that selection makes is unused, and the allocator needs memory for each number.
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
        self.insts.iter_mut().for_each(|inst| inst.rewrite_regs(rename));
        for block in &mut self.blocks {
            block.params.iter_mut().for_each(rename);
        }
        self.promises.rename(renamed);
        self.num_regs = met as usize;
    }
}
