//! Random machines and instructions.

use harp_isa::{
    ArchId, Encoding, Gpr, Instruction, Layout, Op, Opcode, Operand, OperandKind, Pred, WordSize,
};
use proptest::prelude::*;

/// Any valid machine; with the extension and with shared registers wherever they fit and chance says so.
pub(crate) fn machine() -> impl Strategy<Value = ArchId> {
    let word = prop_oneof![Just(WordSize::Four), Just(WordSize::Eight)];
    let encoding = prop_oneof![Just(Encoding::Word), Just(Encoding::Byte)];
    let shared = prop_oneof![Just((0, 0)), (1..=56_u8, 0..=62_u8)];
    (word, encoding, 8..=64_u8, 2..=64_u8, 1..=64_u8, 1..=64_u8, any::<bool>(), shared)
        .prop_filter_map(
            "more predicates than the word encoding holds",
            |(word, encoding, gprs, preds, lanes, warps, extension, (more_gprs, more_preds))| {
                let arch = ArchId::new(word, encoding, gprs, preds).ok()?;
                let arch = arch.with_lanes(lanes).and_then(|arch| arch.with_warps(warps)).ok()?;
                let arch = arch.with_extension(extension).unwrap_or(arch);
                let (more_gprs, more_preds) =
                    (more_gprs.min(64 - gprs), more_preds.min(64 - preds));
                Some(arch.with_shared(more_gprs, more_preds).unwrap_or(arch))
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
    let predicate = |choice: u64| Pred::new((choice % u64::from(arch.all_preds())) as u8);
    let operands: Vec<Operand> = opcode
        .operands()
        .iter()
        .zip(operands)
        .map(|(description, choice)| match description.kind {
            OperandKind::Gpr(_) => Gpr::new((choice % u64::from(arch.all_gprs())) as u8).into(),
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
