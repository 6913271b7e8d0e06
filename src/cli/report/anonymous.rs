//! Other names and addresses for those in a text: the same ones for the same, so that the texts still tell a story.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::control::Reply;

/// Which name or address stands for which.
#[derive(Debug, Default)]
pub(super) struct Pseudonyms {
    words: BTreeMap<String, String>,
    v4: BTreeMap<Ipv4Addr, Ipv4Addr>,
    v6: BTreeMap<Ipv6Addr, Ipv6Addr>,
    router_ids: BTreeMap<String, String>,
}

impl Pseudonyms {
    /// Collects the names: from what the daemon answered, and from the files, which may name what it does not know.
    pub(super) fn of(answers: &[Reply], texts: &BTreeMap<String, String>, host: Option<String>) -> Self {
        let mut names = Names::default();
        for answer in answers {
            names.take(answer);
        }
        for file in ["node.yaml", "registry.yaml"] {
            names.take_yaml(texts.get(file).map_or("", String::as_str));
        }
        names.hosts.extend(host);
        let mut pseudonyms = Self::default();
        for (kind, words) in [
            ("node", names.nodes),
            ("organization", names.organizations),
            ("policy", names.policies),
            ("host", names.hosts),
        ] {
            for (number, word) in words.into_iter().filter(|word| !word.is_empty()).enumerate() {
                let stand_in = format!("{kind}-{}", number + 1);
                pseudonyms.words.entry(word).or_insert(stand_in);
            }
        }
        pseudonyms
    }

    /// The text with other names and addresses.
    pub(super) fn apply(&mut self, text: &str) -> String {
        let text = without_public_keys(text);
        let text = self.with_words(&text);
        let mut result = String::with_capacity(text.len());
        // A token is whatever an address, a fingerprint or a router-id can be made of.
        let part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | ':' | '+' | '=' | '_');
        let mut rest = text.as_str();
        while let Some(start) = rest.find(part) {
            let (before, token) = rest.split_at(start);
            result.push_str(before);
            let fingerprint = token.starts_with("SHA256:");
            let end = token.find(|c| !(part(c) || fingerprint && c == '/')).unwrap_or(token.len());
            let (token, after) = token.split_at(end);
            result.push_str(&self.token(token));
            rest = after;
        }
        result.push_str(rest);
        result
    }

    /// Names, where they stand as whole words; longer ones first.
    fn with_words(&self, text: &str) -> String {
        let mut words: Vec<(&String, &String)> = self.words.iter().collect();
        words.sort_by_key(|(word, _)| std::cmp::Reverse(word.len()));
        let inside = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
        let mut result = String::with_capacity(text.len());
        let mut rest = text;
        let mut before = ' ';
        while let Some(first) = rest.chars().next() {
            let found = words.iter().find(|(word, _)| {
                !inside(before)
                    && rest.strip_prefix(word.as_str()).is_some_and(|after| !after.starts_with(inside))
            });
            let taken = match found {
                Some((word, stand_in)) => {
                    result.push_str(stand_in);
                    word.len()
                }
                None => {
                    result.push(first);
                    first.len_utf8()
                }
            };
            before = rest.get(..taken).and_then(|taken| taken.chars().last()).unwrap_or(' ');
            rest = rest.get(taken..).unwrap_or_default();
        }
        result
    }

    fn token(&mut self, token: &str) -> String {
        // The end of a sentence is no part of an address.
        let bare = token.trim_end_matches(['.', ':']);
        let tail = token.get(bare.len()..).unwrap_or_default();
        // It could be read as an IPv6 address, too.
        if is_router_id(bare) {
            let number = self.router_ids.len() + 1;
            let stand_in =
                self.router_ids.entry(bare.to_owned()).or_insert_with(|| format!("router-{number}"));
            return format!("{stand_in}{tail}");
        }
        let whole = |token: &str| token.parse::<IpAddr>().ok();
        if let Some(address) = whole(token).or_else(|| whole(bare).filter(|_| !bare.is_empty())) {
            let tail = if whole(token).is_some() { "" } else { tail };
            return format!("{}{tail}", self.address(address));
        }
        // An IPv4 address and a port.
        if let Some((address, port)) = bare.split_once(':')
            && let Ok(address) = address.parse::<Ipv4Addr>()
        {
            return format!("{}:{port}{tail}", self.address(IpAddr::V4(address)));
        }
        if bare.starts_with("SHA256:") {
            return format!("SHA256:(removed){tail}");
        }
        token.to_owned()
    }

    /// 198.18.0.0/15 and 2001:db8::/32 are set aside for examples. What means the same everywhere stays.
    fn address(&mut self, address: IpAddr) -> IpAddr {
        match address {
            IpAddr::V4(v4) if v4.is_unspecified() || v4.is_loopback() || v4.is_broadcast() => address,
            IpAddr::V4(v4) => {
                let number = u32::try_from(self.v4.len()).unwrap_or(u32::MAX) % 0x1_ffff + 1;
                let new = Ipv4Addr::from(u32::from(Ipv4Addr::new(198, 18, 0, 0)) + number);
                IpAddr::V4(*self.v4.entry(v4).or_insert(new))
            }
            IpAddr::V6(v6) if v6.is_unspecified() || v6.is_loopback() || v6.is_multicast() => address,
            IpAddr::V6(v6) => {
                let number = self.v6.len() as u128 + 1;
                let prefix: u128 = if v6.is_unicast_link_local() { 0xfe80 << 112 } else { 0x2001_0db8 << 96 };
                IpAddr::V6(*self.v6.entry(v6).or_insert(Ipv6Addr::from(prefix + number)))
            }
        }
    }
}

/// Eight pairs of hexadecimal digits.
fn is_router_id(token: &str) -> bool {
    let pair = |pair: &str| pair.len() == 2 && pair.bytes().all(|digit| digit.is_ascii_hexdigit());
    token.split(':').count() == 8 && token.split(':').all(pair)
}

/// Public keys identify their owners.
fn without_public_keys(text: &str) -> String {
    let mut result = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("-----BEGIN PUBLIC KEY-----") {
        result.push_str(before);
        result.push_str("(public key removed)");
        rest = after.split_once("-----END PUBLIC KEY-----").map_or("", |(_, after)| after);
    }
    result + rest
}

/// The name of this host, if it has one of its own.
pub(super) fn host_name() -> Option<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    Some(name.trim().to_owned()).filter(|name| !name.is_empty() && name != "localhost")
}

/// Names by what they are of.
#[derive(Default)]
struct Names {
    nodes: BTreeSet<String>,
    organizations: BTreeSet<String>,
    policies: BTreeSet<String>,
    hosts: BTreeSet<String>,
}

impl Names {
    fn take(&mut self, reply: &Reply) {
        match reply {
            Reply::Registry(report) => {
                for organization in &report.organizations {
                    self.organizations.insert(organization.organization.clone());
                    for node in &organization.nodes {
                        self.nodes.insert(node.node.clone());
                        let named = node.endpoints.iter().filter_map(|endpoint| endpoint.address.clone());
                        self.hosts.extend(named.filter(|name| name.parse::<IpAddr>().is_err()));
                    }
                }
            }
            Reply::Status(report) => {
                self.policies.extend(report.policies.iter().map(|policy| policy.policy.clone()));
            }
            _ => {}
        }
    }

    /// Values of the fields that hold names, wherever they stand in a file.
    fn take_yaml(&mut self, text: &str) {
        let words: Vec<&str> = text
            .split(|c: char| c.is_whitespace() || matches!(c, '{' | '}' | ',' | '[' | ']' | '"' | '\''))
            .filter(|word| !word.is_empty())
            .collect();
        for pair in words.windows(2) {
            let [field, value] = pair else { continue };
            let place = match *field {
                "common_name:" | "exit:" => &mut self.nodes,
                "organization:" => &mut self.organizations,
                "name:" => &mut self.policies,
                "address:" if value.parse::<IpAddr>().is_err() => &mut self.hosts,
                _ => continue,
            };
            if *value != "nearest" && !value.ends_with(':') {
                place.insert((*value).to_owned());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pseudonyms() -> Pseudonyms {
        let node = "organization: acme\ncommon_name: alpha\npolicies: [{ name: inspected, exit: delta }]\n";
        let registry = "- { common_name: bravo, endpoints: [{ address: vpn.acme.example, port: 1 }] }\n";
        let texts = [("node.yaml", node), ("registry.yaml", registry)];
        Pseudonyms::of(&[], &texts.map(|(name, text)| (name.to_owned(), text.to_owned())).into(), None)
    }

    #[test]
    fn names_and_addresses_are_replaced_the_same_everywhere() {
        let mut pseudonyms = pseudonyms();
        let text =
            "alpha.acme up; bravo at vpn.acme.example: 203.0.113.9:13000, then 203.0.113.9. alphabet stays\n";
        assert_eq!(
            pseudonyms.apply(text),
            "node-1.organization-1 up; node-2 at host-1: 198.18.0.1:13000, then 198.18.0.1. alphabet stays\n"
        );
        assert_eq!(pseudonyms.apply("203.0.113.9 10.0.0.0/8"), "198.18.0.1 198.18.0.2/8");
    }

    #[test]
    fn ipv6_router_ids_and_keys_are_replaced() {
        let mut pseudonyms = pseudonyms();
        let text = "[2a01:4f8::7]:13000 fe80::9 ::1 02:00:5e:10:aa:00:00:01 SHA256:9f1c+/x";
        let text = pseudonyms.apply(text);
        assert_eq!(text, "[2001:db8::1]:13000 fe80::2 ::1 router-1 SHA256:(removed)");
        let key = "k: -----BEGIN PUBLIC KEY-----\nMCow\n-----END PUBLIC KEY-----\nx";
        assert_eq!(pseudonyms.apply(key), "k: (public key removed)\nx");
    }

    #[test]
    fn what_means_the_same_everywhere_stays() {
        let mut pseudonyms = pseudonyms();
        for text in ["127.0.0.1 0.0.0.0/0 ::/0 ff02::1:6", "12:30:45 up 3 days", "cost 8 1.2 GiB v0.1.0"] {
            assert_eq!(pseudonyms.apply(text), text);
        }
    }
}
