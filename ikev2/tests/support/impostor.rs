//! Somebody who shares the keys of one end and says what that end never would.

use ikev2::fragmentation::seal_message;
use ikev2::sealed_payload::{IkeCipher, PayloadCipher};
use ikev2::wire::{ExchangeType, HEADER_LEN, Header, Message, Payload};
use ikev2::{Path, SecretBytes};

use super::capture::open;
use super::pair::{Pair, Side, address};

pub struct Impostor {
    side: Side,
    spis: (u64, u64),
    outbound: PayloadCipher,
    inbound: PayloadCipher,
    next_id: u32,
}

fn hex(text: &str) -> SecretBytes {
    let octets = (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap());
    SecretBytes::new(octets.collect())
}

impl Impostor {
    /// Poses as `side` on the IKE SA that it logged last; A dialled, and nothing was asked on it since.
    pub fn new(pair: &mut Pair, side: Side) -> Self {
        let log = &pair.node(side).key_log;
        let line = log.iter().rfind(|line| line.contains("GCM-256")).expect("an IKE line in the key log");
        let fields: Vec<&str> = line.split(',').collect();
        let spi = |text: &str| u64::from_str_radix(text, 16).unwrap();
        let cipher = |key| PayloadCipher::new(IkeCipher::Aes256Gcm16, &hex(key), &SecretBytes::new(vec![]));
        let (from_i, from_r) = (cipher(fields[2]), cipher(fields[3]));
        let (outbound, inbound, next_id) = match side {
            Side::A => (from_i, from_r, 2),
            Side::B => (from_r, from_i, 0),
        };
        Self { side, spis: (spi(fields[0]), spi(fields[1])), outbound, inbound, next_id }
    }

    fn header(&self, exchange: ExchangeType) -> Header {
        Header::new(self.spis, exchange, self.side == Side::A, false, self.next_id)
    }

    /// Sends a request and returns the payloads of the response, if there is one.
    pub fn ask(
        &mut self,
        pair: &mut Pair,
        exchange: ExchangeType,
        payloads: &[Payload],
    ) -> Option<Vec<Payload>> {
        let header = self.header(exchange);
        let datagram = seal_message(&mut self.outbound, header, payloads, None).remove(0);
        self.deliver(pair, &datagram)
    }

    /// The same with octets that need not be payloads, the first of which is said to be of type `first`.
    pub fn ask_octets(
        &mut self,
        pair: &mut Pair,
        exchange: ExchangeType,
        first: u8,
        octets: &[u8],
    ) -> Option<Vec<Payload>> {
        let payload_len = 4 + self.outbound.cipher().sealed_len(octets.len());
        let mut datagram = Vec::new();
        let length = u32::try_from(HEADER_LEN + payload_len).unwrap();
        Header { first_payload: 46, length, ..self.header(exchange) }.encode(&mut datagram);
        let [high, low] = u16::try_from(payload_len).unwrap().to_be_bytes();
        datagram.extend_from_slice(&[first, 0, high, low]);
        let associated = datagram.clone();
        self.outbound.seal(&associated, octets, &mut datagram);
        self.deliver(pair, &datagram)
    }

    fn deliver(&mut self, pair: &mut Pair, datagram: &[u8]) -> Option<Vec<Payload>> {
        let victim = self.side.other();
        pair.collect();
        let (seen, now) = (pair.log.len(), pair.now);
        let path = Path { local: address(victim), remote: address(self.side) };
        pair.node(victim).endpoint.handle_datagram(path, datagram, now);
        pair.collect();
        let id = self.next_id;
        self.next_id += 1;
        let is_answer = |octets: &Vec<u8>| {
            let header = Message::decode(octets).unwrap().header;
            header.response && header.message_id == id
        };
        let mut sent = pair.log[seen..].iter().filter(|(from, _)| *from == victim).map(|(_, octets)| octets);
        let answer = sent.rfind(|octets| is_answer(octets)).cloned();
        // The one that is posed as must not see answers to what it never asked.
        pair.flights.clear();
        answer.map(|answer| open(&self.inbound, &answer))
    }
}
