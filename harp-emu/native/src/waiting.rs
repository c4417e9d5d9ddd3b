//! What lanes that wait on the divergence stack may still read.
//!
//! An instruction that some lanes execute leaves the registers of the others as they are. Between a `split` and its `join` the
//! others wait, and most of what is computed in between is nothing that those ever read: temporaries, and what a loop
//! keeps from round to round, of which lanes that have left it know nothing any more. Such a register may get a new value in
//! all lanes at once, which costs no blending with what was there; and what is the same in the lanes that execute is then
//! the same in all.
//!
//! What a lane may read is plain liveness on the instructions as that lane executes them: for it, `split` and `join` are
//! no jumps. Behind a `split`, the lanes for which its guard holds go on first, until a `join`. The others wait behind the
//! `split`, then go to a `join` themselves while the first ones wait at theirs. Of either group it is known what the
//! guard is until the lane writes that predicate, also through loops: a lane that has left a loop in which others go round
//! passes over its instructions.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use harp_isa::Pred;

use crate::body::{Body, Inst, Waiting};
use crate::calls::Callee;
use crate::live::before;
use crate::rules::Rules;
use crate::state::Bits;

/// What is known of waiting lanes at the instructions of a function, by their addresses; nothing if it activates lanes
/// by other means than `join`, or is long.
pub(crate) fn waiting(
    rules: Rules,
    callee: Callee,
    fetch: &mut dyn FnMut(u64) -> Option<Inst>,
) -> BTreeMap<u64, Waiting> {
    let end = callee.end();
    let code = Code::reachable(rules, callee.start..end, fetch);
    code.map_or_else(BTreeMap::new, |code| code.waiting())
}

/// A predicate of which a lane's value is known, and that.
type Known = Option<(u8, bool)>;

/// Where a lane is, and what it knows.
type Point = (u64, Known);

/// An instruction, and the splits that are not joined before it, by the addresses behind them.
struct Place {
    inst: Inst,
    open: Vec<u64>,
}

impl Place {
    /// Whether this joins the split before that address.
    fn joins(&self, behind: u64) -> bool {
        matches!(self.inst.body, Body::Join) && self.open.last() == Some(&behind)
    }
}

/// The instructions of a function, by their addresses.
struct Code {
    rules: Rules,
    places: BTreeMap<u64, Place>,
}

/// The most instructions that are looked at, and splits.
const LONGEST: usize = 1 << 12;
const MOST_SPLITS: usize = 1 << 6;

impl Code {
    /// What is reachable in a range of addresses from the first one on. `None` if other instructions than jumps, splits
    /// and joins decide which lanes execute what, or splits and joins are no pairs.
    fn reachable(
        rules: Rules,
        range: Range<u64>,
        fetch: &mut dyn FnMut(u64) -> Option<Inst>,
    ) -> Option<Code> {
        let mut code = Code { rules, places: BTreeMap::new() };
        let mut todo = vec![(range.start, Vec::new())];
        while let Some((pc, open)) = todo.pop() {
            if let Some(known) = code.places.get(&pc) {
                (known.open == open).then_some(())?;
                continue;
            }
            if !range.contains(&pc) {
                continue;
            }
            let inst = fetch(pc).filter(|_| code.places.len() < LONGEST)?;
            let mut after = open.clone();
            match inst.body {
                Body::Unknown => return None,
                Body::Split => after.push(inst.next),
                Body::Join => drop(after.pop()?),
                _ => {}
            }
            todo.extend(
                code.successors(&inst, None).into_iter().map(|(to, _)| (to, after.clone())),
            );
            code.places.insert(pc, Place { inst, open });
        }
        (code.splits().count() <= MOST_SPLITS).then_some(code)
    }

    fn splits(&self) -> impl Iterator<Item = &Inst> {
        let insts = self.places.values().map(|place| &place.inst);
        insts.filter(|inst| matches!(inst.body, Body::Split))
    }

    /// Where a lane goes on behind an instruction, of which it may know the guard: behind what it calls, where it calls
    /// something.
    fn successors(&self, inst: &Inst, known: Known) -> Vec<Point> {
        let passes = self.executes(inst, known) != Some(true);
        let executes = self.executes(inst, known) != Some(false);
        let after = known.filter(|(pred, _)| !executes || inst.pred_written() != Some(*pred));
        let to = match inst.body {
            Body::Jump { link: None, target } => Some(target),
            Body::JumpTo { link: None, .. } => None,
            _ => Some(inst.next),
        };
        let mut points: Vec<Point> = Vec::new();
        points.extend(to.filter(|_| executes).map(|to| (to, after)));
        if passes && !points.contains(&(inst.next, after)) {
            points.push((inst.next, after));
        }
        points
    }

    /// Whether a lane executes an instruction, if it knows.
    fn executes(&self, inst: &Inst, known: Known) -> Option<bool> {
        let Some(guard) = inst.guard else { return Some(true) };
        known.filter(|(pred, _)| *pred == guard).map(|(_, value)| value)
    }

    /// What a lane knows behind a split that has, or has not, taken part in it.
    fn behind(&self, split: &Inst, takes_part: bool) -> Point {
        // What lanes share may change while they wait.
        let is_own = |guard: &u8| !self.rules.shape.arch.is_shared_pred(Pred::new(*guard));
        (split.next, split.guard.filter(is_own).map(|guard| (guard, takes_part)))
    }

    /// What is known at each instruction.
    fn waiting(&self) -> BTreeMap<u64, Waiting> {
        let live = self.live();
        let live_at = |point: &Point| live.get(point).copied().unwrap_or(u64::MAX);
        let mut waiting: BTreeMap<u64, Waiting> = BTreeMap::new();
        for (&pc, Place { open, .. }) in &self.places {
            waiting.insert(pc, Waiting { depth: open.len(), read: 0 });
        }
        for split in self.splits().filter(|split| split.guard.is_some()) {
            let [first, second] = [true, false].map(|takes| self.behind(split, takes));
            let (in_first, joined) = self.until_join(first, split.next);
            let (in_second, _) = self.until_join(second, split.next);
            let joined = joined.iter().fold(0, |bits, point| bits | live_at(point));
            for (places, read) in [(in_first, live_at(&second)), (in_second, joined)] {
                for pc in places {
                    waiting.entry(pc).or_default().read |= read;
                }
            }
        }
        waiting
    }

    /// The addresses that a lane reaches from a point before it joins the split before `behind`, and the points behind these
    /// joins.
    fn until_join(&self, from: Point, behind: u64) -> (BTreeSet<u64>, BTreeSet<Point>) {
        let (mut seen, mut joined) = (BTreeSet::from([from]), BTreeSet::new());
        let mut todo = vec![from];
        while let Some((pc, known)) = todo.pop() {
            let Some(place) = self.places.get(&pc) else { continue };
            let after = self.successors(&place.inst, known);
            if place.joins(behind) {
                joined.extend(after);
                continue;
            }
            todo.extend(after.into_iter().filter(|&point| seen.insert(point)));
        }
        (seen.into_iter().map(|(pc, _)| pc).collect(), joined)
    }

    /// The registers that a lane may read at a point and behind it, as bits. Where control leaves the range it may read any.
    fn live(&self) -> BTreeMap<Point, u64> {
        let mut live: BTreeMap<Point, u64> = BTreeMap::new();
        let mut from: BTreeMap<Point, Vec<Point>> = BTreeMap::new();
        let groups = self.splits().flat_map(|split| [true, false].map(|t| self.behind(split, t)));
        let all = self.places.keys().map(|&pc| (pc, None));
        let mut todo: Vec<Point> = groups.chain(all).collect();
        while let Some(point) = todo.pop() {
            let Some(place) = self.places.get(&point.0) else { continue };
            if live.insert(point, 0).is_none() {
                for to in self.successors(&place.inst, point.1) {
                    from.entry(to).or_default().push(point);
                    todo.push(to);
                }
            }
        }
        let mut todo: BTreeSet<Point> = live.keys().copied().collect();
        while let Some(point) = todo.pop_last() {
            let bits = self.live_before(point, &live);
            if live.insert(point, bits) != Some(bits) {
                todo.extend(from.get(&point).into_iter().flatten());
            }
        }
        live
    }

    /// What a lane may read at a point.
    fn live_before(&self, (pc, known): Point, live: &BTreeMap<Point, u64>) -> u64 {
        let inst = &self.places[&pc].inst;
        let after = self.successors(inst, known).into_iter();
        let after = after.fold(0, |bits, to| bits | live.get(&to).copied().unwrap_or(u64::MAX));
        let executes = self.executes(inst, known);
        if executes == Some(false) {
            return after;
        }
        let caller_saved = self.rules.caller_saved().regs;
        let (after, writes) = match inst.body {
            // What is called may read any argument, and leaves the rest as it is.
            Body::Jump { link: Some(_), .. } | Body::JumpTo { link: Some(_), .. } => {
                (after | caller_saved, false)
            }
            Body::JumpTo { link: None, target } if self.rules.is_link(target) => {
                (after | !caller_saved, false)
            }
            Body::JumpTo { .. } => (u64::MAX, false),
            _ => (after, executes == Some(true) && !inst.is_once()),
        };
        before(Bits { regs: after, preds: 0 }, inst, writes).regs
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::function;

    /// What waiting lanes may read of `%r0` to `%r7` before the instructions of a function, one after the other.
    fn read(text: &str) -> Vec<Vec<u8>> {
        let (rules, callee, mut fetch) = function(text);
        let known = waiting(rules, callee, &mut fetch);
        let bits = known.values().map(|waiting| waiting.read);
        bits.map(|bits| (0..8).filter(|r| bits >> r & 1 != 0).collect()).collect()
    }

    #[test]
    fn those_of_the_other_way_keep_what_they_read_there_and_behind() {
        let read = read(
            "       rtop @p0, %r0
              @p0 ? split
              @p0 ? jmpi then
                    add %r1, %r2, %r3
                    jmpi end
             then:  add %r4, %r1, %r5
             end:   join
                    add %r1, %r1, %r4
                    jmpr %r15
            ",
        );
        let none: Vec<u8> = Vec::new();
        // Behind the join, %r1 and %r4 are read; the other way writes %r1 before.
        assert_eq!(read[..2], [none.clone(), none.clone()], "nobody waits");
        assert_eq!(read[2], [1, 2, 3, 4], "either group may be here");
        assert_eq!(read[3], [1, 4], "those of `then` wait at their join");
        assert_eq!(read[5], [2, 3, 4], "the others wait behind the split");
        assert_eq!(read[7..], [none.clone(), none]);
    }

    #[test]
    fn those_that_have_left_a_loop_do_not_read_what_it_keeps() {
        let read = read(
            "       ldi %r1, #0
             next:  add %r2, %r2, %r1
                    addi %r1, %r1, #1
                    sub %r3, %r1, %r0
                    isneg @p0, %r3
                    anyp @p1, @p0
              @p1 ? jmpi goes
                    jmpi done
             goes:
              @p0 ? split
              @p0 ? jmpi round
                    jmpi wait
             round: add %r4, %r1, %r2
                    sub %r3, %r4, %r0
                    isneg @p0, %r3
             wait:  join
                    anyp @p1, @p0
              @p1 ? jmpi goes
             done:  ori %r0, %r5, #0
                    jmpr %r15
            ",
        );
        // Whoever has left reads %r5 only, though the loop reads %r0 to %r2.
        assert_eq!(read[11], [5], "`round`");
        // The first group may go round again.
        assert_eq!(read[10], [0, 1, 2, 5], "on the way to `wait`");
    }

    #[test]
    fn nothing_is_known_of_functions_that_activate_lanes_or_split_without_end() {
        assert!(read("jmprt %r15\n").is_empty());
        assert!(read("again: @p0 ? split\njmpi again\n").is_empty());
        assert!(read("join\njmpr %r15\n").is_empty());
    }
}
