//! Object files: what the golden files do not show.

use harp_isa::object::MAX_OBJECT_BYTES;
use harp_isa::object::hof::{self, HofError};
use harp_isa::{ArchId, Object, Permissions, assemble};
use proptest::prelude::*;

use crate::random::machine;

fn sample(arch: ArchId) -> Object {
    let source = ".perm x\n.global\nmain: jmpi x\nldi %r1 x\n.perm rw\nx: .word x 1\n.byte 2\ny:";
    assemble(source, arch, &[]).unwrap()
}

proptest! {
    #[test]
    fn round_trip(arch in machine(), address in 1..1_u64 << 32, alignment in 0..1_u64 << 32, shift: u8) {
        let mut object = sample(arch);
        object.entry = 1;
        object.chunks[0].alignment = alignment;
        object.chunks[0].references[0].shift = shift;
        object.chunks[1].address = Some(address);
        prop_assert_eq!(hof::read(&hof::write(&object).unwrap()), Ok(object));
    }

    #[test]
    fn damaged_files_are_errors_or_objects(
        arch in machine(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        end: prop::sample::Index,
        cut: bool,
    ) {
        let mut file = hof::write(&sample(arch)).unwrap();
        for (at, byte) in damage {
            let at = at.index(file.len());
            file[at] = byte;
        }
        if cut {
            file.truncate(end.index(file.len()));
        }
        if let Ok(object) = hof::read(&file) {
            let again = hof::write(&object).map(|file| hof::read(&file));
            prop_assert_eq!(again, Ok(Ok(object)));
        }
    }
}

#[test]
fn errors() {
    let good = hof::write(&sample(ArchId::HARP32)).unwrap();
    assert_eq!(hof::read(b"ELF"), Err(HofError::Magic));
    assert!(matches!(hof::read(b"HARP4w7/2\0\0\0"), Err(HofError::Arch(_))));
    assert!(matches!(
        hof::read(b"HARP4w8/2"),
        Err(HofError::Truncated { item: "the architecture id", .. })
    ));
    assert!(matches!(hof::read(b"HARP\xff\0"), Err(HofError::Name { .. })));
    for size in 0..good.len() {
        assert!(hof::read(&good[..size]).is_err(), "{size} bytes of {}", good.len());
    }
    let mut object = sample(ArchId::HARP32);
    object.chunks[0].alignment = 1 << 32;
    let limit = u32::MAX.into();
    // The id takes 16 bytes, then come entry, count, three offsets and the name, `main`.
    let error = HofError::Limit { item: "an alignment", offset: 44, given: 1 << 32, limit };
    assert_eq!(hof::write(&object), Err(error));
    object.chunks[0].alignment = 0;
    object.chunks[1].address = Some(0);
    assert_eq!(hof::write(&object), Err(HofError::BoundToZero { chunk: 1 }));
    object.chunks[1].address = None;
    object.chunks[1].name = "a\0b".into();
    let name = hof::write(&object);
    assert!(
        matches!(name, Err(HofError::Name { item: "the name of a chunk", offset }) if offset > 40)
    );
    object.chunks[1].name.clear();
    object.entry = 3;
    let error = HofError::Limit { item: "the entry index", offset: 16, given: 3, limit: 2 };
    assert_eq!(hof::write(&object), Err(error));
    object.entry = 0;
    object.chunks[1].references[0].size_bits = 33;
    assert!(matches!(hof::write(&object), Err(HofError::Limit { limit: 32, .. })));
    object.chunks[1].references.clear();
    object.chunks[2].data = vec![0; MAX_OBJECT_BYTES as usize];
    assert!(
        matches!(hof::write(&object), Err(HofError::Limit { limit, .. }) if limit < MAX_OBJECT_BYTES)
    );
}

#[test]
fn memory_beyond_the_file_is_zero() {
    let source = ".perm rw\nx: .word 1 2";
    let object = assemble(source, ArchId::HARP32, &[]).unwrap();
    let mut file = hof::write(&object).unwrap();
    // Header: id (16 bytes), entry, count, one offset. Chunk: name, alignment,
    // permissions, flags, address, then the size in memory.
    let memory = 28 + 20;
    assert_eq!(file[memory], 8);
    file[memory] = 12;
    let chunk = hof::read(&file).unwrap().chunks.remove(0);
    assert_eq!((chunk.data.len(), &chunk.data[8..]), (12, [0; 4].as_slice()));
    assert_eq!(chunk.permissions, Permissions::READ | Permissions::WRITE);
    file[memory..memory + 4].fill(0xff);
    let given = u32::MAX.into();
    let error = HofError::Limit {
        item: "the size of a chunk in memory",
        offset: memory as u64,
        given,
        limit: MAX_OBJECT_BYTES,
    };
    assert_eq!(hof::read(&file), Err(error));
}

/// Else a file of a megabyte could ask for gigabytes of names.
#[test]
fn chunks_do_not_share_bytes() {
    let mut object = assemble("x: .word 1\ny: .word 2", ArchId::HARP32, &[]).unwrap();
    object.chunks[0].name = "x".repeat(1000);
    let mut file = hof::write(&object).unwrap();
    assert_eq!(hof::read(&file), Ok(object));
    // The offsets of the chunks follow the id (16 bytes), the entry and the number of chunks.
    let first: [u8; 4] = file[24..28].try_into().unwrap();
    file[28..32].copy_from_slice(&first);
    assert!(
        matches!(hof::read(&file), Err(HofError::Overlap { chunk: 1, .. })),
        "{:?}",
        hof::read(&file)
    );
    file[28] += 1;
    let error = HofError::Unaligned { offset: 28, given: u64::from(first[0]) + 1, word: 4 };
    assert_eq!(hof::read(&file), Err(error));
}

/// They might change what the file means, and would be lost when it is written again.
#[test]
fn flags_that_the_format_does_not_know_are_errors() {
    let object = assemble("x: .word y", ArchId::HARP32, &[]).unwrap();
    let good = hof::write(&object).unwrap();
    // After the header of 28 bytes: name, alignment, permissions, flags of the chunk; its address,
    // two sizes, the count; the reference's name and flags.
    let (permissions, chunk, reference) = (28 + 8, 28 + 12, 28 + 36);
    assert_eq!((good[permissions], good[chunk], good[reference]), (1, 0, 0));
    for (item, at, bit, known) in [
        ("permissions", permissions, 3, 7),
        ("permissions", permissions, 31, 7),
        ("the flags of a chunk", chunk, 1, 1),
        ("the flags of a chunk", chunk, 31, 1),
        ("the flags of a reference", reference, 1, 0xff01),
        ("the flags of a reference", reference, 16, 0xff01),
    ] {
        let mut file = good.clone();
        file[at + bit / 8] |= 1 << (bit % 8);
        let given = u64::from(u32::from_le_bytes(file[at..at + 4].try_into().unwrap()));
        let error = HofError::UnknownBits { item, offset: at as u64, given, known };
        assert_eq!(hof::read(&file), Err(error));
    }
}

/// Counts and sizes come before what they count: none of them may be believed.
#[test]
fn no_number_of_a_file_asks_for_more_than_the_file_has() {
    let object = assemble("x: .word y\nz: .byte 1", ArchId::HARP32, &[]).unwrap();
    let good = hof::write(&object).unwrap();
    let mut errors = 0;
    for at in (16..good.len()).step_by(4) {
        for value in [u32::MAX, 1 << 31, 1 << 26 | 1, 0x10000] {
            let mut file = good.clone();
            file[at..at + 4].copy_from_slice(&value.to_le_bytes());
            match hof::read(&file) {
                Err(_) => errors += 1,
                Ok(read) => {
                    let bytes: usize = read.chunks.iter().map(|chunk| chunk.data.len()).sum();
                    assert!(bytes as u64 <= MAX_OBJECT_BYTES, "{read:?}");
                }
            }
        }
    }
    assert!(errors > 30, "{errors}");
}
