//! Expands operations with several results, and some combined operations, to operations with one result.
//!
//! This comes before the mid-end, which can optimize the parts. Types wider than 64 bits are left as they
//! are.

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    Function, Inst, InstBuilder, InstructionData, Opcode, Type, Value, ValueDef, types,
};

/// The opcodes that [`single_results`] replaces.
pub(super) const REPLACED: [Opcode; 14] = [
    Opcode::UaddOverflow,
    Opcode::SaddOverflow,
    Opcode::UsubOverflow,
    Opcode::SsubOverflow,
    Opcode::UmulOverflow,
    Opcode::SmulOverflow,
    Opcode::UaddOverflowCin,
    Opcode::SaddOverflowCin,
    Opcode::UsubOverflowBin,
    Opcode::SsubOverflowBin,
    Opcode::Blendv,
    Opcode::Isplit,
    Opcode::Iconcat,
    Opcode::Cls,
];

/// Replaces sums, differences and products with overflow results, `isplit`, `iconcat`, `cls` and `blendv`.
pub(super) fn single_results(func: &mut Function) {
    let mut at = FuncCursor::new(func);
    while at.next_block().is_some() {
        while let Some(inst) = at.next_inst() {
            at.use_srcloc(inst);
            if let Some(new) = replacement(&mut at, inst) {
                let old = at.func.dfg.inst_results(inst).to_vec();
                at.func.dfg.clear_results(inst);
                for (old, new) in old.into_iter().zip(new) {
                    at.func.dfg.change_to_alias(old, new);
                }
                at.remove_inst_and_step_back();
            }
        }
    }
}

/// Code that computes the results of an instruction, inserted before it; none if the instruction stays.
fn replacement(at: &mut FuncCursor<'_>, inst: Inst) -> Option<Vec<Value>> {
    let data = at.func.dfg.insts[inst];
    let (opcode, args) = (data.opcode(), at.func.dfg.inst_args(inst).to_vec());
    let ty = at.func.dfg.value_type(*args.first()?);
    if !ty.is_int() || ty.bits() > 64 {
        return None;
    }
    Some(match (data, args.as_slice()) {
        (InstructionData::Binary { .. }, &[low, high]) if opcode == Opcode::Iconcat => {
            vec![concat(at, ty.double_width().filter(|full| full.bits() <= 64)?, low, high)]
        }
        (InstructionData::Binary { .. }, &[x, y]) => {
            let (result, overflow) = match opcode {
                Opcode::UaddOverflow => unsigned_sum(at, x, y, None),
                Opcode::SaddOverflow => signed_sum(at, x, y, None),
                Opcode::UsubOverflow => unsigned_difference(at, x, y, None),
                Opcode::SsubOverflow => signed_difference(at, x, y, None),
                Opcode::UmulOverflow => unsigned_product(at, x, y),
                Opcode::SmulOverflow => signed_product(at, x, y, ty),
                _ => return None,
            };
            vec![result, overflow]
        }
        (InstructionData::Ternary { .. }, &[x, y, carry]) => {
            let (result, overflow) = match opcode {
                Opcode::UaddOverflowCin => unsigned_sum(at, x, y, Some(carry)),
                Opcode::SaddOverflowCin => signed_sum(at, x, y, Some(carry)),
                Opcode::UsubOverflowBin => unsigned_difference(at, x, y, Some(carry)),
                Opcode::SsubOverflowBin => signed_difference(at, x, y, Some(carry)),
                Opcode::Blendv => return Some(vec![blend(at, x, y, carry)]),
                _ => return None,
            };
            vec![result, overflow]
        }
        (InstructionData::Unary { opcode: Opcode::Isplit, .. }, &[x]) => split(at, ty, x),
        (InstructionData::Unary { opcode: Opcode::Cls, .. }, &[x]) => {
            vec![leading_signs(at, ty, x)]
        }
        _ => return None,
    })
}

fn concat(at: &mut FuncCursor<'_>, full: Type, low: Value, high: Value) -> Value {
    let (low, high) = (at.ins().uextend(full, low), at.ins().uextend(full, high));
    let by = at.ins().iconst(types::I8, i64::from(full.bits() / 2));
    let high = at.ins().ishl(high, by);
    at.ins().bor(high, low)
}

fn split(at: &mut FuncCursor<'_>, full: Type, x: Value) -> Vec<Value> {
    let half = full.half_width().expect("the verifier wants a type with halves here");
    let by = at.ins().iconst(types::I8, i64::from(half.bits()));
    let high = at.ins().ushr(x, by);
    vec![at.ins().ireduce(half, x), at.ins().ireduce(half, high)]
}

/// The number of copies of the sign below the sign: zeros above the highest bit that differs from it.
fn leading_signs(at: &mut FuncCursor<'_>, ty: Type, x: Value) -> Value {
    let signs = signs(at, ty, x);
    let different = at.ins().bxor(x, signs);
    let zeros = at.ins().clz(different);
    let one = at.ins().iconst(ty, 1);
    at.ins().isub(zeros, one)
}

/// Chooses between `x` and `y` by the sign of `chooser`.
fn blend(at: &mut FuncCursor<'_>, chooser: Value, x: Value, y: Value) -> Value {
    let first = is_negative(at, chooser);
    at.ins().select(first, x, y)
}

/// All ones where `x` is negative, else 0.
fn signs(at: &mut FuncCursor<'_>, ty: Type, x: Value) -> Value {
    let by = at.ins().iconst(types::I8, i64::from(ty.bits() - 1));
    at.ins().sshr(x, by)
}

/// A carry, of which any nonzero value means 1, as a number of the type of `like`.
fn carried(at: &mut FuncCursor<'_>, carry: Value, like: Value) -> Value {
    let ty = at.func.dfg.value_type(like);
    let is_bool = match at.func.dfg.value_def(at.func.dfg.resolve_aliases(carry)) {
        ValueDef::Result(inst, 0) => {
            matches!(at.func.dfg.insts[inst].opcode(), Opcode::Icmp | Opcode::Fcmp)
        }
        _ => false,
    };
    let carry = if is_bool {
        carry
    } else {
        let zero = at.ins().iconst(types::I8, 0);
        at.ins().icmp(IntCC::NotEqual, carry, zero)
    };
    if ty == types::I8 { carry } else { at.ins().uextend(ty, carry) }
}

/// A sum overflows if it is below one of its terms.
fn unsigned_sum(
    at: &mut FuncCursor<'_>,
    x: Value,
    y: Value,
    carry: Option<Value>,
) -> (Value, Value) {
    let sum = at.ins().iadd(x, y);
    let overflow = at.ins().icmp(IntCC::UnsignedLessThan, sum, x);
    let Some(carry) = carry else { return (sum, overflow) };
    let carry = carried(at, carry, x);
    let total = at.ins().iadd(sum, carry);
    let again = at.ins().icmp(IntCC::UnsignedLessThan, total, sum);
    (total, at.ins().bor(overflow, again))
}

/// A signed sum, also with a carry, overflows if its sign is that of neither term.
fn signed_sum(at: &mut FuncCursor<'_>, x: Value, y: Value, carry: Option<Value>) -> (Value, Value) {
    let mut sum = at.ins().iadd(x, y);
    if let Some(carry) = carry {
        let carry = carried(at, carry, x);
        sum = at.ins().iadd(sum, carry);
    }
    let (from_x, from_y) = (at.ins().bxor(sum, x), at.ins().bxor(sum, y));
    let both = at.ins().band(from_x, from_y);
    (sum, is_negative(at, both))
}

fn unsigned_difference(
    at: &mut FuncCursor<'_>,
    x: Value,
    y: Value,
    borrow: Option<Value>,
) -> (Value, Value) {
    let difference = at.ins().isub(x, y);
    let overflow = at.ins().icmp(IntCC::UnsignedLessThan, x, y);
    let Some(borrow) = borrow else { return (difference, overflow) };
    let borrow = carried(at, borrow, x);
    let total = at.ins().isub(difference, borrow);
    let again = at.ins().icmp(IntCC::UnsignedLessThan, difference, borrow);
    (total, at.ins().bor(overflow, again))
}

/// A signed difference, also with a borrow, overflows if the operands' signs differ and its own is not that
/// of the first.
fn signed_difference(
    at: &mut FuncCursor<'_>,
    x: Value,
    y: Value,
    borrow: Option<Value>,
) -> (Value, Value) {
    let mut difference = at.ins().isub(x, y);
    if let Some(borrow) = borrow {
        let borrow = carried(at, borrow, x);
        difference = at.ins().isub(difference, borrow);
    }
    let (operands, from_x) = (at.ins().bxor(x, y), at.ins().bxor(x, difference));
    let both = at.ins().band(operands, from_x);
    (difference, is_negative(at, both))
}

fn is_negative(at: &mut FuncCursor<'_>, x: Value) -> Value {
    let ty = at.func.dfg.value_type(x);
    let zero = at.ins().iconst(ty, 0);
    at.ins().icmp(IntCC::SignedLessThan, x, zero)
}

fn unsigned_product(at: &mut FuncCursor<'_>, x: Value, y: Value) -> (Value, Value) {
    let product = at.ins().imul(x, y);
    let high = at.ins().umulhi(x, y);
    let ty = at.func.dfg.value_type(x);
    let zero = at.ins().iconst(ty, 0);
    (product, at.ins().icmp(IntCC::NotEqual, high, zero))
}

/// A signed product overflows unless its high half holds only copies of its sign.
fn signed_product(at: &mut FuncCursor<'_>, x: Value, y: Value, ty: Type) -> (Value, Value) {
    let product = at.ins().imul(x, y);
    let high = at.ins().smulhi(x, y);
    let signs = signs(at, ty, product);
    (product, at.ins().icmp(IntCC::NotEqual, high, signs))
}
