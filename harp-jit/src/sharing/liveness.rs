//! Which candidates are alive at the same time, along what a warp executes.
//!
//! The warp follows the edges of the code, and one more from each join to both sides of its split: lanes that took one
//! side wait at the join while the others run the other side. Which side goes first does not matter here.

use fixedbitset::FixedBitSet;
use smallvec::SmallVec;

use super::candidates::Candidates;
use super::mentions::{Mention, Mentions};
use super::nesting::Nesting;
use crate::vcode::VCode;

/// What cannot have the same register, and what cannot be in a shared one at all. Candidates are given by their numbers.
#[derive(Debug)]
pub(super) struct Live {
    /// For each candidate those that it interferes with. One may be there twice.
    pub(super) conflicts: Vec<Vec<usize>>,
    /// Those that are alive during a call.
    pub(super) over_calls: FixedBitSet,
}

impl Live {
    pub(super) fn compute(
        vcode: &VCode,
        nesting: &Nesting,
        candidates: &Candidates,
        mentions: &Mentions,
    ) -> Live {
        let none = FixedBitSet::with_capacity(candidates.regs().len());
        let mut walk = Walk {
            vcode,
            candidates,
            mentions,
            entries: vec![none.clone(); vcode.blocks.len()],
            sides: vec![Vec::new(); vcode.blocks.len()],
            scratch: none.clone(),
            live: Live { conflicts: vec![Vec::new(); candidates.regs().len()], over_calls: none },
        };
        let mut joins = walk.sides.clone();
        for &(join, split) in nesting.joins() {
            for side in vcode.blocks[split.index()].succs.iter().map(|side| side.index()) {
                walk.sides[join.index()].push(side);
                joins[side].push(join.index());
            }
        }
        let mut is_due = vec![true; vcode.blocks.len()];
        while is_due.contains(&true) {
            for block in (0..vcode.blocks.len()).rev() {
                if std::mem::replace(&mut is_due[block], false) && walk.enter(block) {
                    let before = vcode.blocks[block].preds.iter().map(|from| from.index());
                    before.chain(joins[block].iter().copied()).for_each(|at| is_due[at] = true);
                }
            }
        }
        for block in 0..vcode.blocks.len() {
            walk.scratch = walk.block(block, true);
        }
        walk.live
    }
}

struct Walk<'a> {
    vcode: &'a VCode,
    candidates: &'a Candidates,
    mentions: &'a Mentions,
    /// What is alive where a block is entered, its parameters excluded.
    entries: Vec<FixedBitSet>,
    /// The sides of the splits that a block joins.
    sides: Vec<Vec<usize>>,
    /// A set to be used again.
    scratch: FixedBitSet,
    live: Live,
}

impl Walk<'_> {
    /// Finds out what is alive at the entry of a block; whether that is more than before.
    fn enter(&mut self, block: usize) -> bool {
        let entry = self.block(block, false);
        self.scratch = std::mem::replace(&mut self.entries[block], entry);
        self.scratch != self.entries[block]
    }

    /// What is alive at the entry of a block. With `note`, what interferes in it is noted.
    fn block(&mut self, block: usize, note: bool) -> FixedBitSet {
        let (vcode, mentions) = (self.vcode, self.mentions);
        let data = &vcode.blocks[block];
        let mut live = std::mem::take(&mut self.scratch);
        live.clear();
        for succ in &data.succs {
            live.union_with(&self.entries[succ.index()]);
        }
        for &mention in mentions.of(block).iter().rev() {
            self.mention(mention, &mut live, note);
        }
        let number = |&param| self.candidates.number(param);
        let params: SmallVec<[usize; 4]> = data.params.iter().filter_map(number).collect();
        if note {
            for (index, &param) in params.iter().enumerate() {
                self.define(param, &live);
                params[..index].iter().for_each(|&other| self.conflict(param, other));
            }
        }
        params.iter().for_each(|&param| live.set(param, false));
        for &side in &self.sides[block] {
            live.union_with(&self.entries[side]);
        }
        live
    }

    /// Goes over a mention backwards.
    fn mention(&mut self, mention: Mention, live: &mut FixedBitSet, note: bool) {
        match mention {
            Mention::Def(number) => {
                if note {
                    self.define(number, live);
                }
                live.set(number, false);
            }
            Mention::Call if note => self.live.over_calls.union_with(live),
            Mention::Call => {}
            Mention::Use(number) => live.insert(number),
        }
    }

    fn define(&mut self, number: usize, live: &FixedBitSet) {
        live.ones().for_each(|other| self.conflict(number, other));
    }

    fn conflict(&mut self, one: usize, other: usize) {
        let regs = self.candidates.regs();
        if one != other && regs[one].class() == regs[other].class() {
            self.live.conflicts[one].push(other);
            self.live.conflicts[other].push(one);
        }
    }
}
