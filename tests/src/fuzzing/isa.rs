//! Any bytes on any machine: what decodes must survive encoding, printing and assembling.

use arbitrary::Unstructured;
use harp_isa::{ArchId, Encoding, Instruction, WordSize, assemble, disassemble, encode};

use crate::random::{Counts, add};

/// Any machine. Fails if `u` is exhausted, or asks for a machine whose instructions do not fit a word.
pub fn arch(u: &mut Unstructured<'_>) -> arbitrary::Result<ArchId> {
    let word = *u.choose(&[WordSize::Four, WordSize::Eight])?;
    let encoding = *u.choose(&[Encoding::Word, Encoding::Byte])?;
    let (gprs, preds) = (u.int_in_range(8..=64)?, u.int_in_range(2..=64)?);
    let arch = ArchId::new(word, encoding, gprs, preds);
    let arch = arch.map_err(|_| arbitrary::Error::IncorrectFormat)?;
    let extension = u.arbitrary()?;
    Ok(arch.with_extension(extension).unwrap_or(arch))
}

/// Makes guards of noise, which it seldom has: in the byte encoding one is 0xff or a small number.
pub(super) fn guard_noise(arch: ArchId, bytes: &mut [u8]) {
    if arch.encoding() == Encoding::Byte {
        bytes.iter_mut().step_by(3).for_each(|byte| *byte |= 0xfc);
        bytes.iter_mut().skip(1).step_by(3).for_each(|byte| *byte &= 0x7f);
    }
}

/// Decodes what comes behind the choice of a machine, and takes every instruction through encoder, printer and
/// assembler. Panics if an instruction does not come back the same.
pub fn check(bytes: &[u8]) -> Counts {
    check_code(bytes, |_, _| {})
}

/// The same with more guards than noise has.
pub fn check_guarded(noise: &[u8]) -> Counts {
    check_code(noise, guard_noise)
}

fn check_code(bytes: &[u8], prepare: fn(ArchId, &mut [u8])) -> Counts {
    let mut u = Unstructured::new(bytes);
    let mut reached = Counts::new();
    let Ok(arch) = arch(&mut u) else { return reached };
    let mut code = u.take_rest().to_vec();
    prepare(arch, &mut code);
    for (_, decoded) in disassemble(&code, 0, arch) {
        let Ok(instruction) = decoded else {
            add(&mut reached, "errors", 1);
            continue;
        };
        check_instruction(&instruction, arch);
        add(&mut reached, "instructions", 1);
        add(&mut reached, "extension", instruction.op.opcode().is_extension().into());
        add(&mut reached, "guarded", instruction.guard.is_some().into());
    }
    reached
}

fn check_instruction(instruction: &Instruction, arch: ArchId) {
    let mut bytes = Vec::new();
    let encoded = encode(instruction, arch, &mut bytes);
    assert_eq!(encoded, Ok(()), "{instruction:?} was decoded for {arch}");
    let again: Vec<_> = disassemble(&bytes, 0, arch).collect();
    assert_eq!(again, [(0, Ok(*instruction))], "on {arch}");
    let text = instruction.display(arch).to_string();
    match assemble(&text, arch, &[]) {
        Ok(object) => assert_eq!(object.chunks[0].data, bytes, "`{text}` on {arch}"),
        Err(error) => panic!("`{text}` was printed for {arch}: {error}"),
    }
}
