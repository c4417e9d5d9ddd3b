//! Values that are one of a few numbers, and what is computed from them.
//!
//! Where lanes are bound for different places, a number says for which; code compares it with constants. What
//! such a comparison says about the number is found out by computing it for each number that it can be.

use std::collections::{BTreeMap, BTreeSet};

use harp_isa::{Gpr, Op, Pred, WordSize};
use smallvec::{SmallVec, smallvec};

use super::state::{Fact, Form, Id, Literal, Place, Places, State, Where};

/// A value that is one of a few numbers, and what the result is for each; none if the result depends on more
/// than that or the operation is not one of those that comparisons are made of.
pub(super) fn follows(state: &State, op: Op, word: WordSize) -> Option<(Id, BTreeMap<u64, u64>)> {
    let sources = sources(op)?;
    let mut chosen: Option<(Id, BTreeSet<u64>)> = None;
    for &place in &sources {
        let id = state.held(place);
        let fact = state.fact(id);
        let (source, numbers) = match (&fact.form, &fact.follows, &fact.numbers) {
            (Form::Constant(_), ..) => continue,
            (_, Some((source, results)), _) => (*source, results.keys().copied().collect()),
            (_, None, Some(numbers)) => (id, numbers.clone()),
            (_, None, None) => return None,
        };
        if chosen.as_ref().is_some_and(|(other, _)| *other != source) {
            return None;
        }
        chosen = Some((source, numbers));
    }
    let (source, numbers) = chosen?;
    let result = |number: u64| {
        let operand = |place: &Place| {
            let fact = state.fact(state.held(*place));
            match (fact.form, &fact.follows) {
                (Form::Constant(value), _) => Some(value),
                (_, Some((_, results))) => results.get(&number).copied(),
                (_, None) => Some(number),
            }
        };
        let operands: SmallVec<[u64; 2]> = sources.iter().map(operand).collect::<Option<_>>()?;
        compute(op, &operands, word)
    };
    let results = numbers.into_iter().map(|number| Some((number, result(number)?)));
    Some((source, results.collect::<Option<_>>()?))
}

/// The result of an operation on constants.
pub(super) fn constant(state: &State, op: Op, word: WordSize) -> Option<u64> {
    let operand = |place: &Place| match state.fact(state.held(*place)).form {
        Form::Constant(value) => Some(value),
        _ => None,
    };
    let operands: SmallVec<[u64; 2]> = sources(op)?.iter().map(operand).collect::<Option<_>>()?;
    compute(op, &operands, word)
}

/// The operands of an operation that [`compute`] knows.
fn sources(op: Op) -> Option<SmallVec<[Place; 2]>> {
    let gpr = |reg: Gpr| Places::gpr(reg);
    let pred = |reg: Pred| Places::pred(reg);
    Some(match op {
        Op::Addi { src, .. }
        | Op::Subi { src, .. }
        | Op::Andi { src, .. }
        | Op::Ori { src, .. }
        | Op::Xori { src, .. }
        | Op::Shli { src, .. }
        | Op::Rtop { src, .. }
        | Op::Iszero { src, .. }
        | Op::Isneg { src, .. } => smallvec![gpr(src)],
        Op::Notp { src, .. } => smallvec![pred(src)],
        Op::Andp { a, b, .. } | Op::Orp { a, b, .. } | Op::Xorp { a, b, .. } => {
            smallvec![pred(a), pred(b)]
        }
        Op::Add { a, b, .. }
        | Op::Sub { a, b, .. }
        | Op::And { a, b, .. }
        | Op::Or { a, b, .. }
        | Op::Xor { a, b, .. }
        | Op::Eqp { a, b, .. }
        | Op::Ltup { a, b, .. } => smallvec![gpr(a), gpr(b)],
        _ => return None,
    })
}

/// What an operation makes of numbers.
fn compute(op: Op, operands: &[u64], word: WordSize) -> Option<u64> {
    let &[a, ref rest @ ..] = operands else { return None };
    let b = rest.first().copied().unwrap_or(0);
    let top = 1 << (word.bits() - 1);
    let result = match op {
        Op::Addi { imm, .. } => a.wrapping_add(imm.cast_unsigned()),
        Op::Subi { imm, .. } => a.wrapping_sub(imm.cast_unsigned()),
        Op::Andi { imm, .. } => a & imm.cast_unsigned(),
        Op::Ori { imm, .. } => a | imm.cast_unsigned(),
        Op::Xori { imm, .. } => a ^ imm.cast_unsigned(),
        Op::Shli { imm, .. } if (0..i64::from(word.bits())).contains(&imm) => a << imm,
        Op::Rtop { .. } => u64::from(a != 0),
        Op::Iszero { .. } | Op::Notp { .. } => u64::from(a == 0),
        Op::Isneg { .. } => u64::from(a & top != 0),
        Op::Add { .. } => a.wrapping_add(b),
        Op::Sub { .. } => a.wrapping_sub(b),
        Op::And { .. } | Op::Andp { .. } => a & b,
        Op::Or { .. } | Op::Orp { .. } => a | b,
        Op::Xor { .. } | Op::Xorp { .. } => a ^ b,
        Op::Eqp { .. } => u64::from(a == b),
        Op::Ltup { .. } => u64::from(a < b),
        _ => return None,
    };
    Some(result & word.mask())
}

/// A value that is these results for the numbers that `source` can be.
pub(super) fn with_choice(
    state: &State,
    fact: Fact,
    source: Id,
    results: BTreeMap<u64, u64>,
) -> Fact {
    let mut fact = fact;
    let numbers: BTreeSet<u64> = results.values().copied().collect();
    for &result in &numbers {
        for truth in [false, true] {
            let fitting = |&(_, &made): &(&u64, &u64)| (made == result) == truth;
            let left: Vec<u64> =
                results.iter().filter(fitting).map(|(&number, _)| number).collect();
            let implied = fact.implies.entry((result, truth)).or_default();
            if left.iter().all(|&number| state.agrees(source, number)) {
                fact.agreed.insert(result);
            }
            if let [number] = left[..] {
                implied.insert(Literal { id: source, number, truth: true });
            }
            let others = results.keys().copied().filter(|number| !left.contains(number));
            implied.extend(others.map(|number| Literal { id: source, number, truth: false }));
        }
    }
    if let Some(&only) = numbers.first().filter(|_| numbers.len() == 1) {
        fact.form = Form::Constant(only);
        fact.uniform = Where::Everywhere;
    }
    if fact.agreed.is_superset(&numbers) {
        fact.uniform = Where::Everywhere;
    }
    fact.numbers = Some(numbers);
    fact.follows = Some((source, results));
    fact
}
