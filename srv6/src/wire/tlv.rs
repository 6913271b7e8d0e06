//! TLVs of the segment routing header (RFC 8754 §2.1).

use crate::error::Malformed;

/// One byte of padding.
pub const PAD_1: u8 = 0;
/// Several bytes of padding.
pub const PAD_N: u8 = 4;
/// Keyed hash over source and segment list.
pub const HMAC: u8 = 5;

/// Bytes of an HMAC TLV with SHA-256, type and length included.
pub const HMAC_LEN: usize = 40;

/// One TLV.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tlv<'a> {
    /// One byte of padding. Accepted, but never sent: Linux takes every TLV for type and length and refuses it.
    Pad1,
    /// Padding; what is in it is ignored (RFC 8754 §2.1.1.2).
    PadN(&'a [u8]),
    /// A keyed hash.
    Hmac(Hmac<'a>),
    /// Another type, ignored (RFC 8754 §2.1).
    Other {
        /// Its type.
        kind: u8,
        /// Its value.
        value: &'a [u8],
    },
}

/// The value of an HMAC TLV (RFC 8754 §2.1.2).
///
/// ```text
/// |      Type     |     Length    |D|        Reserved             |
/// |                      HMAC Key ID                              |
/// |                      HMAC, up to 32 octets                    |
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hmac<'a> {
    /// D: the destination is not in the list because the list is reduced.
    pub reduced: bool,
    /// Which key; 0 is reserved.
    pub key_id: u32,
    /// The hash.
    pub digest: &'a [u8],
}

/// Iterator over a TLV area.
#[derive(Debug, Clone)]
pub struct Tlvs<'a> {
    rest: &'a [u8],
}

impl<'a> Tlvs<'a> {
    /// Walks over the bytes behind a segment list.
    #[must_use]
    pub const fn new(area: &'a [u8]) -> Self {
        Self { rest: area }
    }

    /// Bytes that are not read yet.
    #[must_use]
    pub const fn remaining(&self) -> usize {
        self.rest.len()
    }

    fn read(&mut self) -> Result<Tlv<'a>, Malformed> {
        let rest = std::mem::take(&mut self.rest);
        let (kind, after) = rest.split_first().ok_or(Malformed::Tlv)?;
        if *kind == PAD_1 {
            self.rest = after;
            return Ok(Tlv::Pad1);
        }
        let (len, after) = after.split_first().ok_or(Malformed::Tlv)?;
        let (value, after) = after.split_at_checked(usize::from(*len)).ok_or(Malformed::Tlv)?;
        self.rest = after;
        match *kind {
            PAD_N => Ok(Tlv::PadN(value)),
            HMAC => hmac(value).map(Tlv::Hmac),
            kind => Ok(Tlv::Other { kind, value }),
        }
    }
}

impl<'a> Iterator for Tlvs<'a> {
    type Item = Result<Tlv<'a>, Malformed>;

    /// After an error the walk ends.
    fn next(&mut self) -> Option<Self::Item> {
        (!self.rest.is_empty()).then(|| self.read())
    }
}

fn hmac(value: &[u8]) -> Result<Hmac<'_>, Malformed> {
    let (fixed, digest) = value.split_first_chunk::<6>().ok_or(Malformed::Tlv)?;
    let key_id = u32::from_be_bytes([fixed[2], fixed[3], fixed[4], fixed[5]]);
    Ok(Hmac { reduced: fixed[0] & 0x80 != 0, key_id, digest })
}

/// An HMAC TLV to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HmacTlv {
    /// D: the list is reduced.
    pub reduced: bool,
    /// Which key; not 0.
    pub key_id: u32,
    /// HMAC-SHA-256.
    pub digest: [u8; 32],
}

impl HmacTlv {
    /// The TLV as it stands on the wire.
    #[must_use]
    pub fn to_octets(&self) -> [u8; HMAC_LEN] {
        let mut octets = [0; HMAC_LEN];
        octets[0] = HMAC;
        octets[1] = 38;
        octets[2] = if self.reduced { 0x80 } else { 0 };
        octets[4..8].copy_from_slice(&self.key_id.to_be_bytes());
        octets[8..].copy_from_slice(&self.digest);
        octets
    }
}
