//! What an operation computes, as far as that is followed.

use harp_isa::{Gpr, Instruction, Op, OpcodeFlags, Role as Access, WordSize};
use smallvec::SmallVec;

use crate::bdd::Set;
use crate::fact::{Form, Mixed, New, Scratch, Valuation, Value};
use crate::lanes::Lanes;
use crate::number::{MOST_NUMBERS, Number};
use crate::numbering::ValueNumber;
use crate::op::{compute, sources, to_truth};
use crate::places::{Place, Places};
use crate::state::State;

/// A result.
#[derive(Clone, Debug)]
pub(crate) enum Computed {
    /// What a place holds already.
    Copy(Place),
    New(New),
}

/// The value that `op` computes from registers. Of loads only that they depend on the address. `sources` are the
/// numbers of the predicates that it exchanges.
pub(crate) fn of(
    state: &State,
    lanes: &Lanes,
    op: Op,
    word: WordSize,
    stack_log2: u32,
    sources: &[ValueNumber],
) -> Computed {
    let value = operation(state, lanes, op);
    let is_truth = |place: Place| state.value(place).is_truth();
    let gpr = Places::gpr;
    let new = |value: Value| Computed::New(New::of(value));
    let value = match op {
        Op::Xorp { a, b, .. } => match *sources {
            [one, other] => {
                exchanged(state, lanes, [(Places::pred(a), one), (Places::pred(b), other)], value)
            }
            _ => value,
        },
        Op::Andp { a, b, .. } => masked(state, lanes, [a, b].map(Places::pred), value),
        _ => value,
    };
    match op {
        Op::Ldi { imm, .. } => new(Value::constant(imm.cast_unsigned() & word.mask())),
        Op::Ori { src, imm: 0, .. } | Op::Addi { src, imm: 0, .. } => Computed::Copy(gpr(src)),
        Op::Rtop { src, .. } if is_truth(gpr(src)) => Computed::Copy(gpr(src)),
        Op::Ptor { src, .. } => Computed::Copy(Places::pred(src)),
        Op::Orp { a, b, .. } if a == b => Computed::Copy(Places::pred(a)),
        Op::Anyp { src, .. } => {
            let yes = state.not_zero(lanes, Places::pred(src));
            let value = Value { differs: Set::NONE, ..value };
            Computed::New(New { value, numbers: Valuation::Truth { yes, no: Set::NONE } })
        }
        Op::Allp { src, .. } => {
            let no = lanes.not(state.not_zero(lanes, Places::pred(src)));
            let value = Value { differs: Set::NONE, ..value };
            Computed::New(New { value, numbers: Valuation::Truth { yes: Set::NONE, no } })
        }
        Op::Rtop { src, .. } if state.value(gpr(src)).form == Form::Voted => {
            let yes = match state.scratch {
                Scratch::Vote(voted) => voted,
                _ => Set::NONE,
            };
            Computed::New(New { value, numbers: Valuation::Truth { yes, no: Set::NONE } })
        }
        Op::Jali { .. } => new(Value { form: Form::Code, ..Value::uniform() }),
        Op::Ballot { .. } => new(Value { differs: Set::NONE, ..value }),
        Op::Csr { index, .. } if index != 0 => new(Value::uniform()),
        Op::Csr { .. } | Op::Tid { .. } => new(Value::unknown()),
        // Lanes may read others' values, but not of lanes that do not execute it.
        Op::Shfl { value: shared, .. } if state.is_uniform(lanes, gpr(shared)) => {
            new(Value { differs: Set::NONE, ..value })
        }
        Op::Shfl { .. } => new(Value { differs: Set::ALL, ..value }),
        _ => match of_numbers(state, lanes, op, word) {
            Some(each) => {
                let undefined = match decided(state, lanes, op) {
                    Some(undefined) if value.undefined != Set::NONE => undefined,
                    _ => value.undefined,
                };
                let truth = to_truth(op);
                let computed = !truth && each.iter().any(|&(number, _)| number > Number::ONE);
                let value = Value { undefined, computed, ..value };
                let numbers = match truth {
                    true => {
                        let set = |wanted| {
                            let found = each.iter().find(|&&(number, _)| number == wanted);
                            found.map_or(Set::NONE, |&(_, set)| set)
                        };
                        let others = set(Number::Other);
                        let [no, yes] = [Number::ZERO, Number::ONE].map(set);
                        match others {
                            Set::NONE => Valuation::Each(each),
                            _ => Valuation::Truth { yes, no },
                        }
                    }
                    false => Valuation::Each(each),
                };
                Computed::New(New { value, numbers })
            }
            None => arithmetic(state, lanes, value, op, word, stack_log2),
        },
    }
}

/// The result depends on the sources alone.
fn operation(state: &State, lanes: &Lanes, op: Op) -> Value {
    let mut value = Value::uniform();
    let atomic = op.opcode().flags().intersects(OpcodeFlags::ATOMIC);
    Instruction::new(op).for_each_register(|operand, _, access| {
        let Some(place) = Places::operand(operand) else { return };
        if access != Access::Def {
            value.undefined = lanes.or(value.undefined, state.value(place).undefined);
            value.differs = lanes.or(value.differs, state.differing(lanes, place));
        }
    });
    if atomic {
        value.differs = Set::ALL;
    }
    value
}

/// What is in one of two predicates only. Where it is taken from one of these again, the other is left.
fn exchanged(
    state: &State,
    lanes: &Lanes,
    reads: [(Place, ValueNumber); 2],
    mut value: Value,
) -> Value {
    let [a, b] = reads.map(|(place, number)| (state.value(place), number));
    for ((one, _), (_, with)) in [(a, b), (b, a)] {
        if let Some(left) = one.mixed.iter().find(|mixed| mixed.with == with) {
            value.undefined = lanes.and(value.undefined, left.undefined);
            return value;
        }
    }
    if value.undefined != Set::NONE {
        for ((one, _), (other, with)) in [(a, b), (b, a)] {
            let (undefined, other) = (one.undefined, other.undefined);
            value.mixed.push(Mixed { with, undefined, other });
        }
    }
    value
}

/// What is exchanged in the lanes of a predicate only: elsewhere the one it is exchanged for stays.
fn masked(state: &State, lanes: &Lanes, [a, b]: [Place; 2], mut value: Value) -> Value {
    for (one, guard) in [(a, b), (b, a)] {
        let among = state.not_zero(lanes, guard);
        let unknown = state.value(guard).undefined;
        let masked = state.value(one).mixed.iter().map(|mixed| {
            let left = lanes.ite(among, mixed.undefined, mixed.other);
            Mixed { undefined: lanes.or(left, unknown), ..mixed.clone() }
        });
        value.mixed.extend(masked);
    }
    value
}

/// In which lanes the result is not meant to be read of an operation that one operand can decide alone.
fn decided(state: &State, lanes: &Lanes, op: Op) -> Option<Set> {
    let (a, b, deciding) = match op {
        Op::Andp { a, b, .. } => (Places::pred(a), Places::pred(b), 0),
        Op::Orp { a, b, .. } => (Places::pred(a), Places::pred(b), 1),
        Op::And { a, b, .. } => (Places::gpr(a), Places::gpr(b), 0),
        Op::Or { a, b, .. } => (Places::gpr(a), Places::gpr(b), 1),
        _ => return None,
    };
    if deciding == 1 && ![a, b].iter().all(|&place| state.value(place).is_truth()) {
        return None;
    }
    // It is, where one that is meant to be read decides.
    let decides = [a, b].map(|place| {
        lanes.and_not(state.holds(lanes, place, Number::Is(deciding)), state.value(place).undefined)
    });
    let either = lanes.or(state.value(a).undefined, state.value(b).undefined);
    Some(lanes.and_not(either, lanes.or(decides[0], decides[1])))
}

/// The numbers that a result is in which lanes, if the operands are of few numbers each.
fn of_numbers(state: &State, lanes: &Lanes, op: Op, word: WordSize) -> Option<Vec<(Number, Set)>> {
    let sources = sources(op)?;
    // Of numbers that come from several places, only truth is followed: what lanes compute from numbers
    // does not say where they go.
    let varying = |place: &&Place| !matches!(state.value(**place).form, Form::Constant(_));
    let mut varying = sources.iter().filter(varying);
    if let (Some(one), Some(other)) = (varying.next(), varying.next())
        && one != other
        && !(state.value(*one).is_truth() && state.value(*other).is_truth())
    {
        return None;
    }
    let mut combined: Vec<(SmallVec<[Number; 2]>, Set)> = vec![(SmallVec::new(), Set::ALL)];
    for &place in &sources {
        let numbers = state.value(place).numbers.as_deref()?;
        let mut next = Vec::new();
        for (operands, set) in &combined {
            for &number in numbers {
                let set = lanes.and(*set, state.holds(lanes, place, number));
                if set != Set::NONE {
                    let operands = operands.iter().copied().chain([number]);
                    next.push((operands.collect(), set));
                }
            }
        }
        combined = next;
    }
    let mut results: Vec<(Number, Set)> = Vec::new();
    for (operands, set) in combined {
        if lanes.disjoint(state.active, set) {
            continue;
        }
        let known = operands.iter().map(|number| match number {
            Number::Is(number) => Some(*number),
            Number::Other => None,
        });
        let result = match known.collect::<Option<SmallVec<[u64; 2]>>>() {
            Some(operands) => Number::Is(compute(op, &operands, word)?),
            None => Number::Other,
        };
        match results.iter().position(|(other, _)| *other == result) {
            Some(index) => results[index].1 = lanes.or(results[index].1, set),
            None if results.len() == MOST_NUMBERS => return None,
            None => results.push((result, set)),
        }
    }
    let known = results.iter().any(|&(number, _)| number != Number::Other);
    known.then_some(results)
}

/// Addresses in the lane's stack, and truth values.
fn arithmetic(
    state: &State,
    lanes: &Lanes,
    value: Value,
    op: Op,
    word: WordSize,
    stack_log2: u32,
) -> Computed {
    let form = |reg: Gpr| state.value(Places::gpr(reg)).form;
    let uniform = |reg: Gpr| state.is_uniform(lanes, Places::gpr(reg));
    let constant = |imm: i64| Form::Constant(imm.cast_unsigned() & word.mask());
    let on_stack = |form| matches!(form, Form::Stack(_) | Form::LaneBlock(_) | Form::OnStack);
    let stack_log2 = i64::from(stack_log2);
    let form = match op {
        Op::Andi { imm: 1, .. } => {
            let numbers = Valuation::Truth { yes: Set::NONE, no: Set::NONE };
            return Computed::New(New { value, numbers });
        }
        Op::Add { a, b, .. } => match sum(form(a), form(b), word) {
            Form::Unknown if on_stack(form(a)) && uniform(b) => Form::OnStack,
            Form::Unknown if on_stack(form(b)) && uniform(a) => Form::OnStack,
            form => form,
        },
        Op::Addi { src, imm, .. } => sum(form(src), constant(imm), word),
        Op::Subi { src, imm, .. } => sum(form(src), constant(imm.wrapping_neg()), word),
        Op::Sub { a, b, .. } => match (form(a), form(b)) {
            // Distances in the stack are the same in all lanes.
            (one, other) if on_stack(one) && on_stack(other) => {
                return Computed::New(New::of(Value { differs: Set::NONE, ..value }));
            }
            (one, Form::Constant(value)) => {
                sum(one, Form::Constant(value.wrapping_neg() & word.mask()), word)
            }
            (one, _) if on_stack(one) && uniform(b) => Form::OnStack,
            _ => Form::Unknown,
        },
        Op::Shli { src, imm, .. } => match form(src) {
            Form::StackNumber if imm == stack_log2 => Form::LaneBlock(0),
            _ => Form::Unknown,
        },
        Op::Shri { src, imm, .. } => match form(src) {
            Form::Stack(_) if imm == stack_log2 => Form::StackNumber,
            _ => Form::Unknown,
        },
        _ => Form::Unknown,
    };
    Computed::New(New::of(Value { form, ..value }))
}

fn sum(a: Form, b: Form, word: WordSize) -> Form {
    match (a, b) {
        (Form::Stack(place), Form::Constant(by)) | (Form::Constant(by), Form::Stack(place)) => {
            Form::Stack(place.wrapping_add(word.sign_extend(by)))
        }
        (Form::LaneBlock(place), Form::Constant(by))
        | (Form::Constant(by), Form::LaneBlock(place)) => {
            Form::LaneBlock(place.wrapping_add(word.sign_extend(by)))
        }
        (Form::OnStack, Form::Constant(_)) | (Form::Constant(_), Form::OnStack) => Form::OnStack,
        _ => Form::Unknown,
    }
}
