//! Freshness of authenticated packets: packet counters and challenges (RFC 8967 §4.3, RFC 9467).

use std::{
    collections::{BTreeMap, VecDeque},
    net::Ipv6Addr,
    time::{Duration, Instant},
};

use subtle::ConstantTimeEq;

use crate::{
    Violation,
    wire::mac::{CHALLENGE_REPLY, CHALLENGE_REQUEST, Freshness},
};

/// Challenges to one peer are at least this far apart.
const CHALLENGE_SPACING: Duration = Duration::from_millis(300);
/// Answers to one peer are at least this far apart.
const REPLY_SPACING: Duration = Duration::from_millis(100);
/// A challenge is valid for this long.
const CHALLENGE_LIFETIME: Duration = Duration::from_secs(30);
/// What is known of a silent peer is forgotten.
const PEER_LIFETIME: Duration = Duration::from_secs(300);
/// Peers on one interface, neighbours or not.
const PEERS: usize = 64;

/// The counters seen in one kind of packets, with a window for reordered ones (RFC 9467 §3.2).
#[derive(Clone, Copy, Debug)]
struct Window {
    highest: u32,
    /// Bit n: `highest - n` was seen.
    seen: u64,
}

impl Window {
    /// Nothing up to `counter` is accepted any more.
    const fn closed(counter: u32) -> Self {
        Self { highest: counter, seen: u64::MAX }
    }

    /// Whether `counter` is new; it is seen from now on.
    fn accept(&mut self, counter: u32) -> bool {
        if counter > self.highest {
            self.seen = self.seen.checked_shl(counter - self.highest).unwrap_or(0) | 1;
            self.highest = counter;
            return true;
        }
        let Some(bit) = 1_u64.checked_shl(self.highest - counter) else { return false };
        let new = self.seen & bit == 0;
        self.seen |= bit;
        new
    }
}

#[derive(Debug)]
struct Peer {
    index: Option<Vec<u8>>,
    /// Multicast packets may be overtaken by unicast ones, so they are counted apart (RFC 9467 §3.1).
    multicast: Window,
    unicast: Window,
    challenge: Option<([u8; 16], Instant)>,
    replied: Option<Instant>,
    last: Instant,
}

/// A challenge or an answer to send.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) destination: Ipv6Addr,
    pub(crate) kind: u8,
    pub(crate) nonce: Vec<u8>,
}

/// Freshness of one interface.
#[derive(Debug)]
pub(crate) struct PacketCounter {
    index: [u8; 8],
    counter: u32,
    peers: BTreeMap<Ipv6Addr, Peer>,
    pub(crate) outgoing: VecDeque<Outgoing>,
}

impl PacketCounter {
    /// Starts with an index never used before.
    pub(crate) const fn new(index: [u8; 8]) -> Self {
        Self { index, counter: 0, peers: BTreeMap::new(), outgoing: VecDeque::new() }
    }

    //= RFC 8967 §4.2
    /// The body of the packet counter TLV of the next packet. `fresh_index` replaces the index if the counter is
    /// used up.
    pub(crate) fn next(&mut self, fresh_index: [u8; 8]) -> Vec<u8> {
        if self.counter == u32::MAX {
            self.index = fresh_index;
            self.counter = 0;
        }
        self.counter += 1;
        [&self.counter.to_be_bytes()[..], &self.index].concat()
    }

    //= RFC 8967 §4.3
    /// Judges a packet whose MAC is right. Returns whether it answers our challenge: then the peer is new.
    /// `nonce` is for a challenge.
    pub(crate) fn check(
        &mut self,
        source: Ipv6Addr,
        multicast: bool,
        freshness: &Freshness<'_>,
        nonce: [u8; 16],
        now: Instant,
    ) -> Result<bool, Violation> {
        let Some((counter, index)) = freshness.counter else { return Err(Violation::Replayed) };
        self.make_room(source);
        let peer = self.peers.entry(source).or_insert_with(|| Peer::new(now));
        //= RFC 8967 §4.3.1.2
        // Challenges to everyone would make everyone answer.
        if let Some(challenge) = freshness.challenge.filter(|_| !multicast && peer.may_reply(now)) {
            let nonce = challenge.to_vec();
            self.outgoing.push_back(Outgoing { destination: source, kind: CHALLENGE_REPLY, nonce });
        }
        //= RFC 8967 §4.3.1.3
        if freshness.reply.is_some_and(|reply| peer.is_answered(reply, now)) {
            *peer = Peer::proven(index, counter, now);
            return Ok(true);
        }
        if peer.index.as_deref() == Some(index) {
            let window = if multicast { &mut peer.multicast } else { &mut peer.unicast };
            if !window.accept(counter) {
                return Err(Violation::Replayed);
            }
            peer.last = now;
            return Ok(false);
        }
        //= RFC 8967 §4.3.1.1
        if passed(peer.challenge.map(|(_, sent)| sent), now) >= CHALLENGE_SPACING {
            peer.challenge = Some((nonce, now));
            let nonce = nonce.to_vec();
            self.outgoing.push_back(Outgoing { destination: source, kind: CHALLENGE_REQUEST, nonce });
        }
        Err(Violation::Challenged)
    }

    //= RFC 8967 §4.4
    /// Forgets silent peers.
    pub(crate) fn expire(&mut self, now: Instant) {
        self.peers.retain(|_, peer| now.saturating_duration_since(peer.last) < PEER_LIFETIME);
    }

    fn make_room(&mut self, source: Ipv6Addr) {
        if self.peers.len() < PEERS || self.peers.contains_key(&source) {
            return;
        }
        let oldest = self.peers.iter().min_by_key(|(_, peer)| (peer.index.is_some(), peer.last));
        if let Some(oldest) = oldest.map(|(address, _)| *address) {
            self.peers.remove(&oldest);
        }
    }
}

impl Peer {
    const fn new(now: Instant) -> Self {
        Self {
            index: None,
            multicast: Window::closed(0),
            unicast: Window::closed(0),
            challenge: None,
            replied: None,
            last: now,
        }
    }

    /// A peer that answered our challenge with this index and counter.
    fn proven(index: &[u8], counter: u32, now: Instant) -> Self {
        let window = Window::closed(counter);
        Self { index: Some(index.to_vec()), multicast: window, unicast: window, ..Self::new(now) }
    }

    /// Whether it is time to answer a challenge again; it is answered now.
    fn may_reply(&mut self, now: Instant) -> bool {
        let may = passed(self.replied, now) >= REPLY_SPACING;
        if may {
            self.replied = Some(now);
        }
        may
    }

    fn is_answered(&self, reply: &[u8], now: Instant) -> bool {
        self.challenge.is_some_and(|(nonce, sent)| {
            now.saturating_duration_since(sent) < CHALLENGE_LIFETIME && bool::from(nonce[..].ct_eq(reply))
        })
    }
}

fn passed(since: Option<Instant>, now: Instant) -> Duration {
    since.map_or(Duration::MAX, |since| now.saturating_duration_since(since))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: Ipv6Addr = Ipv6Addr::new(0xFE80, 0, 0, 0, 0, 0, 0, 7);

    fn start() -> Instant {
        #[expect(clippy::disallowed_methods, reason = "tests need some instant to count from")]
        Instant::now()
    }

    fn with_counter(counter: u32) -> Freshness<'static> {
        Freshness { counter: Some((counter, b"index")), ..Freshness::default() }
    }

    #[test]
    fn window_accepts_each_counter_once() {
        let mut window = Window::closed(10);
        assert!(!window.accept(10) && !window.accept(9));
        assert!(window.accept(15) && window.accept(12) && !window.accept(12) && !window.accept(15));
        assert!(window.accept(200) && !window.accept(15) && window.accept(199) && !window.accept(100));
        assert!(window.accept(u32::MAX) && !window.accept(200));
    }

    #[test]
    fn an_unknown_peer_is_challenged_and_a_reply_is_needed_once() {
        let (mut counter, t0) = (PacketCounter::new([1; 8]), start());
        assert_eq!(counter.check(PEER, true, &with_counter(5), [7; 16], t0), Err(Violation::Challenged));
        assert_eq!(counter.check(PEER, true, &with_counter(6), [8; 16], t0), Err(Violation::Challenged));
        assert_eq!(counter.outgoing.len(), 1, "no more than one in 300 ms");
        let wrong = Freshness { reply: Some(&[8; 16]), ..with_counter(7) };
        assert_eq!(counter.check(PEER, false, &wrong, [9; 16], t0), Err(Violation::Challenged));
        let right = Freshness { reply: Some(&[7; 16]), ..with_counter(8) };
        assert_eq!(counter.check(PEER, false, &right, [9; 16], t0), Ok(true));
        assert_eq!(counter.check(PEER, false, &right, [9; 16], t0), Err(Violation::Replayed));
        // Unicast overtakes multicast.
        assert_eq!(counter.check(PEER, false, &with_counter(20), [9; 16], t0), Ok(false));
        assert_eq!(counter.check(PEER, true, &with_counter(12), [9; 16], t0), Ok(false));
        assert_eq!(counter.check(PEER, true, &with_counter(12), [9; 16], t0), Err(Violation::Replayed));
        // A new index is a new life.
        let reborn = Freshness { counter: Some((1, b"other")), ..Freshness::default() };
        assert_eq!(counter.check(PEER, true, &reborn, [9; 16], t0), Err(Violation::Challenged));
    }

    #[test]
    fn an_old_challenge_is_void() {
        let (mut counter, t0) = (PacketCounter::new([1; 8]), start());
        assert_eq!(counter.check(PEER, true, &with_counter(5), [7; 16], t0), Err(Violation::Challenged));
        let late = Freshness { reply: Some(&[7; 16]), ..with_counter(8) };
        let result = counter.check(PEER, false, &late, [8; 16], t0 + CHALLENGE_LIFETIME);
        assert_eq!(result, Err(Violation::Challenged));
    }

    #[test]
    fn challenges_are_answered_by_unicast_only() {
        let (mut counter, t0) = (PacketCounter::new([1; 8]), start());
        let asked = Freshness { challenge: Some(b"nonce"), ..with_counter(1) };
        assert!(counter.check(PEER, true, &asked, [7; 16], t0).is_err());
        assert!(counter.outgoing.iter().all(|outgoing| outgoing.kind == CHALLENGE_REQUEST));
        assert!(counter.check(PEER, false, &asked, [7; 16], t0).is_err());
        let reply = counter.outgoing.back().map(|outgoing| (outgoing.kind, outgoing.nonce.clone()));
        assert_eq!(reply, Some((CHALLENGE_REPLY, b"nonce".to_vec())));
    }

    #[test]
    fn the_index_changes_when_the_counter_is_used_up() {
        let mut counter = PacketCounter::new([1; 8]);
        counter.counter = u32::MAX - 1;
        assert_eq!(counter.next([2; 8]), [&[0xFF; 4][..], &[1; 8]].concat());
        assert_eq!(counter.next([2; 8]), [&[0, 0, 0, 1][..], &[2; 8]].concat());
    }
}
