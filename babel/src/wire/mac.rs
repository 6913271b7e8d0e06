//! The TLVs of RFC 8967 §6, found before the rest of a packet is parsed.

use super::{packet, reader::Reader};

/// A MAC; in the trailer.
pub const MAC: u8 = 16;
/// The sender's packet counter and index.
pub const PACKET_COUNTER: u8 = 17;
/// "Prove that you are there now".
pub const CHALLENGE_REQUEST: u8 = 18;
/// The proof.
pub const CHALLENGE_REPLY: u8 = 19;

/// The longest index (RFC 8967 §6.2).
const LONGEST_INDEX: usize = 32;
/// The longest nonce (RFC 8967 §6.3).
const LONGEST_NONCE: usize = 192;

/// What a packet says for the purpose of authentication.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Freshness<'a> {
    /// Packet counter and index.
    pub counter: Option<(u32, &'a [u8])>,
    /// The nonce to be echoed.
    pub challenge: Option<&'a [u8]>,
    /// The nonce that is echoed.
    pub reply: Option<&'a [u8]>,
}

impl<'a> Freshness<'a> {
    //= RFC 8967 §4.3
    /// Looks through a packet body. The first packet counter counts, and the last challenge.
    #[must_use]
    pub fn parse(body: &'a [u8]) -> Self {
        let mut found = Self::default();
        for tlv in packet::tlvs(body).filter_map(Result::ok) {
            let nonce = Some(tlv.body).filter(|nonce| nonce.len() <= LONGEST_NONCE);
            match tlv.kind {
                PACKET_COUNTER if found.counter.is_none() => found.counter = counter(tlv.body),
                CHALLENGE_REQUEST => found.challenge = nonce.or(found.challenge),
                CHALLENGE_REPLY => found.reply = nonce.or(found.reply),
                _ => {}
            }
        }
        found
    }
}

fn counter(body: &[u8]) -> Option<(u32, &[u8])> {
    let mut reader = Reader::new(body, "a packet counter");
    let counter = reader.u32().ok()?;
    Some((counter, reader.rest())).filter(|(_, index)| index.len() <= LONGEST_INDEX)
}
