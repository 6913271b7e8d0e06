//! Packet header, body and TLV framing (RFC 8966 §4.2, §4.3).

use crate::Malformed;

/// The first octet of every packet.
pub const MAGIC: u8 = 42;
/// The version that RFC 8966 defines.
pub const VERSION: u8 = 2;
/// Magic, version and body length.
pub const HEADER_LEN: usize = 4;

/// One framed TLV: its type and its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawTlv<'a> {
    /// The type.
    pub kind: u8,
    /// The octets after the length.
    pub body: &'a [u8],
}

/// A packet split into body and trailer (RFC 8966 §4.2).
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// The TLVs.
    pub body: &'a [u8],
    /// What follows the body: MAC TLVs (RFC 8967) or something to ignore.
    pub trailer: &'a [u8],
}

impl<'a> Packet<'a> {
    /// Splits a UDP payload.
    ///
    /// # Errors
    /// [`Malformed`] if it is not Babel version 2, or shorter than it says.
    pub fn parse(payload: &'a [u8]) -> Result<Self, Malformed> {
        let (header, rest) = payload.split_first_chunk::<HEADER_LEN>().ok_or(Malformed::Header)?;
        let [magic, version, length @ ..] = *header;
        //= RFC 8966 §4.2
        if magic != MAGIC || version != VERSION {
            return Err(Malformed::Header);
        }
        let length = usize::from(u16::from_be_bytes(length));
        let (body, trailer) = rest.split_at_checked(length).ok_or(Malformed::Overrun("the packet body"))?;
        Ok(Self { body, trailer })
    }
}

/// Walks TLVs; ends after the first that overruns its container.
#[must_use]
pub const fn tlvs(octets: &[u8]) -> RawTlvs<'_> {
    RawTlvs { rest: octets }
}

/// See [`tlvs`].
#[derive(Clone, Debug)]
pub struct RawTlvs<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for RawTlvs<'a> {
    type Item = Result<RawTlv<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (&kind, rest) = self.rest.split_first()?;
            self.rest = rest;
            //= RFC 8966 §4.6.1
            if kind == 0 {
                continue;
            }
            let frame =
                rest.split_first().and_then(|(&length, rest)| rest.split_at_checked(usize::from(length)));
            return Some(match frame {
                Some((body, rest)) => {
                    self.rest = rest;
                    Ok(RawTlv { kind, body })
                }
                None => {
                    self.rest = &[];
                    Err(Malformed::Overrun("a TLV"))
                }
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_must_be_babel_version_2() {
        assert_eq!(Packet::parse(&[42, 2, 0]).err(), Some(Malformed::Header));
        assert_eq!(Packet::parse(&[43, 2, 0, 0]).err(), Some(Malformed::Header));
        assert_eq!(Packet::parse(&[42, 1, 0, 0]).err(), Some(Malformed::Header));
        assert!(matches!(Packet::parse(&[42, 2, 0, 1]).err(), Some(Malformed::Overrun(_))));
        let packet = Packet::parse(&[42, 2, 0, 1, 0, 9, 9]).unwrap();
        assert_eq!((packet.body, packet.trailer), (&[0][..], &[9, 9][..]));
    }

    #[test]
    fn pad1_is_one_octet_and_overrun_ends_the_walk() {
        let mut walk = tlvs(&[0, 0, 3, 2, 7, 8, 0, 5, 4, 1]);
        assert_eq!(walk.next(), Some(Ok(RawTlv { kind: 3, body: &[7, 8] })));
        assert!(matches!(walk.next(), Some(Err(Malformed::Overrun(_)))));
        assert_eq!(walk.next(), None);
        assert!(matches!(tlvs(&[9]).next(), Some(Err(Malformed::Overrun(_)))));
        assert_eq!(tlvs(&[9, 0]).next(), Some(Ok(RawTlv { kind: 9, body: &[] })));
    }
}
