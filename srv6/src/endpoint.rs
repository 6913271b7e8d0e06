//! What a node does with a packet that is addressed to one of its SIDs (RFC 8986 §4).

use std::net::Ipv6Addr;
use std::ops::Range;

use crate::compressed_sid;
use crate::error::{Error, Unsupported, Violation};
use crate::ip::ecn::{self, set_ecn};
use crate::ip::ipv6::ExtensionHeader;
use crate::ip::{Ipv4View, Ipv6View, UpperLayer, options, protocol};
use crate::sid::is_segment;
use crate::wire::SrhView;
use crate::wire::segment_routing_header;

/// What a SID does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Behaviour {
    /// A waypoint: go on to the next segment (RFC 8986 §4.1).
    End(Flavours),
    /// A waypoint that goes on over one adjacency (RFC 8986 §4.2); the number means something to the caller.
    EndX(Flavours, u16),
    /// End of a compressed SID whose block has so many bits: while more compressed SIDs follow in the destination, go
    /// on to the next of them; else End (RFC 9800 §4.1.1).
    EndNext(Flavours, u8),
    /// The end of the path for an IPv4 packet (RFC 8986 §4.7).
    EndDt4,
    /// The end of the path for an IPv6 packet (RFC 8986 §4.6).
    EndDt6,
    /// The end of the path for either (RFC 8986 §4.8).
    EndDt46,
    /// End.DT46 whose packets leave the mesh towards the internet.
    Internet,
}

impl Behaviour {
    /// End without flavours.
    pub const END: Self = Self::End(Flavours::NONE);
}

/// Variants of End and End.X that remove headers (RFC 8986 §4.16).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Flavours {
    /// Penultimate segment pop: remove the SRH when the last segment becomes the destination.
    pub psp: bool,
    /// Ultimate segment pop: remove the SRH when no segments are left.
    pub usp: bool,
    /// Ultimate segment decapsulation: remove the whole envelope when no segments are left.
    pub usd: bool,
}

impl Flavours {
    /// No flavour.
    pub const NONE: Self = Self { psp: false, usp: false, usd: false };
}

/// What became of a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Destination, Segments Left and hop limit are rewritten: forward it by its new destination. The hop is
    /// already counted.
    Forward {
        /// Where the packet now stands in the buffer; it starts later when a flavour removed a header.
        packet: Range<usize>,
        /// The new destination.
        destination: Ipv6Addr,
        /// End.X: the adjacency to leave by, whatever the route says.
        adjacency: Option<u16>,
    },
    /// The envelope is removed: forward or deliver the inner packet by its own destination. Its hop limit is not
    /// counted yet and its ECN field is combined with the envelope's.
    Decapsulated {
        /// Where the inner packet stands in the buffer.
        inner: Range<usize>,
    },
    /// The packet is for this node itself: nothing but ICMPv6 gets here, for ping and traceroute (RFC 9259).
    UpperLayer {
        /// The protocol behind the extension headers.
        protocol: u8,
        /// Where that header starts.
        offset: usize,
    },
}

/// Does what the SID in the packet's destination demands, in place.
///
/// The caller has looked up `behaviour` by the destination address, and checked that the packet may use the SID
/// at all (RFC 8754 §5.1). On an error the packet is unchanged, and [`Error::icmp`] says what to answer.
///
/// # Errors
/// [`Error`] says whose fault it is and what to tell the sender.
pub fn process(packet: &mut [u8], behaviour: Behaviour) -> Result<Outcome, Error> {
    match decide(&Ipv6View::parse(packet)?, behaviour)? {
        Step::Advance(advance) => Ok(advance.apply(packet)),
        Step::Decapsulate { inner, ecn } => {
            set_ecn(packet.get_mut(inner.clone()).unwrap_or_default(), ecn);
            Ok(Outcome::Decapsulated { inner })
        }
        Step::UpperLayer { protocol, offset } => Ok(Outcome::UpperLayer { protocol, offset }),
    }
}

/// What to do, found by reading only.
enum Step {
    Advance(Advance),
    Decapsulate { inner: Range<usize>, ecn: u8 },
    UpperLayer { protocol: u8, offset: usize },
}

/// Walks over the extension headers as the node that the packet is addressed to (RFC 8200 §4.1).
fn decide(view: &Ipv6View<'_>, behaviour: Behaviour) -> Result<Step, Error> {
    if let Behaviour::EndNext(_, block_len) = behaviour
        && let Some(destination) = compressed_sid::next(view.destination(), block_len)
    {
        return next_compressed(view, destination).map(Step::Advance);
    }
    let mut headers = view.extension_headers();
    for header in headers.by_ref() {
        let header = header?;
        match header.kind {
            protocol::ROUTING => {
                if let Some(advance) = routing_header(view, &header, behaviour)? {
                    return Ok(Step::Advance(advance));
                }
            }
            protocol::HOP_BY_HOP | protocol::DESTINATION_OPTIONS => options::check(&header)?,
            _ => {}
        }
    }
    upper_layer(view, &headers.upper_layer(), behaviour)
}

//= RFC 9800 §4.1.1 N02 to N08
/// The next compressed SID stands in the destination itself: no other header is looked at.
fn next_compressed(view: &Ipv6View<'_>, destination: Ipv6Addr) -> Result<Advance, Error> {
    if view.hop_limit() <= 1 {
        return Err(Violation::HopLimitExceeded.into());
    }
    if !is_segment(&destination) {
        return Err(Violation::NextSegment.into());
    }
    let hop_limit = view.hop_limit() - 1;
    Ok(Advance {
        segments_left: None,
        destination,
        hop_limit,
        adjacency: None,
        pop: None,
        end: view.total_len(),
    })
}

fn routing_header(
    view: &Ipv6View<'_>,
    header: &ExtensionHeader<'_>,
    behaviour: Behaviour,
) -> Result<Option<Advance>, Error> {
    let segments_left =
        header.bytes.get(segment_routing_header::SEGMENTS_LEFT_AT).copied().unwrap_or_default();
    if segments_left == 0 {
        //= RFC 8986 §4.1 S02 to S04, RFC 8200 §4.4
        // The path ended here: the header is not looked at any further, whatever its type.
        return Ok(None);
    }
    let pointer = |field: usize| u32::try_from(header.offset + field).unwrap_or(u32::MAX);
    let Ok(srh) = SrhView::parse(header.bytes) else {
        return Err(
            Unsupported::RoutingType { pointer: pointer(segment_routing_header::ROUTING_TYPE_AT) }.into()
        );
    };
    let pointer = pointer(segment_routing_header::SEGMENTS_LEFT_AT);
    let (flavours, adjacency) = match behaviour {
        Behaviour::End(flavours) | Behaviour::EndNext(flavours, _) => (flavours, None),
        Behaviour::EndX(flavours, adjacency) => (flavours, Some(adjacency)),
        Behaviour::EndDt4 | Behaviour::EndDt6 | Behaviour::EndDt46 | Behaviour::Internet => {
            //= RFC 8986 §4.6 S02 to S04
            return Err(Violation::SegmentsRemain { pointer }.into());
        }
    };
    //= RFC 8986 §4.1 S05 to S07
    if view.hop_limit() <= 1 {
        return Err(Violation::HopLimitExceeded.into());
    }
    //= RFC 8986 §4.1 S08 to S11
    if !srh.is_consistent() {
        return Err(Violation::SegmentsLeft { pointer }.into());
    }
    //= RFC 8986 §4.1 S12 to S14
    let segments_left = segments_left - 1;
    let destination =
        srh.segment(segments_left).ok_or(Error::Violation(Violation::SegmentsLeft { pointer }))?;
    if !is_segment(&destination) {
        return Err(Violation::NextSegment.into());
    }
    //= RFC 8986 §4.16.1 S14.1
    let pop = (flavours.psp && segments_left == 0).then_some(Pop {
        next_header: srh.next_header(),
        named_at: header.named_at,
        at: header.offset,
        len: srh.len(),
    });
    let hop_limit = view.hop_limit() - 1;
    let segments_left = Some((header.offset + segment_routing_header::SEGMENTS_LEFT_AT, segments_left));
    Ok(Some(Advance { segments_left, destination, hop_limit, adjacency, pop, end: view.total_len() }))
}

/// The changes that lead a packet to its next segment.
struct Advance {
    /// Where the Segments Left field stands, and its new value.
    segments_left: Option<(usize, u8)>,
    destination: Ipv6Addr,
    hop_limit: u8,
    adjacency: Option<u16>,
    pop: Option<Pop>,
    /// Where the packet ends in its buffer.
    end: usize,
}

/// An SRH to be removed.
struct Pop {
    next_header: u8,
    named_at: usize,
    at: usize,
    len: usize,
}

impl Advance {
    fn apply(self, packet: &mut [u8]) -> Outcome {
        packet[7] = self.hop_limit;
        packet[24..40].copy_from_slice(&self.destination.octets());
        if let Some((at, segments_left)) = self.segments_left {
            packet[at] = segments_left;
        }
        let start = self.pop.map_or(0, |pop| pop.apply(packet));
        Outcome::Forward { packet: start..self.end, destination: self.destination, adjacency: self.adjacency }
    }
}

impl Pop {
    /// Moves what stands in front of the SRH over it, so that the packet starts later, and returns its start.
    fn apply(self, packet: &mut [u8]) -> usize {
        packet[self.named_at] = self.next_header;
        let payload_len = u16::from_be_bytes([packet[4], packet[5]]);
        let removed = u16::try_from(self.len).unwrap_or(u16::MAX);
        packet[4..6].copy_from_slice(&payload_len.saturating_sub(removed).to_be_bytes());
        packet.copy_within(..self.at, self.len);
        self.len
    }
}

/// What follows all extension headers.
fn upper_layer(view: &Ipv6View<'_>, upper: &UpperLayer<'_>, behaviour: Behaviour) -> Result<Step, Error> {
    if upper.fragment.is_some() {
        return Err(Unsupported::Fragment.into());
    }
    let takes = |protocol| match behaviour {
        Behaviour::End(flavours) | Behaviour::EndX(flavours, _) | Behaviour::EndNext(flavours, _) => {
            flavours.usd
        }
        Behaviour::EndDt4 => protocol == protocol::IPV4,
        Behaviour::EndDt6 => protocol == protocol::IPV6,
        Behaviour::EndDt46 | Behaviour::Internet => true,
    };
    match upper.protocol {
        protocol::IPV4 | protocol::IPV6 if takes(upper.protocol) => decapsulate(view, upper),
        protocol::ICMPV6 => Ok(Step::UpperLayer { protocol: upper.protocol, offset: upper.offset }),
        //= RFC 9259 §3.2
        // Traceroute's probe has arrived and is answered as on any host.
        protocol::UDP if is_traceroute_probe(upper.bytes) => Err(Unsupported::Port.into()),
        //= RFC 8986 §4.1.1
        _ => Err(Violation::UpperLayer { pointer: u32::try_from(upper.offset).unwrap_or(u32::MAX) }.into()),
    }
}

fn decapsulate(view: &Ipv6View<'_>, upper: &UpperLayer<'_>) -> Result<Step, Error> {
    let (len, inner_class) = if upper.protocol == protocol::IPV4 {
        let inner = Ipv4View::parse(upper.bytes).map_err(|_| Violation::Inner)?;
        (inner.total_len(), inner.traffic_class())
    } else {
        let inner = Ipv6View::parse(upper.bytes).map_err(|_| Violation::Inner)?;
        (inner.total_len(), inner.traffic_class())
    };
    let ecn = ecn::decapsulated(inner_class, view.traffic_class()).ok_or(Violation::CongestionLost)?;
    Ok(Step::Decapsulate { inner: upper.offset..upper.offset + len, ecn })
}

fn is_traceroute_probe(datagram: &[u8]) -> bool {
    const PORTS: Range<u16> = 33434..33535;
    datagram.first_chunk::<4>().is_some_and(|ports| PORTS.contains(&u16::from_be_bytes([ports[2], ports[3]])))
}
