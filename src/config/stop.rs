//! A stop of a policy as it stands in the node file.

use serde_json::json;

use super::code::Code;
use super::diagnostic::{Diagnostic, Diagnostics};
use super::record::{Field, FromYaml, Shape, record};
use super::source::Spanned;
use super::yaml::{Kind, Value};

/// Behind a name: this stop is reached over a direct link.
pub(crate) const STRICT: char = '!';

/// One stop: `bravo`, `bravo!`, or `{any_of: [tokyo, osaka]}`.
#[derive(Clone, Debug)]
pub(crate) struct StopEntry {
    /// The node's name, or several.
    pub(crate) any_of: Vec<Spanned<String>>,
    /// Whether the hop to it must be a direct link.
    pub(crate) strict: bool,
}

record! {
    /// Several nodes for one stop.
    struct GroupEntry called "a stop", unknown: Error {
        /// The nodes; the nearest that can be reached serves.
        required any_of: Vec<Spanned<String>>,
    }
}

impl FromYaml for StopEntry {
    fn from_yaml(value: &Value, diagnostics: &mut Diagnostics) -> Option<Self> {
        let Kind::Mapping(_) = value.kind else {
            let text = String::from_yaml(value, diagnostics)?;
            let name = text.strip_suffix(STRICT);
            let strict = name.is_some();
            let value = Spanned { value: name.unwrap_or(&text).to_owned(), span: value.span };
            return Some(Self { any_of: vec![value], strict });
        };
        let Field { value: any_of, span, .. } = GroupEntry::from_yaml(value, diagnostics)?.any_of?;
        if any_of.is_empty() {
            let diagnostic = Diagnostic::at(span, Code::InvalidValue, "no node is named for this stop");
            diagnostics.push(diagnostic.label("`any_of` is empty"));
            return None;
        }
        Some(Self { any_of, strict: false })
    }

    fn shape() -> Shape {
        let names = json!({"type": "array", "items": {"type": "string"}, "minItems": 1});
        let group = json!({
            "type": "object",
            "properties": {"any_of": names},
            "required": ["any_of"],
            "additionalProperties": false,
        });
        let schema = json!({"anyOf": [{"type": "string"}, group]});
        Shape::Scalar { noun: "a node such as `bravo`, `bravo!` or `{any_of: [tokyo, osaka]}`", schema }
    }
}
