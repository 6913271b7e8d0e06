//! Encrypted messages as one SK datagram or several SKF datagrams, and back (RFC 7296 §3.14, RFC 7383).

use std::collections::BTreeMap;

use crate::error::Malformed;
use crate::sealed_payload::PayloadCipher;
use crate::wire::registry::payload as kind;
use crate::wire::{EncryptedFragment, HEADER_LEN, Header, Payload, encode_chain};

const PAYLOAD_HEADER_LEN: usize = 4;
const FRAGMENT_HEADER_LEN: usize = 4;
/// Fragments that one message may have.
const MAX_FRAGMENTS: u16 = 64;
/// Octets of payloads that one message may have.
const MAX_MESSAGE: usize = 65_536;
/// Smallest fragment content; below that fragmentation would be a joke.
const MIN_CONTENT: usize = 64;

/// The datagrams of a message whose payloads are encrypted: one, or several of at most `limit` octets if
/// there is a limit (the peer supports fragmentation).
pub fn seal_message(
    cipher: &mut PayloadCipher,
    header: Header,
    payloads: &[Payload],
    limit: Option<usize>,
) -> Vec<Vec<u8>> {
    let mut plaintext = Vec::new();
    encode_chain(payloads, &mut plaintext);
    let first_inner = payloads.first().map_or(kind::NONE, Payload::kind);
    let whole = HEADER_LEN + PAYLOAD_HEADER_LEN + cipher.cipher().sealed_len(plaintext.len());
    let overhead = HEADER_LEN + PAYLOAD_HEADER_LEN + FRAGMENT_HEADER_LEN;
    match limit {
        Some(limit) if whole > limit => {
            let room = limit.saturating_sub(overhead);
            let chunks = plaintext.chunks(cipher.cipher().content_within(room).max(MIN_CONTENT));
            let total = u16::try_from(chunks.len()).unwrap_or(u16::MAX);
            let numbered = (1u16..).zip(chunks);
            numbered
                .map(|(number, chunk)| {
                    //= RFC 7383 §2.5: only the first fragment names the first payload inside.
                    let first_inner = if number == 1 { first_inner } else { kind::NONE };
                    let header = Header { first_payload: kind::ENCRYPTED_FRAGMENT, ..header };
                    let fragment = [number.to_be_bytes(), total.to_be_bytes()].concat();
                    seal(cipher, header, first_inner, &fragment, chunk)
                })
                .collect()
        }
        _ => {
            let header = Header { first_payload: kind::ENCRYPTED, ..header };
            vec![seal(cipher, header, first_inner, &[], &plaintext)]
        }
    }
}

fn seal(
    cipher: &mut PayloadCipher,
    header: Header,
    first_inner: u8,
    fragment: &[u8],
    content: &[u8],
) -> Vec<u8> {
    let sealed_len = cipher.cipher().sealed_len(content.len());
    let payload_len = PAYLOAD_HEADER_LEN + fragment.len() + sealed_len;
    let mut out = Vec::with_capacity(HEADER_LEN + payload_len);
    let length = u32::try_from(HEADER_LEN + payload_len).unwrap_or(u32::MAX);
    Header { length, ..header }.encode(&mut out);
    let payload_len = u16::try_from(payload_len).unwrap_or(u16::MAX).to_be_bytes();
    out.extend_from_slice(&[first_inner, 0, payload_len[0], payload_len[1]]);
    out.extend_from_slice(fragment);
    let associated = out.clone();
    cipher.seal(&associated, content, &mut out);
    out
}

/// A decrypted and complete message.
pub struct OpenedMessage {
    /// Type of the first payload inside.
    pub first_inner: u8,
    /// The payload chain inside.
    pub plaintext: Vec<u8>,
    /// The first fragment as it was on the wire, if there were several: what a repetition is known by.
    pub first_fragment: Option<Vec<u8>>,
}

/// Fragments of one message that is not complete yet.
#[derive(Default)]
pub struct Reassembly {
    message_id: u32,
    total: u16,
    contents: BTreeMap<u16, Vec<u8>>,
    first_inner: u8,
    first_datagram: Vec<u8>,
}

/// Decrypts what ends `datagram`, of which `payloads` is the decoded outside. `None` if it is a fragment
/// and others are missing.
///
/// # Errors
/// [`Malformed`] if nothing encrypted is there, it does not authenticate, or it exceeds the bounds.
pub fn open_message(
    cipher: &PayloadCipher,
    reassembly: &mut Option<Reassembly>,
    message_id: u32,
    datagram: &[u8],
    payloads: &[Payload],
) -> Result<Option<OpenedMessage>, Malformed> {
    match payloads.last() {
        Some(Payload::Encrypted(encrypted)) => {
            let plaintext = open(cipher, datagram, &encrypted.body)?;
            *reassembly = None;
            Ok(Some(OpenedMessage { first_inner: encrypted.first_inner, plaintext, first_fragment: None }))
        }
        Some(Payload::EncryptedFragment(fragment)) => {
            if fragment.total > MAX_FRAGMENTS {
                return Err(Malformed::TooMany("fragments"));
            }
            //= RFC 7383 §2.6: a fragment is stored only after it authenticated.
            let content = open(cipher, datagram, &fragment.body)?;
            let stored = reassembly.get_or_insert_default();
            stored.add(message_id, fragment, content, datagram)?;
            Ok(if stored.is_complete() { reassembly.take().map(Reassembly::into_message) } else { None })
        }
        _ => Err(Malformed::Value("unencrypted message")),
    }
}

fn open(cipher: &PayloadCipher, datagram: &[u8], body: &[u8]) -> Result<Vec<u8>, Malformed> {
    let outside = datagram.len().saturating_sub(body.len());
    let associated = datagram.get(..outside).ok_or(Malformed::Truncated("encrypted payload"))?;
    cipher.open(associated, body)
}

impl Reassembly {
    fn add(
        &mut self,
        message_id: u32,
        fragment: &EncryptedFragment,
        content: Vec<u8>,
        datagram: &[u8],
    ) -> Result<(), Malformed> {
        //= RFC 7383 §2.6: a larger total means that the sender cut the message anew: start over.
        if self.message_id != message_id || fragment.total > self.total {
            *self = Self { message_id, total: fragment.total, ..Self::default() };
        }
        // A smaller total, or a number seen before, is an old copy.
        if fragment.total < self.total || self.contents.contains_key(&fragment.number) {
            return Ok(());
        }
        let size: usize = self.contents.values().map(Vec::len).sum();
        if size + content.len() > MAX_MESSAGE {
            *self = Self::default();
            return Err(Malformed::Length("fragmented message"));
        }
        if fragment.number == 1 {
            self.first_inner = fragment.first_inner;
            self.first_datagram = datagram.to_vec();
        }
        self.contents.insert(fragment.number, content);
        Ok(())
    }

    fn is_complete(&self) -> bool {
        self.contents.len() == usize::from(self.total)
    }

    fn into_message(self) -> OpenedMessage {
        let plaintext = self.contents.into_values().flatten().collect();
        OpenedMessage { first_inner: self.first_inner, plaintext, first_fragment: Some(self.first_datagram) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sealed_payload::IkeCipher;
    use crate::secret::SecretBytes;
    use crate::wire::{ExchangeType, Message, decode_chain};

    fn cipher() -> PayloadCipher {
        PayloadCipher::new(IkeCipher::Aes128Gcm16, &SecretBytes::new(vec![7; 20]), &SecretBytes::new(vec![]))
    }

    fn header(id: u32) -> Header {
        Header::new((1, 2), ExchangeType::Informational, true, false, id)
    }

    fn sealed(sender: &mut PayloadCipher, id: u32, size: usize, limit: usize) -> Vec<Vec<u8>> {
        seal_message(sender, header(id), &[Payload::VendorId(vec![5; size])], Some(limit))
    }

    fn offer(
        reassembly: &mut Option<Reassembly>,
        id: u32,
        datagram: &[u8],
    ) -> Result<Option<OpenedMessage>, Malformed> {
        let message = Message::decode(datagram)?;
        open_message(&cipher(), reassembly, id, datagram, &message.payloads)
    }

    proptest! {
        #[test]
        fn any_order_with_repetitions_gives_the_message_once(
            size in 0usize..3000,
            limit in 120usize..1400,
            order in proptest::collection::vec(any::<prop::sample::Index>(), 0..80),
        ) {
            let datagrams = sealed(&mut cipher(), 3, size, limit);
            prop_assert!(datagrams.len() == 1 || datagrams.iter().all(|datagram| datagram.len() <= limit.max(129)));
            let mut reassembly = None;
            let shuffled = order.iter().map(|index| index.get(&datagrams)).chain(&datagrams);
            let mut complete = None;
            for datagram in shuffled {
                complete = offer(&mut reassembly, 3, datagram).unwrap();
                if complete.is_some() {
                    break;
                }
            }
            let message = complete.unwrap();
            let payloads = decode_chain(message.first_inner, &message.plaintext).unwrap();
            prop_assert_eq!(payloads, [Payload::VendorId(vec![5; size])]);
        }
    }

    #[test]
    fn a_larger_total_starts_over_and_a_smaller_one_is_ignored() {
        let mut sender = cipher();
        let (coarse, fine) = (sealed(&mut sender, 1, 900, 600), sealed(&mut sender, 1, 900, 300));
        assert!(coarse.len() < fine.len());
        let mut reassembly = None;
        assert!(offer(&mut reassembly, 1, &coarse[0]).unwrap().is_none());
        for datagram in &fine[1..] {
            assert!(offer(&mut reassembly, 1, datagram).unwrap().is_none());
        }
        assert!(offer(&mut reassembly, 1, &coarse[1]).unwrap().is_none());
        assert!(offer(&mut reassembly, 1, &fine[0]).unwrap().is_some());
    }

    #[test]
    fn a_new_message_replaces_one_that_never_became_complete() {
        let mut sender = cipher();
        let (old, new) = (sealed(&mut sender, 1, 900, 300), sealed(&mut sender, 2, 900, 300));
        let mut reassembly = None;
        assert!(offer(&mut reassembly, 1, &old[0]).unwrap().is_none());
        let opened: Vec<bool> =
            new.iter().map(|datagram| offer(&mut reassembly, 2, datagram).unwrap().is_some()).collect();
        assert_eq!(opened.iter().filter(|complete| **complete).count(), 1);
        assert_eq!(opened.last(), Some(&true));
    }

    #[test]
    fn forged_and_excessive_fragments_are_refused() {
        let mut reassembly = None;
        let mut forged = sealed(&mut cipher(), 1, 900, 300).remove(0);
        let last = forged.len() - 1;
        forged[last] ^= 1;
        assert_eq!(offer(&mut reassembly, 1, &forged).err(), Some(Malformed::Integrity));
        assert!(reassembly.is_none(), "nothing is stored for a forgery");
        let many = sealed(&mut cipher(), 1, 64 * 65, 100);
        assert_eq!(offer(&mut reassembly, 1, &many[0]).err(), Some(Malformed::TooMany("fragments")));
    }
}
