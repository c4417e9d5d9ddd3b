//! Which registers and predicates a program may read before it writes them.

use std::collections::BTreeMap;

use crate::body::{Body, Inst};
use crate::region::{Key, Region};
use crate::rules::{Lanes, Rules, lanes};
use crate::state::{Bits, State};

/// What is live before each instruction of a region's blocks.
pub(crate) type Live = BTreeMap<Key, Vec<Bits>>;

/// What counts as read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reads<'a> {
    /// What the instructions of a region read.
    Inside,
    /// That, and behind the region everything, apart from garbage.
    Beyond,
    /// That, and what host code touches besides: registers that may have changed, which it writes where it is left if they are
    /// needed there, and those of which it knows more, or less, from a block on.
    Touched(&'a Live),
}

/// What is live in a region.
pub(crate) fn live(region: &Region, rules: Rules, reads: Reads<'_>) -> Live {
    region.backward(|key, live| block(region, rules, key, reads, live))
}

/// What is live before each instruction of a block.
fn block(region: &Region, rules: Rules, key: Key, reads: Reads<'_>, live: &Live) -> Vec<Bits> {
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
    let beyond = match reads {
        Reads::Beyond => Bits::ALL.without(state.garbage),
        Reads::Inside | Reads::Touched(_) => Bits::default(),
    };
    let mut bits =
        if goes_beyond(rules, &state, last, key.full) { beyond } else { Bits::default() };
    for (to, state) in edges {
        bits = bits.or(match live.get(&to) {
            Some(before) => before.first().copied().unwrap_or_default(),
            None if matches!(reads, Reads::Beyond) => Bits::ALL.without(state.garbage),
            None => Bits::default(),
        });
        if let (Reads::Touched(_), Some(to)) = (reads, region.blocks.get(&to)) {
            let differs = |r: &usize| state.regs[*r] != to.state.regs[*r];
            bits.regs |= (0..64).filter(differs).fold(0, |bits, r| bits | 1 << r);
        }
    }
    let mut found: Vec<Bits> = Vec::new();
    for (inst, (all, garbage)) in block.insts.iter().zip(kills).rev() {
        bits = before(bits, inst, all).without(garbage);
        if let (Reads::Touched(_), false) = (reads, all) {
            bits.regs |= inst.registers().1.map_or(0, |dst| 1 << dst);
            bits.preds |= inst.pred_written().map_or(0, |dst| 1 << dst);
        }
        found.push(bits);
    }
    found.reverse();
    if let (Reads::Touched(needed), Some(first)) = (reads, found.first_mut()) {
        let all = || vec![Bits::ALL];
        let needed = needed.get(&key.first()).cloned().unwrap_or_else(all);
        first.regs |= block.changed & needed.iter().fold(0, |regs, bits| regs | bits.regs);
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::region::{self, Bounds, Met, Needs, Room};
    use crate::tests::function;

    /// A predicate that is written before it is read may be anything where the region is entered, one that is written in some
    /// lanes may not.
    #[test]
    fn touched_predicates_are_read_or_kept_in_some_lanes() {
        let (rules, _, mut fetch) = function(
            "       nop
                    notp @p1, @p0
              @p3 ? rtop @p2, %r1
              @p0 ? jmpi end
             end:   jmpr %r15
            ",
        );
        let (head, room) = (Key::new(4, true), Room { inside: 100, known: 100 });
        let unknown = State::unknown(rules.shape);
        let bounds = Bounds { room, seen: None, needs: &Needs::new(), met: &Met::default() };
        let region = region::form(rules, head, unknown, bounds, &mut fetch).unwrap();
        let touched = live(&region, rules, Reads::Touched(&Live::new()));
        assert_eq!(touched[&head][0].preds, 1 << 0 | 1 << 2 | 1 << 3);
    }
}
