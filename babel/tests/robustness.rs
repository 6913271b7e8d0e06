//! Starvation, partition, retraction, restart, shutdown, import policy, IPv4.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests fail by panicking")]

mod support;

use std::{collections::BTreeSet, net::IpAddr, time::Duration};

use babel::{Event, ImportPolicy, ImportRefusal, InterfaceId, Prefix, RouteStatus, Seqno};
use support::topology::{Network, millis, prefix_of, router_id, seconds};

/// A square: 0–1–2 and 0–3–2, the second way longer.
fn square(seed: u64) -> Network {
    let mut network = Network::new(4, seed);
    network.link(0, 1, millis(20));
    network.link(1, 2, millis(20));
    network.link(0, 3, millis(100));
    network.link(3, 2, millis(100));
    network
}

#[test]
fn starvation_ends_with_a_newer_seqno() {
    // RFC 8966 §2.6: A is near S; after their link fails, the way by B is unfeasible, because B had announced a
    // longer way than A's.
    let mut network = Network::new(3, 1);
    let near = network.link(0, 2, millis(10));
    network.link(0, 1, millis(10));
    network.link(1, 2, millis(200));
    network.run(seconds(40));
    assert_eq!(network.path(1, 2), Some(vec![1, 0, 2]));
    network.set_up(near, false);
    let took = network.run_until(seconds(30), |n| n.path(0, 2) == Some(vec![0, 1, 2]));
    // The failure is noticed after three and a half Hellos.
    assert!(took.unwrap() < seconds(6), "{took:?}");
    assert_ne!(network.router(2).seqno(), Seqno(0), "the origin was asked for a newer number");
}

#[test]
fn starvation_behind_a_chain_is_resolved_hop_by_hop() {
    let mut network = Network::new(5, 2);
    let near = network.link(0, 4, millis(10));
    for index in 0..4 {
        network.link(index, index + 1, millis(60));
    }
    network.run(seconds(40));
    network.set_up(near, false);
    let took = network.run_until(seconds(30), |n| n.path(0, 4) == Some(vec![0, 1, 2, 3, 4]));
    assert!(took.unwrap() < seconds(7), "{took:?}");
}

#[test]
fn seqno_requests_do_not_multiply() {
    let mut network = Network::new(8, 3);
    for a in 0..8 {
        for b in 0..a {
            network.link(a, b, millis(20 + (a * b) as u64));
        }
    }
    network.run(seconds(30));
    let before = network.packets;
    network.crash(7);
    network.run(seconds(60));
    // 28 links, two ends, one Hello a second, and some updates.
    let rate = (network.packets - before) / 60;
    assert!(rate < 28 * 2 * 2, "{rate} packets a second");
    assert_eq!(network.path(0, 7), None);
}

#[test]
fn partition_and_heal() {
    let mut network = square(4);
    network.run(seconds(10));
    network.set_up(0, false);
    network.set_up(2, false);
    let took = network.run_until(seconds(60), |n| n.path(0, 2).is_none() && n.path(2, 0).is_none());
    assert!(took.unwrap() < seconds(10), "{took:?}");
    network.run(seconds(120));
    network.set_up(0, true);
    network.set_up(2, true);
    let healed = |n: &Network| n.path(0, 2) == Some(vec![0, 1, 2]) && n.path(2, 0) == Some(vec![2, 1, 0]);
    let took = network.run_until(seconds(60), healed);
    assert!(took.unwrap() < seconds(4), "{took:?}");
}

#[test]
fn withdrawn_prefix_disappears_everywhere_at_once() {
    let mut network = square(5);
    let lan: Prefix = Prefix::to("10.9.0.0/16".parse().unwrap());
    network.with_router(2, |router, now| router.announce(lan, now));
    network.run(seconds(10));
    assert!(network.selected(0, lan).is_some());
    network.with_router(2, |router, now| router.withdraw(lan, now));
    let took = network.run_until(seconds(10), |n| !n.next.contains_key(&(0, lan)));
    assert!(took.unwrap() < millis(200), "{took:?}");
    assert!(network.router(0).unreachable().any(|prefix| prefix == lan), "held");
    network.run(seconds(60));
    assert!(!network.next.keys().any(|(_, prefix)| *prefix == lan), "and it does not come back");
}

#[test]
fn lost_retraction_is_repeated() {
    let mut network = Network::new(2, 6);
    let link = network.link(0, 1, millis(20));
    network.run(seconds(10));
    network.links[link].loss = [1.0; 2];
    network.with_router(1, |router, now| router.withdraw(prefix_of(1), now));
    network.run(millis(200));
    network.links[link].loss = [0.0; 2];
    let took = network.run_until(seconds(10), |n| n.path(0, 1).is_none());
    assert!(took.unwrap() < seconds(1), "{took:?}");
}

#[test]
fn shutdown_moves_traffic_before_the_router_is_gone() {
    let mut network = square(7);
    network.run(seconds(10));
    assert_eq!(network.path(0, 2), Some(vec![0, 1, 2]));
    network.with_router(1, |router, now| router.shutdown(now));
    let moved = |n: &Network| n.next.get(&(0, prefix_of(2))) == Some(&3);
    let took = network.run_until(seconds(10), moved);
    // The other way is unfeasible until the origin, a round trip of 200 ms away, has a newer number.
    assert!(took.unwrap() < millis(300), "{took:?}");
    let idle = network.with_router(1, |router, _| router.poll_timeout());
    assert_eq!(idle, None);
}

#[test]
fn restart_with_a_lost_seqno_is_recovered_in_seconds() {
    let mut network = square(8);
    network.boot(2, Some(Seqno(40_000)));
    network.run(seconds(20));
    assert_eq!(network.selected(0, prefix_of(2)).unwrap().seqno, Seqno(40_000));
    network.boot(2, None);
    let took = network.run_until(seconds(60), |n| {
        n.routers[2].as_ref().unwrap().seqno().since(Seqno(40_000)) > 0 && n.path(0, 2).is_some()
    });
    assert!(took.unwrap() < seconds(3), "{took:?}");
    network.run(seconds(30));
    assert!(network.selected(0, prefix_of(2)).unwrap().seqno.is_newer_than(Seqno(40_000)));
}

#[test]
fn an_interface_that_is_added_again_keeps_its_routes() {
    let mut network = square(17);
    network.run(seconds(20));
    let config = |local: &str| babel::InterfaceConfig::new(local.parse().unwrap());
    network.with_router(1, |router, now| router.add_interface(InterfaceId(0), config("fe80::1:2"), now));
    network.run(seconds(5));
    let lost = |n: &Network| n.log.iter().any(|(_, _, event)| matches!(event, Event::RouteLost { .. }));
    assert!(!lost(&network) && network.path(0, 2) == Some(vec![0, 1, 2]));
    // Removed for a moment: the router itself loses the routes, its neighbours do not take it for a new one.
    network.with_router(1, |router, now| {
        router.remove_interface(InterfaceId(0), now);
        router.add_interface(InterfaceId(0), config("fe80::1:2"), now);
    });
    network.run(seconds(5));
    assert_eq!(network.changes(0, prefix_of(2), seconds(20)), 0);
    assert!(network.path(2, 0).is_some());
}

#[test]
fn restart_with_a_persisted_seqno_is_not_even_noticed_elsewhere() {
    let mut network = square(9);
    network.run(seconds(20));
    let seqno = network.router(2).seqno();
    network.boot(2, Some(seqno.plus(1)));
    network.run(seconds(5));
    assert!(network.path(0, 2).is_some());
    assert_eq!(network.router(2).seqno(), seqno.plus(1));
}

#[test]
fn an_identity_that_is_used_twice_is_reported() {
    let mut network = Network::new(2, 16);
    network.link(0, 1, millis(10));
    // Nothing is said about what may be an echo of a former life.
    network.run(seconds(700));
    let reported = |n: &Network| {
        n.log.iter().filter(|(_, _, event)| matches!(event, Event::DuplicateRouterId { .. })).count()
    };
    assert_eq!(reported(&network), 0);
    let update = "060a 0000 0000000000000001 08 12 0200 4000 0190 0001 0007 fd00007700000000";
    let update = support::captures::packet(&support::captures::hex(update));
    for _ in 0..5 {
        network.with_router(0, |router, now| {
            let source = "fe80::1:2".parse().unwrap();
            router.handle_packet(InterfaceId(0), source, true, &update, now, now).unwrap();
        });
    }
    assert_eq!(reported(&network), 1);
}

#[test]
fn seqno_grows_by_one_only() {
    let mut network = Network::new(2, 10);
    network.boot(0, Some(Seqno(65_535)));
    network.link(0, 1, millis(10));
    network.run(seconds(5));
    // A request that is far ahead, from a peer that lies: 2^16 wraps are not to be provoked.
    let request = "0a 16 0240 3039 4000 0000000000000001 fd00000000000000";
    let request = support::captures::packet(&support::captures::hex(request));
    network.with_router(0, |router, now| {
        let source = "fe80::1:2".parse().unwrap();
        router.handle_packet(InterfaceId(0), source, false, &request, now, now).unwrap();
    });
    assert_eq!(network.router(0).seqno(), Seqno(0));
}

#[test]
fn import_policy_refuses_mistakes() {
    let mut network = Network::new(2, 11);
    network.link(0, 1, millis(10));
    let net = |text: &str| Prefix::to(text.parse().unwrap());
    let refused = [
        ("0.0.0.0/0", ImportRefusal::DefaultRoute),
        ("::/0", ImportRefusal::DefaultRoute),
        ("192.168.7.5/32", ImportRefusal::OwnNetwork),
        ("203.0.113.0/24", ImportRefusal::ContainsEndpoint),
        ("fd5d:ac:0:9::1/128", ImportRefusal::ForeignLocator),
        ("10.66.1.0/24", ImportRefusal::Denied),
        ("127.0.0.0/8", ImportRefusal::NotRoutable),
    ];
    let policy = ImportPolicy {
        local_networks: vec!["192.168.7.0/24".parse().unwrap()],
        endpoints: BTreeSet::from(["203.0.113.9".parse::<IpAddr>().unwrap()]),
        locators: vec![
            ("fd5d:ac:0:9::/64".parse().unwrap(), router_id(5)),
            ("fd5d:ac:0:a::/64".parse().unwrap(), router_id(1)),
        ],
        denied: vec!["10.66.0.0/16".parse().unwrap()],
        ..ImportPolicy::default()
    };
    network.with_router(0, |router, now| router.set_import_policy(policy, now));
    for (prefix, _) in refused {
        network.with_router(1, |router, now| router.announce(net(prefix), now));
    }
    let accepted = ["198.51.100.0/24", "fd5d:ac:0:a::/64", "192.168.0.0/16", "10.0.0.0/8"];
    for prefix in accepted {
        network.with_router(1, |router, now| router.announce(net(prefix), now));
    }
    network.run(seconds(40));
    for (prefix, expected) in refused {
        assert_eq!(network.selected(0, net(prefix)), None, "{prefix}");
        let reasons: Vec<_> = network
            .log
            .iter()
            .filter_map(|(_, _, event)| match event {
                Event::Rejected { prefix: p, reason, .. } if *p == net(prefix) => Some(*reason),
                _ => None,
            })
            .collect();
        assert_eq!(reasons, vec![expected], "{prefix}: reported once");
    }
    for prefix in accepted {
        assert!(network.selected(0, net(prefix)).is_some(), "{prefix}");
    }
    // A laxer policy takes effect without waiting for the next periodic update.
    let lax = ImportPolicy { accept_default_routes: true, ..ImportPolicy::default() };
    network.with_router(0, |router, now| router.set_import_policy(lax, now));
    network.run(seconds(1));
    assert!(network.selected(0, net("0.0.0.0/0")).is_some());
}

#[test]
fn ipv4_goes_by_ipv6_or_by_ipv4_next_hops() {
    let mut network = Network::new(2, 12);
    let lan = Prefix::to("10.9.0.0/16".parse().unwrap());
    network.with_router(1, |router, now| router.announce(lan, now));
    network.link(0, 1, millis(10));
    network.run(seconds(2));
    assert_eq!(network.selected(0, lan).unwrap().next_hop, Some("fe80::1:2".parse().unwrap()));
    network.interface_config.local_ipv4 = Some("192.0.2.7".parse().unwrap());
    network.boot(1, None);
    network.with_router(1, |router, now| router.announce(lan, now));
    network.run(seconds(2));
    assert_eq!(network.selected(0, lan).unwrap().next_hop, Some("192.0.2.7".parse().unwrap()));
}

#[test]
fn source_specific_routes_are_routes_of_their_own() {
    let mut network = Network::new(3, 13);
    network.link(0, 1, millis(10));
    network.link(1, 2, millis(10));
    let anywhere = Prefix::to("2001:db8:5::/48".parse().unwrap());
    let some = |source: &str, destination: &str| {
        Prefix::from_to(source.parse().unwrap(), destination.parse().unwrap()).unwrap()
    };
    let specific = some("fd00:0:0:7::/64", "2001:db8:5::/48");
    let ipv4 = some("10.1.0.0/16", "198.51.100.0/24");
    network.with_router(2, |router, now| {
        router.announce(specific, now);
        router.announce(ipv4, now);
    });
    network.with_router(0, |router, now| router.announce(anywhere, now));
    network.run(seconds(5));
    assert_eq!(network.next.get(&(1, anywhere)), Some(&0));
    assert_eq!(network.next.get(&(1, specific)), Some(&2));
    assert_eq!(network.next.get(&(0, ipv4)), Some(&1));
    network.with_router(2, |router, now| router.withdraw(specific, now));
    network.run(seconds(2));
    assert_eq!(network.next.get(&(0, specific)), None);
    assert_eq!(network.next.get(&(1, anywhere)), Some(&0));
}

#[test]
fn two_thousand_prefixes_arrive_in_few_packets() {
    let mut network = Network::new(3, 14);
    for index in 0..2000 {
        let prefix = format!("10.{}.{}.0/24", index / 250, index % 250);
        let prefix = Prefix::to(prefix.parse().unwrap());
        network.with_router(0, |router, now| router.announce(prefix, now));
    }
    network.link(0, 1, millis(20));
    network.link(1, 2, millis(20));
    let all = |n: &Network| n.next.keys().filter(|(router, _)| *router == 2).count() == 2002;
    let took = network.run_until(seconds(10), all);
    assert!(took.unwrap() < seconds(1), "{took:?}");
    assert!(network.octets < 400_000, "{} octets", network.octets);
}

#[test]
fn reports_say_why() {
    let mut network = square(15);
    network.run(seconds(30));
    let now = network.now;
    let routes = network.router(0).routes(now);
    let status = |via: u32| {
        let mut found = routes.iter().filter(|report| report.prefix == prefix_of(2));
        found.find(|report| report.via.is_some_and(|(id, _)| id == InterfaceId(via))).unwrap().status
    };
    // The way by 3 is announced with a longer distance than ours.
    assert_eq!((status(0), status(2)), (RouteStatus::Best, RouteStatus::Unfeasible));
    assert_eq!(routes.first().unwrap().status, RouteStatus::Own);
    let neighbours = network.router(0).neighbours(now);
    let first = &neighbours[0];
    assert!(first.up && first.cost == first.txcost + first.rtt_cost && first.loss_percent == 0);
    assert_eq!(first.hello_history, 0xFFFF);
    assert!(first.rtt.unwrap().abs_diff(millis(20)) < Duration::from_micros(10));
    assert!(first.routes >= 2 && first.selected == 2, "{first:?}");
}
