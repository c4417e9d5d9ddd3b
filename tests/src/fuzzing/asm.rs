//! Any text on any machine: assembling never panics, errors lie in the text, and objects survive
//! files, printing and linking.
//!
//! A case is a text whose first line is an architecture id. Noise is no such text, so other bytes are
//! choices instead, from which statements are made that are right more often than not.

use arbitrary::Unstructured;
use harp_isa::asm::Colors;
use harp_isa::{ArchId, AsmErrors, Layout, Opcode, OperandKind, assemble};

use super::{hof, isa};
use crate::random::{Counts, add, counts};

/// Assembles the text in `bytes`, or one made of them.
/// Panics if an error does not lie in the text, or an object does not come back the same.
pub fn check(bytes: &[u8]) -> Counts {
    match text_of(bytes) {
        Ok((arch, text)) => check_text(&text, arch),
        Err(_) => Counts::new(),
    }
}

/// The machine and the text that `bytes` stand for.
/// Fails if the bytes ask for a machine whose instructions do not fit a word.
pub fn text_of(bytes: &[u8]) -> arbitrary::Result<(ArchId, String)> {
    let lines = str::from_utf8(bytes).ok().and_then(|text| text.split_once('\n'));
    if let Some((Ok(arch), text)) = lines.map(|(id, text)| (id.parse(), text)) {
        return Ok((arch, text.to_owned()));
    }
    let mut u = Unstructured::new(bytes);
    let arch = isa::arch(&mut u)?;
    let text = Soup { arch, is_noisy: u.arbitrary()? }.text(&mut u)?;
    Ok((arch, text))
}

fn check_text(text: &str, arch: ArchId) -> Counts {
    match assemble(text, arch, &[("HOST", -1)]) {
        Ok(object) => {
            let mut reached = hof::check_object(&object);
            add(&mut reached, "assembled", (!object.chunks.is_empty()).into());
            add(
                &mut reached,
                "bytes",
                object.chunks.iter().map(|chunk| chunk.data.len() as u64).sum(),
            );
            reached
        }
        Err(errors) => {
            check_errors(text, &errors);
            counts([("refused", 1), ("wrong", errors.iter().count() + errors.omitted())])
        }
    }
}

fn check_errors(text: &str, errors: &AsmErrors) {
    let mut before = 0;
    for error in errors {
        let start = error.span.start;
        let place = text.get(error.span.clone());
        assert!(place.is_some_and(|place| !place.contains('\n')), "{error:?}");
        assert!(start >= before, "{errors:?}");
        let line_start = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        assert_eq!(error.line, text[..start].matches('\n').count() + 1, "{error:?}");
        assert_eq!(error.column, text[line_start..start].chars().count() + 1, "{error:?}");
        before = start;
    }
    // Showing them takes longer than all the rest, and each is shown for itself.
    let count = errors.iter().count();
    if count <= SHOWN {
        let shown = errors.render(text, "fuzz.s", Colors::Plain);
        assert!(shown.matches("fuzz.s:").count() >= count, "{shown}");
    }
}

/// So many errors of a text are shown.
const SHOWN: usize = 4;

/// Tokens that stand where they should not.
const PIECES: &str = "%r63 %ra @p1 #-1 #0x7fffffffffffffff 0x10 077 1.5 3f 08 ( ) + - * / % << >> ` ? : , ; \"s\\n\" \" \
    /* */ $ é \t \r HOST __WORD .word nop";

fn piece(u: &mut Unstructured<'_>) -> arbitrary::Result<&'static str> {
    u.choose(&PIECES.split(' ').collect::<Vec<_>>()).copied()
}

/// Texts for one machine.
struct Soup {
    arch: ArchId,
    /// Whether things stand where they should not, and the machine lacks instructions.
    is_noisy: bool,
}

impl Soup {
    /// A text of statements and noise.
    fn text(&self, u: &mut Unstructured<'_>) -> arbitrary::Result<String> {
        // A few end anywhere.
        let end = if self.is_noisy { u.int_in_range(0..=1000)? } else { usize::MAX };
        let mut text = String::new();
        while !u.is_empty() && text.len() < 1 << 14 {
            self.statement(u, &mut text)?;
            if self.is_noisy && u.ratio(1, 16)? {
                text += piece(u)?;
            }
            text += u.choose(&["\n", "\n", " ; ", "\r\n", " /* é */ \n"])?;
        }
        let end = text.len().min(end);
        text.truncate((0..=end).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0));
        Ok(text)
    }

    fn statement(&self, u: &mut Unstructured<'_>, text: &mut String) -> arbitrary::Result<()> {
        if u.ratio(1, 4)? {
            // Names repeat seldom enough for texts that assemble.
            *text += &format!("l{}: ", u.arbitrary::<u16>()?);
        }
        *text += &match u.int_in_range(0..=16)? {
            0 => format!(".align {}", *u.choose(&["0", "8", "(1 << 6)", "3", "0x1000"])?),
            1 => format!(".perm {}", *u.choose(&["x", "rw", "r", "rwx"])?),
            2 => (*u.choose(&[".entry", ".global"])?).to_owned(),
            3 => format!(".def d{} {}", u.arbitrary::<u16>()?, number(u)?),
            4 => format!(".byte {}", u.arbitrary::<i8>()?),
            5 => format!(".space {}", u.int_in_range(0..=300)?),
            6 => format!(".string \"{}\"", *u.choose(&["", "a\\n", "\\\"\\\\", "é", "\\q"])?),
            7 => {
                let count = u.int_in_range(1..=3)?;
                let words = (0..count).map(|_| if u.arbitrary()? { number(u) } else { symbol(u) });
                format!(".word {}", words.collect::<arbitrary::Result<Vec<_>>>()?.join(" "))
            }
            8 => {
                let marks = *u.choose(&["", "x", "rwg", "xe", "rxge"])?;
                let (name, alignment) = (u.arbitrary::<u8>()?, u.arbitrary::<u8>()?);
                format!(".chunk \"c {name}\" \"{marks}\" {alignment}")
            }
            9 => {
                let kind = *u.choose(&["", "r"])?;
                let (offset, bits) = (u.int_in_range(0..=40)?, u.int_in_range(1..=32)?);
                format!("nop ; .ref \"c {}\" \"{kind}\" 8 {offset} {bits} 0", u.arbitrary::<u8>()?)
            }
            10 if self.is_noisy => {
                let count = u.int_in_range(1..=4)?;
                let pieces = (0..count).map(|_| piece(u)).collect::<arbitrary::Result<Vec<_>>>()?;
                pieces.join(" ")
            }
            _ => self.instruction(u)?,
        };
        Ok(())
    }

    fn instruction(&self, u: &mut Unstructured<'_>) -> arbitrary::Result<String> {
        let opcode = *u.choose(Opcode::ALL)?;
        if !self.is_noisy && !Layout::new(self.arch).has(opcode) {
            return Ok(String::new());
        }
        let mut text = String::new();
        if u.ratio(1, 4)? {
            text = format!("@p{} ? ", u.int_in_range(0..=1)?);
        }
        text += opcode.mnemonic();
        for (index, description) in opcode.operands().iter().enumerate() {
            text += if index > 0 && u.arbitrary()? { ", " } else { " " };
            text += &match description.kind {
                OperandKind::Gpr(_) => format!("%r{}", u.int_in_range(0..=7)?),
                OperandKind::Pred(_) => format!("@p{}", u.int_in_range(0..=1)?),
                OperandKind::Imm | OperandKind::Rel if u.ratio(1, 3)? => symbol(u)?,
                OperandKind::Imm | OperandKind::Rel => format!("#{}", u.int_in_range(-40..=40)?),
            };
        }
        Ok(text)
    }
}

/// A name that may be one of a label, of a constant, or of nothing.
fn symbol(u: &mut Unstructured<'_>) -> arbitrary::Result<String> {
    let number = u.arbitrary::<u16>()?;
    Ok(match u.int_in_range(0..=3)? {
        0 => format!("d{number}"),
        1 => "HOST".to_owned(),
        2 => format!("\"c {}\"", number % 256),
        _ => format!("l{number}"),
    })
}

fn number(u: &mut Unstructured<'_>) -> arbitrary::Result<String> {
    Ok(match u.int_in_range(0..=5)? {
        0 => format!("({} & 0xffff)", expression(u, 0)?),
        1 => format!("{:#x}", u.arbitrary::<u16>()?),
        2 => "__WORD".to_owned(),
        3 => format!("{}.5", u.arbitrary::<u8>()?),
        _ => u.arbitrary::<u8>()?.to_string(),
    })
}

fn expression(u: &mut Unstructured<'_>, depth: usize) -> arbitrary::Result<String> {
    let mut text = "(".to_owned();
    for term in 0..u.int_in_range(1..=3)? {
        if term > 0 {
            text += u.choose(&[" + ", " - ", " * ", "&", " >> ", " | ", "^", " / ", " % "])?;
        }
        text += u.choose(&["", "", "-", "`"])?;
        text += &if depth < 3 && u.ratio(1, 4)? {
            expression(u, depth + 1)?
        } else {
            u.arbitrary::<u8>()?.to_string()
        };
    }
    Ok(text + ")")
}
