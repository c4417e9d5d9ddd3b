//! The exact text of an object is that object, whatever a file can hold.

use std::fmt::Write as _;
use std::time::Instant;

use harp_isa::object::{hof, placeholder};
use harp_isa::{
    ArchId, Chunk, Instruction, Layout, Object, Opcode, Permissions, Reference, assemble, encode,
};
use proptest::prelude::*;

use crate::random::{Choices, instruction, machine};

/// A part of a chunk's contents.
#[derive(Clone, Debug)]
enum Piece {
    /// An instruction, maybe with a name for its immediate, and whether the immediate is then the
    /// one that stands in for an address.
    Instruction(prop::sample::Index, Choices, Option<(&'static str, bool)>),
    /// Bytes that may be anything.
    Bytes(Vec<u8>),
    /// A word that waits for an address, and its value until then.
    Address(&'static str, u8),
    Zeros(usize),
}

/// Names of files, most of which no label can have.
const NAMES: [&str; 10] =
    ["", "a", "b.c", "__WORD", "9", "two words", "\"\\\n", "*/ /*", "\r\t;", "漢é\u{7f}"];

fn name() -> impl Strategy<Value = &'static str> {
    prop::sample::select(NAMES.as_slice())
}

fn piece() -> impl Strategy<Value = Piece> {
    prop_oneof![
        (any::<prop::sample::Index>(), any::<Choices>(), prop::option::of((name(), any::<bool>())))
            .prop_map(|(opcode, choices, name)| Piece::Instruction(opcode, choices, name)),
        prop::collection::vec(any::<u8>(), 0..20).prop_map(Piece::Bytes),
        (name(), 0..2_u8).prop_map(|(name, value)| Piece::Address(name, value)),
        (0..400_usize).prop_map(Piece::Zeros),
    ]
}

/// Any reference, in the middle of nowhere too.
fn reference() -> impl Strategy<Value = Reference> {
    (name(), any::<bool>(), 0..64_u64, 0..200_u64, 0..=32_u8, any::<u8>()).prop_map(
        |(name, relative, base_offset, byte_offset, size_bits, shift)| Reference {
            name: name.to_owned(),
            relative,
            base_offset,
            byte_offset,
            size_bits,
            shift,
        },
    )
}

type ChunkParts =
    (&'static str, u64, u8, bool, Option<u64>, Vec<Piece>, Vec<(prop::sample::Index, Reference)>);

fn parts() -> impl Strategy<Value = ChunkParts> {
    (
        name(),
        prop_oneof![Just(0), Just(4), Just(8), Just(64), 0..=u64::from(u32::MAX)],
        0..8_u8,
        any::<bool>(),
        prop::option::of(1..=u64::from(u32::MAX)),
        prop::collection::vec(piece(), 0..12),
        prop::collection::vec((any::<prop::sample::Index>(), reference()), 0..4),
    )
}

fn chunk(arch: ArchId, parts: ChunkParts) -> Chunk {
    let (name, alignment, permissions, global, address, pieces, strays) = parts;
    let mut chunk = Chunk {
        name: name.to_owned(),
        alignment,
        permissions: Permissions::from_bits_truncate(permissions),
        global,
        address,
        data: Vec::new(),
        references: Vec::new(),
    };
    for piece in pieces {
        let offset = chunk.data.len() as u64;
        match piece {
            Piece::Instruction(opcode, choices, name) => {
                let opcode = *opcode.get(Opcode::ALL);
                if !Layout::new(arch).has(opcode) {
                    continue;
                }
                let mut instruction = instruction(opcode, arch, choices);
                if let Some((name, is_placeholder)) = name {
                    if is_placeholder {
                        instruction = with_placeholder(&instruction, arch);
                    }
                    let reference = Reference::from_instruction(name, opcode, offset, arch);
                    chunk.references.extend(reference);
                }
                encode(&instruction, arch, &mut chunk.data).unwrap();
            }
            Piece::Bytes(bytes) => chunk.data.extend(bytes),
            Piece::Address(name, value) => {
                chunk.references.push(Reference::from_word(name, offset, arch));
                let word = u64::from(value).to_le_bytes();
                chunk.data.extend(&word[..arch.word().bytes().into()]);
            }
            Piece::Zeros(count) => chunk.data.extend(vec![0; count]),
        }
    }
    for (at, reference) in strays {
        chunk.references.insert(at.index(chunk.references.len() + 1), reference);
    }
    chunk
}

/// The instruction with the immediate of one that awaits a name.
fn with_placeholder(instruction: &Instruction, arch: ArchId) -> Instruction {
    let opcode = instruction.op.opcode();
    let mut operands = Vec::new();
    instruction.op.for_each_operand(|operand| {
        operands.push(match operand {
            harp_isa::Operand::Imm(_) => placeholder(opcode, arch).into(),
            register => register,
        });
    });
    let op = harp_isa::Op::from_operands(opcode, &operands).unwrap();
    Instruction { op, ..*instruction }
}

proptest! {
    #[test]
    fn any_object_comes_back(
        arch in machine(),
        chunks in prop::collection::vec(parts(), 0..6),
        entry: prop::sample::Index,
    ) {
        let entry = if chunks.is_empty() { 0 } else { entry.index(chunks.len()) };
        let chunks = chunks.into_iter().map(|parts| chunk(arch, parts)).collect();
        let object = Object { arch, chunks, entry };
        let text = object.display_exact().to_string();
        let again = assemble(&text, arch, &[("a", 1), ("b.c", 2)]);
        prop_assert_eq!(again.as_ref(), Ok(&object), "{}", text);
        // Every one of these objects is one that a file can hold.
        let file = hof::write(&object).unwrap();
        prop_assert_eq!(hof::write(&again.unwrap()), Ok(file.clone()));
        prop_assert_eq!(hof::read(&file), Ok(object.clone()));
        // The listing for people may say less, but it says it.
        let _ = object.display().to_string();
    }
}

/// A file with a byte that means nothing is an object file, but not one that its text gives back.
#[test]
fn only_files_as_they_are_written_are_read_exactly() {
    let object = assemble(".perm x\na: nop\n.byte 1", ArchId::HARP32, &[]).unwrap();
    let file = hof::write(&object).unwrap();
    assert_eq!(hof::read_exact(&file), Ok(object.clone()));
    // Padding behind the contents of the last chunk.
    let at = file.len() - 1;
    let mut odd = file.clone();
    assert_eq!(odd[at], 0);
    odd[at] = 7;
    assert_eq!(hof::read(&odd), Ok(object.clone()));
    let offset = at as u64;
    assert_eq!(hof::read_exact(&odd), Err(hof::HofError::NotExact { offset }));
    let longer = [&file[..], &[0; 4]].concat();
    assert_eq!(hof::read(&longer), Ok(object));
    let offset = file.len() as u64;
    assert_eq!(hof::read_exact(&longer), Err(hof::HofError::NotExact { offset }));
}

/// What the text shows as instructions and names, not as bytes.
#[test]
fn what_the_assembler_makes_reads_like_what_it_was_made_of() {
    let source = ".perm x\na: jali %ra y\n@p1 ? ldi %r1 #0xa5\n.perm r\n.align 64\n.global\nd: .word y 0x12\n.space 100";
    let object = assemble(source, ArchId::HARP32, &[]).unwrap();
    assert_eq!(
        object.display_exact().to_string(),
        "/* machine: 4w8/8/16/16 */\n\n\
         .chunk \"a\" \"xe\" 0x0\n\tjali %r7 \"y\";\n\t@p1 ? ldi %r1 #0xa5;\n\n\
         .chunk \"d\" \"rg\" 0x40\n\t.word \"y\"\n\t.word 0x12\n\t.space 100\n"
    );
}

/// Texts of objects with many references: the time grows with their number, not with its square.
#[test]
fn text_takes_linear_time() {
    for content in ["jmpi x\n", ".word x\n"] {
        let object = |count: usize| {
            let mut source = ".perm x\nx:".to_owned();
            (0..count).for_each(|_| writeln!(source, "{}", content.trim()).unwrap());
            assemble(&source, ArchId::HARP32, &[]).unwrap()
        };
        let time = |object: &Object| {
            let start = Instant::now();
            let size =
                object.display().to_string().len() + object.display_exact().to_string().len();
            assert!(size > 10 * object.chunks[0].references.len());
            start.elapsed()
        };
        let (small, large) = (object(2_000), object(200_000));
        let least = (0..5).map(|_| time(&small)).min().unwrap();
        // A hundred times as much; a square would take ten thousand times as long.
        assert!(time(&large) < 2000 * least, "{least:?} for the small one");
    }
}
