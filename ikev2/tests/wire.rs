//! The codec: what it accepts it reproduces, and nothing makes it panic.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed expectation is a failed test")]

mod support;

use ikev2::wire::{
    Attribute, Configuration, ConfigurationAttribute, Delete, Encrypted, EncryptedFragment, ExchangeType,
    Header, Identification, Message, Notify, Payload, Proposal, TrafficSelector, Transform, decode_chain,
};
use proptest::collection::vec;
use proptest::prelude::*;

fn octets(max: usize) -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..max)
}

fn attribute() -> impl Strategy<Value = Attribute> {
    prop_oneof![
        (0u16..0x8000, any::<u16>()).prop_map(|(kind, value)| Attribute::Short(kind, value)),
        (0u16..0x8000, octets(20)).prop_map(|(kind, value)| Attribute::Long(kind, value)),
    ]
}

fn transform() -> impl Strategy<Value = Transform> {
    (any::<u8>(), any::<u16>(), vec(attribute(), 0..4)).prop_map(|(kind, id, attributes)| Transform {
        kind,
        id,
        attributes,
    })
}

fn proposal() -> impl Strategy<Value = Proposal> {
    (any::<u8>(), any::<u8>(), octets(9), vec(transform(), 0..6))
        .prop_map(|(number, protocol, spi, transforms)| Proposal { number, protocol, spi, transforms })
}

fn selector() -> impl Strategy<Value = TrafficSelector> {
    let v4 = (any::<[u8; 4]>(), any::<[u8; 4]>()).prop_map(|(a, b)| (a.into(), b.into()));
    let v6 = (any::<[u8; 16]>(), any::<[u8; 16]>()).prop_map(|(a, b)| (a.into(), b.into()));
    (prop_oneof![v4, v6], any::<u8>(), any::<u16>(), any::<u16>()).prop_map(
        |((first, last), protocol, first_port, last_port)| TrafficSelector {
            protocol,
            first_port,
            last_port,
            first,
            last,
        },
    )
}

fn identification() -> impl Strategy<Value = Identification> {
    (any::<u8>(), any::<[u8; 3]>(), octets(40)).prop_map(|(kind, reserved, data)| Identification {
        kind,
        reserved,
        data,
    })
}

fn payload() -> impl Strategy<Value = Payload> {
    prop_oneof![
        vec(proposal(), 1..5).prop_map(Payload::SecurityAssociation),
        (any::<u16>(), octets(70)).prop_map(|(method, data)| Payload::KeyExchange { method, data }),
        identification().prop_map(Payload::IdentificationInitiator),
        identification().prop_map(Payload::IdentificationResponder),
        (any::<u8>(), octets(70)).prop_map(|(encoding, data)| Payload::Certificate { encoding, data }),
        (any::<u8>(), octets(70))
            .prop_map(|(encoding, authorities)| Payload::CertificateRequest { encoding, authorities }),
        (any::<u8>(), octets(70)).prop_map(|(method, data)| Payload::Authentication { method, data }),
        vec(any::<u8>(), 16..=256).prop_map(Payload::Nonce),
        (any::<u8>(), octets(9), any::<u16>(), octets(40))
            .prop_map(|(protocol, spi, kind, data)| Payload::Notify(Notify { protocol, spi, kind, data })),
        Just(Payload::Delete(Delete::IkeSa)),
        vec(any::<u32>(), 0..6).prop_map(|spis| Payload::Delete(Delete::Esp(spis))),
        octets(30).prop_map(Payload::VendorId),
        vec(selector(), 0..5).prop_map(Payload::TrafficSelectorInitiator),
        vec(selector(), 0..5).prop_map(Payload::TrafficSelectorResponder),
        (any::<u8>(), vec((0u16..0x8000, octets(20)), 0..4)).prop_map(|(kind, attributes)| {
            let attributes =
                attributes.into_iter().map(|(kind, value)| ConfigurationAttribute { kind, value }).collect();
            Payload::Configuration(Configuration { kind, attributes })
        }),
        octets(30).prop_map(Payload::Eap),
    ]
}

fn last_payload() -> impl Strategy<Value = Option<Payload>> {
    prop_oneof![
        Just(None),
        (any::<u8>(), octets(60))
            .prop_map(|(first_inner, body)| Some(Payload::Encrypted(Encrypted { first_inner, body }))),
        (any::<u8>(), 1u16..9, 9u16..20, octets(60)).prop_map(|(first_inner, number, total, body)| {
            Some(Payload::EncryptedFragment(EncryptedFragment { first_inner, number, total, body }))
        }),
    ]
}

fn message() -> impl Strategy<Value = Message> {
    (any::<(u64, u64)>(), any::<bool>(), any::<bool>(), any::<u32>(), vec(payload(), 0..12), last_payload())
        .prop_map(|(spis, initiator, response, id, mut payloads, last)| {
            payloads.extend(last);
            let header = Header::new(spis, ExchangeType::Informational, initiator, response, id);
            Message { header, payloads }
        })
}

/// Header fields that the encoder computes are not compared.
fn same(one: &Message, other: &Message) -> bool {
    let plain = |header: Header| Header { first_payload: 0, length: 0, ..header };
    plain(one.header) == plain(other.header) && one.payloads == other.payloads
}

proptest! {
    #[test]
    fn what_is_encoded_is_decoded(message in message()) {
        let encoded = message.encode();
        let decoded = Message::decode(&encoded);
        prop_assert!(decoded.as_ref().is_ok_and(|decoded| same(decoded, &message)), "{decoded:?}");
    }

    #[test]
    fn truncation_anywhere_is_an_error(message in message(), cut in any::<prop::sample::Index>()) {
        let encoded = message.encode();
        let length = cut.index(encoded.len());
        prop_assert!(Message::decode(&encoded[..length]).is_err());
    }

    #[test]
    fn what_is_accepted_is_reproduced(message in message(), changes in vec((any::<prop::sample::Index>(), any::<u8>()), 0..4)) {
        let mut octets = message.encode();
        for (index, value) in changes {
            let at = index.index(octets.len());
            octets[at] = value;
        }
        if let Ok(decoded) = Message::decode(&octets) {
            let again = Message::decode(&decoded.encode());
            prop_assert!(again.as_ref().is_ok_and(|again| again.payloads == decoded.payloads), "{again:?}");
        }
    }

    #[test]
    fn arbitrary_chains_never_panic(first in any::<u8>(), octets in octets(300)) {
        let _ = decode_chain(first, &octets);
    }
}
