//! What the two are joined by: a link, or two links with a NAT between them.

use super::pair::{Dialler, PATIENCE};
use lab::{Host, Interface, Link, LinkSettings, World};
use std::net::IpAddr;
use std::process::Command;
use std::time::Duration;

/// The paths between both.
pub(crate) struct Underlay {
    /// Interface of our host.
    pub(crate) ours: Interface,
    /// Interface of the peer's host.
    pub(crate) swan: Interface,
    nat: Option<Nat>,
    links: Vec<Link>,
}

/// A host that translates addresses.
struct Nat {
    host: Host,
    /// Its interface to the outside.
    outside: Interface,
}

impl Underlay {
    /// Joins them; a NAT hides `hidden`.
    pub(crate) fn join(world: &World, ours: &Host, swan: &Host, hidden: Option<Dialler>) -> Self {
        let settings = LinkSettings::with_rtt_ms(4);
        let Some(hidden) = hidden else {
            let link = world.link(ours, swan, settings).unwrap();
            return Self { ours: link.a().clone(), swan: link.b().clone(), nat: None, links: vec![link] };
        };
        let middle = world.host("nat").unwrap();
        let left = world.link(ours, &middle, settings).unwrap();
        let right = world.link(&middle, swan, LinkSettings::PERFECT).unwrap();
        let (host, gateway, outside) = match hidden {
            Dialler::Us => (ours, left.b(), right.a()),
            Dialler::Peer => (swan, right.a(), left.b()),
        };
        host.add_route("0.0.0.0/0".parse().unwrap(), IpAddr::V4(gateway.v4.unwrap())).unwrap();
        let nat = Nat { host: middle.clone(), outside: outside.clone() };
        nat.translate_to(20_000);
        Self { ours: left.a().clone(), swan: right.b().clone(), nat: Some(nat), links: vec![left, right] }
    }

    /// Messages take so long there and back, from now on.
    pub(crate) fn slow_down(&self, rtt: Duration) {
        for link in &self.links {
            link.set(LinkSettings::with_rtt(rtt)).unwrap();
        }
    }

    /// The NAT forgets everything, and uses another port from now on.
    pub(crate) fn rebind(&self) {
        let nat = self.nat.as_ref().unwrap();
        nat.translate_to(30_000);
        // The kernel drops the translations of an interface that goes down.
        nat.host.set_up(&nat.outside.name, false).unwrap();
        nat.host.set_up(&nat.outside.name, true).unwrap();
    }
}

impl Nat {
    /// UDP leaves from ports that begin with this one.
    fn translate_to(&self, port: u16) {
        let rules = format!(
            "add table ip nat; delete table ip nat; add table ip nat; \
             add chain ip nat out {{ type nat hook postrouting priority srcnat; }}; \
             add rule ip nat out oifname \"{}\" meta l4proto udp masquerade to :{port}-{}",
            self.outside.name,
            port + 99
        );
        let mut nft = Command::new("nft");
        nft.arg(rules);
        self.host.run(nft, PATIENCE).unwrap().successful().unwrap();
    }
}
