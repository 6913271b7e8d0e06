//! What `init` writes.

use super::Paths;
use super::answers::Answers;

/// The node file, with what can be added as comments.
pub(super) fn node_file(answers: &Answers) -> String {
    format!(
        "\
# viamesh: this node. `viamesh check` finds mistakes; `viamesh run` starts it.
organization: {organization}
common_name: {name}

# The key that `viamesh init` made for this node. Keep it secret; it is nowhere else.
private_key: node.pem

# Who else is in the mesh: the same file on all nodes.
registry: registry.yaml

# Where this node sends and receives. Open this UDP port in the firewall.
endpoints:
  - {{ serial_number: \"0\", address_family: {family}, port: {port} }}

# Networks behind this node that others may reach:
# announce: [10.1.0.0/16, \"2001:db8:a::/48\"]

# Let others leave to the internet here:
# offer: [internet]

# Packets take the fastest way unless a policy says otherwise. The first match wins.
# policies:
#   - name: inspected
#     from: [10.1.0.0/16]
#     to: [10.4.0.0/16]
#     via: [bravo, charlie, bravo]    # the journey, in order; a stop may come again
#     exit: delta                     # the last stop
#     if_unreachable: drop            # or any-path, or next
",
        organization = quoted(&answers.organization),
        name = quoted(&answers.name),
        family = answers.family.name(),
        port = answers.port,
    )
}

/// The block for the registry.
pub(super) fn registry_block(answers: &Answers, public_pem: &str) -> String {
    let address =
        answers.address.as_ref().map(|address| format!(", address: {}", quoted(address))).unwrap_or_default();
    let key: String = public_pem.lines().map(|line| format!("            {line}\n")).collect();
    format!(
        "\
- organization: {organization}
  nodes:
    - common_name: {name}
      endpoints:
        - {{ serial_number: \"0\", address_family: {family}{address}, port: {port} }}
      remarks:
        viamesh:
          public_key: |
{key}",
        organization = quoted(&answers.organization),
        name = quoted(&answers.name),
        family = answers.family.name(),
        port = answers.port,
    )
}

/// What to do next.
pub(super) fn farewell(answers: &Answers, paths: &Paths, wrote_registry: bool) -> String {
    let (key, node, registry) = (paths.key.display(), paths.node.display(), paths.registry.display());
    let next = if wrote_registry {
        format!(
            "wrote {registry}   the registry, with this node only\n\nAdd the other nodes to the registry, and this block to theirs:\n"
        )
    } else {
        format!(
            "kept  {registry}   as it is\n\nAdd this block to the registry, here and on all other nodes. If `{}` is in it already, \
             add only the lines from `- common_name:` on:\n",
            answers.organization
        )
    };
    format!("wrote {key}   the private key, readable by its owner only\nwrote {node}   the node file\n{next}")
}

/// A text as a YAML scalar: plain where that is safe, in double quotes elsewhere. JSON strings are YAML.
fn quoted(text: &str) -> String {
    let plain = text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_'))
        && !matches!(
            text.to_ascii_lowercase().as_str(),
            "null" | "true" | "false" | "yes" | "no" | "on" | "off"
        );
    if plain { text.to_owned() } else { serde_json::Value::from(text).to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_quoted_where_yaml_would_misread_them() {
        for plain in ["acme", "node-1", "vpn.example.org", "198.51.100.7"] {
            assert_eq!(quoted(plain), plain);
        }
        assert_eq!(quoted("acme corp"), "\"acme corp\"");
        assert_eq!(quoted("no"), "\"no\"");
        assert_eq!(quoted("2001:db8::1"), "\"2001:db8::1\"");
        assert_eq!(quoted("a\"b\n"), "\"a\\\"b\\n\"");
        assert_eq!(quoted(""), "\"\"");
    }
}
