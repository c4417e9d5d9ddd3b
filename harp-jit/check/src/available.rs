//! Conditions that are computed again in other blocks, or in the next round of a loop.
//!
//! Lanes that are parted by one in each round of a loop are parted in the same way each time, if nothing changes that it is
//! computed from. So what it was the last time is remembered in a place of its own as long as that is the case
//! (J. Ullman, "Fast algorithms for the elimination of common subexpressions", 1973: available expressions). Where such a
//! way meets one without a test, such as the one into a loop, the place holds on that what the condition comes to
//! there: one thing or the other, of which nothing is known but that the next test finds it. So it is in the
//! first round of a loop as in any other.
//!
//! Which conditions are worth it is a guess. That nothing has changed is known by what is written.

use hashbrown::HashMap;
use smallvec::SmallVec;

use crate::code::Flow;
use crate::frame::Frame;
use crate::places::Place;
use crate::repeats::{Known, Tested};
use crate::structure::Structure;

/// What is remembered from block to block.
#[derive(Debug, Default)]
pub(crate) struct Available {
    /// At which tests, and in which sense.
    pub(crate) tests: Vec<(usize, Known)>,
    /// Of each place, where it is remembered what was computed from what it holds.
    dependents: HashMap<Place, SmallVec<[Place; 2]>>,
    /// What is asked for in each block or later.
    pub(crate) live: Vec<Vec<Place>>,
}

/// Conditions, as bits.
type Conditions = u64;

impl Available {
    /// Where it is remembered what was computed from what a place holds.
    pub(crate) fn depending(&self, place: Place) -> impl Iterator<Item = Place> {
        self.dependents.get(&place).into_iter().flatten().copied()
    }

    /// Finds the conditions among `tested` that may be computed again before anything changes.
    pub(crate) fn find(frame: &Frame<'_>, structure: &Structure, tested: &[Tested]) -> Available {
        let varies = |test: &&Tested| !test.from.is_empty();
        let mut numbers: Vec<usize> =
            tested.iter().filter(varies).map(|test| test.number.value).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers.truncate(Conditions::BITS as usize);
        let bit = |number: usize| numbers.binary_search(&number).ok().map(|index| 1 << index);
        let mut asked: HashMap<usize, Conditions> = HashMap::new();
        let mut depends: HashMap<Place, Conditions> = HashMap::new();
        for test in tested {
            let Some(bit) = bit(test.number.value) else { continue };
            asked.insert(test.at, bit);
            for &place in &test.from {
                *depends.entry(place).or_default() |= bit;
            }
        }
        let changed = |at: usize| match (frame.code.insts[at].flow, frame.accessed(at).to) {
            (Flow::Call, _) => Conditions::MAX,
            (_, Some(to)) => depends.get(&to).copied().unwrap_or(0),
            (_, None) => 0,
        };
        let step = |live: Conditions, at: usize| live & !changed(at) | asked.get(&at).unwrap_or(&0);
        let (live, behind) = live(structure, step);
        let mut useful = 0;
        for (block, behind) in structure.blocks.iter().zip(behind) {
            let mut known = behind;
            for at in (block.first..=block.last).rev() {
                useful |= known & asked.get(&at).unwrap_or(&0);
                known = step(known, at);
            }
        }
        let bits = (0..Conditions::BITS).map(|bit| 1 << bit).filter(|bit| useful & bit != 0);
        let homes: Vec<(Conditions, Place)> = bits.zip(frame.places.available()).collect();
        let homes_of = |set: Conditions| {
            homes.iter().filter(move |(bit, _)| set & bit != 0).map(|&(_, place)| place)
        };
        let test = |test: &Tested| {
            let place = homes_of(*asked.get(&test.at)?).next()?;
            Some((test.at, Known { place, inverted: test.number.inverted }))
        };
        Available {
            tests: tested.iter().filter_map(test).collect(),
            dependents: depends
                .iter()
                .map(|(&place, &set)| (place, homes_of(set).collect()))
                .collect(),
            live: live.iter().map(|&live| homes_of(live).collect()).collect(),
        }
    }
}

/// What is asked for at the beginning of each block, and behind it.
fn live(
    structure: &Structure,
    step: impl Fn(Conditions, usize) -> Conditions,
) -> (Vec<Conditions>, Vec<Conditions>) {
    let mut live = vec![0; structure.blocks.len()];
    let mut behind = live.clone();
    let mut todo: Vec<usize> = (0..live.len()).collect();
    while let Some(number) = todo.pop() {
        let block = &structure.blocks[number];
        live[number] = (block.first..=block.last).rev().fold(behind[number], &step);
        for edge in &block.edges {
            if behind[edge.from] | live[number] != behind[edge.from] {
                behind[edge.from] |= live[number];
                todo.push(edge.from);
            }
        }
    }
    (live, behind)
}

#[cfg(test)]
mod tests {
    use harp_isa::{Instruction, Op};

    use super::*;
    use crate::numbering::Numbering;
    use crate::places::Places;
    use crate::repeats::{self, Repeated};
    use crate::testing::{p, r, with_code};

    /// What is remembered in a loop that tests the first register and then executes `op`.
    fn in_loop(op: Op) -> Available {
        let back = Instruction { guard: Some(p(1)), op: Op::Jmpi { rel: -12 } };
        let test = Op::Rtop { dst: p(0), src: r(1) };
        let code = [Instruction::new(test), Instruction::new(op), back];
        with_code(&code, |frame, structure| {
            let mut numbering = Numbering::new(frame.places);
            let mut after = vec![Repeated::default(); frame.code.insts.len()];
            let mut tested = Vec::new();
            for block in &structure.blocks {
                let insts = block.first..=block.last;
                let tested = Some(&mut tested);
                repeats::find(frame, insts, &mut numbering, &mut after, tested);
            }
            Available::find(frame, structure, &tested)
        })
    }

    #[test]
    fn what_does_not_change_is_remembered_in_the_next_round() {
        let available = in_loop(Op::Addi { dst: r(2), src: r(2), imm: 1 });
        let [(0, Known { place, inverted: false })] = *available.tests else {
            panic!("{available:?}")
        };
        assert_eq!(available.live[0], [place]);
        assert!(available.depending(Places::gpr(r(1))).eq([place]));
        assert_eq!(available.depending(Places::gpr(r(2))).count(), 0);
    }

    #[test]
    fn what_changes_in_each_round_is_not_remembered() {
        let available = in_loop(Op::Addi { dst: r(1), src: r(1), imm: 1 });
        assert!(available.tests.is_empty(), "{available:?}");
    }
}
