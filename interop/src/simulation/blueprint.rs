//! A node as a test describes it.

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use std::net::{Ipv4Addr, Ipv6Addr};
use viamesh::config::settings::{Candidate, Exit, Family, IfUnreachable, NodeName, Policy, Settings, Stop};
use viamesh::policy::Membership;

/// The organization of all simulated nodes.
pub const ORGANIZATION: &str = "simulation";
/// The UDP port of all simulated nodes.
pub const PORT: u16 = 13000;

type Adjust = Box<dyn Fn(&mut Settings)>;

/// What distinguishes a node from the others.
pub struct Blueprint {
    /// Its common name.
    pub name: String,
    /// Families of its endpoints, in the order of their serial numbers.
    pub families: Vec<Family>,
    /// Whether the registry says where it is. If not, it sits behind NAT: it dials, and nobody can dial it.
    pub published: bool,
    /// Networks behind it.
    pub announce: Vec<IpNet>,
    /// Its policies.
    pub policies: Vec<Policy>,
    /// Applied to its settings when it starts.
    pub(super) adjust: Vec<Adjust>,
}

impl Blueprint {
    /// A node with one IPv4 endpoint that anybody can dial.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            families: vec![Family::Ip4],
            published: true,
            announce: Vec::new(),
            policies: Vec::new(),
            adjust: Vec::new(),
        }
    }

    /// With other endpoints, one for each of these families.
    #[must_use]
    pub fn over(mut self, families: &[Family]) -> Self {
        self.families = families.to_vec();
        self
    }

    /// Not listed with an address, so that nobody can dial it.
    #[must_use]
    pub fn unpublished(mut self) -> Self {
        self.published = false;
        self
    }

    /// With a network behind it.
    ///
    /// # Panics
    /// If the text is no network.
    #[must_use]
    pub fn announcing(mut self, network: &str) -> Self {
        self.announce.push(network_of(network));
        self
    }

    /// With a further policy.
    #[must_use]
    pub fn steering(mut self, policy: Policy) -> Self {
        self.policies.push(policy);
        self
    }

    /// With other settings than the defaults, in every respect.
    #[must_use]
    pub fn adjusted(mut self, adjust: impl Fn(&mut Settings) + 'static) -> Self {
        self.adjust.push(Box::new(adjust));
        self
    }
}

/// A policy that sends everything for the network `to` by the nodes `via`, in this order, to the node `exit`.
/// While that is impossible, packets are dropped.
///
/// # Panics
/// If `to` is no network.
pub fn policy(name: &str, to: &str, via: &[&str], exit: &str) -> Policy {
    Policy {
        name: name.to_owned(),
        from: vec![
            IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::UNSPECIFIED, 0)),
            IpNet::V6(Ipv6Net::new_assert(Ipv6Addr::UNSPECIFIED, 0)),
        ],
        to: vec![network_of(to)],
        protocol: None,
        ports: Vec::new(),
        source_ports: Vec::new(),
        dscp: Vec::new(),
        membership: Membership::default(),
        candidates: vec![candidate(1, via, exit)],
        probe: None,
        hmac: None,
        if_unreachable: IfUnreachable::Drop,
        shared: false,
        line: 1,
    }
}

/// One way of a policy: by the nodes `via`, in this order, to the node `exit`.
pub fn candidate(priority: u16, via: &[&str], exit: &str) -> Candidate {
    let node = |name: &str| NodeName::new(ORGANIZATION, name);
    Candidate {
        via: via.iter().map(|name| Stop::at(node(name))).collect(),
        exit: Exit::Node(node(exit)),
        exit_strict: false,
        priority,
        weight: 1,
    }
}

fn network_of(text: &str) -> IpNet {
    match text.parse() {
        Ok(network) => network,
        Err(error) => panic!("`{text}` is no network: {error}"),
    }
}
