//! The reference manual and the JSON Schemas, made from the types that read the files.

use serde_json::{Map, Value, json};

use super::code::Code;
use super::node_file::NodeFile;
use super::record::{FieldInfo, FromYaml, RecordInfo, Shape};
use super::registry_file::RegistryFile;

/// The manual, `docs/configuration.md`.
#[must_use]
pub fn manual() -> String {
    let mut text = include_str!("reference.md").to_owned();
    for (title, shape) in [("Node file", NodeFile::shape()), ("Registry", RegistryFile::shape())] {
        text.push_str(&format!("\n## {title}\n"));
        describe(title, "", &shape, &mut text);
    }
    text.push_str("\n## What `check` says\n\nThe names in brackets never change.\n");
    for code in Code::ALL {
        text.push_str(&format!("\n### {}\n\n{}: {}\n", code.name(), code.severity().name(), code.meaning()));
    }
    text
}

/// The JSON Schema of the node file.
#[must_use]
pub fn node_schema() -> Value {
    document("viamesh node file", schema(&NodeFile::shape()))
}

/// The JSON Schema of the registry.
#[must_use]
pub fn registry_schema() -> Value {
    document("viamesh registry", schema(&RegistryFile::shape()))
}

/// Writes the table of a record and, below it, those of the records in it.
fn describe(title: &str, path: &str, shape: &Shape, text: &mut String) {
    let Some(info) = record(shape) else { return };
    if !path.is_empty() {
        text.push_str(&format!("\n### {}\n", heading(title, path)));
    }
    text.push_str(&format!(
        "\n{}\n\n| field | value | unless given | |\n|---|---|---|---|\n",
        paragraph(&info.about)
    ));
    for field in &info.fields {
        text.push_str(&row(title, path, field));
    }
    for field in &info.fields {
        describe(title, &extended(path, field), &field.shape, text);
    }
}

fn row(title: &str, path: &str, field: &FieldInfo) -> String {
    let absent = match field.default {
        _ if field.required => "**required**".to_owned(),
        Some(default) => format!("`{default}`"),
        None => String::new(),
    };
    let value = match record(&field.shape) {
        Some(_) => {
            let heading = heading(title, &extended(path, field));
            format!("[{}](#{})", noun(&field.shape), anchor(&heading))
        }
        None => noun(&field.shape),
    };
    format!("| `{}` | {value} | {absent} | {} |\n", field.name, paragraph(&field.about))
}

fn heading(title: &str, path: &str) -> String {
    format!("{title}: `{path}`")
}

/// The anchor that Markdown makes of a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

fn extended(path: &str, field: &FieldInfo) -> String {
    let many = if matches!(field.shape, Shape::List(_)) { "[]" } else { "" };
    let dot = if path.is_empty() { "" } else { "." };
    format!("{path}{dot}{}{many}", field.name)
}

fn record(shape: &Shape) -> Option<RecordInfo> {
    match shape {
        Shape::Record(info) => Some(info()),
        Shape::List(inner) | Shape::OneOrMany(inner) => record(inner),
        Shape::Scalar { .. } | Shape::Any => None,
    }
}

fn noun(shape: &Shape) -> String {
    match shape {
        Shape::Scalar { noun, .. } => (*noun).to_owned(),
        Shape::List(inner) if record(inner).is_some() => "a list of fields".to_owned(),
        Shape::List(inner) => format!("a list, each {}", noun(inner)),
        Shape::OneOrMany(inner) => format!("{}, or a list of them", noun(inner)),
        Shape::Record(_) => "fields".to_owned(),
        Shape::Any => "anything".to_owned(),
    }
}

/// Doc comments are lines; a table cell and a paragraph are one.
fn paragraph(about: &str) -> String {
    about.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn document(title: &str, schema: Value) -> Value {
    let mut document = Map::new();
    document.insert("$schema".to_owned(), "https://json-schema.org/draft/2020-12/schema".into());
    document.insert("title".to_owned(), title.into());
    if let Value::Object(fields) = schema {
        document.extend(fields);
    }
    Value::Object(document)
}

fn schema(shape: &Shape) -> Value {
    match shape {
        Shape::Scalar { schema, .. } => schema.clone(),
        Shape::List(inner) => json!({"type": "array", "items": schema(inner)}),
        Shape::OneOrMany(inner) => {
            json!({"anyOf": [schema(inner), {"type": "array", "items": schema(inner)}]})
        }
        Shape::Record(info) => record_schema(&info()),
        Shape::Any => json!({}),
    }
}

fn record_schema(info: &RecordInfo) -> Value {
    let properties: Map<_, _> =
        info.fields.iter().map(|field| (field.name.to_owned(), field_schema(field))).collect();
    let required: Vec<_> =
        info.fields.iter().filter(|field| field.required).map(|field| field.name).collect();
    json!({
        "type": "object",
        "description": paragraph(&info.about),
        "properties": properties,
        "required": required,
        "additionalProperties": !info.strict,
    })
}

fn field_schema(field: &FieldInfo) -> Value {
    let value = schema(&field.shape);
    let mut value = if field.required { value } else { json!({"anyOf": [value, {"type": "null"}]}) };
    if let Value::Object(fields) = &mut value {
        fields.insert("description".to_owned(), paragraph(&field.about).into());
        if let Some(default) = field.default {
            fields.insert("default".to_owned(), default.into());
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// The files in the repository are what the types say; `UPDATE_DOCS=1` makes them so.
    #[test]
    fn the_files_in_the_repository_are_up_to_date() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let files = [
            ("docs/configuration.md", manual()),
            ("deploy/node.schema.json", format!("{:#}\n", node_schema())),
            ("deploy/registry.schema.json", format!("{:#}\n", registry_schema())),
        ];
        for (file, wanted) in files {
            let path = root.join(file);
            if std::env::var_os("UPDATE_DOCS").is_some() {
                std::fs::write(&path, &wanted).unwrap();
            }
            let found = std::fs::read_to_string(&path).unwrap_or_default();
            assert!(
                found == wanted,
                "{file} is out of date: run `UPDATE_DOCS=1 cargo test -p viamesh --lib reference`"
            );
        }
    }

    #[test]
    fn every_code_has_a_heading_and_every_link_a_target() {
        let manual = manual();
        for code in Code::ALL {
            assert!(manual.contains(&format!("\n### {}\n", code.name())));
        }
        let headings: Vec<_> = manual
            .lines()
            .filter(|line| line.starts_with('#'))
            .map(|line| anchor(line.trim_start_matches(['#', ' '])))
            .collect();
        for link in manual.split("](#").skip(1) {
            let target = link.split(')').next().unwrap().to_owned();
            assert!(headings.contains(&target), "{target}");
        }
    }

    #[test]
    fn the_schema_says_what_is_required() {
        let schema = node_schema();
        assert_eq!(schema["required"], json!(["organization", "common_name", "endpoints"]));
        assert_eq!(schema["additionalProperties"], false);
        assert!(
            schema["properties"]["policies"]["description"].as_str().unwrap().contains("first match wins")
        );
    }
}
