//! Every operation on numbers that has a lowering rule, by the types of operands and result.

use std::cmp::Ordering;
use std::rc::Rc;

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{MemFlagsData, Type, Value, types};
use harp_jit::KernelBuilder;

use super::Family;

/// Makes a result from three operands of one type.
pub(super) type Build = Rc<dyn Fn(&mut KernelBuilder<'_>, [Value; 3]) -> Value>;

/// An operation on up to three operands of one type.
pub(super) struct Operation {
    pub(super) build: Build,
    /// Whether constants as its first two operands are of interest: there are rules for them.
    pub(super) constants: bool,
}

fn operation(
    constants: bool,
    build: impl Fn(&mut KernelBuilder<'_>, [Value; 3]) -> Value + 'static,
) -> Operation {
    Operation { build: Rc::new(build), constants }
}

/// The operations of a list, each a method of the instruction builder with two operands.
macro_rules! binary {
    ($($name:ident)*) => {
        [$(operation(true, |b, [x, y, _]| b.ins().$name(x, y))),*]
    };
}

/// The same with one operand.
macro_rules! unary {
    ($($name:ident)*) => {
        [$(operation(false, |b, [x, _, _]| b.ins().$name(x))),*]
    };
}

/// The same with one operand and the result's type.
macro_rules! convert {
    ($to:expr; $($name:ident)*) => {
        [$({ let to = $to; operation(false, move |b, [x, _, _]| b.ins().$name(to, x)) }),*]
    };
}

/// The operations of a machine: the type of their operands, that of their results, and all of them.
pub(super) fn operations(family: Family) -> Vec<(Type, Type, Vec<Operation>)> {
    let mut all = Vec::new();
    for &ty in family.ints() {
        all.push((ty, ty, int_operations(ty)));
        all.push((ty, types::I8, comparisons()));
        all.push((ty, types::I8, flags()));
        all.extend(family.ints().iter().map(|&to| (ty, to, resizes(ty, to))));
        all.extend(family.floats().iter().map(|&to| (ty, to, conversions_to_float(ty, to))));
    }
    for &ty in family.floats() {
        all.push((ty, ty, float_operations()));
        all.push((ty, types::I8, float_comparisons()));
        all.extend(family.ints().iter().map(|&to| (ty, to, conversions_to_int(ty, to))));
        for &to in family.floats() {
            match to.bits().cmp(&ty.bits()) {
                Ordering::Greater => all.push((ty, to, convert!(to; fpromote).into())),
                Ordering::Equal => {}
                Ordering::Less => all.push((ty, to, convert!(to; fdemote).into())),
            }
        }
    }
    all
}

fn int_operations(ty: Type) -> Vec<Operation> {
    let mut all = Vec::new();
    all.extend(binary!(iadd isub imul band bor bxor band_not smin smax umin umax umulhi smulhi));
    all.extend(binary!(ishl ushr sshr rotl rotr));
    all.extend(unary!(bnot ineg iabs popcnt clz ctz cls bitrev));
    all.extend(sums());
    all.extend(halves(ty));
    if ty != types::I8 {
        all.extend(unary!(bswap));
    }
    all.extend([
        operation(true, |b, [x, y, z]| b.ins().bitselect(x, y, z)),
        operation(true, |b, [x, y, z]| b.ins().select(x, y, z)),
        operation(false, |b, [x, y, z]| b.ins().select_spectre_guard(x, y, z)),
        operation(true, |b, [x, y, z]| b.ins().blendv(x, y, z)),
        operation(true, |b, [x, y, z]| {
            let less = b.ins().icmp(IntCC::SignedLessThan, x, y);
            b.ins().select(less, z, x)
        }),
        // A byte's amount is as good as one of the type.
        operation(false, |b, [x, y, _]| {
            let amount = narrowed(b, types::I8, y);
            b.ins().sshr(x, amount)
        }),
    ]);
    // Divisors that are neither 0 nor, for `sdiv`, -1.
    all.extend([
        operation(false, move |b, [x, y, _]| {
            let divisor = nonzero(b, y, y);
            b.ins().udiv(x, divisor)
        }),
        operation(false, move |b, [x, y, _]| {
            let divisor = nonzero(b, y, y);
            b.ins().urem(x, divisor)
        }),
        operation(false, move |b, [x, y, _]| {
            let divisor = nonzero(b, y, y);
            b.ins().srem(x, divisor)
        }),
        operation(false, move |b, [x, y, _]| {
            let next = b.ins().bnot(y);
            let divisor = nonzero(b, y, next);
            b.ins().sdiv(x, divisor)
        }),
    ]);
    for divisor in [1, 2, 3, 7, 10, 64, 100, 127, -1, -2, -5, -128] {
        let divisor = divisor & (u64::MAX >> (64 - ty.bits())).cast_signed();
        let minus_one = divisor.count_ones() == ty.bits();
        let konst = move |b: &mut KernelBuilder<'_>| b.ins().iconst(ty, divisor);
        all.extend([
            operation(false, move |b, [x, _, _]| {
                let divisor = konst(b);
                b.ins().udiv(x, divisor)
            }),
            operation(false, move |b, [x, _, _]| {
                let divisor = konst(b);
                b.ins().urem(x, divisor)
            }),
            operation(false, move |b, [x, _, _]| {
                let divisor = konst(b);
                b.ins().srem(x, divisor)
            }),
        ]);
        if !minus_one {
            all.push(operation(false, move |b, [x, _, _]| {
                let divisor = konst(b);
                b.ins().sdiv(x, divisor)
            }));
        }
    }
    all
}

/// `x`, or 3 where `tested` or `other` is 0.
fn nonzero(b: &mut KernelBuilder<'_>, tested: Value, other: Value) -> Value {
    let ty = b.inner().func.dfg.value_type(tested);
    let (zero, three) = (b.ins().iconst(ty, 0), b.ins().iconst(ty, 3));
    let bad = b.ins().icmp(IntCC::Equal, tested, zero);
    let also = b.ins().icmp(IntCC::Equal, other, zero);
    let bad = b.ins().bor(bad, also);
    b.ins().select(bad, three, tested)
}

fn narrowed(b: &mut KernelBuilder<'_>, to: Type, x: Value) -> Value {
    let from = b.inner().func.dfg.value_type(x);
    if from == to { x } else { b.ins().ireduce(to, x) }
}

fn comparisons() -> Vec<Operation> {
    let all = IntCC::all()
        .iter()
        .map(|&condition| operation(true, move |b, [x, y, _]| b.ins().icmp(condition, x, y)));
    all.collect()
}

/// The operations of a list that give a number and a flag, with `part` of these as the result.
macro_rules! flagged {
    ($part:tt; $($name:ident)*) => {
        [$(operation(true, |b, [x, y, _]| b.ins().$name(x, y).$part)),*]
    };
}

/// The same with a carry.
macro_rules! carrying {
    ($part:tt; $($name:ident)*) => {
        [$(
            operation(true, |b, [x, y, z]| {
                let carry = narrowed(b, types::I8, z);
                b.ins().$name(x, y, carry).$part
            }),
            operation(false, |b, [x, y, z]| {
                let carry = b.ins().icmp(IntCC::UnsignedLessThan, y, z);
                b.ins().$name(x, y, carry).$part
            })
        ),*]
    };
}

/// The numbers of operations that tell of their overflow.
fn sums() -> Vec<Operation> {
    let mut all = Vec::from(flagged!(0; uadd_overflow sadd_overflow usub_overflow ssub_overflow
        umul_overflow smul_overflow));
    all.extend(carrying!(0; uadd_overflow_cin sadd_overflow_cin usub_overflow_bin
        ssub_overflow_bin));
    all
}

/// The flags of the same operations.
fn flags() -> Vec<Operation> {
    let mut all = Vec::from(flagged!(1; uadd_overflow sadd_overflow usub_overflow ssub_overflow
        umul_overflow smul_overflow));
    all.extend(carrying!(1; uadd_overflow_cin sadd_overflow_cin usub_overflow_bin
        ssub_overflow_bin));
    all
}

/// Numbers from the halves of others.
fn halves(ty: Type) -> Vec<Operation> {
    if ty == types::I8 {
        return Vec::new();
    }
    vec![operation(true, |b, [x, y, _]| {
        let ((low, _), (_, high)) = (b.ins().isplit(x), b.ins().isplit(y));
        b.ins().iconcat(high, low)
    })]
}

fn resizes(ty: Type, to: Type) -> Vec<Operation> {
    let mut all = Vec::from(convert!(to; bmask));
    match to.bits().cmp(&ty.bits()) {
        Ordering::Greater => all.extend(convert!(to; uextend sextend)),
        Ordering::Equal => {}
        Ordering::Less => all.extend(convert!(to; ireduce)),
    }
    all
}

fn conversions_to_float(ty: Type, to: Type) -> Vec<Operation> {
    let mut all = Vec::from(convert!(to; fcvt_from_sint fcvt_from_uint));
    if ty.bits() == to.bits() {
        all.push(operation(false, move |b, [x, _, _]| b.ins().bitcast(to, MemFlagsData::new(), x)));
    }
    all
}

fn conversions_to_int(ty: Type, to: Type) -> Vec<Operation> {
    let mut all = Vec::from(convert!(to; fcvt_to_sint_sat fcvt_to_uint_sat));
    // Those that trap, with what does not.
    let limit = f64::from(to.bits() - 1).exp2();
    all.push(operation(false, move |b, [x, _, _]| {
        let x = between(b, x, -limit, limit);
        b.ins().fcvt_to_sint(to, x)
    }));
    all.push(operation(false, move |b, [x, _, _]| {
        let x = between(b, x, -1.0, f64::from(to.bits()).exp2());
        b.ins().fcvt_to_uint(to, x)
    }));
    if ty.bits() == to.bits() {
        all.push(operation(false, move |b, [x, _, _]| b.ins().bitcast(to, MemFlagsData::new(), x)));
    }
    all
}

/// `x`, or 1 where it is not between `low` and `high`, neither included.
fn between(b: &mut KernelBuilder<'_>, x: Value, low: f64, high: f64) -> Value {
    let ty = b.inner().func.dfg.value_type(x);
    let [low, high, one] = [low, high, 1.0].map(|number| match ty {
        types::F32 => b.ins().f32const(number as f32),
        _ => b.ins().f64const(number),
    });
    let above = b.ins().fcmp(FloatCC::GreaterThan, x, low);
    let below = b.ins().fcmp(FloatCC::LessThan, x, high);
    let fits = b.ins().band(above, below);
    b.ins().select(fits, x, one)
}

fn float_operations() -> Vec<Operation> {
    let mut all = Vec::new();
    all.extend(binary!(fadd fsub fmul fdiv fcopysign fmin fmax));
    all.extend(unary!(fneg fabs sqrt ceil floor trunc nearest));
    all.extend([
        operation(false, |b, [x, y, z]| b.ins().fma(x, y, z)),
        operation(false, |b, [x, y, z]| b.ins().bitselect(x, y, z)),
        operation(false, |b, [x, y, z]| {
            let less = b.ins().fcmp(FloatCC::LessThan, x, y);
            b.ins().select(less, z, x)
        }),
    ]);
    all
}

fn float_comparisons() -> Vec<Operation> {
    let all = FloatCC::all()
        .iter()
        .map(|&condition| operation(true, move |b, [x, y, _]| b.ins().fcmp(condition, x, y)));
    all.collect()
}
