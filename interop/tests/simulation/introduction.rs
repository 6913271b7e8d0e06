//! Two nodes that nobody can dial, and a third that knows both.

use super::*;

/// `a` can be dialled; `b` and `c` sit behind routers of these kinds.
fn hidden_pair(seed: u64, kinds: [Nat; 2]) -> (Simulation, [NodeId; 3]) {
    let mut mesh = Simulation::new(seed);
    let a = mesh.add(Blueprint::new("a"));
    let [b, c] = ["b", "c"].map(|name| mesh.add(Blueprint::new(name).unpublished()));
    mesh.set_all_links(rtt(40));
    for (node, kind) in [b, c].into_iter().zip(kinds) {
        mesh.place_behind(node, kind);
    }
    mesh.start_all();
    (mesh, [a, b, c])
}

fn is_direct(mesh: &Simulation, x: NodeId, y: NodeId) -> bool {
    mesh.way(x, y).is_some_and(|way| way.len() == 2) && mesh.way(y, x).is_some_and(|way| way.len() == 2)
}

#[test]
fn a_third_node_relays_at_once_and_introduces() {
    let gentle = [Nat::FullCone, Nat::AddressRestricted, Nat::PortRestricted];
    let pairs = gentle.into_iter().flat_map(|x| gentle.into_iter().map(move |y| [x, y]));
    // A router that gives each destination another port can be met by one that does not look at ports.
    let mixed = [[Nat::Symmetric, Nat::FullCone], [Nat::AddressRestricted, Nat::Symmetric]];
    for (seed, kinds) in (60..).zip(pairs.chain(mixed)) {
        let (mut mesh, [a, b, c]) = hidden_pair(seed, kinds);
        let connected = mesh.run_until(seconds(10), Simulation::is_connected).expect("relayed");
        assert!(connected < seconds(1), "{kinds:?}: relayed after {connected:?}");
        let direct = mesh.run_until(seconds(30), |mesh| is_direct(mesh, b, c));
        let direct = direct.unwrap_or_else(|| panic!("{kinds:?}\n{}", mesh.log().join("\n")));
        assert!(direct < seconds(10), "{kinds:?}: direct after {direct:?}");
        assert_eq!(mesh.latency(b, c), Some(millis(20)), "{kinds:?}");
        assert!(is_direct(&mesh, a, b) && is_direct(&mesh, a, c), "{kinds:?}");
        mesh.run_for(seconds(30));
        let tunnels = mesh.associations(b).expect("it runs").associations.len();
        assert_eq!(tunnels, 2, "{kinds:?}: one for each peer");
        assert_only_ciphertext_on_the_underlay(&mesh);
    }
}

#[test]
fn where_routers_do_not_allow_it_relaying_goes_on_and_tries_are_few() {
    for (seed, kinds) in [(80, [Nat::Symmetric, Nat::Symmetric]), (81, [Nat::Symmetric, Nat::PortRestricted])]
    {
        let (mut mesh, [_, b, c]) = hidden_pair(seed, kinds);
        mesh.run_until(seconds(10), Simulation::is_connected).expect("relayed");
        let stream = mesh.stream(b, mesh.packet(b, c), millis(100));
        mesh.run_for(seconds(600));
        mesh.stop_stream(stream);
        mesh.run_for(seconds(1));
        assert!(!is_direct(&mesh, b, c), "{kinds:?}: the model lets through what it must not");
        assert_eq!(mesh.report(stream).missing, [], "{kinds:?}: tries disturb nothing");
        let tries = count_events(&mesh, b, |event| matches!(event, NodeEvent::Introduced { .. }));
        // At 0, 2, 6, 14, … seconds, then every five minutes, from either side.
        assert!((2..24).contains(&tries), "{kinds:?}: {tries} tries in ten minutes");
    }
}

#[test]
fn a_direct_link_that_breaks_is_relayed_and_comes_back() {
    let (mut mesh, [_, b, c]) = hidden_pair(90, [Nat::PortRestricted, Nat::PortRestricted]);
    mesh.run_until(seconds(30), |mesh| is_direct(mesh, b, c)).expect("direct");
    mesh.run_for(seconds(5));
    // Both routers forget at once: neither end can reach the other on the old way.
    mesh.place_behind(b, Nat::PortRestricted);
    mesh.place_behind(c, Nat::PortRestricted);
    mesh.run_for(seconds(60));
    assert!(mesh.latency(b, c).is_some(), "relayed, or direct again");
    let back = mesh.run_until(seconds(400), |mesh| is_direct(mesh, b, c));
    assert!(back.is_some(), "{}", mesh.log().join("\n"));
}

#[test]
fn a_direct_link_needs_the_third_node_no_longer() {
    let (mut mesh, [a, b, c]) = hidden_pair(95, [Nat::PortRestricted, Nat::FullCone]);
    mesh.run_until(seconds(30), |mesh| is_direct(mesh, b, c)).expect("direct");
    mesh.kill(a);
    mesh.run_for(seconds(120));
    assert_eq!(mesh.latency(b, c), Some(millis(20)));
}
