//! Texts that diagnostics point into.

use std::ops::Range;

/// One of the texts of a [`Sources`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceId(usize);

impl SourceId {
    /// Position in the order of the run: the node file first.
    #[must_use]
    pub fn index(self) -> usize {
        self.0
    }
}

/// A range of bytes in one text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The text.
    pub source: SourceId,
    /// First byte.
    pub start: usize,
    /// The byte after the last one; equal to `start` for a mere position.
    pub end: usize,
}

impl Span {
    /// The bytes.
    #[must_use]
    pub fn range(self) -> Range<usize> {
        self.start..self.end
    }
}

/// A value and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spanned<T> {
    /// The value.
    pub value: T,
    /// Where it stands.
    pub span: Span,
}

impl<T> Spanned<T> {
    /// The same place, another value.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Spanned<U> {
        Spanned { value: change(self.value), span: self.span }
    }
}

/// A line and a column, both from 1; the column counts characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// Line.
    pub line: usize,
    /// Column.
    pub column: usize,
}

/// One text and the name that people know it by.
#[derive(Clone, Debug)]
pub struct Source {
    /// Path, as the user wrote it.
    pub name: String,
    /// Content.
    pub text: String,
}

/// All texts of one run.
#[derive(Clone, Debug, Default)]
pub struct Sources(Vec<Source>);

impl Sources {
    /// Adds a text.
    pub fn add(&mut self, name: impl Into<String>, text: impl Into<String>) -> SourceId {
        self.0.push(Source { name: name.into(), text: text.into() });
        SourceId(self.0.len().saturating_sub(1))
    }

    /// The text with this id.
    #[must_use]
    pub fn get(&self, id: SourceId) -> Option<&Source> {
        self.0.get(id.0)
    }

    /// The bytes of `span`; empty if it lies outside its text.
    #[must_use]
    pub fn slice(&self, span: Span) -> &str {
        self.get(span.source).and_then(|source| source.text.get(span.range())).unwrap_or_default()
    }

    /// Line and column of the first byte of `span`.
    #[must_use]
    pub fn position(&self, span: Span) -> Position {
        let before =
            self.get(span.source).and_then(|source| source.text.get(..span.start)).unwrap_or_default();
        let line_start = before.rfind('\n').map_or(0, |newline| newline.saturating_add(1));
        Position {
            line: before.matches('\n').count().saturating_add(1),
            column: before.get(line_start..).unwrap_or_default().chars().count().saturating_add(1),
        }
    }

    /// Line of the first byte of `span`, as messages and `Settings` use it.
    #[must_use]
    pub fn line(&self, span: Span) -> u32 {
        u32::try_from(self.position(span).line).unwrap_or(u32::MAX)
    }
}
