//! The state at a join, where lanes that took different paths reconverge.
//!
//! Two facts survive about a pair of lanes from different sides: what each side knows of its own lane, and what was
//! known of the pair at the split, as far as neither side changed it or both sides did the same.

use hashbrown::HashMap;
use smallvec::SmallVec;

use crate::bdd::{Renaming, Set};
use crate::lanes::Condition;
use crate::number::Numbers;
use crate::op::Form;
use crate::places::Place;
use crate::provenance::{Origins, Provenance};
use crate::state::State;
use crate::term::{Origin, Terms};

/// How a place tells lanes apart after a join.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    /// It is not read.
    Dead,
    /// By these numbers, if there are several.
    Numbers(Numbers),
    Unknown,
}

/// An incoming path, in terms of the numbers that tell lanes apart after the join.
pub(crate) struct Way<'a> {
    pub(crate) state: State<'a>,
    /// The lanes, of all that meet, that came along this path.
    pub(crate) taken: Set<'a>,
}

impl<'a> Way<'a> {
    /// The origins of values that existed at an open split.
    pub(crate) fn of(&self, branch: usize) -> Option<&Provenance<'a>> {
        Provenance::find(&self.state.provenance, branch)
    }
}

/// A split at which the paths begin, or which encloses them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Split<'p, 'a> {
    /// Its branch.
    pub(crate) branch: usize,
    /// The predicate.
    pub(crate) guard: Place,
    /// What was known there.
    pub(crate) before: &'p State<'a>,
}

impl<'a> Split<'_, 'a> {
    /// The lanes of its sides.
    fn parting(&self) -> [Set<'a>; 2] {
        let truth = self.before.not_zero(self.guard);
        [!truth, truth]
    }

    /// Whether a place held the same in all lanes that went the same way, if that is one of `sides`.
    fn is_uniform(&self, place: Place, sides: [bool; 2]) -> bool {
        let ways = self.parting().into_iter().zip(sides);
        ways.filter(|(_, taken)| *taken).all(|(way, _)| self.before.agrees(place, way))
    }
}

/// The two paths that lead to a join: the one on which the predicate was false, and the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parted<'p, 'a> {
    pub(crate) split: Split<'p, 'a>,
    /// The splits around it.
    pub(crate) around: &'p [Split<'p, 'a>],
    pub(crate) terms: &'p Terms,
}

/// Pairs of lanes from different sides: the first lane of each did not take the branch, the second did.
pub(crate) struct Across<'p, 'a> {
    parted: Parted<'p, 'a>,
    ways: [&'p Way<'a>; 2],
    /// Where values come from on the two sides.
    origins: [Provenance<'a>; 2],
    rest: Rest<'a>,
    /// All that there are.
    pub(crate) pairs: Set<'a>,
}

impl<'p, 'a> Across<'p, 'a> {
    pub(crate) fn new(
        parted: Parted<'p, 'a>,
        ways: &'p [Way<'a>],
        plans: &[Plan],
    ) -> Across<'p, 'a> {
        let Split { branch, before, .. } = parted.split;
        let ways = [&ways[0], &ways[1]];
        let unknown = Provenance::unknown(branch, before.values.len());
        let origins = ways.map(|way| way.of(branch).unwrap_or(&unknown).clone());
        let rest = Rest::new(parted.split, plans, &origins);
        let mut across = Across { parted, ways, origins, rest, pairs: Set::ALL };
        across.pairs = ways[0].taken & (ways[1].taken.other() & across.left(Set::ALL));
        across
    }

    /// Whether no side changed what a place holds.
    pub(crate) fn is_unchanged(&self, place: Place) -> bool {
        let [passed, taken] = &self.origins;
        matches!(passed.only(place), Origin::Place(_)) && passed.of(place) == taken.of(place)
    }

    /// The pairs in which a place may hold different values of such a form.
    pub(crate) fn differing(&self, place: Place, form: Form) -> Set<'a> {
        if matches!(form, Form::Scratch | Form::GroupBlock) {
            return Set::NONE;
        }
        let [passed, taken] = self.ways.map(|way| !way.state.value(place).undefined);
        // Differences do not matter where one of the lanes holds an undefined value.
        self.pairs & self.differed(place) & (passed & taken.other())
    }

    fn differed(&self, place: Place) -> Set<'a> {
        let mut differing = self.crossed(self.origins.each_ref(), place, |origin| {
            let differed = self.before(origin);
            if differed.is_constant() { differed } else { self.left(differed) }
        });
        for around in self.parted.around.iter().rev() {
            let [Some(passed), Some(taken)] = self.ways.map(|way| way.of(around.branch)) else {
                continue;
            };
            if differing == Set::NONE {
                break;
            }
            // They went the same way there, and what all held that did so is the same whenever it is taken from there.
            let sides = [0, 1].map(|side| passed.sides[side] && taken.sides[side]);
            let differed = self.crossed([passed, taken], place, |origin| {
                let places = self.parted.terms.places(origin);
                let is_same = |place: &Place| around.is_uniform(*place, sides);
                let same = places.is_some_and(|places| places.iter().all(is_same));
                if same { Set::NONE } else { Set::ALL }
            });
            differing = differing & differed;
        }
        differing
    }

    /// By where the values come from, or what they are copies of, the pairs in which a place may hold different ones.
    fn crossed(
        &self,
        kept: [&Provenance<'a>; 2],
        place: Place,
        differing: impl Fn(Origin) -> Set<'a>,
    ) -> Set<'a> {
        let own = kept.map(|kept| kept.of(place));
        let mut known = crossed(own, &differing);
        if known == Set::NONE {
            return known;
        }
        let copied = [0, 1].map(|side| {
            let Way { state, .. } = self.ways[side];
            let each = state.copies(place).into_iter().map(|(copy, lanes)| {
                kept[side].chosen(place, (lanes & !state.value(copy).undefined, copy))
            });
            let each = each.filter(|copied| copied != own[side]);
            each.collect::<SmallVec<[_; 2]>>()
        });
        let [passed, taken] = [0, 1].map(|side| std::iter::once(own[side]).chain(&copied[side]));
        for (number, passed) in passed.enumerate() {
            for taken in taken.clone().skip(usize::from(number == 0)) {
                if known != Set::NONE {
                    known = known & crossed([passed, taken], &differing);
                }
            }
        }
        known
    }

    /// Where lanes differed when they parted in what this comes from.
    fn before(&self, origin: Origin) -> Set<'a> {
        let Some(places) = self.parted.terms.places(origin) else { return Set::ALL };
        let each = places.iter().map(|&place| self.parted.split.before.differing(place));
        each.fold(Set::NONE, |all, differing| all | differing)
    }

    /// What is left of pairs of lanes that parted.
    fn left(&self, pairs: Set<'a>) -> Set<'a> {
        let [passed, taken] = self.ways.map(|way| way.state.active);
        self.rest.of(pairs).restrict(passed).restrict(taken.other())
    }
}

/// By where the values come from: what comes from the same differs as `differing` says.
fn crossed<'a>(
    [passed, taken]: [&Origins<'a>; 2],
    differing: impl Fn(Origin) -> Set<'a>,
) -> Set<'a> {
    let lists = if passed.is_one() && taken.is_one() { 1 } else { 2 };
    passed.lists().into_iter().zip(taken.lists()).take(lists).fold(
        Set::ALL,
        |known, (passed, taken)| {
            let pairs = passed.iter().flat_map(|a| taken.iter().map(move |b| (*a, *b)));
            let each = pairs.fold(Set::NONE, |all, ((one, passed), (other, taken))| {
                let differing = match (one, other) {
                    (Origin::Nothing, _) | (_, Origin::Nothing) => Set::NONE,
                    _ if one == other => differing(one),
                    _ => Set::ALL,
                };
                all | (passed & taken.other() & differing)
            });
            known & each
        },
    )
}

/// What a join keeps of the facts that were known about a pair of lanes at the split.
struct Rest<'a> {
    /// The pairs that there were.
    pairs: Set<'a>,
    /// Of each lane what was known of what is not there any more, and that.
    told: [(Set<'a>, Set<'a>); 2],
    /// What is in another place.
    moved: Renaming,
}

impl<'a> Rest<'a> {
    fn new(split: Split<'_, 'a>, plans: &[Plan], origins: &[Provenance<'a>; 2]) -> Rest<'a> {
        let Split { before, .. } = split;
        let lanes = before.lanes;
        let sides = origins.each_ref().map(|origins| Moves::of(before, plans, origins));
        let moved = lanes.renaming(sides.each_ref().map(|side| &*side.moved));
        let parting = split.parting();
        let told = [0, 1].map(|number| {
            let of_side = |set: Set<'a>| if number == 0 { set } else { set.other() };
            let Moves { impossible, gone, .. } = &sides[number];
            let parting = before.active & parting[number];
            let possible = impossible
                .iter()
                .fold(parting, |possible, &condition| possible & !lanes.condition(condition));
            let gone = lanes.cube(gone.iter().copied());
            (of_side(possible.constraint_on(gone)), of_side(gone))
        });
        Rest { pairs: before.pairs, told, moved }
    }

    /// Of the pairs that parted those of `pairs`, in terms of what there is now.
    fn of(&self, pairs: Set<'a>) -> Set<'a> {
        let left = self.told.iter();
        let left =
            left.fold(pairs & self.pairs, |pairs, &(told, gone)| pairs.and_exists(told, gone));
        left.rename(self.moved)
    }
}

/// What one side of a split did to the conditions that were known at the split.
#[derive(Default)]
struct Moves {
    /// The numbers are not there any more.
    impossible: Vec<Condition>,
    /// Nothing says of them any more whether they are true.
    gone: Vec<Condition>,
    /// What they are in terms of other places.
    moved: Vec<(Condition, Condition)>,
}

impl Moves {
    fn of(before: &State<'_>, plans: &[Plan], origins: &Provenance<'_>) -> Moves {
        let mut moves = Moves::default();
        // What each condition is called behind the join.
        let mut names: HashMap<Condition, SmallVec<[Condition; 2]>> = HashMap::new();
        for (index, plan) in plans.iter().enumerate() {
            let place = Place::from_index(index);
            let (Plan::Numbers(numbers), Origin::Place(origin)) = (plan, origins.only(place))
            else {
                continue;
            };
            for number in before.value(origin).distinguished() {
                let from = Condition::Holds(origin, number);
                if !numbers.contains(&number) {
                    moves.impossible.push(from);
                } else if numbers.len() > 1 {
                    names.entry(from).or_default().push(Condition::Holds(place, number));
                }
            }
        }
        for (index, value) in before.values.iter().enumerate() {
            let place = Place::from_index(index);
            for from in value.distinguished().map(|number| Condition::Holds(place, number)) {
                let names = names.get(&from).map_or(&[][..], |names| &**names);
                match names.iter().find(|&&name| name == from).or(names.first()) {
                    None => moves.gone.push(from),
                    Some(&first) if first != from => moves.moved.push((from, first)),
                    Some(_) => {}
                }
            }
        }
        moves
    }
}
