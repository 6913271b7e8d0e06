//! Configuration files with places to fill in: `@name@`.

/// Fills in all places; a line that a place leaves empty vanishes.
///
/// # Panics
/// When a place has no value: a mistake in our own files.
pub(crate) fn fill(template: &str, values: &[(&str, &str)]) -> String {
    let mut text = String::new();
    for line in template.lines() {
        let mut filled = line.to_owned();
        for (name, value) in values {
            filled = filled.replace(&format!("@{name}@"), value);
        }
        let bare = filled.trim_end();
        assert!(values_are_in(bare, line), "no value for a place in {line:?}");
        if !bare.is_empty() || line.trim().is_empty() {
            text.push_str(bare);
            text.push('\n');
        }
    }
    text
}

/// Whether no place of the template's line is left.
fn values_are_in(filled: &str, line: &str) -> bool {
    let mut parts = line.split('@').skip(1).step_by(2);
    parts.all(|name| {
        name.is_empty()
            || !name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
            || !filled.contains(&format!("@{name}@"))
    })
}

/// Indents each line by `width` spaces.
pub(crate) fn indent(text: &str, width: usize) -> String {
    let lines: Vec<String> = text.lines().map(|line| format!("{:width$}{}", "", line.trim_end())).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::{fill, indent};

    #[test]
    fn places_are_filled_and_empty_lines_vanish() {
        let text =
            fill("a = @a@\n@none@\n\nb {\n@more@\n}\n", &[("a", "x@y"), ("none", ""), ("more", "  1\n  2")]);
        assert_eq!(text, "a = x@y\n\nb {\n  1\n  2\n}\n");
        assert_eq!(indent("one\n two\n", 2), "  one\n   two");
    }

    #[test]
    #[should_panic(expected = "no value")]
    fn a_forgotten_place_is_found() {
        fill("a = @a@", &[]);
    }
}
