//! The whole run as text: what two runs with one seed must agree on, and what a person reads after a failure.

use super::{NodeId, Simulation};
use std::time::Duration;

impl Simulation {
    /// Every datagram and every event since the beginning or the last [`Self::forget`], one a line, by time.
    pub fn trace(&self) -> Vec<String> {
        let datagrams = self.capture().iter().map(|datagram| {
            let fate = if datagram.lost { " lost" } else { "" };
            let text = format!(
                "{} > {} {} ({} octets, {:016x}){fate}",
                datagram.source, datagram.destination, datagram.kind, datagram.length, datagram.digest
            );
            (datagram.at, datagram.from, text)
        });
        let events = self.events().iter().map(|(at, node, event)| (*at, *node, format!("{event:?}")));
        self.lines(datagrams.chain(events))
    }

    /// What the nodes reported, one a line, for messages about a failure.
    pub fn log(&self) -> Vec<String> {
        self.lines(self.events().iter().map(|(at, node, event)| (*at, *node, format!("{event:?}"))))
    }

    fn lines(&self, entries: impl Iterator<Item = (Duration, NodeId, String)>) -> Vec<String> {
        let mut entries: Vec<_> = entries.collect();
        entries.sort_by_key(|(at, ..)| *at);
        let line = |(at, node, text): (Duration, NodeId, String)| {
            format!("{:>10.3} ms {}: {text}", at.as_secs_f64() * 1000.0, self.name(node))
        };
        entries.into_iter().map(line).collect()
    }
}
