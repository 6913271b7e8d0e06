//! Parses the input as the body of a packet. What is understood must survive being written and parsed again.

use std::net::{IpAddr, Ipv6Addr};

use babel::wire::{
    mac::Freshness,
    packet::Packet,
    parser::Parser,
    tlv::Tlv,
    update::{Announcement, Update},
    writer::PacketWriter,
};

const SOURCE: Ipv6Addr = Ipv6Addr::new(0xFE80, 0, 0, 0, 0, 0, 0, 7);
const LIMIT: usize = 70_000;

/// Runs one input.
pub fn run(input: &[u8]) {
    if let Ok(packet) = Packet::parse(input) {
        let _ = Freshness::parse(packet.body);
        Parser::new(packet.body, SOURCE).for_each(drop);
    }
    let understood: Vec<_> =
        Parser::new(input, SOURCE).filter_map(Result::ok).filter(can_be_written).collect();
    let mut buffer = Vec::new();
    let mut writer = PacketWriter::new(&mut buffer, LIMIT, true);
    let fitting = understood.iter().take_while(|tlv| writer.push(tlv)).count();
    writer.finish();
    let packet = Packet::parse(&buffer).expect("we write packets");
    let again: Vec<_> =
        Parser::new(packet.body, SOURCE).map(|tlv| tlv.expect("that are well-formed")).collect();
    assert_eq!(again, understood[..fitting]);
}

/// We never send next hops of others, so the writer knows of none but our own.
fn can_be_written(tlv: &Tlv) -> bool {
    match tlv {
        Tlv::Update(Update::Announce(Announcement { next_hop: IpAddr::V6(next_hop), .. })) => {
            *next_hop == SOURCE
        }
        _ => true,
    }
}
