//! Takes secrets out of texts: keys wherever they stand, and values of fields that sound like one.

/// What stands in their place.
const REMOVED: &str = "(removed)";

/// Fields whose values are taken out, in whatever file.
const FIELDS: [&str; 7] = ["password", "passwd", "secret", "token", "psk", "api_key", "authorization"];

/// The text without secrets.
pub(super) fn without(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut in_key = false;
    for line in text.split_inclusive('\n') {
        if in_key {
            in_key = !line.contains("-----END");
        } else if let Some(start) = line.find("-----BEGIN").filter(|_| line.contains("PRIVATE KEY-----")) {
            kept.push_str(line.get(..start).unwrap_or_default());
            kept.push_str(REMOVED);
            kept.push('\n');
            in_key = !line.get(start + 10..).unwrap_or_default().contains("-----END");
        } else {
            kept.push_str(&without_credentials(&without_fields(line)));
        }
    }
    kept
}

/// `password: x` and `"token": "x"`, whatever comes after them on the line.
fn without_fields(line: &str) -> String {
    let lower = line.to_ascii_lowercase();
    for field in FIELDS {
        let Some(at) = lower.find(field) else { continue };
        let after = at + field.len();
        let Some(rest) = line.get(after..) else { continue };
        let colon = rest.trim_start_matches(['"', '\'', ' ']);
        if colon.starts_with([':', '=']) {
            let kept = after + (rest.len() - colon.len()) + 1;
            let end = if line.ends_with('\n') { "\n" } else { "" };
            return format!("{} {REMOVED}{end}", line.get(..kept).unwrap_or_default());
        }
    }
    line.to_owned()
}

/// `https://user:password@host`.
fn without_credentials(line: &str) -> String {
    let mut kept = String::new();
    let mut rest = line;
    while let Some(scheme) = rest.find("://") {
        let (before, after) = rest.split_at(scheme + 3);
        kept.push_str(before);
        let authority = after.find(['/', ' ', '"', '\'', '\n', '?']).unwrap_or(after.len());
        let (authority, tail) = after.split_at(authority);
        match authority.rsplit_once('@') {
            Some((_, host)) => {
                kept.push_str(REMOVED);
                kept.push('@');
                kept.push_str(host);
            }
            None => kept.push_str(authority),
        }
        rest = tail;
    }
    kept.push_str(rest);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_credentials_go_and_the_rest_stays() {
        let text =
            "a: 1\nkey: |\n  -----BEGIN PRIVATE KEY-----\n  MC4CAQAwBQ\n  -----END PRIVATE KEY-----\nb: 2\n";
        assert_eq!(without(text), "a: 1\nkey: |\n  (removed)\nb: 2\n");
        let one_line =
            "x \"-----BEGIN OPENSSH PRIVATE KEY-----\\nMC4C\\n-----END OPENSSH PRIVATE KEY-----\"\nc: 3\n";
        assert_eq!(without(one_line), "x \"(removed)\nc: 3\n");
        assert_eq!(without("etcd: { password: hunter2, user: x }\n"), "etcd: { password: (removed)\n");
        assert_eq!(without("\"Token\" : \"abc\"\n"), "\"Token\" : (removed)\n");
        let link = "registry: https://me:pw@example.org/r.yaml http://plain/ x";
        assert_eq!(without(link), "registry: https://(removed)@example.org/r.yaml http://plain/ x");
        let public = "-----BEGIN PUBLIC KEY-----\nMCow\n-----END PUBLIC KEY-----\n";
        assert_eq!(without(public), public);
    }

    #[test]
    fn a_key_that_never_ends_takes_everything() {
        assert_eq!(without("-----BEGIN PRIVATE KEY-----\nMC4C\nmore"), "(removed)\n");
    }
}
