//! The rule for names that need no quotes in assembly text, which the lexer and the printers of objects
//! share.

pub(crate) fn starts_symbol(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_' || c == '.'
}

pub(crate) fn continues_symbol(c: char) -> bool {
    starts_symbol(c) || c.is_ascii_digit()
}

/// Whether `text` is a symbol without quotes.
pub(crate) fn is_symbol(text: &str) -> bool {
    text.starts_with(starts_symbol) && text.chars().all(continues_symbol)
}
