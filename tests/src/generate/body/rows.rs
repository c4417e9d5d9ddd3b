//! Operations on numbers, by the type of their result.

use std::collections::HashMap;
use std::sync::LazyLock;

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::types::{F32, F64, I8, I16, I32, I64};
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, TrapCode, Type, Value};
use cranelift_frontend::FunctionBuilder as Builder;
use smallvec::SmallVec;

/// The integer types.
pub(crate) const INTS: [Type; 4] = [I8, I16, I32, I64];
/// The float types.
pub(crate) const FLOATS: [Type; 2] = [F32, F64];
/// All types of values.
pub(in super::super) const TYPES: [Type; 6] = [I8, I16, I32, I64, F32, F64];

type Build = dyn Fn(&mut Builder<'_>, &[Value]) + Send + Sync;

/// The operands for which an operation is defined.
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
    /// Ends with the instruction whose results are those of the operation.
    build: Box<Build>,
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

impl Row {
    /// Applies it to operands: its results, the wanted one first.
    pub(in super::super) fn apply(&self, b: &mut Builder<'_>, args: &[Value]) -> Vec<Value> {
        (self.build)(b, args);
        let last = b.current_block().and_then(|block| b.func.layout.last_inst(block));
        b.inst_results(last.expect("it was just built")).to_vec()
    }
}

fn row<R>(
    operands: &[Type],
    care: Care,
    build: impl Fn(&mut Builder<'_>, &[Value]) -> R + Send + Sync + 'static,
) -> Row {
    let build = Box::new(move |b: &mut Builder<'_>, args: &[Value]| drop(build(b, args)));
    Row { operands: operands.into(), care, build, arithmetic: false }
}

/// Rows of operations on these types, which take the operands with these numbers, some behind the type they make.
macro_rules! ops {
    ($types:expr, $care:expr, $args:tt; $($name:ident)*) => {
        [$(ops!(@ $types, $care, $args, $name)),*]
    };
    (@ $types:expr, $care:expr, ($($at:literal)*), $name:ident) => {
        row(&$types, $care, |b, args| b.ins().$name($(args[$at]),*))
    };
    (@ $types:expr, $care:expr, ($to:ident $($at:literal)*), $name:ident) => {
        row(&$types, $care, move |b, args| b.ins().$name($to, $(args[$at]),*))
    };
}

fn rows_of(ty: Type) -> Vec<Row> {
    let mut all = if ty.is_int() { ints(ty) } else { floats(ty) };
    if ty == I8 {
        all.extend(comparisons());
    }
    for from in INTS {
        // One of two values, by a truth value of any type.
        all.extend(ops!([from, ty, ty], Care::None, (0 1 2); select select_spectre_guard));
    }
    all
}

fn ints(ty: Type) -> Vec<Row> {
    let mut all = Vec::new();
    all.extend(ops!([ty; 2], Care::None, (0 1); iadd isub imul band bor bxor smin smax umin umax
        umulhi smulhi));
    for amount in INTS {
        all.extend(ops!([ty, amount], Care::None, (0 1); ishl ushr sshr rotl rotr));
    }
    all.extend(ops!([ty], Care::None, (0); bnot ineg iabs popcnt clz ctz cls bitrev));
    all.extend(ops!([ty; 2], Care::Divisor, (0 1); udiv urem srem));
    all.extend(ops!([ty; 2], Care::SignedDivisor, (0 1); sdiv));
    all.extend(
        ops!([ty; 2], Care::None, (0 1); uadd_overflow sadd_overflow usub_overflow ssub_overflow
        umul_overflow smul_overflow),
    );
    all.extend(ops!([ty, ty, I8], Care::None, (0 1 2); uadd_overflow_cin sadd_overflow_cin
        usub_overflow_bin ssub_overflow_bin));
    all.extend(ops!([ty; 3], Care::None, (0 1 2); bitselect blendv));
    // Patterns that the compiler's rules combine.
    all.extend(ops!([ty; 2], Care::None, (0 1); band_not));
    all.push(row(&[ty; 3], Care::None, |b, args| {
        let less = b.ins().icmp(IntCC::SignedLessThan, args[0], args[1]);
        b.ins().select(less, args[2], args[0])
    }));
    if ty != I8 {
        all.extend(ops!([ty], Care::None, (0); bswap));
        let half = ty.half_width().expect("it is not the smallest");
        all.extend(ops!([half; 2], Care::None, (0 1); iconcat));
    }
    if let Some(double) = ty.double_width().filter(|double| INTS.contains(double)) {
        all.extend(ops!([double], Care::None, (0); isplit));
    }
    if [I32, I64].contains(&ty) {
        all.push(row(&[ty; 2], Care::Sum, |b, args| {
            b.ins().uadd_overflow_trap(args[0], args[1], SUM_OVERFLOWS)
        }));
    }
    for from in INTS {
        all.extend(ops!([from], Care::None, (ty 0); bmask));
        if from.bits() < ty.bits() {
            all.extend(ops!([from], Care::None, (ty 0); uextend sextend));
        } else if from.bits() > ty.bits() {
            all.extend(ops!([from], Care::None, (ty 0); ireduce));
        }
    }
    for from in FLOATS {
        all.extend(ops!([from], Care::None, (ty 0); fcvt_to_sint_sat fcvt_to_uint_sat));
        all.extend(ops!([from], Care::Fits { to: ty, signed: true }, (ty 0); fcvt_to_sint));
        all.extend(ops!([from], Care::Fits { to: ty, signed: false }, (ty 0); fcvt_to_uint));
        all.extend(bitcast(from, ty, Care::Bits));
    }
    all
}

/// If they are of one size.
fn bitcast(from: Type, ty: Type, care: Care) -> Option<Row> {
    let flags = MemFlagsData::new();
    let row = || row(&[from], care, move |b, args| b.ins().bitcast(ty, flags, args[0]));
    (from.bits() == ty.bits()).then(row)
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

fn floats(ty: Type) -> Vec<Row> {
    let mut all = Vec::new();
    all.extend(ops!([ty; 2], Care::None, (0 1); fadd fsub fmul fdiv));
    all.extend(ops!([ty], Care::None, (0); sqrt));
    all.extend(ops!([ty; 3], Care::None, (0 1 2); fma));
    for row in &mut all {
        row.arithmetic = true;
    }
    all.extend(ops!([ty; 2], Care::None, (0 1); fmin fmax));
    all.extend(ops!([ty], Care::None, (0); fneg fabs ceil floor trunc nearest));
    all.extend(ops!([ty; 2], Care::Bits, (0 1); fcopysign));
    all.extend(ops!([ty; 3], Care::Bits, (0 1 2); bitselect));
    all.push(row(&[ty; 3], Care::None, |b, args| {
        let less = b.ins().fcmp(FloatCC::LessThan, args[0], args[1]);
        b.ins().select(less, args[2], args[0])
    }));
    for from in INTS {
        all.extend(ops!([from], Care::None, (ty 0); fcvt_from_sint fcvt_from_uint));
        all.extend(bitcast(from, ty, Care::None));
    }
    match ty {
        F32 => all.extend(ops!([F64], Care::None, (ty 0); fdemote)),
        _ => all.extend(ops!([F32], Care::None, (ty 0); fpromote)),
    }
    all
}
