//! Message authentication codes (RFC 8967 §4.1, §4.2).

use std::{fmt, net::Ipv6Addr};

use blake2::{Blake2sMac, digest::consts::U16};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use crate::{
    Misuse, PORT,
    wire::{mac, packet},
};

/// The MAC algorithms of RFC 8967 §4.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MacAlgorithm {
    /// HMAC-SHA256 (RFC 6234), 32 octets.
    HmacSha256,
    /// Keyed BLAKE2s with 128 bits of output (RFC 7693).
    Blake2s128,
}

/// A key of an interface. Never printed; wiped when dropped.
#[derive(Clone)]
pub struct MacKey {
    algorithm: MacAlgorithm,
    secret: Zeroizing<Vec<u8>>,
}

impl MacKey {
    /// A key for the algorithm.
    ///
    /// # Errors
    /// [`Misuse::KeyLength`] if the key is empty, or longer than 64 octets (HMAC-SHA256) or 32 (BLAKE2s).
    pub fn new(algorithm: MacAlgorithm, secret: &[u8]) -> Result<Self, Misuse> {
        let longest = match algorithm {
            MacAlgorithm::HmacSha256 => 64,
            MacAlgorithm::Blake2s128 => 32,
        };
        if secret.is_empty() || secret.len() > longest {
            return Err(Misuse::KeyLength);
        }
        Ok(Self { algorithm, secret: Zeroizing::new(secret.to_vec()) })
    }

    /// The algorithm.
    #[must_use]
    pub const fn algorithm(&self) -> MacAlgorithm {
        self.algorithm
    }

    /// What its MAC TLV adds to a packet, octets.
    pub(crate) const fn overhead(&self) -> usize {
        2 + match self.algorithm {
            MacAlgorithm::HmacSha256 => 32,
            MacAlgorithm::Blake2s128 => 16,
        }
    }

    //= RFC 8967 §4.1
    /// The MAC over pseudo-header, packet header and packet body.
    fn compute(&self, source: Ipv6Addr, destination: Ipv6Addr, packet: &[u8]) -> Vec<u8> {
        let port = PORT.to_be_bytes();
        let parts = [&source.octets()[..], &port, &destination.octets(), &port, packet];
        match self.algorithm {
            MacAlgorithm::HmacSha256 => compute::<Hmac<Sha256>>(&self.secret, &parts),
            MacAlgorithm::Blake2s128 => compute::<Blake2sMac<U16>>(&self.secret, &parts),
        }
    }
}

impl fmt::Debug for MacKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("MacKey").field("algorithm", &self.algorithm).finish_non_exhaustive()
    }
}

fn compute<M: Mac + KeyInit>(secret: &[u8], parts: &[&[u8]]) -> Vec<u8> {
    // `MacKey::new` checked the length.
    let Ok(mut mac) = <M as KeyInit>::new_from_slice(secret) else { return Vec::new() };
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().to_vec()
}

//= RFC 8967 §4.2
/// Appends a MAC TLV for each key to a complete packet.
pub(crate) fn append_macs(packet: &mut Vec<u8>, keys: &[MacKey], source: Ipv6Addr, destination: Ipv6Addr) {
    let macs: Vec<_> = keys.iter().map(|key| key.compute(source, destination, packet)).collect();
    for mac in macs {
        packet.push(mac::MAC);
        packet.push(u8::try_from(mac.len()).unwrap_or(0));
        packet.extend_from_slice(&mac);
    }
}

//= RFC 8967 §4.3
/// Whether any MAC of the trailer is right for any of the keys.
pub(crate) fn verify(payload: &[u8], keys: &[MacKey], source: Ipv6Addr, destination: Ipv6Addr) -> bool {
    let Ok(parts) = packet::Packet::parse(payload) else { return false };
    let length = payload.len() - parts.trailer.len();
    let Some(covered) = payload.get(..length) else { return false };
    let received: Vec<_> = packet::tlvs(parts.trailer)
        .filter_map(Result::ok)
        .filter(|tlv| tlv.kind == mac::MAC)
        .map(|tlv| tlv.body)
        // Keys are few: more MACs than that are an attempt to make us compute.
        .take(16)
        .collect();
    if received.is_empty() {
        return false;
    }
    keys.iter().any(|key| {
        let expected = key.compute(source, destination, covered);
        !expected.is_empty() && received.iter().any(|mac| bool::from(expected.ct_eq(mac)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_bounded_and_never_printed() {
        assert!(MacKey::new(MacAlgorithm::Blake2s128, &[]).is_err());
        assert!(MacKey::new(MacAlgorithm::Blake2s128, &[1; 33]).is_err());
        assert!(MacKey::new(MacAlgorithm::HmacSha256, &[1; 65]).is_err());
        let key = MacKey::new(MacAlgorithm::HmacSha256, &[0xAB; 32]).unwrap();
        assert_eq!(format!("{key:?}"), "MacKey { algorithm: HmacSha256, .. }");
    }

    #[test]
    fn every_octet_and_address_counts() {
        let keys = [
            MacKey::new(MacAlgorithm::HmacSha256, &[1; 32]).unwrap(),
            MacKey::new(MacAlgorithm::Blake2s128, &[2; 16]).unwrap(),
        ];
        let (a, b): (Ipv6Addr, Ipv6Addr) = ("fe80::a".parse().unwrap(), "fe80::b".parse().unwrap());
        let mut packet = vec![42, 2, 0, 4, 3, 2, 7, 7];
        append_macs(&mut packet, &keys, a, b);
        assert_eq!(packet.len(), 8 + keys[0].overhead() + keys[1].overhead());
        assert!(verify(&packet, &keys[..1], a, b) && verify(&packet, &keys[1..], a, b));
        assert!(!verify(&packet, &keys, b, a));
        assert!(!verify(&packet, &keys, a, a));
        assert!(!verify(&packet[..8], &keys, a, b), "no MAC at all");
        for index in 4..8 {
            let mut damaged = packet.clone();
            damaged[index] ^= 1;
            assert!(!verify(&damaged, &keys, a, b));
        }
        let other = MacKey::new(MacAlgorithm::HmacSha256, &[3; 32]).unwrap();
        assert!(!verify(&packet, &[other], a, b));
    }
}
