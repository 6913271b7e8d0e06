//! The path MTU of links: searched by Babel with padded packets (RFC 8966 §3.3), which any peer answers.

use super::link_table::link_mtu;
use super::{Node, NodeEvent};
use crate::forwarding::LinkId;
use babel::InterfaceId;
use std::time::{Duration, Instant};

/// The least MTU of IPv6, in octets: a link never offers less.
pub(super) const LEAST_MTU: u16 = 1280;

/// How often each path is searched again: it may have grown.
const INTERVAL: Duration = Duration::from_secs(600);

/// How soon after the last search the kernel's word that a datagram is too big starts another.
const SPACING: Duration = Duration::from_secs(5);

impl Node {
    /// Search the longest packet that the neighbour of a link answers. A link whose datagrams are cut shows nothing.
    pub(super) fn search_path_mtu(&mut self, id: LinkId, now: Instant) {
        let Some(link) = self.links.get_mut(&id).filter(|link| !link.fragment_outer) else { return };
        link.probing = true;
        link.next_probe = Some(now + INTERVAL);
        self.babel.probe_path_mtu(InterfaceId(id.0), link_mtu(link.family), now);
    }

    /// Search again where the last search is long ago.
    pub(super) fn search_old_path_mtus(&mut self, now: Instant) {
        let due = self.links.values().filter(|link| link.next_probe.is_some_and(|at| at <= now));
        let due: Vec<LinkId> = due.map(|link| link.id).collect();
        due.into_iter().for_each(|id| self.search_path_mtu(id, now));
    }

    /// The kernel refused a datagram: it knows a smaller MTU, at least of its own interface.
    pub(super) fn handle_datagram_too_big(&mut self, id: LinkId, datagram: usize, now: Instant) {
        let Some(link) = self.links.get(&id) else { return };
        let searched = link.next_probe.and_then(|next| next.checked_sub(INTERVAL));
        let recent = searched.is_some_and(|at| now.saturating_duration_since(at) < SPACING);
        if link.mtu == LEAST_MTU && !link.probing {
            let what = format!("the path takes no datagrams of {datagram} octets");
            self.trouble(id, &what, now);
        }
        if !recent {
            self.search_path_mtu(id, now);
        }
    }

    /// A search has ended. `None` means that not even the least packet of IPv6 arrived.
    pub(super) fn take_path_mtu(&mut self, id: LinkId, found: Option<u16>) {
        let Some(link) = self.links.get_mut(&id) else { return };
        let mtu = found.unwrap_or(LEAST_MTU).max(LEAST_MTU);
        link.probing = false;
        if link.mtu == mtu && link.fragment_outer == found.is_none() {
            return;
        }
        link.mtu = mtu;
        link.fragment_outer = found.is_none();
        self.forwarding_changed = true;
        self.events.push_back(NodeEvent::PathMtu { peer: link.peer.clone(), mtu });
        if found.is_none() {
            let what =
                "its path does not carry 1,280 octets: datagrams are cut in two, which costs throughput";
            let text = format!("{}: {what}", link.peer);
            self.events.push_back(NodeEvent::Trouble { text });
        }
    }
}
