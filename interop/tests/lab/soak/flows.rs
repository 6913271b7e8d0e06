//! What must never stop for good, nor arrive changed: connections and streams between all sites.

use crate::scene::{PATIENCE, Scene};
use lab::{EchoServer, RunningUdpStream, TcpEcho, UdpStream};
use std::net::SocketAddr;
use std::time::Duration;

/// Blocks that a connection must carry, and datagrams that must arrive, to count as going on.
const PROGRESS: u64 = 5;

/// A connection from each site to the next one over IPv4, and a stream to the one after it over IPv6.
pub(super) struct Flows {
    connections: Vec<(String, TcpEcho)>,
    streams: Vec<(String, RunningUdpStream)>,
    _servers: Vec<EchoServer>,
}

impl Flows {
    pub(super) fn start(scene: &Scene) -> Self {
        let sites = &scene.internet.sites;
        let mut flows = Self { connections: Vec::new(), streams: Vec::new(), _servers: Vec::new() };
        for (index, from) in sites.iter().enumerate() {
            let (next, second) = (&sites[(index + 1) % sites.len()], &sites[(index + 2) % sites.len()]);
            let port = 7000 + u16::try_from(index).unwrap();
            let name = |to: &str| format!("{} to {to}", from.host.name());
            let target = SocketAddr::new(next.inside(), port);
            flows._servers.push(EchoServer::start(&next.host, target).unwrap());
            // Of many packets each, so that super-packets and the path MTU matter.
            let source = Some(from.inside());
            let echo = TcpEcho::start_from(&from.host, source, target, 20_000, Duration::from_millis(100));
            flows.connections.push((name(next.host.name()), echo.unwrap()));
            let target = SocketAddr::new(second.inside_v6(), port);
            let stream =
                UdpStream { target, source: Some(from.inside_v6()), packets_per_second: 100.0, payload: 700 };
            flows.streams.push((name(second.host.name()), stream.start(&from.host, &second.host).unwrap()));
        }
        flows
    }

    fn counts(&self) -> Vec<(String, u64)> {
        let connections = self.connections.iter().map(|(name, echo)| (format!("TCP {name}"), echo.blocks()));
        let streams = self.streams.iter().map(|(name, stream)| (format!("UDP {name}"), stream.received()));
        connections.chain(streams).collect()
    }

    /// Fails if one does not go on.
    pub(super) fn all_go_on(&self, scene: &Scene) {
        let before = self.counts();
        let stuck = || -> Vec<String> {
            let now = self.counts();
            let pairs = before.iter().zip(&now);
            pairs
                .filter(|((_, then), (_, now))| *now < then + PROGRESS)
                .map(|(_, (name, _))| name.clone())
                .collect()
        };
        let waited = lab::wait_until(PATIENCE, "all flows", || stuck().is_empty());
        assert!(waited.is_ok(), "stuck: {:?}\n{}", stuck(), scene.mesh.describe());
    }

    /// Ends all; fails if a byte was wrong. Returns a summary.
    pub(super) fn finish(self) -> String {
        let (mut bytes, mut longest) = (0, Duration::ZERO);
        for (name, echo) in self.connections {
            let report = echo.stop().unwrap();
            assert_eq!(report.failure, None, "TCP {name}");
            bytes += report.bytes;
            longest = longest.max(report.longest_wait);
        }
        let (mut sent, mut received) = (0, 0);
        for (name, stream) in self.streams {
            let report = stream.stop(Duration::from_millis(500)).unwrap();
            // Links duplicate; the tunnels' replay protection takes that back.
            assert_eq!((report.corrupted, report.duplicates), (0, 0), "UDP {name}: {report:?}");
            sent += report.sent;
            received += report.received;
        }
        format!("TCP: {bytes} octets, longest wait {longest:?}; UDP: {received} of {sent} datagrams arrived")
    }
}
