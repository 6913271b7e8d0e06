//! Notices that others changed the host's network.

use std::io;
use std::time::Duration;

use tokio::time::Instant;

use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use rtnetlink::MulticastGroup;
use rtnetlink::packet_core::NetlinkPayload;
use rtnetlink::packet_route::RouteNetlinkMessage;
use rtnetlink::packet_route::address::AddressMessage;
use rtnetlink::packet_route::link::{LinkAttribute, LinkMessage};
use rtnetlink::packet_route::route::RouteMessage;
use rtnetlink::packet_route::rule::{RuleAttribute, RuleMessage};

use super::device;
use super::netlink::Netlink;
use super::routes::{self, LOCAL_TABLE};
use super::state::{Claim, is_class_tun};

/// Changes that follow each other within this time are one.
const QUIET: Duration = Duration::from_millis(100);
/// A change is told after this time even if more of them come.
const PATIENCE: Duration = Duration::from_secs(1);
/// Long enough to be no wake-up that anybody notices.
const FOREVER: Duration = Duration::from_secs(24 * 3600);

const GROUPS: [MulticastGroup; 7] = [
    MulticastGroup::Link,
    MulticastGroup::Ipv4Ifaddr,
    MulticastGroup::Ipv6Ifaddr,
    MulticastGroup::Ipv4Route,
    MulticastGroup::Ipv6Route,
    MulticastGroup::Ipv4Rule,
    MulticastGroup::Ipv6Rule,
];

/// What changed in the host's network; several changes at once are folded into one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Change {
    /// Addresses of the host came or went: ask [`super::Kernel::local_addresses`] and
    /// [`super::Kernel::connected_networks`] again.
    pub addresses: bool,
    /// An interface came, went, or changed its state.
    pub links: bool,
    /// Routes of others changed: the way to a peer may be another one.
    pub routes: bool,
    /// Something of ours, or what ours depends on (rules, the TUN), may have been changed by others:
    /// [`super::Kernel::resync`] and apply again. Removals of our own are told too, since they look the same.
    pub ours: bool,
}

impl Change {
    const EVERYTHING: Self = Self { addresses: true, links: true, routes: true, ours: true };

    fn or(self, other: Self) -> Self {
        Self {
            addresses: self.addresses || other.addresses,
            links: self.links || other.links,
            routes: self.routes || other.routes,
            ours: self.ours || other.ours,
        }
    }
}

/// The stream of changes.
pub struct Changes {
    messages: BoxStream<'static, NetlinkPayload<RouteNetlinkMessage>>,
    driver: tokio::task::JoinHandle<()>,
    claim: Claim,
    tun: String,
    tun_index: Option<u32>,
    /// What was noticed and not yet told, and when it must be told at the latest.
    pending: Option<(Change, Instant)>,
}

impl Drop for Changes {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl std::fmt::Debug for Changes {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Changes").field("tun", &self.tun).finish_non_exhaustive()
    }
}

impl Changes {
    /// Begins to listen. Needs a running tokio runtime; call it after the TUN named `tun` was opened.
    ///
    /// # Errors
    /// When no netlink socket can be opened.
    pub async fn open(claim: Claim, tun: &str) -> io::Result<Self> {
        let (connection, _, messages) = rtnetlink::new_multicast_connection(&GROUPS)?;
        let driver = tokio::spawn(connection);
        let tun_index = device::find(&Netlink::open()?, tun).await?.map(|device| device.index);
        let messages = messages.map(|(message, _)| message.payload).boxed();
        Ok(Self { messages, driver, claim, tun: tun.to_owned(), tun_index, pending: None })
    }

    /// Waits for the next change. May be cancelled (by `select!`): nothing is lost.
    pub async fn next(&mut self) -> Change {
        loop {
            let patience = match self.pending {
                Some((_, deadline)) => deadline.min(Instant::now() + QUIET),
                None => Instant::now() + FOREVER,
            };
            match tokio::time::timeout_at(patience, self.relevant()).await {
                Ok(change) => {
                    let (before, deadline) = self.pending.unwrap_or((change, Instant::now() + PATIENCE));
                    self.pending = Some((before.or(change), deadline));
                }
                Err(_) => {
                    if let Some((change, _)) = self.pending.take() {
                        return change;
                    }
                }
            }
        }
    }

    async fn relevant(&mut self) -> Change {
        loop {
            let Some(message) = self.messages.next().await else {
                // The connection is gone: nothing more will ever be told.
                return std::future::pending().await;
            };
            let change = self.judge(&message);
            if change != Change::default() {
                return change;
            }
        }
    }

    fn judge(&mut self, message: &NetlinkPayload<RouteNetlinkMessage>) -> Change {
        match message {
            NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewLink(link)) => self.link(link, true),
            NetlinkPayload::InnerMessage(RouteNetlinkMessage::DelLink(link)) => self.link(link, false),
            NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewAddress(address)) => {
                self.address(address, true)
            }
            NetlinkPayload::InnerMessage(RouteNetlinkMessage::DelAddress(address)) => {
                self.address(address, false)
            }
            NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewRoute(route)) => self.route(route, true),
            NetlinkPayload::InnerMessage(RouteNetlinkMessage::DelRoute(route)) => self.route(route, false),
            NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewRule(rule)) => self.rule(rule, true),
            NetlinkPayload::InnerMessage(RouteNetlinkMessage::DelRule(rule)) => self.rule(rule, false),
            NetlinkPayload::Overrun(_) => Change::EVERYTHING,
            _ => Change::default(),
        }
    }

    fn link(&mut self, link: &LinkMessage, exists: bool) -> Change {
        let named = link.attributes.iter().any(|attribute| match attribute {
            LinkAttribute::IfName(name) => *name == self.tun,
            _ => false,
        });
        if named || self.tun_index == Some(link.header.index) {
            self.tun_index = (named && exists).then_some(link.header.index);
            return Change { ours: true, ..Change::default() };
        }
        if link.attributes.iter().any(|attribute| match attribute {
            LinkAttribute::IfName(name) => is_class_tun(&self.tun, name),
            _ => false,
        }) {
            return Change { ours: !exists, ..Change::default() };
        }
        Change { links: true, ..Change::default() }
    }

    fn address(&self, address: &AddressMessage, exists: bool) -> Change {
        if self.tun_index == Some(address.header.index) {
            return Change { ours: !exists, ..Change::default() };
        }
        Change { addresses: true, ..Change::default() }
    }

    fn route(&self, message: &RouteMessage, exists: bool) -> Change {
        let Some(route) = routes::parse(message) else { return Change::default() };
        if route.protocol == self.claim.protocol {
            return Change { ours: !exists, ..Change::default() };
        }
        let own_table = self.claim.owns_table(route.key.table);
        Change { ours: own_table, routes: !own_table && route.key.table != LOCAL_TABLE, ..Change::default() }
    }

    fn rule(&self, message: &RuleMessage, exists: bool) -> Change {
        let ours = message.attributes.iter().any(|attribute| match attribute {
            RuleAttribute::Protocol(protocol) => u8::from(*protocol) == self.claim.protocol,
            _ => false,
        });
        Change { ours: !ours || !exists, ..Change::default() }
    }
}
