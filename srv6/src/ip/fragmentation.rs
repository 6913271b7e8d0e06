//! Fragments IPv4 packets that are too long and may be fragmented (RFC 791 §3.2).

use super::{Ipv4View, checksum, ipv4};
use crate::error::Malformed;

const MORE_FRAGMENTS: u16 = 0x2000;
const END_OF_OPTIONS: u8 = 0;
const NO_OPERATION: u8 = 1;
const COPIED: u8 = 0x80;

/// The pieces of one packet, written one after the other.
#[derive(Debug, Clone)]
pub struct Fragments<'a> {
    packet: Ipv4View<'a>,
    header: &'a [u8],
    /// Payload bytes that the pieces so far hold.
    done: usize,
    mtu: usize,
}

/// Starts cutting `packet` into pieces of at most `mtu` bytes.
///
/// Returns `None` when its sender forbids that (DF), or when `mtu` leaves no room for 8 bytes of payload: then the
/// answer is an ICMP error.
///
/// # Errors
/// [`Malformed`] when it is no whole IPv4 packet.
pub fn fragment(packet: &[u8], mtu: usize) -> Result<Option<Fragments<'_>>, Malformed> {
    let view = Ipv4View::parse(packet)?;
    let header = packet.get(..view.header_len()).ok_or(Malformed::HeaderLength)?;
    let room = mtu.saturating_sub(view.header_len());
    if view.dont_fragment() || room < 8 {
        return Ok(None);
    }
    Ok(Some(Fragments { packet: view, header, done: 0, mtu }))
}

impl Fragments<'_> {
    /// Writes the next piece and returns its length; `None` when all are written or `out` is shorter than the MTU
    /// and the piece.
    pub fn write_next(&mut self, out: &mut [u8]) -> Option<usize> {
        let rest = self.packet.payload().get(self.done..).filter(|rest| !rest.is_empty())?;
        // Only the header of the first piece carries all options; the later ones are never longer.
        let room = self.mtu.saturating_sub(self.header.len());
        let last_piece = rest.len() <= room;
        let taken = if last_piece { rest.len() } else { room & !7 };
        let header_len = self.write_header(out, taken, last_piece)?;
        let len = header_len.saturating_add(taken);
        out.get_mut(header_len..len)?.copy_from_slice(rest.get(..taken)?);
        self.done = self.done.saturating_add(taken);
        Some(len)
    }

    fn write_header(&self, out: &mut [u8], payload_len: usize, last_piece: bool) -> Option<usize> {
        let header = out.get_mut(..self.header.len())?;
        header.copy_from_slice(self.header);
        if self.done != 0 {
            keep_copied_options(header.get_mut(ipv4::HEADER_LEN..)?);
        }
        let len = header.len();
        let total = u16::try_from(len.saturating_add(payload_len)).ok()?;
        let offset = u16::try_from(self.done >> 3).ok()?.checked_add(self.packet.fragment_offset())?;
        // The last piece of a fragment is not the last of its datagram.
        let more = if last_piece && !self.packet.more_fragments() { 0 } else { MORE_FRAGMENTS };
        let fixed: &mut [u8; ipv4::HEADER_LEN] = header.first_chunk_mut()?;
        [fixed[2], fixed[3]] = total.to_be_bytes();
        [fixed[6], fixed[7]] = (offset & ipv4::OFFSET_MASK | more).to_be_bytes();
        [fixed[10], fixed[11]] = [0, 0];
        let sum = checksum::of(header);
        header.get_mut(10..12)?.copy_from_slice(&sum.to_be_bytes());
        Some(len)
    }
}

/// Overwrites the options that only the first fragment carries.
fn keep_copied_options(options: &mut [u8]) {
    let mut at = 0_usize;
    while let Some(rest) = options.get_mut(at..) {
        let len = match rest {
            [] | [END_OF_OPTIONS, ..] => return,
            [NO_OPERATION, ..] => 1,
            [_, len, ..] if *len >= 2 => usize::from(*len),
            _ => {
                rest.fill(END_OF_OPTIONS);
                return;
            }
        };
        let end = len.min(rest.len());
        if let Some(option) =
            rest.get_mut(..end).filter(|option| option.first().is_some_and(|kind| kind & COPIED == 0))
        {
            option.fill(NO_OPERATION);
        }
        at = at.saturating_add(len);
    }
}
