//! Which registers are worth a place among the shared ones.

use harp_isa::{Opcode, OpcodeFlags, RegClass};
use smallvec::SmallVec;

use super::colour::Palette;
use super::entry::Arrivals;
use super::nesting::Nesting;
use super::rewrite::Loads;
use super::uniform::Uniform;
use crate::vcode::{BlockId, MInst, MOperand, Reg, VCode};

/// Registers that may be shared. Their numbers follow each other, in the order of the registers' indices.
#[derive(Debug)]
pub(super) struct Candidates {
    regs: Vec<Reg>,
    /// By the register's index.
    numbers: Vec<Option<usize>>,
}

impl Candidates {
    /// Each register is to be there once.
    pub(super) fn new(vcode: &VCode, mut regs: Vec<Reg>) -> Candidates {
        regs.sort_unstable_by_key(|reg| reg.index());
        let mut numbers = vec![None; vcode.num_regs];
        regs.iter().enumerate().for_each(|(number, reg)| numbers[reg.index()] = Some(number));
        Candidates { regs, numbers }
    }

    /// The registers, by their numbers.
    pub(super) fn regs(&self) -> &[Reg] {
        &self.regs
    }

    /// The number of a register, if it is a candidate.
    pub(super) fn number(&self, reg: Reg) -> Option<usize> {
        self.numbers[reg.index()]
    }
}

/// The registers that may be shared: they are uniform wherever they are used, an instruction with a shared
/// destination can define them, and each use can read a shared register. To read one that must be in the lanes' own
/// registers costs as much as the definition saves.
pub(super) fn choose(
    vcode: &VCode,
    nesting: &Nesting,
    uniform: &Uniform,
    palette: &Palette,
    arrivals: &Arrivals,
    loads: &Loads,
) -> Candidates {
    let mut chosen = vec![false; vcode.num_regs];
    let mut regs = Vec::new();
    let mut add = |reg: Reg| {
        if !std::mem::replace(&mut chosen[reg.index()], true) {
            regs.push(reg);
        }
    };
    let [has_gprs, has_preds] = [RegClass::Gpr, RegClass::Pred].map(|class| palette.has(class));
    let has = |class: RegClass| if class == RegClass::Gpr { has_gprs } else { has_preds };
    for block in &vcode.blocks {
        let insts = &vcode.insts[block.insts.clone()];
        let defined = insts.iter().filter_map(shared_result);
        let is_possible = |reg: &Reg| uniform.is_uniform(*reg) && has(reg.class());
        block.params.iter().copied().chain(defined).filter(is_possible).for_each(&mut add);
    }
    arrivals.arguments().into_iter().for_each(&mut add);
    loads.copies.iter().for_each(|reg| chosen[reg.index()] = false);
    drop_refused(vcode, nesting, uniform, &mut chosen);
    regs.retain(|reg| chosen[reg.index()]);
    Candidates::new(vcode, regs)
}

/// The result of an instruction that can be executed once for all lanes.
pub(super) fn shared_result(inst: &MInst) -> Option<Reg> {
    match inst {
        MInst::Op { operands, .. } => match operands.first() {
            Some(&MOperand::Def(reg)) => Some(reg),
            _ => None,
        },
        MInst::Const { dst, .. }
        | MInst::Address { dst, .. }
        | MInst::LaneWord { dst, .. }
        | MInst::GroupWord { dst, .. } => Some(*dst),
        _ => None,
    }
}

/// Why a use excludes a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// Lanes may have left splits around the definition, so that they may have different values.
    LeftSplit,
    /// The instruction does not take it from a shared register.
    Operand,
}

/// Drops registers that a use excludes, until none does.
fn drop_refused(vcode: &VCode, nesting: &Nesting, uniform: &Uniform, chosen: &mut [bool]) {
    let mut drop_of = |place: Place<'_>, inst: &MInst| {
        let mut excluded: SmallVec<[Reg; 4]> = SmallVec::new();
        let is_chosen = |reg: Reg| chosen[reg.index()];
        place.refused(inst, is_chosen, is_chosen, |reg, _| excluded.push(reg));
        excluded.iter().for_each(|reg| chosen[reg.index()] = false);
        !excluded.is_empty()
    };
    let mut dependent = Vec::new();
    for (block, data) in vcode.blocks() {
        let place = Place { vcode, nesting, uniform, block };
        for inst in &vcode.insts[data.insts.clone()] {
            drop_of(place, inst);
            if depends_on_others(inst) {
                dependent.push((place, inst));
            }
        }
    }
    let mut round =
        || dependent.iter().fold(false, |any, (place, inst)| any | drop_of(*place, inst));
    while round() {}
}

/// Whether an instruction takes some registers from shared ones only if others are shared, too.
fn depends_on_others(inst: &MInst) -> bool {
    match inst {
        MInst::Op { opcode, .. } => opcode.flags().contains(OpcodeFlags::STORE),
        MInst::Jump { args, .. } => !args.is_empty(),
        MInst::GroupWord { .. } => true,
        _ => false,
    }
}

/// Where an instruction is.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) vcode: &'a VCode,
    pub(super) nesting: &'a Nesting,
    pub(super) uniform: &'a Uniform,
    pub(super) block: BlockId,
}

impl Place<'_> {
    /// Calls `note` with what an instruction reads and excludes, of the registers that are wanted. Each is looked at as if it
    /// was chosen beside the others that are.
    pub(super) fn refused(
        self,
        inst: &MInst,
        is_wanted: impl Fn(Reg) -> bool,
        is_chosen: impl Fn(Reg) -> bool,
        mut note: impl FnMut(Reg, Refused),
    ) {
        let mut visited = 0;
        inst.for_each_reg(|reg, access| {
            let number = visited;
            visited += 1;
            if access.is_def() || !is_wanted(reg) {
                return;
            }
            if !self.uniform.is_uniform_in(reg, self.block, self.nesting) {
                note(reg, Refused::LeftSplit);
            } else if !can_be_shared(self.vcode, inst, number, reg, &is_chosen) {
                note(reg, Refused::Operand);
            }
        });
    }
}

/// Whether an instruction can read `reg`, the one with this number in the order of
/// [`for_each_reg`](MInst::for_each_reg), in a shared register.
fn can_be_shared(
    vcode: &VCode,
    inst: &MInst,
    number: usize,
    reg: Reg,
    is_chosen: impl Fn(Reg) -> bool,
) -> bool {
    let is_shared = |other: Reg| other == reg || is_chosen(other);
    match inst {
        MInst::Op { opcode, guard, operands } => {
            if number == 0 && guard.is_some() {
                return true;
            }
            let is_old = operands
                .iter()
                .any(|operand| matches!(operand, MOperand::Mod { old, .. } if *old == reg));
            // A partial load is into a lane's own register: with a shared address it would load from a row.
            let is_partial_load = guard.is_some() && opcode.flags().contains(OpcodeFlags::LOAD);
            !is_old && !is_partial_load && can_be_operand(vcode, *opcode, operands, reg, is_shared)
        }
        MInst::CondBr { split, .. } => !split,
        MInst::Barrier { .. } => true,
        // Into a lane's own register it would load from a row.
        MInst::GroupWord { dst, .. } => is_shared(*dst),
        MInst::Jump { target, args } => {
            let params = &vcode.blocks[target.index()].params;
            let mut passed = params.iter().zip(args).filter(|(_, arg)| **arg == reg);
            passed.all(|(param, _)| is_shared(*param))
        }
        _ => false,
    }
}

fn can_be_operand(
    vcode: &VCode,
    opcode: Opcode,
    operands: &[MOperand],
    reg: Reg,
    is_shared: impl Fn(Reg) -> bool,
) -> bool {
    use OpcodeFlags as F;
    let flags = opcode.flags();
    if flags.intersects(F::CONTROL | F::ONCE_PER_WARP | F::CROSS_LANE | F::PRIVILEGED) {
        return false;
    }
    if flags.contains(F::ATOMIC) {
        return true;
    }
    match *operands {
        // A store of a lane's own register at a shared address would store to a row.
        [MOperand::Use(value), MOperand::Use(base), ..] if flags.contains(F::STORE) => {
            base != reg || is_shared(value) || vcode.rows.contains(&base)
        }
        _ => true,
    }
}
