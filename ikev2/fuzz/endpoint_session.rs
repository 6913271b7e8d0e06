//! Two endpoints and a network that does what the input says: deliver, drop, repeat, reorder, change, wait.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use ikev2::{Config, ConnectionConfig, ConnectionId, Ed25519Signer, Endpoint, Event, Identity, Path, Signer};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

const LINK: ConnectionId = ConnectionId(1);

struct Session {
    nodes: [Endpoint; 2],
    /// SPIs of CHILD SAs that each node receives on.
    children: [Vec<u32>; 2],
    /// Receiver and datagram, in order.
    flights: Vec<(usize, Vec<u8>)>,
    now: Instant,
}

/// Each record is an operation and its operand. Nothing may panic, and what is kept stays bounded.
pub fn check(octets: &[u8]) {
    let mut session = Session::new();
    let (records, _) = octets.as_chunks::<3>();
    for &[operation, a, b] in records.iter().take(2000) {
        session.perform(operation, a, b);
        session.collect();
    }
    for node in &session.nodes {
        assert!(node.associations().len() <= 600, "{}", node.associations().len());
    }
}

impl Session {
    #[allow(clippy::disallowed_methods, reason = "one instant to start from")]
    fn new() -> Self {
        let now = Instant::now();
        let nodes = [0u8, 1].map(|side| {
            let config = Config::new(Box::new(Ed25519Signer::from_seed(&[side; 32])));
            let mut node = Endpoint::new(config, ChaCha20Rng::from_seed([side; 32]));
            let peer = Ed25519Signer::from_seed(&[1 - side; 32]).public_key();
            let id = |side: u8| Identity::Fqdn(format!("{side}.test"));
            let mut connection = ConnectionConfig::new(id(side), id(1 - side), vec![peer]);
            connection.remote_address = Some(address(1 - side));
            connection.dial = side == 0;
            node.set_connection(LINK, connection, now);
            node
        });
        let mut session = Self { nodes, children: [vec![], vec![]], flights: Vec::new(), now };
        session.collect();
        session
    }

    fn perform(&mut self, operation: u8, a: u8, b: u8) {
        let node = usize::from(a & 1);
        let now = self.now;
        match operation % 12 {
            0..=3 => self.deliver(0),
            4 => self.deliver(usize::from(a)),
            5 => drop(self.take(usize::from(a))),
            6 => {
                if let Some(flight) = self.flights.get(usize::from(a)).cloned() {
                    self.flights.push(flight);
                }
            }
            7 => {
                if let Some((_, datagram)) = self.flights.first_mut() {
                    let at = usize::from(a) * 7 % datagram.len().max(1);
                    datagram[at] ^= b | 1;
                }
                self.deliver(0);
            }
            8 => {
                self.now += Duration::from_millis(u64::from(b) * 40);
                self.nodes.iter_mut().for_each(|node| node.handle_timeout(self.now));
            }
            9 => {
                if let Some(spi) = self.children[node].get(usize::from(b) % 4).copied() {
                    self.nodes[node].rekey_child(spi, now);
                }
            }
            10 => self.nodes[node].rekey_ike(LINK, now),
            _ => match b % 4 {
                0 => drop(self.nodes[node].dial(LINK, now)),
                1 => self.nodes[node].create_child(LINK, now),
                2 => self.children[node]
                    .first()
                    .copied()
                    .into_iter()
                    .for_each(|spi| self.nodes[node].delete_child(spi, now)),
                _ => self.nodes[node].handle_datagram(path(node, 4500), &[a; 40], now),
            },
        }
    }

    fn take(&mut self, index: usize) -> Option<(usize, Vec<u8>)> {
        (!self.flights.is_empty()).then(|| self.flights.remove(index % self.flights.len()))
    }

    fn deliver(&mut self, index: usize) {
        if let Some((to, datagram)) = self.take(index) {
            self.nodes[to].handle_datagram(path(to, 4500), &datagram, self.now);
        }
    }

    fn collect(&mut self) {
        let mut buffer = Vec::new();
        for (index, node) in self.nodes.iter_mut().enumerate() {
            while let Some(event) = node.poll_event() {
                match event {
                    Event::ChildUp { child, .. } => self.children[index].push(child.spi_in),
                    Event::ChildDown { spi_in, .. } => self.children[index].retain(|spi| *spi != spi_in),
                    _ => {}
                }
            }
            while node.poll_transmit(&mut buffer).is_some() {
                self.flights.push((1 - index, buffer.clone()));
            }
        }
        self.flights.truncate(200);
    }
}

fn address(side: u8) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, side + 1], 4500))
}

fn path(to: usize, port: u16) -> Path {
    let mut remote = address(if to == 0 { 1 } else { 0 });
    remote.set_port(port);
    Path { local: address(if to == 0 { 0 } else { 1 }), remote }
}
