//! `associations`.

use super::{link_name, seconds_since};
use crate::control::report::{AssociationsReport, ChildAssociation, FORMAT, IkeAssociation};
use crate::forwarding::LinkId;
use crate::node::Node;
use crate::node::link::Link;
use ikev2::{ChildReport, IkeSaReport};
use std::time::Instant;

impl Node {
    pub(in crate::node) fn associations(
        &self,
        only: Option<&str>,
        now: Instant,
    ) -> Result<AssociationsReport, String> {
        let wanted = only.map(|name| self.find_node(name)).transpose()?;
        let mut associations: Vec<IkeAssociation> = Vec::new();
        for report in self.ike.associations() {
            let link = report.connection.and_then(|connection| self.links.get(&LinkId(connection.0)));
            let shown = wanted.is_none_or(|node| link.is_some_and(|link| link.key.peer == node.name));
            if shown {
                associations.push(self.ike_association(&report, link, now));
            }
        }
        associations.sort_by(|a, b| (&a.node, &a.link).cmp(&(&b.node, &b.link)));
        Ok(AssociationsReport { format: FORMAT, associations })
    }

    fn ike_association(&self, report: &IkeSaReport, link: Option<&Link>, now: Instant) -> IkeAssociation {
        let children = report.children.iter().map(|child| self.child_association(child, link, now)).collect();
        IkeAssociation {
            node: link.map_or_else(|| "not yet known".to_owned(), |link| link.peer.clone()),
            link: link.map_or_else(String::new, link_name),
            state: report.state.to_owned(),
            initiator: report.initiator,
            local: (!report.path.local.ip().is_unspecified()).then_some(report.path.local),
            remote: report.path.remote,
            initiator_spi: format!("{:016x}", report.spis.initiator),
            responder_spi: format!("{:016x}", report.spis.responder),
            encryption: report.encryption.to_owned(),
            prf: report.prf.to_owned(),
            key_exchange: report.key_exchange.to_lowercase(),
            vendor: report.ours.then(|| "viamesh".to_owned()),
            age_seconds: report.established.map_or(0, |at| seconds_since(at, now)),
            rekey_in_seconds: report.rekey_at.map(|at| seconds_since(now, at)),
            children,
        }
    }

    fn child_association(&self, report: &ChildReport, link: Option<&Link>, now: Instant) -> ChildAssociation {
        let child = link.and_then(|link| link.children.get(&report.spi_in));
        let sending = link.is_some_and(|link| link.sending == Some(report.spi_in));
        let (inbound, outbound) = (child.map(|child| &child.inbound), child.map(|child| &child.outbound));
        let idle =
            inbound.map(|sa| sa.last_authenticated_millis()).filter(|millis| *millis > 0).map(|millis| {
                let elapsed = now.saturating_duration_since(self.epoch).as_secs_f64();
                (elapsed - std::time::Duration::from_millis(millis).as_secs_f64()).max(0.0)
            });
        let everything = || vec!["0.0.0.0/0".to_owned(), "::/0".to_owned()];
        ChildAssociation {
            state: if sending { "sending".to_owned() } else { report.state.to_owned() },
            inbound_spi: format!("{:08x}", report.spi_in),
            outbound_spi: format!("{:08x}", report.spi_out),
            algorithm: report.algorithm.name().to_owned(),
            extended_sequence: report.esn,
            local_selectors: everything(),
            remote_selectors: everything(),
            age_seconds: seconds_since(report.established, now),
            rekey_in_seconds: report.rekey_at.map(|at| seconds_since(now, at)),
            received_packets: inbound.map_or(0, |sa| sa.packets()),
            received_bytes: inbound.map_or(0, |sa| sa.bytes()),
            sent_packets: outbound.map_or(0, |sa| sa.packets()),
            sent_bytes: outbound.map_or(0, |sa| sa.bytes()),
            replayed_packets: inbound.map_or(0, |sa| sa.replayed()),
            integrity_failures: inbound.map_or(0, |sa| sa.integrity_failures()),
            idle_seconds: idle,
        }
    }
}
