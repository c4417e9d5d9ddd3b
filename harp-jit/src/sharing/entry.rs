//! What a kernel is entered with in shared registers: the address of its arguments, and the position of the first lane.
//!
//! Both are in the lanes' own registers as well. A value that gets another place than the one it arrives in is taken from
//! there, so that nothing depends on how shared registers are given away.

use harp_isa::abi::KernelEntry;
use harp_isa::{ArchId, Gpr, RegClass};

use super::nesting::Nesting;
use super::{rewrite, rows};
use crate::abi::EntryKind;
use crate::vcode::{Fixed, MInst, MOperand, Reg, SharedReg, VCode};

/// Values, and the shared registers that they arrive in.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Arrivals {
    /// The address of the arguments.
    arguments: Option<(Reg, Gpr)>,
    /// The position of lane 0, of which an instruction behind the entry makes a copy.
    position: Option<Reg>,
    position_place: Option<Gpr>,
}

impl Arrivals {
    /// Finds the arguments of a kernel. `position` is the start of the lanes' positions, if it is needed.
    pub(super) fn new(
        vcode: &VCode,
        arch: ArchId,
        entry: EntryKind,
        position: Option<Reg>,
    ) -> Arrivals {
        if entry != EntryKind::Kernel {
            return Arrivals::default();
        }
        let arguments = vcode.insts.iter().find_map(|inst| match inst {
            MInst::Args { defs } => {
                defs.iter().find(|(_, place)| *place == KernelEntry::ARGUMENTS).map(|(reg, _)| *reg)
            }
            _ => None,
        });
        Arrivals {
            arguments: arguments.zip(KernelEntry::shared_arguments(arch)),
            position,
            position_place: KernelEntry::shared_position(arch),
        }
    }

    /// The address of the arguments.
    pub(super) fn arguments(&self) -> Option<Reg> {
        self.arguments.map(|(reg, _)| reg)
    }

    /// Where the value arrives.
    pub(super) fn place(&self, reg: Reg) -> Option<SharedReg> {
        let gpr = match self.arguments {
            Some((arguments, gpr)) if arguments == reg => Some(gpr),
            _ if self.position == Some(reg) => self.position_place,
            _ => None,
        };
        gpr.map(SharedReg::Gpr)
    }

    /// Lets values begin where they arrive, if that is their place. A start of positions that is not shared is computed in each
    /// lane, unless only instructions use it that are executed once, and with all lanes: they find it in the first one.
    pub(super) fn settle(self, vcode: &mut VCode, arch: ArchId, nesting: &Nesting) {
        if let Some((reg, gpr)) = self.arguments
            && let Some(place) = vcode.shared.get(&reg).copied()
        {
            let arrived = place == SharedReg::Gpr(gpr);
            let own = if arrived { reg } else { vcode.new_reg(RegClass::Gpr) };
            let arrival = if arrived { gpr } else { KernelEntry::ARGUMENTS };
            rewrite::insert(vcode, |_, inst| {
                let MInst::Args { defs } = inst else { return None };
                let known = defs.iter_mut().find(|(known, _)| *known == reg)?;
                *known = (own, arrival);
                (!arrived).then(|| rewrite::copy(reg, own))
            });
        }
        let Some(start) = self.position else { return };
        let place = vcode.shared.get(&start).copied();
        let arrived = self.position_place.filter(|&gpr| place == Some(SharedReg::Gpr(gpr)));
        if let Some(gpr) = arrived {
            vcode.retain_insts(|_, inst| copied(inst, start).is_none());
            entry(vcode).into_iter().for_each(|defs| defs.push((start, gpr)));
        } else if place.is_none() && !read_of_first(vcode, nesting, start) {
            rewrite::insert(vcode, |vcode, inst| {
                let own = copied(inst, start)?;
                let [lane, rest] = rows::less_lane(vcode, arch, start, own);
                *inst = lane;
                Some(rest)
            });
        }
    }
}

/// Lets all instructions that use `start` read the first lane's position in its place, if they can.
fn read_of_first(vcode: &mut VCode, nesting: &Nesting, start: Reg) -> bool {
    let Some(own) = vcode.insts.iter().find_map(|inst| copied(inst, start)) else { return false };
    for (id, block) in vcode.blocks() {
        for inst in &vcode.insts[block.insts.clone()] {
            let (mut uses, mut is_once) = (false, false);
            inst.for_each_reg(|reg, access| match access.is_def() {
                true => is_once |= vcode.shared.contains_key(&reg),
                false => uses |= reg == start,
            });
            let is_op = matches!(inst, MInst::Op { guard: None, .. });
            if uses && !(is_op && is_once && nesting.is_outside(id)) {
                return false;
            }
        }
    }
    vcode.retain_insts(|_, inst| copied(inst, start).is_none());
    let rename = |reg: &mut Reg| {
        if *reg == start {
            *reg = own;
        }
    };
    vcode.insts.iter_mut().for_each(|inst| inst.rewrite_regs(rename));
    true
}

/// What the instruction copies to `dst`, if it does.
fn copied(inst: &MInst, dst: Reg) -> Option<Reg> {
    match inst {
        MInst::Op { operands, .. } => match operands[..] {
            [MOperand::Def(to), MOperand::Use(from), _] if to == dst => Some(from),
            _ => None,
        },
        _ => None,
    }
}

/// What the function's arguments are.
fn entry(vcode: &mut VCode) -> Option<&mut Fixed> {
    vcode.insts.iter_mut().find_map(|inst| match inst {
        MInst::Args { defs } => Some(defs),
        _ => None,
    })
}
