//! Numbers of values: what is computed alike has the same number (J. Cocke and J. Schwartz, "Programming languages and
//! their compilers", 1970: value numbering).
//!
//! Within a block, equal numbers are equal bits. The numbers of what places hold at the beginning of a block are the same in
//! all blocks, so that what is computed from it is known to be computed alike elsewhere.

use harp_isa::{Op, Opcode, OpcodeFlags, Operand};
use hashbrown::{HashMap, HashSet};
use smallvec::{SmallVec, smallvec};

use crate::code::Flow;
use crate::frame::{Accessed, Frame};
use crate::op::{is_pure, operands};
use crate::places::{Place, Places};

/// The number of a value and whether what is meant is its opposite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ValueNumber {
    pub(crate) value: usize,
    pub(crate) inverted: bool,
}

/// What a value depends on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Expression {
    opcode: Opcode,
    operands: SmallVec<[Source; 2]>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Source {
    Value(ValueNumber),
    Imm(i64),
}

/// Where a value comes from.
#[derive(Clone, Debug)]
enum Made {
    /// A place held it at the beginning of the block.
    Initial(Place),
    /// It was computed from these.
    From(SmallVec<[usize; 2]>),
}

/// No more places are looked at than these.
const MOST_PLACES: usize = 8;

/// The values that places hold.
pub(crate) struct Numbering<'a> {
    places: &'a Places,
    held: HashMap<Place, ValueNumber>,
    /// Whether what is held nowhere is not any more what was there at the beginning of the block.
    lost: bool,
    /// What places hold at the beginning of a block.
    initial: HashMap<Place, usize>,
    made: HashMap<usize, Made>,
    known: HashMap<Expression, usize>,
    /// The predicates that numbers of registers stand for.
    predicates: HashMap<usize, ValueNumber>,
    /// Values that are zero where these two are the same.
    differences: HashMap<usize, [Source; 2]>,
    count: usize,
}

impl<'a> Numbering<'a> {
    pub(crate) fn new(places: &'a Places) -> Numbering<'a> {
        Numbering {
            places,
            held: HashMap::new(),
            lost: false,
            initial: HashMap::new(),
            made: HashMap::new(),
            known: HashMap::new(),
            predicates: HashMap::new(),
            differences: HashMap::new(),
            count: 0,
        }
    }

    /// A block begins.
    pub(crate) fn begin(&mut self) {
        self.held.clear();
        self.lost = false;
    }

    /// The places from which a value is computed that was none of theirs, if they still hold what they held at the
    /// beginning of the block, and there are not too many.
    pub(crate) fn computed_from(&self, value: usize) -> Option<SmallVec<[Place; 2]>> {
        let Made::From(operands) = self.made.get(&value)? else { return None };
        let mut todo = operands.clone();
        let mut seen = HashSet::new();
        let mut places = SmallVec::new();
        while let Some(value) = todo.pop() {
            if !seen.insert(value) {
                continue;
            }
            match self.made.get(&value)? {
                Made::From(operands) => todo.extend(operands.iter().copied()),
                &Made::Initial(place) => {
                    let is_there = match self.held.get(&place) {
                        Some(held) => *held == ValueNumber { value, inverted: false },
                        None => !self.lost,
                    };
                    if !is_there || places.len() == MOST_PLACES {
                        return None;
                    }
                    places.push(place);
                }
            }
        }
        Some(places)
    }

    fn fresh(&mut self) -> ValueNumber {
        self.count += 1;
        ValueNumber { value: self.count, inverted: false }
    }

    fn of(&mut self, place: Place) -> ValueNumber {
        match self.held.get(&place) {
            Some(&number) => number,
            None => {
                let number = if self.lost { self.fresh() } else { self.at_first(place) };
                self.held.insert(place, number);
                number
            }
        }
    }

    fn at_first(&mut self, place: Place) -> ValueNumber {
        if let Some(&value) = self.initial.get(&place) {
            return ValueNumber { value, inverted: false };
        }
        let number = self.fresh();
        self.initial.insert(place, number.value);
        self.made.insert(number.value, Made::Initial(place));
        number
    }

    /// A place holds something of which nothing is known.
    fn lose(&mut self, place: Place) {
        let number = self.fresh();
        self.held.insert(place, number);
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
            Some(guard) => self.written(op, to, Places::pred(guard)),
        };
        let computed = number.filter(|_| Self::is_test(op));
        let number = number.unwrap_or_else(|| self.fresh());
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

    /// The number of a predicate in a register: 1 is written over 0 where it is true.
    fn written(&mut self, op: Op, to: Place, guard: Place) -> Option<ValueNumber> {
        let zero = Expression { opcode: Opcode::Ldi, operands: smallvec![Source::Imm(0)] };
        let old = self.held.get(&to)?;
        let is_zero = self.known.get(&zero) == Some(&old.value) && !old.inverted;
        let guard = self.of(guard);
        (is_zero && matches!(op, Op::Ldi { imm: 1, .. })).then(|| self.in_register(guard))
    }

    /// The number of 0 or 1 for a predicate.
    fn in_register(&mut self, predicate: ValueNumber) -> ValueNumber {
        let operands = smallvec![Source::Value(predicate)];
        let value = self.number(Expression { opcode: Opcode::Ptor, operands });
        self.predicates.insert(value, predicate);
        ValueNumber { value, inverted: false }
    }

    fn number(&mut self, expression: Expression) -> usize {
        let next = self.count + 1;
        let operands = expression.operands.iter().filter_map(|operand| match operand {
            Source::Value(number) => Some(number.value),
            Source::Imm(_) => None,
        });
        let operands = operands.collect();
        let value = *self.known.entry(expression).or_insert(next);
        if value == next {
            self.count = next;
            self.made.insert(value, Made::From(operands));
        }
        value
    }

    /// Whether an operation makes a predicate of general registers.
    fn is_test(op: Op) -> bool {
        let operands = operands(op);
        let is_pred = |operand: &Operand| matches!(operand, Operand::Pred(_));
        operands.first().is_some_and(is_pred) && !operands[1..].iter().any(is_pred)
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
            Op::Ptor { src, .. } => {
                let predicate = self.of(Places::pred(src));
                return Some(self.in_register(predicate));
            }
            Op::Rtop { src, .. } => {
                let number = self.of(Places::gpr(src)).value;
                if let Some(&predicate) = self.predicates.get(&number) {
                    return Some(predicate);
                }
            }
            Op::Notp { src, .. } => {
                let ValueNumber { value, inverted } = self.of(Places::pred(src));
                return Some(ValueNumber { value, inverted: !inverted });
            }
            _ => {}
        }
        let opcode = op.opcode();
        if !is_pure(op) {
            return None;
        }
        let operands = operands(op);
        let source = |operand: &Operand| match *operand {
            Operand::Gpr(reg) => Source::Value(self.of(Places::gpr(reg))),
            Operand::Pred(reg) => Source::Value(self.of(Places::pred(reg))),
            Operand::Imm(imm) => Source::Imm(imm),
        };
        let mut operands: SmallVec<[Source; 2]> = operands[1..].iter().map(source).collect();
        // Whether something is zero is the opposite of whether it is not.
        let (opcode, inverted) = match opcode {
            Opcode::Iszero => (Opcode::Rtop, true),
            opcode => (opcode, false),
        };
        if let (Opcode::Rtop, [Source::Value(tested)]) = (opcode, &*operands)
            && let Some(parts) = self.differences.get(&tested.value)
        {
            operands = parts.iter().cloned().collect();
            let value = self.number(Expression { opcode: Opcode::Eqp, operands });
            return Some(ValueNumber { value, inverted: !inverted });
        }
        if opcode == Opcode::Eqp {
            operands.sort_unstable();
        }
        let value = self.number(Expression { opcode, operands: operands.clone() });
        if let [one, other] = &*operands
            && matches!(opcode, Opcode::Sub | Opcode::Subi | Opcode::Xor | Opcode::Xori)
        {
            let mut parts = [one.clone(), other.clone()].map(|part| self.loaded(part));
            parts.sort_unstable();
            self.differences.insert(value, parts);
        }
        Some(ValueNumber { value, inverted })
    }

    /// The same as a value in a register.
    fn loaded(&mut self, source: Source) -> Source {
        match source {
            Source::Imm(_) => {
                let ldi = Expression { opcode: Opcode::Ldi, operands: smallvec![source] };
                Source::Value(ValueNumber { value: self.number(ldi), inverted: false })
            }
            source => source,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{p, r, with_ops};

    #[test]
    fn what_is_computed_alike_in_other_blocks_has_the_same_number() {
        let difference = Op::Sub { dst: r(3), a: r(1), b: r(2) };
        let ops = [difference, Op::Rtop { dst: p(0), src: r(3) }];
        with_ops(&ops, |frame, _| {
            let mut numbering = Numbering::new(frame.places);
            let mut block = || {
                numbering.begin();
                numbering.step(frame, 0);
                let number = numbering.step(frame, 1).expect("it is a test");
                (number, numbering.computed_from(number.value))
            };
            let (first, from) = block();
            assert_eq!(from.as_deref(), Some(&[r(2), r(1)].map(Places::gpr)[..]));
            assert_eq!(block().0, first);
        });
    }

    #[test]
    fn values_are_looked_at_once_however_often_they_are_used() {
        let first = Op::Sub { dst: r(1), a: r(3), b: r(4) };
        let twice = Op::Add { dst: r(1), a: r(1), b: r(1) };
        let last = Op::Rtop { dst: p(0), src: r(1) };
        let ops: Vec<Op> = [first].into_iter().chain([twice; 64]).chain([last]).collect();
        with_ops(&ops, |frame, _| {
            let mut numbering = Numbering::new(frame.places);
            numbering.begin();
            let steps = (0..ops.len()).map(|at| numbering.step(frame, at));
            let number = steps.last().flatten().expect("it is a test");
            let from = numbering.computed_from(number.value);
            assert_eq!(from.map(|from| from.len()), Some(2));
        });
    }

    #[test]
    fn nothing_is_computed_from_what_is_not_there_any_more() {
        let changed = Op::Addi { dst: r(1), src: r(1), imm: 1 };
        let ops = [changed, Op::Rtop { dst: p(0), src: r(1) }];
        with_ops(&ops, |frame, _| {
            let mut numbering = Numbering::new(frame.places);
            numbering.begin();
            numbering.step(frame, 0);
            let number = numbering.step(frame, 1).expect("it is a test");
            assert_eq!(numbering.computed_from(number.value), None);
        });
    }
}
