//! The fixpoint, and the check of every instruction against it.

use std::collections::BTreeSet;

use harp_bdd::Set;
use harp_isa::ArchId;

use crate::assumption::Assumption;
use crate::code::{Code, Flow};
use crate::error::{CodeError, CodeFault, OpenSplit};
use crate::join::{Parted, Split};
use crate::lanes::{Condition, Lanes};
use crate::live::{self, Lives};
use crate::merge::{self, MergePoint};
use crate::number::{Number, Precision};
use crate::op::Form;
use crate::places::Places;
use crate::provenance::{Gate, Provenance};
use crate::record::Record;
use crate::regions::{Decided, Regions};
use crate::shared::Sides;
use crate::skeleton::Skeleton;
use crate::state::State;
use crate::structure::{Block, Edge, Open, Structure, split_of};
use crate::term::{Origin, Terms};
use crate::transfer::Transfer;

/// How often a block may be looked at until its facts settle. They do in a few rounds a loop.
const VISITS: usize = 400;

/// Proves that lanes agree where they must, and read no undefined values.
pub(crate) fn check(
    code: &Code<'_>,
    structure: &Structure,
    record: &Record,
) -> Result<(), CodeError> {
    let places = Places::new(&record.entry, code.arch);
    let skeleton = Skeleton::new(code, record);
    let regions = Regions::new(structure);
    let sides = Sides::find(code, structure);
    let find = |precision| live::find(code, structure, &skeleton, &places, precision);
    let check_with = |assumption, precision, lives: &Lives| {
        let (lanes, terms) = (Lanes::new(precision), Terms::new(precision));
        let transfer = Transfer {
            code,
            places: &places,
            record,
            assumption,
            lanes: &lanes,
            terms: &terms,
            lives,
            precision,
        };
        Solver::new(transfer, structure, &skeleton, &regions, &sides).check()
    };
    let lives = find(Precision::Coarse);
    Assumption::all(record).iter().try_for_each(|assumption| {
        with_more_and_more(|precision| match precision {
            Precision::Coarse | Precision::Fine => check_with(assumption, precision, &lives),
            Precision::Thorough => check_with(assumption, precision, &find(precision)),
        })
    })
}

/// Tries a proof with more and more found out, until there is one.
fn with_more_and_more(
    mut check_with: impl FnMut(Precision) -> Result<(), CodeError>,
) -> Result<(), CodeError> {
    let mut found = Ok(());
    for precision in Precision::ALL {
        let outcome = check_with(precision);
        match outcome {
            Err(error) if error.fault == CodeFault::TooLong => {
                // An error that was found with less precision says more than that.
                return Err(
                    found.map_or_else(|found| CodeError { undecided: true, ..found }, |()| error)
                );
            }
            Err(error) => found = Err(error),
            Ok(()) => return Ok(()),
        }
    }
    found
}

/// No more is said of a lane in an example.
const MOST_SAID: usize = 4;

/// How often before it only becomes less what is known at its beginning.
const PATIENCE: usize = 12;

struct Solver<'a> {
    transfer: Transfer<'a>,
    structure: &'a Structure,
    skeleton: &'a Skeleton<'a>,
    regions: &'a Regions<'a>,
    sides: &'a Sides,
    /// The states at the beginning of blocks that were visited often.
    starts: Vec<Option<State<'a>>>,
    /// The state at the end of each block that was reached so far.
    ends: Vec<Option<State<'a>>>,
    /// How often each block was visited.
    visits: Vec<usize>,
    /// What was wrong first in each block when it was visited last, and where.
    errors: Vec<Option<(usize, CodeError)>>,
}

impl<'a> Solver<'a> {
    fn new(
        transfer: Transfer<'a>,
        structure: &'a Structure,
        skeleton: &'a Skeleton<'a>,
        regions: &'a Regions<'a>,
        sides: &'a Sides,
    ) -> Solver<'a> {
        let blocks = structure.blocks.len();
        Solver {
            transfer,
            structure,
            skeleton,
            regions,
            sides,
            starts: vec![None; blocks],
            ends: vec![None; blocks],
            visits: vec![0; blocks],
            errors: vec![None; blocks],
        }
    }

    /// Computes the fixpoint, and checks every instruction against its state: that was done when its block was visited
    /// last, as what is known there did not change since.
    fn check(mut self) -> Result<(), CodeError> {
        self.solve()?;
        for number in 0..self.ends.len() {
            // Less may have been known there than at the fixpoint.
            if self.visits[number] > PATIENCE
                && let Some(mut state) = self.start(number)
            {
                self.errors[number] = self.run(&mut state, number);
            }
            if let Some((at, error)) = self.errors[number].take() {
                return Err(self.explain(number, at, error));
            }
        }
        let Transfer { code, lanes, .. } = self.transfer;
        if lanes.sets.is_full() {
            return Err(code.error(0, CodeFault::TooLong));
        }
        Ok(())
    }

    /// Runs all blocks until nothing changes. What is known only ever becomes less, beginning with
    /// ways that were not reached yet, which say nothing.
    fn solve(&mut self) -> Result<(), CodeError> {
        let affected = self.affected();
        let mut todo: BTreeSet<usize> = (0..self.ends.len().min(1)).collect();
        while let Some(number) = self.next(&mut todo) {
            self.visits[number] += 1;
            if self.visits[number] > VISITS || self.transfer.lanes.sets.is_full() {
                let first = self.structure.blocks[number].first;
                return Err(self.transfer.code.error(first, CodeFault::TooLong));
            }
            self.errors[number] = None;
            let Some(mut state) = self.start(number) else { continue };
            if self.visits[number] > PATIENCE {
                if let Some(before) = self.starts[number].take() {
                    state = merge::merge(vec![before, state], self.meeting(number), None);
                }
                self.starts[number] = Some(state.clone());
            }
            self.errors[number] = self.run(&mut state, number);
            // Without names there is never more known than before: what is wrong stays so.
            if !self.transfer.precision.names_ways()
                && let Some((at, error)) = self.errors[number].take()
            {
                return Err(self.explain(number, at, error));
            }
            state.normalize();
            if self.ends[number].as_ref() != Some(&state) {
                self.ends[number] = Some(state);
                todo.extend(&affected[number]);
            }
        }
        Ok(())
    }

    /// The blocks that are to be visited when what is known at the end of each one changes.
    fn affected(&self) -> Vec<BTreeSet<usize>> {
        let blocks = &self.structure.blocks;
        let mut affected = vec![BTreeSet::new(); blocks.len()];
        for (number, block) in blocks.iter().enumerate() {
            for edge in &block.edges {
                affected[edge.from].insert(number);
            }
            // What was known at splits is asked for at their joins, and at the joins within them.
            for before in block.joins.iter().flat_map(|branch| self.parted_at(*branch, block)) {
                affected[before].insert(number);
            }
        }
        affected
    }

    /// Executes the instructions of a block. The first that is wrong, and what is.
    fn run(&self, state: &mut State<'a>, number: usize) -> Option<(usize, CodeError)> {
        let block = &self.structure.blocks[number];
        let mut first = None;
        for at in block.first..=block.last {
            if let Err(error) = self.step(state, block, at) {
                first.get_or_insert((at, error));
            }
        }
        first
    }

    /// The blocks of this branch, and of those whose splits are open in a block.
    fn parted_at(&self, branch: usize, block: &Block) -> impl Iterator<Item = usize> {
        let open = block.open.iter().copied().chain([branch]);
        open.filter_map(|branch| *self.structure.block_of.get(branch)?)
    }

    /// The next block to visit; none at the fixpoint.
    fn next(&self, todo: &mut BTreeSet<usize>) -> Option<usize> {
        if todo.is_empty() && self.decide_ways() {
            // That is relied on at joins, and where values get names.
            let meet = |block: &Block| block.edges.len() > 1 || block.joins.is_some();
            let meet = |&number: &usize| meet(&self.structure.blocks[number]);
            let seen = |&number: &usize| self.ends[number].is_some();
            todo.extend((0..self.ends.len()).filter(meet).filter(seen));
        }
        todo.pop_first()
    }

    /// Finds what decides which way lanes take where values got names. Whether that is more than it was.
    fn decide_ways(&self) -> bool {
        let Transfer { code, terms, .. } = self.transfer;
        let blocks = &self.structure.blocks;
        for at in terms.passages() {
            let open = &blocks[at.block].open;
            for number in self.regions.of(at.block, at.decided).unwrap_or_default() {
                let last = blocks[number].last;
                let is_branch = matches!(code.insts[last].flow, Flow::Branch(_));
                let guard = code.insts[last].instruction.guard.filter(|_| is_branch);
                let (Some(guard), Some(end)) = (guard, &self.ends[number]) else { continue };
                // Lanes that part here, or further in, meet again before they come there.
                let part = code.is_split_branch(last) && !open.contains(&last);
                if part || blocks[number].open.len() > open.len() {
                    continue;
                }
                let guard = Places::pred(guard);
                if !matches!(end.value(guard).form, Form::Constant(_)) {
                    let kept = Provenance::find(&end.provenance, at.branch);
                    let origin = kept.map_or(Origin::Unknown, |kept| kept.only(guard));
                    terms.decides(at, origin);
                }
            }
        }
        terms.has_changed()
    }

    /// Executes an instruction, and passes what is passed behind it within the block. The first that is wrong
    /// with it is an error.
    fn step(&self, state: &mut State<'a>, block: &Block, at: usize) -> Result<(), CodeError> {
        let active = state.active;
        let mut fault = None;
        self.transfer.step(state, at, &mut |found| {
            fault.get_or_insert(found);
        });
        if at != block.last {
            // What nobody reads any more would only make the sets larger. Of a branch it is asked on the ways
            // from here.
            let dead = self.transfer.lives.after[at].dead.iter();
            dead.for_each(|&place| state.forget(place));
            self.pass(state, at, None);
            if state.active != active {
                // The next instructions have less to do then.
                state.normalize();
            }
        }
        let known = self.ends.iter().chain(&self.starts).flatten();
        self.transfer.lanes.sets.collect_garbage(known.chain([&*state]).flat_map(State::sets));
        match fault {
            _ if self.transfer.lanes.sets.is_full() => Err(CodeFault::TooLong),
            Some(fault) => Err(fault),
            None => Ok(()),
        }
        .map_err(|fault| self.transfer.code.error(at, fault))
    }

    /// Adds the path to an instruction at which something is wrong, and lanes for which it is.
    fn explain(&self, number: usize, at: usize, mut error: CodeError) -> CodeError {
        let Transfer { code, lanes, places, .. } = self.transfer;
        let Some(mut state) = self.start(number) else { return error };
        let block = &self.structure.blocks[number];
        for before in block.first..at {
            // Errors further up were found before.
            _ = self.step(&mut state, block, before);
        }
        let predicate = |sides: [bool; 2]| match sides {
            [true, false] => Some(false),
            [false, true] => Some(true),
            _ => None,
        };
        let open = state.provenance.iter();
        let open = open.map(|kept| (split_of(code, kept.branch), predicate(kept.sides)));
        error.inside = open.map(|(split, predicate)| OpenSplit { split, predicate }).collect();
        let (CodeFault::Divergent(register) | CodeFault::Undefined(register)) = error.fault else {
            return error;
        };
        let Some(place) = Places::operand(register.operand) else { return error };
        let is_pair = matches!(error.fault, CodeFault::Divergent(_));
        let set = match is_pair {
            true => state.disagreeing(place),
            false => state.active & state.value(place).undefined,
        };
        error.example = match lanes.example(set).map(|lane| says(code.arch, places, &lane)) {
            [one, other] if is_pair && !one.is_empty() && !other.is_empty() => {
                format!("one lane has {one} and another has {other}")
            }
            [one, _] if !is_pair && !one.is_empty() => format!("a lane that has {one}"),
            _ => String::new(),
        };
        error
    }

    /// Where ways meet at the beginning of a block.
    fn meeting(&self, number: usize) -> MergePoint<'_> {
        MergePoint {
            live: &self.transfer.lives.blocks[number],
            open: &self.structure.blocks[number].open,
            precision: self.transfer.precision,
            gate: None,
        }
    }

    /// What is known at the beginning of a block; none if no way there was reached yet.
    fn start(&self, number: usize) -> Option<State<'a>> {
        let block = &self.structure.blocks[number];
        let along = |edge: &Edge| Some((self.along(edge)?, Decided::of(edge, number)));
        let (mut ways, decided): (Vec<State<'a>>, Vec<Decided>) =
            block.edges.iter().filter_map(along).unzip();
        let meeting = self.meeting(number);
        let is_many = ways.len() > 1;
        ways.extend((number == 0).then(|| self.transfer.at_entry()));
        if let Some(branch) = block.joins {
            for way in &mut ways {
                for side in [false, true] {
                    if way.comes_from(branch, side) {
                        self.lose(way, branch, side);
                    }
                }
            }
        }
        let is_seen = |edge: &Edge| self.ends[edge.from].is_some();
        self.transfer.anticipate(&mut ways, number, block.edges.iter().all(is_seen));
        let Some(branch) = block.joins else {
            let is_known = self.transfer.precision.names_ways()
                && !block.open.is_empty()
                && is_many
                && self.regions.are_known(number);
            let terms = self.transfer.terms;
            let gate = is_known.then_some(Gate { block: number, decided: &decided, terms });
            return meet(ways, MergePoint { gate, ..meeting });
        };
        // Behind the join the split is not open any more, but the ways that lead there begin at it.
        let open: Vec<Open> = block.open.iter().copied().chain([branch]).collect();
        let within = MergePoint { open: &open, ..meeting };
        let side = |side: bool| {
            let those = ways.iter().filter(|way| way.comes_from(branch, side));
            meet(those.cloned().collect(), within)
        };
        match (side(false), side(true)) {
            (Some(passed), Some(taken)) => {
                let names = self.transfer.precision.names_ways();
                let around = meeting.open.iter().filter(|_| names);
                let around: Vec<_> = around.filter_map(|&branch| self.split(branch)).collect();
                let terms = self.transfer.terms;
                let parted = Parted { split: self.split(branch)?, around: &around, terms };
                Some(merge::merge(vec![passed, taken], meeting, Some(parted)))
            }
            (one, other) => meet(one.or(other).into_iter().collect(), meeting),
        }
    }

    /// The state at a split, when lanes diverged.
    fn split(&self, branch: Open) -> Option<Split<'_, 'a>> {
        let before = self.ends[(*self.structure.block_of.get(branch)?)?].as_ref()?;
        let guard = self.transfer.code.insts[branch].instruction.guard?;
        Some(Split { branch, guard: Places::pred(guard), before })
    }

    /// What is known on the way along an edge; none if nobody was seen to take it so far.
    fn along(&self, edge: &Edge) -> Option<State<'a>> {
        let mut state = self.ends[edge.from].clone()?;
        let last = self.structure.blocks[edge.from].last;
        let guard = self.transfer.code.insts[last].instruction.guard;
        if let (Some(truth), Some(reg)) = (edge.taken, guard) {
            if self.transfer.code.is_split_branch(last) {
                state.open(last, truth);
                self.lose(&mut state, last, truth);
            }
            let taken = state.not_zero(Places::pred(reg));
            state.active = state.active & if truth { taken } else { !taken };
            if state.active == Set::NONE {
                return None;
            }
            state.normalize();
        }
        self.pass(&mut state, last, edge.taken);
        Some(state)
    }

    /// Lanes of one side of a split find what those of the other wrote.
    fn lose(&self, state: &mut State<'a>, branch: Open, side: bool) {
        let lost = self.sides.lost(branch, side).iter();
        lost.for_each(|&place| self.transfer.drop(state, place));
    }

    /// What blocks pass on that end between `at`, whose guard is `taken` if it is a branch, and the next
    /// instruction.
    fn pass(&self, state: &mut State<'a>, at: usize, taken: Option<bool>) {
        let places = self.transfer.places;
        self.skeleton.each_passed(at, taken, |block| {
            state.pass(self.skeleton.passes(block));
            let undefined = places.of(self.skeleton.undefined(block));
            undefined.for_each(|place| self.transfer.drop(state, place));
        });
    }
}

/// The facts about a lane, in words.
fn says(arch: ArchId, places: &Places, lane: &[(Condition, bool)]) -> String {
    let each = lane.iter().filter_map(|&(condition, value)| {
        let Condition::Holds(place, Number::Is(number)) = condition else { return None };
        let name = places.name(place)?;
        Some(match value {
            true => format!("{name} = {number}"),
            false if place.is_pred(arch) => format!("{name} = 0"),
            false => format!("{name} other than {number}"),
        })
    });
    each.take(MOST_SAID).collect::<Vec<_>>().join(", ")
}

fn meet<'a>(ways: Vec<State<'a>>, meeting: MergePoint<'_>) -> Option<State<'a>> {
    (!ways.is_empty()).then(|| merge::merge(ways, meeting, None))
}
