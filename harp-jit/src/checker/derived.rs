//! What sides of a split compute from what they found there.
//!
//! Both sides may come through the same block, one after the other, or do the same for another reason. What an
//! instruction makes of the same operands is the same, so it is given a name by what it is made of (hash
//! consing, as in value numbering).

use std::cell::RefCell;

use harp_isa::{Op, Opcode, Operand};
use hashbrown::HashMap;
use smallvec::{SmallVec, smallvec};

use super::origins::Origin;
use super::places::Place;
use super::value::operands;

/// The name of something that was computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Derived(u32);

/// What an operand is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Source {
    Constant(u64),
    Immediate(i64),
    From(Origin),
}

/// What something was made of.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Expression {
    opcode: Opcode,
    sources: SmallVec<[Source; 3]>,
}

#[derive(Debug)]
struct Entry {
    /// The places that it depends on.
    places: SmallVec<[Place; 4]>,
    depth: u32,
}

/// No more is followed than so many steps one after the other, and so many places.
const MOST_DEPTH: u32 = 12;
const MOST_PLACES: usize = 8;

/// All that was computed.
#[derive(Debug, Default)]
pub(super) struct Computations {
    known: RefCell<HashMap<Expression, Derived>>,
    entries: RefCell<Vec<Entry>>,
}

impl Computations {
    /// What `op` makes of these operands, its result left out; unknown if that is not followed.
    pub(super) fn result(&self, op: Op, source: impl Fn(Operand) -> Source) -> Origin {
        let sources: SmallVec<[Source; 3]> =
            operands(op)[1..].iter().map(|&operand| source(operand)).collect();
        let Some((places, depth)) = self.made_of(&sources) else { return Origin::Unknown };
        let expression = Expression { opcode: op.opcode(), sources };
        let mut entries = self.entries.borrow_mut();
        let derived = *self.known.borrow_mut().entry(expression).or_insert_with(|| {
            entries.push(Entry { places, depth });
            Derived((entries.len() - 1) as u32)
        });
        Origin::Derived(derived)
    }

    /// The places that operands depend on, and how many steps the result is away from them.
    fn made_of(&self, sources: &[Source]) -> Option<(SmallVec<[Place; 4]>, u32)> {
        let entries = self.entries.borrow();
        let mut places: SmallVec<[Place; 4]> = SmallVec::new();
        let mut depth = 1;
        for source in sources {
            match *source {
                Source::Constant(_) | Source::Immediate(_) => {}
                Source::From(Origin::Place(place)) => places.push(place),
                Source::From(Origin::Derived(Derived(index))) => {
                    let entry = &entries[index as usize];
                    places.extend(entry.places.iter().copied());
                    depth = depth.max(entry.depth + 1);
                }
                Source::From(Origin::Unknown) => return None,
            }
        }
        places.sort_unstable();
        places.dedup();
        (depth <= MOST_DEPTH && places.len() <= MOST_PLACES).then_some((places, depth))
    }

    /// The places that a value depends on; none if that is not known.
    pub(super) fn places(&self, origin: Origin) -> Option<SmallVec<[Place; 4]>> {
        match origin {
            Origin::Place(place) => Some(smallvec![place]),
            Origin::Derived(Derived(index)) => {
                Some(self.entries.borrow()[index as usize].places.clone())
            }
            Origin::Unknown => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use harp_isa::Gpr;

    use super::*;

    #[test]
    fn the_same_of_the_same_is_the_same() {
        let computations = Computations::default();
        let [a, b] = [0, 1].map(Place::from_index);
        let gpr = Gpr::new;
        let of = |op, left: Origin| {
            computations.result(op, |operand| match operand {
                Operand::Gpr(reg) if reg == gpr(1) => Source::From(left),
                Operand::Gpr(_) => Source::From(Origin::Place(b)),
                Operand::Pred(_) => Source::Constant(0),
                Operand::Imm(imm) => Source::Immediate(imm),
            })
        };
        let one = of(Op::Add { dst: gpr(0), a: gpr(1), b: gpr(2) }, Origin::Place(a));
        let same = of(Op::Add { dst: gpr(5), a: gpr(1), b: gpr(3) }, Origin::Place(a));
        assert_eq!(one, same);
        let other = of(Op::Sub { dst: gpr(0), a: gpr(1), b: gpr(2) }, Origin::Place(a));
        assert_ne!(one, other);
        assert_eq!(computations.places(one).as_deref(), Some(&[a, b][..]));
        let added = |imm| of(Op::Addi { dst: gpr(0), src: gpr(1), imm }, one);
        assert_ne!(added(1), added(2));
        assert_eq!(
            of(Op::Addi { dst: gpr(0), src: gpr(1), imm: 1 }, Origin::Unknown),
            Origin::Unknown
        );
        let deep = (0..=MOST_DEPTH)
            .fold(one, |deep, _| of(Op::Addi { dst: gpr(0), src: gpr(1), imm: 1 }, deep));
        assert_eq!(deep, Origin::Unknown, "it is not followed for ever");
    }
}
