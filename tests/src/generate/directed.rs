//! Kernels that apply every operation to operands at the edges of their types, in registers, in all
//! pairs, or as constants on either side; and to operands that trap.
//!
//! The cells of narrow operands have noise above the operand, which must not matter.

use std::collections::BTreeMap;

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Type, Value, types};
use cranelift_codegen::isa::CallConv;
use cranelift_frontend::{FunctionBuilder as Builder, FunctionBuilderContext};
use harp_isa::abi::ArgumentBlock;

use super::body::between;
use super::body::rows::{Care, Row, TYPES, rows};
use super::clif::{self, element, intrinsic, signature};
use super::{F32_EDGES, F64_EDGES, Family};
use crate::oracle::{Argument, Case, Elements};

/// Results of one kernel, so that kernels stay of a size that is likely in practice.
const RESULTS: usize = 64;

/// Bytes of an operand, and of a result.
const CELL: u32 = 8;

/// The bits of the operands of one work-item.
type Operands = [u64; 3];

/// An operation, perhaps with a constant in place of one operand.
#[derive(Clone, Copy)]
struct Applied {
    row: &'static Row,
    constant: Option<(usize, u64)>,
    /// Operands that trap are replaced.
    careful: bool,
}

/// Cases in which every operation gets every pair of edges.
pub fn directed(family: Family) -> Vec<Case> {
    let mut cases = Vec::new();
    for ty in TYPES {
        let mut alike: BTreeMap<String, Vec<&'static Row>> = BTreeMap::new();
        for row in rows(ty) {
            alike.entry(format!("{:?}", row.operands)).or_default().push(row);
        }
        for rows in alike.into_values() {
            let operands = &rows[0].operands;
            // Floats wider than a word are long sequences on integers, judged on their own.
            let all = || operands.iter().chain([&ty]);
            let long = all().any(|&ty| ty.is_float() && !family.in_register(ty));
            let edges = |at: usize| {
                let edges = operands.get(at).map_or(vec![0], |&ty| edges(ty));
                if long { edges[..edges.len().min(8)].to_vec() } else { edges }
            };
            let edges = [edges(0), edges(1), edges(2)];
            let applied = |row, constant| Applied { row, constant, careful: true };
            let plain: Vec<Applied> = rows.iter().map(|row| applied(*row, None)).collect();
            let mut with_constants = Vec::new();
            if !long && operands.len() > 1 && operands.iter().all(|ty| *ty == operands[0]) {
                for (row, at) in rows.iter().flat_map(|row| [(*row, 0), (*row, 1)]) {
                    let constants = constants(row, at).into_iter();
                    with_constants.extend(constants.map(|bits| applied(row, Some((at, bits)))));
                }
            }
            let cases_of = |applied: Vec<Applied>, operands: Vec<Operands>| {
                let kernels = applied.chunks(RESULTS);
                kernels.map(|some| case(family, ty, some, &operands)).collect::<Vec<_>>()
            };
            cases.extend(cases_of(plain, pairs(&edges)));
            cases.extend(cases_of(with_constants, singles(&edges)));
        }
    }
    cases
}

/// Cases of one work-item in ten that divides by zero, overflows, or converts NaN or a number at an end of the
/// integer's range. Some of the numbers still fit.
pub fn trapping(family: Family) -> Vec<Case> {
    let mut cases = Vec::new();
    for ty in TYPES {
        for row in rows(ty) {
            let (good, bad) = match row.care {
                Care::None | Care::Bits => continue,
                Care::Divisor | Care::SignedDivisor => {
                    let (least, minus_one) = (1 << (ty.bits() - 1), mask(ty));
                    ([least, 3, 0], vec![[5, 0, 0], [0, 0, 0], [least, minus_one, 0]])
                }
                Care::Sum => ([1, 2, 0], vec![[mask(ty), 1, 0], [mask(ty), mask(ty), 0]]),
                Care::Fits { to, signed } => {
                    let end = f64::from(to.bits() - u32::from(signed)).exp2();
                    let numbers = match signed {
                        true => [f64::INFINITY, end, -end - 0.5, -end - 1.0, -end * 1.000_000_1],
                        false => [f64::NEG_INFINITY, end, -0.5, -1.0, end * 2.0],
                    };
                    let bits = |number: f64| match row.operands[0] {
                        types::F32 => u64::from((number as f32).to_bits()),
                        _ => number.to_bits(),
                    };
                    let bad = numbers.into_iter().chain([f64::NAN]).map(|it| [bits(it), 0, 0]);
                    ([bits(1.5), 0, 0], bad.collect())
                }
            };
            for bad in bad {
                let mut operands = [good; 10];
                operands[6] = bad;
                let applied = Applied { row, constant: None, careful: false };
                cases.push(case(family, ty, &[applied], &operands));
            }
        }
    }
    cases
}

fn mask(ty: Type) -> u64 {
    u64::MAX >> (64 - ty.bits())
}

/// Where something ends in type `ty`.
fn edges(ty: Type) -> Vec<u64> {
    match ty {
        types::F32 => F32_EDGES.iter().copied().map(u64::from).collect(),
        types::F64 => F64_EDGES.to_vec(),
        _ => {
            let (width, mask) = (u64::from(ty.bits()), mask(ty));
            let top = 1 << (width - 1);
            let mut all = vec![0, 1, 2, 3, mask, mask - 1, mask - 6, top, top - 1, top + 1];
            all.extend([width - 1, width, width + 1, 0x5a, 0x80, 0x55aa, 0xff00, 0x8000]);
            all.extend([0xdead_beef, 0x1234_5678_9abc_def0]);
            all.iter_mut().for_each(|value| *value &= mask);
            all.sort_unstable();
            all.dedup();
            all
        }
    }
}

/// Constants for an operand: edges, and common divisors, but none that trap.
fn constants(row: &Row, at: usize) -> Vec<u64> {
    let ty = row.operands[at];
    let mut all = edges(ty);
    if at == 1 && matches!(row.care, Care::Divisor | Care::SignedDivisor) {
        let divisors = [7, 10, 64, 100, 127, -5, -128].map(|it: i64| it.cast_unsigned() & mask(ty));
        all.extend(divisors);
        all.retain(|&bits| bits != 0 && (row.care == Care::Divisor || bits != mask(ty)));
    }
    all
}

/// Every pair of edges of the first two operands, with one of the third.
fn pairs([first, second, third]: &[Vec<u64>; 3]) -> Vec<Operands> {
    let all = (0..first.len()).flat_map(|i| (0..second.len()).map(move |j| (i, j)));
    all.map(|(i, j)| [first[i], second[j], third[(i + 2 * j + 1) % third.len()]]).collect()
}

/// Every edge, with two others.
fn singles([first, second, third]: &[Vec<u64>; 3]) -> Vec<Operands> {
    let other = |list: &[u64], at: usize| list[at % list.len()];
    (0..first.len()).map(|i| [first[i], other(second, i + 1), other(third, i + 3)]).collect()
}

/// A kernel in which each work-item applies all operations to its operands and stores the results, of type `to`, and
/// what else some of them give.
fn case(family: Family, to: Type, applied: &[Applied], operands: &[Operands]) -> Case {
    let word = family.word_int();
    let types = &applied[0].row.operands;
    let flags = MemFlagsData::trusted();
    let cell = |at: usize| (at as u32 * CELL).cast_signed();
    let signature = signature(CallConv::Fast, [word], []);
    let mut context = FunctionBuilderContext::new();
    let func = clif::function("directed", &signature, family.word, &mut context, |b, params| {
        let item = intrinsic(b, "harp_global_id_x", &[], word);
        let [inputs, results, others] = [3, applied.len(), applied.len()].map(|cells| cells as u32);
        let mut slice = |index: u32, cells: u32| {
            let offset = ArgumentBlock::argument(index, family.word).cast_signed();
            let base = b.ins().load(word, flags, params[0], offset);
            element(b, base, item, cells * CELL)
        };
        let [from, into, beside] = [slice(0, inputs), slice(1, results), slice(2, others)];
        let values =
            (0..).zip(types).map(|(at, &ty)| match ty.is_int() && family.in_register(ty) {
                true if ty != word => {
                    let loaded = b.ins().load(word, flags, from, cell(at));
                    b.ins().ireduce(ty, loaded)
                }
                _ => b.ins().load(ty, flags, from, cell(at)),
            });
        let values: Vec<Value> = values.collect();
        for (index, applied) in applied.iter().enumerate() {
            let results = apply(b, *applied, &values);
            for (base, &result) in [into, beside].into_iter().zip(&results) {
                let stored = stored(b, family, result);
                b.ins().store(flags, stored, base, cell(index));
            }
        }
        b.ins().return_(&[]);
    });
    let cells = |(at, bits): (usize, u64)| match types.get(at) {
        // Above the operand.
        Some(ty) if ty.is_int() => bits | 0xb5a3_9c71_e6d2_8f4b << (ty.bits() - 1) << 1,
        _ => bits,
    };
    let inputs = operands.iter().flat_map(|operands| operands.iter().copied().enumerate());
    let inputs = inputs.map(cells).flat_map(u64::to_le_bytes).collect();
    let outputs = vec![0; operands.len() * applied.len() * CELL as usize];
    let narrow = to.is_float() && !family.extension && to.bits() < word.bits();
    let elements = if narrow { Elements::Ints } else { Elements::of(to) };
    let args = [(Elements::Ints, inputs), (elements, outputs.clone()), (Elements::Ints, outputs)];
    let args = args.map(|(elements, bytes)| Argument::Buffer(elements, bytes)).into();
    Case::kernel(func, family.word, [operands.len() as u64, 1, 1], args)
}

fn apply(b: &mut Builder<'_>, applied: Applied, values: &[Value]) -> Vec<Value> {
    let Applied { row, constant, careful } = applied;
    let mut args = values.to_vec();
    if let Some((at, bits)) = constant {
        args[at] = clif::constant(b, row.operands[at], bits);
    }
    match row.care {
        _ if !careful => {}
        // A constant that divides is one that does not trap.
        Care::Divisor | Care::SignedDivisor if constant.is_none_or(|(at, _)| at == 0) => {
            args[1] = replaced(b, args[1], row.care == Care::SignedDivisor);
        }
        Care::Sum => {
            let one = b.ins().iconst(row.operands[0], 1);
            args.iter_mut().for_each(|arg| *arg = b.ins().ushr(*arg, one));
        }
        Care::Fits { to, signed } => args[0] = between(b, args[0], to, signed),
        _ => {}
    }
    row.apply(b, &args)
}

/// The divisor, or 3 where it is 0, or, if it is signed, -1.
fn replaced(b: &mut Builder<'_>, divisor: Value, signed: bool) -> Value {
    let ty = b.func.dfg.value_type(divisor);
    let (zero, three) = (b.ins().iconst(ty, 0), b.ins().iconst(ty, 3));
    let mut bad = b.ins().icmp(IntCC::Equal, divisor, zero);
    if signed {
        let inverse = b.ins().bnot(divisor);
        let also = b.ins().icmp(IntCC::Equal, inverse, zero);
        bad = b.ins().bor(bad, also);
    }
    b.ins().select(bad, three, divisor)
}

/// A result as memory holds it. A float that is stored as an integer has one pattern for all NaNs.
fn stored(b: &mut Builder<'_>, family: Family, value: Value) -> Value {
    let (ty, word) = (b.func.dfg.value_type(value), family.word_int());
    if ty.is_int() && ty.bits() < word.bits() {
        return b.ins().uextend(word, value);
    }
    if !ty.is_float() || family.extension || ty.bits() >= word.bits() {
        return value;
    }
    let nan = b.ins().f32const(f32::NAN);
    let ordered = b.ins().fcmp(FloatCC::Ordered, value, value);
    let value = b.ins().select(ordered, value, nan);
    let bits = b.ins().bitcast(types::I32, MemFlagsData::new(), value);
    b.ins().uextend(word, bits)
}
