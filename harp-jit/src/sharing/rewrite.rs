//! Copies that shared registers need, and accesses that would otherwise be of rows.

use harp_isa::{Opcode, OpcodeFlags, RegClass};
use hashbrown::HashSet;

use super::uniform::Uniform;
use crate::vcode::{MInst, MOperand, Reg, SharedReg, VCode};

/// Loads from uniform addresses whose results are in the lanes' own registers. They are executed once, for a shared
/// register, of which a copy is made.
#[derive(Debug, Default)]
pub(super) struct Loads {
    /// The shared registers.
    pub(super) loaded: HashSet<Reg>,
    /// The copies.
    pub(super) copies: HashSet<Reg>,
}

impl Loads {
    /// Divides the loads that need it into load and copy; whether there were any, for whose registers there is no place
    /// yet, unless one is given.
    ///
    /// Lanes may load for themselves, too, where nothing depends on that they load the same, or memory does not change. But at a
    /// shared address they would load from a row.
    pub(super) fn divide(
        &mut self,
        vcode: &mut VCode,
        uniform: &Uniform,
        must_agree: &[bool],
        place: Option<SharedReg>,
    ) -> bool {
        let before = self.copies.len();
        insert(vcode, |vcode, inst| {
            let MInst::Op { opcode, guard: None, operands } = inst else { return None };
            let [MOperand::Def(loaded), MOperand::Use(base), ..] = &mut operands[..] else {
                return None;
            };
            let must_agree =
                must_agree[loaded.index()] && !vcode.promises.read_only.contains(loaded);
            if !opcode.flags().contains(OpcodeFlags::LOAD)
                || vcode.shared.contains_key(loaded)
                || !uniform.is_uniform(*loaded)
                || !(must_agree || vcode.shared.contains_key(base))
            {
                return None;
            }
            let dst = std::mem::replace(loaded, vcode.new_reg(RegClass::Gpr));
            vcode.shared.extend(place.map(|place| (*loaded, place)));
            self.loaded.insert(*loaded);
            self.copies.insert(dst);
            Some(copy(dst, *loaded))
        });
        self.copies.len() > before
    }
}

/// Inserts the copies.
pub(super) fn rewrite(vcode: &mut VCode) {
    insert(vcode, |vcode, inst| {
        match inst {
            MInst::Op { opcode, operands, .. } if opcode.flags().contains(OpcodeFlags::STORE) => {
                store(vcode, operands);
            }
            MInst::Jump { target, args } => {
                let params = vcode.blocks[target.index()].params.clone();
                pass(vcode, &params, args);
            }
            _ => {}
        }
        None
    });
}

/// Goes over all instructions. `change` may change each, insert others before it at the end of the code so far, and
/// returns one to be inserted behind it.
pub(super) fn insert(
    vcode: &mut VCode,
    mut change: impl FnMut(&mut VCode, &mut MInst) -> Option<MInst>,
) {
    let insts = std::mem::take(&mut vcode.insts);
    let mut old = insts.into_iter().zip(std::mem::take(&mut vcode.srclocs));
    for index in 0..vcode.blocks.len() {
        let start = vcode.insts.len();
        let count = vcode.blocks[index].insts.len();
        for (mut inst, srcloc) in old.by_ref().take(count) {
            let behind = change(vcode, &mut inst);
            vcode.insts.push(inst);
            vcode.insts.extend(behind);
            vcode.srclocs.resize(vcode.insts.len(), srcloc);
        }
        vcode.blocks[index].insts = start..vcode.insts.len();
    }
}

/// A store of a register of the lanes has its address there as well.
fn store(vcode: &mut VCode, operands: &mut [MOperand]) {
    let [MOperand::Use(value), MOperand::Use(base), ..] = operands else { return };
    let is_row = vcode.rows.contains(base);
    if !is_row && vcode.shared.contains_key(base) && !vcode.shared.contains_key(value) {
        *base = copied(vcode, *base, None);
    }
}

/// Copies the arguments of a jump that are not in the places of their parameters, which are `params`.
///
/// The copies are made one after the other, each before another one overwrites what it reads. In a cycle one of them
/// takes a register of the lanes between.
fn pass(vcode: &mut VCode, params: &[Reg], args: &mut [Reg]) {
    let place = |vcode: &VCode, reg: Reg| vcode.shared.get(&reg).copied();
    let moves = |index: &usize| place(vcode, params[*index]) != place(vcode, args[*index]);
    let mut left: Vec<usize> = (0..args.len()).filter(moves).collect();
    while !left.is_empty() {
        let overwrites = |index: usize, other: usize| {
            let wanted = place(vcode, params[index]);
            index != other && wanted.is_some() && wanted == place(vcode, args[other])
        };
        let harmless = |index: &usize| !left.iter().any(|&other| overwrites(*index, other));
        let Some(at) = left.iter().position(harmless) else {
            args[left[0]] = copied(vcode, args[left[0]], None);
            continue;
        };
        let index = left.remove(at);
        args[index] = copied(vcode, args[index], place(vcode, params[index]));
    }
}

/// A copy in another place, made before the next instruction.
fn copied(vcode: &mut VCode, reg: Reg, place: Option<SharedReg>) -> Reg {
    let new = vcode.new_reg(reg.class());
    vcode.shared.extend(place.map(|place| (new, place)));
    vcode.insts.push(copy(new, reg));
    new
}

/// A copy, which the first lane makes for all if it is shared.
pub(super) fn copy(dst: Reg, src: Reg) -> MInst {
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
