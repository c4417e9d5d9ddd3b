//! Copies that shared registers need, and accesses that would otherwise be of rows.

use cranelift_codegen::ir::SourceLoc;
use harp_isa::{Opcode, OpcodeFlags, RegClass};
use hashbrown::HashSet;

use super::uniform::Uniform;
use crate::vcode::{BlockId, MInst, MOperand, Reg, SharedReg, VCode};

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
        uniform: &mut Uniform,
        relied_on: &HashSet<Reg>,
        place: Option<SharedReg>,
    ) -> bool {
        if !vcode.insts.iter().any(|inst| own_load(vcode, uniform, inst).is_some()) {
            return false;
        }
        let mut must_agree = uniform.relied_on(vcode);
        relied_on.iter().chain(&vcode.once).for_each(|reg| must_agree[reg.index()] = true);
        let before = self.copies.len();
        insert(vcode, |vcode, inst| {
            let (dst, base) = own_load(vcode, uniform, inst)?;
            let is_constant =
                matches!(inst, MInst::GroupWord { .. }) || vcode.promises.read_only.contains(&dst);
            let must_agree = must_agree[dst.index()] && !is_constant;
            if !must_agree && !vcode.shared.contains_key(&base) {
                return None;
            }
            let loaded = vcode.new_reg(RegClass::Gpr);
            uniform.add_source(dst);
            match inst {
                MInst::Op { operands, .. } => operands[0] = MOperand::Def(loaded),
                MInst::GroupWord { dst, .. } => *dst = loaded,
                _ => {}
            }
            vcode.shared.extend(place.map(|place| (loaded, place)));
            self.loaded.insert(loaded);
            self.copies.insert(dst);
            Some(copy(dst, loaded))
        });
        self.copies.len() > before
    }
}

/// The result and the address of a load that is the same for all lanes, but in the lanes' own registers.
fn own_load(vcode: &VCode, uniform: &Uniform, inst: &MInst) -> Option<(Reg, Reg)> {
    let (loaded, base) = match inst {
        MInst::Op { opcode, guard: None, operands }
            if opcode.flags().contains(OpcodeFlags::LOAD) =>
        {
            match operands[..] {
                [MOperand::Def(loaded), MOperand::Use(base), ..] => (loaded, base),
                _ => return None,
            }
        }
        MInst::GroupWord { dst, block, .. } => (*dst, *block),
        _ => return None,
    };
    let is_own = uniform.is_uniform(loaded) && !vcode.shared.contains_key(&loaded);
    is_own.then_some((loaded, base))
}

/// Inserts the copies.
pub(super) fn rewrite(vcode: &mut VCode) {
    insert(vcode, |vcode, inst| {
        match inst {
            MInst::Op { opcode, operands, .. } if opcode.flags().contains(OpcodeFlags::STORE) => {
                store(vcode, operands);
            }
            MInst::Jump { target, args } => pass(vcode, *target, args),
            _ => {}
        }
        None
    });
}

/// Goes over all instructions. `change` may change each, insert others before it by adding them to the code, which is
/// empty meanwhile, and returns one to be inserted behind it.
pub(super) fn insert(
    vcode: &mut VCode,
    mut change: impl FnMut(&mut VCode, &mut MInst) -> Option<MInst>,
) {
    let mut insts = std::mem::take(&mut vcode.insts);
    let mut added = Vec::new();
    for (of, inst) in insts.iter_mut().enumerate() {
        let behind = change(vcode, inst);
        added.extend(vcode.insts.drain(..).map(|new| Added { of, at: of, new }));
        added.extend(behind.map(|new| Added { of, at: of + 1, new }));
    }
    vcode.insts = insts;
    if !added.is_empty() {
        widen_blocks(vcode, &added);
        make_room(vcode, added);
    }
}

/// A new instruction.
struct Added {
    /// The instruction that it was inserted for, which is in the same block.
    of: usize,
    /// The instruction before which it comes.
    at: usize,
    new: MInst,
}

fn widen_blocks(vcode: &mut VCode, added: &[Added]) {
    let mut left = added.iter().peekable();
    let mut count = 0;
    for block in &mut vcode.blocks {
        let start = block.insts.start + count;
        while left.next_if(|it| it.of < block.insts.end).is_some() {
            count += 1;
        }
        block.insts = start..block.insts.end + count;
    }
}

/// Puts new instructions in their places, the last one first, so that each of the others is moved once, in place.
fn make_room(vcode: &mut VCode, mut added: Vec<Added>) {
    let VCode { insts, srclocs, .. } = vcode;
    let mut end = insts.len();
    insts.resize(end + added.len(), MInst::Join);
    srclocs.resize(end + added.len(), SourceLoc::default());
    while let Some(Added { of, at, new }) = added.pop() {
        let (to, srcloc) = (at + added.len(), srclocs[of]);
        (at..end).rev().for_each(|index| insts.swap(index, index + added.len() + 1));
        srclocs.copy_within(at..end, to + 1);
        (insts[to], srclocs[to]) = (new, srcloc);
        end = at;
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

/// Copies the arguments of a jump to `target` that are not in the places of their parameters.
///
/// The copies are made one after the other, each before another one overwrites what it reads. In a cycle one of them
/// takes a register of the lanes between.
fn pass(vcode: &mut VCode, target: BlockId, args: &mut [Reg]) {
    let place = |vcode: &VCode, reg: Reg| vcode.shared.get(&reg).copied();
    let params = &vcode.blocks[target.index()].params;
    let moves = |index: &usize| place(vcode, params[*index]) != place(vcode, args[*index]);
    let mut left: Vec<usize> = (0..args.len()).filter(moves).collect();
    if left.is_empty() {
        return;
    }
    let params = params.clone();
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
