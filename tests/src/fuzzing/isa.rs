//! Any bytes on any machine: what decodes must survive encoding, printing and assembling.

use std::ops::AddAssign;

use arbitrary::{Arbitrary, Unstructured};
use harp_isa::{ArchId, Encoding, Instruction, WordSize, assemble, disassemble, encode};

/// A machine and bytes that may be code for it.
#[derive(Clone, Debug)]
pub struct CodeBytes {
    /// The machine.
    pub arch: ArchId,
    /// The bytes.
    pub bytes: Vec<u8>,
}

impl<'a> Arbitrary<'a> for CodeBytes {
    fn arbitrary(u: &mut Unstructured<'a>) -> arbitrary::Result<CodeBytes> {
        Ok(CodeBytes { arch: arch(u)?, bytes: u.bytes(u.len())?.to_vec() })
    }
}

/// Any machine.
///
/// # Errors
///
/// If `u` is exhausted, or asks for a machine whose instructions do not fit a word.
pub fn arch(u: &mut Unstructured<'_>) -> arbitrary::Result<ArchId> {
    let word = *u.choose(&[WordSize::Four, WordSize::Eight])?;
    let encoding = *u.choose(&[Encoding::Word, Encoding::Byte])?;
    let (gprs, preds) = (u.int_in_range(8..=64)?, u.int_in_range(2..=64)?);
    let arch = ArchId::new(word, encoding, gprs, preds);
    let arch = arch.map_err(|_| arbitrary::Error::IncorrectFormat)?;
    let extension = u.arbitrary()?;
    Ok(arch.with_extension(extension).unwrap_or(arch))
}

/// How much of a case was more than noise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reached {
    /// Instructions that decoded.
    pub instructions: usize,
    /// Those of extension X.
    pub extension: usize,
    /// Those under a guard.
    pub guarded: usize,
    /// Places that were no instruction.
    pub errors: usize,
}

impl AddAssign for Reached {
    fn add_assign(&mut self, other: Reached) {
        self.instructions += other.instructions;
        self.extension += other.extension;
        self.guarded += other.guarded;
        self.errors += other.errors;
    }
}

/// Decodes all of `case` and takes every instruction through encoder, printer and assembler.
///
/// # Panics
///
/// If an instruction does not come back the same.
pub fn check(case: &CodeBytes) -> Reached {
    let mut reached = Reached::default();
    for (_, decoded) in disassemble(&case.bytes, 0, case.arch) {
        let Ok(instruction) = decoded else {
            reached.errors += 1;
            continue;
        };
        check_instruction(&instruction, case.arch);
        reached.instructions += 1;
        reached.extension += usize::from(instruction.op.opcode().is_extension());
        reached.guarded += usize::from(instruction.guard.is_some());
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzzing::replay;
    use crate::random::random_bytes;

    #[test]
    fn smoke() {
        let mut reached = Reached::default();
        for seed in 0..2000 {
            let noise = random_bytes(seed, 256);
            let Ok(mut case) = CodeBytes::arbitrary(&mut Unstructured::new(&noise)) else {
                continue;
            };
            // A guard of the byte encoding is 0xff or a small number: noise seldom is.
            if case.arch.encoding() == Encoding::Byte {
                case.bytes.iter_mut().step_by(3).for_each(|byte| *byte |= 0xfc);
                case.bytes.iter_mut().skip(1).step_by(3).for_each(|byte| *byte &= 0x7f);
            }
            reached += check(&case);
        }
        let Reached { instructions, extension, guarded, errors } = reached;
        assert!(
            instructions > 1000 && extension > 100 && guarded > 100 && errors > 100,
            "the run is vacuous: {reached:?}"
        );
    }

    #[test]
    fn regressions() {
        let mut reached = Reached::default();
        let files = replay("decode", |bytes| {
            if let Ok(case) = CodeBytes::arbitrary(&mut Unstructured::new(bytes)) {
                reached += check(&case);
            }
        });
        assert_eq!(files > 0, reached != Reached::default(), "{reached:?}");
    }
}
