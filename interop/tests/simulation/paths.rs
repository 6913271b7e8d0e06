//! Policies with several paths: which one carries, and how that changes.

use super::*;
use viamesh::config::settings::{Candidate, HmacKeyFile, NodeName, Policy, PolicyProbe, Settings, Stop};
use viamesh::control::{Reply, Request};

const NETWORK: &str = "10.9.0.0/16";

/// Four nodes at one distance; `a` sends what is for the network behind `d` by `policy`.
fn mesh(seed: u64, policy: Policy, adjust: fn(&mut Settings)) -> (Simulation, [NodeId; 4]) {
    let mut mesh = Simulation::new(seed);
    let nodes = [
        mesh.add(Blueprint::new("a").announcing("10.1.0.0/16").steering(policy).adjusted(adjust)),
        mesh.add(Blueprint::new("b").adjusted(adjust)),
        mesh.add(Blueprint::new("c").adjusted(adjust)),
        mesh.add(Blueprint::new("d").announcing(NETWORK).adjusted(adjust)),
    ];
    mesh.set_all_links(rtt(20));
    mesh.start_all();
    converge(&mut mesh);
    (mesh, nodes)
}

fn with_paths(candidates: Vec<Candidate>) -> Policy {
    Policy { candidates, ..policy("several", NETWORK, &[], "d") }
}

fn packet(mesh: &Simulation, from: NodeId) -> Packet {
    let host: std::net::Ipv4Addr = "10.9.0.5".parse().expect("an address");
    Packet::new(mesh.address_ip4(from), host)
}

/// The nodes that one packet visits.
fn way(mesh: &mut Simulation, from: NodeId, packet: &Packet) -> Vec<NodeId> {
    let sent = mesh.send(from, packet);
    mesh.run_for(seconds(2));
    mesh.journey(sent).visited()
}

/// Runs until packets go that way.
fn wait_way(mesh: &mut Simulation, from: NodeId, wanted: &[NodeId]) {
    let packet = packet(mesh, from);
    for _ in 0..60 {
        if way(mesh, from, &packet) == wanted {
            return;
        }
    }
    panic!("packets never went {wanted:?}:\n{}", mesh.log().join("\n"));
}

#[test]
fn the_second_path_carries_while_the_first_is_down() {
    let paths = vec![candidate(1, &["b"], "d"), candidate(2, &["c"], "d")];
    let (mut mesh, [a, b, c, d]) = mesh(60, with_paths(paths), |_| {});
    let packet = packet(&mesh, a);
    assert_eq!(way(&mut mesh, a, &packet), [a, b, d]);
    let mut sent = Vec::new();
    for round in 0..2000 {
        if round == 100 {
            mesh.kill(b);
        }
        sent.push(mesh.send(a, &packet));
        mesh.run_for(millis(10));
    }
    mesh.run_for(seconds(1));
    for packet in &sent {
        let visited = mesh.journey(*packet).visited();
        let on_the_way = visited.strip_suffix(&[a]).filter(|rest| !rest.is_empty()).unwrap_or(&visited);
        assert!([a, b, d].starts_with(on_the_way) || [a, c, d].starts_with(on_the_way), "{visited:?}");
    }
    assert!(sent[1900..].iter().all(|packet| mesh.journey(*packet).arrival().is_some()));
    mesh.start(b);
    wait_way(&mut mesh, a, &[a, b, d]);
    let told = mesh.events().iter().filter_map(|(_, node, event)| match event {
        NodeEvent::PolicyPath { paths, .. } if *node == a => Some(paths.clone()),
        _ => None,
    });
    assert_eq!(told.collect::<Vec<_>>(), [["c > d"], ["b > d"]]);
    assert_only_ciphertext_on_the_underlay(&mesh);
}

#[test]
fn paths_of_one_priority_share_the_flows_and_keep_each_in_order() {
    let heavy = Candidate { weight: 3, ..candidate(1, &["c"], "d") };
    let paths = vec![candidate(1, &["b"], "d"), heavy, candidate(2, &[], "d")];
    let (mut mesh, [a, b, c, d]) = mesh(61, with_paths(paths), |_| {});
    let mut counts = [0, 0];
    for port in 0..100 {
        let flow = packet(&mesh, a).to_port(port);
        let sent = [mesh.send(a, &flow), mesh.send(a, &flow)];
        mesh.run_for(millis(100));
        let [first, second] = sent.map(|packet| mesh.journey(packet).visited());
        counts[usize::from(first == [a, c, d])] += 1;
        assert!(first == [a, b, d] || first == [a, c, d], "{first:?}");
        assert_eq!(second, first, "a flow changes its path");
    }
    assert!(counts[0] > 10 && counts[1] > 2 * counts[0], "{counts:?}");
}

#[test]
fn the_nearest_of_a_group_serves_and_stays_until_another_is_clearly_nearer() {
    let names = ["b", "c"].map(|name| NodeName::new(interop::simulation::ORGANIZATION, name));
    let group = Stop { any_of: names.to_vec(), strict: false };
    let paths = vec![Candidate { via: vec![group], ..candidate(1, &[], "d") }];
    let (mut mesh, [a, b, c, d]) = mesh(62, with_paths(paths), |_| {});
    mesh.set_link(a, b, rtt(10));
    mesh.set_link(a, c, rtt(100));
    wait_way(&mut mesh, a, &[a, b, d]);
    // A little nearer is no reason to change.
    mesh.set_link(a, c, rtt(8));
    mesh.run_for(seconds(60));
    wait_way(&mut mesh, a, &[a, b, d]);
    mesh.set_link(a, b, rtt(150));
    wait_way(&mut mesh, a, &[a, c, d]);
    mesh.kill(c);
    let packet = packet(&mesh, a);
    mesh.run_for(seconds(60));
    let by_b = way(&mut mesh, a, &packet);
    assert!(by_b.contains(&b) && by_b.last() == Some(&d), "{by_b:?}");
}

#[test]
fn a_path_that_grows_slow_is_left_and_taken_again() {
    let paths = vec![candidate(1, &["b"], "d"), candidate(2, &["c"], "d")];
    let probe = PolicyProbe { interval: seconds(1), max_rtt: Some(millis(100)), max_loss: 30 };
    let probed = Policy { probe: Some(probe), ..with_paths(paths) };
    let (mut mesh, [a, b, c, d]) = mesh(63, probed, |_| {});
    wait_way(&mut mesh, a, &[a, b, d]);
    // Routing still reaches `b`: only the probes know that the path takes too long.
    for other in [a, c, d] {
        mesh.set_link(b, other, rtt(150));
    }
    wait_way(&mut mesh, a, &[a, c, d]);
    let status = mesh.status(a).expect("it runs");
    assert_eq!(status.policies[0].remark.as_deref(), Some("path 2 of 2"), "{:?}", status.policies);
    for other in [a, c, d] {
        mesh.set_link(b, other, rtt(20));
    }
    wait_way(&mut mesh, a, &[a, b, d]);
}

#[test]
fn a_direct_link_is_taken_where_it_is_asked_for() {
    let mut loose = policy("several", NETWORK, &["b", "c"], "d");
    let (mut mesh, [a, b, c, d]) = mesh(64, loose.clone(), |_| {});
    mesh.set_link(b, c, rtt(400));
    let packet = packet(&mesh, a);
    let mut round_about = Vec::new();
    let found = (0..60).any(|_| {
        round_about = way(&mut mesh, a, &packet);
        round_about.len() == 5 && round_about.starts_with(&[a, b]) && round_about.ends_with(&[c, d])
    });
    assert!(found, "between two stops the mesh finds the fastest way, not {round_about:?}");

    loose.candidates[0].via.iter_mut().for_each(|stop| stop.strict = true);
    loose.candidates[0].exit_strict = true;
    let (mut mesh, [a, b, c, d]) = self::mesh(65, loose, |_| {});
    mesh.set_link(b, c, rtt(400));
    mesh.run_for(seconds(60));
    let packet = self::packet(&mesh, a);
    assert_eq!(way(&mut mesh, a, &packet), [a, b, c, d]);
    // Without the link between them there is no such path, though both can be reached.
    mesh.set_link(b, c, LinkSettings { loss: 1.0, ..rtt(20) });
    mesh.run_for(seconds(60));
    let stuck = way(&mut mesh, a, &packet);
    assert!(!stuck.contains(&c), "{stuck:?}");
    // The first stop has to be next to this node.
    mesh.set_link(a, b, LinkSettings { loss: 1.0, ..rtt(20) });
    mesh.run_for(seconds(60));
    assert_eq!(way(&mut mesh, a, &packet), [a]);
    let reason = mesh.status(a).expect("it runs").policies[0].reason.clone();
    assert_eq!(reason.as_deref(), Some("there is no direct link to b"));
}

/// Every node has a compressed SID.
fn numbered(settings: &mut Settings) {
    (1..).zip(&mut settings.nodes).for_each(|(number, node)| node.usid = Some(number));
}

/// Octets of the datagrams of one packet on its way.
fn lengths(mesh: &mut Simulation, from: NodeId, packet: &Packet) -> Vec<usize> {
    let sent = mesh.send(from, packet);
    mesh.run_for(seconds(2));
    mesh.journey(sent).hops.iter().map(|hop| hop.length).collect()
}

#[test]
fn stops_with_compressed_sids_stand_in_one_address() {
    let scenic = policy("scenic", NETWORK, &["b", "c", "b"], "d");
    let (mut mesh, [a, b, c, d]) = mesh(66, scenic.clone(), numbered);
    let packet = packet(&mesh, a);
    assert_eq!(way(&mut mesh, a, &packet), [a, b, c, b, d]);
    // One IPv6 header on the whole way.
    let inner = 28 + packet.payload;
    assert_eq!(lengths(&mut mesh, a, &packet), [esp::sealed_len(40 + inner); 4]);

    // One without a number, and the packets carry the list.
    let but_one = |settings: &mut Settings| {
        numbered(settings);
        settings.nodes[2].usid = None;
    };
    let (mut mesh, [a, b, c, d]) = self::mesh(67, scenic, but_one);
    assert_eq!(way(&mut mesh, a, &packet), [a, b, c, b, d]);
    assert_eq!(lengths(&mut mesh, a, &packet), [esp::sealed_len(96 + inner); 4]);
}

/// All nodes know one key, and take lists only if they are signed.
fn suspicious(settings: &mut Settings) {
    settings.hmac_keys = vec![HmacKeyFile { id: 7, file: "the secret of all".into() }];
    settings.require_hmac_from = settings.nodes.iter().map(|node| node.name.clone()).collect();
    numbered(settings);
}

#[test]
fn signed_lists_pass_and_others_do_not() {
    let scenic = policy("scenic", NETWORK, &["b", "c", "b"], "d");
    let signed = Policy { hmac: Some(7), ..scenic.clone() };
    let (mut mesh, [a, b, c, d]) = mesh(68, signed.clone(), suspicious);
    let packet = packet(&mesh, a);
    assert_eq!(way(&mut mesh, a, &packet), [a, b, c, b, d]);
    // A signature needs a header to stand in: nothing is compressed.
    let inner = 28 + packet.payload;
    assert_eq!(lengths(&mut mesh, a, &packet), [esp::sealed_len(96 + 40 + inner); 4]);

    let (mut mesh, [a, b, ..]) = self::mesh(69, scenic, suspicious);
    assert_eq!(way(&mut mesh, a, &packet), [a, b, a], "unsigned: refused, and told so");
    assert!(mesh.dropped(b, DropReason::SegmentListUnsigned) > 0, "{:?}", mesh.drops(b));

    let other_secret = |settings: &mut Settings| {
        suspicious(settings);
        if settings.name.common_name == "a" {
            settings.hmac_keys[0].file = "a secret of its own".into();
        }
    };
    let (mut mesh, [a, b, ..]) = self::mesh(70, signed, other_secret);
    assert_eq!(way(&mut mesh, a, &packet), [a, b, a]);
    assert!(mesh.dropped(b, DropReason::SegmentListUnsigned) > 0, "{:?}", mesh.drops(b));
}

#[test]
fn a_segment_answers_a_ping() {
    let (mut mesh, [a, _, c, _]) = mesh(71, policy("scenic", NETWORK, &["b"], "d"), numbered);
    let locator = mesh.address(c).to_string();
    for function in ["e", "46"] {
        let node = format!("{}{function}", locator.trim_end_matches('1'));
        let request =
            Request::Ping { node: node.clone(), via: Vec::new(), count: 3, interval_ms: 10, timeout_ms: 500 };
        let Some(Reply::Ping(report)) = mesh.ask(a, &request, seconds(5)) else { panic!("no report") };
        let answered = report.replies.iter().filter(|reply| reply.rtt_ms.is_some()).count();
        assert_eq!(answered, 3, "{node}: {report:?}");
    }
}

#[test]
fn a_policy_takes_what_it_names_and_nothing_else() {
    let named = Policy {
        protocol: Some(17),
        ports: vec![443..=443, 8000..=8100],
        source_ports: vec![40_000..=40_000],
        dscp: vec![46],
        ..policy("named", NETWORK, &["b"], "d")
    };
    let (mut mesh, [a, b, _, d]) = mesh(72, named, |_| {});
    let fitting = Packet { traffic_class: 46 << 2 | 1, ..packet(&mesh, a).to_port(443) };
    assert_eq!(way(&mut mesh, a, &fitting), [a, b, d]);
    assert_eq!(way(&mut mesh, a, &fitting.to_port(8100)), [a, b, d]);
    let others = [
        fitting.to_port(444),
        fitting.to_port(8101),
        Packet { source_port: 40_001, ..fitting },
        Packet { traffic_class: 0, ..fitting },
    ];
    for other in others {
        assert_eq!(way(&mut mesh, a, &other), [a, d], "{other:?}");
    }
}
