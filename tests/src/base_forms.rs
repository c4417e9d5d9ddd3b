//! What an image without extension X must not hold, so that it runs on the original machine unchanged.
//!
//! The original computes some instructions on its host's wider integers, and so differently from
//! what their description says: on 4-byte words `ori` and `xori` with a negative immediate, `divi`
//! and `modi` with a negative immediate, and in byte encoding loads and stores at a negative offset; on any
//! word shift counts at or above its width.

use harp_isa::{
    ArchId, Encoding, Image, Instruction, Op, OpcodeFlags, Permissions, WordSize, disassemble,
};

/// The instructions of the image's code that an original machine lacks or gets wrong, each with its
/// address, and how many instructions were looked at.
pub fn violations(image: &Image) -> (Vec<String>, usize) {
    let mut found = Vec::new();
    let mut seen = 0;
    let code = image.sections.iter().filter(|s| s.permissions.contains(Permissions::EXECUTE));
    for section in code {
        let start = (section.address - image.base) as usize;
        let bytes = &image.bytes[start..start + section.size as usize];
        for (address, instruction) in disassemble(bytes, section.address, image.arch) {
            seen += 1;
            let reason = match &instruction {
                Ok(instruction) => violation(instruction, image.arch),
                Err(error) => Some(error.to_string()),
            };
            found.extend(reason.map(|reason| format!("{address:#x}: {reason}")));
        }
    }
    (found, seen)
}

fn violation(instruction: &Instruction, arch: ArchId) -> Option<String> {
    let (word, opcode) = (arch.word(), instruction.op.opcode());
    let is_four = word == WordSize::Four;
    let wrong = match instruction.op {
        Op::Ori { imm, .. }
        | Op::Xori { imm, .. }
        | Op::Divi { imm, .. }
        | Op::Modi { imm, .. } => imm < 0 && is_four,
        Op::Ld { offset, .. } | Op::St { offset, .. } => {
            offset < 0 && is_four && arch.encoding() == Encoding::Byte
        }
        Op::Shli { imm, .. } | Op::Shri { imm, .. } => !(0..word.bits().into()).contains(&imm),
        _ => false,
    };
    let lacks = opcode.is_extension() || opcode.flags().contains(OpcodeFlags::PRIVILEGED);
    (wrong || lacks).then(|| format!("`{}` in `{}`", opcode.mnemonic(), instruction.display(arch)))
}
