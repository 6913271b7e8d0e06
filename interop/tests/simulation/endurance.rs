//! What happens to nodes that run for long: rekeys, crashes, chaos.

use super::*;

/// Two nodes that rekey all the time.
fn restless(seed: u64, link: LinkSettings) -> (Simulation, [NodeId; 2]) {
    let mut mesh = Simulation::new(seed);
    let restless = |name: &str| {
        Blueprint::new(name).adjusted(|settings| {
            settings.timers.child_rekey = seconds(3);
            settings.timers.ike_rekey = seconds(8);
        })
    };
    let nodes = [mesh.add(restless("a")), mesh.add(restless("b"))];
    mesh.set_all_links(link);
    mesh.start_all();
    mesh.run_until(seconds(10), Simulation::is_connected).expect("a mesh");
    mesh.run_for(seconds(2));
    (mesh, nodes)
}

fn assert_rekeys_lose_nothing(seed: u64, link: LinkSettings) {
    let (mut mesh, [a, b]) = restless(seed, link);
    // The first ESP packet may overtake the IKE message that its keys come with; afterwards nothing may be lost.
    let before = cryptographic_drops(&mesh);
    let there = mesh.stream(a, mesh.packet(a, b), millis(5));
    let back = mesh.stream(b, mesh.packet(b, a), millis(5));
    mesh.run_for(seconds(60));
    mesh.stop_stream(there);
    mesh.stop_stream(back);
    mesh.run_for(seconds(1));
    let rekeys = |kind: &str| {
        count_events(
            &mesh,
            a,
            |event| matches!(event, NodeEvent::Rekeyed { kind: found, .. } if *found == kind),
        )
    };
    let (children, ikes) = (rekeys("child"), rekeys("ike"));
    assert!(children >= 15 && ikes >= 5, "{children} CHILD and {ikes} IKE rekeys");
    for stream in [there, back] {
        let report = mesh.report(stream);
        assert_eq!((report.missing.as_slice(), report.duplicates), ([].as_slice(), 0));
    }
    assert_eq!(cryptographic_drops(&mesh), before);
    for node in [a, b] {
        assert_eq!(mesh.associations(node).expect("it runs").associations.len(), 1);
    }
}

/// Keys that carried what they may, in packets or in octets, are replaced long before their age says so: at the sender's
/// wish, and where a peer does not count, at the receiver's.
#[test]
fn keys_that_carried_enough_are_replaced_and_nothing_is_lost() {
    for (seed, (packets, bytes)) in (42..).zip([(2_000, u64::MAX), (u64::MAX, 200_000)]) {
        for counts in [["a", "b"], ["a", "a"], ["b", "b"]] {
            let mut mesh = Simulation::new(seed);
            let node = |name: &str| {
                let counts = counts.contains(&name);
                Blueprint::new(name).adjusted(move |settings| {
                    if counts {
                        settings.timers.child_rekey_packets = packets;
                        settings.timers.child_rekey_bytes = bytes;
                    }
                })
            };
            let nodes @ [a, b] = [mesh.add(node("a")), mesh.add(node("b"))];
            mesh.set_all_links(rtt(40));
            mesh.start_all();
            mesh.run_until(seconds(10), Simulation::is_connected).expect("a mesh");
            mesh.run_for(seconds(2));
            let before = cryptographic_drops(&mesh);
            let stream = mesh.stream(a, mesh.packet(a, b), millis(2));
            mesh.run_for(seconds(20));
            mesh.stop_stream(stream);
            mesh.run_for(seconds(1));
            let rekeyed = count_events(
                &mesh,
                a,
                |event| matches!(event, NodeEvent::Rekeyed { kind, .. } if *kind == "child"),
            );
            assert!((3..40).contains(&rekeyed), "{counts:?} count {packets} {bytes}: {rekeyed} rekeys");
            let report = mesh.report(stream);
            assert_eq!((report.missing.as_slice(), report.duplicates), ([].as_slice(), 0));
            assert_eq!(cryptographic_drops(&mesh), before);
            for node in nodes {
                assert_eq!(mesh.associations(node).expect("it runs").associations[0].children.len(), 1);
            }
        }
    }
}

#[test]
fn rekeys_lose_no_packet() {
    assert_rekeys_lose_nothing(40, rtt(40));
}

#[test]
fn rekeys_lose_no_packet_on_a_long_link_that_reorders() {
    let link = LinkSettings { reorder: 0.2, reorder_by: millis(7), jitter: millis(3), ..rtt(300) };
    assert_rekeys_lose_nothing(41, link);
}

#[test]
fn on_a_lossy_link_rekeys_lose_only_what_the_link_loses() {
    let (mut mesh, [a, b]) = restless(42, LinkSettings { loss: 0.05, ..rtt(40) });
    let mut sent = Vec::new();
    for _ in 0..6000 {
        sent.push(mesh.send(a, &mesh.packet(a, b)));
        sent.push(mesh.send(b, &mesh.packet(b, a)));
        mesh.run_for(millis(10));
    }
    mesh.run_for(seconds(1));
    for packet in sent {
        let journey = mesh.journey(packet);
        let excused = journey.hops.iter().any(|hop| hop.lost);
        assert!(excused || journey.arrival().is_some(), "lost in a node: {journey:?}");
    }
}

#[test]
fn a_node_that_crashes_is_reachable_soon_after_it_is_back() {
    for (seed, absent, disk) in [(43, 1, true), (44, 5, false), (45, 60, true), (46, 600, false)] {
        let (mut mesh, nodes) = full_mesh(seed, 3, rtt(40));
        let [a, b, c] = [nodes[0], nodes[1], nodes[2]];
        converge(&mut mesh);
        mesh.kill(b);
        if !disk {
            mesh.lose_disk(b);
        }
        mesh.run_for(seconds(absent));
        mesh.start(b);
        let time = mesh.run_until(seconds(60), Simulation::is_connected);
        let time = time.unwrap_or_else(|| panic!("absent {absent} s:\n{}", mesh.log().join("\n")));
        assert!(time < seconds(2), "connected {time:?} after the restart, absent {absent} s");
        mesh.run_for(seconds(1));
        for (from, to) in [(a, b), (b, a), (b, c), (a, c)] {
            assert_eq!(mesh.latency(from, to), Some(millis(20)), "absent {absent} s");
        }
        mesh.run_for(seconds(90));
        for node in nodes {
            assert_eq!(mesh.associations(node).expect("it runs").associations.len(), 2, "absent {absent} s");
        }
    }
}

/// Only the other end can dial here, and it does not know that anything happened until it is told that its packets
/// cannot be opened any more. Its next question whether the peer lives would come after ten seconds, and some seconds go
/// by in any case before a peer is given up and dialled again.
#[test]
fn a_node_that_cannot_dial_tells_that_it_lost_its_keys() {
    let mut mesh = Simulation::new(48);
    let (a, b) = (mesh.add(Blueprint::new("a").unpublished()), mesh.add(Blueprint::new("b")));
    mesh.set_all_links(rtt(40));
    mesh.start_all();
    mesh.run_until(seconds(10), Simulation::is_connected).expect("a mesh");
    mesh.run_for(seconds(5));
    mesh.kill(b);
    mesh.run_for(millis(100));
    mesh.start(b);
    let stream = mesh.stream(a, mesh.packet(a, b), millis(20));
    let time = mesh.run_until(seconds(60), Simulation::is_connected);
    mesh.stop_stream(stream);
    let time = time.expect("it is back");
    assert!(time < seconds(10), "connected {time:?} after the restart");
}

#[test]
fn a_node_that_stops_says_goodbye() {
    let (mut mesh, nodes) = full_mesh(47, 3, rtt(40));
    converge(&mut mesh);
    mesh.stop(nodes[1]);
    mesh.run_for(millis(50));
    assert_eq!(mesh.way(nodes[0], nodes[1]), None);
    assert_eq!(mesh.associations(nodes[0]).expect("it runs").associations.len(), 1);
    let pause = mesh.elapsed();
    mesh.run_for(seconds(60));
    mesh.start(nodes[1]);
    mesh.run_until(seconds(5), Simulation::is_connected).expect("it is back");
    assert!(mesh.elapsed() > pause);
}

/// Nodes and links fail at random for two minutes; when that ends the mesh becomes whole again.
#[test]
fn a_mesh_recovers_from_chaos() {
    for seed in 50..53 {
        let (mut mesh, nodes) = full_mesh(seed, 5, rtt(30));
        let mut random = Random::new(seed);
        let mut pick = |below: usize| usize::try_from(random.next_u64() % below as u64).unwrap_or(0);
        for _ in 0..40 {
            mesh.run_for(millis(pick(6000) as u64));
            let (node, other) = (nodes[pick(5)], nodes[pick(5)]);
            match pick(5) {
                0 if mesh.is_running(node) => mesh.kill(node),
                1 if mesh.is_running(node) => mesh.stop(node),
                0 | 1 => mesh.start(node),
                2 => mesh.set_link(node, other, LinkSettings::DEAD),
                3 => mesh.set_direction(node, other, LinkSettings { loss: 0.5, ..rtt(30) }),
                _ => mesh.set_link(node, other, rtt(pick(200) as u64)),
            }
        }
        for a in &nodes {
            nodes.iter().for_each(|b| mesh.set_direction(*a, *b, rtt(30)));
        }
        mesh.start_all();
        let time = mesh.run_until(seconds(180), Simulation::is_connected);
        assert!(time.is_some(), "seed {seed}: no mesh again:\n{}", mesh.log().join("\n"));
        mesh.run_for(seconds(180));
        for (a, b) in nodes.iter().flat_map(|a| nodes.iter().map(move |b| (*a, *b))).filter(|(a, b)| a != b) {
            assert_eq!(mesh.latency(a, b), Some(millis(15)), "seed {seed}: {:?}", mesh.way(a, b));
        }
        assert_only_ciphertext_on_the_underlay(&mesh);
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = |seed: u64| {
        let link = LinkSettings { loss: 0.1, jitter: millis(5), ..rtt(40) };
        let (mut mesh, nodes) = full_mesh(seed, 4, link);
        let _ = mesh.stream(nodes[0], mesh.packet(nodes[0], nodes[3]), millis(50));
        mesh.run_for(seconds(10));
        mesh.kill(nodes[2]);
        mesh.run_for(seconds(3));
        mesh.start(nodes[2]);
        mesh.run_for(seconds(10));
        mesh.trace()
    };
    let (first, second, other) = (run(60), run(60), run(61));
    let parted = first.iter().zip(&second).find(|(first, second)| first != second);
    assert_eq!(parted, None);
    assert_eq!(first.len(), second.len());
    assert_ne!(first, other);
}
