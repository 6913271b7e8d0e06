//! The parts of the daemon whose log level can be changed alone.

/// Name for people, and where the lines of the part come from.
const COMPONENTS: [(&str, &str); 7] = [
    ("all", "viamesh"),
    ("ike", "viamesh::ike"),
    ("babel", "viamesh::babel"),
    ("policy", "viamesh::policy"),
    ("kernel", "viamesh::kernel"),
    ("config", "viamesh::config"),
    ("data", "viamesh::forwarding"),
];

const LEVELS: [&str; 5] = ["error", "warn", "info", "debug", "trace"];

/// The log filter that `ike=debug,babel=trace` means.
///
/// # Errors
/// In words, if a part is no component with a level.
pub fn directives(wanted: &str) -> Result<String, String> {
    let parts: Result<Vec<String>, String> = wanted.split(',').map(|part| directive(part.trim())).collect();
    Ok(parts?.join(","))
}

fn directive(part: &str) -> Result<String, String> {
    let names = || COMPONENTS.map(|(name, _)| name).join(", ");
    let (component, level) = part
        .split_once('=')
        .ok_or_else(|| format!("`{part}` is no COMPONENT=LEVEL; components: {}", names()))?;
    let target = COMPONENTS.iter().find(|(name, _)| *name == component).map(|(_, target)| *target);
    let target = target.ok_or_else(|| format!("there is no component `{component}`, only {}", names()))?;
    let level = level.to_lowercase();
    if LEVELS.contains(&level.as_str()) {
        Ok(format!("{target}={level}"))
    } else {
        Err(format!("there is no level `{level}`, only {}", LEVELS.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_have_levels() {
        assert_eq!(directives("ike=debug"), Ok("viamesh::ike=debug".to_owned()));
        assert_eq!(directives("babel=TRACE, all=warn"), Ok("viamesh::babel=trace,viamesh=warn".to_owned()));
        for wrong in ["", "ike", "bgp=debug", "ike=loud", "ike=debug,"] {
            assert!(directives(wrong).is_err(), "{wrong}");
        }
    }
}
