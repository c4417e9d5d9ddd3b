//! Which registers and predicates a program may read before it writes them.

use std::collections::BTreeMap;

use crate::body::{Body, Inst};
use crate::region::{Key, Region};
use crate::rules::{Bits, Lanes, Rules, State, lanes};

/// What is live before each instruction of a region's blocks.
pub(crate) type Live = BTreeMap<Key, Vec<Bits>>;

/// What is live in a region that assumes nothing. Behind it everything is if it `passes_on`, apart from garbage; otherwise
/// nothing is.
pub(crate) fn live(region: &Region, rules: Rules, passes_on: bool) -> Live {
    let mut live: Live = region.blocks.keys().map(|&key| (key, Vec::new())).collect();
    loop {
        let mut changed = false;
        for &key in region.blocks.keys().rev() {
            let before = block(region, rules, key, passes_on, &live);
            let old = live.insert(key, before.clone());
            changed |= old != Some(before);
        }
        if !changed {
            return live;
        }
    }
}

/// What is live before each instruction of a block.
fn block(region: &Region, rules: Rules, key: Key, passes_on: bool, live: &Live) -> Vec<Bits> {
    let block = &region.blocks[&key];
    let mut state = block.state.clone();
    let mut kills = Vec::new();
    for (index, inst) in block.insts.iter().enumerate() {
        rules.arrive(&mut state, inst.pc, key.full);
        let is_all = lanes(&state, inst, key.full) == Lanes::All;
        let replaces = rules.replaces(&state, inst, key.full);
        kills.push((is_all || replaces, state.garbage));
        if index + 1 < block.insts.len() {
            rules.step(&mut state, inst, key.full);
        }
    }
    let Some(last) = block.insts.last() else { return Vec::new() };
    let edges = region.loops.edges(rules, key, &state, last);
    let beyond = match passes_on {
        true => Bits::ALL.without(state.garbage),
        false => Bits::default(),
    };
    let mut bits =
        if goes_beyond(rules, &state, last, key.full) { beyond } else { Bits::default() };
    for (to, state) in edges {
        bits = bits.or(match live.get(&to) {
            Some(before) => before.first().copied().unwrap_or_default(),
            None if passes_on => Bits::ALL.without(state.garbage),
            None => Bits::default(),
        });
    }
    let mut found: Vec<Bits> = Vec::new();
    for (inst, (all, garbage)) in block.insts.iter().zip(kills).rev() {
        bits = before(bits, inst, all).without(garbage);
        found.push(bits);
    }
    found.reverse();
    found
}

/// Whether control may go from the last instruction of a block to where none of its edges leads.
fn goes_beyond(rules: Rules, state: &State, last: &Inst, full: bool) -> bool {
    match last.body {
        Body::Unknown => true,
        Body::JumpTo { link, target } => rules.target(state, last, link, target).is_none(),
        Body::Join => full || state.stack.last().is_none_or(|level| level.was_full.is_none()),
        _ => false,
    }
}

/// What is live before an instruction; `all` says whether all lanes execute it.
pub(crate) fn before(mut live: Bits, inst: &Inst, all: bool) -> Bits {
    let (read, written) = inst.registers();
    if all {
        live.regs &= !written.map_or(0, |dst| 1 << dst);
        live.preds &= !inst.pred_written().map_or(0, |dst| 1 << dst);
    }
    live.regs = read.into_iter().fold(live.regs, |bits, r| bits | 1 << r);
    live.preds |= inst.preds_read();
    live
}
