//! The defaults that the manual names are the ones in force.

use super::support::{Files, alpha, registry};
use crate::config::node_file::NodeFile;
use crate::config::record::{FieldInfo, FromYaml, Shape};

/// All documented defaults, as a node file would give them.
fn documented(fields: &[FieldInfo]) -> String {
    let mut text = String::new();
    for field in fields.iter().filter(|field| !["private_key", "registry"].contains(&field.name)) {
        match (&field.default, &field.shape) {
            (Some(default), _) => text += &format!("{}: {}\n", field.name, quoted(default)),
            (None, Shape::Record(info)) if field.name != "experimental" => {
                let inner = documented(&info().fields);
                let inner: String = inner.lines().map(|line| format!("  {line}\n")).collect();
                text += &format!("{}:\n{inner}", field.name);
            }
            _ => {}
        }
    }
    text
}

fn quoted(default: &str) -> String {
    if default.contains(':') { format!("\"{default}\"") } else { default.to_owned() }
}

#[test]
fn a_file_with_all_documented_defaults_means_the_same_as_one_without() {
    let Shape::Record(info) = NodeFile::shape() else { panic!("not a record") };
    let defaults = documented(&info().fields);
    assert!(defaults.contains("fast_hello: 100ms"), "{defaults}");
    let load = |text: &str| {
        let loaded = Files::new(&alpha(text), &registry()).load();
        assert_eq!(loaded.diagnostics.render(false), "");
        loaded.settings.unwrap()
    };
    assert_eq!(load(&defaults), load(""));
}
