//! Rendering of errors for terminals: the message, the place, the line and a caret below.

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use super::error::{AsmError, AsmErrors};

/// Whether a rendered message holds the escape sequences of ANSI terminals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colors {
    /// Text alone.
    Plain,
    /// Colors and bold text.
    Ansi,
}

impl Colors {
    fn renderer(self) -> Renderer {
        let renderer = match self {
            Colors::Plain => Renderer::plain(),
            Colors::Ansi => Renderer::styled(),
        };
        renderer.decor_style(DecorStyle::Ascii)
    }
}

impl AsmErrors {
    /// All errors as human-readable text, each with its place in the file `path`, the line of `source` and a
    /// caret; at the end, how many were left out. `source` is the text that was assembled.
    ///
    /// ```
    /// use harp_isa::asm::Colors;
    /// use harp_isa::{ArchId, assemble};
    ///
    /// let source = "start: addi %r1, %r2, #1\n       frob %r1\n";
    /// let errors = assemble(source, ArchId::HARP32, &[]).unwrap_err();
    /// assert_eq!(
    ///     errors.render(source, "a.s", Colors::Plain),
    ///     "error: no such instruction\n \
    ///      --> a.s:2:8\n  \
    ///      |\n\
    ///      2 |        frob %r1\n  \
    ///      |        ^^^^\n"
    /// );
    /// ```
    pub fn render(&self, source: &str, path: &str, colors: Colors) -> String {
        let renderer = colors.renderer();
        let mut messages: Vec<String> =
            self.iter().map(|error| error.render(source, path, &renderer)).collect();
        if self.omitted() > 0 {
            let title = format!("{} more errors are not shown", self.omitted());
            let title = Level::NOTE.primary_title(title);
            messages.push(renderer.render(&[Group::with_title(title)]));
        }
        messages.iter().map(|message| format!("{message}\n")).collect::<Vec<_>>().join("\n")
    }
}

impl AsmError {
    fn render(&self, source: &str, path: &str, renderer: &Renderer) -> String {
        let title = Level::ERROR.primary_title(self.kind.to_string());
        // Only the line is passed on, so that the renderer need not walk over the whole text again.
        let line = source.get(..self.span.start).map(|before| {
            let start = before.rfind('\n').map_or(0, |newline| newline + 1);
            (start, source[start..].lines().next().unwrap_or_default())
        });
        let Some((start, line)) = line else {
            return renderer.render(&[Group::with_title(title)]);
        };
        let at = |offset: usize| (offset - start).min(line.len());
        let span = at(self.span.start)..at(self.span.end);
        let snippet = Snippet::source(line)
            .line_start(self.line)
            .path(path)
            .annotation(AnnotationKind::Primary.span(span));
        renderer.render(&[title.element(snippet)])
    }
}
