//! Both encodings over all opcodes and many machines.

use crate::random::{choices, instruction, machine};
use harp_isa::{
    ArchId, DecodeError, EncodeError, Encoding, Gpr, Instruction, Layout, MAX_ENCODED_BYTES, Op,
    Opcode, OpcodeFlags, Operand, OperandKind, Pred, RegClass, Space, WordSize, decode, encode,
};
use proptest::prelude::*;

fn encoded(instruction: &Instruction, arch: ArchId) -> Result<Vec<u8>, EncodeError> {
    let mut bytes = Vec::new();
    encode(instruction, arch, &mut bytes).map(|()| bytes)
}

/// Whether the machine has the instruction, from the rules in words.
fn exists(opcode: Opcode, arch: ArchId) -> bool {
    let extension = opcode == Opcode::Tid || matches!(opcode.space(), Space::Extension(_));
    let wide = match opcode.space() {
        Space::Base(_) => false,
        Space::Extension(funct) => matches!(funct, 0x2a | 0x2b | 0x2e..=0x3d),
    };
    (arch.has_extension() || !extension) && (arch.word() == WordSize::Eight || !wide)
}

fn bits_for(count: u8) -> usize {
    (0..).find(|&bits| 1_u32 << bits >= u32::from(count)).unwrap()
}

fn fields(instruction: &Instruction) -> (u64, bool, Vec<Operand>) {
    let (number, extension) = match instruction.op.opcode().space() {
        Space::Base(number) => (number.into(), false),
        Space::Extension(funct) => (funct.into(), true),
    };
    let mut operands = Vec::new();
    instruction.op.for_each_operand(|operand| operands.push(operand));
    (number, extension, operands)
}

/// The word encoding again, as text of zeros and ones from the most significant bit.
fn word_encoding(instruction: &Instruction, arch: ArchId) -> Vec<u8> {
    let (number, extension, operands) = fields(instruction);
    let (r, p) =
        (bits_for(arch.gprs() + arch.shared_gprs()), bits_for(arch.preds() + arch.shared_preds()));
    let total = usize::from(arch.word().bits());
    let mut bits = match instruction.guard {
        Some(guard) => format!("1{:0p$b}", guard.index()),
        None => format!("0{:0p$b}", 0),
    };
    bits += &format!("{:06b}", if extension { 0x3f } else { number });
    let end = if extension { format!("{number:06b}") } else { String::new() };
    for operand in operands {
        bits += &match operand {
            Operand::Gpr(reg) => format!("{:0r$b}", reg.index()),
            Operand::Pred(reg) => format!("{:0r$b}", reg.index()),
            Operand::Imm(imm) => {
                let all = format!("{imm:064b}");
                all[64 - (total - bits.len() - end.len())..].to_owned()
            }
        };
    }
    let gap = total - bits.len() - end.len();
    let word = u64::from_str_radix(&(bits + &"0".repeat(gap) + &end), 2).unwrap();
    word.to_le_bytes()[..total / 8].to_vec()
}

/// The byte encoding again.
fn byte_encoding(instruction: &Instruction, arch: ArchId) -> Vec<u8> {
    let (number, extension, operands) = fields(instruction);
    let mut bytes = vec![
        instruction.guard.map_or(0xff, Pred::index),
        number as u8 + if extension { 0x40 } else { 0 },
    ];
    for operand in operands {
        match operand {
            Operand::Gpr(reg) => bytes.push(reg.index()),
            Operand::Pred(reg) => bytes.push(reg.index()),
            Operand::Imm(imm) if arch.word() == WordSize::Four => {
                bytes.extend((imm as i32).to_le_bytes());
            }
            Operand::Imm(imm) => bytes.extend(imm.to_le_bytes()),
        }
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn every_instruction_survives(arch in machine(), choices in choices()) {
        for (&opcode, choices) in Opcode::ALL.iter().zip(choices) {
            let instruction = instruction(opcode, arch, choices);
            prop_assert_eq!(Layout::new(arch).has(opcode), exists(opcode, arch));
            let bytes = match encoded(&instruction, arch) {
                Ok(bytes) => bytes,
                Err(error) => {
                    prop_assert!(!exists(opcode, arch), "{}", error);
                    prop_assert_eq!(error, EncodeError::Missing { opcode, arch });
                    continue;
                }
            };
            prop_assert!(exists(opcode, arch));
            prop_assert!(bytes.len() <= MAX_ENCODED_BYTES);
            prop_assert_eq!(bytes.len(), Layout::new(arch).size(opcode));
            let expected = match arch.encoding() {
                Encoding::Word => word_encoding(&instruction, arch),
                Encoding::Byte => byte_encoding(&instruction, arch),
            };
            prop_assert_eq!(&bytes, &expected, "{} on {}", instruction.display(arch), arch);
            prop_assert_eq!(decode(&bytes, arch), Ok((instruction, bytes.len())));
            for needed in 0..bytes.len() {
                let truncated = matches!(
                    decode(&bytes[..needed], arch),
                    Err(DecodeError::Truncated { given, .. }) if given == needed
                );
                prop_assert!(truncated, "{} bytes of {}", needed, bytes.len());
            }
        }
    }

    #[test]
    fn random_bytes_are_errors_or_instructions(
        arch in machine(),
        bytes in prop::collection::vec(any::<u8>(), 0..=MAX_ENCODED_BYTES),
        number in any::<u8>(),
    ) {
        let mut bytes = bytes;
        // Half of all opcode bytes exist; in the byte encoding most guards do not.
        if arch.encoding() == Encoding::Byte && bytes.len() > 1 && number < 128 {
            (bytes[0], bytes[1]) = (0xff, number);
        }
        if let Ok((instruction, size)) = decode(&bytes, arch) {
            prop_assert!(size <= bytes.len());
            let again = encoded(&instruction, arch);
            prop_assert!(again.is_ok(), "{:?}", again);
            prop_assert_eq!(decode(&again.unwrap(), arch), Ok((instruction, size)));
        }
    }

    #[test]
    fn immediates_must_fit(arch in machine(), choices in choices()) {
        for (&opcode, choices) in Opcode::ALL.iter().zip(choices) {
            let operands = opcode.operands();
            let Some(index) = operands.iter().position(|o| o.kind.is_immediate()) else {
                prop_assert_eq!(Layout::new(arch).immediate_bits(opcode), 0);
                continue;
            };
            if !exists(opcode, arch) {
                continue;
            }
            let registers = operands.len() - 1;
            let funct = if matches!(opcode.space(), Space::Extension(_)) { 6 } else { 0 };
            let bits = match arch.encoding() {
                Encoding::Byte => arch.word().bits().into(),
                Encoding::Word => {
                    let before = 1 + bits_for(arch.preds() + arch.shared_preds()) + 6 + registers * bits_for(arch.gprs() + arch.shared_gprs());
                    usize::from(arch.word().bits()) - before - funct
                }
            };
            let (low, high) = (-(1_i128 << (bits - 1)), (1_i128 << (bits - 1)) - 1);
            let valid = instruction(opcode, arch, choices);
            for (value, fits) in [(low, true), (high, true), (low - 1, false), (high + 1, false)] {
                let Ok(value) = i64::try_from(value) else { continue };
                let (_, _, mut given) = fields(&valid);
                given[index] = Operand::Imm(value);
                let op = Op::from_operands(opcode, &given).unwrap();
                prop_assert_eq!(Layout::new(arch).fits(opcode, value), fits);
                let result = encoded(&Instruction { op, ..valid }, arch);
                if fits {
                    prop_assert!(result.is_ok(), "{:?}", result);
                } else {
                    let limits = low as i64..=high as i64;
                    prop_assert_eq!(result, Err(EncodeError::Immediate { opcode, given: value, limits, arch }));
                }
            }
        }
    }

    #[test]
    fn registers_must_exist(arch in machine(), choices in choices()) {
        for (&opcode, choices) in Opcode::ALL.iter().zip(choices) {
            if !exists(opcode, arch) {
                continue;
            }
            let valid = instruction(opcode, arch, choices);
            for (index, description) in opcode.operands().iter().enumerate() {
                let (_, _, mut given) = fields(&valid);
                let (class, limit) = match description.kind {
                    OperandKind::Gpr(_) => (RegClass::Gpr, arch.gprs() + arch.shared_gprs()),
                    OperandKind::Pred(_) => (RegClass::Pred, arch.preds() + arch.shared_preds()),
                    OperandKind::Imm | OperandKind::Rel => continue,
                };
                given[index] = match class {
                    RegClass::Gpr => Gpr::new(limit).into(),
                    RegClass::Pred => Pred::new(limit).into(),
                };
                let op = Op::from_operands(opcode, &given).unwrap();
                let error = EncodeError::Register { opcode, class, given: limit, limit, arch };
                prop_assert_eq!(encoded(&Instruction { op, ..valid }, arch), Err(error));
            }
            let limit = arch.preds() + arch.shared_preds();
            let guarded = valid.op;
            let error = EncodeError::Register { opcode, class: RegClass::Pred, given: limit, limit, arch };
            let guarded = Instruction::new(guarded).guarded_by(Pred::new(limit));
            prop_assert_eq!(encoded(&guarded, arch), Err(error));
        }
    }
}

#[test]
fn a_failed_encoding_appends_nothing() {
    let mut out = vec![1, 2, 3];
    let halt = Instruction::new(Op::Halt {}).guarded_by(Pred::new(8));
    assert!(encode(&halt, ArchId::HARP32, &mut out).is_err());
    assert_eq!(out, [1, 2, 3]);
}

#[test]
fn decoding_names_what_is_wrong() {
    // 12 registers in 4 bits: the fields can name registers that do not exist.
    let arch: ArchId = "4b12/5/1/1".parse().unwrap();
    let register = |class, given, limit| {
        Err(DecodeError::Register { opcode: Opcode::Neg, class, given, limit, arch })
    };
    assert_eq!(decode(&[0xff, 5, 12, 0], arch), register(RegClass::Gpr, 12, 12));
    assert_eq!(decode(&[5, 5, 0, 0], arch), register(RegClass::Pred, 5, 5));
    let opcode = |space, arch| Err(DecodeError::Opcode { space, arch });
    assert_eq!(decode(&[0xff, 0x3f], arch), opcode(Space::Base(0x3f), arch));
    assert_eq!(decode(&[0xff, 0x3e, 0], arch), opcode(Space::Base(0x3e), arch));
    assert_eq!(decode(&[0xff, 0x4a, 0, 0, 0], arch), opcode(Space::Extension(0x0a), arch));
    assert_eq!(decode(&[0xff, 0xff], arch), opcode(Space::Extension(0xbf), arch));
    let arch = arch.with_extension(true).unwrap();
    assert_eq!(decode(&[0xff, 0x7f], arch), opcode(Space::Extension(0x3f), arch));
    assert_eq!(decode(&[0xff, 0x6a, 0, 0], arch), opcode(Space::Extension(0x2a), arch));
}

#[test]
fn instructions_of_wide_words_are_marked() {
    let wide = Opcode::ALL.iter().filter(|op| op.flags().contains(OpcodeFlags::WORD8));
    assert_eq!(wide.count(), 18, "2a, 2b and 2e to 3d");
}
