//! Node events as log lines: the one table of messages and their fields.
//!
//! The level is the event's own ([`NodeEvent::level`]). Fields have the same names everywhere: `peer`,
//! `remote`, `policy`, `reason`.

use crate::node::{Level, NodeEvent};

/// Logs at a level that is known only when the event is.
macro_rules! line {
    ($component:literal, $level:expr, $($field:tt)*) => {
        match $level {
            Level::Debug => tracing::debug!(target: $component, $($field)*),
            Level::Info => tracing::info!(target: $component, $($field)*),
            Level::Warn => tracing::warn!(target: $component, $($field)*),
        }
    };
}

/// Writes the line of an event.
pub fn log_event(event: &NodeEvent) {
    let level = event.level();
    match event {
        NodeEvent::LinkUp { peer, remote, key_exchange, .. } => {
            line!("viamesh::ike", level, %peer, %remote, key_exchange = key_exchange.to_lowercase(), "link up");
        }
        NodeEvent::LinkDown { peer, reason, .. } => line!("viamesh::ike", level, %peer, reason, "link down"),
        NodeEvent::Rekeyed { peer, kind } => line!("viamesh::ike", level, %peer, kind, "rekeyed"),
        NodeEvent::DialFailed { peer, what, tries } => {
            line!("viamesh::ike", level, %peer, reason = %what, tries, "no answer")
        }
        NodeEvent::Rejected { remote, reason } => {
            line!("viamesh::ike", level, %remote, %reason, "message refused")
        }
        NodeEvent::PeerMoved { peer, remote } => line!("viamesh::ike", level, %peer, %remote, "peer moved"),
        NodeEvent::Introduced { peer, by, remote } => {
            line!("viamesh::node", level, %peer, %remote, %by, "introduced");
        }
        NodeEvent::Neighbour { peer, up: true } => line!("viamesh::babel", level, %peer, "neighbour up"),
        NodeEvent::Neighbour { peer, up: false } => line!("viamesh::babel", level, %peer, "neighbour down"),
        NodeEvent::PathMtu { peer, mtu } => line!("viamesh::babel", level, %peer, mtu, "path MTU"),
        NodeEvent::RouteChanged { prefix, via: Some(via), metric } => {
            line!("viamesh::babel", level, %prefix, peer = %via, metric, "route changed");
        }
        NodeEvent::RouteChanged { prefix, via: None, .. } => {
            line!("viamesh::babel", level, %prefix, "route lost")
        }
        NodeEvent::Policy { name, problem: None } => {
            line!("viamesh::policy", level, policy = %name, "policy up")
        }
        NodeEvent::PolicyPath { name, paths } => {
            let paths = paths.join(", ");
            line!("viamesh::policy", level, policy = %name, %paths, "policy takes another path")
        }
        NodeEvent::Policy { name, problem: Some(reason) } => {
            line!("viamesh::policy", level, policy = %name, %reason, "policy down")
        }
        NodeEvent::Trouble { text } => line!("viamesh::node", level, "{text}"),
        // Neither the keys nor a number that only the state file needs.
        NodeEvent::KeyLog { .. } | NodeEvent::Seqno(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forwarding::LinkId;
    use crate::telemetry::logging::LogOptions;
    use crate::telemetry::logging::tests::logged;

    fn line(event: &NodeEvent) -> String {
        let options = LogOptions { filter: Some("debug".to_owned()), ..LogOptions::default() };
        logged(&options, |_| log_event(event))
    }

    #[test]
    fn a_line_has_its_facts_in_fields() {
        let up = NodeEvent::LinkUp {
            link: LinkId(1),
            peer: "bravo".to_owned(),
            remote: "198.51.100.2:13000".to_owned(),
            key_exchange: "x25519",
        };
        assert_eq!(line(&up), " INFO link up peer=bravo remote=198.51.100.2:13000 key_exchange=\"x25519\"\n");
        let failed =
            NodeEvent::DialFailed { peer: "echo".to_owned(), what: "IKE_SA_INIT".to_owned(), tries: 7 };
        assert_eq!(line(&failed), "DEBUG no answer peer=echo reason=IKE_SA_INIT tries=7\n");
    }

    #[test]
    fn keys_are_never_logged() {
        let event = NodeEvent::KeyLog { table: ikev2::KeyLogTable::Ike, line: "secret".to_owned() };
        assert_eq!(line(&event), "");
    }
}
