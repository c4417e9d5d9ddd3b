//! Operations on numbers, by the type of what they make.

use std::collections::HashMap;
use std::sync::LazyLock;

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::types::{F32, F64, I8, I16, I32, I64};
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, TrapCode, Type, Value};
use cranelift_frontend::FunctionBuilder;
use smallvec::{SmallVec, smallvec};

/// The integer types.
pub(in super::super) const INTS: [Type; 4] = [I8, I16, I32, I64];
/// The float types.
pub(in super::super) const FLOATS: [Type; 2] = [F32, F64];
/// All types of values.
pub(in super::super) const TYPES: [Type; 6] = [I8, I16, I32, I64, F32, F64];

/// Results of an operation, the wanted one first.
pub(in super::super) type Results = SmallVec<[Value; 2]>;

type Build = dyn Fn(&mut FunctionBuilder<'_>, &[Value]) -> Results + Send + Sync;

/// What an operation asks of its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Care {
    /// Nothing.
    None,
    /// The second is no zero.
    Divisor,
    /// The second is neither 0 nor -1.
    SignedDivisor,
    /// The sum does not overflow.
    Sum,
    /// The number fits the integer type, which may be signed.
    Fits { to: Type, signed: bool },
    /// Floats are no NaNs: their bits get into something else.
    Bits,
}

/// An operation.
pub(in super::super) struct Row {
    pub(in super::super) operands: SmallVec<[Type; 3]>,
    pub(in super::super) care: Care,
    pub(in super::super) build: Box<Build>,
    /// Whether it is arithmetic on floats, which takes many instructions where the machine has none.
    pub(in super::super) arithmetic: bool,
}

/// The code of an addition that overflows.
const SUM_OVERFLOWS: TrapCode = TrapCode::unwrap_user(17);

/// All operations that make a value of this type.
pub(in super::super) fn rows(ty: Type) -> &'static [Row] {
    static ROWS: LazyLock<HashMap<Type, Vec<Row>>> =
        LazyLock::new(|| TYPES.into_iter().map(|ty| (ty, rows_of(ty))).collect());
    &ROWS[&ty]
}

fn row(
    operands: &[Type],
    care: Care,
    build: impl Fn(&mut FunctionBuilder<'_>, &[Value]) -> Value + Send + Sync + 'static,
) -> Row {
    Row {
        operands: operands.into(),
        care,
        build: Box::new(move |b, args| smallvec![build(b, args)]),
        arithmetic: false,
    }
}

fn pair(
    operands: &[Type],
    build: impl Fn(&mut FunctionBuilder<'_>, &[Value]) -> (Value, Value) + Send + Sync + 'static,
) -> Row {
    let build = move |b: &mut FunctionBuilder<'_>, args: &[Value]| -> Results {
        let (first, second) = build(b, args);
        smallvec![first, second]
    };
    Row { operands: operands.into(), care: Care::None, build: Box::new(build), arithmetic: false }
}

/// Operations with two operands of one type.
macro_rules! binary {
    ($ty:expr, $care:expr; $($name:ident)*) => {
        [$(row(&[$ty, $ty], $care, |b, args| b.ins().$name(args[0], args[1]))),*]
    };
}

/// Operations with one operand.
macro_rules! unary {
    ($ty:expr; $($name:ident)*) => {
        [$(row(&[$ty], Care::None, |b, args| b.ins().$name(args[0]))),*]
    };
}

/// Operations from one type to another.
macro_rules! convert {
    ($from:expr, $to:expr, $care:expr; $($name:ident)*) => {
        [$({ let to = $to; row(&[$from], $care, move |b, args| b.ins().$name(to, args[0])) }),*]
    };
}

/// Operations that give a number and a flag.
macro_rules! flagged {
    ($ty:expr; $($name:ident)*) => {
        [$(pair(&[$ty, $ty], |b, args| b.ins().$name(args[0], args[1]))),*]
    };
}

/// The same with a carry.
macro_rules! carrying {
    ($ty:expr; $($name:ident)*) => {
        [$(pair(&[$ty, $ty, I8], |b, args| b.ins().$name(args[0], args[1], args[2]))),*]
    };
}

fn rows_of(ty: Type) -> Vec<Row> {
    let mut all = if ty.is_int() { ints(ty) } else { floats(ty) };
    if ty == I8 {
        all.extend(comparisons());
    }
    all.extend(INTS.into_iter().flat_map(|from| chosen(from, ty)));
    all
}

fn ints(ty: Type) -> Vec<Row> {
    let mut all = Vec::new();
    all.extend(binary!(ty, Care::None; iadd isub imul band bor bxor smin smax umin umax umulhi
        smulhi));
    for amount in INTS {
        let amounts = [ty, amount];
        all.push(row(&amounts, Care::None, |b, args| b.ins().ishl(args[0], args[1])));
        all.push(row(&amounts, Care::None, |b, args| b.ins().ushr(args[0], args[1])));
        all.push(row(&amounts, Care::None, |b, args| b.ins().sshr(args[0], args[1])));
        all.push(row(&amounts, Care::None, |b, args| b.ins().rotl(args[0], args[1])));
        all.push(row(&amounts, Care::None, |b, args| b.ins().rotr(args[0], args[1])));
    }
    all.extend(unary!(ty; bnot ineg iabs popcnt clz ctz cls bitrev));
    all.extend(binary!(ty, Care::Divisor; udiv urem srem));
    all.extend(binary!(ty, Care::SignedDivisor; sdiv));
    all.extend(flagged!(ty; uadd_overflow sadd_overflow usub_overflow ssub_overflow umul_overflow
        smul_overflow));
    all.extend(carrying!(ty; uadd_overflow_cin sadd_overflow_cin usub_overflow_bin
        ssub_overflow_bin));
    all.push(row(&[ty; 3], Care::None, |b, args| b.ins().bitselect(args[0], args[1], args[2])));
    all.push(row(&[ty; 3], Care::None, |b, args| b.ins().blendv(args[0], args[1], args[2])));
    // What rules take together.
    all.extend(binary!(ty, Care::None; band_not));
    all.push(row(&[ty; 3], Care::None, |b, args| {
        let less = b.ins().icmp(IntCC::SignedLessThan, args[0], args[1]);
        b.ins().select(less, args[2], args[0])
    }));
    if ty != I8 {
        all.extend(unary!(ty; bswap));
        let half = ty.half_width().expect("it is not the smallest");
        all.push(row(&[half; 2], Care::None, |b, args| b.ins().iconcat(args[0], args[1])));
    }
    if let Some(double) = ty.double_width().filter(|double| INTS.contains(double)) {
        all.push(pair(&[double], |b, args| b.ins().isplit(args[0])));
    }
    if [I32, I64].contains(&ty) {
        all.push(row(&[ty; 2], Care::Sum, |b, args| {
            b.ins().uadd_overflow_trap(args[0], args[1], SUM_OVERFLOWS)
        }));
    }
    for from in INTS {
        all.extend(convert!(from, ty, Care::None; bmask));
        if from.bits() < ty.bits() {
            all.extend(convert!(from, ty, Care::None; uextend sextend));
        } else if from.bits() > ty.bits() {
            all.extend(convert!(from, ty, Care::None; ireduce));
        }
    }
    for from in FLOATS {
        all.extend(convert!(from, ty, Care::None; fcvt_to_sint_sat fcvt_to_uint_sat));
        all.extend(convert!(from, ty, Care::Fits { to: ty, signed: true }; fcvt_to_sint));
        all.extend(convert!(from, ty, Care::Fits { to: ty, signed: false }; fcvt_to_uint));
        if from.bits() == ty.bits() {
            all.push(row(&[from], Care::Bits, move |b, args| {
                b.ins().bitcast(ty, MemFlagsData::new(), args[0])
            }));
        }
    }
    all
}

fn comparisons() -> Vec<Row> {
    let mut all = Vec::new();
    for ty in INTS {
        all.extend(IntCC::all().iter().map(|&condition| {
            row(&[ty; 2], Care::None, move |b, args| b.ins().icmp(condition, args[0], args[1]))
        }));
    }
    for ty in FLOATS {
        all.extend(FloatCC::all().iter().map(|&condition| {
            row(&[ty; 2], Care::None, move |b, args| b.ins().fcmp(condition, args[0], args[1]))
        }));
    }
    all
}

/// One of two values, by a truth value of type `from`.
fn chosen(from: Type, ty: Type) -> Vec<Row> {
    let operands = [from, ty, ty];
    vec![
        row(&operands, Care::None, |b, args| b.ins().select(args[0], args[1], args[2])),
        row(&operands, Care::None, |b, args| {
            b.ins().select_spectre_guard(args[0], args[1], args[2])
        }),
    ]
}

fn floats(ty: Type) -> Vec<Row> {
    let mut all = Vec::new();
    all.extend(binary!(ty, Care::None; fadd fsub fmul fdiv));
    all.extend(unary!(ty; sqrt));
    all.push(row(&[ty; 3], Care::None, |b, args| b.ins().fma(args[0], args[1], args[2])));
    for row in &mut all {
        row.arithmetic = true;
    }
    all.extend(binary!(ty, Care::None; fmin fmax));
    all.extend(unary!(ty; fneg fabs ceil floor trunc nearest));
    all.extend(binary!(ty, Care::Bits; fcopysign));
    all.push(row(&[ty; 3], Care::Bits, |b, args| b.ins().bitselect(args[0], args[1], args[2])));
    all.push(row(&[ty; 3], Care::None, |b, args| {
        let less = b.ins().fcmp(FloatCC::LessThan, args[0], args[1]);
        b.ins().select(less, args[2], args[0])
    }));
    for from in INTS {
        all.extend(convert!(from, ty, Care::None; fcvt_from_sint fcvt_from_uint));
        if from.bits() == ty.bits() {
            all.push(row(&[from], Care::None, move |b, args| {
                b.ins().bitcast(ty, MemFlagsData::new(), args[0])
            }));
        }
    }
    match ty {
        F32 => all.extend(convert!(F64, ty, Care::None; fdemote)),
        _ => all.extend(convert!(F32, ty, Care::None; fpromote)),
    }
    all
}
