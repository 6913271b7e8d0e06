//! Any octets as a datagram, and as a chain of payloads.

use ikev2::wire::{Message, decode_chain};

/// What is accepted must be reproduced, and nothing may panic.
pub fn check(octets: &[u8]) {
    if let Ok(message) = Message::decode(octets) {
        let again = Message::decode(&message.encode()).map(|again| again.payloads);
        assert_eq!(again, Ok(message.payloads));
    }
    if let Some((first, chain)) = octets.split_first() {
        let _ = decode_chain(*first, chain);
    }
}
