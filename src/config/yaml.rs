//! From text to a tree of values, each of which knows where it stands.
//!
//! `serde-saphyr` parses; the tree stands between it and the typed records so that one run can report every wrong
//! field and value of a file, and not only the first. Scalars keep their spelling: what `0x1`, `no` or `1.10`
//! mean is decided where they are used, so a node may be called `no`.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Location, Spanned as YamlSpanned};

use super::code::Code;
use super::diagnostic::Diagnostic;
use super::source::{SourceId, Span};

/// Larger files are refused unread.
pub(super) const MAX_BYTES: usize = 16 << 20;
/// Deeper nesting is refused; ours needs seven levels.
const MAX_DEPTH: usize = 32;

/// A value of a YAML document.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Value {
    pub(crate) span: Span,
    pub(crate) kind: Kind,
}

/// What a value is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    Null,
    /// Text as written, without quotes and escapes.
    Scalar(String),
    Sequence(Vec<Value>),
    Mapping(Vec<(Key, Value)>),
}

/// The name of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) name: String,
    pub(crate) span: Span,
}

impl Value {
    /// What a person calls it.
    pub(crate) fn noun(&self) -> &'static str {
        match self.kind {
            Kind::Null => "nothing",
            Kind::Scalar(_) => "a single value",
            Kind::Sequence(_) => "a list",
            Kind::Mapping(_) => "a group of fields",
        }
    }
}

/// Parses one document.
///
/// # Errors
/// A diagnostic with [`Code::Syntax`] at the first place that is not YAML.
pub(crate) fn parse(source: SourceId, text: &str) -> Result<Value, Box<Diagnostic>> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_depth: MAX_DEPTH, max_total_scalar_bytes: MAX_BYTES },
        duplicate_keys: serde_saphyr::DuplicateKeyPolicy::PassThrough,
        strict_booleans: true,
        with_snippet: false,
    };
    match serde_saphyr::from_str_with_options::<YamlSpanned<Raw>>(text, options) {
        Ok(raw) => Ok(Place { source, text }.value(raw)),
        Err(error) => Err(Box::new(Place { source, text }.syntax_error(&error))),
    }
}

/// The document as the parser hands it over.
enum Raw {
    Null,
    Text(String),
    /// A boolean or number, whose spelling is still in the source.
    Plain(String),
    Sequence(Vec<YamlSpanned<Raw>>),
    Mapping(Vec<(YamlSpanned<String>, YamlSpanned<Raw>)>),
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RawVisitor)
    }
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = Raw;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }

    fn visit_none<E>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Raw, D::Error> {
        deserializer.deserialize_any(Self)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Raw, E> {
        Ok(Raw::Plain(value.to_string()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Raw, E> {
        Ok(Raw::Plain(value.to_string()))
    }

    fn visit_i128<E>(self, value: i128) -> Result<Raw, E> {
        Ok(Raw::Plain(value.to_string()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Raw, E> {
        Ok(Raw::Plain(value.to_string()))
    }

    fn visit_u128<E>(self, value: u128) -> Result<Raw, E> {
        Ok(Raw::Plain(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Raw, E> {
        Ok(Raw::Plain(value.to_string()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Raw, E> {
        Ok(Raw::Text(value.to_owned()))
    }

    fn visit_bytes<E>(self, value: &[u8]) -> Result<Raw, E> {
        Ok(Raw::Text(String::from_utf8_lossy(value).into_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Raw, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(Raw::Sequence(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Raw, A::Error> {
        let mut fields = Vec::new();
        while let Some(key) = access.next_key()? {
            fields.push((key, access.next_value()?));
        }
        Ok(Raw::Mapping(fields))
    }
}

/// Turns the parser's locations into spans.
struct Place<'a> {
    source: SourceId,
    text: &'a str,
}

impl Place<'_> {
    fn value(&self, raw: YamlSpanned<Raw>) -> Value {
        let written = self.span(raw.defined);
        let mut span = self.span(raw.referenced);
        let kind = match raw.value {
            Raw::Null => Kind::Null,
            Raw::Text(text) => Kind::Scalar(text),
            Raw::Plain(fallback) => {
                let spelled = self.text.get(written.range()).unwrap_or_default();
                Kind::Scalar(if spelled.is_empty() { fallback } else { spelled.to_owned() })
            }
            Raw::Sequence(items) => {
                let items: Vec<_> = items.into_iter().map(|item| self.value(item)).collect();
                self.close(&mut span, items.last());
                Kind::Sequence(items)
            }
            Raw::Mapping(fields) => {
                let fields: Vec<_> =
                    fields.into_iter().map(|(key, value)| (self.key(key), self.value(value))).collect();
                self.close(&mut span, fields.last().map(|(_, value)| value));
                Kind::Mapping(fields)
            }
        };
        Value { span, kind }
    }

    fn key(&self, key: YamlSpanned<String>) -> Key {
        Key { name: key.value, span: self.span(key.referenced) }
    }

    /// Lets the span of a `[…]` or `{…}` reach to its closing bracket: the parser gives the opening one only.
    fn close(&self, span: &mut Span, last: Option<&Value>) {
        let closing = match self.text.get(span.range()) {
            Some("[") => ']',
            Some("{") => '}',
            _ => return,
        };
        let from = last.map_or(span.end, |last| last.span.end.max(span.end));
        let rest = self.text.get(from..).unwrap_or_default();
        if let Some(offset) = rest.find(closing) {
            span.end = from.saturating_add(offset).saturating_add(1);
        }
    }

    fn span(&self, location: Location) -> Span {
        let bytes = location.span().byte_offset().zip(location.span().byte_len());
        let bytes = bytes.and_then(|(start, len)| {
            let start = usize::try_from(start).ok()?;
            let end = start.checked_add(usize::try_from(len).ok()?)?;
            self.text.get(start..end).map(|slice| (start, start + slice.trim_end().len()))
        });
        let (start, end) = bytes.unwrap_or_else(|| {
            let start = self.offset_of(location);
            (start, start)
        });
        Span { source: self.source, start, end }
    }

    /// Byte offset of a line and column, which count from 1; the end of the text if they lie beyond it.
    fn offset_of(&self, location: Location) -> usize {
        let line = usize::try_from(location.line().saturating_sub(1)).unwrap_or(usize::MAX);
        let column = usize::try_from(location.column().saturating_sub(1)).unwrap_or(usize::MAX);
        let line_start: usize = self.text.split_inclusive('\n').take(line).map(str::len).sum();
        let rest = self.text.get(line_start..).unwrap_or_default();
        let in_line: usize = rest.chars().take_while(|c| *c != '\n').take(column).map(char::len_utf8).sum();
        line_start.saturating_add(in_line).min(self.text.len())
    }

    fn syntax_error(&self, error: &serde_saphyr::Error) -> Diagnostic {
        let location = error.location().unwrap_or(Location::UNKNOWN);
        let text = error.to_string();
        let message = text.split(" at line ").next().unwrap_or_default().trim();
        let span = self.span(location);
        let diagnostic = Diagnostic::at(span, Code::Syntax, "this is not YAML").label(message.to_owned());
        let before = self.text.get(..span.start).unwrap_or_default();
        let around = self.text.get(span.start..).unwrap_or_default().lines().next().unwrap_or_default();
        let line = before.lines().last().unwrap_or_default();
        if line.contains("//") || around.contains("//") {
            return diagnostic.help("comments begin with `#`, not with `//`");
        }
        diagnostic
    }
}
