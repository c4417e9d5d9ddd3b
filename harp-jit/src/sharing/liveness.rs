//! Which candidates are alive at the same time, along what a warp executes.
//!
//! The warp follows the edges of the code, and one more from each join to both sides of its split: lanes that took one
//! side wait at the join while the others run the other side. Which side goes first does not matter here.

use fixedbitset::FixedBitSet;
use hashbrown::HashSet;

use super::nesting::Nesting;
use crate::vcode::{MInst, Reg, VCode};

/// What cannot have the same register, and what cannot be in a shared one at all.
#[derive(Debug)]
pub(super) struct Live {
    /// For each register those that it interferes with.
    pub(super) conflicts: Vec<HashSet<Reg>>,
    /// Registers that are alive during a call.
    pub(super) over_calls: HashSet<Reg>,
}

impl Live {
    pub(super) fn compute(vcode: &VCode, nesting: &Nesting, candidates: &[bool]) -> Live {
        let mut regs = vec![None; vcode.num_regs];
        let mut note = |reg: Reg| {
            if candidates[reg.index()] {
                regs[reg.index()] = Some(reg);
            }
        };
        vcode.insts.iter().for_each(|inst| inst.for_each_reg(|reg, _| note(reg)));
        vcode.blocks.iter().flat_map(|block| &block.params).copied().for_each(&mut note);
        let mut walk = Walk {
            vcode,
            candidates,
            regs,
            entries: vec![FixedBitSet::with_capacity(vcode.num_regs); vcode.blocks.len()],
            sides: vec![Vec::new(); vcode.blocks.len()],
            live: Live {
                conflicts: vec![HashSet::new(); vcode.num_regs],
                over_calls: HashSet::new(),
            },
        };
        for &(join, split) in nesting.joins() {
            let sides = vcode.blocks[split.index()].succs.iter().map(|side| side.index());
            walk.sides[join.index()].extend(sides);
        }
        let mut changed = true;
        while changed {
            changed = false;
            for block in (0..vcode.blocks.len()).rev() {
                let entry = walk.block(block, false);
                changed |= entry != walk.entries[block];
                walk.entries[block] = entry;
            }
        }
        for block in 0..vcode.blocks.len() {
            walk.block(block, true);
        }
        walk.live
    }
}

struct Walk<'a> {
    vcode: &'a VCode,
    candidates: &'a [bool],
    /// The candidates by their index.
    regs: Vec<Option<Reg>>,
    /// What is alive where a block is entered, its parameters excluded.
    entries: Vec<FixedBitSet>,
    /// The sides of the splits that a block joins.
    sides: Vec<Vec<usize>>,
    live: Live,
}

impl Walk<'_> {
    /// What is alive at the entry of a block. With `note`, what interferes in it is noted.
    fn block(&mut self, block: usize, note: bool) -> FixedBitSet {
        let vcode = self.vcode;
        let data = &vcode.blocks[block];
        let mut live = FixedBitSet::with_capacity(vcode.num_regs);
        for succ in &data.succs {
            live.union_with(&self.entries[succ.index()]);
        }
        for inst in vcode.insts[data.insts.clone()].iter().rev() {
            self.inst(inst, &mut live, note);
        }
        if note {
            for (index, &param) in data.params.iter().enumerate() {
                self.define(param, &live);
                data.params[..index].iter().for_each(|&other| self.conflict(param, other));
            }
        }
        data.params.iter().for_each(|param| live.set(param.index(), false));
        for &side in &self.sides[block] {
            live.union_with(&self.entries[side]);
        }
        live
    }

    /// Goes over an instruction backwards.
    fn inst(&mut self, inst: &MInst, live: &mut FixedBitSet, note: bool) {
        inst.for_each_reg(|reg, access| {
            if access.is_def() {
                if note {
                    self.define(reg, live);
                }
                live.set(reg.index(), false);
            }
        });
        if note && matches!(inst, MInst::Call { .. } | MInst::TailCall { .. }) {
            let over = live.ones().filter_map(|index| self.regs[index]);
            self.live.over_calls.extend(over);
        }
        inst.for_each_reg(|reg, access| {
            if !access.is_def() && self.candidates[reg.index()] {
                live.insert(reg.index());
            }
        });
    }

    fn define(&mut self, reg: Reg, live: &FixedBitSet) {
        if self.candidates[reg.index()] {
            for other in live.ones() {
                if let Some(other) = self.regs[other] {
                    self.conflict(reg, other);
                }
            }
        }
    }

    fn conflict(&mut self, one: Reg, other: Reg) {
        let both = self.candidates[one.index()] && self.candidates[other.index()];
        if both && one != other && one.class() == other.class() {
            self.live.conflicts[one.index()].insert(other);
            self.live.conflicts[other.index()].insert(one);
        }
    }
}
