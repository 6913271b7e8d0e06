//! Ends and new beginnings: deletion, restarts and crashes of each side, cookies.

use super::pair::{Dialler, Pair, Setup};
use super::{PEER, RELEASES};
use crate::case::{Case, is_full};
use ikev2::{Config, ConnectionConfig, ConnectionId, Ed25519Signer, Endpoint, Identity};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use std::net::{SocketAddr, UdpSocket};
use std::time::Instant;

/// Silence is noticed within seconds, by both.
const ALERT: Setup = Setup {
    node: "timers: { hello: 1s, redial: 500ms, liveness: 1s, retransmit: 200ms }",
    connection: "dpd_delay = 1s\n",
    ..Setup::DEFAULT
};

type Run = fn(Setup);

/// Name, who dials, what happens.
const EVENTS: [(&str, Dialler, Run); 12] = [
    ("it_deletes_the_ike_sa", Dialler::Us, deleted_by_peer),
    ("it_deletes_the_ike_sa", Dialler::Peer, deleted_by_peer),
    ("it_deletes_the_child_sa", Dialler::Us, child_deleted_by_peer),
    ("it_deletes_the_child_sa", Dialler::Peer, child_deleted_by_peer),
    ("we_stop", Dialler::Us, stopped_by_us),
    ("we_stop", Dialler::Peer, stopped_by_us),
    ("we_crash", Dialler::Us, our_crash),
    ("we_crash", Dialler::Peer, our_crash),
    ("it_crashes", Dialler::Us, peer_crash),
    ("it_crashes", Dialler::Peer, peer_crash),
    ("it_asks_for_cookies", Dialler::Us, cookies_of_peer),
    ("we_ask_for_cookies", Dialler::Peer, our_cookies),
];

/// CI has each event with one release, in turn.
pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (index, (name, dialler, run)) in EVENTS.into_iter().enumerate() {
        for (place, release) in RELEASES.into_iter().enumerate() {
            if is_full() || index % RELEASES.len() == place {
                let name = format!("{name}/{}/{}", release.recipe().name, dialler.role());
                let setup = Setup { release, dialler, ..ALERT };
                cases.push(Case::new(PEER, name, move || run(setup)));
            }
        }
    }
    cases
}

fn deleted_by_peer(setup: Setup) {
    let pair = setup.connect();
    let old = pair.associations()[0].initiator_spi.clone();
    pair.charon.swanctl(&["--terminate", "--ike", "mesh"]).unwrap().successful().unwrap();
    pair.wait("the old IKE SA to vanish", || pair.associations().iter().all(|sa| sa.initiator_spi != old));
    if pair.connection.dial {
        // Told to end it, charon does not dial again by itself.
        pair.charon.initiate().unwrap();
    }
    pair.wait_traffic();
    pair.check();
}

fn child_deleted_by_peer(setup: Setup) {
    let pair = setup.connect();
    let old = pair.associations()[0].children[0].inbound_spi.clone();
    pair.charon.swanctl(&["--terminate", "--child", "mesh"]).unwrap().successful().unwrap();
    let has_old =
        || pair.associations().iter().flat_map(|sa| &sa.children).any(|child| child.inbound_spi == old);
    pair.wait("the old CHILD SA to vanish", || !has_old());
    if pair.connection.dial {
        pair.charon.initiate().unwrap();
    }
    pair.wait_traffic();
    pair.check();
}

fn stopped_by_us(setup: Setup) {
    let mut pair = setup.connect();
    pair.mesh.stop("ours").unwrap();
    pair.wait("charon to let go of its SAs", || {
        let sas = pair.charon.swanctl(&["--list-sas"]).unwrap().stdout;
        !sas.contains("ESTABLISHED")
    });
    pair.mesh.start_node("ours").unwrap();
    pair.wait_traffic();
    pair.check();
}

fn our_crash(setup: Setup) {
    let mut pair = setup.connect();
    pair.mesh.kill("ours");
    pair.mesh.start_node("ours").unwrap();
    pair.wait_traffic();
    pair.check();
}

fn peer_crash(setup: Setup) {
    let mut pair = setup.connect();
    pair.charon.kill();
    pair.restart_charon();
    pair.wait_traffic();
    pair.wait("one IKE SA to be left", || pair.associations().len() == 1);
    pair.check();
}

fn cookies_of_peer(setup: Setup) {
    // Every IKE_SA_INIT counts as one too many.
    let daemon =
        "cookie_threshold = 1\ncookie_threshold_ip = 1\nhalf_open_timeout = 300\nblock_threshold = 0\n";
    let mut pair = Setup { daemon, ..setup }.start();
    pair.mesh.kill("ours");
    flood(&pair, "ours", pair.peer_address(), 4);
    pair.mesh.start_node("ours").unwrap();
    pair.wait_traffic();
    // Strangers never come back with theirs.
    let returned = "parsed IKE_SA_INIT request 0 [ N(COOKIE) ";
    assert!(pair.charon.log().contains(returned), "charon asked us for no cookie");
    pair.check();
}

fn our_cookies(setup: Setup) {
    let pair = Setup { connection: "dpd_delay = 1s\nkeyingtries = 0\n", ..setup }.start_without_dialling();
    flood(&pair, "swan", pair.our_address(), 12);
    pair.charon.load(&pair.connection).unwrap();
    pair.wait_traffic();
    assert!(pair.charon.log().contains("received COOKIE"), "we asked for no cookie");
    pair.check();
}

/// Sends first messages of so many initiators that never go on.
fn flood(pair: &Pair, from: &str, target: SocketAddr, count: u8) {
    let any: SocketAddr = "0.0.0.0:0".parse().unwrap();
    let socket = pair.world.find(from).unwrap().within(|| UdpSocket::bind(any)).unwrap().unwrap();
    for seed in 0..count {
        let first = first_message(seed, target);
        // The non-ESP marker: the port is not 500.
        socket.send_to(&[&[0; 4], first.as_slice()].concat(), target).unwrap();
    }
}

fn first_message(seed: u8, target: SocketAddr) -> Vec<u8> {
    let signer = Ed25519Signer::from_seed(&[seed; 32]);
    let mut stranger = Endpoint::new(Config::new(Box::new(signer)), ChaCha20Rng::from_seed([seed; 32]));
    let identity = |name: &str| Identity::Fqdn(name.into());
    let mut connection =
        ConnectionConfig::new(identity("stranger.example"), identity("swan.example"), Vec::new());
    connection.remote_address = Some(target);
    connection.local_port = target.port();
    connection.dial = true;
    let now = Instant::now();
    stranger.set_connection(ConnectionId(0), connection, now);
    let mut message = Vec::new();
    stranger.poll_transmit(&mut message).unwrap();
    message
}
