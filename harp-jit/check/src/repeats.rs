//! Finds predicates that are computed more than once.
//!
//! The compiler computes a condition anew for each use. The checker must know that two computations part lanes alike,
//! so it remembers the first result in a place of its own, which no instruction writes. [Value numbering](crate::numbering),
//! block by block, finds that the second computation is the same.
//!
//! The same goes, if much is to be found out, for conditions that are computed again in other blocks, or in the next round
//! of a loop: lanes that are parted by one in each round are parted in the same way each time, if nothing changes that it is
//! computed from. What it was the last time is remembered as long as that is the case (J. Ullman, "Fast algorithms for the
//! elimination of common subexpressions", 1973: available expressions). Where such a way meets one without a test, such
//! as the one into a loop, the place holds on that what the condition comes to there: one thing or the other, of which
//! nothing is known but that the next test finds it, and that it is the same in lanes that hold the same in the places that
//! it is computed from. So it is in the first round of a loop as in any other.
//!
//! A heuristic selects the conditions to remember. The writes of instructions show that nothing has changed.

use hashbrown::HashMap;
use smallvec::SmallVec;

use crate::code::Flow;
use crate::frame::Frame;
use crate::numbering::{Copies, Numbering, ValueNumber};
use crate::places::Place;
use crate::structure::Structure;
use crate::term::Origin;

/// Where a predicate is found that was computed before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) place: Place,
    /// Whether it is true where that is false.
    pub(crate) inverted: bool,
}

/// What an instruction computes again, or is computed again later.
#[derive(Clone, Debug, Default)]
pub(crate) struct Repeated {
    /// Whether it stores what is there already.
    pub(crate) changes_nothing: bool,
    /// Of what exchanges or masks a predicate, its predicates.
    pub(crate) sources: SmallVec<[ValueNumber; 2]>,
    /// Where its result is remembered.
    pub(crate) remembered: SmallVec<[Known; 1]>,
    /// Where its result is, because it was computed before.
    pub(crate) known: SmallVec<[Known; 1]>,
    /// Where nobody asks any more for what is remembered.
    pub(crate) dead: SmallVec<[Place; 1]>,
}

/// A predicate where it is computed, with the places that it was computed from at the beginning of the block, if they
/// hold that still.
struct Test {
    at: usize,
    number: ValueNumber,
    from: Option<SmallVec<[Place; 4]>>,
}

/// What is remembered.
#[derive(Debug, Default)]
pub(crate) struct Repeats {
    /// By instruction.
    pub(crate) after: Vec<Repeated>,
    /// Of each place, where it is remembered what was computed from what it holds, for other blocks.
    dependents: HashMap<Place, SmallVec<[Place; 2]>>,
    /// Of each place where something is remembered for other blocks, what that is computed from.
    sources: HashMap<Place, SmallVec<[Place; 4]>>,
    /// What is asked for in each block or later.
    pub(crate) live: Vec<Vec<Place>>,
}

/// Conditions, as bits.
type Conditions = u64;

impl Repeats {
    /// Finds what is computed again within blocks, and `everywhere` if that is asked for.
    pub(crate) fn find(frame: &Frame<'_>, structure: &Structure, everywhere: bool) -> Repeats {
        let after = vec![Repeated::default(); frame.code.insts.len()];
        let mut repeats = Repeats { after, ..Repeats::default() };
        let mut numbering = Numbering::new(frame.places);
        let mut all = Vec::new();
        let copies = if everywhere { Numbering::find_copies(frame, structure) } else { Vec::new() };
        let none = Copies::new();
        for (index, block) in structure.blocks.iter().enumerate() {
            numbering.begin(copies.get(index).unwrap_or(&none));
            let first = all.len();
            for at in block.first..=block.last {
                let sources = numbering.sources(frame.code.insts[at].instruction.op);
                repeats.after[at].sources = sources;
                repeats.after[at].changes_nothing = numbering.changes_nothing(frame, at);
                if let Some(number) = numbering.step(frame, at) {
                    let from = numbering.computed_from(number.value);
                    all.push(Test { at, number, from: from.filter(|from| !from.is_empty()) });
                }
            }
            repeats.find_within(frame, &all[first..]);
        }
        if everywhere {
            repeats.find_everywhere(frame, structure, &all);
        }
        repeats
    }

    /// Where it is remembered what was computed from what a place holds.
    pub(crate) fn depending(&self, place: Place) -> impl Iterator<Item = Place> {
        self.dependents.get(&place).into_iter().flatten().copied()
    }

    /// The places from which was computed what a place remembers for other blocks.
    pub(crate) fn sources(&self, remembered: Place) -> impl Iterator<Item = Place> {
        self.sources.get(&remembered).into_iter().flatten().copied()
    }

    /// Whether the result of an instruction is remembered for other blocks.
    pub(crate) fn is_remembered_everywhere(&self, at: usize) -> bool {
        self.after[at].remembered.iter().any(|known| self.sources.contains_key(&known.place))
    }

    /// Remembers what is tested again in a block.
    fn find_within(&mut self, frame: &Frame<'_>, tests: &[Test]) {
        let mut used: Vec<(Place, usize)> =
            frame.places.remembered().map(|place| (place, 0)).collect();
        for (index, first) in tests.iter().enumerate() {
            let is_same = |test: &&Test| test.number.value == first.number.value;
            let mut again = tests[index + 1..].iter().filter(is_same).peekable();
            if again.peek().is_none() || tests[..index].iter().any(|test| is_same(&test)) {
                continue;
            }
            let Some((place, until)) = used.iter_mut().find(|(_, until)| *until <= first.at) else {
                continue;
            };
            let place = *place;
            self.after[first.at].remembered.push(Known { place, inverted: false });
            for test in again {
                let inverted = test.number.inverted != first.number.inverted;
                self.after[test.at].known.push(Known { place, inverted });
                *until = test.at + 1;
            }
            self.after[*until - 1].dead.push(place);
        }
    }

    /// Remembers the conditions that may be computed again before anything changes.
    fn find_everywhere(&mut self, frame: &Frame<'_>, structure: &Structure, tests: &[Test]) {
        let mut bits: HashMap<Origin, Conditions> = HashMap::new();
        let mut asked: HashMap<usize, Conditions> = HashMap::new();
        let mut depends: HashMap<Place, Conditions> = HashMap::new();
        for test in tests {
            let Some(from) = &test.from else { continue };
            let next = 1_u64.checked_shl(bits.len() as u32).unwrap_or(0);
            let bit = *bits.entry(test.number.value).or_insert(next);
            asked.insert(test.at, bit);
            from.iter().for_each(|&place| *depends.entry(place).or_default() |= bit);
        }
        let asked = |at: usize| asked.get(&at).copied().unwrap_or(0);
        let after = &self.after;
        let changed = |at: usize| match (frame.code.insts[at].flow, frame.accessed(at).to) {
            (Flow::Call, _) => Conditions::MAX,
            _ if after[at].changes_nothing => 0,
            (_, to) => to.and_then(|to| depends.get(&to)).copied().unwrap_or(0),
        };
        let step = |live: Conditions, at: usize| live & !changed(at) | asked(at);
        let (live, behind) = live(structure, step);
        let mut useful = 0;
        for (block, behind) in structure.blocks.iter().zip(behind) {
            (block.first..=block.last).rev().fold(behind, |live, at| {
                useful |= live & asked(at);
                step(live, at)
            });
        }
        let bits = (0..Conditions::BITS).map(|bit| 1 << bit).filter(|bit| useful & bit != 0);
        let homes: Vec<(Conditions, Place)> = bits.zip(frame.places.available()).collect();
        let homes_of = |set: Conditions| {
            homes.iter().filter(move |(bit, _)| set & bit != 0).map(|&(_, place)| place)
        };
        for test in tests {
            if let (Some(place), Some(from)) = (homes_of(asked(test.at)).next(), &test.from) {
                self.sources.entry(place).or_insert_with(|| from.clone());
                let known = Known { place, inverted: test.number.inverted };
                self.after[test.at].known.push(known);
                self.after[test.at].remembered.push(known);
            }
        }
        let dependents = depends.iter().map(|(&place, &set)| (place, homes_of(set).collect()));
        self.dependents = dependents.collect();
        self.live = live.iter().map(|&live| homes_of(live).collect()).collect();
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
