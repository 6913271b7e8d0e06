//! Which UDP sockets a node needs. Endpoints that name the same family, port, address and mark share one.

use crate::config::settings::{Bind, Family, LocalEndpoint, Settings};
use crate::forwarding::SocketIndex;
use std::net::SocketAddr;

/// Sockets that a worker can watch.
const MOST_SOCKETS: usize = 64;

/// One socket to open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SocketSpec {
    /// Its address family.
    pub family: Family,
    /// What it is bound to.
    pub bind: Bind,
    /// Its UDP port.
    pub port: u16,
    /// The `SO_MARK` of everything sent from it.
    pub fwmark: u32,
}

impl SocketSpec {
    fn of(endpoint: &LocalEndpoint, settings: &Settings) -> Self {
        Self {
            family: endpoint.family,
            bind: endpoint.bind,
            port: endpoint.port,
            fwmark: endpoint.fwmark.unwrap_or(settings.kernel.fwmark),
        }
    }

    /// Whether the kernel lets only one of both be open.
    fn excludes(&self, other: &Self) -> bool {
        let overlap = match (self.bind, other.bind) {
            (Bind::Address(one), Bind::Address(two)) => one == two,
            (Bind::Network(network), Bind::Address(address))
            | (Bind::Address(address), Bind::Network(network)) => network.contains(&address),
            _ => true,
        };
        self.family == other.family && self.port == other.port && overlap
    }
}

/// A place for a socket.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Slot {
    /// An endpoint uses it.
    Used(SocketSpec),
    /// No endpoint uses it any more; it stays open until the last farewells are out.
    Leaving(SocketSpec),
    /// Nothing is open.
    Free,
}

impl Slot {
    fn open(&self) -> Option<&SocketSpec> {
        match self {
            Self::Used(spec) | Self::Leaving(spec) => Some(spec),
            Self::Free => None,
        }
    }

    fn used(&self) -> Option<&SocketSpec> {
        match self {
            Self::Used(spec) => Some(spec),
            Self::Leaving(_) | Self::Free => None,
        }
    }
}

/// The sockets of a node: the position of each is its [`SocketIndex`], for as long as it is open.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SocketPlan(Vec<Slot>);

impl SocketPlan {
    /// The sockets that `settings` asks for.
    pub fn new(settings: &Settings) -> Self {
        let mut plan = Self::default();
        for endpoint in &settings.endpoints {
            let spec = SocketSpec::of(endpoint, settings);
            if !plan.0.iter().any(|slot| slot.used() == Some(&spec)) {
                plan.0.push(Slot::Used(spec));
            }
        }
        plan
    }

    /// The sockets for other settings. Those that are needed before and after keep their places.
    ///
    /// # Errors
    /// In words, if a new socket cannot be open beside one that goes.
    pub(super) fn updated(&self, settings: &Settings) -> Result<SocketChange, String> {
        let wanted = Self::new(settings);
        let wanted: Vec<&SocketSpec> = wanted.iter().map(|(_, spec)| spec).collect();
        let mut plan = self.clone();
        let (mut opened, mut closed) = (Vec::new(), Vec::new());
        for (index, slot) in (0..).map(SocketIndex).zip(&mut plan.0) {
            match slot {
                Slot::Used(spec) if !wanted.contains(&&*spec) => {
                    *slot = Slot::Leaving(spec.clone());
                    closed.push(index);
                }
                Slot::Leaving(spec) if wanted.contains(&&*spec) => *slot = Slot::Used(spec.clone()),
                _ => {}
            }
        }
        for spec in wanted {
            if plan.0.iter().any(|slot| slot.used() == Some(spec)) {
                continue;
            }
            if plan.0.iter().filter_map(Slot::open).any(|open| open.excludes(spec)) {
                return Err(format!("the socket on udp port {} cannot be replaced while running", spec.port));
            }
            let index = plan.place(spec.clone()).ok_or("a node has at most 64 sockets")?;
            opened.push((index, spec.clone()));
        }
        Ok(SocketChange { plan, opened, closed })
    }

    fn place(&mut self, spec: SocketSpec) -> Option<SocketIndex> {
        let free = self.0.iter().position(|slot| *slot == Slot::Free);
        let index = free.unwrap_or(self.0.len());
        if index == self.0.len() {
            if index >= MOST_SOCKETS {
                return None;
            }
            self.0.push(Slot::Free);
        }
        *self.0.get_mut(index)? = Slot::Used(spec);
        u16::try_from(index).ok().map(SocketIndex)
    }

    /// The driver has closed a socket. `false` if an endpoint uses it again: then it must stay open.
    pub(super) fn release(&mut self, index: SocketIndex) -> bool {
        match self.0.get_mut(usize::from(index.0)) {
            Some(slot @ (Slot::Leaving(_) | Slot::Free)) => {
                *slot = Slot::Free;
                true
            }
            Some(Slot::Used(_)) | None => false,
        }
    }

    /// The socket of an endpoint.
    pub fn index_of(&self, endpoint: &LocalEndpoint, settings: &Settings) -> Option<SocketIndex> {
        let spec = SocketSpec::of(endpoint, settings);
        self.position(|slot| slot.used() == Some(&spec))
    }

    /// The socket that sends from `local`: an unspecified address fits every binding.
    pub fn sender(&self, local: SocketAddr) -> Option<SocketIndex> {
        let family = Family::of(local.ip());
        let fits = |spec: &SocketSpec| match spec.bind {
            Bind::Any => true,
            Bind::Address(address) => local.ip().is_unspecified() || address == local.ip(),
            Bind::Network(network) => local.ip().is_unspecified() || network.contains(&local.ip()),
        };
        let fits = |spec: &SocketSpec| spec.family == family && spec.port == local.port() && fits(spec);
        let used = self.position(|slot| slot.used().is_some_and(fits));
        used.or_else(|| self.position(|slot| slot.open().is_some_and(fits)))
    }

    /// A socket that is open.
    pub fn get(&self, index: SocketIndex) -> Option<&SocketSpec> {
        self.0.get(usize::from(index.0)).and_then(Slot::open)
    }

    /// The sockets that endpoints use, in order. Before the first reload their indices count from 0.
    pub fn iter(&self) -> impl Iterator<Item = (SocketIndex, &SocketSpec)> {
        (0..).map(SocketIndex).zip(&self.0).filter_map(|(index, slot)| Some((index, slot.used()?)))
    }

    fn position(&self, wanted: impl Fn(&Slot) -> bool) -> Option<SocketIndex> {
        self.0.iter().position(wanted).and_then(|index| u16::try_from(index).ok()).map(SocketIndex)
    }
}

/// How the sockets of a node change.
#[derive(Debug)]
pub(super) struct SocketChange {
    /// The sockets from now on.
    pub(super) plan: SocketPlan,
    /// To be opened first.
    pub(super) opened: Vec<(SocketIndex, SocketSpec)>,
    /// To be closed a moment later.
    pub(super) closed: Vec<SocketIndex>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::NodeName;

    fn settings(ports: &[u16]) -> Settings {
        let locator = "fd5d:ac:0:1::/64".parse().expect("a network");
        let mut settings = Settings::new(NodeName::new("acme", "alpha"), locator);
        settings.endpoints = ports
            .iter()
            .map(|port| LocalEndpoint {
                serial_number: port.to_string(),
                family: Family::Ip4,
                bind: Bind::Any,
                port: *port,
                fwmark: None,
            })
            .collect();
        settings
    }

    #[test]
    fn what_stays_keeps_its_place_and_what_goes_leaves_a_free_one() {
        let plan = SocketPlan::new(&settings(&[1, 2]));
        let change = plan.updated(&settings(&[2, 3])).expect("possible");
        assert_eq!(change.closed, [SocketIndex(0)]);
        assert_eq!(
            change.opened.iter().map(|(index, spec)| (index.0, spec.port)).collect::<Vec<_>>(),
            [(2, 3)]
        );
        let mut plan = change.plan;
        let local = |port| SocketAddr::from(([0, 0, 0, 0], port));
        assert_eq!(plan.sender(local(1)), Some(SocketIndex(0)), "farewells still leave there");
        assert!(plan.release(SocketIndex(0)));
        assert_eq!(plan.sender(local(1)), None);
        let change = plan.updated(&settings(&[2, 3, 4])).expect("possible");
        assert_eq!(change.opened[0].0, SocketIndex(0));
    }

    #[test]
    fn a_socket_that_comes_back_is_not_closed() {
        let plan = SocketPlan::new(&settings(&[1, 2]));
        let gone = plan.updated(&settings(&[2])).expect("possible").plan;
        let mut back = gone.updated(&settings(&[1, 2])).expect("possible");
        assert!(back.opened.is_empty() && back.closed.is_empty());
        assert!(!back.plan.release(SocketIndex(0)));
    }

    #[test]
    fn one_port_cannot_be_bound_in_two_ways() {
        let plan = SocketPlan::new(&settings(&[1]));
        let mut other = settings(&[1]);
        other.endpoints[0].fwmark = Some(7);
        assert!(plan.updated(&other).is_err());
    }
}
