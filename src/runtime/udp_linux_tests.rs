//! Real sockets on the loopback interface.

use super::device::UdpTransport;
use super::udp_linux::{SocketConfig, SocketNote, UdpSocketLinux};
use crate::forwarding::{SocketIndex, TrainRoute, Transmit};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::fd::AsFd;

fn bind(address: &str) -> UdpSocketLinux {
    UdpSocketLinux::bind(&SocketConfig::new(address.parse().unwrap())).unwrap()
}

fn route(from: &UdpSocketLinux, to: &UdpSocketLinux) -> TrainRoute {
    TrainRoute {
        link: None,
        socket: SocketIndex(0),
        local: from.local_address().ip(),
        remote: to.local_address(),
        ecn: 2,
        fragment: false,
        single: false,
    }
}

/// Everything that arrives until `octets` have.
fn receive(socket: &mut UdpSocketLinux, octets: usize) -> (Vec<u8>, Vec<super::Datagrams>) {
    let mut buffer = vec![0; 65_536];
    let (mut contents, mut all) = (Vec::new(), Vec::new());
    while contents.len() < octets {
        let mut ready = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
        assert_eq!(poll(&mut ready, PollTimeout::from(5000u16)).unwrap(), 1, "nothing arrives");
        let datagrams = socket.receive(&mut buffer).unwrap();
        contents.extend_from_slice(&buffer[..datagrams.len]);
        all.push(datagrams);
    }
    (contents, all)
}

fn train_crosses(address: &str, single: bool) {
    let (mut from, mut to) = (bind(address), bind(address));
    let contents: Vec<u8> = (0..30 * 1000 + 77u32).map(|index| (index / 7) as u8).collect();
    let route = TrainRoute { single, ..route(&from, &to) };
    from.send(&Transmit { contents: &contents, segment: 1000, route }).unwrap();
    let (got, all) = receive(&mut to, contents.len());
    assert_eq!(got, contents);
    for datagrams in &all {
        assert!(datagrams.segment == 1000 || datagrams.len == 77);
        assert_eq!(datagrams.remote, from.local_address());
        assert_eq!(datagrams.local, Some(to.local_address().ip()));
        assert_eq!(datagrams.ecn, 2);
        assert!(datagrams.stamp.is_some());
    }
    if single {
        assert_eq!(all.len(), 31);
    }
}

#[test]
fn a_source_that_the_host_has_lost_is_not_insisted_on() {
    for (any, here, lost) in [("0.0.0.0:0", "127.0.0.1:0", "192.0.2.1"), ("[::]:0", "[::1]:0", "2001:db8::1")]
    {
        if std::net::UdpSocket::bind(here).is_err() {
            continue; // A host without IPv6.
        }
        for segment in [500, 1000] {
            let (mut from, mut to) = (bind(any), bind(here));
            let lost: IpAddr = lost.parse().unwrap();
            let route = TrainRoute { local: lost, ..route(&from, &to) };
            from.send(&Transmit { contents: &[7; 1000], segment, route }).unwrap();
            let (got, all) = receive(&mut to, 1000);
            assert_eq!(got, [7; 1000]);
            assert_ne!(all[0].remote.ip(), lost);
        }
    }
}

#[test]
fn a_train_crosses_over_ipv4() {
    train_crosses("127.0.0.1:0", false);
    train_crosses("127.0.0.1:0", true);
}

#[test]
fn a_train_crosses_over_ipv6() {
    if std::net::UdpSocket::bind("[::1]:0").is_err() {
        return; // A host without IPv6.
    }
    train_crosses("[::1]:0", false);
    train_crosses("[::1]:0", true);
}

#[test]
fn the_longest_train_fits_one_send() {
    let (mut from, mut to) = (bind("127.0.0.1:0"), bind("127.0.0.1:0"));
    let contents = vec![7; 63 * 1023];
    from.send(&Transmit { contents: &contents, segment: 1023, route: route(&from, &to) }).unwrap();
    assert_eq!(receive(&mut to, contents.len()).0, contents);
}

#[test]
fn a_datagram_that_is_fragmented_arrives_whole() {
    let (mut from, mut to) = (bind("127.0.0.1:0"), bind("127.0.0.1:0"));
    let route = TrainRoute { fragment: true, ..route(&from, &to) };
    from.send(&Transmit { contents: &[9; 2000], segment: 1000, route }).unwrap();
    assert_eq!(receive(&mut to, 2000).1.len(), 2, "one by one");
}

#[test]
fn an_empty_socket_would_block_and_an_impossible_address_is_an_error() {
    let mut socket = bind("127.0.0.1:0");
    let error = socket.receive(&mut [0; 100]).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
    let remote = SocketAddr::from((Ipv6Addr::LOCALHOST, 9));
    let route =
        TrainRoute { remote, local: IpAddr::from([0, 0, 0, 0]), ..route(&socket, &bind("127.0.0.1:0")) };
    let error = socket.send(&Transmit { contents: &[1], segment: 1, route }).unwrap_err();
    assert_eq!(error.done, 0);
}

#[test]
fn a_taken_port_is_refused() {
    let first = bind("127.0.0.1:0");
    let error = UdpSocketLinux::bind(&SocketConfig::new(first.local_address())).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
}

#[test]
fn switched_off_offloads_are_noted_and_not_needed() {
    let config = SocketConfig {
        segmentation: false,
        coalescing: false,
        buffer: 1 << 30,
        ..SocketConfig::new("127.0.0.1:0".parse().unwrap())
    };
    let mut from = UdpSocketLinux::bind(&config).unwrap();
    let mut to = UdpSocketLinux::bind(&config).unwrap();
    assert!(from.notes().iter().any(|note| matches!(note, SocketNote::NoSegmentation(_))));
    assert!(from.notes().iter().any(|note| matches!(note, SocketNote::NoCoalescing(_))));
    assert!(from.notes().iter().all(|note| !note.to_string().is_empty()));
    from.send(&Transmit { contents: &[3; 250], segment: 100, route: route(&from, &to) }).unwrap();
    assert_eq!(receive(&mut to, 250).1.len(), 3);
}
