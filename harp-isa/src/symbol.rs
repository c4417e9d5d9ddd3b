//! Which names stand in assembly text as they are, without quotes: the lexer and the printers of objects
//! share the rule.

pub(crate) fn starts_symbol(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_' || c == '.'
}

pub(crate) fn continues_symbol(c: char) -> bool {
    starts_symbol(c) || c.is_ascii_digit()
}

/// Whether `text` is a symbol as it stands.
pub(crate) fn is_symbol(text: &str) -> bool {
    text.starts_with(starts_symbol) && text.chars().all(continues_symbol)
}
