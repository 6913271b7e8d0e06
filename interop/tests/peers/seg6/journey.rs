//! Our side of the wire, and packets that go to and fro until their journey ends.

use crate::seg6::kernel::{BLOCK, Kernel, LOCATOR};
use ipnet::Ipv6Net;
use srv6::hmac::{HmacKey, HmacKeys, Requirement};
use srv6::ip::Ipv6View;
use srv6::{CompressedSid, LocalSids, Locator, Outcome, process};
use std::net::Ipv6Addr;

/// Our own locator.
const OUR_LOCATOR: Ipv6Net = Ipv6Net::new_assert(Ipv6Addr::new(0xfd5d, 0xac, 0, 0xa, 0, 0, 0, 0), 64);
/// Our node's address: the source of envelopes.
pub(crate) const OURS: Ipv6Addr = Ipv6Addr::new(0xfd5d, 0xac, 0, 0xa, 0, 0, 0, 1);
/// Our waypoint.
pub(crate) const OUR_END: Ipv6Addr = Ipv6Addr::new(0xfd5d, 0xac, 0, 0xa, 0, 0, 0, 0xe);
/// Our exit.
pub(crate) const OUR_EXIT: Ipv6Addr = Ipv6Addr::new(0xfd5d, 0xac, 0, 0xa, 0, 0, 0, 0x46);
/// Our compressed SID.
pub(crate) const OUR_CSID: u16 = 0xa;

/// More stations than any journey here has.
const BOUND: usize = 40;

/// Who did something with a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Station {
    Ours,
    Kernel,
}

/// Our node on the wire: its SIDs, and what it asks of headers.
pub(crate) struct Neighbour {
    sids: LocalSids,
    keys: HmacKeys,
    requirement: Requirement,
}

impl Neighbour {
    /// A node that knows this key.
    pub(crate) fn new(key: Option<&HmacKey>) -> Self {
        let locator = Locator::new(OUR_LOCATOR).unwrap();
        let csid = CompressedSid::new(BLOCK, OUR_CSID).unwrap();
        Self {
            sids: LocalSids::of_locator(&locator, false).with_compressed(&csid, false),
            keys: HmacKeys::new(key.into_iter().cloned().collect()),
            requirement: Requirement::IfPresent,
        }
    }

    /// The same, which refuses headers without an HMAC.
    pub(crate) fn demanding(self, demanding: bool) -> Self {
        let requirement = if demanding { Requirement::Required } else { Requirement::IfPresent };
        Self { requirement, ..self }
    }

    /// What the data path checks before it processes.
    pub(crate) fn check(&self, packet: &[u8]) -> Result<(), srv6::Error> {
        self.keys.check(packet, self.requirement)
    }
}

/// What became of a packet.
pub(crate) struct Journey {
    /// Who was a stop, in order, the last one included.
    pub(crate) stations: Vec<Station>,
    /// Who took it out of its envelope.
    pub(crate) ended: Station,
    /// What was inside.
    pub(crate) traveller: Vec<u8>,
}

impl Journey {
    /// Carries a packet from stop to stop until it is out of its envelope.
    pub(crate) fn carry(kernel: &mut Kernel, ours: &Neighbour, mut packet: Vec<u8>) -> Self {
        let mut stations = Vec::new();
        while stations.len() < BOUND {
            let Some(destination) = envelope_destination(&packet) else {
                return Self { stations, ended: Station::Kernel, traveller: packet };
            };
            let Some(behaviour) = ours.sids.lookup(destination) else {
                assert!(LOCATOR.contains(&destination) || BLOCK.contains(&destination), "{destination}");
                stations.push(Station::Kernel);
                let next = kernel.exchange(&packet);
                packet =
                    next.unwrap_or_else(|| panic!("the kernel dropped it at {destination}: {packet:02x?}"));
                continue;
            };
            stations.push(Station::Ours);
            ours.check(&packet).unwrap_or_else(|error| panic!("{error:?}: {packet:02x?}"));
            match process(&mut packet, behaviour).unwrap_or_else(|error| panic!("{error:?}: {packet:02x?}")) {
                Outcome::Forward { packet: place, .. } => packet = packet[place].to_vec(),
                Outcome::Decapsulated { inner } => {
                    return Self { stations, ended: Station::Ours, traveller: packet[inner].to_vec() };
                }
                Outcome::UpperLayer { .. } => panic!("it was for ourselves: {packet:02x?}"),
            }
        }
        panic!("it goes in circles: {stations:?}");
    }
}

/// Where a packet in an envelope goes; `None` if it is in none.
fn envelope_destination(packet: &[u8]) -> Option<Ipv6Addr> {
    let destination = Ipv6View::parse(packet).ok()?.destination();
    (BLOCK.contains(&destination)).then_some(destination)
}
