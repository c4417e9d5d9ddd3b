//! What an operation computes, as far as that is followed.

use std::collections::{BTreeMap, BTreeSet};

use harp_isa::{Gpr, Instruction, Op, Operand, Pred, Role as Access, WordSize};

use super::choice;
use super::state::{Fact, Form, Id, Literal, MOST_NUMBERS, Places, State, Where};

/// A result.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "it lives for one instruction")]
pub(super) enum Value {
    /// A value that there is already.
    Copy(Id),
    New(Fact),
}

impl Value {
    /// What is known about it.
    pub(super) fn into_fact(self, state: &State) -> Fact {
        match self {
            Value::New(fact) => fact,
            Value::Copy(id) => {
                let mut fact = (*state.fact(id)).clone();
                let numbers: Vec<u64> = fact.told_apart().chain([0]).collect();
                for (number, truth) in numbers.into_iter().flat_map(|n| [(n, false), (n, true)]) {
                    let literal = Literal { id, number, truth };
                    fact.implies.entry((number, truth)).or_default().insert(literal);
                }
                fact
            }
        }
    }
}

/// The value that `op` computes from registers. Of loads only that they depend on the address.
pub(super) fn of(state: &State, op: Op, word: WordSize, lane_stack_log2: u32) -> Value {
    let fact = match computed(state, op, word, lane_stack_log2) {
        Value::New(fact) => fact,
        copy => return copy,
    };
    if let Some(result) = choice::constant(state, op, word) {
        let Fact { form, numbers, uniform, .. } = Fact::constant(result);
        return Value::New(Fact { form, numbers, uniform, ..fact });
    }
    Value::New(match choice::follows(state, op, word) {
        Some((source, results)) => choice::with_choice(state, fact, source, results),
        None => fact,
    })
}

fn computed(state: &State, op: Op, word: WordSize, lane_stack_log2: u32) -> Value {
    let gpr = |reg: Gpr| state.held(Places::gpr(reg));
    let pred = |reg: Pred| state.held(Places::pred(reg));
    let fact = operation(state, op);
    let truth = |implies: [BTreeSet<Literal>; 2]| Value::New(as_truth(fact.clone(), implies));
    let same = |id: Id| Literal::both(id).map(|literal| state.consequences(literal));
    let inverse = |id: Id| {
        let [zero, one] = same(id);
        [one, zero]
    };
    let is_truth = |id: Id| state.fact(id).is_truth();
    match op {
        Op::Ldi { imm, .. } => Value::New(Fact::constant(imm.cast_unsigned() & word.mask())),
        Op::Ori { src, imm: 0, .. } | Op::Addi { src, imm: 0, .. } => Value::Copy(gpr(src)),
        Op::Orp { a, b, .. } | Op::Andp { a, b, .. } if a == b => Value::Copy(pred(a)),
        Op::Rtop { src, .. } if is_truth(gpr(src)) => Value::Copy(gpr(src)),
        Op::Ptor { src, .. } => Value::Copy(pred(src)),
        Op::Andi { src, imm, .. } if imm & 1 == 1 && is_truth(gpr(src)) => Value::Copy(gpr(src)),
        Op::Rtop { src, .. } => truth(same(gpr(src))),
        Op::Iszero { src, .. } => truth(inverse(gpr(src))),
        Op::Notp { src, .. } => truth(inverse(pred(src))),
        Op::Xori { src, imm: 1, .. } if is_truth(gpr(src)) => truth(inverse(gpr(src))),
        Op::Xorp { a, b, .. } if a == b => Value::New(Fact::constant(0)),
        Op::Andp { a, b, .. } => Value::New(and(state, fact, pred(a), pred(b))),
        Op::Orp { a, b, .. } => Value::New(or(state, fact, pred(a), pred(b))),
        Op::And { a, b, .. } if is_truth(gpr(a)) && is_truth(gpr(b)) => {
            Value::New(and(state, fact, gpr(a), gpr(b)))
        }
        Op::Or { a, b, .. } if is_truth(gpr(a)) && is_truth(gpr(b)) => {
            Value::New(or(state, fact, gpr(a), gpr(b)))
        }
        Op::Anyp { src, .. } => {
            let none = state.consequences(Literal::new(pred(src), false));
            Value::New(as_truth(Fact::uniform(), [none, BTreeSet::new()]))
        }
        Op::Allp { src, .. } => {
            let all = state.consequences(Literal::new(pred(src), true));
            Value::New(as_truth(Fact::uniform(), [BTreeSet::new(), all]))
        }
        Op::Jali { .. } => Value::New(Fact { form: Form::Code, ..Fact::uniform() }),
        Op::Ballot { .. } => Value::New(Fact::uniform()),
        Op::Csr { index, .. } if index != 0 => Value::New(Fact::uniform()),
        Op::Csr { .. } | Op::Tid { .. } => Value::New(Fact::unknown()),
        // Lanes may read others' values, but not of lanes that do not execute it.
        Op::Shfl { value, .. } if state.fact(gpr(value)).uniform == Where::Everywhere => {
            Value::New(Fact::uniform())
        }
        Op::Shfl { .. } => Value::New(Fact::unknown()),
        _ => arithmetic(state, fact, op, word, lane_stack_log2),
    }
}

/// A value that is 0 or 1, with what holds where it is 0, and where it is 1.
fn as_truth(fact: Fact, [no, yes]: [BTreeSet<Literal>; 2]) -> Fact {
    let implies = BTreeMap::from([((0, true), no), ((0, false), yes)]);
    Fact { numbers: Some(BTreeSet::from([0, 1])), implies, ..fact }
}

/// The result depends on the sources alone.
fn operation(state: &State, op: Op) -> Fact {
    let mut fact = Fact::uniform();
    let atomic = op.opcode().flags().intersects(harp_isa::OpcodeFlags::ATOMIC);
    Instruction::new(op).for_each_register(|operand, _, access| {
        let place = match operand {
            Operand::Gpr(reg) => Places::gpr(reg),
            Operand::Pred(reg) => Places::pred(reg),
            Operand::Imm(_) => return,
        };
        if access != Access::Def {
            let source = state.fact(state.held(place));
            fact.uniform = state.both(&fact.uniform, &source.uniform);
            fact.defined = state.both(&fact.defined, &source.defined);
        }
    });
    if atomic {
        fact.uniform = Where::NOWHERE;
    }
    fact
}

/// True where both are.
fn and(state: &State, fact: Fact, a: Id, b: Id) -> Fact {
    let literal = Literal::new;
    let defined = defined(state, fact.defined, [literal(a, false), literal(b, false)], [a, b]);
    let yes = &state.consequences(literal(a, true)) | &state.consequences(literal(b, true));
    let no = either(state, [literal(a, false), literal(b, false)]);
    as_truth(Fact { defined, ..fact }, [no, yes])
}

/// True where one of them is.
fn or(state: &State, fact: Fact, a: Id, b: Id) -> Fact {
    let literal = Literal::new;
    let defined = defined(state, fact.defined, [literal(a, true), literal(b, true)], [a, b]);
    let no = &state.consequences(literal(a, false)) | &state.consequences(literal(b, false));
    let yes = either(state, [literal(a, true), literal(b, true)]);
    as_truth(Fact { defined, ..fact }, [no, yes])
}

/// What follows from either literal, of those that can hold.
fn either(state: &State, literals: [Literal; 2]) -> BTreeSet<Literal> {
    let possible = literals.into_iter().filter(|&l| state.settled(l) != Some(false));
    possible.map(|l| state.consequences(l)).reduce(|a, b| &a & &b).unwrap_or_default()
}

/// Where a result is meant to be read: where both operands are, and where one of them, being meant,
/// decides alone.
fn defined(state: &State, both: Where, decides: [Literal; 2], operands: [Id; 2]) -> Where {
    let Where::In(mut known) = both else { return Where::Everywhere };
    for (literal, operand) in decides.into_iter().zip(operands) {
        if state.fact(operand).defined == Where::Everywhere {
            known.insert(literal);
            // Where it does not decide, the other one does.
            let other = if operand == operands[0] { operands[1] } else { operands[0] };
            if state.covers(&state.fact(other).defined, !literal) {
                return Where::Everywhere;
            }
        }
    }
    Where::In(known)
}

/// Constants, and addresses in the lane's stack.
fn arithmetic(state: &State, fact: Fact, op: Op, word: WordSize, stack_log2: u32) -> Value {
    let form = |reg: Gpr| state.fact(state.held(Places::gpr(reg))).form;
    let uniform = |reg: Gpr| state.fact(state.held(Places::gpr(reg))).uniform == Where::Everywhere;
    let constant = |imm: i64| Form::Constant(imm.cast_unsigned() & word.mask());
    let on_stack = |form| matches!(form, Form::Stack(_) | Form::LaneBlock(_) | Form::OnStack);
    let stack_log2 = i64::from(stack_log2);
    let result = match op {
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
                return Value::New(Fact { uniform: Where::Everywhere, ..fact });
            }
            (one, Form::Constant(value)) => {
                sum(one, Form::Constant(value.wrapping_neg() & word.mask()), word)
            }
            (one, _) if on_stack(one) && uniform(b) => Form::OnStack,
            _ => Form::Unknown,
        },
        Op::Shli { src, imm, .. } => match form(src) {
            Form::StackNumber if imm == stack_log2 => Form::LaneBlock(0),
            Form::Constant(value) if (0..i64::from(word.bits())).contains(&imm) => {
                Form::Constant(value << imm & word.mask())
            }
            _ => Form::Unknown,
        },
        Op::Shri { src, imm, .. } => match form(src) {
            Form::Stack(_) if imm == stack_log2 => Form::StackNumber,
            _ => Form::Unknown,
        },
        Op::Ori { src, imm, .. } => match form(src) {
            Form::Constant(value) => Form::Constant((value | imm.cast_unsigned()) & word.mask()),
            _ => Form::Unknown,
        },
        _ => Form::Unknown,
    };
    Value::New(match result {
        Form::Constant(value) => Fact { defined: fact.defined, ..Fact::constant(value) },
        form => Fact { form, ..fact },
    })
}

fn sum(a: Form, b: Form, word: WordSize) -> Form {
    match (a, b) {
        (Form::Constant(a), Form::Constant(b)) => Form::Constant(a.wrapping_add(b) & word.mask()),
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

/// `new` where the guard holds, the old value elsewhere; if there is none, nothing that is meant.
pub(super) fn select(state: &State, guard: Literal, new: Fact, old: Option<Id>) -> Fact {
    let before = old.map_or_else(Fact::undefined, |old| (*state.fact(old)).clone());
    let guard_fact = state.fact(guard.id);
    let mut candidates: BTreeSet<Literal> = BTreeSet::from([guard, !guard]);
    for known in [&new.uniform, &new.defined, &before.uniform, &before.defined] {
        candidates.extend(known.literals());
    }
    let preds = state.places().filter(|place| place.is_pred()).map(|place| state.held(place));
    for id in preds.filter(|&id| state.fact(id).defined == Where::Everywhere) {
        candidates.extend(Literal::both(id));
    }
    let side = |known: [&Where; 2], l: Literal| {
        state.implies(l, guard) && state.covers(known[0], l)
            || state.implies(l, !guard) && state.covers(known[1], l)
    };
    let agreed = guard_fact.uniform == Where::Everywhere;
    let equal = new.form == before.form && matches!(new.form, Form::Constant(_));
    let everywhere = |known: [&Where; 2]| known.iter().all(|known| **known == Where::Everywhere);
    let uniform = [&new.uniform, &before.uniform];
    let uniform = if equal || agreed && everywhere(uniform) {
        Where::Everywhere
    } else {
        let covered = |l: Literal| agreed && uniform.iter().all(|known| state.covers(known, l));
        let literals = candidates.iter().copied();
        Where::In(literals.filter(|&l| side(uniform, l) || covered(l)).collect())
    };
    let meant = |l: Literal| state.covers(&guard_fact.defined, l);
    let defined = [&new.defined, &before.defined];
    let in_guard = state.covers(defined[0], guard) && state.covers(defined[1], !guard);
    let defined = if guard_fact.defined == Where::Everywhere && in_guard {
        Where::Everywhere
    } else {
        let covered = |l: Literal| defined.iter().all(|known| state.covers(known, l));
        let literals = candidates.iter().copied();
        Where::In(literals.filter(|&l| meant(l) && (side(defined, l) || covered(l))).collect())
    };
    let numbers = match (&new.numbers, &before.numbers) {
        (Some(a), Some(b)) if a.len() + b.len() <= MOST_NUMBERS => Some(a | b),
        _ => None,
    };
    let mut fact = Fact {
        form: if new.form == before.form { new.form } else { Form::Unknown },
        numbers,
        uniform,
        defined,
        ..Fact::unknown()
    };
    let asked: Vec<u64> = fact.told_apart().collect();
    for (number, truth) in asked.into_iter().flat_map(|n| [(n, false), (n, true)]) {
        let possible = |fact: &Fact| {
            let numbers = fact.numbers.as_ref();
            numbers.is_none_or(|numbers| numbers.iter().any(|&n| (n == number) == truth))
        };
        let new_side = possible(&new).then(|| {
            let known = new.implies.get(&(number, truth)).cloned().unwrap_or_default();
            &known | &state.consequences(guard)
        });
        let old_side = possible(&before).then(|| {
            let known = old.map(|id| state.consequences(Literal { id, number, truth }));
            &known.unwrap_or_default() | &state.consequences(!guard)
        });
        let implied = match (new_side, old_side) {
            (Some(a), Some(b)) => &a & &b,
            (a, b) => a.or(b).unwrap_or_default(),
        };
        fact.implies.insert((number, truth), implied);
    }
    fact
}

/// A value that is true exactly where another one is goes by the other's names, too.
pub(super) fn with_names(state: &State, mut fact: Fact) -> Fact {
    let (no, yes) = (fact.implied(false), fact.implied(true));
    for literal in yes {
        // It is not zero where the other is not, and zero where the other is.
        if literal == Literal::new(literal.id, true) && no.contains(&!literal) {
            fact.names.extend(&state.fact(literal.id).names);
        }
    }
    fact
}
