//! Policies: packets visit the stops that they are told to.

use super::*;

const NETWORK: &str = "10.9.0.0/16";
const NETWORK_IP6: &str = "fd09::/32";

/// Four nodes at one distance. `a` sends what is for the networks behind `d` by `b`, `c` and `b`.
fn journey(seed: u64, if_unreachable: IfUnreachable) -> (Simulation, [NodeId; 4]) {
    let mut steer = policy("scenic", NETWORK, &["b", "c", "b"], "d");
    steer.to.push(NETWORK_IP6.parse().expect("a network"));
    steer.if_unreachable = if_unreachable;
    let mut mesh = Simulation::new(seed);
    let nodes = [
        mesh.add(Blueprint::new("a").announcing("10.1.0.0/16").steering(steer)),
        mesh.add(Blueprint::new("b")),
        mesh.add(Blueprint::new("c")),
        mesh.add(Blueprint::new("d").announcing(NETWORK).announcing(NETWORK_IP6)),
    ];
    mesh.set_all_links(rtt(20));
    mesh.start_all();
    converge(&mut mesh);
    (mesh, nodes)
}

fn to_network(mesh: &Simulation, from: NodeId) -> [Packet; 2] {
    let ip4: std::net::Ipv4Addr = "10.9.0.5".parse().expect("an address");
    let ip6: std::net::Ipv6Addr = "fd09::5".parse().expect("an address");
    [Packet::new(mesh.address_ip4(from), ip4), Packet::new(mesh.address(from), ip6)]
}

#[test]
fn packets_of_a_policy_visit_its_stops_in_order() {
    let (mut mesh, [a, b, c, d]) = journey(30, IfUnreachable::Drop);
    for packet in to_network(&mesh, a) {
        let steered = mesh.send(a, &packet);
        mesh.run_for(seconds(1));
        let journey = mesh.journey(steered);
        assert_eq!(journey.visited(), [a, b, c, b, d]);
        assert_eq!(journey.arrival(), Some((d, 4 * millis(10))));
    }
    let direct = [
        (a, d, mesh.packet(a, d)),
        (a, d, mesh.packet_ip4(a, d)),
        (d, a, mesh.packet(d, a)),
        (b, d, to_network(&mesh, b)[0]),
        (a, c, mesh.packet(a, c)),
    ];
    for (from, to, packet) in direct {
        let other = mesh.send(from, &packet);
        mesh.run_for(seconds(1));
        assert_eq!(mesh.journey(other).visited(), [from, to], "{packet:?}");
        assert_eq!(mesh.journey(other).arrival(), Some((to, millis(10))), "{packet:?}");
    }
    assert_only_ciphertext_on_the_underlay(&mesh);
}

#[test]
fn nothing_leaves_the_path_of_a_policy_when_a_stop_dies() {
    let (mut mesh, [a, b, c, d]) = journey(31, IfUnreachable::Drop);
    let [packet, _] = to_network(&mesh, a);
    let mut sent = Vec::new();
    for round in 0..1500 {
        if round == 200 {
            mesh.kill(c);
        }
        sent.push(mesh.send(a, &packet));
        mesh.run_for(millis(10));
    }
    let path = [a, b, c, b, d];
    for packet in &sent {
        let visited = mesh.journey(*packet).visited();
        // An ICMP error about it may come back to `a`.
        let on_the_way = visited.strip_suffix(&[a]).filter(|rest| !rest.is_empty()).unwrap_or(&visited);
        assert!(path.starts_with(on_the_way), "it went {visited:?}");
    }
    let arrived = sent.iter().filter(|packet| mesh.journey(**packet).arrival().is_some()).count();
    assert!((190..=200).contains(&arrived), "{arrived} arrived");
    assert!(mesh.dropped(a, DropReason::PolicyUnreachable) > 1000, "{:?}", mesh.drops(a));
    mesh.start(c);
    let back = mesh.run_until(seconds(60), |mesh| {
        matches!(mesh.decision(a, &packet), Some(viamesh::forwarding::Decision::Link { policy: Some(_), .. }))
    });
    assert!(back.is_some(), "the policy works again:\n{}", mesh.log().join("\n"));
    mesh.run_for(seconds(1));
    let again = mesh.send(a, &packet);
    mesh.run_for(seconds(1));
    assert_eq!(mesh.journey(again).visited(), path);
}

#[test]
fn any_path_means_any_path() {
    let (mut mesh, [a, _, c, d]) = journey(32, IfUnreachable::AnyPath);
    let [packet, _] = to_network(&mesh, a);
    let stream = mesh.stream(a, packet, millis(10));
    mesh.run_for(seconds(2));
    mesh.kill(c);
    mesh.run_for(seconds(10));
    let gap = mesh.report(stream).longest_gap;
    assert!(gap < seconds(1), "traffic stood still for {gap:?}");
    let last = mesh.send(a, &packet);
    mesh.run_for(seconds(1));
    assert_eq!(mesh.journey(last).visited(), [a, d]);
}
