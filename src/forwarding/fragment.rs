//! Fragments an IPv4 packet that allows it (RFC 791 §3.2).

use super::sum::Sum;

const MORE_FRAGMENTS: u16 = 0x2000;
const OFFSET: u16 = 0x1fff;
/// Options with this bit are repeated in every fragment.
const COPIED: u8 = 0x80;

/// The fragments of one packet, one at a time.
#[derive(Debug)]
pub(super) struct Fragments<'a> {
    packet: &'a [u8],
    header: usize,
    mtu: usize,
    /// Payload octets that have been written.
    done: usize,
}

impl<'a> Fragments<'a> {
    /// Fragments of at most `mtu` octets. The packet was parsed before.
    pub(super) fn new(packet: &'a [u8], mtu: usize) -> Self {
        let header = usize::from(packet.first().unwrap_or(&0) & 15) * 4;
        Fragments { packet, header, mtu, done: 0 }
    }

    /// Writes the next fragment and returns its length. `None` when there are no more, or when
    /// the limits leave no room for any payload.
    pub(super) fn next_into(&mut self, out: &mut [u8]) -> Option<usize> {
        let payload = self.packet.get(self.header + self.done..)?;
        if payload.is_empty() || self.header < 20 {
            return None;
        }
        let header = self.write_header(out)?;
        let room = self.mtu.min(out.len()).checked_sub(header)?;
        let last = payload.len() <= room;
        let len = if last { payload.len() } else { room & !7 };
        if len == 0 {
            return None;
        }
        out[header..header + len].copy_from_slice(&payload[..len]);
        self.patch(&mut out[..header], header + len, last);
        self.done += len;
        Some(header + len)
    }

    /// The header with all options for the first fragment, with the copied ones for the others.
    fn write_header(&self, out: &mut [u8]) -> Option<usize> {
        let header = self.packet.get(..self.header)?;
        if self.done == 0 {
            out.get_mut(..self.header)?.copy_from_slice(header);
            return Some(self.header);
        }
        out.get_mut(..60)?[..20].copy_from_slice(&header[..20]);
        let mut len = 20;
        let mut options = &header[20..];
        while let [kind, rest @ ..] = options {
            let size = match kind {
                0 => break,
                1 => 1,
                _ => usize::from(*rest.first()?).max(2),
            };
            let (option, others) = options.split_at_checked(size)?;
            if kind & COPIED != 0 {
                out[len..len + size].copy_from_slice(option);
                len += size;
            }
            options = others;
        }
        let padded = len.next_multiple_of(4);
        out[len..padded].fill(0);
        Some(padded)
    }

    fn patch(&self, header: &mut [u8], total: usize, last: bool) {
        let old = u16::from_be_bytes([self.packet[6], self.packet[7]]);
        let offset = (old & OFFSET) + u16::try_from(self.done / 8).unwrap_or(0);
        let more = if last { old & MORE_FRAGMENTS } else { MORE_FRAGMENTS };
        header[0] = 0x40 | u8::try_from(header.len() / 4).unwrap_or(5);
        header[2..4].copy_from_slice(&u16::try_from(total).unwrap_or(u16::MAX).to_be_bytes());
        header[6..8].copy_from_slice(&(more | (offset & OFFSET)).to_be_bytes());
        header[10..12].fill(0);
        let sum = Sum::default().add_bytes(header).checksum();
        header[10..12].copy_from_slice(&sum.to_be_bytes());
    }
}

#[cfg(test)]
#[expect(clippy::cast_possible_truncation, reason = "small numbers in tests")]
mod tests {
    use super::*;

    fn packet(options: &[u8], payload: usize) -> Vec<u8> {
        let header = 20 + options.len();
        let total = header + payload;
        let mut bytes = vec![
            0x40 | (header / 4) as u8,
            0,
            (total >> 8) as u8,
            total as u8,
            0x12,
            0x34,
            0,
            0,
            64,
            17,
            0,
            0,
        ];
        bytes.extend([10, 0, 0, 1, 10, 0, 0, 2]);
        bytes.extend(options);
        bytes.extend((0..payload).map(|index| index as u8));
        bytes
    }

    fn fragments(packet: &[u8], mtu: usize) -> Vec<Vec<u8>> {
        let mut iterator = Fragments::new(packet, mtu);
        let mut out = [0; 1500];
        let mut all = Vec::new();
        while let Some(len) = iterator.next_into(&mut out) {
            all.push(out[..len].to_vec());
        }
        all
    }

    #[test]
    fn fragments_fit_and_join_to_the_payload() {
        // Record route (7) is not copied, loose source route (131) is.
        let packet = packet(&[7, 3, 4, 1, 131, 3, 4, 0], 3000);
        let all = fragments(&packet, 1400);
        let mut payload: Vec<u8> = Vec::new();
        for (index, fragment) in all.iter().enumerate() {
            let header = usize::from(fragment[0] & 15) * 4;
            assert!(fragment.len() <= 1400);
            assert_eq!(Sum::default().add_bytes(&fragment[..header]).folded(), 0xffff);
            assert_eq!(header, if index == 0 { 28 } else { 24 });
            let field = u16::from_be_bytes([fragment[6], fragment[7]]);
            assert_eq!(usize::from(field & OFFSET) * 8, payload.len());
            assert_eq!(field & MORE_FRAGMENTS != 0, index + 1 < all.len());
            payload.extend(&fragment[header..]);
        }
        assert_eq!(all.len(), 3);
        assert_eq!(payload, packet[28..]);
    }

    #[test]
    fn a_fragment_of_a_fragment_keeps_its_place() {
        let mut packet = packet(&[], 1000);
        packet[6..8].copy_from_slice(&(MORE_FRAGMENTS | 5).to_be_bytes());
        let all = fragments(&packet, 576);
        let field = |bytes: &[u8]| u16::from_be_bytes([bytes[6], bytes[7]]);
        assert_eq!(field(&all[0]), MORE_FRAGMENTS | 5);
        assert_eq!(field(&all[1]), MORE_FRAGMENTS | (5 + 552 / 8));
    }

    #[test]
    fn hopeless_limits_and_broken_options_end() {
        assert!(fragments(&packet(&[], 100), 24).is_empty());
        assert_eq!(fragments(&packet(&[9, 0, 0, 0], 100), 64).len(), 3);
        assert_eq!(
            fragments(&packet(&[9, 40, 0, 0], 100), 64).len(),
            1,
            "the first fragment copies all options"
        );
    }
}
