//! Clamps the maximum segment size that TCP announces (RFC 9293 §3.7.1), so that TCP need not lose packets to learn
//! a path's MTU.

use super::{Ipv4View, Ipv6View, checksum, ipv4, ipv6, protocol};

/// Bytes of a TCP header without options, which the MSS does not count (RFC 6691).
const TCP_HEADER_LEN: usize = 20;
const SYN: u8 = 0x02;
const RST: u8 = 0x04;

/// Whether the TCP checksum in a packet is the real one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checksum {
    /// It covers the segment and is updated.
    Complete,
    /// It covers the pseudo-header only and is completed later, as in packets that a TUN device hands out with
    /// `VIRTIO_NET_HDR_F_NEEDS_CSUM`: it stays as it is.
    Partial,
}

/// Lowers the MSS option of a SYN or SYN-ACK to what fits `mtu` bytes of IP packet, and updates the checksum.
///
/// Returns whether the packet was changed. Only packets that carry the option and ask for more are changed;
/// fragments and anything that does not parse pass untouched. `mtu` counts the whole inner packet.
pub fn clamp(packet: &mut [u8], mtu: usize) -> bool {
    clamp_with(packet, mtu, Checksum::Complete)
}

/// [`clamp`] for a packet whose checksum may be completed later.
pub fn clamp_with(packet: &mut [u8], mtu: usize, checksum: Checksum) -> bool {
    try_clamp(packet, mtu, checksum).is_some()
}

fn try_clamp(packet: &mut [u8], mtu: usize, checksum: Checksum) -> Option<()> {
    let tcp = tcp_header(packet)?;
    let room = mtu.checked_sub(tcp.ip_header_len)?.checked_sub(TCP_HEADER_LEN)?;
    let segment_size = u16::try_from(room).unwrap_or(u16::MAX);
    let header = packet.get_mut(tcp.offset..tcp.end)?;
    let at = mss_option(header)?;
    let field: &mut [u8; 2] = header.get_mut(at..)?.first_chunk_mut()?;
    let old = u16::from_be_bytes(*field);
    if old <= segment_size {
        return None;
    }
    *field = segment_size.to_be_bytes();
    if checksum == Checksum::Complete {
        update_checksum(header, at, old, segment_size)?;
    }
    Some(())
}

/// Where the header of a SYN stands in its packet, options included.
struct TcpHeader {
    ip_header_len: usize,
    offset: usize,
    end: usize,
}

fn tcp_header(packet: &[u8]) -> Option<TcpHeader> {
    let (ip_header_len, offset, segment) = match packet.first()? >> 4 {
        4 => {
            let view = Ipv4View::parse(packet).ok().filter(|view| view.protocol() == protocol::TCP)?;
            (ipv4::HEADER_LEN, view.header_len(), (!view.is_fragment()).then_some(view.payload())?)
        }
        6 => {
            let view = Ipv6View::parse(packet).ok()?;
            let upper = view.upper_layer().ok().filter(|upper| upper.protocol == protocol::TCP)?;
            (ipv6::HEADER_LEN, upper.offset, upper.fragment.is_none().then_some(upper.bytes)?)
        }
        _ => return None,
    };
    let fixed: &[u8; TCP_HEADER_LEN] = segment.first_chunk()?;
    let header_len = usize::from(fixed[12] >> 4) << 2;
    let is_syn = fixed[13] & (SYN | RST) == SYN;
    let fits = header_len >= TCP_HEADER_LEN && header_len <= segment.len();
    (is_syn && fits).then_some(TcpHeader { ip_header_len, offset, end: offset.saturating_add(header_len) })
}

/// Where the value of the MSS option stands in a TCP header. Each step moves on, so the walk ends.
fn mss_option(header: &[u8]) -> Option<usize> {
    let mut at = TCP_HEADER_LEN;
    loop {
        match header.get(at..)? {
            [0, ..] | [] => return None,
            [1, ..] => at = at.saturating_add(1),
            [2, 4, _, _, ..] => return Some(at.saturating_add(2)),
            [_, len, rest @ ..] => {
                let len = usize::from(*len);
                if len < 2 || len.saturating_sub(2) > rest.len() {
                    return None;
                }
                at = at.saturating_add(len);
            }
            [_] => return None,
        }
    }
}

fn update_checksum(header: &mut [u8], at: usize, old: u16, new: u16) -> Option<()> {
    // At an odd offset the value's bytes stand in the other halves of the words that are summed.
    let (old, new) = if at.is_multiple_of(2) { (old, new) } else { (old.swap_bytes(), new.swap_bytes()) };
    let field: &mut [u8; 2] = header.get_mut(16..)?.first_chunk_mut()?;
    *field = checksum::updated(u16::from_be_bytes(*field), old, new).to_be_bytes();
    Some(())
}
