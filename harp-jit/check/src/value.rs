//! The results of operations, as far as the checker models them.

use harp_bdd::Set;
use harp_isa::abi::warp_alignment;
use harp_isa::{ArchId, Gpr, Op, OpcodeFlags, Role as Access, WordSize};
use smallvec::SmallVec;

use crate::fact::{Mixed, New, Scratch, Valuation, Value};
use crate::number::{MOST_NUMBERS, Number};
use crate::numbering::ValueNumber;
use crate::op::{Form, compute, registers, sources, sum, to_truth};
use crate::places::{Place, Places};
use crate::state::State;

/// A result.
#[derive(Clone, Debug)]
pub(crate) enum Computed<'a> {
    /// The value that a place already holds.
    Copy(Place),
    New(New<'a>),
}

/// The sizes of stacks, as exponents of two: by these shifts their numbers are found, and by shifts back their bases.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stacks {
    /// Of a lane's.
    lane_log2: u32,
    /// Of what those of a warp are aligned to.
    warp_log2: u32,
}

impl Stacks {
    pub(crate) fn new(arch: ArchId, lane_log2: u32) -> Stacks {
        let bytes = 1_u64.checked_shl(lane_log2).unwrap_or(u64::MAX);
        Stacks { lane_log2, warp_log2: warp_alignment(arch, bytes).ilog2() }
    }
}

/// The value that `op` computes from registers. Of loads only that they depend on the address. `sources` are the
/// numbers of the predicates that it exchanges.
pub(crate) fn of<'a>(
    state: &State<'a>,
    op: Op,
    word: WordSize,
    stacks: Stacks,
    sources: &[ValueNumber],
) -> Computed<'a> {
    let mut value = operation(state, op);
    let is_truth = |place: Place| state.value(place).is_truth();
    let (gpr, pred) = (Places::gpr, Places::pred);
    let numbers = match op {
        Op::Ldi { imm, .. } => {
            value = Value::constant(imm.cast_unsigned() & word.mask());
            Valuation::Unknown
        }
        Op::Ori { src, imm: 0, .. } | Op::Addi { src, imm: 0, .. } => {
            return Computed::Copy(gpr(src));
        }
        Op::Rtop { src, .. } if is_truth(gpr(src)) => return Computed::Copy(gpr(src)),
        Op::Ptor { src, .. } => return Computed::Copy(pred(src)),
        Op::Orp { a, b, .. } if a == b => return Computed::Copy(pred(a)),
        Op::Anyp { src, .. } => {
            value.differs = Set::NONE;
            Valuation::Truth { yes: state.not_zero(pred(src)), no: Set::NONE }
        }
        Op::Allp { src, .. } => {
            value.differs = Set::NONE;
            Valuation::Truth { yes: Set::NONE, no: !state.not_zero(pred(src)) }
        }
        Op::Rtop { src, .. } if state.value(gpr(src)).form == Form::Voted => {
            let Scratch::Vote(yes) = state.scratch else {
                return Computed::New(New::truth_of(value));
            };
            Valuation::Truth { yes, no: Set::NONE }
        }
        Op::Jali { .. } => {
            value = Value { form: Form::Code, ..Value::uniform() };
            Valuation::Unknown
        }
        Op::Csr { index, .. } => {
            value = if index == 0 { Value::unknown() } else { Value::uniform() };
            Valuation::Unknown
        }
        Op::Tid { .. } => {
            value = Value::unknown();
            Valuation::Unknown
        }
        Op::Ballot { .. } => {
            value.differs = Set::NONE;
            Valuation::Unknown
        }
        // Lanes may read others' values, but not of lanes that do not execute it.
        Op::Shfl { value: shared, .. } => {
            value.differs = if state.is_uniform(gpr(shared)) { Set::NONE } else { Set::ALL };
            Valuation::Unknown
        }
        _ => {
            match op {
                Op::Xorp { a, b, .. } => exchange(state, [a, b].map(pred), sources, &mut value),
                Op::Andp { a, b, .. } => mask(state, [a, b].map(pred), &mut value),
                _ => {}
            }
            match of_numbers(state, op, word) {
                Some(each) => told(state, op, each, &mut value),
                None => return Computed::New(arithmetic(state, value, op, word, stacks)),
            }
        }
    };
    Computed::New(New { value, numbers })
}

/// The result depends on the sources alone.
fn operation<'a>(state: &State<'a>, op: Op) -> Value<'a> {
    let mut value = Value::uniform();
    for (operand, access) in registers(op) {
        if let (Some(place), true) = (Places::operand(operand), access != Access::Def) {
            value.undefined = value.undefined | state.value(place).undefined;
            value.differs = value.differs | state.differing(place);
        }
    }
    if op.opcode().flags().intersects(OpcodeFlags::ATOMIC) {
        value.differs = Set::ALL;
    }
    value
}

/// What is in one of two predicates only. Where it is taken from one of these again, the other is left.
fn exchange<'a>(
    state: &State<'a>,
    places: [Place; 2],
    numbers: &[ValueNumber],
    value: &mut Value<'a>,
) {
    let &[one, other] = numbers else { return };
    let [a, b] = places.map(|place| state.value(place));
    let both = [(a, b, other), (b, a, one)];
    let left = |&(value, _, with): &(&Value<'a>, &Value<'a>, ValueNumber)| {
        value.mixed.iter().find(|mixed| mixed.with == with).map(|mixed| mixed.undefined)
    };
    if let Some(left) = both.iter().find_map(left) {
        value.undefined = value.undefined & left;
    } else if value.undefined != Set::NONE {
        value.mixed.extend(both.map(|(value, other, with)| Mixed {
            with,
            undefined: value.undefined,
            other: other.undefined,
        }));
    }
}

/// What is exchanged in the lanes of a predicate only: elsewhere the one it is exchanged for stays.
fn mask<'a>(state: &State<'a>, [a, b]: [Place; 2], value: &mut Value<'a>) {
    for (one, guard) in [(a, b), (b, a)] {
        let among = state.not_zero(guard);
        let unknown = state.value(guard).undefined;
        value.mixed.extend(state.value(one).mixed.iter().map(|mixed| Mixed {
            undefined: among.ite(mixed.undefined, mixed.other) | unknown,
            ..*mixed
        }));
    }
}

/// A result that is one of a few numbers, in the lanes in which it is.
fn told<'a>(
    state: &State<'a>,
    op: Op,
    each: Vec<(Number, Set<'a>)>,
    value: &mut Value<'a>,
) -> Valuation<'a> {
    if let Some(undefined) = decided(state, op) {
        value.undefined = undefined;
    }
    let truth = to_truth(op);
    value.computed = !truth && each.iter().any(|&(number, _)| number > Number::ONE);
    let each = Valuation::Each(each);
    match truth && each.lanes(Number::Other) != Set::NONE {
        true => Valuation::Truth { yes: each.lanes(Number::ONE), no: each.lanes(Number::ZERO) },
        false => each,
    }
}

/// In which lanes the result is not meant to be read of an operation that one operand can decide alone.
fn decided<'a>(state: &State<'a>, op: Op) -> Option<Set<'a>> {
    let (places, deciding) = match op {
        Op::Andp { a, b, .. } => ([a, b].map(Places::pred), 0),
        Op::Orp { a, b, .. } => ([a, b].map(Places::pred), 1),
        Op::And { a, b, .. } => ([a, b].map(Places::gpr), 0),
        Op::Or { a, b, .. } => ([a, b].map(Places::gpr), 1),
        _ => return None,
    };
    let [a, b] = places.map(|place| state.value(place));
    if deciding == 1 && !(a.is_truth() && b.is_truth()) {
        return None;
    }
    // It is, where one that is meant to be read decides.
    let [one, other] = places
        .map(|place| state.holds(place, Number::Is(deciding)) & !state.value(place).undefined);
    Some((a.undefined | b.undefined) & !(one | other))
}

/// The numbers that a result is in which lanes, if the operands are of few numbers each.
fn of_numbers<'a>(state: &State<'a>, op: Op, word: WordSize) -> Option<Vec<(Number, Set<'a>)>> {
    let sources = sources(op)?;
    let mut combined: Vec<(SmallVec<[Number; 2]>, Set<'a>)> = vec![(SmallVec::new(), Set::ALL)];
    for &place in &sources {
        let numbers = state.value(place).numbers.as_deref()?;
        let one_more = |(operands, set): (SmallVec<[Number; 2]>, Set<'a>)| {
            numbers.iter().map(move |&number| {
                let operands = operands.iter().copied().chain([number]).collect();
                (operands, set & state.holds(place, number))
            })
        };
        combined = combined.into_iter().flat_map(one_more).collect();
    }
    let mut results: Vec<(Number, Set<'a>)> = Vec::new();
    for (operands, set) in combined.into_iter().filter(|(_, set)| !state.active.disjoint(*set)) {
        let known = operands.iter().map(|number| match number {
            Number::Is(number) => Some(*number),
            Number::Other => None,
        });
        let result = match known.collect::<Option<SmallVec<[u64; 2]>>>() {
            Some(operands) => Number::Is(compute(op, &operands, word)?),
            None => Number::Other,
        };
        match results.iter().position(|(other, _)| *other == result) {
            Some(index) => results[index].1 = results[index].1 | set,
            None if results.len() == MOST_NUMBERS => return None,
            None => results.push((result, set)),
        }
    }
    let known = results.iter().any(|&(number, _)| number != Number::Other);
    known.then_some(results)
}

/// Addresses in the lane's stack, and truth values.
fn arithmetic<'a>(
    state: &State<'a>,
    mut value: Value<'a>,
    op: Op,
    word: WordSize,
    stacks: Stacks,
) -> New<'a> {
    let form = |reg: Gpr| state.value(Places::gpr(reg)).form;
    let on_stack = |reg| matches!(form(reg), Form::Stack(_) | Form::LaneBlock(_) | Form::OnStack);
    let moved = |base, by| on_stack(base) && state.is_uniform(Places::gpr(by));
    let is_stack_number = |imm| imm == i64::from(stacks.lane_log2);
    let is_warp_number = |imm| imm == i64::from(stacks.warp_log2);
    value.form = match (op, sum(op, form, word)) {
        (Op::Andi { imm: 1, .. }, _) => return New::truth_of(value),
        // Distances in the stack are the same in all lanes.
        (Op::Sub { a, b, .. }, _) if on_stack(a) && on_stack(b) => {
            value.differs = Set::NONE;
            Form::Unknown
        }
        (Op::Add { a, b, .. }, Form::Unknown) if moved(a, b) || moved(b, a) => Form::OnStack,
        (Op::Sub { a, b, .. }, Form::Unknown) if moved(a, b) => Form::OnStack,
        (Op::Shli { src, imm, .. }, _)
            if is_stack_number(imm) && form(src) == Form::StackNumber =>
        {
            Form::LaneBlock(0)
        }
        (Op::Shri { src, imm, .. }, _)
            if is_stack_number(imm) && matches!(form(src), Form::Stack(_)) =>
        {
            Form::StackNumber
        }
        (Op::Shli { src, imm, .. }, _)
            if is_warp_number(imm) && form(src) == Form::WarpStackNumber =>
        {
            Form::FirstBlock
        }
        (Op::Shri { src, imm, .. }, _)
            if is_warp_number(imm) && matches!(form(src), Form::Stack(_)) =>
        {
            value.differs = Set::NONE;
            Form::WarpStackNumber
        }
        (_, form) => form,
    };
    New::of(value)
}
