//! Emulated links between real network namespaces. Needs root, and says so where it is missing.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use lab::{Host, Link, LinkSettings, Pinger, ProbeFilter, TcpPump, UdpStream, World};
use support::alone;

const PATIENCE: Duration = Duration::from_secs(5);

fn pair(settings: LinkSettings) -> (World, Host, Host, Link) {
    let world = World::new().unwrap();
    let (a, b) = (world.host("a").unwrap(), world.host("b").unwrap());
    let link = world.link(&a, &b, settings).unwrap();
    (world, a, b, link)
}

/// The median round trip over its nominal value, for a ping of 40 probes.
fn ratio(from: &Host, target: IpAddr, nominal_ms: f64) -> f64 {
    let report = Pinger { count: Some(40), ..Pinger::new(target) }.run(from).unwrap();
    assert_eq!(report.received, 40, "{report:?}");
    report.median().unwrap().as_secs_f64() * 1000.0 / nominal_ms
}

#[test]
fn delay_is_what_was_set_and_changes_at_run_time() {
    let _alone = alone();
    let (_world, a, _b, link) = pair(LinkSettings::with_rtt_ms(40));
    let (v4, v6) = (link.b().v4.unwrap().into(), link.b().v6.unwrap().into());
    for target in [v4, v6] {
        let ratio = ratio(&a, target, 40.0);
        assert!((1.0..1.25).contains(&ratio), "{target}: {ratio} times the delay");
    }
    link.set(LinkSettings::with_rtt_ms(80)).unwrap();
    let doubled = ratio(&a, v4, 80.0);
    assert!((1.0..1.25).contains(&doubled), "{doubled} times the delay");
    // One direction alone: 5 ms there, 40 ms back.
    link.set_towards("b", LinkSettings::with_rtt_ms(10)).unwrap();
    let uneven = ratio(&a, v4, 45.0);
    assert!((1.0..1.25).contains(&uneven), "{uneven} times the delay");
}

#[test]
fn loss_is_what_was_set() {
    let _alone = alone();
    let (_world, a, _b, link) = pair(LinkSettings::PERFECT);
    link.set_towards("b", LinkSettings { loss: 0.3, ..LinkSettings::PERFECT }).unwrap();
    let interval = Duration::from_millis(1);
    let target = link.b().v4.unwrap().into();
    let pinger =
        Pinger { count: Some(1000), interval, patience: Duration::from_millis(300), ..Pinger::new(target) };
    let report = pinger.run(&a).unwrap();
    assert!((0.2..0.4).contains(&report.loss()), "loss {}", report.loss());
    let counters = link.counters_towards("b").unwrap();
    // The host's own multicast reports may be among the lost.
    let others = counters.lost - (report.sent - report.received);
    assert!(others < 20, "only the emulator lost any: {counters:?}, {report:?}");
}

#[test]
fn a_dead_direction_leaves_a_gap_of_its_length() {
    let _alone = alone();
    let (_world, a, b, link) = pair(LinkSettings::with_rtt_ms(10));
    let target = SocketAddr::new(link.b().v4.unwrap().into(), 7000);
    let stream = UdpStream { target, source: None, packets_per_second: 500.0, payload: 200 };
    let stream = stream.start(&a, &b).unwrap();
    lab::wait_until(PATIENCE, "the first datagrams", || stream.received() > 20).unwrap();
    link.set_towards(&b, LinkSettings::DEAD).unwrap();
    let (start, before) = (std::time::Instant::now(), stream.sent());
    lab::wait_until(PATIENCE, "datagrams to be lost", || stream.sent() >= before + 150).unwrap();
    link.set_towards(&b, LinkSettings::with_rtt_ms(10)).unwrap();
    let dead = start.elapsed();
    let received = stream.received();
    lab::wait_until(PATIENCE, "datagrams after the gap", || stream.received() > received + 20).unwrap();
    let report = stream.stop(Duration::from_millis(100)).unwrap();
    assert!(report.lost() >= 140, "{report:?}");
    assert_eq!((report.duplicates, report.reordered), (0, 0));
    assert!(report.longest_gap >= dead.mul_f64(0.8), "{report:?} in {dead:?}");
    let (shortest, ..) = report.delay.unwrap();
    assert!((4.9..8.0).contains(&(shortest.as_secs_f64() * 1e3)), "one way takes 5 ms, not {shortest:?}");
}

#[test]
fn a_rate_limit_holds() {
    let _alone = alone();
    let settings = LinkSettings { rate: Some(50_000_000), ..LinkSettings::with_rtt_ms(4) };
    let (_world, a, b, link) = pair(settings);
    let target = SocketAddr::new(link.b().v4.unwrap().into(), 7001);
    let report = TcpPump { duration: Duration::from_secs(1), ..TcpPump::new(target) }.run(&a, &b).unwrap();
    let mbps = report.gbps() * 1000.0;
    assert!((25.0..52.0).contains(&mbps), "{mbps} Mbit/s through a link of 50");
}

#[test]
fn super_frames_pass_whole() {
    let _alone = alone();
    let (_world, a, b, link) = pair(LinkSettings::PERFECT);
    let interfaces: [IpAddr; 2] = [link.b().v4.unwrap().into(), link.b().v6.unwrap().into()];
    for address in interfaces {
        let target = SocketAddr::new(address, 7002);
        let report = TcpPump { duration: Duration::from_millis(300), ..TcpPump::new(target) };
        assert!(report.run(&a, &b).unwrap().bytes > 0);
    }
    let counters = link.counters_towards("b").unwrap();
    assert!(counters.longest > 1514, "{counters:?}");
    assert!(counters.super_frames > 0 && counters.frames > counters.super_frames * 2, "{counters:?}");
    assert_eq!(counters.lost, 0);
}

#[test]
fn udp_trains_pass_whole_and_are_logged_as_datagrams() {
    let _alone = alone();
    let (world, a, b, link) = pair(LinkSettings::PERFECT);
    let target = SocketAddr::new(link.b().v4.unwrap().into(), 7003);
    let receiver = b.within(|| std::net::UdpSocket::bind(target).unwrap()).unwrap();
    receiver.set_read_timeout(Some(PATIENCE)).unwrap();
    world.probe_log().start(ProbeFilter::UdpPayload(500..=1000));
    a.within(|| support::send_train(target, 10_500, 1000)).unwrap();
    let mut buffer = [0; 2000];
    let lengths: Vec<usize> = (0..11).map(|_| receiver.recv(&mut buffer).unwrap()).collect();
    assert_eq!(lengths, [[1000; 10].as_slice(), &[500]].concat());
    let counters = link.counters_towards("b").unwrap();
    assert_eq!((counters.super_frames, counters.longest), (1, 10_542), "{counters:?}");
    let log = world.probe_log().sightings();
    assert_eq!(log.iter().map(|seen| seen.udp_payload.unwrap()).collect::<Vec<_>>(), lengths);
    assert!(log.iter().all(|seen| (&*seen.from, &*seen.to) == ("a", "b")));
}

#[test]
fn a_segment_has_a_delay_for_each_pair() {
    let _alone = alone();
    let world = World::new().unwrap();
    let internet = world.segment("internet").unwrap();
    let cities = ["tokyo", "paris", "quito"].map(|name| world.host(name).unwrap());
    let [tokyo, paris, quito] = &cities;
    let addresses = [tokyo, paris, quito].map(|host| internet.attach(host).unwrap().v6.unwrap().into());
    internet.set(tokyo, paris, LinkSettings::with_rtt_ms(60)).unwrap();
    internet.set("tokyo", "quito", LinkSettings::with_rtt_ms(30)).unwrap();
    for (city, nominal) in [(1, 60.0), (2, 30.0)] {
        let ratio = ratio(tokyo, addresses[city], nominal);
        assert!((1.0..1.3).contains(&ratio), "{ratio} times the delay of {nominal} ms");
    }
    internet.set_station(quito, LinkSettings::DEAD).unwrap();
    let patience = Duration::from_millis(100);
    let report = Pinger { patience, ..Pinger::new(addresses[2]) }.run(tokyo).unwrap();
    assert_eq!(report.received, 0);
    assert!(internet.set("tokyo", "oslo", LinkSettings::PERFECT).is_err());
}

#[test]
fn a_veth_pair_joins_two_hosts() {
    let _alone = alone();
    let world = World::new().unwrap();
    let (a, b) = (world.host("a").unwrap(), world.host("b").unwrap());
    let veth = world.veth(&a, &b).unwrap();
    for target in [IpAddr::from(veth.b.v4.unwrap()), veth.b.v6.unwrap().into()] {
        assert_eq!(Pinger::new(target).run(&a).unwrap().received, 10);
    }
}

#[test]
fn a_capture_holds_whole_valid_frames() {
    let _alone = alone();
    let (world, a, b, link) =
        pair(LinkSettings { jitter: Duration::from_millis(1), ..LinkSettings::PERFECT });
    let path = world.directory().join("link.pcap");
    let capture = link.capture(&path).unwrap();
    let target = SocketAddr::new(link.b().v4.unwrap().into(), 7004);
    TcpPump { duration: Duration::from_millis(100), ..TcpPump::new(target) }.run(&a, &b).unwrap();
    a.within(|| support::send_train(target, 10_500, 1000)).unwrap();
    assert_eq!(Pinger::new(link.b().v6.unwrap().into()).run(&a).unwrap().received, 10);
    let frames = capture.finish().unwrap();
    let seen = support::read_capture(&path);
    assert_eq!(seen.len() as u64, frames);
    assert!(seen.iter().all(|frame| frame.len() <= 1514), "no frame is longer than the MTU allows");
    let trains = seen.iter().filter(|frame| frame.len() == 1042).count();
    assert_eq!(trains, 10, "the train of 10500 bytes is ten datagrams of 1000 and one of 500");
    support::assert_checksums(&seen);
}
