//! Predicates that are computed again.
//!
//! Conditions are computed anew for each use. Lanes that are parted by one must be known to be parted by the other,
//! so what the first one found is remembered in a place of its own, which no instruction writes. That the
//! second one is the same is found by numbering values, block by block (J. Cocke and J. Schwartz, "Programming
//! languages and their compilers", 1970: local value numbering).

use harp_isa::{Op, Opcode, OpcodeFlags, Operand};
use hashbrown::HashMap;
use smallvec::{SmallVec, smallvec};

use super::code::{Code, Flow};
use super::live::{Accessed, After};
use super::places::{Place, Places};
use super::value::{is_pure, operands};

/// Where a predicate is found that was computed before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) place: Place,
    /// Whether it is true where that is false.
    pub(super) inverted: bool,
}

/// The number of a value in its block, and whether what is meant is its opposite. Equal numbers are equal bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
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

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
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
    /// Values that are zero where these two are the same.
    differences: HashMap<usize, [Source; 2]>,
    count: usize,
}

impl<'a> Numbering<'a> {
    fn new(places: &'a Places) -> Numbering<'a> {
        Numbering {
            places,
            held: HashMap::new(),
            known: HashMap::new(),
            predicates: HashMap::new(),
            differences: HashMap::new(),
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
            self.places.exposed().for_each(|place| {
                self.held.remove(&place);
            });
            return None;
        }
        for place in placed.note.iter().flat_map(|note| self.places.of(&note.undefined)) {
            self.held.remove(&place);
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
            return Some(Numbered { value, inverted: !inverted });
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
        Some(Numbered { value, inverted })
    }

    /// The same as a value in a register.
    fn loaded(&mut self, source: Source) -> Source {
        match source {
            Source::Imm(_) => {
                let ldi = Expression { opcode: Opcode::Ldi, operands: smallvec![source] };
                Source::Value(Numbered { value: self.number(ldi), inverted: false })
            }
            source => source,
        }
    }
}

#[cfg(test)]
mod tests {
    use harp_isa::{ArchId, Gpr, Instruction, Pred, Role as Access};

    use super::super::code::Bytes;
    use super::super::record::Entry;
    use super::*;

    /// What is remembered and found again behind each of these operations, which access registers only.
    fn after(ops: &[Op]) -> Vec<After> {
        let arch: ArchId = "4w8/8/16/16+x".parse().unwrap();
        let mut bytes = Vec::new();
        for op in ops.iter().copied().chain([Op::Trap {}]) {
            harp_isa::encode(&Instruction::new(op), arch, &mut bytes).unwrap();
        }
        let bytes = Bytes { arch, bytes: &bytes, literals: &[], linked: &[] };
        let code = Code::decode(bytes, &[]).unwrap();
        let places = Places::new(&Entry::default(), arch.word().bytes().into());
        let accessed = |at: usize| {
            let mut accessed = Accessed { to: None, from: SmallVec::new() };
            code.insts[at].instruction.for_each_register(|operand, _, access| {
                let Some(place) = Places::operand(operand) else { return };
                match access {
                    Access::Def => accessed.to = Some(place),
                    _ => accessed.from.push(place),
                }
            });
            accessed
        };
        let mut after = vec![After::default(); code.insts.len()];
        find(&code, 0..ops.len(), &places, accessed, &mut after);
        after
    }

    fn r(index: u8) -> Gpr {
        Gpr::new(index)
    }

    fn p(index: u8) -> Pred {
        Pred::new(index)
    }

    #[test]
    fn conditions_are_found_again_in_other_words() {
        let compared = Op::Eqp { dst: p(1), a: r(2), b: r(1) };
        let difference = Op::Sub { dst: r(3), a: r(1), b: r(2) };
        for (test, inverted) in [
            (Op::Rtop { dst: p(0), src: r(3) }, true),
            (Op::Iszero { dst: p(0), src: r(3) }, false),
        ] {
            let after = after(&[difference, test, compared]);
            let place = after[1].remembered.expect("it is asked for again");
            assert_eq!(after[2].known, Some(Known { place, inverted }));
        }
        let after = after(&[
            Op::Subi { dst: r(3), src: r(1), imm: 5 },
            Op::Iszero { dst: p(0), src: r(3) },
            Op::Ldi { dst: r(2), imm: 5 },
            Op::Eqp { dst: p(1), a: r(1), b: r(2) },
        ]);
        let place = after[1].remembered.expect("it is asked for again");
        assert_eq!(after[3].known, Some(Known { place, inverted: false }));
    }

    #[test]
    fn other_values_are_other_conditions() {
        let test = |dst| Op::Rtop { dst, src: r(1) };
        let again = after(&[test(p(0)), test(p(1))]);
        assert!(again[1].known.is_some());
        let changed = after(&[test(p(0)), Op::Addi { dst: r(1), src: r(1), imm: 1 }, test(p(1))]);
        assert_eq!(changed[0].remembered, None);
        assert_eq!(changed[2].known, None);
        let other = after(&[test(p(0)), Op::Rtop { dst: p(1), src: r(2) }]);
        assert_eq!(other[1].known, None);
    }
}
