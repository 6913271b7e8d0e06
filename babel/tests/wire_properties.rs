//! The codec: whatever is written is read back, whatever is read does no harm.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use babel::{
    Prefix, RouterId, Seqno,
    wire::{
        hello::Hello,
        ihu::Ihu,
        packet::Packet,
        parser::Parser,
        seqno_request::SeqnoRequest,
        tlv::Tlv,
        update::{Announcement, Update},
        writer::PacketWriter,
    },
};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use proptest::prelude::*;

const SOURCE: Ipv6Addr = Ipv6Addr::new(0xFE80, 0, 0, 0, 0, 0, 0, 7);
const OUR_IPV4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 7);

fn net(ipv4: bool) -> BoxedStrategy<IpNet> {
    if ipv4 {
        // Few distinct first octets, so that compression has something to do.
        let octets = (0..3_u8, 0..3_u8, any::<u8>(), any::<u8>());
        (octets, 0..=32_u8)
            .prop_map(|((a, b, c, d), length)| {
                IpNet::V4(Ipv4Net::new(Ipv4Addr::new(a, b, c, d), length).unwrap().trunc())
            })
            .boxed()
    } else {
        ((0..2_u16, 0..2_u16, any::<[u16; 4]>()), 0..=128_u8)
            .prop_map(|((a, b, [c, d, e, f]), length)| {
                let address = Ipv6Addr::new(0xFD00 + a, b, 0, c, d, e, f, 1);
                IpNet::V6(Ipv6Net::new(address, length).unwrap().trunc())
            })
            .boxed()
    }
}

fn prefix() -> impl Strategy<Value = Prefix> {
    any::<bool>().prop_flat_map(|ipv4| {
        (net(ipv4), proptest::option::of(net(ipv4))).prop_map(|(destination, source)| match source {
            Some(source) => Prefix::from_to(source, destination).unwrap(),
            None => Prefix::to(destination),
        })
    })
}

fn router_id() -> impl Strategy<Value = RouterId> {
    (1..4_u64).prop_map(|id| RouterId(id.to_be_bytes()))
}

fn announcement() -> impl Strategy<Value = Update> {
    (prefix(), router_id(), any::<u16>(), 0..0xFFFF_u16, 1..=0xFFFF_u16, any::<bool>()).prop_map(
        |(prefix, router_id, seqno, metric, interval, by_ipv4)| {
            let by_ipv4 = by_ipv4 && prefix.is_ipv4();
            let next_hop = if by_ipv4 { IpAddr::V4(OUR_IPV4) } else { IpAddr::V6(SOURCE) };
            Update::Announce(Announcement {
                prefix,
                next_hop,
                router_id,
                seqno: Seqno(seqno),
                metric,
                interval,
            })
        },
    )
}

fn tlv() -> impl Strategy<Value = Tlv> {
    let address = prop_oneof![
        Just(None),
        any::<u64>().prop_map(|id| Some(IpAddr::V6(Ipv6Addr::from((0xFE80_u128 << 112) | u128::from(id))))),
        any::<u32>().prop_map(|bits| Some(IpAddr::V4(bits.into()))),
        any::<u128>().prop_map(|bits| Some(IpAddr::V6(bits.into()))),
    ];
    prop_oneof![
        (any::<u16>(), 1..=0xFFFF_u16).prop_map(|(opaque, interval)| Tlv::AckRequest { opaque, interval }),
        any::<u16>().prop_map(|opaque| Tlv::Ack { opaque }),
        (any::<bool>(), any::<u16>(), any::<u16>(), any::<Option<u32>>()).prop_map(
            |(unicast, seqno, interval, timestamp)| {
                Tlv::Hello(Hello { unicast, seqno: Seqno(seqno), interval, timestamp })
            }
        ),
        (address, any::<u16>(), 1..=0xFFFF_u16, any::<Option<(u32, u32)>>(), any::<bool>()).prop_map(
            |(address, rxcost, interval, echo, fast)| {
                Tlv::Ihu(Ihu { address, rxcost, interval, echo, fast_hello: fast.then_some(7) })
            }
        ),
        announcement().prop_map(Tlv::Update),
        prefix().prop_map(|prefix| Tlv::Update(Update::Retract { prefix })),
        Just(Tlv::Update(Update::RetractAll)),
        proptest::option::of(prefix()).prop_map(|prefix| Tlv::RouteRequest { prefix }),
        (prefix(), router_id(), any::<u16>(), 1..=255_u8).prop_map(
            |(prefix, router_id, seqno, hop_count)| {
                Tlv::SeqnoRequest(SeqnoRequest { prefix, router_id, seqno: Seqno(seqno), hop_count })
            }
        ),
    ]
}

fn write(tlvs: &[Tlv], limit: usize, has_ipv4: bool) -> (Vec<u8>, usize) {
    let mut buffer = Vec::new();
    let mut writer = PacketWriter::new(&mut buffer, limit, has_ipv4);
    let fitting = tlvs.iter().take_while(|tlv| writer.push(tlv)).count();
    writer.finish();
    (buffer, fitting)
}

fn read(payload: &[u8]) -> Vec<Tlv> {
    let packet = Packet::parse(payload).unwrap();
    assert!(packet.trailer.is_empty());
    Parser::new(packet.body, SOURCE).map(Result::unwrap).collect()
}

proptest! {
    #[test]
    fn written_is_read_back(tlvs in proptest::collection::vec(tlv(), 0..40), has_ipv4: bool, limit in 64..1400_usize) {
        let (payload, fitting) = write(&tlvs, limit, has_ipv4);
        prop_assert!(payload.len() <= limit);
        prop_assert_eq!(read(&payload), &tlvs[..fitting]);
    }

    #[test]
    fn any_octets_are_harmless(octets in proptest::collection::vec(any::<u8>(), 0..600)) {
        let length = u16::try_from(octets.len()).unwrap().to_be_bytes();
        let payload = [&[42, 2], &length[..], &octets].concat();
        let packet = Packet::parse(&payload).unwrap();
        let items = Parser::new(packet.body, SOURCE).count();
        prop_assert!(items <= octets.len());
    }

    #[test]
    fn damaged_packets_are_harmless(
        tlvs in proptest::collection::vec(tlv(), 1..20),
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in any::<prop::sample::Index>(),
    ) {
        let (mut payload, _) = write(&tlvs, 1400, false);
        for (index, value) in damage {
            let index = index.index(payload.len());
            payload[index] = value;
        }
        payload.truncate(cut.index(payload.len()) + 1);
        if let Ok(packet) = Packet::parse(&payload) {
            Parser::new(packet.body, SOURCE).for_each(drop);
        }
    }

    #[test]
    fn padding_is_exact_and_silent(tlvs in proptest::collection::vec(tlv(), 1..3), extra in 0..1200_usize) {
        let mut buffer = Vec::new();
        let mut writer = PacketWriter::new(&mut buffer, 1400, false);
        for tlv in &tlvs {
            prop_assert!(writer.push(tlv));
        }
        writer.pad_to(200 + extra);
        writer.finish();
        prop_assert_eq!(buffer.len(), 200 + extra);
        prop_assert_eq!(read(&buffer), tlvs);
    }
}

#[test]
fn compression_pays() {
    let announcements: Vec<_> = (0..50_u8)
        .map(|index| {
            Tlv::Update(Update::Announce(Announcement {
                prefix: Prefix::to(format!("fd5d:ac:0:{index:x}::1/128").parse().unwrap()),
                next_hop: SOURCE.into(),
                router_id: RouterId([1; 8]),
                seqno: Seqno(1),
                metric: 7,
                interval: 1600,
            }))
        })
        .collect();
    let (payload, fitting) = write(&announcements, 1400, false);
    assert_eq!(fitting, 50);
    // 12 octets of fixed fields and at most 10 of the prefix; one full prefix; one Router-Id.
    assert!(payload.len() <= 4 + 12 + 50 * 22 + 6, "{}", payload.len());
}
