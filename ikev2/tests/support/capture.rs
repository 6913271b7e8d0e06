//! Reads the recorded dialogues in `tests/captures`.

use ikev2::SecretBytes;
use ikev2::sealed_payload::PayloadCipher;
use ikev2::wire::{Message, Payload, decode_chain};

/// One recorded dialogue.
pub struct Capture {
    /// Datagrams in order; `true` if side "a" (the initiator) sent it.
    pub datagrams: Vec<(bool, Vec<u8>)>,
    values: Vec<(String, Vec<u8>)>,
}

pub fn unhex(text: &str) -> Vec<u8> {
    assert_eq!(text.len() % 2, 0);
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

impl Capture {
    pub fn parse(text: &str) -> Self {
        let mut capture = Self { datagrams: Vec::new(), values: Vec::new() };
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words.as_slice() {
                ["ike", side, octets] => capture.datagrams.push((*side == "a", unhex(octets))),
                [name, octets] => capture.values.push(((*name).to_owned(), unhex(octets))),
                _ => panic!("unexpected line {line}"),
            }
        }
        capture
    }

    /// The `index`-th logged value of that name.
    pub fn value(&self, name: &str, index: usize) -> Vec<u8> {
        let named = self.values.iter().filter(|(other, _)| other == name);
        named.map(|(_, octets)| octets.clone()).nth(index).unwrap_or_else(|| panic!("no {name} {index}"))
    }

    pub fn secret(&self, name: &str, index: usize) -> SecretBytes {
        SecretBytes::new(self.value(name, index))
    }

    pub fn message(&self, index: usize) -> Message {
        Message::decode(&self.datagrams[index].1).unwrap()
    }
}

/// Payloads inside the SK payload of a datagram.
pub fn open(cipher: &PayloadCipher, datagram: &[u8]) -> Vec<Payload> {
    let (first, plaintext) = open_chain(cipher, datagram);
    decode_chain(first, &plaintext).unwrap()
}

/// The payload chain inside the SK payload, and the type of its first payload.
pub fn open_chain(cipher: &PayloadCipher, datagram: &[u8]) -> (u8, Vec<u8>) {
    let message = Message::decode(datagram).unwrap();
    let (first, body) = match message.payloads.last() {
        Some(Payload::Encrypted(encrypted)) => (encrypted.first_inner, &encrypted.body),
        Some(Payload::EncryptedFragment(fragment)) => (fragment.first_inner, &fragment.body),
        other => panic!("{other:?}"),
    };
    let outside = &datagram[..datagram.len() - body.len()];
    (first, cipher.open(outside, body).unwrap())
}

pub fn nonce(payloads: &[Payload]) -> Vec<u8> {
    let nonce = payloads.iter().find_map(|payload| match payload {
        Payload::Nonce(nonce) => Some(nonce.clone()),
        _ => None,
    });
    nonce.unwrap()
}
