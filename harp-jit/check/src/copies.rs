//! Places that hold the same because one was copied to the other, along all ways (A. Aho and others, "Compilers", 2006, 9.1.5:
//! copy propagation).
//!
//! A register that is tested was often loaded from the frame, where the value stays: what is found out about the one
//! is true of the other.

use harp_isa::{Op, OpcodeFlags};
use hashbrown::HashMap;
use smallvec::SmallVec;

use crate::code::Flow;
use crate::frame::{Accessed, Frame};
use crate::places::{Place, Places};
use crate::record::Holder;
use crate::skeleton::Skeleton;
use crate::structure::Structure;

/// Pairs of places that hold the same, each in both orders, ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Same(Vec<(Place, Place)>);

impl Same {
    fn of(&self, place: Place) -> impl Iterator<Item = Place> + '_ {
        let first = self.0.partition_point(|&(one, _)| one < place);
        self.0[first..].iter().take_while(move |&&(one, _)| one == place).map(|&(_, other)| other)
    }

    /// A place holds something else.
    fn lose(&mut self, place: Place) {
        if self.of(place).next().is_some() {
            self.0.retain(|&(one, other)| one != place && other != place);
        }
    }

    /// A place holds what another does.
    fn copy(&mut self, to: Place, from: Place) {
        if to == from {
            return;
        }
        self.lose(to);
        let all: SmallVec<[Place; 4]> = self.of(from).chain([from]).collect();
        self.0.extend(all.into_iter().flat_map(|other| [(to, other), (other, to)]));
        self.0.sort_unstable();
    }

    /// What is the same here and there.
    fn meet(&mut self, other: &Same) {
        self.0.retain(|pair| other.0.binary_search(pair).is_ok());
    }
}

/// What was copied where, so far as it is still there.
pub(crate) struct Copies<'a> {
    pub(crate) structure: &'a Structure,
    pub(crate) skeleton: &'a Skeleton<'a>,
    pub(crate) frame: &'a Frame<'a>,
}

impl Copies<'_> {
    /// By instruction, the other places that hold what the one does that is `wanted` in front of it.
    pub(crate) fn find(
        &self,
        wanted: impl Fn(usize) -> Option<Place>,
    ) -> HashMap<usize, SmallVec<[Place; 2]>> {
        let mut found = HashMap::new();
        for (block, start) in self.structure.blocks.iter().zip(self.solve()) {
            let mut same = start.unwrap_or_default();
            for at in block.first..=block.last {
                if let Some(place) = wanted(at) {
                    found.insert(at, same.of(place).collect());
                }
                self.step(&mut same, at, block.last);
            }
        }
        found
    }

    /// What is the same at the beginning of each block.
    fn solve(&self) -> Vec<Option<Same>> {
        let blocks = &self.structure.blocks;
        let mut starts: Vec<Option<Same>> = vec![None; blocks.len()];
        let mut ends = starts.clone();
        let mut changes = true;
        while std::mem::take(&mut changes) {
            for (number, block) in blocks.iter().enumerate() {
                let ways = block.edges.iter().filter_map(|edge| {
                    let mut same: Same = Option::clone(&ends[edge.from])?;
                    self.pass(&mut same, blocks[edge.from].last, edge.taken);
                    Some(same)
                });
                // Nothing is known to be the same where the function is entered.
                let entry = (number == 0).then(Same::default);
                let met = ways.chain(entry).reduce(|mut all, way| {
                    all.meet(&way);
                    all
                });
                if met == starts[number] {
                    continue;
                }
                starts[number].clone_from(&met);
                let Some(mut same) = met else { continue };
                (block.first..=block.last).for_each(|at| self.step(&mut same, at, block.last));
                ends[number] = Some(same);
                changes = true;
            }
        }
        starts
    }

    /// Executes an instruction of a block that ends at `last`.
    fn step(&self, same: &mut Same, at: usize, last: usize) {
        let placed = &self.frame.code.insts[at];
        self.lose(same, placed.note.map(|note| note.undefined.as_slice()).unwrap_or_default());
        let Accessed { to, from } = self.frame.accessed(at);
        let op = placed.instruction.op;
        match (placed.flow, to) {
            (Flow::Call, _) => same.0.clear(),
            (_, Some(to)) => match self.copied(op, &from) {
                Some(from) if placed.instruction.guard.is_none() => same.copy(to, from),
                _ => same.lose(to),
            },
            (_, None) if changes_memory(op) => {
                self.frame.places.exposed().for_each(|place| same.lose(place));
            }
            (_, None) => {}
        }
        if changes_memory(op) && to.is_some_and(|to| !self.frame.places.is_slot(to)) {
            self.frame.places.exposed().for_each(|place| same.lose(place));
        }
        if at != last {
            self.pass(same, at, None);
        }
    }

    /// What blocks pass that end between `at` and the next instruction.
    fn pass(&self, same: &mut Same, at: usize, taken: Option<bool>) {
        self.skeleton.each_passed(at, taken, |block| {
            self.lose(same, self.skeleton.undefined(block));
        });
    }

    /// What is not meant may be taken to be anything, in one place and in another.
    fn lose(&self, same: &mut Same, undefined: &[Holder]) {
        self.frame.places.of(undefined).for_each(|place| same.lose(place));
    }

    /// What an operation copies, which reads from these places.
    fn copied(&self, op: Op, from: &[Place]) -> Option<Place> {
        match op {
            Op::Ld { .. } => from.iter().copied().find(|&place| self.frame.places.is_slot(place)),
            Op::St { value, .. } => Some(Places::gpr(value)),
            Op::Ori { src, imm: 0, .. } | Op::Addi { src, imm: 0, .. } => Some(Places::gpr(src)),
            _ => None,
        }
    }
}

fn changes_memory(op: Op) -> bool {
    op.opcode().flags().intersects(OpcodeFlags::STORE | OpcodeFlags::ATOMIC)
}

#[cfg(test)]
mod tests {
    use harp_isa::Instruction;

    use super::*;
    use crate::record::Record;
    use crate::testing::{p, r, with_code};

    /// What else holds what `%r1` does in front of the last of these instructions but the trap.
    fn copies(instructions: &[Instruction]) -> Vec<Place> {
        with_code(instructions, |frame, structure| {
            let record = Record::default();
            let skeleton = &Skeleton::new(frame.code, &record);
            let copies = Copies { structure, skeleton, frame };
            let last = instructions.len() - 1;
            let found = copies.find(|at| (at == last).then_some(Places::gpr(r(1))));
            found[&last].to_vec()
        })
    }

    fn copy(dst: u8, src: u8) -> Instruction {
        Instruction::new(Op::Ori { dst: r(dst), src: r(src), imm: 0 })
    }

    fn guarded(op: Op) -> Instruction {
        Instruction { guard: Some(p(0)), op }
    }

    #[test]
    fn copies_of_copies_hold_the_same_until_they_are_written() {
        let [two, three] = [2, 3].map(|index| Places::gpr(r(index)));
        let test = Instruction::new(Op::Rtop { dst: p(1), src: r(1) });
        assert_eq!(copies(&[copy(2, 1), copy(3, 2), test]), [two, three]);
        assert_eq!(copies(&[copy(2, 1), copy(3, 2), copy(2, 4), test]), [three]);
        let written = guarded(Op::Ldi { dst: r(3), imm: 0 });
        assert_eq!(copies(&[copy(2, 1), copy(3, 2), written, test]), [two]);
        let moved = guarded(copy(2, 1).op);
        assert_eq!(copies(&[moved, test]), [], "in some lanes only");
    }

    #[test]
    fn what_was_copied_on_one_way_only_is_not_the_same() {
        let skip = guarded(Op::Jmpi { rel: 4 });
        let test = Instruction::new(Op::Rtop { dst: p(1), src: r(1) });
        let [two, three] = [2, 3].map(|index| Places::gpr(r(index)));
        assert_eq!(copies(&[copy(3, 1), skip, copy(2, 1), test]), [three]);
        assert_eq!(copies(&[copy(2, 1), skip, copy(2, 1), test]), [two]);
    }
}
