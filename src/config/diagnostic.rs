//! Diagnostics: what is wrong, where, and what to do about it.

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use serde_json::json;

use super::code::Code;
use super::source::{SourceId, Sources, Span};

/// Whether a configuration with this mistake can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// It can, but somebody should look.
    Warning,
    /// It cannot.
    Error,
}

impl Severity {
    /// `error` or `warning`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// Where a diagnostic points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// At some text.
    Span(Span),
    /// At a file as a whole.
    File(SourceId),
}

/// One mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Which kind.
    pub code: Code,
    /// How bad.
    pub severity: Severity,
    /// The first line: what is wrong, in words that need no context.
    pub title: String,
    /// Where.
    pub place: Place,
    /// What stands beneath the marked text.
    pub label: String,
    /// What to do about it.
    pub help: Option<String>,
}

impl Diagnostic {
    /// A diagnostic at `span`, as severe as its code.
    #[must_use]
    pub fn at(span: Span, code: Code, title: impl Into<String>) -> Self {
        let place = Place::Span(span);
        Self { code, severity: code.severity(), title: title.into(), place, label: String::new(), help: None }
    }

    /// A diagnostic about a whole file.
    #[must_use]
    pub fn about(file: SourceId, code: Code, title: impl Into<String>) -> Self {
        let place = Place::File(file);
        Self { code, severity: code.severity(), title: title.into(), place, label: String::new(), help: None }
    }

    /// Sets the text beneath the marker.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// Sets the advice.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Sets the severity where it differs from the code's.
    #[must_use]
    pub fn severity(mut self, severity: Severity) -> Self {
        self.severity = severity;
        self
    }
}

/// All diagnostics of one run and the texts that they point into.
#[derive(Clone, Debug, Default)]
pub struct Diagnostics {
    /// The texts.
    pub sources: Sources,
    list: Vec<Diagnostic>,
}

impl Diagnostics {
    /// Adds one.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.list.push(diagnostic);
    }

    /// All of them, in the order of files and lines.
    #[must_use]
    pub fn sorted(&self) -> Vec<&Diagnostic> {
        let mut sorted: Vec<_> = self.list.iter().collect();
        sorted.sort_by_key(|diagnostic| match diagnostic.place {
            Place::Span(span) => (span.source.index(), span.start),
            Place::File(source) => (source.index(), usize::MAX),
        });
        sorted
    }

    /// Whether the configuration cannot be used.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.count(Severity::Error) > 0
    }

    /// Whether there are errors, all of this code.
    #[must_use]
    pub fn only_errors_of(&self, code: Code) -> bool {
        let mut errors = self.list.iter().filter(|diagnostic| diagnostic.severity == Severity::Error);
        self.has_errors() && errors.all(|diagnostic| diagnostic.code == code)
    }

    /// How many there are of one severity.
    #[must_use]
    pub fn count(&self, severity: Severity) -> usize {
        self.list.iter().filter(|diagnostic| diagnostic.severity == severity).count()
    }

    /// Renders everything as text, with colours or without, each diagnostic followed by an empty line.
    #[must_use]
    pub fn render(&self, colour: bool) -> String {
        let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
        self.sorted().into_iter().map(|diagnostic| self.render_one(&renderer, diagnostic) + "\n\n").collect()
    }

    fn render_one(&self, renderer: &Renderer, diagnostic: &Diagnostic) -> String {
        let level = match diagnostic.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let title = level.primary_title(diagnostic.title.as_str()).id(diagnostic.code.name());
        let main = match diagnostic.place {
            Place::Span(span) => match self.sources.get(span.source) {
                Some(source) => {
                    let marked = visible(&source.text, span);
                    let annotation = AnnotationKind::Primary.span(marked).label(diagnostic.label.as_str());
                    let snippet = Snippet::source(source.text.as_str()).path(source.name.as_str());
                    title.element(snippet.annotation(annotation))
                }
                None => Group::with_title(title),
            },
            Place::File(file) => match self.sources.get(file) {
                Some(source) => title.element(Origin::path(source.name.as_str())),
                None => Group::with_title(title),
            },
        };
        let mut groups = vec![main];
        if let Some(help) = &diagnostic.help {
            groups.push(Group::with_title(Level::HELP.secondary_title(help.as_str())));
        }
        renderer.render(&groups)
    }

    /// Every diagnostic as JSON: `code`, `severity`, `message`, `file`, `line`, `column`, `label`, `help`.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        self.sorted().into_iter().map(|diagnostic| self.one_to_json(diagnostic)).collect()
    }

    fn one_to_json(&self, diagnostic: &Diagnostic) -> serde_json::Value {
        let (file, position) = match diagnostic.place {
            Place::Span(span) => (span.source, Some(self.sources.position(span))),
            Place::File(file) => (file, None),
        };
        json!({
            "code": diagnostic.code.name(),
            "severity": diagnostic.severity.name(),
            "message": diagnostic.title,
            "file": self.sources.get(file).map(|source| source.name.as_str()),
            "line": position.map(|position| position.line),
            "column": position.map(|position| position.column),
            "label": diagnostic.label,
            "help": diagnostic.help,
        })
    }
}

/// The part of `span` on its first line, so that a mark never runs over half the screen; at least one character
/// where there is one.
fn visible(text: &str, span: Span) -> std::ops::Range<usize> {
    let start = span.start.min(text.len());
    let rest = text.get(start..).unwrap_or_default();
    let line = rest.split('\n').next().unwrap_or_default().trim_end();
    let first = line.chars().next().map_or(0, char::len_utf8);
    let wanted = span.end.saturating_sub(start).clamp(first, line.len().max(first));
    let end = start.saturating_add(wanted);
    if text.is_char_boundary(start) && text.is_char_boundary(end) { start..end } else { 0..0 }
}
