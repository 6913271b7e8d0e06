//! What the tests start from: sites on one internet, each with a host, a node and a network behind it.

pub(crate) use interop::daemon::binary;
use lab::{Host, Interface, LinkSettings, Nat, NatKind, Pinger, RunOutput, Segment, World, wait_until};
use std::net::{IpAddr, Ipv4Addr, SocketAddrV4};
use std::process::Command;
use std::time::Duration;
use viamesh::control::report::AssociationsReport;
use viamesh::control::{Reply, Request};
use viamesh::demo::{Mesh, NodeSpec, PORT};

/// Longer than anything takes on a machine that is busy with other things.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Timers for tests: routes settle within seconds.
pub(crate) const QUICK: &str = "timers: { hello: 1s, redial: 500ms }";

/// Whether a program that judges us is installed. A missing one fails the test, unless `cargo xtask test --offline`
/// has said already what is not run.
pub(crate) fn judge(program: &str) -> bool {
    let installed = std::path::Path::new(program).exists();
    let offline = std::env::var("VIAMESH_OFFLINE").is_ok_and(|offline| offline == "1");
    assert!(installed || offline, "{program} is missing: `cargo xtask setup` installs it");
    installed
}

/// A place with a node: its host is on the internet, and a network is behind it (on its loopback device).
#[derive(Clone)]
pub(crate) struct Site {
    pub(crate) host: Host,
    pub(crate) underlay: Interface,
    number: u8,
    /// Where others may dial it, if that is not simply the address of the interface.
    dialled_at: Option<Vec<IpAddr>>,
    /// The router that translates its addresses.
    pub(crate) router: Option<Host>,
}

impl Site {
    fn new(host: Host, underlay: Interface, number: u8, dialled_at: Option<Vec<IpAddr>>) -> Self {
        let site = Self { host, underlay, number, dialled_at, router: None };
        for address in [site.inside(), site.inside_v6()] {
            site.host.add_address("lo", address.into()).unwrap();
        }
        site
    }

    /// The IPv4 network behind the node: 10.*n*.0.0/24.
    pub(crate) fn network(&self) -> String {
        format!("10.{}.0.0/24", self.number)
    }

    /// The IPv6 network behind the node: fd00:0:0:*n*::/64.
    pub(crate) fn network_v6(&self) -> String {
        format!("fd00:0:0:{}::/64", self.number)
    }

    /// The host's own address in the IPv4 network.
    pub(crate) fn inside(&self) -> IpAddr {
        format!("10.{}.0.1", self.number).parse().unwrap()
    }

    /// The host's own address in the IPv6 network.
    pub(crate) fn inside_v6(&self) -> IpAddr {
        format!("fd00:0:0:{}::1", self.number).parse().unwrap()
    }

    /// A node with an IPv4 endpoint that announces both networks.
    pub(crate) fn node(&self) -> NodeSpec {
        self.behind(NodeSpec::new(&self.host, &self.underlay))
    }

    /// The same with an IPv6 endpoint.
    pub(crate) fn node_over_ipv6(&self) -> NodeSpec {
        self.behind(NodeSpec::over_ipv6(&self.host, &self.underlay))
    }

    /// Its name on the internet: that of its router, if it has one.
    pub(crate) fn station(&self) -> &str {
        self.router.as_ref().unwrap_or(&self.host).name()
    }

    /// Whether others can dial it.
    pub(crate) fn is_dialled(&self) -> bool {
        self.dialled_at.as_ref().is_none_or(|addresses| !addresses.is_empty())
    }

    fn behind(&self, mut spec: NodeSpec) -> NodeSpec {
        if let Some(addresses) = &self.dialled_at {
            spec.addresses.clone_from(addresses);
        }
        spec.announcing(&self.network()).announcing(&format!("\"{}\"", self.network_v6()))
    }
}

/// Sites without nodes yet.
pub(crate) struct Internet {
    pub(crate) world: World,
    pub(crate) segment: Segment,
    pub(crate) sites: Vec<Site>,
}

impl Internet {
    /// Sites of these names, all `rtt_ms` away from each other, numbered from 1.
    pub(crate) fn new(names: &[&str], rtt_ms: u64) -> Self {
        Self::with_seed(names, rtt_ms, 1)
    }

    /// The same with losses and jitter that follow from a seed.
    pub(crate) fn with_seed(names: &[&str], rtt_ms: u64, seed: u64) -> Self {
        let world = World::with_seed(seed).unwrap();
        let segment = world.segment("internet").unwrap();
        let mut sites = Vec::new();
        for (name, number) in names.iter().zip(1..) {
            let host = world.host(name).unwrap();
            let underlay = segment.attach(&host).unwrap();
            sites.push(Site::new(host, underlay, number, None));
        }
        let internet = Self { world, segment, sites };
        for (index, a) in names.iter().enumerate() {
            for b in names.iter().skip(index + 1) {
                internet.set(a, b, LinkSettings::with_rtt_ms(rtt_ms));
            }
        }
        internet
    }

    /// Two sites, alpha and bravo, with a router between them that passes on packets up to `mtu` octets.
    pub(crate) fn behind_router(mtu: u32) -> Self {
        let world = World::new().unwrap();
        let (west, east) = (world.segment("west").unwrap(), world.segment("east").unwrap());
        let router = world.host("router").unwrap();
        let mut sites = Vec::new();
        for (name, number, segment) in [("alpha", 1, &west), ("bravo", 2, &east)] {
            let host = world.host(name).unwrap();
            let underlay = segment.attach(&host).unwrap();
            sites.push(Site::new(host, underlay, number, None));
        }
        let ends = [&west, &east].map(|segment| segment.attach(&router).unwrap());
        for (site, other, end) in [(0, 1, &ends[0]), (1, 0, &ends[1])] {
            let far = ipnet::IpNet::from(IpAddr::from(sites[other].underlay.v4.unwrap()));
            sites[site].host.add_route(far, end.v4.unwrap().into()).unwrap();
            router.set_mtu(&end.name, mtu).unwrap();
        }
        Self { world, segment: west, sites }
    }

    /// Adds a site behind a router that translates addresses and is on the internet as *name*`-router`, `rtt_ms` from
    /// all others. Others dial it only where its UDP port is forwarded to it.
    pub(crate) fn add_behind_nat(&mut self, name: &str, forwarded: bool, kind: NatKind, rtt_ms: u64) -> Nat {
        let router = self.world.host(&format!("{name}-router")).unwrap();
        let outside = self.segment.attach(&router).unwrap();
        let host = self.world.host(name).unwrap();
        let cable = self.world.link(&router, &host, LinkSettings::PERFECT).unwrap();
        host.add_route("0.0.0.0/0".parse().unwrap(), cable.a().v4.unwrap().into()).unwrap();
        let inside = SocketAddrV4::new(cable.b().v4.unwrap_or(Ipv4Addr::UNSPECIFIED), PORT);
        let kind = if forwarded { NatKind::Open(inside) } else { kind };
        let dialled_at = if forwarded { vec![outside.v4.unwrap().into()] } else { vec![] };
        let nat = Nat::start(&router, &outside, kind).unwrap();
        for other in &self.sites {
            self.segment.set(router.name(), other.station(), LinkSettings::with_rtt_ms(rtt_ms)).unwrap();
        }
        let number = u8::try_from(self.sites.len() + 1).unwrap();
        let mut site = Site::new(host, cable.b().clone(), number, Some(dialled_at));
        site.router = Some(router);
        self.sites.push(site);
        nat
    }

    /// Changes the link between two sites.
    pub(crate) fn set(&self, a: &str, b: &str, settings: LinkSettings) {
        self.segment.set(a, b, settings).unwrap();
    }

    /// One of the sites.
    pub(crate) fn site(&self, name: &str) -> &Site {
        self.sites.iter().find(|site| site.host.name() == name).unwrap()
    }

    /// Writes the files of a mesh; `spec` makes the node of each site.
    pub(crate) fn prepare(self, spec: impl Fn(&Site) -> NodeSpec) -> Scene {
        let members: Vec<_> = self.sites.iter().map(|site| (site.host.clone(), spec(site))).collect();
        let mesh = Mesh::prepare(&self.world.directory().join("mesh"), &binary(), &members).unwrap();
        Scene { mesh, internet: self }
    }

    /// Starts a node at each site and waits until all reach each other, by one tunnel for each pair.
    pub(crate) fn start(self, spec: impl Fn(&Site) -> NodeSpec) -> Scene {
        let mut scene = self.prepare(spec);
        scene.mesh.start().unwrap();
        scene.mesh.wait_connected(PATIENCE).unwrap();
        // All dial each other at once; what is under way in a tunnel that turns out to be one too many is lost.
        scene.wait("one tunnel for each pair", || scene.has_one_tunnel_for_each_pair());
        scene.wait_kernels();
        scene
    }
}

/// Sites with nodes. When a test fails, it tells what the nodes say.
pub(crate) struct Scene {
    pub(crate) mesh: Mesh,
    pub(crate) internet: Internet,
}

impl Drop for Scene {
    #[expect(clippy::print_stderr, reason = "for whoever looks at the failed test")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.mesh.describe());
            return;
        }
        // Not in the middle of another panic: that would end the program.
        self.assert_no_panic();
    }
}

impl Scene {
    /// One of the sites.
    pub(crate) fn site(&self, name: &str) -> &Site {
        self.internet.site(name)
    }

    /// The host of a site.
    pub(crate) fn host(&self, name: &str) -> &Host {
        &self.site(name).host
    }

    /// The address of a node in the mesh.
    pub(crate) fn address(&self, name: &str) -> IpAddr {
        self.mesh.address(name).unwrap().into()
    }

    /// Whether each two sites that can dial each other have one tunnel, and no tunnel more.
    pub(crate) fn has_one_tunnel_for_each_pair(&self) -> bool {
        let sites = &self.internet.sites;
        sites.iter().all(|site| {
            let dials = |other: &&Site| site.is_dialled() || other.is_dialled();
            let others = sites.iter().filter(|other| other.host.name() != site.host.name());
            self.associations(site.host.name()).associations.len() == others.filter(dials).count()
        })
    }

    /// Waits until the hosts have the routes, too: they follow a moment later.
    pub(crate) fn wait_kernels(&self) {
        for (from, to) in
            self.internet.sites.iter().flat_map(|from| self.internet.sites.iter().map(move |to| (from, to)))
        {
            for (source, target) in [(from.inside(), to.inside()), (from.inside_v6(), to.inside_v6())] {
                let probe = Pinger { source: Some(source), count: Some(1), ..Pinger::new(target) };
                let what = format!("{target} to answer {source}");
                self.wait(&what, || probe.run(&from.host).unwrap().received == 1);
            }
        }
    }

    /// Waits until both reach each other directly, or both through `via`.
    pub(crate) fn wait_path(&self, a: &str, b: &str, via: Option<&str>) {
        self.mesh.wait_path(a, b, via, PATIENCE).unwrap();
        self.mesh.wait_path(b, a, via, PATIENCE).unwrap();
    }

    /// Waits for a condition.
    pub(crate) fn wait(&self, what: &str, condition: impl FnMut() -> bool) {
        wait_until(PATIENCE, what, condition).unwrap();
    }

    /// Fails unless some probes are answered; returns the median round trip.
    pub(crate) fn ping(&self, from: &str, target: IpAddr) -> Duration {
        let report = Pinger::new(target).run(self.host(from)).unwrap();
        report.median().unwrap_or_else(|| panic!("{target} does not answer {from}: {report:?}"))
    }

    /// The security associations of a node.
    pub(crate) fn associations(&self, name: &str) -> AssociationsReport {
        match self.mesh.ask(name, &Request::Associations { node: None }).unwrap() {
            Reply::Associations(report) => report,
            other => panic!("{other:?} is no answer to a question for associations"),
        }
    }

    /// Runs `viamesh` with these arguments at a site, as its administrator would.
    pub(crate) fn viamesh(&self, site: &str, arguments: &[&str]) -> RunOutput {
        let mut command = Command::new(binary());
        command.arg("--socket").arg(&self.mesh.node(site).socket).args(arguments);
        self.host(site).run(command, PATIENCE).unwrap()
    }

    /// Runs `viamesh … --json` at a site and returns the document.
    pub(crate) fn document(&self, site: &str, arguments: &[&str]) -> serde_json::Value {
        let output = self.viamesh(site, &[arguments, &["--json"]].concat()).successful().unwrap();
        serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", output.stdout))
    }

    /// The log of a running daemon.
    pub(crate) fn log(&self, name: &str) -> String {
        self.mesh.node(name).process.as_ref().unwrap().log_text()
    }

    /// Fails if a daemon's log tells of a panic.
    pub(crate) fn assert_no_panic(&self) {
        for name in self.mesh.names() {
            if self.mesh.node(name).process.is_some() {
                let log = self.log(name);
                assert!(!log.contains("panicked"), "{name}:\n{log}");
            }
        }
    }
}

/// One time over another.
pub(crate) fn ratio(this: Duration, other: Duration) -> f64 {
    this.as_secs_f64() / other.as_secs_f64()
}
