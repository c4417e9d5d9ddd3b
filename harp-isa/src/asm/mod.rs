//! The assembler.
//!
//! # Text
//!
//! * `/* comment */`; `label:`; an instruction or directive ends at a newline or `;`.
//! * An instruction is `[@pN ?] mnemonic operands`; operands are separated by blanks or commas:
//!   `%r3`, `%ra %sp %fp` ([roles](crate::abi::RegisterRoles)), `@p2`, `#literal`, `(expression)`,
//!   `symbol`; `%s3` and `@s1` on machines with [shared registers](crate::ArchId#shared-registers).
//! * A symbol, `[A-Za-z_.][A-Za-z0-9_.]*`, is a constant if a `.def` before it says so; else it refers
//!   to a label in any object. Jumps take the distance to a label and use a constant as it is.
//! * Literals: decimal, `0x` hexadecimal, `0` octal; `1.5` and `3f` are floats in the format of the
//!   machine's word, truncated.
//! * Expressions, only in parentheses, over 64-bit unsigned numbers and constants: loosest `<< >>`,
//!   then `+ - | ^`, then `* / % &`, then unary `-` and `` ` `` (floor of the binary logarithm).
//!   **Binary operators associate to the right**: `(9 - 3 - 2)` is 8. `__WORD` is the word size in
//!   bytes.
//!
//! # Directives
//!
//! | directive | meaning |
//! |---|---|
//! | `.word a b c` | words; a symbol that is not a constant is a reference |
//! | `.byte b` | one byte |
//! | `.space n` | n zero words |
//! | `.string "s"` | the bytes of s and a NUL; `\n` is a newline, `\c` any other character c |
//! | `.def S v` | S is v from here on |
//! | `.align n` | the address of the next chunk is a multiple of n bytes |
//! | `.perm rwx` | the permissions of user mode for what follows |
//! | `.entry`, `.global` | mark the next label's chunks as the entry, as visible to other objects |
//!
//! Numbers in directives are literals, expressions or constants. A name can be defined only once, as a label
//! or as a constant.
//!
//! # Chunks
//!
//! Each label starts a [chunk](crate::object::Chunk). So does the first item after `.perm`, `.align`,
//! `.entry` or `.global` and after a change between code and data; these chunks share the label's
//! name. Without `.align` code may lie anywhere and data lies at a multiple of the word. `.align`
//! applies to one chunk, `.perm` (`r` at first) holds until the next `.perm`, `.entry` and `.global` hold until
//! the next label, `.perm` or `.align` that follows an item.
//!
//! # Extensions
//!
//! The original assembler lacks the following, which [`Object::display_exact`] needs to state everything about
//! an object.
//!
//! * `.word` takes symbols.
//! * Where a symbol may be referred to, a name in double quotes is a reference too, of any text, and
//!   never a constant: `jali %ra, "my function"`, `.word "x"`.
//! * `.chunk "name" "marks" alignment [address]` starts a chunk with these properties and no others,
//!   bound to the address if there is one. Marks are letters out of `rwx`, `g` for global, `e` for the
//!   entry. The chunk takes code and data until the next break. The name may be any text, and several
//!   chunks may have it; whether such names are valid is left to the linker.
//! * `.ref "name" "kind" base offset bits shift` adds a [reference](crate::object::Reference) to the
//!   chunk that has begun, a distance if the kind is `r`, an address if it is empty.
//!
//! # Errors
//!
//! All errors of a text are reported, in its order. The rest of a statement after its first error is
//! skipped, except that places that are not tokens are still reported; the next statement starts after `;` or
//! a newline.
//!
//! # Example
//!
//! ```
//! use harp_isa::{ArchId, assemble, link};
//!
//! let object = assemble(".perm x\nstart: ldi %r0, N; jmpi start", ArchId::HARP32, &[("N", 7)])?;
//! let image = link(&[&object], 0)?;
//! assert_eq!(image.symbol("start"), Some(0));
//!
//! let error = assemble("add %r1, %r2", ArchId::HARP32, &[]).unwrap_err();
//! assert_eq!(error.to_string(), "1:13: `end of text`: expected a register `%rN`, `%ra`, `%sp` or `%fp`");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod chunks;
mod directive;
mod error;
mod expression;
mod lexer;
mod number;
mod parser;
#[cfg(feature = "render")]
mod render;

pub use error::{AsmError, AsmErrorKind, AsmErrors};
#[cfg(feature = "render")]
pub use render::Colors;

use crate::arch::ArchId;
use crate::object::Object;

/// Assembles `source` for `arch`. `definitions` act like `.def`s before the text.
///
/// # Errors
///
/// All places that are not valid, or that the machine cannot encode. With feature `render`,
/// `AsmErrors::render` shows them with their lines.
pub fn assemble(
    source: &str,
    arch: ArchId,
    definitions: &[(&str, i64)],
) -> Result<Object, AsmErrors> {
    parser::Parser::new(source, lexer::tokens(source), arch, definitions).parse()
}
