//! Random machines and instructions.

use harp_isa::{
    ArchId, Encoding, Gpr, Instruction, Layout, Op, Opcode, Operand, OperandKind, Pred, WordSize,
};
use proptest::prelude::*;

/// Any valid machine; with the extension wherever it fits and chance says so.
pub(crate) fn machine() -> impl Strategy<Value = ArchId> {
    let word = prop_oneof![Just(WordSize::Four), Just(WordSize::Eight)];
    let encoding = prop_oneof![Just(Encoding::Word), Just(Encoding::Byte)];
    (word, encoding, 8..=64_u8, 2..=64_u8, 1..=64_u8, 1..=64_u8, any::<bool>()).prop_filter_map(
        "more predicates than the word encoding holds",
        |(word, encoding, gprs, preds, lanes, warps, extension)| {
            let arch = ArchId::new(word, encoding, gprs, preds).ok()?;
            let arch = arch.with_lanes(lanes).and_then(|arch| arch.with_warps(warps)).ok()?;
            Some(arch.with_extension(extension).unwrap_or(arch))
        },
    )
}

/// Random numbers from which [`instruction`] makes the guard and up to three operands.
pub(crate) type Choices = [u64; 4];

/// Choices for an instruction of every opcode.
pub(crate) fn choices() -> impl Strategy<Value = Vec<Choices>> {
    prop::collection::vec(any::<Choices>(), Opcode::ALL.len())
}

/// A valid instruction of `opcode` on `arch`.
pub(crate) fn instruction(opcode: Opcode, arch: ArchId, choices: Choices) -> Instruction {
    let [guard, operands @ ..] = choices;
    let predicate = |choice: u64| Pred::new((choice % u64::from(arch.preds())) as u8);
    let operands: Vec<Operand> = opcode
        .operands()
        .iter()
        .zip(operands)
        .map(|(description, choice)| match description.kind {
            OperandKind::Gpr(_) => Gpr::new((choice % u64::from(arch.gprs())) as u8).into(),
            OperandKind::Pred(_) => predicate(choice).into(),
            OperandKind::Imm | OperandKind::Rel => immediate(opcode, arch, choice).into(),
        })
        .collect();
    let op = Op::from_operands(opcode, &operands).unwrap();
    Instruction { guard: (guard % 2 == 0).then(|| predicate(guard / 2)), op }
}

/// An immediate that fits, one of the extremes every fourth time.
fn immediate(opcode: Opcode, arch: ArchId, choice: u64) -> i64 {
    let limits = Layout::new(arch).immediate_range(opcode);
    match choice % 8 {
        0 => *limits.start(),
        1 => *limits.end(),
        _ => {
            let unused = 64 - u32::from(Layout::new(arch).immediate_bits(opcode));
            choice.cast_signed() >> unused
        }
    }
}
