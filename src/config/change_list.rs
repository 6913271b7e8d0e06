//! What changes between two settings, in words.

use super::diff::{Changes, NodeChange};
use super::settings::{LocalEndpoint, Settings};
use std::fmt::Display;

impl Changes {
    /// A line for each thing that changes; empty if nothing does. `settings` are those after the change.
    #[must_use]
    pub fn lines(&self, settings: &Settings) -> Vec<String> {
        let mut lines = Vec::new();
        let endpoint = |endpoint: &LocalEndpoint| {
            format!("{} (udp {}, {})", endpoint.serial_number, endpoint.port, endpoint.family.name())
        };
        list(&mut lines, "endpoint removed", self.endpoints_removed.iter().map(endpoint));
        list(&mut lines, "endpoint added", self.endpoints_added.iter().map(endpoint));
        list(&mut lines, "node removed", self.nodes_removed.iter().map(|name| settings.display_name(name)));
        list(&mut lines, "node added", self.nodes_added.iter().map(|name| settings.display_name(name)));
        for change in &self.nodes_changed {
            lines.push(format!("node {}: {}", settings.display_name(&change.name), change.words()));
        }
        list(&mut lines, "no longer announced", &self.announce_removed);
        list(&mut lines, "announced from now on", &self.announce_added);
        list(&mut lines, "address removed", &self.addresses_removed);
        list(&mut lines, "address added", &self.addresses_added);
        match self.offer_internet {
            Some(true) => lines.push("internet: offered from now on".to_owned()),
            Some(false) => lines.push("internet: no longer offered".to_owned()),
            None => {}
        }
        let sections = [
            ("redistribution", self.redistribution),
            ("policies", self.policies),
            ("timers", self.timers),
            ("cost", self.cost),
            ("registry's place", self.registry),
        ];
        let changed = sections.into_iter().filter(|(_, changed)| *changed);
        lines.extend(changed.map(|(name, _)| format!("{name}: changed")));
        lines
    }
}

impl NodeChange {
    /// What changed of the node.
    fn words(&self) -> String {
        let endpoints = !self.endpoints_added.is_empty() || !self.endpoints_removed.is_empty();
        let facts = [
            ("key removed", !self.keys_removed.is_empty()),
            ("key added", !self.keys_added.is_empty()),
            ("endpoints", endpoints),
            ("identity", self.identity),
            ("segments or accepted networks", self.routing),
        ];
        let words: Vec<&str> = facts.into_iter().filter(|(_, true_)| *true_).map(|(word, _)| word).collect();
        words.join(", ")
    }
}

fn list<T: Display>(lines: &mut Vec<String>, what: &str, items: impl IntoIterator<Item = T>) {
    lines.extend(items.into_iter().map(|item| format!("{what}: {item}")));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::NodeName;

    #[test]
    fn each_difference_has_a_line() {
        let locator = "fd5d:ac:0:1::/64".parse().expect("a network");
        let old = Settings::new(NodeName::new("acme", "alpha"), locator);
        let mut new = old.clone();
        assert!(Changes::between(&old, &new).lines(&new).is_empty());
        new.announce.push("10.1.0.0/16".parse().expect("a network"));
        new.addresses.push("10.0.0.1".parse().expect("an address"));
        new.offer_internet = true;
        new.timers.hello *= 2;
        let lines = Changes::between(&old, &new).lines(&new);
        insta::assert_snapshot!(lines.join("\n"), @r"
        announced from now on: 10.1.0.0/16
        address added: 10.0.0.1
        internet: offered from now on
        timers: changed
        ");
    }
}
