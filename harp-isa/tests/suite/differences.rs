//! Where this project differs from the original tools on purpose: for each difference a text, an
//! object or a machine that runs into it. `golden` has what is the same.

use harp_isa::asm::AsmErrorKind as Kind;
use harp_isa::link::{LinkError, Section};
use harp_isa::{
    ArchId, ArchIdError, Encoding, Image, Layout, Object, Opcode, Permissions, assemble,
    disassemble, link,
};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/golden/src");

fn object(source: &str, id: &str) -> Object {
    let arch: ArchId = id.parse().unwrap();
    assemble(source, arch, &[]).unwrap_or_else(|errors| panic!("{id}: {source}: {errors}"))
}

fn data(source: &str, id: &str) -> Vec<u8> {
    object(source, id).chunks.remove(0).data
}

fn kind(source: &str, id: &str) -> Kind {
    let errors = assemble(source, id.parse().unwrap(), &[]).expect_err(source);
    errors.first().kind.clone()
}

fn link_error(sources: &[&str], id: &str) -> LinkError {
    let objects: Vec<Object> = sources.iter().map(|source| object(source, id)).collect();
    let objects: Vec<&Object> = objects.iter().collect();
    let Err(errors) = link(&objects, 0) else { panic!("{sources:?} link") };
    errors.first().clone()
}

// Machines and encodings.

/// The original links only objects whose lanes and warps agree too.
#[test]
fn lanes_and_warps_do_not_matter_to_the_linker() {
    let (a, b) = (object("jmpi x", "4w8/8/16/16"), object(".global\nx: nop", "4w8/8/2/1"));
    let image = link(&[&a, &b], 0).unwrap();
    assert_eq!((image.arch, image.symbol("x")), (a.arch, Some(4)));
    for other in ["4w9/8/16/16", "4w8/7/16/16", "4b8/8/16/16", "8w8/8/16/16", "8w8/8/16/16+x"] {
        let (a, other) = (object("nop", "8w8/8/16/16"), object("nop", other));
        let same = a.arch == other.arch;
        assert_eq!(link(&[&a, &other], 0).is_ok(), same, "{}", other.arch);
    }
}

/// The word encoding has no more bits for a predicate operand than for a register's.
#[test]
fn machines_whose_predicates_do_not_fit_their_operands_are_refused() {
    let error = "4w8/16".parse::<ArchId>().unwrap_err();
    let expected =
        ArchIdError::PredicatesWiderThanRegisters { preds: 16, pred_bits: 4, gprs: 8, gpr_bits: 3 };
    assert_eq!(error, expected);
    // Counts need not be powers of two; the byte encoding has a byte for each.
    assert!("4w9/16".parse::<ArchId>().is_ok() && "4b8/16".parse::<ArchId>().is_ok());
}

/// The original takes twice the range and changes the upper half's values silently.
#[test]
fn immediates_that_would_change_are_errors() {
    for id in ["4w8/8", "4w16/16", "8w32/32", "4w64/64"] {
        for opcode in [Opcode::Ldi, Opcode::Addi, Opcode::Jmpi, Opcode::Jali, Opcode::St] {
            let bits = Layout::new(id.parse().unwrap()).immediate_bits(opcode);
            let (mnemonic, registers) = (opcode.mnemonic(), opcode.operands().len() - 1);
            let text =
                |immediate: i64| format!("{mnemonic} {} #{immediate}", "%r1 ".repeat(registers));
            let half = 1_i64 << (bits - 1);
            for fits in [-half, -1, 0, half - 1] {
                assert!(assemble(&text(fits), id.parse().unwrap(), &[]).is_ok(), "{id} {fits}");
            }
            for wraps in [-2 * half, -half - 1, half, 2 * half - 1] {
                assert!(matches!(kind(&text(wraps), id), Kind::Encode(_)), "{id} {wraps}");
            }
        }
    }
}

/// The original cannot link these programs. The same program in the word encoding, which it can
/// link, has the same instructions, and every name leads to its chunk.
#[test]
fn byte_encoded_programs_of_eight_byte_words_link() {
    let programs = ["alu", "faults", "float", "lanes", "lanes8", "mem", "preds", "warps"];
    for program in programs {
        let images = ["8b32/32/8/8", "8w32/32/8/8"].map(|id| {
            let names = ["boot", "lib", program];
            let texts =
                names.map(|name| std::fs::read_to_string(format!("{GOLDEN}/{name}.s")).unwrap());
            let objects = texts.map(|text| object(&text, id));
            let image = link(&objects.each_ref(), 0).unwrap();
            check_references(&objects, &image);
            image
        });
        let [bytes, words] = images.each_ref().map(instructions);
        assert_eq!(bytes, words, "{program}");
        assert!(bytes.len() > 30, "{program}: {}", bytes.len());
        let size = |image: &Image| code(image).map(|section| section.size).sum::<u64>();
        assert_eq!(size(&images[1]), 8 * words.len() as u64, "{program}");
        let sizes = bytes.iter().map(|&opcode| Layout::new(images[0].arch).size(opcode) as u64);
        assert_eq!(size(&images[0]), sizes.sum::<u64>(), "{program}");
    }
}

fn code(image: &Image) -> impl Iterator<Item = &Section> {
    image.sections.iter().filter(|s| s.permissions.contains(Permissions::EXECUTE))
}

fn instructions(image: &Image) -> Vec<Opcode> {
    code(image)
        .flat_map(|section| {
            let start = (section.address - image.base) as usize;
            let bytes = &image.bytes[start..start + section.size as usize];
            disassemble(bytes, section.address, image.arch)
        })
        .map(|(at, instruction)| {
            instruction.unwrap_or_else(|error| panic!("{at:#x}: {error}")).op.opcode()
        })
        .collect()
}

/// Recomputes every field of whole words from the addresses of the names.
fn check_references(objects: &[Object], image: &Image) {
    if image.arch.encoding() == Encoding::Word {
        return;
    }
    let mut sections = image.sections.iter();
    let mut checked = 0;
    for object in objects {
        for chunk in object.chunks.iter().filter(|chunk| !chunk.data.is_empty()) {
            let address = sections.next().unwrap().address;
            for reference in &chunk.references {
                let at = (address + reference.byte_offset) as usize;
                let field = u64::from_le_bytes(image.bytes[at..at + 8].try_into().unwrap());
                let origin = if reference.relative { address + reference.base_offset } else { 0 };
                assert_eq!(Some(origin.wrapping_add(field)), image.symbol(&reference.name));
                checked += 1;
            }
        }
    }
    assert!(checked > 2, "{checked} references");
}

// The linker.

/// In the original the later definition wins silently.
#[test]
fn duplicate_names_are_reported() {
    let error = link_error(&[".global\nx: nop", ".global\nx: halt"], "4w8/8");
    assert_eq!(error.to_string(), "`x` is defined in object 0 and once more in object 1");
    // Local names are their objects' own affair.
    let (a, b) = (object("x: jmpi x", "4w8/8"), object("x: jmpi x", "4w8/8"));
    assert!(link(&[&a, &b], 0).is_ok());
}

/// In the original some of them wrap.
#[test]
fn addresses_that_do_not_fit_their_field_are_refused() {
    // `ldi` of this machine has 19 bits; this address would become a negative number.
    let far = ["ldi %r1 x\n.align 0x40000\nx: .word 1"];
    assert!(matches!(
        link_error(&far, "4w8/8"),
        LinkError::OutOfRange { value: 0x4_0000, relative: false, .. }
    ));
    let back = ["x: nop\n.align 0x200000\njmpi x"];
    assert!(matches!(
        link_error(&back, "4w8/8"),
        LinkError::OutOfRange { value: -0x20_0004, relative: true, .. }
    ));
}

// The assembler.

/// The original takes lower-case digits only.
#[test]
fn hexadecimal_digits_may_be_upper_case() {
    assert_eq!(data(".word 0xDEADbeef", "4w8/8"), 0xdead_beef_u32.to_le_bytes());
}

/// Truncated like the original's, where a conversion would round.
#[test]
fn floats_are_truncated() {
    // 0.7 is 0x3f333333.33..., 0.1 is 0x3dcccccc.cc..., to be rounded up.
    assert_eq!(
        data(".word 0.7 0.1 -0.1", "4w8/8"),
        [0x3f33_3333_u32, 0x3dcc_cccc, 0xbdcc_cccc].map(u32::to_le_bytes).concat()
    );
}

#[test]
fn words_may_be_symbols() {
    let table = object("a: nop\nb: .word b a 7", "4w8/8");
    assert_eq!(
        link(&[&table], 0x100).unwrap().bytes[4..],
        [0x104_u32, 0x100, 7].map(u32::to_le_bytes).concat()
    );
}

/// The original makes something of what is there.
#[test]
fn missing_operands_are_errors() {
    for source in [
        "add %r1 %r2",
        "add",
        "ldi %r1",
        "@p0 ?",
        "@p0",
        ".word",
        ".align",
        ".perm",
        ".def X",
        ".string",
        "ldi %r1 #",
        "rtop @p0",
    ] {
        assert!(matches!(kind(source, "4w8/8"), Kind::Expected(_)), "{source}");
    }
}

#[test]
fn surplus_operands_are_errors() {
    for source in
        ["add %r1 %r2 %r3 %r4", "nop 1", ".byte 1 2", ".align 4 4", ".entry x", ".def X 1 2"]
    {
        assert_eq!(kind(source, "4w8/8"), Kind::Expected("the end of the line or `;`"), "{source}");
    }
}

/// The original skips them.
#[test]
fn unknown_characters_are_errors() {
    for source in ["nop $", "nop !", "add %r1 %r2 = %r3", "é", "ldi %r1 #1\u{a0}", "\0"] {
        assert_eq!(kind(source, "4w8/8"), Kind::UnknownCharacter, "{source}");
    }
}

/// The original drops a last line that has no newline.
#[test]
fn the_last_line_needs_no_newline() {
    assert_eq!(data("nop\nhalt", "4w8/8"), data("nop\nhalt\n", "4w8/8"));
    assert_eq!(data("nop\nhalt", "4w8/8").len(), 8);
    assert!(matches!(kind("nop\nfrob", "4w8/8"), Kind::UnknownInstruction));
}

#[test]
fn names_that_are_nothing_are_errors() {
    assert_eq!(kind("frob %r1", "4w8/8"), Kind::UnknownInstruction);
    assert_eq!(kind(".frob", "4w8/8"), Kind::UnknownDirective);
    assert_eq!(kind("a: nop\na: nop", "4w8/8"), Kind::AlreadyDefined);
    assert_eq!(kind(".word (X + 1)", "4w8/8"), Kind::UndefinedConstant);
    assert!(matches!(kind("add %r1 %r2 %r8", "4w8/8"), Kind::Encode(_)));
    assert!(matches!(link_error(&["jmpi nowhere"], "4w8/8"), LinkError::Unresolved { .. }));
}
