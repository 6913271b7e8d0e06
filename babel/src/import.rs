//! Which announcements are believed at all. This stops mistakes, not a hostile transit router.

use std::{collections::BTreeSet, net::IpAddr};

use ipnet::IpNet;

use crate::{Prefix, RouterId};

/// The import policy. The default refuses only default routes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportPolicy {
    /// Believe 0.0.0.0/0 and ::/0.
    pub accept_default_routes: bool,
    /// Our own and connected networks: neither they nor parts of them are taken from others.
    pub local_networks: Vec<IpNet>,
    /// Underlay addresses of peers: no prefix that contains one is taken, lest tunnels run through themselves.
    pub endpoints: BTreeSet<IpAddr>,
    /// Prefixes that belong to one router: they and their parts are taken from this originator only.
    pub locators: Vec<(IpNet, RouterId)>,
    /// Destinations that are refused whatever else holds, with their parts.
    pub denied: Vec<IpNet>,
}

/// Why an announcement was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ImportRefusal {
    /// A default route.
    DefaultRoute,
    /// Inside our own or a connected network.
    OwnNetwork,
    /// It contains the underlay address of a peer.
    ContainsEndpoint,
    /// Inside a locator of another router.
    ForeignLocator,
    /// Denied by configuration.
    Denied,
    /// Link-local, multicast, loopback or unspecified: not a destination for routing.
    NotRoutable,
}

impl ImportPolicy {
    /// Judges one announcement.
    ///
    /// # Errors
    /// The reason why it must not be believed.
    pub fn judge(&self, prefix: &Prefix, router_id: RouterId) -> Result<(), ImportRefusal> {
        let destination = &prefix.destination;
        if destination.prefix_len() == 0 && !self.accept_default_routes {
            return Err(ImportRefusal::DefaultRoute);
        }
        if destination.prefix_len() > 0 && !is_routable(destination.addr()) {
            return Err(ImportRefusal::NotRoutable);
        }
        if self.local_networks.iter().any(|own| own.contains(destination)) {
            return Err(ImportRefusal::OwnNetwork);
        }
        // A source-specific route carries only packets of its sources, a tunnel's outer packets are not among them.
        if prefix.source.is_none() && destination.prefix_len() > 0 && self.holds_endpoint(destination) {
            return Err(ImportRefusal::ContainsEndpoint);
        }
        if self.locators.iter().any(|(locator, owner)| locator.contains(destination) && *owner != router_id) {
            return Err(ImportRefusal::ForeignLocator);
        }
        if self.denied.iter().any(|denied| denied.contains(destination)) {
            return Err(ImportRefusal::Denied);
        }
        Ok(())
    }

    fn holds_endpoint(&self, destination: &IpNet) -> bool {
        self.endpoints.range(destination.network()..=destination.broadcast()).next().is_some()
    }
}

fn is_routable(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            !(address.is_link_local()
                || address.is_multicast()
                || address.is_loopback()
                || address.is_unspecified())
        }
        IpAddr::V6(address) => {
            !(address.is_unicast_link_local()
                || address.is_multicast()
                || address.is_loopback()
                || address.is_unspecified())
        }
    }
}
