//! NAT detection (RFC 7296 §2.23), always pretending to be behind a NAT.
//!
//! ESP-in-UDP is the only form of ESP here, so our NAT_DETECTION_SOURCE_IP never matches: the peer then
//! encapsulates and follows our address.

use std::net::{IpAddr, SocketAddr};

use rand_chacha::ChaCha20Rng;
use rand_core::Rng;
use sha1::{Digest, Sha1};

use crate::config::Path;
use crate::wire::registry::notify;
use crate::wire::{Notify, Payload};

/// What the peer's hashes say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct NatStatus {
    /// Our address is changed on the way.
    pub(crate) local: bool,
    /// The peer's address is changed on the way, or the peer pretends so.
    pub(crate) remote: bool,
}

/// The two notifications for a message sent along `path`.
pub(crate) fn notifications(spis: (u64, u64), path: &Path, rng: &mut ChaCha20Rng) -> [Payload; 2] {
    let mut false_hash = vec![0; 20];
    rng.fill_bytes(&mut false_hash);
    [
        Payload::Notify(Notify::new(notify::NAT_DETECTION_SOURCE_IP, false_hash)),
        Payload::Notify(Notify::new(notify::NAT_DETECTION_DESTINATION_IP, hash(spis, path.remote))),
    ]
}

/// Compares the peer's hashes with the addresses of the datagram. Without hashes nothing is known, and
/// without a known local address our side is taken as not translated.
pub(crate) fn evaluate<'a>(
    notifies: impl Iterator<Item = &'a Notify> + Clone,
    spis: (u64, u64),
    path: &Path,
) -> NatStatus {
    let hashes_of = |kind| notifies.clone().filter(move |notify| notify.kind == kind);
    let mismatch = |kind, expected: Vec<u8>| {
        hashes_of(kind).next().is_some() && !hashes_of(kind).any(|notify| notify.data == expected)
    };
    let local_known = !path.local.ip().is_unspecified();
    NatStatus {
        local: local_known && mismatch(notify::NAT_DETECTION_DESTINATION_IP, hash(spis, path.local)),
        remote: mismatch(notify::NAT_DETECTION_SOURCE_IP, hash(spis, path.remote)),
    }
}

//= RFC 7296 §2.23: SHA-1 over SPIi, SPIr, address and port.
fn hash((spi_i, spi_r): (u64, u64), address: SocketAddr) -> Vec<u8> {
    let mut digest = Sha1::new();
    digest.update(spi_i.to_be_bytes());
    digest.update(spi_r.to_be_bytes());
    match address.ip() {
        IpAddr::V4(address) => digest.update(address.octets()),
        IpAddr::V6(address) => digest.update(address.octets()),
    }
    digest.update(address.port().to_be_bytes());
    digest.finalize().to_vec()
}

#[cfg(test)]
mod tests {
    use rand_core::SeedableRng;

    use super::*;

    #[test]
    fn the_hash_is_that_of_a_real_daemon() {
        let hash = hash((0x2556_9894_FF99_A205, 0), "192.0.2.2:4500".parse().unwrap());
        assert_eq!(hash[..6], [0x39, 0xFC, 0x33, 0xCD, 0x4E, 0x8B]);
    }

    #[test]
    fn our_side_always_looks_translated_and_the_other_only_if_it_is() {
        let mut rng = ChaCha20Rng::from_seed([3; 32]);
        let sender =
            Path { local: "192.0.2.1:500".parse().unwrap(), remote: "192.0.2.2:500".parse().unwrap() };
        let payloads = notifications((1, 2), &sender, &mut rng);
        let notifies = payloads.iter().filter_map(|payload| match payload {
            Payload::Notify(notify) => Some(notify),
            _ => None,
        });
        let receiver = Path { local: sender.remote, remote: sender.local };
        assert_eq!(evaluate(notifies.clone(), (1, 2), &receiver), NatStatus { local: false, remote: true });
        let translated = Path { local: "10.0.0.1:500".parse().unwrap(), ..receiver };
        assert_eq!(evaluate(notifies, (1, 2), &translated), NatStatus { local: true, remote: true });
    }
}
