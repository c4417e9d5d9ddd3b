//! Layout, names and references of images.

use harp_isa::link::{MAX_IMAGE_BYTES, ObjectId, Site};
use harp_isa::{
    ArchId, Image, LinkError, LinkErrors, Object, Op, Permissions, Reference, assemble, decode,
    disassemble, link, link_named,
};
use proptest::prelude::*;

use crate::random::machine;

fn object(source: &str, id: &str) -> Object {
    assemble(source, id.parse().unwrap(), &[]).unwrap_or_else(|error| panic!("{source}: {error}"))
}

/// The image, or the only error.
fn linked(sources: &[&str], id: &str, base: u64) -> Result<Image, LinkError> {
    let objects: Vec<Object> = sources.iter().map(|source| object(source, id)).collect();
    link(&objects.iter().collect::<Vec<_>>(), base).map_err(only)
}

fn only(errors: LinkErrors) -> LinkError {
    assert_eq!((errors.iter().count(), errors.omitted()), (1, 0), "{errors}");
    errors.first().clone()
}

fn id(index: usize) -> ObjectId {
    ObjectId { index, name: String::new() }
}

fn site(object: usize, chunk: &str, offset: u64) -> Box<Site> {
    Box::new(Site { object: id(object), chunk: chunk.to_owned(), offset })
}

#[test]
fn layout_and_symbols() {
    let a = ".perm x\n.global\nmain: nop; x: halt\n.perm rw\n.align 64\ny: .word 1";
    let b = ".align 3\nx: .byte 2\nz: .byte 3\n.align 0\nend:";
    let image = linked(&[a, b], "harp32", 0x1004).unwrap();
    assert_eq!((image.base, image.bytes.len()), (0x1004, 0x1049 - 0x1004));
    let symbols: Vec<_> =
        image.symbols.iter().map(|s| (s.name.as_str(), s.address, s.global, s.object)).collect();
    assert_eq!(
        symbols,
        [
            ("end", 0x1049, false, 1),
            ("main", 0x1004, true, 0),
            ("x", 0x1008, false, 0),
            ("x", 0x1044, false, 1),
            ("y", 0x1040, false, 0),
            ("z", 0x1048, false, 1),
        ]
    );
    assert_eq!((image.symbol("main"), image.symbol("y")), (Some(0x1004), Some(0x1040)));
    assert_eq!((image.symbol("x"), image.symbol("nobody")), (None, None));
    let before =
        |address| image.symbol_before(address).map(|(s, offset)| (s.name.as_str(), offset));
    assert_eq!(before(0x1003), None);
    assert_eq!(before(0x1007), Some(("main", 3)));
    assert_eq!(before(0x1050), Some(("end", 7)));
    let sections: Vec<_> =
        image.sections.iter().map(|s| (s.address, s.size, s.permissions)).collect();
    let (rw, x) = (Permissions::READ | Permissions::WRITE, Permissions::EXECUTE);
    let r = Permissions::READ;
    assert_eq!(
        sections,
        [(0x1004, 4, x), (0x1008, 4, x), (0x1040, 4, rw), (0x1044, 1, r), (0x1048, 1, r)]
    );
    // Gaps are zero.
    assert_eq!(image.bytes[8..0x1040 - 0x1004], [0; 0x1040 - 0x1004 - 8]);
}

#[test]
fn local_names_come_first() {
    let a = "use: .word x\nx: .word 0";
    let b = ".global\nx: .word 0\n.perm x\nuse: .word x";
    let c = "use: .word x";
    let image = linked(&[a, b, c], "harp32", 0).unwrap();
    let words: Vec<u32> =
        image.bytes.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect();
    assert_eq!(words, [4, 0, 0, 8, 8]);
}

#[test]
fn errors() {
    assert_eq!(link(&[], 0).map_err(only), Err(LinkError::NoObjects));
    let (a, b) = (object("nop", "4w8/8/4/4"), object("nop", "4w8/4/4/4"));
    let incompatible = LinkError::Incompatible { object: id(1), given: b.arch, expected: a.arch };
    assert_eq!(link(&[&a, &b], 0).map_err(only), Err(incompatible));
    let c = object("nop", "4w8/8/1/64");
    assert_eq!(link(&[&a, &c], 0).map(|image| image.arch), Ok(a.arch));

    let global = ".global\nx: nop";
    let duplicate = LinkError::Duplicate { name: "x".into(), first: id(0), second: id(2) };
    assert_eq!(linked(&[global, "nop", global], "harp32", 0), Err(duplicate));
    // A name that becomes global on its way is as wrong.
    let late = "x: nop\n.global\nnop\n.word 1";
    let duplicate = LinkError::Duplicate { name: "x".into(), first: id(0), second: id(1) };
    assert_eq!(linked(&[global, late], "harp32", 0), Err(duplicate));
    // Files may hold what the assembler refuses: one name at two places.
    for mark in ["", ".global\n"] {
        let mut twice =
            object(&format!("{mark}x: .word 1\n{mark}y: .word 2\n{mark}z: .word x"), "harp32");
        twice.chunks[2].name = "x".into();
        let duplicate = LinkError::Duplicate { name: "x".into(), first: id(0), second: id(0) };
        assert_eq!(link(&[&twice], 0).map_err(only), Err(duplicate));
    }
    // One label, two chunks: no duplicate, and the name means the first.
    let image = linked(&["nop", ".global\nx: nop; .word x"], "harp32", 0).unwrap();
    assert_eq!((image.symbol("x"), image.bytes[8]), (Some(4), 4));

    let unresolved = LinkError::Unresolved { name: "y".into(), site: site(1, "a", 4), others: 0 };
    assert_eq!(linked(&["y: nop", "a: nop; ldi %r0 y"], "harp32", 0), Err(unresolved));
}

#[test]
fn all_wrong_names_are_reported_with_their_places() {
    let a = object(".global\nx: jmpi here; jmpi there\nlocal: jmpi there", "harp32");
    let b = object(".global\nx: nop; .word x\n.global\ny: .word there", "harp32");
    let c = object(".global\nx: nop\n.global\ny: .word local", "harp32");
    let errors = link_named(&[("a.hof", &a), ("b.hof", &b), ("", &c)], 0).unwrap_err().to_string();
    let lines: Vec<&str> = errors.lines().collect();
    assert_eq!(
        lines,
        [
            "`x` is defined in a.hof and once more in b.hof",
            "`x` is defined in a.hof and once more in object 2",
            "`y` is defined in b.hof and once more in object 2",
            "a.hof: `x` + 0x0: `here` is not defined",
            "a.hof: `x` + 0x4: `there` is not defined, needed by 1 more reference",
            "b.hof: `y` + 0x0: `there` is not defined",
            "object 2: `y` + 0x0: `local` is not defined",
        ]
    );
    let many: String = (0..150).map(|n| format!(".word n{n}\n")).collect();
    let errors = link(&[&object(&many, "harp32")], 0).unwrap_err();
    assert_eq!((errors.iter().count(), errors.omitted()), (100, 50));
}

#[test]
fn references_must_fit() {
    // `ldi` keeps 19 signed bits on this machine, `jmpi` 22.
    let out = |relative, value, bits: u32| LinkError::OutOfRange {
        name: "x".into(),
        site: site(0, "a", 0),
        relative,
        value,
        limits: -(1 << (bits - 1))..=(1 << (bits - 1)) - 1,
    };
    let at = |distance: u64| format!("a: ldi %r0 x\n.space {}\nx: nop", distance / 4 - 1);
    assert!(linked(&[&at(0x3_fffc)], "harp32", 0).is_ok());
    assert_eq!(linked(&[&at(0x4_0000)], "harp32", 0), Err(out(false, 0x4_0000, 19)));
    let at = |distance: u64| format!("a: jmpi x\n.space {}\nx: nop", distance / 4);
    assert!(linked(&[&at(0x1f_fffc)], "harp32", 0).is_ok());
    assert_eq!(linked(&[&at(0x20_0000)], "harp32", 0), Err(out(true, 0x20_0000, 22)));
    // A whole word holds any address.
    let image = linked(&["a: ldi %r0 x; x: .word a"], "4b8/8", 0xffff_0000).unwrap();
    assert_eq!(image.bytes[3..], [0x08, 0, 0xff, 0xff, 0, 0, 0, 0xff, 0xff]);
}

#[test]
fn the_number_of_an_extension_instruction_survives_linking() {
    let arch = "8w32/32/1/1+x";
    let image = linked(&[".align 64\nx: .word 0\n.align 64\ny: ldh %r1 %r2 y"], arch, 0).unwrap();
    let (instruction, _) = decode(&image.bytes[64..], arch.parse().unwrap()).unwrap();
    let (dst, base) = (harp_isa::Gpr::new(1), harp_isa::Gpr::new(2));
    assert_eq!(instruction.op, Op::Ldh { dst, base, offset: 64 });
}

#[test]
fn malformed_objects_are_errors() {
    let good = object("a: nop\nb: .word 1", "harp32");
    let reference = Reference::from_word("a", 0, good.arch);
    for (byte_offset, bits, shift) in
        [(1, 32, 0), (u64::MAX, 32, 0), (0, 0, 0), (0, 33, 0), (0, 32, 1), (0, 8, 255)]
    {
        let mut bad = good.clone();
        let reference = Reference { byte_offset, size_bits: bits, shift, ..reference.clone() };
        bad.chunks[1].references.push(reference);
        let error = LinkError::BadReference { site: site(0, "b", byte_offset), bits, shift };
        assert_eq!(link(&[&bad], 0).map_err(only), Err(error));
    }
    let mut bound = good.clone();
    bound.chunks[1].address = Some(4);
    assert!(link(&[&bound], 0).is_ok());
    let error = LinkError::Bound { object: id(0), chunk: "b".into(), given: 4, actual: 8 };
    assert_eq!(link(&[&bound], 4).map_err(only), Err(error));
    let mut far = good.clone();
    far.chunks[1].alignment = MAX_IMAGE_BYTES;
    let limit = u128::from(MAX_IMAGE_BYTES);
    let error = LinkError::TooLarge { object: id(0), chunk: "b".into(), end: limit + 4, limit };
    assert_eq!(link(&[&far], 0).map_err(only), Err(error));
    for base in [u64::from(u32::MAX) - 6, u64::MAX] {
        let limit = 1 << 32;
        assert!(
            matches!(link(&[&good], base).map_err(only), Err(LinkError::TooLarge { limit: l, .. }) if l == limit)
        );
    }
    assert!(link(&[&good], u64::from(u32::MAX) - 7).is_ok());
}

proptest! {
    /// Every jump of a random tangle of objects leads to its label.
    #[test]
    fn jumps_reach_their_labels(
        arch in machine(),
        blocks in prop::collection::vec((any::<prop::sample::Index>(), 0..6_u32, 0..3_usize), 1..12),
        base in 0..64_u64,
    ) {
        let count = blocks.len();
        let mut sources = [const { String::new() }; 3];
        let mut order = Vec::new();
        for (label, &(_, align, object)) in blocks.iter().enumerate() {
            let target = blocks[label].0.index(count);
            sources[object] += &format!(".align {}\n.global\nl{label}: jmpi l{target}\n", 1 << align);
            order.push((label, target));
        }
        let objects = sources.map(|source| assemble(&source, arch, &[]).unwrap());
        // Small fields may be out of reach: that must be an error, never a wrong jump.
        let image = match link(&objects.each_ref(), base) {
            Ok(image) => image,
            Err(errors) => {
                let is_reach = |error| matches!(error, &LinkError::OutOfRange { .. });
                prop_assert!(errors.iter().all(is_reach), "{}", errors);
                return Ok(());
            }
        };
        for (label, target) in order {
            let address = image.symbol(&format!("l{label}")).unwrap();
            prop_assert_eq!(address % (1 << blocks[label].1), 0);
            let code = &image.bytes[(address - base) as usize..];
            let (_, instruction) = disassemble(code, address, arch).next().unwrap();
            let size = decode(code, arch).unwrap().1 as u64;
            let Op::Jmpi { rel } = instruction.unwrap().op else { panic!("no jump") };
            let reached = (address + size).wrapping_add_signed(rel);
            prop_assert_eq!(Some(reached), image.symbol(&format!("l{target}")));
        }
    }
}

#[test]
fn disassembly_goes_on_after_bytes_that_are_no_instruction() {
    let arch = ArchId::HARP32;
    let image = linked(&["nop\n.word 0x0fc00000\nhalt\n.byte 1"], "harp32", 0).unwrap();
    let lines: Vec<_> =
        disassemble(&image.bytes, 0, arch).map(|(at, item)| (at, item.map(|i| i.op))).collect();
    assert_eq!(lines.len(), 4);
    assert_eq!((lines[0].clone(), lines[2].clone()), ((0, Ok(Op::Nop {})), (8, Ok(Op::Halt {}))));
    assert!(lines[1].1.is_err() && lines[3].1.is_err());
    let bytes = "4b8/8".parse().unwrap();
    let items: Vec<_> = disassemble(&[0xff, 0x3f, 0xff, 0x00], 7, bytes).collect();
    // 3f is no opcode; after it `3f ff` guards with a missing predicate, then `ff 00` is `nop`.
    assert_eq!(items.len(), 3);
    assert_eq!(items[2], (9, Ok(Op::Nop {}.into())));
}
