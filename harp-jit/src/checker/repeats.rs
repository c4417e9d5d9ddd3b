//! Predicates that are computed again.
//!
//! Conditions are computed anew for each use. Lanes that are parted by one must be known to be parted by the other,
//! so what the first one found is remembered in a place of its own, which no instruction writes. That the
//! second one is the same is found by numbering values, block by block (J. Cocke and J. Schwartz, "Programming
//! languages and their compilers", 1970: local value numbering).

use harp_isa::{Instruction, Op, Opcode, OpcodeFlags, Operand, Role as Access};
use hashbrown::HashMap;
use smallvec::{SmallVec, smallvec};

use super::code::{Code, Flow};
use super::live::{Accessed, After};
use super::places::{Place, Places};

/// Where a predicate is found that was computed before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) place: Place,
    /// Whether it is true where that is false.
    pub(super) inverted: bool,
}

/// The number of a value in its block, and whether what is meant is its opposite. Equal numbers are equal bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Numbered {
    value: usize,
    inverted: bool,
}

/// What a value depends on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Expression {
    opcode: Opcode,
    operands: SmallVec<[Source; 2]>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Source {
    Value(Numbered),
    Imm(i64),
}

/// A predicate, where it was computed, and where it is again.
struct Test {
    value: usize,
    at: usize,
    /// Whether the first time it was the opposite.
    inverted: bool,
    again: Vec<(usize, bool)>,
}

/// Says of the instructions of a block which results are remembered, and asked for again. `accessed` says what
/// an instruction reads and writes.
pub(super) fn find(
    code: &Code<'_>,
    insts: impl Iterator<Item = usize>,
    places: &Places,
    accessed: impl Fn(usize) -> Accessed,
    after: &mut [After],
) {
    let mut numbering = Numbering::new(places);
    let mut tests: Vec<Test> = Vec::new();
    for at in insts {
        after[at].sources = numbering.sources(code.insts[at].instruction.op);
        let Some(number) = numbering.step(code, at, &accessed(at)) else { continue };
        match tests.iter_mut().find(|test| test.value == number.value) {
            Some(first) => first.again.push((at, number.inverted)),
            None => {
                let Numbered { value, inverted } = number;
                tests.push(Test { value, at, inverted, again: Vec::new() });
            }
        }
    }
    let mut used: Vec<(Place, Option<usize>)> =
        places.remembered().map(|place| (place, None)).collect();
    for test in tests.iter().filter(|test| !test.again.is_empty()) {
        let is_free = |until: Option<usize>| until.is_none_or(|until| until < test.at);
        let Some((place, until)) = used.iter_mut().find(|(_, until)| is_free(*until)) else {
            continue;
        };
        after[test.at].remembered = Some(*place);
        for &(at, inverted) in &test.again {
            after[at].known = Some(Known { place: *place, inverted: inverted != test.inverted });
            *until = Some(at);
        }
        if let Some(last) = *until {
            after[last].dead.push(*place);
        }
    }
}

/// The values that places hold.
struct Numbering<'a> {
    places: &'a Places,
    held: HashMap<Place, Numbered>,
    known: HashMap<Expression, usize>,
    /// The predicates that numbers of registers stand for.
    predicates: HashMap<usize, Numbered>,
    count: usize,
}

impl<'a> Numbering<'a> {
    fn new(places: &'a Places) -> Numbering<'a> {
        Numbering {
            places,
            held: HashMap::new(),
            known: HashMap::new(),
            predicates: HashMap::new(),
            count: 0,
        }
    }

    fn fresh(&mut self) -> Numbered {
        self.count += 1;
        Numbered { value: self.count, inverted: false }
    }

    fn of(&mut self, place: Place) -> Numbered {
        match self.held.get(&place) {
            Some(&number) => number,
            None => {
                let number = self.fresh();
                self.held.insert(place, number);
                number
            }
        }
    }

    /// Executes an instruction: the number of the predicate that it computes, if it does in all lanes.
    fn step(&mut self, code: &Code<'_>, at: usize, accessed: &Accessed) -> Option<Numbered> {
        let placed = &code.insts[at];
        let op = placed.instruction.op;
        let flags = op.opcode().flags();
        if placed.flow == Flow::Call {
            self.held.clear();
            return None;
        }
        if flags.intersects(OpcodeFlags::STORE | OpcodeFlags::ATOMIC) && accessed.to.is_none() {
            self.held.retain(|&place, _| !self.places.is_slot(place));
            return None;
        }
        for &holder in placed.note.iter().flat_map(|note| &note.undefined) {
            self.places.of(holder).and_then(|place| self.held.remove(&place));
        }
        let to = accessed.to?;
        let number = match placed.instruction.guard {
            None => self.value(op, accessed),
            Some(guard) => self.written(op, to, Places::pred(guard)),
        };
        let computed = number.filter(|_| Self::is_test(op));
        let number = number.unwrap_or_else(|| self.fresh());
        self.held.insert(to, number);
        computed
    }

    /// The predicates that an operation exchanges or masks.
    fn sources(&mut self, op: Op) -> SmallVec<[Numbered; 2]> {
        match op {
            Op::Xorp { a, b, .. } | Op::Andp { a, b, .. } => {
                [a, b].into_iter().map(|reg| self.of(Places::pred(reg))).collect()
            }
            _ => SmallVec::new(),
        }
    }

    /// The number of a predicate in a register: 1 is written over 0 where it is true.
    fn written(&mut self, op: Op, to: Place, guard: Place) -> Option<Numbered> {
        let zero = Expression { opcode: Opcode::Ldi, operands: smallvec![Source::Imm(0)] };
        let old = self.held.get(&to)?;
        let is_zero = self.known.get(&zero) == Some(&old.value) && !old.inverted;
        let guard = self.of(guard);
        (is_zero && matches!(op, Op::Ldi { imm: 1, .. })).then(|| self.in_register(guard))
    }

    /// The number of 0 or 1 for a predicate.
    fn in_register(&mut self, predicate: Numbered) -> Numbered {
        let operands = smallvec![Source::Value(predicate)];
        let value = self.number(Expression { opcode: Opcode::Ptor, operands });
        self.predicates.insert(value, predicate);
        Numbered { value, inverted: false }
    }

    fn number(&mut self, expression: Expression) -> usize {
        let next = self.count + 1;
        let value = *self.known.entry(expression).or_insert(next);
        self.count = self.count.max(value);
        value
    }

    /// Whether an operation makes a predicate of general registers.
    fn is_test(op: Op) -> bool {
        let operands = operands(op);
        let is_pred = |operand: &Operand| matches!(operand, Operand::Pred(_));
        operands.first().is_some_and(is_pred) && !operands[1..].iter().any(is_pred)
    }

    /// The number of what an operation computes, if that depends on its operands alone.
    fn value(&mut self, op: Op, accessed: &Accessed) -> Option<Numbered> {
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
                let Numbered { value, inverted } = self.of(Places::pred(src));
                return Some(Numbered { value, inverted: !inverted });
            }
            _ => {}
        }
        let opcode = op.opcode();
        let pure = OpcodeFlags::FLOAT | OpcodeFlags::EXTENSION | OpcodeFlags::DIVIDES;
        let again = matches!(op, Op::Csr { .. } | Op::Tid { .. }) || changes(op);
        if !pure.contains(opcode.flags()) || again {
            return None;
        }
        let operands = operands(op);
        let source = |operand: &Operand| match *operand {
            Operand::Gpr(reg) => Source::Value(self.of(Places::gpr(reg))),
            Operand::Pred(reg) => Source::Value(self.of(Places::pred(reg))),
            Operand::Imm(imm) => Source::Imm(imm),
        };
        let operands = operands[1..].iter().map(source).collect();
        // Whether something is zero is the opposite of whether it is not.
        let (opcode, inverted) = match opcode {
            Opcode::Iszero => (Opcode::Rtop, true),
            opcode => (opcode, false),
        };
        let value = self.number(Expression { opcode, operands });
        Some(Numbered { value, inverted })
    }
}

/// Whether what an operation computes depends on what is where the result goes.
fn changes(op: Op) -> bool {
    let mut changes = false;
    Instruction::new(op).for_each_register(|_, _, access| changes |= access == Access::Mod);
    changes
}

/// The operands of an operation, its result first.
fn operands(op: Op) -> SmallVec<[Operand; 4]> {
    let mut operands = SmallVec::new();
    op.for_each_operand(|operand| operands.push(operand));
    operands
}
