//! A node of ours and a strongSwan, each with a network behind it, on one link.

use super::credentials::{Credentials, ITS_NAME, OUR_NAME};
use super::underlay::Underlay;
use super::{babel, ranet};
use interop::foreign::{ForeignNode, ForeignProof};
use lab::peers::charon::{CharonConfig, Connection, DEVICE, Kind};
use lab::peers::{Charon, Release};
use lab::{Host, Pinger, Process, World, wait_until};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use viamesh::control::report::IkeAssociation;
use viamesh::control::{Reply, Request};
use viamesh::demo::{Mesh, NodeSpec, ORGANIZATION, PORT};

/// Longer than anything takes on a machine that is busy with other things.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The inner MTU of the tunnel, which charon's device has to be told.
const TUNNEL_MTU: u32 = 1400;

/// Reasons to drop a packet that tell of keys, numbers or SPIs that do not fit.
const MISFITS: [&str; 6] =
    ["unknown_spi", "replayed", "outside_window", "integrity_failure", "bad_padding", "sequence_exhausted"];

/// Who dials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialler {
    Us,
    Peer,
}

impl Dialler {
    /// In names of cases.
    pub(crate) const fn role(self) -> &'static str {
        match self {
            Self::Us => "we_dial",
            Self::Peer => "it_dials",
        }
    }
}

/// What is tried.
#[derive(Debug, Clone)]
pub(crate) struct Setup {
    pub(crate) release: Release,
    pub(crate) dialler: Dialler,
    /// Whether the underlay is IPv6.
    pub(crate) ipv6: bool,
    /// Whether whoever dials sits behind a NAT.
    pub(crate) nat: bool,
    /// Whether the peer is configured as ranet does it, from ranet's registry.
    pub(crate) ranet: Option<ranet::Dial>,
    /// What they prove themselves with.
    pub(crate) credentials: Credentials,
    /// Proposals of charon; with ML-KEM in them we offer it, too.
    pub(crate) proposals: &'static str,
    pub(crate) esp_proposals: &'static str,
    /// Further lines of charon's section, of its connection, and of its child.
    pub(crate) daemon: &'static str,
    pub(crate) connection: &'static str,
    pub(crate) child: &'static str,
    /// Further lines of our node file.
    pub(crate) node: &'static str,
}

impl Setup {
    /// strongSwan of Debian 13, which we dial by IPv4; X25519 and AES-GCM.
    pub(crate) const DEFAULT: Self = Self {
        release: Release::Debian13,
        dialler: Dialler::Us,
        ipv6: false,
        nat: false,
        ranet: None,
        credentials: Credentials::RawKeys,
        proposals: "aes256gcm16-prfsha256-x25519",
        esp_proposals: "aes256gcm16-x25519",
        daemon: "",
        connection: "",
        child: "",
        node: "",
    };
}

impl Default for Setup {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// What charon retransmits after, so that a case does not wait for its default of four seconds.
const BRISK: &str = "retransmit_timeout = 1.0\nretransmit_base = 1.5\n";

/// Both, running.
pub(crate) struct Pair {
    pub(crate) mesh: Mesh,
    pub(crate) charon: Charon,
    pub(crate) connection: Connection,
    pub(crate) underlay: Underlay,
    bird: Process,
    /// Goes last: its end is the end of all that runs in it.
    pub(crate) world: World,
}

/// Where each network is.
const NETWORKS: [(&str, &str, &str); 2] =
    [("ours", "10.1.0.1/24", "fd00:0:0:1::1/64"), ("swan", "10.2.0.1/24", "fd00:0:0:2::1/64")];

impl Setup {
    /// Starts both, and waits until traffic passes in both directions.
    pub(crate) fn connect(self) -> Pair {
        let pair = self.start();
        pair.wait_traffic();
        pair
    }

    /// Starts both. Whoever dials has begun to.
    pub(crate) fn start(self) -> Pair {
        let dialler = self.dialler;
        let pair = self.start_without_dialling();
        if dialler == Dialler::Peer {
            pair.charon.load(&pair.connection).unwrap();
        }
        pair
    }

    /// Starts both, and charon does not dial yet.
    pub(crate) fn start_without_dialling(self) -> Pair {
        let world = World::new().unwrap();
        let (ours, swan) = (world.host("ours").unwrap(), world.host("swan").unwrap());
        let underlay = Underlay::join(&world, &ours, &swan, self.nat.then_some(self.dialler));
        for (name, v4, v6) in NETWORKS {
            let host = world.find(name).unwrap();
            host.add_address("lo", v4.parse().unwrap()).unwrap();
            host.add_address("lo", v6.parse().unwrap()).unwrap();
        }
        let config = CharonConfig { port: PORT - 1, nat_port: PORT, more: format!("{BRISK}{}", self.daemon) };
        let folder = world.directory().join("swan");
        let charon = Charon::start(&swan, self.release, &folder, &config).unwrap();
        prepare_device(&swan);

        let mut mesh = self.prepare_node(&world, &ours, &underlay);
        match self.ranet {
            Some(dial) => ranet::prepare(&mesh, &charon, &underlay, dial),
            None => self.credentials.deal(&mesh, &charon, |proof| self.register(&mesh, &underlay, proof)),
        }

        let connection = self.connection(&underlay);
        if self.dialler == Dialler::Us {
            charon.load(&connection).unwrap();
        }
        let bird = babel::start_bird(&swan, &world);
        mesh.start().unwrap();
        wait_until(PATIENCE, "our node", || mesh.status("ours").is_ok()).unwrap();
        Pair { mesh, charon, connection, underlay, bird, world }
    }

    fn prepare_node(&self, world: &World, ours: &Host, underlay: &Underlay) -> Mesh {
        let mut spec = match self.ipv6 {
            true => NodeSpec::over_ipv6(ours, &underlay.ours),
            false => NodeSpec::new(ours, &underlay.ours),
        };
        if self.is_hidden(Dialler::Us) {
            spec.addresses.clear();
        }
        let spec = spec.announcing("10.1.0.0/24").announcing("\"fd00:0:0:1::/64\"").with(self.node);
        let mut section = self.credentials.section();
        section.post_quantum = self.proposals.contains("mlkem") && self.dialler == Dialler::Us;
        let spec = spec.with(&section.text());
        let spec = match self.node.contains("timers:") {
            true => spec,
            false => spec.with("timers: { hello: 1s, redial: 500ms }"),
        };
        Mesh::prepare(&world.directory().join("mesh"), &interop::daemon::binary(), &[(ours.clone(), spec)])
            .unwrap()
    }

    /// Whether that one can't be dialled.
    fn is_hidden(&self, who: Dialler) -> bool {
        self.nat && self.dialler == who
    }

    /// Adds the peer to the registry as a node that is not ours.
    fn register(&self, mesh: &Mesh, underlay: &Underlay, proof: ForeignProof<'_>) {
        let entry = ForeignNode {
            name: "swan",
            ipv6: self.ipv6,
            address: (self.dialler == Dialler::Us).then(|| address(&underlay.swan, self.ipv6)),
            port: PORT,
            id: "fqdn:swan.example",
            proof,
        };
        let path = mesh.directory.join("registry.yaml");
        let registry = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, registry + &entry.registry_entry()).unwrap();
    }

    fn connection(&self, underlay: &Underlay) -> Connection {
        let (local_id, remote_id) = match (self.ranet, self.credentials) {
            (Some(_), _) => (distinguished_name("swan"), distinguished_name("ours")),
            // As people type it: the types of strings in it are charon's choice, and not ours.
            (_, Credentials::RawKeys) => {
                (ITS_NAME.into(), format!("O={ORGANIZATION}, CN=ours, serialNumber=0"))
            }
            _ => (ITS_NAME.into(), OUR_NAME.into()),
        };
        let (local_proof, remote_proof) = self.credentials.proofs();
        Connection {
            kind: if self.ranet.is_some() { Kind::Ranet } else { Kind::Mesh },
            local_address: address(&underlay.swan, self.ipv6),
            remote_address: (!self.is_hidden(Dialler::Us)).then(|| address(&underlay.ours, self.ipv6)),
            local_port: PORT,
            remote_port: PORT,
            local_id,
            remote_id,
            local_proof,
            remote_proof,
            proposals: self.proposals.into(),
            esp_proposals: self.esp_proposals.into(),
            dial: self.dialler == Dialler::Peer,
            more: self.connection.into(),
            more_of_child: self.child.into(),
        }
    }
}

/// What the device of charon lacks for Babel.
fn prepare_device(swan: &Host) {
    swan.set_mtu(DEVICE, TUNNEL_MTU).unwrap();
    swan.add_address(DEVICE, "fe80::5/64".parse().unwrap()).unwrap();
}

fn address(interface: &lab::Interface, ipv6: bool) -> IpAddr {
    match ipv6 {
        true => interface.v6.unwrap().into(),
        false => interface.v4.unwrap().into(),
    }
}

/// The name of one of our nodes as ranet tells it to charon: in DER.
fn distinguished_name(node: &str) -> String {
    match ikev2::Identity::ranet(ORGANIZATION, node, "0").unwrap() {
        ikev2::Identity::DistinguishedName(der) => {
            let octets: String = der.iter().map(|octet| format!("{octet:02x}")).collect();
            format!("asn1dn:#{octets}")
        }
        other => panic!("{other} is no distinguished name"),
    }
}

impl Pair {
    pub(crate) fn wait(&self, what: &str, condition: impl FnMut() -> bool) {
        if let Err(error) = wait_until(PATIENCE, what, condition) {
            let sas = self.charon.swanctl(&["--list-sas"]).map(|output| output.stdout);
            panic!("{error}\n{sas:?}\n{}", self.mesh.describe());
        }
    }

    /// Waits until each network answers the other, by both families.
    pub(crate) fn wait_traffic(&self) {
        for ((from, v4, v6), (_, to_v4, to_v6)) in [(NETWORKS[0], NETWORKS[1]), (NETWORKS[1], NETWORKS[0])] {
            for (source, target) in [(v4, to_v4), (v6, to_v6)] {
                let probe =
                    Pinger { source: Some(host(source)), count: Some(1), ..Pinger::new(host(target)) };
                let from = self.world.find(from).unwrap();
                let what = format!("{target} to answer {source}");
                self.wait(&what, || probe.run(&from).unwrap().received == 1);
            }
        }
    }

    /// Starts charon again after its crash, as its host would.
    pub(crate) fn restart_charon(&mut self) {
        self.charon.restart().unwrap();
        prepare_device(&self.world.find("swan").unwrap());
        self.charon.load(&self.connection).unwrap();
    }

    /// Where our node receives.
    pub(crate) fn our_address(&self) -> SocketAddr {
        SocketAddr::new(self.connection.remote_address.unwrap(), PORT)
    }

    /// Where charon receives.
    pub(crate) fn peer_address(&self) -> SocketAddr {
        SocketAddr::new(self.connection.local_address, PORT)
    }

    /// Our IKE SAs with the peer.
    pub(crate) fn associations(&self) -> Vec<IkeAssociation> {
        match self.mesh.ask("ours", &Request::Associations { node: None }).unwrap() {
            Reply::Associations(report) => report.associations,
            other => panic!("{other:?} is no answer to a question for associations"),
        }
    }

    /// What our node dropped because a key, a number or an SPI did not fit.
    pub(crate) fn misfits(&self) -> BTreeMap<String, u64> {
        let drops = self.mesh.status("ours").unwrap().drops.into_iter();
        drops.filter(|(reason, _)| MISFITS.contains(&reason.as_str())).collect()
    }

    /// Fails unless everything still runs.
    pub(crate) fn check(&self) {
        self.bird.ensure_running().unwrap();
        let log = self.mesh.node("ours").process.as_ref().unwrap().log_text();
        assert!(!log.contains("panicked"), "{log}");
    }
}

fn host(network: &str) -> IpAddr {
    network.split('/').next().unwrap().parse().unwrap()
}
