//! What the fuzz target `open` does with its input; the tests replay the corpus through the same function.
//!
//! Input: one octet of options (bits 0-1 algorithm, bit 2 extended numbers, bit 3 back-end), then records of
//! a kind octet, a length octet and so many bytes:
//! kind 0 is a datagram of a stranger; kind 1 is one of a peer that has the keys, 4 bytes of sequence number
//! and a plaintext of its choice; kind 2 is any UDP payload for the demultiplexer. Other kinds count modulo 3.
#![allow(clippy::unwrap_used, reason = "a panic is what a fuzzer looks for")]

use esp::{
    Aead, Algorithm, Backend, Discard, Encapsulated, HEADER_LEN, ICV_LEN, InboundSa, MIN_DATAGRAM_LEN,
    demultiplex,
};

const SPI: u32 = 0x0bad_cafe;
/// Key and salt; every octet is the same, so that all lengths share it.
const KEY_MATERIAL: [u8; 36] = [0x42; 36];
const SALT: [u8; 4] = [0x42; 4];

pub(crate) fn run(input: &[u8]) {
    let Some((options, mut rest)) = input.split_first() else { return };
    let mut session = Session::new(*options);
    while let [kind, length, tail @ ..] = rest {
        let (record, next) = tail.split_at(tail.len().min(usize::from(*length)));
        match kind % 3 {
            0 => session.stranger(record),
            1 => session.peer(record),
            _ => classify(record),
        }
        rest = next;
    }
}

struct Session {
    sa: InboundSa,
    cipher: Box<dyn Aead>,
    accepted: u64,
}

impl Session {
    fn new(options: u8) -> Self {
        let algorithm = match options & 3 {
            0 | 1 => Algorithm::Aes256Gcm16,
            2 => Algorithm::Aes128Gcm16,
            _ => Algorithm::ChaCha20Poly1305,
        };
        let esn = options & 4 != 0;
        let backend = if options & 8 == 0 { Backend::AwsLc } else { Backend::RustCrypto };
        let key_material = &KEY_MATERIAL[..algorithm.key_material_len()];
        Self {
            sa: InboundSa::new(SPI, algorithm, key_material, esn, 4096, backend).unwrap(),
            cipher: algorithm.aead(&key_material[..algorithm.key_len()], backend).unwrap(),
            accepted: 0,
        }
    }

    /// Without the keys nothing is ever opened.
    fn stranger(&self, datagram: &[u8]) {
        let mut datagram = datagram.to_vec();
        if let Ok(pending) = self.sa.pre_check(&datagram) {
            assert!(datagram.len() >= MIN_DATAGRAM_LEN);
            assert_eq!(self.sa.open(&pending, &mut datagram), Err(Discard::IntegrityFailure));
        }
    }

    /// With the keys any plaintext is authentic, and is taken once or refused for what it holds.
    fn peer(&mut self, record: &[u8]) {
        let Some((sequence, plaintext)) = record.split_first_chunk::<4>() else { return };
        let iv = [7; 8];
        let mut datagram = [&SPI.to_be_bytes()[..], sequence, &iv, plaintext, &[0; ICV_LEN]].concat();
        let Ok(pending) = self.sa.pre_check(&datagram) else { return };
        self.seal(pending.sequence(), iv, &mut datagram);
        let mut copy = datagram.clone();
        let opened = self.sa.open(&pending, &mut datagram).unwrap();
        let twin = self.sa.open(&pending, &mut copy).unwrap();
        match self.sa.commit(opened, 1) {
            Ok(accepted) => {
                assert!(accepted.payload().end + 2 + ICV_LEN <= datagram.len());
                assert_eq!(datagram[accepted.payload()], plaintext[..accepted.payload().len()]);
            }
            Err(discard) => assert!(matches!(discard, Discard::BadPadding | Discard::Dummy)),
        }
        self.accepted += 1;
        assert_eq!(self.sa.commit(twin, 1), Err(Discard::Replayed));
        assert_eq!(self.sa.packets(), self.accepted);
    }

    fn seal(&self, sequence: u64, iv: [u8; 8], datagram: &mut [u8]) {
        let nonce: [u8; 12] = [&SALT[..], &iv].concat().try_into().unwrap();
        let sequence = sequence.to_be_bytes();
        let sequence = if self.sa.esn() { &sequence[..] } else { &sequence[4..] };
        let additional_data = [&SPI.to_be_bytes()[..], sequence].concat();
        let end = datagram.len() - ICV_LEN;
        let icv = self.cipher.seal_in_place(&nonce, &additional_data, &mut datagram[HEADER_LEN..end]);
        datagram[end..].copy_from_slice(&icv);
    }
}

fn classify(payload: &[u8]) {
    for marker in [true, false] {
        match demultiplex(payload, marker) {
            Encapsulated::Keepalive => assert_eq!(payload, [0xff]),
            Encapsulated::Ike(message) => assert!(message.len() >= 28 && payload.ends_with(message)),
            Encapsulated::Esp { spi } => assert!(marker && spi != 0),
            Encapsulated::Runt => assert!(payload.len() < 32),
        }
    }
}
