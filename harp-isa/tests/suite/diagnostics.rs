//! Every error of a text is reported once, and shown where it is.

use harp_isa::asm::{AsmErrorKind as Kind, Colors};
use harp_isa::{ArchId, AsmErrors, assemble};

fn errors(source: &str) -> AsmErrors {
    assemble(source, ArchId::HARP32, &[]).expect_err(source)
}

/// The places of the errors, in their order.
fn places(source: &str) -> Vec<(usize, usize)> {
    errors(source).iter().map(|error| (error.line, error.column)).collect()
}

#[test]
fn all_statements_are_looked_at() {
    let source =
        "add %r1\nfrob; nop; .word 08\nstart: jmpi start\nldi %r1 #99999999 ; @p0 nop\n.perm q";
    assert_eq!(places(source), [(1, 8), (2, 1), (2, 18), (4, 9), (4, 25), (5, 7)]);
    // A statement ends at its first error, but what is no token is always one.
    assert_eq!(places("frob %r1 %r1 ldi"), [(1, 1)]);
    assert_eq!(places("frob $ ldi 08 $ \"a"), [(1, 1), (1, 6), (1, 12), (1, 15), (1, 17)]);
    assert_eq!(places("frob /* ldi\nfrob"), [(1, 1), (1, 6)]);
    // A label's error does not hide that of what stands behind it.
    assert_eq!(places("a: nop\na: frob"), [(2, 1), (2, 4)]);
}

#[test]
fn what_follows_from_an_error_is_not_one() {
    assert_eq!(places(".def N 08\n.space N\n.word (1 / N)\nldi %r1 N\njmpi N"), [(1, 8)]);
    assert_eq!(places(".space 0x3ffffff\n.space 0x3ffffff\nnop"), [(1, 8)]);
    assert_eq!(places(".chunk a \"\" 0\n.ref \"a\" \"\" 0 0 32 0"), [(1, 8)]);
    assert_eq!(places(".ref \"a\" \"\" 0 0 32 0\n.ref \"a\" \"\" 0 0 32 0"), [(1, 1)]);
    assert_eq!(places("$ $ $\n"), [(1, 1), (1, 3), (1, 5)]);
}

#[test]
fn errors_of_the_extensions() {
    let expected = |source: &str| match errors(source).first().kind {
        Kind::Expected(what) => what,
        ref other => panic!("{source}: {other:?}"),
    };
    assert!(expected(".chunk a \"\" 0").contains("name of the chunk"));
    assert!(expected(".chunk \"a\" rx 0").contains("global"));
    assert!(expected(".chunk \"a\" \"q\" 0").contains("global"));
    assert!(expected(".chunk \"a\" \"r\"").contains("a number"));
    assert!(expected(".chunk \"a\" \"r\" 0,").contains("a number"));
    assert!(expected(".chunk \"a\" \"r\" 0 4 0").contains("end of the line"));
    assert!(expected("nop; .ref \"a\" \"x\" 0 0 32 0").contains("distance"));
    assert!(expected("nop; .ref \"a\" \"r\" 0 0 32").contains("a number"));
    for source in ["nop; .ref \"a\" \"r\" 0 0 33 0", "nop; .ref \"a\" \"r\" 0 0 32 256"] {
        assert!(matches!(errors(source).first().kind, Kind::OutOfRange { .. }), "{source}");
    }
    assert_eq!(errors("a: .ref \"a\" \"\" 0 0 32 0").first().kind, Kind::NoChunk);
}

#[test]
fn the_number_of_errors_is_bounded() {
    let errors = errors(&"frob\n".repeat(1000));
    assert_eq!((errors.iter().count(), errors.omitted()), (100, 900));
    let rendered = errors.render(&"frob\n".repeat(1000), "a.s", Colors::Plain);
    assert!(rendered.ends_with("note: 900 more errors are not shown\n"), "{rendered}");
}

/// The hand-made picture of each: tabs are four columns, wide characters two.
#[test]
fn a_caret_stands_below_the_place() {
    for (source, picture) in [
        (
            "nop\n\tadd %r1, @p2, %r3\n",
            "error: expected a register `%rN`, `%ra`, `%sp` or `%fp`\n \
             --> dir/a.s:2:11\n  \
               |\n\
             2 |     add %r1, @p2, %r3\n  \
               |              ^^^\n",
        ),
        (
            ".string \"漢字\" é\r\n",
            "error: no token starts with this character\n \
             --> dir/a.s:1:14\n  \
               |\n\
             1 | .string \"漢字\" é\n  \
               |                ^\n",
        ),
        (
            "add %r1 %r2\nnop",
            "error: expected a register `%rN`, `%ra`, `%sp` or `%fp`\n \
             --> dir/a.s:1:12\n  \
               |\n\
             1 | add %r1 %r2\n  \
               |            ^\n",
        ),
        (
            "nop /*\n",
            "error: the comment has no `*/`\n \
             --> dir/a.s:1:5\n  \
               |\n\
             1 | nop /*\n  \
               |     ^^\n",
        ),
    ] {
        assert_eq!(errors(source).render(source, "dir/a.s", Colors::Plain), picture);
    }
    let source = "frob\n$";
    let both = errors(source).render(source, "a.s", Colors::Plain);
    assert_eq!(both.matches("error: ").count(), 2, "{both}");
    assert!(errors(source).render(source, "a.s", Colors::Ansi).contains("\u{1b}["));
    // A text that is not the one of the errors is no reason to panic.
    for other in ["", "é", "ééééééé\n"] {
        assert!(errors(source).render(other, "a.s", Colors::Plain).contains("error: "));
    }
}

#[test]
fn names_that_no_file_can_hold_are_refused() {
    for text in [
        ".chunk \"a\0b\" \"r\" 0",
        ".chunk \"a\" \"r\" 0\n.ref \"a\0b\" \"r\" 0 0 32 0",
        ".word \"a\0b\"",
        ".perm x\njali %r1, \"a\0b\"",
    ] {
        assert_eq!(errors(text).first().kind, Kind::NulInName, "{text:?}");
    }
}

#[test]
fn chunks_are_not_bound_to_the_address_that_means_unbound() {
    let kind = &errors(".chunk \"a\" \"r\" 4 0").first().kind.clone();
    assert_eq!(*kind, Kind::OutOfRange { given: 0, limits: 1..=i128::from(u32::MAX) });
}
