//! Groups of named fields: declared once, read with positions, described for the manual and the JSON Schema.
//!
//! `record!` declares a struct whose doc comments are the reference manual. Reading
//! one never stops at the first mistake: each is reported, and a field that cannot be read counts as absent.

use super::code::Code;
use super::diagnostic::{Diagnostic, Diagnostics, Severity};
use super::source::{Span, Spanned};
use super::suggestion::{enumerate, nearest};
use super::yaml::{Key, Kind, Value};

/// A type that can be read from a YAML value.
pub(crate) trait FromYaml: Sized {
    /// Reads it; `None` after reporting why it can't be.
    fn from_yaml(value: &Value, diagnostics: &mut Diagnostics) -> Option<Self>;

    /// What may stand there, for the manual and the schema.
    fn shape() -> Shape;
}

/// A field that is present.
#[derive(Clone, Debug)]
pub(crate) struct Field<T> {
    /// Its name's place.
    pub(crate) key: Span,
    /// Its value's place.
    pub(crate) span: Span,
    /// Its value.
    pub(crate) value: T,
}

/// What may stand in a place.
#[derive(Clone, Debug)]
pub(crate) enum Shape {
    /// A single value: what people call it, and the JSON Schema for it.
    Scalar { noun: &'static str, schema: serde_json::Value },
    /// Any number of values.
    List(Box<Shape>),
    /// One value or a list of them.
    OneOrMany(Box<Shape>),
    /// Named fields.
    Record(fn() -> RecordInfo),
    /// Anything.
    Any,
}

/// A record, for the manual and the schema.
pub(crate) struct RecordInfo {
    pub(crate) about: String,
    pub(crate) fields: Vec<FieldInfo>,
    /// Whether unknown fields are errors.
    pub(crate) strict: bool,
}

/// A field of a record, for the manual and the schema.
pub(crate) struct FieldInfo {
    pub(crate) name: &'static str,
    pub(crate) about: String,
    pub(crate) required: bool,
    pub(crate) default: Option<&'static str>,
    pub(crate) shape: Shape,
}

/// Declares a record.
///
/// ```text
/// record! {
///     /// The first sentence of its section in the manual.
///     pub(crate) struct Endpoint called "an endpoint", unknown: Error {
///         /// What the manual says of the field.
///         required port: u16,
///         /// A field with a default; the text stands in the manual and is tested.
///         optional mtu: u16 = "1438",
///     }
/// }
/// ```
macro_rules! record {
    ($(#[doc = $about:literal])* $vis:vis struct $name:ident called $noun:literal, unknown: $unknown:ident {
        $($(#[doc = $doc:literal])* $need:ident $field:ident: $type:ty $(= $default:literal)?,)*
    }) => {
        $(#[doc = $about])*
        #[derive(Clone, Debug)]
        $vis struct $name {
            $($(#[doc = $doc])* pub(crate) $field: Option<$crate::config::record::Field<$type>>,)*
        }

        impl $crate::config::record::FromYaml for $name {
            fn from_yaml(
                value: &$crate::config::yaml::Value,
                diagnostics: &mut $crate::config::diagnostic::Diagnostics,
            ) -> Option<Self> {
                let mut fields = $crate::config::record::Fields::of(value, $noun, diagnostics)?;
                let record = Self { $($field: fields.$need(stringify!($field), diagnostics),)* };
                let unknown = $crate::config::diagnostic::Severity::$unknown;
                fields.finish(&[$(stringify!($field)),*], unknown, diagnostics);
                Some(record)
            }

            fn shape() -> $crate::config::record::Shape {
                $crate::config::record::Shape::Record(|| $crate::config::record::RecordInfo {
                    about: concat!($($about, "\n",)*).to_owned(),
                    strict: matches!($crate::config::diagnostic::Severity::$unknown, $crate::config::diagnostic::Severity::Error),
                    fields: vec![$($crate::config::record::FieldInfo {
                        name: stringify!($field),
                        about: concat!($($doc, "\n",)*).to_owned(),
                        required: matches!(stringify!($need).as_bytes(), b"required"),
                        default: [$($default,)? ""].first().copied().filter(|text| !text.is_empty()),
                        shape: <$type as $crate::config::record::FromYaml>::shape(),
                    },)*],
                })
            }
        }
    };
}
pub(crate) use record;

/// The fields of one mapping while they are being read.
pub(crate) struct Fields<'v> {
    noun: &'static str,
    span: Span,
    entries: Vec<(&'v Key, &'v Value)>,
}

impl<'v> Fields<'v> {
    /// The fields of `value`; reports it if it is no mapping.
    pub(crate) fn of(value: &'v Value, noun: &'static str, diagnostics: &mut Diagnostics) -> Option<Self> {
        let Kind::Mapping(entries) = &value.kind else {
            let title = format!("{noun} is a group of fields, but this is {}", value.noun());
            diagnostics.push(Diagnostic::at(value.span, Code::WrongType, title).label("fields belong here"));
            return None;
        };
        let fields = Self {
            noun,
            span: value.span,
            entries: entries.iter().map(|(key, value)| (key, value)).collect(),
        };
        fields.report_duplicates(diagnostics);
        Some(fields)
    }

    /// A field that must be there.
    pub(crate) fn required<T: FromYaml>(
        &mut self,
        name: &str,
        diagnostics: &mut Diagnostics,
    ) -> Option<Field<T>> {
        let present = self.entries.iter().any(|(key, value)| key.name == name && value.kind != Kind::Null);
        if !present {
            let place =
                self.entries.iter().find(|(key, _)| key.name == name).map_or(self.span, |(key, _)| key.span);
            let title = format!("{} lacks `{name}`", self.noun);
            diagnostics.push(
                Diagnostic::at(place, Code::MissingField, title).label(format!("`{name}` is needed here")),
            );
        }
        self.optional(name, diagnostics)
    }

    /// A field that may be absent; `null` is absence.
    pub(crate) fn optional<T: FromYaml>(
        &mut self,
        name: &str,
        diagnostics: &mut Diagnostics,
    ) -> Option<Field<T>> {
        let (key, value) = self.entries.iter().find(|(key, _)| key.name == name)?;
        if value.kind == Kind::Null {
            return None;
        }
        let read = T::from_yaml(value, diagnostics)?;
        Some(Field { key: key.span, span: value.span, value: read })
    }

    /// Reports the fields that are none.
    pub(crate) fn finish(&self, known: &[&'static str], severity: Severity, diagnostics: &mut Diagnostics) {
        for (key, _) in self.entries.iter().filter(|(key, _)| !known.contains(&key.name.as_str())) {
            let help = match nearest(&key.name, known.iter().copied()) {
                _ if key.name.starts_with("//") => "comments begin with `#`, not with `//`".to_owned(),
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("there are {}", enumerate(known.iter().copied())),
            };
            let diagnostic =
                Diagnostic::at(key.span, Code::UnknownField, format!("unknown field `{}`", key.name))
                    .label(format!("not a field of {}", self.noun));
            diagnostics.push(diagnostic.help(help).severity(severity));
        }
    }

    fn report_duplicates(&self, diagnostics: &mut Diagnostics) {
        for (index, (key, _)) in self.entries.iter().enumerate() {
            let Some((first, _)) = self.entries.iter().take(index).find(|(other, _)| other.name == key.name)
            else {
                continue;
            };
            let line = diagnostics.sources.line(first.span);
            let title = format!("field `{}` is given twice", key.name);
            let diagnostic = Diagnostic::at(key.span, Code::DuplicateField, title);
            diagnostics
                .push(diagnostic.label(format!("first given on line {line}")).help("keep one of them"));
        }
    }
}

impl<T: FromYaml> FromYaml for Vec<Spanned<T>> {
    fn from_yaml(value: &Value, diagnostics: &mut Diagnostics) -> Option<Self> {
        let Kind::Sequence(items) = &value.kind else {
            let diagnostic = Diagnostic::at(
                value.span,
                Code::WrongType,
                format!("a list belongs here, not {}", value.noun()),
            );
            let diagnostic = diagnostic.label("not a list");
            diagnostics.push(match &value.kind {
                Kind::Scalar(text) => diagnostic.help(format!("write `[{text}]`")),
                _ => diagnostic,
            });
            return None;
        };
        Some(items.iter().filter_map(|item| spanned(item, diagnostics)).collect())
    }

    fn shape() -> Shape {
        Shape::List(Box::new(T::shape()))
    }
}

/// One value or a list of values.
#[derive(Clone, Debug)]
pub(crate) struct OneOrMany<T>(pub(crate) Vec<Spanned<T>>);

impl<T: FromYaml> FromYaml for OneOrMany<T> {
    fn from_yaml(value: &Value, diagnostics: &mut Diagnostics) -> Option<Self> {
        match &value.kind {
            Kind::Sequence(_) => Vec::from_yaml(value, diagnostics).map(Self),
            _ => spanned(value, diagnostics).map(|one| Self(vec![one])),
        }
    }

    fn shape() -> Shape {
        Shape::OneOrMany(Box::new(T::shape()))
    }
}

fn spanned<T: FromYaml>(value: &Value, diagnostics: &mut Diagnostics) -> Option<Spanned<T>> {
    T::from_yaml(value, diagnostics).map(|read| Spanned { value: read, span: value.span })
}

/// Whatever stands there; nobody looks at it.
#[derive(Clone, Debug)]
pub(crate) struct Anything;

impl FromYaml for Anything {
    fn from_yaml(_: &Value, _: &mut Diagnostics) -> Option<Self> {
        Some(Self)
    }

    fn shape() -> Shape {
        Shape::Any
    }
}
