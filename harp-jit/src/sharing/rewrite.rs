//! Copies that shared registers need, and accesses that would otherwise be of rows.

use harp_isa::{Opcode, OpcodeFlags, RegClass};

use super::colour::Palette;
use super::uniform::Uniform;
use crate::vcode::{MInst, MOperand, Reg, SharedReg, VCode};

/// Inserts the copies.
pub(super) fn rewrite(vcode: &mut VCode, uniform: &Uniform, palette: &Palette) {
    let insts = std::mem::take(&mut vcode.insts);
    let mut old = insts.into_iter().zip(std::mem::take(&mut vcode.srclocs));
    for index in 0..vcode.blocks.len() {
        let start = vcode.insts.len();
        let count = vcode.blocks[index].insts.len();
        for (mut inst, srcloc) in old.by_ref().take(count) {
            let behind = match &mut inst {
                MInst::Op { opcode, guard: None, operands }
                    if opcode.flags().contains(OpcodeFlags::LOAD) =>
                {
                    load(vcode, operands, uniform, palette)
                }
                MInst::Op { opcode, operands, .. }
                    if opcode.flags().contains(OpcodeFlags::STORE) =>
                {
                    store(vcode, operands);
                    None
                }
                MInst::Jump { target, args } => {
                    let params = vcode.blocks[target.index()].params.clone();
                    for (&param, arg) in params.iter().zip(args) {
                        *arg = argument(vcode, param, *arg);
                    }
                    None
                }
                _ => None,
            };
            vcode.insts.push(inst);
            vcode.insts.extend(behind);
            vcode.srclocs.resize(vcode.insts.len(), srcloc);
        }
        vcode.blocks[index].insts = start..vcode.insts.len();
    }
}

/// A load from a uniform address is executed once, for a register of the lanes through the spare shared one. The copy
/// goes behind the load.
fn load(
    vcode: &mut VCode,
    operands: &mut [MOperand],
    uniform: &Uniform,
    palette: &Palette,
) -> Option<MInst> {
    let Some(MOperand::Def(loaded)) = operands.first_mut() else { return None };
    if vcode.shared.contains_key(loaded) || !uniform.is_uniform(*loaded) {
        return None;
    }
    let dst = std::mem::replace(loaded, vcode.new_reg(RegClass::Gpr));
    vcode.shared.insert(*loaded, SharedReg::Gpr(palette.spare));
    Some(copy(dst, *loaded))
}

/// A store of a register of the lanes has its address there as well.
fn store(vcode: &mut VCode, operands: &mut [MOperand]) {
    let [MOperand::Use(value), MOperand::Use(base), ..] = operands else { return };
    if vcode.shared.contains_key(base) && !vcode.shared.contains_key(value) {
        *base = copied(vcode, *base, None);
    }
}

/// What is passed to `param` in place of `arg`: a register with the same place, if either is shared.
fn argument(vcode: &mut VCode, param: Reg, arg: Reg) -> Reg {
    let [wanted, given] = [param, arg].map(|reg| vcode.shared.get(&reg).copied());
    if wanted == given { arg } else { copied(vcode, arg, wanted) }
}

/// A copy in another place, made before the next instruction.
fn copied(vcode: &mut VCode, reg: Reg, place: Option<SharedReg>) -> Reg {
    let new = vcode.new_reg(reg.class());
    vcode.shared.extend(place.map(|place| (new, place)));
    vcode.insts.push(copy(new, reg));
    new
}

fn copy(dst: Reg, src: Reg) -> MInst {
    let (opcode, last) = match dst.class() {
        RegClass::Gpr => (Opcode::Ori, MOperand::Imm(0)),
        RegClass::Pred => (Opcode::Andp, MOperand::Use(src)),
    };
    MInst::Op {
        opcode,
        guard: None,
        operands: [MOperand::Def(dst), MOperand::Use(src), last].into(),
    }
}
