//! No text makes the assembler panic, and what it makes can be linked or is refused.

use harp_isa::asm::Colors;
use harp_isa::{ArchId, assemble, link};
use proptest::prelude::*;

use crate::random::machine;

const PROGRAMS: [&str; 4] = [
    include_str!("../../../tests/golden/src/encode.s"),
    include_str!("../../../tests/golden/src/lib.s"),
    include_str!("../../../tests/golden/src/link_a.s"),
    include_str!("../../../tests/golden/src/warps.s"),
];

const PIECES: [&str; 58] = [
    "nop",
    "add",
    "ldi",
    "jmpi",
    "jali",
    "ldb",
    "csr",
    "split",
    "frob",
    "a",
    "b",
    "a:",
    "b:",
    ".L1:",
    ".word",
    ".byte",
    ".space",
    ".string",
    ".def",
    ".align",
    ".perm",
    ".entry",
    ".global",
    ".frob",
    "%r1",
    "%ra",
    "%r77",
    "@p0",
    "@p99",
    "%s0",
    "%s56",
    "@s1",
    "#1",
    "#-1",
    "#0x7fffffffffffffff",
    "0x10",
    "077",
    "1.5",
    "3f",
    "(",
    ")",
    "+",
    "-",
    "*",
    "/",
    "%",
    "<<",
    "`",
    "?",
    ";\n",
    "\"s\\n\"",
    ".chunk",
    ".ref",
    "\"\"",
    "\"rxg\"",
    "\"r\"",
    "\"",
    "/*",
];

fn check(source: &str, arch: ArchId) {
    match assemble(source, arch, &[("HOST", -1)]) {
        Ok(object) => {
            let _ = object.display().to_string();
            let exact = object.display_exact().to_string();
            assert_eq!(assemble(&exact, arch, &[]).as_ref(), Ok(&object), "{exact}");
            let _ = link(&[&object], 0);
        }
        Err(errors) => {
            let mut before = 0;
            for error in &errors {
                assert!((1..=source.matches('\n').count() + 1).contains(&error.line), "{error}");
                assert!(error.column >= 1 && !error.text.is_empty(), "{error}");
                let text = source.get(error.span.clone()).expect("spans are of the text");
                assert!(!text.contains('\n') && error.span.start >= before, "{errors}");
                before = error.span.start;
            }
            assert!(errors.render(source, "a.s", Colors::Plain).contains("error: "));
        }
    }
}

proptest! {
    #[test]
    fn any_text(arch in machine(), source in any::<String>(), printable in "\\PC{0,80}") {
        check(&source, arch);
        check(&printable, arch);
    }

    #[test]
    fn texts_of_tokens(
        arch in machine(),
        pieces in prop::collection::vec(prop::sample::select(PIECES.as_slice()), 0..40),
    ) {
        check(&pieces.join(" "), arch);
        check(&pieces.concat(), arch);
    }

    #[test]
    fn mutated_programs(
        arch in machine(),
        program in prop::sample::select(PROGRAMS.as_slice()),
        edits in prop::collection::vec(
            (any::<prop::sample::Index>(), 0..8_usize, prop::sample::select(PIECES.as_slice())),
            1..6,
        ),
    ) {
        let mut source = program.to_owned();
        for (at, removed, piece) in edits {
            let at = at.index(source.len());
            source.replace_range(at..(at + removed).min(source.len()), piece);
        }
        check(&source, arch);
    }
}

#[test]
fn long_chains_cost_no_stack() {
    let arch = ArchId::HARP64;
    check(&format!(".word ({}1)", "1 - ".repeat(200_000)), arch);
    check(&format!(".word ({}1)", "-".repeat(200_000)), arch);
    check(&format!(".word {}", "(".repeat(200_000)), arch);
    check(&"a".repeat(200_000), arch);
    // Nor does a text of errors alone cost more than its first ones.
    check(&"$\n".repeat(200_000), arch);
    check(&"\"\n".repeat(200_000), arch);
    check(&"frob ".repeat(100_000), arch);
    check(&"@p0 ? frob;".repeat(50_000), arch);
}
