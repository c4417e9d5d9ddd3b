//! What the assembler understands, and what it says about the rest.

use harp_isa::asm::AsmErrorKind as Kind;
use harp_isa::{
    ArchId, ArchIdField, AsmError, EncodeError, Gpr, Instruction, Opcode, RegClass, assemble,
    encode,
};
use proptest::prelude::*;

use crate::random::{choices, instruction, machine};

fn arch(id: &str) -> ArchId {
    id.parse().unwrap()
}

/// The bytes of the only chunk of `source`.
fn bytes(source: &str, id: &str) -> Vec<u8> {
    let object =
        assemble(source, arch(id), &[]).unwrap_or_else(|error| panic!("{source}: {error}"));
    let [chunk] = object.chunks.as_slice() else { panic!("{source}: {object:?}") };
    chunk.data.clone()
}

fn word(source: &str) -> u64 {
    u64::from_le_bytes(bytes(&format!(".word {source}"), "8w32/32").try_into().unwrap())
}

/// The only error of `source`.
fn error(source: &str) -> AsmError {
    let errors = assemble(source, ArchId::HARP32, &[]).expect_err(source);
    assert_eq!((errors.iter().count(), errors.omitted()), (1, 0), "{source}: {errors}");
    errors.first().clone()
}

/// Line, column and text of an error, whose span must be that of the text.
fn place<'a>(error: &'a AsmError, source: &str) -> (usize, usize, &'a str) {
    let AsmError { line, column, text, span, .. } = error;
    let at = if text.starts_with("end of ") { "" } else { text };
    assert_eq!(&source[span.clone()], at, "{error}");
    (*line, *column, text)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn printed_instructions_assemble(arch in machine(), choices in choices()) {
        for (&opcode, choices) in Opcode::ALL.iter().zip(choices) {
            let instruction = instruction(opcode, arch, choices);
            let mut expected = Vec::new();
            if encode(&instruction, arch, &mut expected).is_err() {
                continue;
            }
            let text = instruction.display(arch).to_string();
            let object = assemble(&text, arch, &[]);
            prop_assert!(object.is_ok(), "{}: {:?}", text, object);
            prop_assert_eq!(&object.unwrap().chunks[0].data, &expected, "{}", text);
        }
    }
}

/// Shared registers have the numbers after a lane's. The bytes were made by hand.
#[test]
fn shared_registers_have_names() {
    // One byte a register: 0x0a add, 0x3b split, guards in front.
    assert_eq!(bytes("add %s0 %r9 %s7", "4b24/12+s8/4"), [0xff, 0x0a, 24, 9, 31]);
    assert_eq!(
        bytes("@s3 ? split; @p11 ? notp @s0 @s1", "4b24/12+s8/4"),
        [15, 0x3b, 11, 0x2a, 12, 13]
    );
    // The guard is one of 16, in 4 bits; registers are of 32, in 5 bits each.
    let word: u32 = 1 << 31 | 15 << 27 | 0x0a << 21 | 24 << 16 | 9 << 11 | 31 << 6;
    assert_eq!(bytes("@s3 ? add %s0 %r9 %s7", "4w24/12+s8/4"), word.to_le_bytes());
    // The roles of registers are those of the machine without shared ones.
    assert_eq!(bytes("neg %ra %sp", "4b24/12+s8"), [0xff, 0x05, 23, 22]);
}

#[test]
fn registers_that_a_machine_with_shared_ones_lacks() {
    let machine = arch("4w24/12+s8/4");
    let kind = |source: &str, arch| assemble(source, arch, &[]).unwrap_err().first().kind.clone();
    let lacks = |field, given, limit| Kind::NoRegister { field, given, limit, arch: machine };
    assert_eq!(kind("neg %r24 %r0", machine), lacks(ArchIdField::Gprs, 24, 24));
    assert_eq!(kind("neg %s8 %r0", machine), lacks(ArchIdField::SharedGprs, 8, 8));
    assert_eq!(kind("notp @p12 @p0", machine), lacks(ArchIdField::Preds, 12, 12));
    assert_eq!(kind("@s4 ? nop", machine), lacks(ArchIdField::SharedPreds, 4, 4));
    let text = assemble("\nneg %r0 %s9", machine, &[]).unwrap_err().to_string();
    assert_eq!(
        text,
        "2:9: `%s9`: register 9 of the shared general registers: 4w24/12/1/1+s8/4 has 8"
    );
    assert!(matches!(kind("neg %r0 %s9", ArchId::HARP32), Kind::Expected(_)));
    assert!(matches!(kind("notp @s0 @p0", arch("4w8/8+s8")), Kind::NoRegister { limit: 0, .. }));
}

#[test]
fn expressions() {
    for (source, value) in [
        ("(9 - 3 - 2)", 8),
        ("(100 / 7 * 2)", 7),
        ("(1 << 2 + 1)", 8),
        ("(1 << 2 << 1)", 16),
        ("(256 >> 4 >> 2)", 128),
        ("(2 * 3 + 4 * 5)", 26),
        ("(6 & 3 * 2)", 6),
        ("(12 | 3 ^ 1)", 14),
        ("(17 % 5)", 2),
        ("(`1023 * 2)", 18),
        ("(`(1 << 63))", 63),
        ("(-1 >> 60)", 15),
        ("(--1 - -1)", 2),
        ("((1 + 2) * (3 + 4))", 21),
        ("(1 << 64)", 0),
        ("(__WORD * 8)", 64),
        ("(0x7fFF)", 0x7fff),
        ("(010)", 8),
        ("__WORD", 8),
        ("-1", u64::MAX),
        ("-9223372036854775808", 1 << 63),
        ("1.5", 0x3ff8_0000_0000_0000),
        ("-3f", 0xc008_0000_0000_0000),
    ] {
        assert_eq!(word(source), value, "{source}");
    }
    assert_eq!(bytes(".word 0.1", "4w8/8"), 0x3dcc_cccc_u32.to_le_bytes());
}

#[test]
fn operands_and_separators() {
    let expected = bytes("@p1 ? addi %r1, %r2, #-3", "harp32");
    for source in [
        "@p1 ? addi %r1 %r2 #-3;",
        "@p1?addi %r1,%r2,#-3",
        "@p1 ? addi %r1, %r2, (0 - 3)",
        "@p1 ? /* a\ncomment */ addi\t%r1 %r2, #0xfffffffffffffffd",
        ".def THREE (-3)\n@p1 ? addi %r1 %r2 THREE",
        "\n ; @p1 ? addi %r1 %r2 #(1 - 4) /* last */",
        "@p1 ? addi %r1, %r2, #-3\r\n",
    ] {
        assert_eq!(bytes(source, "harp32"), expected, "{source}");
    }
    let roles = bytes("or %ra %sp %fp", "4w24/8");
    assert_eq!(roles, bytes("or %r23 %r22 %r21", "4w24/8"));
    // A whole-word immediate takes unsigned numbers as well as signed ones.
    assert_eq!(bytes("ldi %r0 #0xfffffffe", "4b8/8"), bytes("ldi %r0 #-2", "4b8/8"));
}

#[test]
fn host_definitions() {
    let object = assemble(".word A (A * 2 - 1)", ArchId::HARP32, &[("A", -4), ("B", 1)]).unwrap();
    let expected = [-4_i32, -9].map(i32::to_le_bytes).concat();
    assert_eq!(object.chunks[0].data, expected);
    // A constant in a jump is the distance itself.
    let object = assemble("jmpi A", ArchId::HARP32, &[("A", -4)]).unwrap();
    assert_eq!(object.chunks[0].data, bytes("jmpi #-4", "harp32"));
    assert!(object.chunks[0].references.is_empty());
}

#[test]
fn data() {
    let source = ".word 1 -1, 0x10 010\n.byte 0x7f; .byte -2\n.string \"a\\\"b\\n\\\\é\"\n.space 1";
    let mut expected = [1, u32::MAX, 16, 8].map(u32::to_le_bytes).concat();
    expected.extend([0x7f, 0xfe]);
    expected.extend("a\"b\n\\é\0".as_bytes());
    expected.extend([0; 4]);
    assert_eq!(bytes(source, "harp32"), expected);
}

#[test]
fn errors_say_where_and_what() {
    let expected = |what| Kind::Expected(what);
    let range = |given, low, high| Kind::OutOfRange { given, limits: low..=high };
    let register = "a register `%rN`, `%ra`, `%sp` or `%fp`";
    let integer = "an integer, a constant, `(`, `-` or a backtick";
    for (source, line, column, text, kind) in [
        ("nop\n  add %r1, @p2, %r3", 2, 12, "@p2", expected(register)),
        ("add %r1 %r2\nnop", 1, 12, "end of line", expected(register)),
        ("add %r1,, %r2 %r3", 1, 9, ",", expected(register)),
        ("add %r1 %r2 %x3", 1, 13, "%x3", expected(register)),
        ("add %r1 %r2 %r300", 1, 13, "%r300", expected(register)),
        ("notp @p1 @q2", 1, 10, "@q2", expected("a predicate `@pN`")),
        ("nop nop", 1, 5, "nop", expected("the end of the line or `;`")),
        ("ldi %r1 5", 1, 9, "5", expected("`#` and a number, a symbol or `(`")),
        ("ldi %r1 #x", 1, 10, "x", expected("a number")),
        ("ldi %r1 (1 + )", 1, 14, ")", expected(integer)),
        ("ldi %r1 (1.5)", 1, 10, "1.5", expected(integer)),
        ("ldi %r1 (1 2)", 1, 12, "2", expected("an operator or `)`")),
        ("@p1 nop", 1, 5, "nop", expected("`?` after the predicate that guards an instruction")),
        ("@p1 ? .word 1", 1, 7, ".word", Kind::UnknownInstruction),
        ("@p1 ?", 1, 6, "end of text", expected("an instruction")),
        (", nop", 1, 1, ",", expected("a label, an instruction or a directive")),
        (".perm rq", 1, 7, "rq", expected("permissions out of `r`, `w` and `x`")),
        (".string x", 1, 9, "x", expected("a string in double quotes")),
        (".def 1 2", 1, 6, "1", expected("the name of a constant")),
        (
            ".space 0xffffffffffffffff",
            1,
            8,
            "0xffffffffffffffff",
            range(u64::MAX.into(), 0, 1 << 26),
        ),
        (".space -1", 1, 8, "-", range(-1, 0, 1 << 26)),
        (".word", 1, 6, "end of text", expected("a number, a constant or `(`")),
        (".word 1,", 1, 9, "end of text", expected("a number or a symbol after the comma")),
        ("nop é nop", 1, 5, "é", Kind::UnknownCharacter),
        ("/**/ nop /* nop", 1, 10, "/* nop", Kind::UnterminatedComment),
        ("/* é */ é", 1, 9, "é", Kind::UnknownCharacter),
        (".string \"abc\nnop", 1, 9, "\"abc", Kind::UnterminatedString),
        (".word 09", 1, 7, "09", Kind::Number),
        (".frob", 1, 1, ".frob", Kind::UnknownDirective),
        ("a: frob", 1, 4, "frob", Kind::UnknownInstruction),
        (".space N", 1, 8, "N", Kind::UndefinedConstant),
        ("a: nop; a: nop", 1, 9, "a", Kind::AlreadyDefined),
        (".def a 1; a: nop", 1, 11, "a", Kind::AlreadyDefined),
        ("a: .def a 1", 1, 9, "a", Kind::AlreadyDefined),
        (".def __WORD 1", 1, 6, "__WORD", Kind::AlreadyDefined),
        (".byte 256", 1, 7, "256", range(256, -128, 255)),
        (".byte -129", 1, 7, "-", range(-129, -128, 255)),
        (".word 0x100000000", 1, 7, "0x100000000", range(1 << 32, -(1 << 31), (1 << 32) - 1)),
        (".word (1 / 0)", 1, 10, "/", Kind::DivisionByZero),
        (".word (1 % (2 - 2))", 1, 10, "%", Kind::DivisionByZero),
        (".word (`0)", 1, 8, "`", Kind::LogarithmOfZero),
        (
            ".space 16777217",
            1,
            8,
            "16777217",
            Kind::TooLarge { size: (1 << 26) + 4, limit: 1 << 26 },
        ),
    ] {
        let error = error(source);
        assert_eq!(place(&error, source), (line, column, text), "{source}");
        assert_eq!(error.kind, kind, "{source}");
    }
    let deep = format!(".word {}1{}", "(".repeat(65), ")".repeat(65));
    assert_eq!(error(&deep).kind, Kind::TooDeep { limit: 64 });
    assert_eq!(word(&format!("{}1{}", "(".repeat(64), ")".repeat(64))), 1);
}

#[test]
fn errors_of_the_encoder_point_at_the_operand() {
    let arch = ArchId::HARP32;
    let register =
        |opcode, class, given| EncodeError::Register { opcode, class, given, limit: 8, arch };
    let immediate = EncodeError::Immediate {
        opcode: Opcode::Ldi,
        given: 1 << 18,
        // 32 bits less the predicated bit, 3 of the guard, 6 of the opcode, 3 of a register.
        limits: -(1 << 18)..=(1 << 18) - 1,
        arch,
    };
    for (source, column, text, error) in [
        ("add %r1 %r2 %r8", 13, "%r8", register(Opcode::Add, RegClass::Gpr, 8)),
        ("orp @p1 @p9 @p0", 9, "@p9", register(Opcode::Orp, RegClass::Pred, 9)),
        ("@p8 ? nop", 7, "nop", register(Opcode::Nop, RegClass::Pred, 8)),
        ("fsqrt %r1 %r2", 1, "fsqrt", EncodeError::Missing { opcode: Opcode::Fsqrt, arch }),
        ("ldi %r1 #0x40000", 9, "#0x40000", immediate),
    ] {
        let found = crate::assembler::error(source);
        assert_eq!(place(&found, source), (1, column, text), "{source}");
        assert_eq!(found.kind, Kind::Encode(error), "{source}");
    }
}

#[test]
fn references_of_instructions_and_words() {
    let source = "ldi %r1 x\n@p0 ? jalis %r1 %r2 y\n.word 1 x";
    let object = assemble(source, ArchId::HARP32, &[]).unwrap();
    let [code, data] = object.chunks.as_slice() else { panic!("{object:?}") };
    let all = |r: &harp_isa::Reference| {
        (r.name.clone(), r.relative, r.base_offset, r.byte_offset, r.size_bits, r.shift)
    };
    let code: Vec<_> = code.references.iter().map(all).collect();
    assert_eq!(code, [("x".into(), false, 4, 0, 19, 0), ("y".into(), true, 8, 4, 16, 0)]);
    let data: Vec<_> = data.references.iter().map(all).collect();
    assert_eq!(data, [("x".into(), false, 8, 4, 32, 0)]);

    let arch = "8b32/32/1/1+x".parse().unwrap();
    let object = assemble("nop; stb %r1 %r2 x", arch, &[]).unwrap();
    let reference = all(&object.chunks[0].references[0]);
    assert_eq!(reference, ("x".into(), false, 14, 6, 64, 0));
    let arch = "8w32/32/1/1+x".parse().unwrap();
    let object = assemble("nop; stb %r1 %r2 x", arch, &[]).unwrap();
    // 64 bits less 1, 5, 6 and two registers of 5, and 6 bits below.
    let reference = all(&object.chunks[0].references[0]);
    assert_eq!(reference, ("x".into(), false, 16, 8, 36, 6));
    let expected =
        Instruction::new(harp_isa::Op::Stb { value: Gpr::new(1), base: Gpr::new(2), offset: 0xa5 });
    assert_eq!(harp_isa::decode(&object.chunks[0].data[8..], arch), Ok((expected, 8)));
}
