//! The fixpoint, and the check of every instruction against it.

use std::collections::BTreeSet;

use super::code::Code;
use super::error::{CodeError, CodeFault};
use super::merge::{self, Sides};
use super::record::Record;
use super::skeleton::Skeleton;
use super::state::{Id, Literal, Origin, Places, State};
use super::structure::{Block, Edge, Structure};
use super::transfer::Transfer;

/// How often a block may be looked at until its facts settle. They do in a few rounds a loop.
const VISITS: usize = 1000;

/// Proves that lanes agree where they must and read what was meant.
pub(super) fn check(
    code: &Code<'_>,
    structure: &Structure,
    record: &Record,
) -> Result<(), CodeError> {
    let places = Places::new(&record.entry, code.arch.word().bytes().into());
    let transfer = Transfer { code, places: &places, entry: &record.entry };
    let ends = vec![None; structure.blocks.len()];
    let skeleton = Skeleton::new(code, record);
    let mut solver = Solver { transfer, structure, skeleton, ends };
    solver.solve()?;
    for (number, block) in structure.blocks.iter().enumerate() {
        let Some(mut state) = solver.start(number) else { continue };
        for at in block.first..=block.last {
            let mut fault = None;
            solver.step(&mut state, block, at, &mut |found| {
                fault.get_or_insert(found);
            });
            if let Some(fault) = fault {
                return Err(code.error(at, fault));
            }
        }
    }
    Ok(())
}

struct Solver<'a> {
    transfer: Transfer<'a>,
    structure: &'a Structure,
    skeleton: Skeleton<'a>,
    /// What is known at the end of each block that was reached so far.
    ends: Vec<Option<State>>,
}

impl Solver<'_> {
    /// Runs all blocks until nothing changes. What is known only ever becomes less, beginning with
    /// ways that were not reached yet, which say nothing.
    fn solve(&mut self) -> Result<(), CodeError> {
        let blocks = &self.structure.blocks;
        let mut affected: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); blocks.len()];
        for (number, block) in blocks.iter().enumerate() {
            for edge in &block.edges {
                affected[edge.from].insert(number);
            }
            if let Some(before) = block.joins.and_then(|branch| self.block_number(branch)) {
                affected[before].insert(number);
            }
        }
        let mut visits = vec![0; blocks.len()];
        let mut todo: BTreeSet<usize> = (0..blocks.len().min(1)).collect();
        while let Some(number) = todo.pop_first() {
            let block = &blocks[number];
            visits[number] += 1;
            if visits[number] > VISITS {
                return Err(self.transfer.code.error(block.first, CodeFault::Unsettled));
            }
            let Some(mut state) = self.start(number) else { continue };
            for at in block.first..=block.last {
                self.step(&mut state, block, at, &mut |_| {});
            }
            if self.ends[number].as_ref() != Some(&state) {
                self.ends[number] = Some(state);
                todo.extend(&affected[number]);
            }
        }
        Ok(())
    }

    /// Executes an instruction, and passes what is passed behind it within the block.
    fn step(&self, state: &mut State, block: &Block, at: usize, report: &mut dyn FnMut(CodeFault)) {
        self.transfer.step(state, at, report);
        if at != block.last {
            self.skeleton.each_passed(at, None, |passes| state.pass(passes));
        }
    }

    fn block_number(&self, at: usize) -> Option<usize> {
        self.structure.blocks.iter().position(|block| (block.first..=block.last).contains(&at))
    }

    /// What is known at the beginning of a block; none if no way there was reached yet.
    fn start(&self, number: usize) -> Option<State> {
        let block = &self.structure.blocks[number];
        let ways = |comes: &dyn Fn(&Edge) -> bool| {
            let edges = block.edges.iter().filter(|edge| comes(edge));
            edges.filter_map(|edge| self.along(edge)).collect::<Vec<State>>()
        };
        match block.joins {
            None => {
                let mut ways = ways(&|_| true);
                ways.extend((number == 0).then(|| self.transfer.at_entry()));
                meet(ways, block.first, Origin::Met)
            }
            Some(branch) => {
                let side = |side: bool| {
                    let ways = ways(&|edge| edge.sides[usize::from(side)]);
                    meet(ways, block.first, Origin::MetOnSide(side))
                };
                match (side(false), side(true)) {
                    (Some(passed), Some(taken)) => self.join(block, branch, [&passed, &taken]),
                    (one, other) => one.or(other),
                }
            }
        }
    }

    /// What is known on the way along an edge; none if nobody was seen to take it so far.
    fn along(&self, edge: &Edge) -> Option<State> {
        let mut state = self.ends[edge.from].clone()?;
        let last = self.structure.blocks[edge.from].last;
        let guard = self.transfer.code.insts[last].instruction.guard;
        if let (Some(truth), Some(reg)) = (edge.taken, guard) {
            let id = state.held(Places::pred(reg));
            let taken = Literal::new(id, truth);
            if state.settled(taken) == Some(false) {
                return None;
            }
            state.assume(taken);
        }
        self.skeleton.each_passed(last, edge.taken, |passes| state.pass(passes));
        Some(state)
    }

    fn join(&self, block: &Block, branch: usize, sides: [&State; 2]) -> Option<State> {
        let before = self.ends[self.block_number(branch)?].as_ref()?;
        let inside = |id: Id| {
            let at = id.at as usize;
            let open = |home: &Block| home.open.iter().any(|open| open.branch == branch);
            id.origin != Origin::Entry
                && (at == block.first || self.structure.block_of(at).is_some_and(open))
        };
        let guard = self.transfer.code.insts[branch].instruction.guard?;
        let split = Literal::new(before.held(Places::pred(guard)), true);
        Some(merge::join(Sides { sides, before, split }, block.first, inside))
    }
}

fn meet(mut ways: Vec<State>, at: usize, origin: Origin) -> Option<State> {
    match ways.len() {
        0 => None,
        1 => ways.pop(),
        _ => Some(merge::meet(&ways.iter().collect::<Vec<_>>(), at, origin)),
    }
}
