//! Keys come and go while tunnels live: only what a removed key had authenticated is deleted.
#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

mod support;

use ikev2::{Ed25519Signer, Signer, VerifyingKey};
use std::time::Duration;
use support::pair::{LINK, Pair, Side, calm, connection, seed};

/// A's connection with these keys of B.
fn trust(pair: &mut Pair, keys: Vec<VerifyingKey>) {
    let mut config = connection(Side::A);
    config.remote_keys = keys;
    let now = pair.now;
    pair.a.endpoint.set_connection(LINK, config, now);
}

fn key_of(side: Side) -> VerifyingKey {
    Ed25519Signer::from_seed(&seed(side)).public_key()
}

fn another_key() -> VerifyingKey {
    Ed25519Signer::from_seed(&[99; 32]).public_key()
}

#[test]
fn a_key_that_did_not_authenticate_may_go() {
    let mut pair = Pair::established(21, calm());
    let before = pair.log.len();
    trust(&mut pair, vec![another_key(), key_of(Side::B)]);
    trust(&mut pair, vec![key_of(Side::B)]);
    pair.drive_for(Duration::from_secs(1));
    assert_eq!(pair.log.len(), before, "nobody has anything to say");
    pair.assert_one_tunnel();
}

#[test]
fn the_tunnel_goes_with_the_key_that_authenticated_it_although_another_is_trusted() {
    let mut pair = Pair::established(22, calm());
    trust(&mut pair, vec![another_key(), key_of(Side::B)]);
    trust(&mut pair, vec![another_key()]);
    let now = pair.now;
    assert!(
        pair.a.endpoint.associations().iter().all(|sa| sa.children.is_empty()),
        "cut at once, not when B agrees"
    );
    pair.drive_for(Duration::from_secs(20));
    assert!(pair.now > now);
    assert!(pair.a.established().is_empty() && pair.b.established().is_empty());
    // And B does not come back, from either side.
    assert!(pair.a.outbound.is_none());
}

#[test]
fn a_rekeyed_tunnel_still_goes_with_the_key() {
    let mut pair = Pair::established(23, calm());
    let now = pair.now;
    pair.a.endpoint.rekey_ike(LINK, now);
    pair.drive_for(Duration::from_secs(2));
    trust(&mut pair, vec![another_key(), key_of(Side::B)]);
    assert_eq!(pair.a.established().len(), 1);
    trust(&mut pair, vec![another_key()]);
    pair.drive_for(Duration::from_secs(20));
    assert!(pair.a.established().is_empty() && pair.b.established().is_empty());
}
