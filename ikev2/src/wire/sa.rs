//! Security Association payload: proposals, transforms, attributes (RFC 7296 §3.3).

use super::reader::Reader;
use super::registry::transform::ATTRIBUTE_KEY_LENGTH;
use super::writer::{octet, patch_length};
use crate::error::Malformed;

/// strongSwan's default offer has four proposals with up to about 25 transforms each.
const MAX_PROPOSALS: usize = 32;
const MAX_TRANSFORMS: usize = 64;
const MAX_ATTRIBUTES: usize = 8;
/// First octet of a substructure that is followed by another.
const MORE_PROPOSALS: u8 = 2;
const MORE_TRANSFORMS: u8 = 3;
const SHORT_ATTRIBUTE: u16 = 0x8000;

/// One proposal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    /// Proposal number, from 1.
    pub number: u8,
    /// Security protocol.
    pub protocol: u8,
    /// The sender's SPI; empty in IKE_SA_INIT.
    pub spi: Vec<u8>,
    /// What is on offer.
    pub transforms: Vec<Transform>,
}

/// One transform.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transform {
    /// Transform type.
    pub kind: u8,
    /// Transform ID.
    pub id: u16,
    /// Attributes.
    pub attributes: Vec<Attribute>,
}

/// One transform attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attribute {
    /// Type and value in four octets.
    Short(u16, u16),
    /// Type and a value of any length.
    Long(u16, Vec<u8>),
}

impl Transform {
    /// A transform without attributes.
    pub fn new(kind: u8, id: u16) -> Self {
        Self { kind, id, attributes: Vec::new() }
    }

    /// A cipher with a key length in bits.
    pub fn with_key_length(kind: u8, id: u16, bits: u16) -> Self {
        Self { kind, id, attributes: vec![Attribute::Short(ATTRIBUTE_KEY_LENGTH, bits)] }
    }

    /// Key length in bits, if stated.
    pub fn key_length(&self) -> Option<u16> {
        self.attributes.iter().find_map(|attribute| match attribute {
            Attribute::Short(ATTRIBUTE_KEY_LENGTH, bits) => Some(*bits),
            Attribute::Short(..) | Attribute::Long(..) => None,
        })
    }

    /// Whether there is nothing but at most one key length.
    //= RFC 7296 §3.3.6: a transform with an attribute that is not understood is to be ignored.
    pub fn is_understood(&self) -> bool {
        matches!(self.attributes.as_slice(), [] | [Attribute::Short(ATTRIBUTE_KEY_LENGTH, _)])
    }
}

pub(super) fn decode_proposals(body: &[u8]) -> Result<Vec<Proposal>, Malformed> {
    let mut reader = Reader::new(body, "proposal");
    let mut proposals = Vec::new();
    while !reader.is_empty() {
        if proposals.len() >= MAX_PROPOSALS {
            return Err(Malformed::TooMany("proposals"));
        }
        let (more, _reserved, length) = (reader.u8()?, reader.u8()?, reader.u16()?);
        let mut inside = reader.sub(length, 4, "proposal")?;
        // The field repeats what the length says; a contradiction is an attack or a bug.
        if (more == MORE_PROPOSALS) == reader.is_empty() {
            return Err(Malformed::Value("last substructure"));
        }
        let (number, protocol, spi_size, transforms) =
            (inside.u8()?, inside.u8()?, inside.u8()?, inside.u8()?);
        let spi = inside.take(usize::from(spi_size))?.to_vec();
        let transforms = decode_transforms(inside.remainder(), usize::from(transforms))?;
        proposals.push(Proposal { number, protocol, spi, transforms });
    }
    if proposals.is_empty() { Err(Malformed::Length("SA payload")) } else { Ok(proposals) }
}

fn decode_transforms(octets: &[u8], count: usize) -> Result<Vec<Transform>, Malformed> {
    if count > MAX_TRANSFORMS {
        return Err(Malformed::TooMany("transforms"));
    }
    let mut reader = Reader::new(octets, "transform");
    let mut transforms = Vec::with_capacity(count);
    for _ in 0..count {
        let (_more, _reserved, length) = (reader.u8()?, reader.u8()?, reader.u16()?);
        let mut inside = reader.sub(length, 4, "transform")?;
        let (kind, _reserved, id) = (inside.u8()?, inside.u8()?, inside.u16()?);
        transforms.push(Transform { kind, id, attributes: decode_attributes(inside)? });
    }
    reader.finish()?;
    Ok(transforms)
}

fn decode_attributes(mut reader: Reader<'_>) -> Result<Vec<Attribute>, Malformed> {
    let mut attributes = Vec::new();
    while !reader.is_empty() {
        if attributes.len() >= MAX_ATTRIBUTES {
            return Err(Malformed::TooMany("attributes"));
        }
        let (kind, value) = (reader.u16()?, reader.u16()?);
        attributes.push(if kind & SHORT_ATTRIBUTE != 0 {
            Attribute::Short(kind & !SHORT_ATTRIBUTE, value)
        } else {
            Attribute::Long(kind, reader.take(usize::from(value))?.to_vec())
        });
    }
    Ok(attributes)
}

pub(super) fn encode_proposals(proposals: &[Proposal], out: &mut Vec<u8>) {
    for (index, proposal) in proposals.iter().enumerate() {
        let start = out.len();
        let more = if index.saturating_add(1) < proposals.len() { MORE_PROPOSALS } else { 0 };
        out.extend_from_slice(&[more, 0, 0, 0, proposal.number, proposal.protocol]);
        out.extend_from_slice(&[octet(proposal.spi.len()), octet(proposal.transforms.len())]);
        out.extend_from_slice(&proposal.spi);
        for (index, transform) in proposal.transforms.iter().enumerate() {
            let more = if index.saturating_add(1) < proposal.transforms.len() { MORE_TRANSFORMS } else { 0 };
            encode_transform(transform, more, out);
        }
        patch_length(out, start, start.saturating_add(2));
    }
}

fn encode_transform(transform: &Transform, more: u8, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&[more, 0, 0, 0, transform.kind, 0]);
    out.extend_from_slice(&transform.id.to_be_bytes());
    for attribute in &transform.attributes {
        match attribute {
            Attribute::Short(kind, value) => {
                out.extend_from_slice(&(kind | SHORT_ATTRIBUTE).to_be_bytes());
                out.extend_from_slice(&value.to_be_bytes());
            }
            Attribute::Long(kind, value) => {
                out.extend_from_slice(&kind.to_be_bytes());
                out.extend_from_slice(&u16::try_from(value.len()).unwrap_or(u16::MAX).to_be_bytes());
                out.extend_from_slice(value);
            }
        }
    }
    patch_length(out, start, start.saturating_add(2));
}
