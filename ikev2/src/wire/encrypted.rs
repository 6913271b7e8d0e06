//! Encrypted payload (RFC 7296 §3.14) and Encrypted Fragment payload (RFC 7383 §2.5), still sealed.

use super::reader::Reader;
use crate::error::Malformed;

/// SK.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encrypted {
    /// Type of the first payload inside.
    pub first_inner: u8,
    /// IV, ciphertext and ICV.
    pub body: Vec<u8>,
}

/// SKF.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncryptedFragment {
    /// Type of the first payload inside the reassembled message; zero except in the first fragment.
    pub first_inner: u8,
    /// Number of this fragment, from 1.
    pub number: u16,
    /// Number of fragments.
    pub total: u16,
    /// IV, ciphertext and ICV.
    pub body: Vec<u8>,
}

impl EncryptedFragment {
    //= RFC 7383 §2.6: fragment and total numbers of zero, and a number above the total, are invalid.
    pub(super) fn decode(first_inner: u8, body: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(body, "encrypted fragment payload");
        let (number, total) = (reader.u16()?, reader.u16()?);
        if number == 0 || number > total {
            return Err(Malformed::Value("fragment number"));
        }
        Ok(Self { first_inner, number, total, body: reader.remainder().to_vec() })
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.number.to_be_bytes());
        out.extend_from_slice(&self.total.to_be_bytes());
        out.extend_from_slice(&self.body);
    }
}
