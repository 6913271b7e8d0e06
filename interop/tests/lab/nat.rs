//! Nodes behind routers that translate addresses, forget flows and choose other ports.

use crate::scene::{Internet, PATIENCE, QUICK, Scene};
use lab::{EchoServer, Nat, NatKind, TcpEcho};
use std::net::SocketAddr;
use std::time::Duration;
use viamesh::control::report::IkeAssociation;

/// The only IKE SA between two nodes, as the first of them sees it.
fn tunnel(scene: &Scene, from: &str, to: &str) -> Option<IkeAssociation> {
    let mut all = scene.associations(from).associations;
    all.retain(|ike| ike.node == to && ike.state == "established");
    all.pop().filter(|_| all.is_empty())
}

/// A published node and one behind a router.
fn home(kind: NatKind, lines: &str) -> (Scene, Nat) {
    let mut internet = Internet::new(&["alpha"], 20);
    let nat = internet.add_behind_nat("bravo", false, kind, 20);
    (internet.start(|site| site.node().with(lines)), nat)
}

/// A connection from a site to another one; it must outlast what happens meanwhile.
struct Flow {
    _server: EchoServer,
    client: TcpEcho,
}

impl Flow {
    fn open(scene: &Scene, from: &str, to: &str) -> Self {
        let target = SocketAddr::new(scene.site(to).inside(), 7000);
        let server = EchoServer::start(scene.host(to), target).unwrap();
        let source = Some(scene.site(from).inside());
        let pause = Duration::from_millis(20);
        let client = TcpEcho::start_from(scene.host(from), source, target, 5_000, pause).unwrap();
        let flow = Self { _server: server, client };
        flow.goes_on(scene);
        flow
    }

    fn goes_on(&self, scene: &Scene) {
        let before = self.client.blocks();
        scene.wait("blocks", || self.client.blocks() >= before + 5);
    }

    fn close(self) {
        assert_eq!(self.client.stop().unwrap().failure, None);
    }
}

#[test]
fn a_node_behind_any_router_keeps_its_tunnel_and_its_flows() {
    for kind in [NatKind::Cone, NatKind::Symmetric] {
        let (scene, nat) = home(kind, QUICK);
        // Far shorter than routers have it; the Hellos every second keep the flow alive.
        nat.set_timeout(Duration::from_secs(3)).unwrap();
        let outward = Flow::open(&scene, "bravo", "alpha");
        outward.close();
        let first = tunnel(&scene, "alpha", "bravo").unwrap();
        // Nothing but Hellos for a multiple of the timeout; then the first packet comes from outside.
        scene.wait("an old tunnel", || {
            tunnel(&scene, "alpha", "bravo").is_some_and(|ike| ike.age_seconds >= first.age_seconds + 10)
        });
        Flow::open(&scene, "alpha", "bravo").close();
        let last = tunnel(&scene, "alpha", "bravo").unwrap();
        let facts = |ike: IkeAssociation| (ike.initiator_spi, ike.responder_spi, ike.remote);
        assert_eq!(facts(first), facts(last), "{kind:?}: another tunnel, or another mapping");
    }
}

#[test]
fn a_node_behind_a_forwarded_port_is_dialled() {
    let mut internet = Internet::new(&["alpha"], 20);
    let _forwarded = internet.add_behind_nat("bravo", true, NatKind::Cone, 20);
    let _hidden = internet.add_behind_nat("charlie", false, NatKind::Symmetric, 20);
    let scene = internet.start(|site| site.node().with(QUICK));
    for (from, to) in [("alpha", "bravo"), ("bravo", "alpha"), ("charlie", "bravo"), ("bravo", "charlie")] {
        Flow::open(&scene, from, to).close();
    }
    // From one router to the other, not by way of the third.
    scene.wait_path("charlie", "bravo", None);
}

/// The router chooses other ports while a connection and a tunnel stand; both must outlast it.
fn outlasts_rebinding(lines: &str, kind: NatKind) {
    let (scene, nat) = home(kind, lines);
    let flow = Flow::open(&scene, "alpha", "bravo");
    for _ in 0..3 {
        let before = tunnel(&scene, "alpha", "bravo").unwrap();
        nat.rebind().unwrap();
        flow.goes_on(&scene);
        scene.wait("another address of the peer, the tunnel being the same", || {
            tunnel(&scene, "alpha", "bravo")
                .is_some_and(|ike| ike.remote != before.remote && ike.initiator_spi == before.initiator_spi)
        });
    }
    flow.close();
}

#[test]
fn a_rebinding_that_shows_on_data_first_breaks_nothing() {
    outlasts_rebinding(QUICK, NatKind::Cone);
    outlasts_rebinding(QUICK, NatKind::Symmetric);
}

#[test]
fn a_rebinding_that_shows_on_ike_first_breaks_nothing() {
    // The node behind the router has nothing to send of its own but its checks for liveness: the other end's data
    // goes nowhere until it has heard from the new port.
    let timers = "timers: { hello: 30s, fast_hello: 30s, update: 60s, liveness: 1s, redial: 500ms }";
    let (scene, nat) = home(NatKind::Cone, timers);
    for _ in 0..2 {
        let before = tunnel(&scene, "alpha", "bravo").unwrap();
        nat.rebind().unwrap();
        scene.wait("another address of the peer, the tunnel being the same", || {
            tunnel(&scene, "alpha", "bravo")
                .is_some_and(|ike| ike.remote != before.remote && ike.initiator_spi == before.initiator_spi)
        });
        Flow::open(&scene, "alpha", "bravo").close();
    }
}

#[test]
fn a_node_whose_address_changes_keeps_its_flows() {
    let mut internet = Internet::new(&["alpha"], 20);
    let _nat = internet.add_behind_nat("bravo", false, NatKind::Cone, 20);
    let scene = internet.start(|site| site.node().with(QUICK));
    let flow = Flow::open(&scene, "bravo", "alpha");
    let bravo = scene.site("bravo");
    let address = |last: u8| {
        let [a, b, c, _] = bravo.underlay.v4.unwrap().octets();
        format!("{a}.{b}.{c}.{last}/24").parse::<ipnet::IpNet>().unwrap()
    };
    let host = scene.host("bravo");
    // The second address survives the first.
    host.sysctl("net.ipv4.conf.all.promote_secondaries", "1").unwrap();
    for (old, new) in [(2, 77), (77, 78)] {
        host.add_address(&bravo.underlay.name, address(new)).unwrap();
        host.remove_address(&bravo.underlay.name, address(old)).unwrap();
        // The kernel may have taken the route along with the address.
        if let std::net::IpAddr::V4(gateway) = address(1).addr() {
            host.add_route("0.0.0.0/0".parse().unwrap(), gateway.into()).unwrap();
        }
        flow.goes_on(&scene);
    }
    flow.close();
}

#[test]
fn two_nodes_behind_routers_reach_each_other_at_once_by_a_third() {
    let mut internet = Internet::new(&["alpha"], 20);
    let _nats = ["bravo", "charlie"].map(|name| internet.add_behind_nat(name, false, NatKind::Symmetric, 20));
    let mut scene = internet.prepare(|site| site.node().with(QUICK));
    scene.mesh.start().unwrap();
    scene.mesh.wait_connected(PATIENCE).unwrap();
    scene.wait_kernels();
    assert!(scene.mesh.goes("bravo", "charlie", Some("alpha")));
    Flow::open(&scene, "bravo", "charlie").close();
    Flow::open(&scene, "charlie", "bravo").close();
}

#[test]
fn two_nodes_behind_gentle_routers_get_a_direct_link_while_flows_go_on() {
    let mut internet = Internet::new(&["alpha"], 20);
    let nats = ["bravo", "charlie"].map(|name| internet.add_behind_nat(name, false, NatKind::Cone, 20));
    let mut scene = internet.prepare(|site| site.node().with(QUICK));
    scene.mesh.start().unwrap();
    scene.mesh.wait_connected(PATIENCE).unwrap();
    scene.wait_kernels();
    let flow = Flow::open(&scene, "bravo", "charlie");
    scene.wait_path("bravo", "charlie", None);
    flow.goes_on(&scene);
    // What keeps others from being heard keeps the direct link from being made anew, but not the flow.
    for nat in &nats {
        nat.forget().unwrap();
    }
    flow.goes_on(&scene);
    // The third node may go: nothing depends on it any more.
    scene.wait_path("bravo", "charlie", None);
    scene.mesh.stop("alpha").unwrap();
    flow.goes_on(&scene);
    flow.close();
}
