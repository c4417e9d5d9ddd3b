//! How text falls into chunks.

use harp_isa::{ArchId, Chunk, Object, Permissions, assemble};

fn object(source: &str) -> Object {
    assemble(source, ArchId::HARP32, &[]).unwrap_or_else(|error| panic!("{source}: {error}"))
}

/// `name`, then `!` if global, `>` if the entry; alignment; size in bytes.
fn outline(source: &str) -> Vec<(String, u64, usize)> {
    let object = object(source);
    let mark = |chunk: &Chunk, index: usize| {
        let global = if chunk.global { "!" } else { "" };
        format!("{}{global}{}", chunk.name, if index == object.entry { ">" } else { "" })
    };
    let chunks = object.chunks.iter().enumerate();
    chunks.map(|(i, chunk)| (mark(chunk, i), chunk.alignment, chunk.data.len())).collect()
}

fn expect(source: &str, chunks: &[(&str, u64, usize)]) {
    let chunks: Vec<_> =
        chunks.iter().map(|&(name, align, size)| (name.to_owned(), align, size)).collect();
    assert_eq!(outline(source), chunks, "{source}");
}

#[test]
fn breaks() {
    expect("", &[]);
    expect("nop; nop", &[(">", 0, 8)]);
    expect("a: nop; b: nop", &[("a>", 0, 4), ("b", 0, 4)]);
    // A change of content breaks; a definition does not.
    expect("a: nop; .word 1; .def X 2; .word X; nop", &[("a>", 0, 4), ("a", 4, 8), ("a", 0, 4)]);
    expect("a: nop; .perm x; nop; .align 0; nop", &[("a>", 0, 4), ("a", 0, 4), ("a", 0, 4)]);
    expect("a: .perm x; nop", &[("a>", 0, 4)]);
}

#[test]
fn alignment_serves_one_chunk() {
    expect(".align 64; a: nop; b: nop", &[("a>", 64, 4), ("b", 0, 4)]);
    expect("a: .align 64; nop; .word 1", &[("a>", 64, 4), ("a", 4, 4)]);
    expect(".align 64; .align 8; a: nop", &[("a>", 8, 4)]);
}

#[test]
fn bare_labels_make_empty_chunks() {
    expect("a: b: nop; c:", &[("a>", 0, 0), ("b", 0, 4), ("c", 0, 0)]);
    // The empty chunk drops the alignment that waits.
    expect("a: .align 64; b: .word 1", &[("a>", 0, 0), ("b", 4, 4)]);
    expect(".align 64; a: b: .word 1", &[("a>", 0, 0), ("b", 4, 4)]);
}

#[test]
fn marks_hold_until_a_break_that_follows_an_item() {
    expect("a: nop; .global; b: nop; c: nop", &[("a>", 0, 4), ("b!", 0, 4), ("c", 0, 4)]);
    expect(".global; a: nop; .word 1; nop", &[("a!>", 0, 4), ("a!", 4, 4), ("a!", 0, 4)]);
    expect(".global; .perm x; .align 4; a: nop; .perm x; nop", &[("a!>", 4, 4), ("a", 0, 4)]);
    expect(".global; a: nop; .align 4; nop", &[("a!>", 0, 4), ("a", 4, 4)]);
    expect("a: nop; .entry; b: nop; c: nop", &[("a", 0, 4), ("b>", 0, 4), ("c", 0, 4)]);
    expect(".entry; .global; a: nop", &[("a!>", 0, 4)]);
    // The last chunk made while the mark holds.
    expect(".entry; a: nop; .word 1; b: nop", &[("a", 0, 4), ("a>", 4, 4), ("b", 0, 4)]);
}

#[test]
fn permissions_hold() {
    let object = object("a: nop; .perm wr; b: nop; .word 1; .perm x; c: nop; d:");
    let permissions: Vec<Permissions> = object.chunks.iter().map(|c| c.permissions).collect();
    let (r, w, x) = (Permissions::READ, Permissions::WRITE, Permissions::EXECUTE);
    assert_eq!(permissions, [r, r | w, r | w, x, x]);
}

#[test]
fn stated_chunks_are_as_they_are_stated() {
    // Neither what waits nor what holds applies to them, and nothing of theirs to the next.
    let source =
        ".align 64; .entry; .global; .perm x\n.chunk \"a b\" \"rw\" 2; nop; .byte 1; nop; b: nop";
    expect(source, &[("a b>", 2, 9), ("b", 0, 4)]);
    expect("a: .chunk \"\" \"ge\" 0; b: nop", &[("a", 0, 0), ("!>", 0, 0), ("b", 0, 4)]);
    let object = object(".chunk \"a\", \"x\", 0, 0x1000; nop; .align 8; nop; .chunk \"a\" \"\" 1");
    let chunks: Vec<_> =
        object.chunks.iter().map(|c| (&*c.name, c.alignment, c.address, c.permissions)).collect();
    let (x, none) = (Permissions::EXECUTE, Permissions::empty());
    assert_eq!(chunks, [("a", 0, Some(0x1000), x), ("a", 8, None, x), ("a", 1, None, none)]);
}
