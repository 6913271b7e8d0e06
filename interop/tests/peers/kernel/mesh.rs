//! Two nodes of ours and the router, each with a network behind it.

use interop::foreign::{ForeignNode, ForeignProof};
use lab::peers::{Guest, Release, Router, RouterPeer, RouterSetup};
use lab::{Host, Interface, LinkSettings, Pinger, Segment, SegmentConfig, World, wait_until};
use std::net::IpAddr;
use std::time::Duration;
use viamesh::config::key;
use viamesh::demo::{Mesh, NodeSpec, ORGANIZATION, PORT};

/// Longer than anything takes on a machine that is busy with other things.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Our nodes, with the number of the network behind each.
pub(crate) const OURS: [(&str, u8); 2] = [("alpha", 1), ("bravo", 2)];
/// The router's name, and the number of the network behind it.
pub(crate) const ROUTER: (&str, u8) = ("router", 9);
/// The router's locator.
pub(crate) const LOCATOR: &str = "fd5d:ac:0:9::/64";

/// Where a host is in the network of that number: IPv4 and IPv6.
pub(crate) fn inside(network: u8, host: u8) -> [IpAddr; 2] {
    [format!("10.{network}.0.{host}"), format!("fd00:0:0:{network}::{host}")]
        .map(|text| text.parse().unwrap())
}

/// The computer behind the router.
pub(crate) fn computer() -> [IpAddr; 2] {
    inside(ROUTER.1, 2)
}

/// What is tried.
pub(crate) struct Setup {
    /// Whether the router dials; otherwise our nodes do.
    pub(crate) router_dials: bool,
    /// Round trips between alpha and bravo, alpha and the router, bravo and the router.
    pub(crate) rtt_ms: [u64; 3],
    /// Further lines of the node file of alpha and of bravo.
    pub(crate) nodes: [String; 2],
    /// Further lines of the router's connection, and of its child, to alpha and to bravo.
    pub(crate) connections: [(&'static str, &'static str); 2],
    /// Further lines of BIRD's static routes.
    pub(crate) static_routes: &'static str,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            router_dials: false,
            rtt_ms: [4; 3],
            nodes: Default::default(),
            connections: [("", ""); 2],
            static_routes: "",
        }
    }
}

/// All of it, running.
pub(crate) struct KernelMesh {
    pub(crate) mesh: Mesh,
    pub(crate) router: Router,
    /// The registry without what it says of the router's segments, and of our nodes' compressed ones.
    registry: String,
    /// Goes last: its end is the end of all that runs in it.
    pub(crate) world: World,
}

impl Setup {
    /// Starts it, and waits until traffic passes between all.
    pub(crate) fn start(self) -> KernelMesh {
        let world = World::new().unwrap();
        let internet = world.segment("internet").unwrap();
        let members: Vec<(Host, Interface)> =
            OURS.iter().map(|(name, network)| join(&world, &internet, name, *network)).collect();
        let host = world.host(ROUTER.0).unwrap();
        let underlay = internet.attach(&host).unwrap();
        for ((a, b), rtt) in
            [("alpha", "bravo"), ("alpha", "router"), ("bravo", "router")].into_iter().zip(self.rtt_ms)
        {
            internet.set(a, b, LinkSettings::with_rtt_ms(rtt)).unwrap();
        }
        let lan = lan(&world, &host);

        let specs = members.iter().zip(OURS).zip(&self.nodes);
        let specs: Vec<(Host, NodeSpec)> = specs
            .map(|(((host, interface), (_, network)), lines)| {
                (host.clone(), spec(host, interface, network, lines))
            })
            .collect();
        let directory = world.directory().join("mesh");
        let mesh = Mesh::prepare(&directory, &interop::daemon::binary(), &specs).unwrap();
        let registry = std::fs::read_to_string(directory.join("registry.yaml")).unwrap();
        let own = key::generate().unwrap();
        let public = key::public_pem(&own.verifying_key()).unwrap();
        let entry = ForeignNode {
            name: ROUTER.0,
            ipv6: false,
            address: (!self.router_dials).then(|| underlay.v4.unwrap().into()),
            port: PORT,
            id: "fqdn:router.example",
            proof: ForeignProof::PublicKey(&public),
        };
        let registry = registry + &entry.registry_entry();

        let folder = world.directory().join("guest");
        let guest = Guest::boot(&host, &[underlay.clone(), lan], Release::Debian13, &folder).unwrap();
        let setup = self.router(&members, &underlay);
        let ours: Vec<(&str, String)> =
            OURS.iter().map(|(name, _)| (*name, public_key(&mesh, name))).collect();
        let keys: Vec<(&str, &str)> = ours
            .iter()
            .map(|(name, key)| (*name, key.as_str()))
            .chain([(ROUTER.0, public.as_str())])
            .collect();
        let router = Router::start(guest, setup, &key::private_pem(&own).unwrap(), &keys).unwrap();

        let mut all = KernelMesh { mesh, router, registry, world };
        all.write_registry(&all.router.setup.registry_lines(), [None; 2]);
        all.mesh.start().unwrap();
        all.wait_traffic();
        all
    }

    fn router(&self, members: &[(Host, Interface)], underlay: &Interface) -> RouterSetup {
        let peers = members.iter().zip(self.connections).map(|((host, interface), (more, more_of_child))| {
            RouterPeer {
                name: host.name().to_owned(),
                id: format!("O={ORGANIZATION}, CN={}, serialNumber=0", host.name()),
                local_address: underlay.v4.unwrap().into(),
                address: interface.v4.unwrap().into(),
                dial: self.router_dials,
                more: more.to_owned(),
                more_of_child: more_of_child.to_owned(),
            }
        });
        RouterSetup {
            name: ROUTER.0.to_owned(),
            id: "router.example".to_owned(),
            port: PORT,
            underlay: Guest::device(0),
            lan: Guest::device(1),
            network_v4: "10.9.0.0/24".parse().unwrap(),
            network_v6: "fd00:0:0:9::/64".parse().unwrap(),
            locator: LOCATOR.parse().unwrap(),
            static_routes: self.static_routes.to_owned(),
            peers: peers.collect(),
        }
    }
}

/// A host of ours on the internet.
fn join(world: &World, internet: &Segment, name: &str, network: u8) -> (Host, Interface) {
    let host = world.host(name).unwrap();
    let interface = internet.attach(&host).unwrap();
    for address in inside(network, 1) {
        host.add_address("lo", address.into()).unwrap();
    }
    (host, interface)
}

/// The network behind the router, with a computer in it; the router's interface.
fn lan(world: &World, router: &Host) -> Interface {
    let config = world.segment_config("lan");
    let (v4, v6) = (Some("10.9.0.0/24".parse().unwrap()), Some("fd00:0:0:9::/64".parse().unwrap()));
    let lan = world.segment_with(SegmentConfig { v4, v6, ..config }).unwrap();
    let interface = lan.attach(router).unwrap();
    let computer = world.host("computer").unwrap();
    lan.attach(&computer).unwrap();
    for (any, gateway) in ["0.0.0.0/0", "::/0"].into_iter().zip(inside(ROUTER.1, 1)) {
        computer.add_route(any.parse().unwrap(), gateway).unwrap();
    }
    interface
}

fn spec(host: &Host, interface: &Interface, network: u8, lines: &str) -> NodeSpec {
    let spec = NodeSpec::new(host, interface).announcing(&format!("10.{network}.0.0/24"));
    let spec = spec.announcing(&format!("10.2{network}.0.0/24"));
    let spec = spec.announcing(&format!("\"fd00:0:0:{network}::/64\"")).with(lines);
    match lines.contains("timers:") {
        true => spec,
        false => spec.with("timers: { hello: 1s, redial: 500ms }"),
    }
}

fn public_key(mesh: &Mesh, name: &str) -> String {
    let own = key::load(&mesh.directory.join(name).join("key.pem")).unwrap();
    key::public_pem(&own.verifying_key()).unwrap()
}

impl KernelMesh {
    /// Writes the registry: what it says of the router's segments, and our nodes' compressed SIDs.
    pub(crate) fn write_registry(&self, segments: &str, usids: [Option<u16>; 2]) {
        let mut text = self.registry.clone();
        for line in segments.lines() {
            text += &format!("        {line}\n");
        }
        for ((name, _), usid) in OURS.into_iter().zip(usids) {
            let Some(usid) = usid else { continue };
            let (head, entry) = text.split_once(&format!("common_name: {name}\n")).unwrap();
            let entry =
                entry.replacen("      viamesh:\n", &format!("      viamesh:\n        usid: {usid:#x}\n"), 1);
            text = format!("{head}common_name: {name}\n{entry}");
        }
        std::fs::write(self.mesh.directory.join("registry.yaml"), text).unwrap();
    }

    /// Waits until each network answers the other two, by both families.
    pub(crate) fn wait_traffic(&self) {
        let computers = [("alpha", inside(1, 1)), ("bravo", inside(2, 1)), ("computer", computer())];
        for (from, sources) in computers {
            for (to, targets) in computers.into_iter().filter(|(to, _)| *to != from) {
                for (source, target) in sources.into_iter().zip(targets) {
                    let what = format!("{to}'s {target} to answer {from}'s {source}");
                    self.wait(&what, || self.answers(from, source, target));
                }
            }
        }
    }

    /// Whether a probe is answered.
    pub(crate) fn answers(&self, from: &str, source: IpAddr, target: IpAddr) -> bool {
        let probe = Pinger { source: Some(source), count: Some(1), ..Pinger::new(target) };
        probe.run(&self.host(from)).unwrap().received == 1
    }

    pub(crate) fn wait(&self, what: &str, condition: impl FnMut() -> bool) {
        if let Err(error) = wait_until(PATIENCE, what, condition) {
            let said = |lines: lab::Result<Vec<String>>| lines.unwrap_or_default().join("\n");
            let guest = self.router.guest.run(
                "ip -s link; ip address; ip route; ip -6 route; ip route show table 100; ip xfrm state; \
                 cat /proc/net/xfrm_stat; tail -n 40 /run/charon.log",
            );
            panic!(
                "{error}\n{}\n{}\n{}\n{}",
                guest.map(|output| output.stdout).unwrap_or_default(),
                said(self.router.ask_bird("show babel neighbors")),
                said(self.router.ask_bird("show route")),
                self.mesh.describe()
            );
        }
    }

    pub(crate) fn host(&self, name: &str) -> Host {
        self.world.find(name).unwrap()
    }

    /// Fails if one of our nodes has panicked.
    pub(crate) fn check(&self) {
        for (name, _) in OURS {
            let log = self.mesh.node(name).process.as_ref().unwrap().log_text();
            assert!(!log.contains("panicked"), "{name}: {log}");
        }
    }
}
