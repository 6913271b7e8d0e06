//! Fragments by a peer that has the keys and no manners.

use ikev2::SecretBytes;
use ikev2::fragmentation::{Reassembly, open_message};
use ikev2::sealed_payload::{IkeCipher, PayloadCipher};
use ikev2::wire::{EncryptedFragment, ExchangeType, Header, Message, Payload};

const ENCRYPTED_OVERHEAD: usize = 25;

/// Each record is: message ID, number, total, first payload type, content length, content.
pub fn check(mut octets: &[u8]) {
    let key = || SecretBytes::new(vec![7; 20]);
    let mut sender = PayloadCipher::new(IkeCipher::Aes128Gcm16, &key(), &key());
    let receiver = PayloadCipher::new(IkeCipher::Aes128Gcm16, &key(), &key());
    let mut reassembly: Option<Reassembly> = None;
    while let Some((&[id, number, total, first_inner, length], rest)) = octets.split_first_chunk::<5>() {
        let (content, rest) = rest.split_at(usize::from(length).min(rest.len()));
        octets = rest;
        let datagram = seal(&mut sender, [id, number, total, first_inner], content);
        let Ok(message) = Message::decode(&datagram) else { continue };
        let opened = open_message(&receiver, &mut reassembly, u32::from(id), &datagram, &message.payloads);
        if let Ok(Some(opened)) = opened {
            assert!(opened.plaintext.len() <= 65_536);
            assert!(reassembly.is_none());
        }
    }
}

fn seal(sender: &mut PayloadCipher, [id, number, total, first_inner]: [u8; 4], content: &[u8]) -> Vec<u8> {
    let header = Header::new((1, 2), ExchangeType::Informational, true, false, u32::from(id));
    let body = vec![0; content.len() + ENCRYPTED_OVERHEAD];
    let fragment =
        EncryptedFragment { first_inner, number: u16::from(number), total: u16::from(total), body };
    let mut datagram = Message { header, payloads: vec![Payload::EncryptedFragment(fragment)] }.encode();
    datagram.truncate(datagram.len() - content.len() - ENCRYPTED_OVERHEAD);
    let associated = datagram.clone();
    sender.seal(&associated, content, &mut datagram);
    datagram
}
