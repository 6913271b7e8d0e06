//! What a node asks of its kernel: addresses, routes, rules, masquerading.

use super::publish::own_ipv4;
use super::{Node, PolicyRuntime};
use crate::config::settings::{IfUnreachable, KernelSettings, Settings};
use crate::kernel::{Claim, DUMMY_IPV4, KernelState, Mark, Masquerade, Selector, Tun};
use crate::policy::{Class, Membership};
use ipnet::IpNet;
use std::net::IpAddr;

/// The numbers of the host that a node claims, by its settings.
pub fn claim(kernel: &KernelSettings) -> Claim {
    Claim {
        overlay_table: kernel.table,
        policy_table: kernel.table + 1,
        uplink_table: kernel.underlay_table,
        protocol: kernel.rtproto,
        underlay_priority: kernel.underlay_priority,
        overlay_priority: kernel.overlay_priority,
        policy_priority: kernel.overlay_priority + 1,
        mark: Mark { value: kernel.fwmark, mask: kernel.fwmark },
        nft_table: nft_table(kernel),
    }
}

/// Nodes that share a host (each with a TUN of its own) have a table each.
fn nft_table(kernel: &KernelSettings) -> String {
    if kernel.tun == KernelSettings::default().tun {
        "viamesh".to_owned()
    } else {
        format!("viamesh-{}", kernel.tun)
    }
}

impl Node {
    pub(super) fn build_kernel_state(&self) -> KernelState {
        let settings = &self.settings;
        let mut tun = Tun::new(settings.kernel.tun.clone(), u32::from(settings.kernel.tun_mtu));
        tun.addresses.extend(settings.addresses.iter().copied());
        tun.addresses.extend(self.own_address().map(IpAddr::V6));
        if self.classes.iter().next().is_some() && own_ipv4(settings).is_none() {
            tun.addresses.insert(DUMMY_IPV4);
        }
        let mut state = KernelState::new(&claim(&settings.kernel), tun);
        for (class, _) in self.classes.iter() {
            state.add_class(class.0);
        }
        // What was lost lately still comes to us, to be refused: the host's default route would let it out.
        for prefix in self.routes.keys().chain(&self.held) {
            state.add_mesh_route(*prefix, self.source_for(prefix));
        }
        for network in &self.announcements.connected {
            state.add_throw(network.network);
        }
        // By a shorter mesh route they would come to the TUN, and from there to us again.
        for network in self.announcements.fed.keys() {
            state.add_throw(*network);
        }
        for address in underlay_addresses(settings) {
            state.add_throw(address);
        }
        for (policy, runtime) in settings.policies.iter().zip(&self.policies) {
            let networks = policy.from.iter().flat_map(|from| policy.to.iter().map(move |to| [*from, *to]));
            for [from, to] in networks {
                if policy.membership.is_everything() {
                    state.add_steering(from, to, holds(runtime));
                    continue;
                }
                for (class, membership) in self.classes_within(&policy.membership) {
                    let source = self.source_for(&to);
                    let selector = selector(membership);
                    state.add_class_steering(class.0, selector, [from, to], source, holds(runtime));
                }
            }
        }
        self.add_redistribution(&mut state);
        let behind = |v4: bool| self.networks_behind().any(|network| network.addr().is_ipv4() == v4);
        state.forward_ipv4 = settings.offer_internet || behind(true);
        state.forward_ipv6 = settings.offer_internet || behind(false);
        state.masquerade =
            settings.offer_internet.then(|| Masquerade { except: self.networks_behind().collect() });
        state
    }

    /// The classes whose packets all belong to this one.
    fn classes_within<'a>(&'a self, wide: &'a Membership) -> impl Iterator<Item = (Class, &'a Membership)> {
        self.classes.iter().filter(|(_, class)| wide.includes(class))
    }

    /// The source address of this host's own packets into the mesh.
    pub(super) fn source_for(&self, prefix: &IpNet) -> Option<IpAddr> {
        match prefix {
            IpNet::V4(_) => own_ipv4(&self.settings).map(IpAddr::V4),
            IpNet::V6(_) => self.own_address().map(IpAddr::V6),
        }
    }
}

/// By what the kernel knows packets of a class.
fn selector(membership: &Membership) -> Selector {
    Selector {
        mark: membership.fwmark.map(|value| Mark { value, mask: u32::MAX }),
        incoming: membership.ingress.clone(),
        ..Selector::default()
    }
}

/// Whether packets of the policy stay blocked if the daemon dies.
fn holds(policy: &PolicyRuntime) -> bool {
    policy.if_unreachable == IfUnreachable::Drop
}

/// Addresses of the registry's endpoints: whoever talks to them means the underlay.
fn underlay_addresses(settings: &Settings) -> impl Iterator<Item = IpNet> {
    let endpoints = settings.peers().flat_map(|peer| &peer.endpoints);
    endpoints.filter_map(|endpoint| endpoint.address.as_ref()?.parse::<IpAddr>().ok()).map(IpNet::from)
}
