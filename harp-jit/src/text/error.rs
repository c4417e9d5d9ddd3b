//! Errors in CLIF text, with their places.

use std::ops::Range;

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use harp_isa::asm::Colors;
use thiserror::Error;

use crate::source::SourcePlace;

/// The first error in a text.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{place}: {kind}")]
pub struct TextError {
    /// The place: file, line and column.
    pub place: SourcePlace,
    /// The byte range in the text; empty at its end.
    pub span: Range<usize>,
    /// The error.
    pub kind: TextErrorKind,
}

/// The kinds of errors in a text.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TextErrorKind {
    /// A character that no token starts with.
    #[error("no item of the language starts like this")]
    UnknownCharacter,
    /// An error of Cranelift's reader.
    #[error("{0}")]
    Syntax(String),
    /// Text that is not valid CLIF.
    #[error("`{function}` is not valid: {message}")]
    Invalid {
        /// The function.
        function: String,
        /// The error of Cranelift's verifier.
        message: String,
    },
    /// Vectors of dynamic length.
    #[error("vectors of dynamic length are not supported")]
    DynamicVectors,
    /// A value, block or other entity with a number that would take too much of the host's memory.
    #[error("entity number {given}, the limit is {limit}")]
    EntityNumber {
        /// The number.
        given: u32,
        /// The largest number.
        limit: u32,
    },
    /// A `userextname` without a declaration.
    #[error("the function `{function}` uses an external name that it does not declare")]
    ExternalName {
        /// The function.
        function: String,
    },
    /// An invalid datum in a comment `data: %name type value...`.
    #[error("not a datum: {0}; expected `data: %name type value...`")]
    Data(String),
    /// A text that makes Cranelift's reader panic.
    #[error("Cranelift's reader gives up on this text: {0}")]
    Reader(String),
}

impl TextError {
    /// The error for people: the message, the place, the line of `source` and a caret below it. `source` is
    /// the text that was parsed.
    pub fn render(&self, source: &str, colors: Colors) -> String {
        let renderer = match colors {
            Colors::Plain => Renderer::plain(),
            Colors::Ansi => Renderer::styled(),
        };
        let renderer = renderer.decor_style(DecorStyle::Ascii);
        let title = Level::ERROR.primary_title(self.kind.to_string());
        let Some(before) = source.get(..self.span.start) else {
            return format!("{}\n", renderer.render(&[Group::with_title(title)]));
        };
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = source[start..].lines().next().unwrap_or_default();
        let at = |offset: usize| (offset - start).min(line.len());
        let snippet = Snippet::source(line)
            .line_start(self.place.line as usize)
            .path(self.place.file.as_ref())
            .annotation(AnnotationKind::Primary.span(at(self.span.start)..at(self.span.end)));
        format!("{}\n", renderer.render(&[title.element(snippet)]))
    }
}
