//! Proves that finished code has the control flow of the blocks that were selected.
//!
//! Every instruction knows the block, and the place in it, that it was emitted for. The proof shows that control goes
//! from each instruction to the next one of its block, and from the last one to the first one of a successor: after a
//! branch, of the successor for the side taken. Blocks that consist of a jump alone are passed through. This module
//! does not look at what the instructions compute.

use hashbrown::HashMap;

use crate::code::{Code, Flow};
use crate::error::{CodeError, CodeFault};
use crate::record::{Holder, Passes, Record};
use crate::structure::Structure;

/// Compares the paths through `code` with the blocks of `record`.
pub(crate) fn check(
    code: &Code<'_>,
    structure: &Structure,
    record: &Record,
) -> Result<(), CodeError> {
    let skeleton = Skeleton::new(code, record);
    let entry = code.resolve(0);
    if entry != skeleton.first(0) {
        return Err(code.error(entry.unwrap_or(0), CodeFault::Control { from: 0, to: 0 }));
    }
    for block in &structure.blocks {
        let insts = block.first..=block.last;
        for at in insts {
            let targets = match code.insts[at].flow {
                Flow::Branch(target) => [Some((target, Some(0))), Some((at + 1, Some(1)))],
                Flow::Next | Flow::Call => [Some((at + 1, None)), None],
                Flow::Jump(_) | Flow::Leave | Flow::Stop => [None, None],
            };
            for (target, side) in targets.into_iter().flatten() {
                skeleton.follow(at, code.resolve(target), side)?;
            }
        }
    }
    Ok(())
}

/// The most branches in a row that may be left out because their sides are the same.
const MOST_BRANCHES: usize = 6;

/// The blocks that were selected, with what is left of them.
pub(crate) struct Skeleton<'a> {
    code: &'a Code<'a>,
    record: &'a Record,
    /// The instructions of each block that are there, jumps excepted, in their order.
    present: Vec<Vec<usize>>,
    /// The block of an instruction with its index there.
    place: HashMap<usize, (usize, usize)>,
}

impl<'a> Skeleton<'a> {
    pub(crate) fn new(code: &'a Code<'a>, record: &'a Record) -> Skeleton<'a> {
        let mut present = vec![Vec::new(); record.successors.len()];
        for (at, inst) in code.insts.iter().enumerate() {
            if let Some(note) = inst.note
                && !matches!(inst.flow, Flow::Jump(_))
            {
                present[note.block as usize].push((note.position, at));
            }
        }
        let mut place = HashMap::new();
        let in_order = |(block, mut insts): (usize, Vec<(u32, usize)>)| {
            insts.sort_unstable();
            let insts: Vec<usize> = insts.into_iter().map(|(_, at)| at).collect();
            place.extend(insts.iter().enumerate().map(|(index, &at)| (at, (block, index))));
            insts
        };
        let present = present.into_iter().enumerate().map(in_order).collect();
        Skeleton { code, record, present, place }
    }

    /// Calls `visit` with the blocks that end between `at`, whose guard is `taken` if it
    /// is a branch, and the next instruction.
    pub(crate) fn each_passed(&self, at: usize, taken: Option<bool>, mut visit: impl FnMut(usize)) {
        let Some(&(mut block, index)) = self.place.get(&at) else { return };
        if index + 1 < self.present[block].len() {
            return;
        }
        let mut side = usize::from(taken == Some(false));
        for _ in 0..=self.present.len() {
            visit(block);
            let Some(&next) = self.record.successors[block].get(side) else { return };
            (block, side) = (next as usize, 0);
            if !self.present[block].is_empty() {
                return;
            }
        }
    }

    /// The predicates that a block passes on.
    pub(crate) fn passes(&self, block: usize) -> &Passes {
        &self.record.passes[block]
    }

    /// The values that are undefined once a block was left.
    pub(crate) fn undefined(&self, block: usize) -> &[Holder] {
        &self.record.undefined[block]
    }

    /// The first instruction of a block, or of the next that has one, whichever way is taken; none if
    /// that is not the same, or they only jump in circles.
    fn first(&self, block: usize) -> Option<usize> {
        self.first_within(block, MOST_BRANCHES)
    }

    /// As [`Skeleton::first`], with so many branches on the way.
    fn first_within(&self, block: usize, branches: usize) -> Option<usize> {
        let mut block = block;
        for _ in 0..=self.present.len() {
            match (self.present[block].first(), self.record.successors[block].as_slice()) {
                (Some(&at), _) => return Some(at),
                (None, &[next]) => block = next as usize,
                (None, &[one, other]) if branches > 0 => {
                    let sides = [one, other];
                    let [one, other] =
                        sides.map(|side| self.first_within(side as usize, branches - 1));
                    return one.filter(|_| one == other);
                }
                (None, _) => return None,
            }
        }
        None
    }

    /// Control goes from `at` to `to`; from a branch, to the side with this number.
    fn follow(&self, at: usize, to: Option<usize>, side: Option<usize>) -> Result<(), CodeError> {
        let offset = |to: Option<usize>| to.map_or(0, |to| self.code.insts[to].offset);
        let Some(&(block, index)) = self.place.get(&at) else {
            let fault = CodeFault::Control { from: 0, to: offset(to) };
            return Err(self.code.error(at, fault));
        };
        let successors = self.record.successors[block].as_slice();
        let wanted = match (self.present[block].get(index + 1), successors, side) {
            (Some(&next), _, None) => Some(Some(next)),
            (None, &[next], None) => Some(self.first(next as usize)),
            // A branch whose sides are the same is left out.
            (None, &[a, b], None) if self.first(a as usize) == self.first(b as usize) => {
                Some(self.first(a as usize))
            }
            (None, &[_, _], Some(side)) => Some(self.first(successors[side] as usize)),
            _ => None,
        };
        if wanted == Some(to) {
            return Ok(());
        }
        let fault = CodeFault::Control { from: block as u32, to: offset(to) };
        Err(self.code.error(at, fault))
    }
}
