//! Which UDP sockets a node needs. Endpoints that name the same family, port, address and mark share one.

use crate::config::settings::{Bind, Family, LocalEndpoint, Settings};
use crate::forwarding::SocketIndex;
use std::net::SocketAddr;

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

/// The sockets of a node, in the order in which the runtime opens them: the position is the [`SocketIndex`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SocketPlan(Vec<SocketSpec>);

impl SocketPlan {
    /// The sockets that `settings` asks for.
    pub fn new(settings: &Settings) -> Self {
        let mut plan = Self::default();
        for endpoint in &settings.endpoints {
            let spec = plan.spec_of(endpoint, settings);
            if !plan.0.contains(&spec) {
                plan.0.push(spec);
            }
        }
        plan
    }

    fn spec_of(&self, endpoint: &LocalEndpoint, settings: &Settings) -> SocketSpec {
        SocketSpec {
            family: endpoint.family,
            bind: endpoint.bind,
            port: endpoint.port,
            fwmark: endpoint.fwmark.unwrap_or(settings.kernel.fwmark),
        }
    }

    /// The socket of an endpoint.
    pub fn index_of(&self, endpoint: &LocalEndpoint, settings: &Settings) -> Option<SocketIndex> {
        let spec = self.spec_of(endpoint, settings);
        self.position(|candidate| *candidate == spec)
    }

    /// The socket that sends from `local`: an unspecified address fits every binding.
    pub fn sender(&self, local: SocketAddr) -> Option<SocketIndex> {
        let family = Family::of(local.ip());
        let fits = |spec: &SocketSpec| match spec.bind {
            Bind::Any => true,
            Bind::Address(address) => local.ip().is_unspecified() || address == local.ip(),
            Bind::Network(network) => local.ip().is_unspecified() || network.contains(&local.ip()),
        };
        self.position(|spec| spec.family == family && spec.port == local.port() && fits(spec))
    }

    /// All sockets in order.
    pub fn iter(&self) -> impl Iterator<Item = &SocketSpec> {
        self.0.iter()
    }

    fn position(&self, wanted: impl Fn(&SocketSpec) -> bool) -> Option<SocketIndex> {
        self.0.iter().position(wanted).and_then(|index| u16::try_from(index).ok()).map(SocketIndex)
    }
}
