//! Values of the executing lanes made one, beside Rust's operations on the same values.

use harp_jit::ir::condcodes::IntCC;
use harp_jit::ir::{MemFlagsData, Type, Value, types};
use harp_jit::{
    ArchId, BuildError, BuildErrorKind, KernelBuilder, KernelSource, ParamType, Reduction,
};
use harp_runtime::LaunchConfig;

use super::{compile_all, device, run};

const INTS: [Reduction; 8] = [
    Reduction::Iadd,
    Reduction::Smin,
    Reduction::Umin,
    Reduction::Smax,
    Reduction::Umax,
    Reduction::Band,
    Reduction::Bor,
    Reduction::Bxor,
];
const FLOATS: [Reduction; 3] = [Reduction::Fadd, Reduction::Fmin, Reduction::Fmax];

fn reductions(ty: Type) -> &'static [Reduction] {
    if ty.is_int() { &INTS } else { &FLOATS }
}

/// What the eight work-items have: their lanes part where bit 0 differs, and again at bit 1.
const VALUES: [i32; 8] = [100, -7, 3, i32::MIN, 5, 5, i32::MAX, -2];

/// The sides that work-items are on.
fn side(value: i32) -> i32 {
    value & 3
}

/// Adds to the kernel what stores each reduction of `value` in a row of its own.
fn reduce_all(b: &mut KernelBuilder<'_>, ty: Type, value: Value, data: Value) {
    let reductions = reductions(ty);
    let (i, size) = (b.global_id(0), b.global_size(0));
    for (row, &reduction) in reductions.iter().enumerate() {
        let result = b.reduce(reduction, value);
        let bits = folded(b, result, ty);
        let bits =
            if b.word_int() == types::I32 { bits } else { b.ins().sextend(types::I64, bits) };
        let start = b.ins().imul_imm_s(size, row as i64 + 1);
        let index = b.ins().iadd(start, i);
        b.store_elem(bits, data, index);
    }
}

/// The value of any type as 32 bits: the halves of a wide one are added.
fn folded(b: &mut KernelBuilder<'_>, value: Value, ty: Type) -> Value {
    let flags = MemFlagsData::new();
    match ty {
        types::I8 => b.ins().sextend(types::I32, value),
        types::F32 => b.ins().bitcast(types::I32, flags, value),
        types::F64 => {
            let bits = b.ins().bitcast(types::I64, flags, value);
            folded(b, bits, types::I64)
        }
        types::I64 => {
            let high = b.ins().ushr_imm_u(value, 32);
            let sum = b.ins().iadd(high, value);
            b.ins().ireduce(types::I32, sum)
        }
        _ => value,
    }
}

fn typed(b: &mut KernelBuilder<'_>, value: Value, ty: Type) -> Value {
    match ty {
        types::I8 => b.ins().ireduce(ty, value),
        types::I64 => {
            let wide = b.ins().sextend(ty, value);
            b.ins().imul_imm_s(wide, FACTOR)
        }
        types::F32 | types::F64 => b.ins().fcvt_from_sint(ty, value),
        _ => value,
    }
}

/// Makes numbers that need two words.
const FACTOR: i64 = 0x1_0000_0003;

/// What Rust says, of the values of one side in the order of lanes.
fn expected(reduction: Reduction, ty: Type, values: &[i32]) -> u32 {
    macro_rules! ints {
        ($signed:ty, $unsigned:ty, $from:expr) => {{
            let values = values.iter().map($from);
            let result: $signed = match reduction {
                Reduction::Iadd => values.fold(0, <$signed>::wrapping_add),
                Reduction::Smin => values.min().unwrap(),
                Reduction::Umin => values.map(|x| x as $unsigned).min().unwrap() as $signed,
                Reduction::Smax => values.max().unwrap(),
                Reduction::Umax => values.map(|x| x as $unsigned).max().unwrap() as $signed,
                Reduction::Band => values.reduce(|x, y| x & y).unwrap(),
                Reduction::Bor => values.reduce(|x, y| x | y).unwrap(),
                Reduction::Bxor => values.reduce(|x, y| x ^ y).unwrap(),
                other => panic!("{other:?} is about floats"),
            };
            result
        }};
    }
    macro_rules! floats {
        ($float:ty) => {{
            let values = values.iter().map(|&x| x as $float);
            match reduction {
                Reduction::Fadd => values.reduce(|x, y| x + y).unwrap(),
                Reduction::Fmin => values.reduce(<$float>::min).unwrap(),
                Reduction::Fmax => values.reduce(<$float>::max).unwrap(),
                other => panic!("{other:?} is about integers"),
            }
        }};
    }
    let fold = |bits: u64| ((bits >> 32) as u32).wrapping_add(bits as u32);
    match ty {
        types::I8 => i32::from(ints!(i8, u8, |&x| x as i8)) as u32,
        types::I32 => ints!(i32, u32, |&x| x) as u32,
        types::I64 => fold(ints!(i64, u64, |&x| i64::from(x).wrapping_mul(FACTOR)) as u64),
        types::F32 => floats!(f32).to_bits(),
        types::F64 => fold(floats!(f64).to_bits()),
        other => panic!("{other}"),
    }
}

/// In a kernel whose lanes part twice, under every strategy, with and without the mid-end, on machines with
/// and without extension X, of both word sizes, with few registers and with more lanes than work-items.
#[test]
fn reductions_are_of_the_lanes_that_execute_them() {
    let machines = ["4w8/8/8/2", "4w8/2/8/1+x", "8b32/16/8/2", "4w64/64/32/4", "harp64+x"];
    for arch in machines.map(|id| id.parse::<ArchId>().unwrap()) {
        for ty in [types::I8, types::I32, types::I64, types::F32, types::F64] {
            let reductions = reductions(ty);
            let kernels = compile_all(arch, |b| {
                let data = b.param(ParamType::Pointer);
                let i = b.global_id(0);
                let given = b.load_elem(b.word_int(), data, i);
                let narrow = b.word_int() != types::I32;
                let given = if narrow { b.ins().ireduce(types::I32, given) } else { given };
                let value = typed(b, given, ty);
                let part = |b: &mut KernelBuilder<'_>, bit| {
                    let set = b.ins().band_imm_u(given, bit);
                    b.ins().icmp_imm_s(IntCC::NotEqual, set, 0)
                };
                let odd = part(b, 1);
                b.if_else(
                    odd,
                    |b| {
                        let set = part(b, 2);
                        let reduce = |b: &mut KernelBuilder<'_>| reduce_all(b, ty, value, data);
                        b.if_else(set, reduce, reduce);
                    },
                    |b| {
                        let set = part(b, 2);
                        let reduce = |b: &mut KernelBuilder<'_>| reduce_all(b, ty, value, data);
                        b.if_else(set, reduce, reduce);
                    },
                );
            });
            let mut words = VALUES.to_vec();
            words.resize(8 * (reductions.len() + 1), -1);
            for kernel in &kernels {
                let found = run(&device(arch, 1), kernel, LaunchConfig::grid_1d(8), &words);
                for (row, &reduction) in reductions.iter().enumerate() {
                    let together = |value: i32| {
                        let same = |&other: &i32| side(other) == side(value);
                        VALUES.into_iter().filter(same).collect::<Vec<_>>()
                    };
                    let right = VALUES.map(|value| expected(reduction, ty, &together(value)));
                    let found = &found[(row + 1) * 8..][..8];
                    assert_eq!(found, right, "{arch}, {reduction:?} of {ty}");
                }
            }
        }
    }
}

#[test]
fn reductions_of_other_types_are_errors() {
    let mut source = KernelSource::new("test", ArchId::HARP32);
    let mut b = KernelBuilder::new(&mut source);
    let float = b.ins().f32const(1.0);
    b.reduce(Reduction::Umax, float);
    b.return_();
    let BuildError { kind, .. } = b.finalize().unwrap_err();
    let BuildErrorKind::ControllingType { given, .. } = kind else { panic!("{kind}") };
    assert_eq!(given, types::F32);
}
