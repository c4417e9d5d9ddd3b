//! Whether finished code goes through the blocks that were selected.
//!
//! Every instruction knows the block and the place in it that it was emitted for. Proves that control goes
//! from each to the next one in its block, and from the last one to the first one of a successor: of the
//! successor for that side, where it is a branch. Blocks of which nothing is left but a jump are passed
//! through. What the instructions themselves do is not looked at here.

use hashbrown::HashMap;

use super::code::{Code, Flow};
use super::error::{CodeError, CodeFault};
use super::record::{Name, Record};
use super::structure::Structure;

/// What parameters of blocks become behind an instruction: behind a branch, by what its guard is. All of a
/// list at once, and the lists one after the other.
pub(super) type Passes = HashMap<(usize, Option<bool>), Vec<Vec<(Name, Name)>>>;

/// Compares the ways through `code` with the blocks of `record`, and says what they pass.
pub(super) fn check(
    code: &Code<'_>,
    structure: &Structure,
    record: &Record,
) -> Result<Passes, CodeError> {
    let mut passes = Passes::new();
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
                let passed = skeleton.passed(at, side);
                if !passed.is_empty() {
                    passes.insert((at, side.map(|side| side == 0)), passed);
                }
            }
        }
    }
    Ok(passes)
}

struct Skeleton<'a> {
    code: &'a Code<'a>,
    record: &'a Record,
    /// The instructions of each block that are there, jumps excepted, in their order.
    present: Vec<Vec<usize>>,
    /// The block of an instruction with its index there.
    place: HashMap<usize, (usize, usize)>,
}

impl<'a> Skeleton<'a> {
    fn new(code: &'a Code<'a>, record: &'a Record) -> Skeleton<'a> {
        let mut present = vec![Vec::new(); record.blocks.len()];
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

    /// The first instruction of a block, or of the next that has one; none if they only jump in
    /// circles.
    fn first(&self, block: usize) -> Option<usize> {
        let mut block = block;
        for _ in 0..=self.present.len() {
            match (self.present[block].first(), self.record.blocks[block].successors.as_slice()) {
                (Some(&at), _) => return Some(at),
                (None, &[next]) => block = next as usize,
                (None, _) => return None,
            }
        }
        None
    }

    /// What is passed on the way from `at` to the next instruction.
    fn passed(&self, at: usize, side: Option<usize>) -> Vec<Vec<(Name, Name)>> {
        let mut passed = Vec::new();
        let Some(&(mut block, index)) = self.place.get(&at) else { return passed };
        if self.present[block].get(index + 1).is_some() {
            return passed;
        }
        let mut side = side.unwrap_or(0);
        for _ in 0..=self.present.len() {
            let outline = &self.record.blocks[block];
            if !outline.passes.is_empty() {
                passed.push(outline.passes.clone());
            }
            let Some(&next) = outline.successors.get(side) else { break };
            (block, side) = (next as usize, 0);
            if !self.present[block].is_empty() {
                break;
            }
        }
        passed
    }

    /// Control goes from `at` to `to`; from a branch, to the side with this number.
    fn follow(&self, at: usize, to: Option<usize>, side: Option<usize>) -> Result<(), CodeError> {
        let offset = |to: Option<usize>| to.map_or(0, |to| self.code.insts[to].offset);
        let Some(&(block, index)) = self.place.get(&at) else {
            let fault = CodeFault::Control { from: 0, to: offset(to) };
            return Err(self.code.error(at, fault));
        };
        let successors = self.record.blocks[block].successors.as_slice();
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
