//! The operands of operations, and their results on numbers and addresses.

use harp_isa::{
    Gpr, Instruction, Op, OpcodeFlags, Operand, Pred, RegClass, Role as Access, WordSize,
};
use smallvec::{SmallVec, smallvec};

use crate::places::{Place, Places};

/// An operation that acts on a warp as a whole.
pub(crate) const WARP: OpcodeFlags =
    OpcodeFlags::CONTROL.union(OpcodeFlags::ONCE_PER_WARP).union(OpcodeFlags::CROSS_LANE);

/// The registers that an operation reads and writes, as if it were not guarded.
pub(crate) fn registers(op: Op) -> SmallVec<[(Operand, Access); 4]> {
    let mut registers = SmallVec::new();
    let push = |operand, _: RegClass, access| registers.push((operand, access));
    Instruction::new(op).for_each_register(push);
    registers
}

/// The operands of an operation that [`compute`] knows.
pub(crate) fn sources(op: Op) -> Option<SmallVec<[Place; 2]>> {
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

/// Whether the result of an operation is a predicate.
pub(crate) fn to_truth(op: Op) -> bool {
    let mut truth = false;
    Instruction::new(op).for_each_register(|operand, _, access| {
        truth |= access != Access::Use && matches!(operand, Operand::Pred(_));
    });
    truth
}

/// Whether the result of an operation depends on its operands alone.
pub(crate) fn is_pure(op: Op) -> bool {
    let pure = OpcodeFlags::FLOAT | OpcodeFlags::EXTENSION | OpcodeFlags::DIVIDES;
    let mut changes = false;
    Instruction::new(op).for_each_register(|_, _, access| changes |= access == Access::Mod);
    let asks = matches!(op, Op::Csr { .. } | Op::Tid { .. });
    pure.contains(op.opcode().flags()) && !changes && !asks
}

/// The operands of an operation, its result first.
pub(crate) fn operands(op: Op) -> SmallVec<[Operand; 4]> {
    let mut operands = SmallVec::new();
    op.for_each_operand(|operand| operands.push(operand));
    operands
}

/// The result of an operation on numbers.
pub(crate) fn compute(op: Op, operands: &[u64], word: WordSize) -> Option<u64> {
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

/// The predicate operands of an operation.
pub(crate) fn predicates(op: Op) -> SmallVec<[Pred; 3]> {
    let predicate = |operand| match operand {
        Operand::Pred(reg) => Some(reg),
        Operand::Gpr(_) | Operand::Imm(_) => None,
    };
    operands(op).into_iter().filter_map(predicate).collect()
}

/// What is known about a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Unknown,
    Constant(u64),
    /// The stack pointer at the entry plus this.
    Stack(i64),
    /// The address of a word of data in the code, which is never written.
    Code,
    /// The address of the warp's scratch word.
    Scratch,
    /// The current contents of the warp's scratch word, loaded.
    Voted,
    /// The address of the warp's group control block, which nobody writes meanwhile.
    GroupBlock,
    /// A stack address without the bits below the size of a stack.
    StackNumber,
    /// The address of the lane control block plus this.
    LaneBlock(i64),
    /// A stack address without the bits below the size of a warp's stacks.
    WarpStackNumber,
    /// The address of the control block of the warp's lane 0.
    FirstBlock,
    /// An address in the lane's stack, as far from its base as in the other lanes.
    OnStack,
}

/// The result of an operation on an address and a distance.
pub(crate) fn sum(op: Op, form: impl Fn(Gpr) -> Form, word: WordSize) -> Form {
    let constant = |imm: i64| Form::Constant(imm.cast_unsigned() & word.mask());
    let (base, distance) = match op {
        Op::Addi { src, imm, .. } => (form(src), constant(imm)),
        Op::Subi { src, imm, .. } => (form(src), constant(imm.wrapping_neg())),
        Op::Add { a, b, .. } => match form(a) {
            constant @ Form::Constant(_) => (form(b), constant),
            base => (base, form(b)),
        },
        Op::Sub { a, b, .. } => match form(b) {
            Form::Constant(by) => (form(a), constant(by.wrapping_neg().cast_signed())),
            _ => return Form::Unknown,
        },
        _ => return Form::Unknown,
    };
    let Form::Constant(distance) = distance else { return Form::Unknown };
    match base {
        Form::Stack(place) => Form::Stack(place.wrapping_add(word.sign_extend(distance))),
        Form::LaneBlock(place) => Form::LaneBlock(place.wrapping_add(word.sign_extend(distance))),
        Form::OnStack => Form::OnStack,
        _ => Form::Unknown,
    }
}
