//! Numbers of values: what is computed alike has the same number (J. Cocke and J. Schwartz, "Programming languages and
//! their compilers", 1970: value numbering).
//!
//! Within a block, equal numbers are equal bits. The numbers of what places hold at the beginning of a block are the same in
//! all blocks, so that what is computed from it is known to be computed alike elsewhere.

use std::collections::BTreeSet;

use harp_isa::{ArchId, Op, Opcode, OpcodeFlags, Operand};
use hashbrown::{HashMap, HashSet};
use smallvec::{SmallVec, smallvec};

use crate::code::Flow;
use crate::frame::{Accessed, Frame};
use crate::number::Precision;
use crate::op::{is_pure, operands};
use crate::places::{Place, Places};
use crate::structure::Structure;
use crate::term::{Origin, Source, Terms};

/// The number of a value, or of its opposite if `inverted`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ValueNumber {
    /// Its value at the beginning of the block, or the operation that computed it.
    pub(crate) value: Origin,
    pub(crate) inverted: bool,
}

impl ValueNumber {
    fn of(value: Origin) -> ValueNumber {
        ValueNumber { value, inverted: false }
    }
}

/// Registers that hold what a word of the frame does.
pub(crate) type Copies = HashMap<Place, Place>;

/// The values that places hold.
pub(crate) struct Numbering<'a> {
    places: &'a Places,
    terms: Terms,
    held: HashMap<Place, ValueNumber>,
    /// Whether what is held nowhere is not any more what was there at the beginning of the block.
    lost: bool,
    /// Numbers of predicates that are in registers, as 0 or 1.
    predicates: HashSet<ValueNumber>,
    /// Values of which nothing is known: as many places that there are not hold one each.
    unknown: usize,
}

impl<'a> Numbering<'a> {
    pub(crate) fn new(places: &'a Places) -> Numbering<'a> {
        Numbering {
            places,
            terms: Terms::new(Precision::Thorough),
            held: HashMap::new(),
            lost: false,
            predicates: HashSet::new(),
            unknown: 0,
        }
    }

    /// A block begins, where registers hold what these words of the frame do.
    pub(crate) fn begin(&mut self, copies: &Copies) {
        let held = copies.iter().map(|(&reg, &slot)| (reg, ValueNumber::of(Origin::Place(slot))));
        self.held = held.collect();
        self.lost = false;
    }

    /// The registers of the lanes' own that hold what a word of the frame does.
    fn copies(&self, arch: ArchId) -> Copies {
        let number = |slot: Place| match self.held.get(&slot) {
            None if self.lost => None,
            held => Some(held.copied().unwrap_or(ValueNumber::of(Origin::Place(slot)))),
        };
        let slots = self.places.slots().filter_map(|slot| Some((number(slot)?, slot)));
        let slots: HashMap<ValueNumber, Place> = slots.collect();
        let is_own = |place: Place| !self.places.is_slot(place) && !place.is_shared(arch);
        let registers = self.held.iter().filter(|(place, _)| is_own(**place));
        registers.filter_map(|(&reg, held)| Some((reg, *slots.get(held)?))).collect()
    }

    /// The registers that hold what a word of the frame does at the beginning of each block, by all ways there.
    pub(crate) fn find_copies(frame: &Frame<'_>, structure: &Structure) -> Vec<Copies> {
        let mut numbering = Numbering::new(frame.places);
        let blocks = &structure.blocks;
        let (mut starts, mut ends) = (vec![None; blocks.len()], vec![None; blocks.len()]);
        let mut todo: BTreeSet<usize> = (0..blocks.len()).collect();
        while let Some(number) = todo.pop_first() {
            let block = &blocks[number];
            let seen = block.edges.iter().filter_map(|edge| ends[edge.from].as_ref());
            let mut ways = starts[number].iter().chain(seen);
            let mut copies: Copies =
                ways.next().filter(|_| number > 0).cloned().unwrap_or_default();
            ways.for_each(|way: &Copies| copies.retain(|reg, slot| way.get(reg) == Some(slot)));
            numbering.begin(&copies);
            starts[number] = Some(copies);
            (block.first..=block.last).for_each(|at| _ = numbering.step(frame, at));
            let end = Some(numbering.copies(frame.code.arch));
            if ends[number] != end {
                ends[number] = end;
                let leads = |&to: &usize| blocks[to].edges.iter().any(|edge| edge.from == number);
                todo.extend((0..blocks.len()).filter(leads));
            }
        }
        starts.into_iter().map(Option::unwrap_or_default).collect()
    }

    /// The places from which a value is computed that was none of theirs, if they still hold what they held at the
    /// beginning of the block.
    pub(crate) fn computed_from(&self, value: Origin) -> Option<SmallVec<[Place; 4]>> {
        let is_there = |&place: &Place| match self.held.get(&place) {
            Some(held) => *held == ValueNumber::of(Origin::Place(place)),
            None => !self.lost && place.index() < self.places.count(),
        };
        let places = self.terms.places(value).filter(|_| matches!(value, Origin::Term(_)))?;
        places.iter().all(is_there).then_some(places)
    }

    fn unknown(&mut self) -> ValueNumber {
        self.unknown += 1;
        let place = Place::from_index(self.places.count() + self.unknown);
        ValueNumber::of(Origin::Place(place))
    }

    fn of(&mut self, place: Place) -> ValueNumber {
        if let Some(&number) = self.held.get(&place) {
            return number;
        }
        let initial = ValueNumber::of(Origin::Place(place));
        let number = if self.lost { self.unknown() } else { initial };
        self.held.insert(place, number);
        number
    }

    /// A place holds an unknown value.
    fn lose(&mut self, place: Place) {
        let number = self.unknown();
        self.held.insert(place, number);
    }

    /// Whether an instruction is about to store what is there already.
    pub(crate) fn changes_nothing(&mut self, frame: &Frame<'_>, at: usize) -> bool {
        match (frame.accessed(at).to, frame.code.insts[at].instruction.op) {
            (Some(to), Op::St { value, .. }) => self.of(to) == self.of(Places::gpr(value)),
            _ => false,
        }
    }

    /// Executes an instruction: the number of the predicate that it computes, if it does in all lanes.
    pub(crate) fn step(&mut self, frame: &Frame<'_>, at: usize) -> Option<ValueNumber> {
        let placed = &frame.code.insts[at];
        let accessed = frame.accessed(at);
        let op = placed.instruction.op;
        let flags = op.opcode().flags();
        if placed.flow == Flow::Call {
            self.held.clear();
            self.lost = true;
            return None;
        }
        if flags.intersects(OpcodeFlags::STORE | OpcodeFlags::ATOMIC) && accessed.to.is_none() {
            self.places.exposed().for_each(|place| self.lose(place));
            return None;
        }
        for place in placed.note.iter().flat_map(|note| self.places.of(&note.undefined)) {
            self.lose(place);
        }
        let to = accessed.to?;
        let number = match placed.instruction.guard {
            None => self.value(op, &accessed),
            Some(guard) => self.written(op, to, Places::pred(guard), &accessed),
        };
        let computed = number.filter(|_| is_test(op));
        let number = number.unwrap_or_else(|| self.unknown());
        self.held.insert(to, number);
        computed
    }

    /// The predicates that an operation exchanges or masks.
    pub(crate) fn sources(&mut self, op: Op) -> SmallVec<[ValueNumber; 2]> {
        match op {
            Op::Xorp { a, b, .. } | Op::Andp { a, b, .. } => {
                [a, b].into_iter().map(|reg| self.of(Places::pred(reg))).collect()
            }
            _ => SmallVec::new(),
        }
    }

    /// The number of what is written where a predicate is true. That of the predicate itself, if 1 is written over 0.
    fn written(
        &mut self,
        op: Op,
        to: Place,
        guard: Place,
        accessed: &Accessed,
    ) -> Option<ValueNumber> {
        let zero = self.terms.operation(Opcode::Ldi, smallvec![Source::Immediate(0)]);
        let old = self.of(to);
        if old == ValueNumber::of(zero) && matches!(op, Op::Ldi { imm: 1, .. }) {
            return Some(self.predicate(guard));
        }
        let new = self.value(op, accessed)?;
        let sources = [self.of(guard), new, old].map(|number| self.source(number));
        match self.terms.selected(sources) {
            Origin::Unknown => None,
            value => Some(ValueNumber::of(value)),
        }
    }

    fn predicate(&mut self, place: Place) -> ValueNumber {
        let number = self.of(place);
        self.predicates.insert(number);
        number
    }

    fn source(&self, ValueNumber { value, inverted }: ValueNumber) -> Source {
        let value = Source::From(value);
        match inverted {
            true => Source::From(self.terms.operation(Opcode::Notp, smallvec![value])),
            false => value,
        }
    }

    /// The number of what an operation computes, if that depends on its operands alone.
    fn value(&mut self, op: Op, accessed: &Accessed) -> Option<ValueNumber> {
        let slot = accessed.from.iter().copied().find(|&place| self.places.is_slot(place));
        match op {
            Op::Ld { .. } => return slot.map(|slot| self.of(slot)),
            Op::St { value, .. } => return Some(self.of(Places::gpr(value))),
            Op::Ori { src, imm: 0, .. } | Op::Addi { src, imm: 0, .. } => {
                return Some(self.of(Places::gpr(src)));
            }
            Op::Orp { a, b, .. } if a == b => return Some(self.of(Places::pred(a))),
            Op::Ptor { src, .. } => return Some(self.predicate(Places::pred(src))),
            Op::Rtop { src, .. } => {
                let number = self.of(Places::gpr(src));
                if self.predicates.contains(&number) {
                    return Some(number);
                }
            }
            Op::Notp { src, .. } => {
                let ValueNumber { value, inverted } = self.of(Places::pred(src));
                return Some(ValueNumber { value, inverted: !inverted });
            }
            _ => {}
        }
        if !is_pure(op) {
            return None;
        }
        let mut sources: SmallVec<[Source; 3]> = SmallVec::new();
        for &operand in &operands(op)[1..] {
            sources.push(match (operand, Places::operand(operand)) {
                (Operand::Imm(imm), _) => Source::Immediate(imm),
                (_, place) => {
                    let number = self.of(place?);
                    self.source(number)
                }
            });
        }
        // Whether something is zero is the opposite of whether it is not.
        let (opcode, inverted) = match op.opcode() {
            Opcode::Iszero => (Opcode::Rtop, true),
            opcode => (opcode, false),
        };
        match self.terms.operation(opcode, sources) {
            Origin::Unknown => None,
            value => Some(ValueNumber { value, inverted }),
        }
    }
}

/// Whether an operation makes a predicate of general registers.
fn is_test(op: Op) -> bool {
    let operands = operands(op);
    let is_pred = |operand: &Operand| matches!(operand, Operand::Pred(_));
    operands.first().is_some_and(is_pred) && !operands[1..].iter().any(is_pred)
}
