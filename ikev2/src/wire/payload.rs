//! The generic payload header and the chain of payloads (RFC 7296 §3.2).

use super::configuration::Configuration;
use super::delete::Delete;
use super::encrypted::{Encrypted, EncryptedFragment};
use super::identification::Identification;
use super::notify::Notify;
use super::reader::Reader;
use super::registry::payload as kind;
use super::sa::{Proposal, decode_proposals, encode_proposals};
use super::traffic_selector::{TrafficSelector, decode_selectors, encode_selectors};
use super::writer::patch_length;
use crate::error::Malformed;

/// Payloads in one message; honest peers send about twenty.
const MAX_PAYLOADS: usize = 64;
const GENERIC_HEADER_LEN: usize = 4;
const CRITICAL: u8 = 0x80;

/// One payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Payload {
    /// SA: proposals (§3.3).
    SecurityAssociation(Vec<Proposal>),
    /// KE: a public value (§3.4).
    KeyExchange {
        /// Key exchange method (transform ID of type 4).
        method: u16,
        /// The public value.
        data: Vec<u8>,
    },
    /// IDi (§3.5).
    IdentificationInitiator(Identification),
    /// IDr (§3.5).
    IdentificationResponder(Identification),
    /// CERT (§3.6).
    Certificate {
        /// Encoding number.
        encoding: u8,
        /// Certificate or key.
        data: Vec<u8>,
    },
    /// CERTREQ (§3.7).
    CertificateRequest {
        /// Encoding number.
        encoding: u8,
        /// Hashes of acceptable authorities.
        authorities: Vec<u8>,
    },
    /// AUTH (§3.8).
    Authentication {
        /// Authentication method.
        method: u8,
        /// Method-specific octets.
        data: Vec<u8>,
    },
    /// Ni or Nr (§3.9).
    Nonce(Vec<u8>),
    /// N (§3.10).
    Notify(Notify),
    /// D (§3.11).
    Delete(Delete),
    /// V (§3.12).
    VendorId(Vec<u8>),
    /// TSi (§3.13).
    TrafficSelectorInitiator(Vec<TrafficSelector>),
    /// TSr (§3.13).
    TrafficSelectorResponder(Vec<TrafficSelector>),
    /// SK (§3.14): always last.
    Encrypted(Encrypted),
    /// SKF (RFC 7383 §2.5): always last.
    EncryptedFragment(EncryptedFragment),
    /// CP (§3.15).
    Configuration(Configuration),
    /// EAP (§3.16), not interpreted.
    Eap(Vec<u8>),
}

impl Payload {
    /// Payload type number.
    pub fn kind(&self) -> u8 {
        match self {
            Self::SecurityAssociation(_) => kind::SECURITY_ASSOCIATION,
            Self::KeyExchange { .. } => kind::KEY_EXCHANGE,
            Self::IdentificationInitiator(_) => kind::IDENTIFICATION_INITIATOR,
            Self::IdentificationResponder(_) => kind::IDENTIFICATION_RESPONDER,
            Self::Certificate { .. } => kind::CERTIFICATE,
            Self::CertificateRequest { .. } => kind::CERTIFICATE_REQUEST,
            Self::Authentication { .. } => kind::AUTHENTICATION,
            Self::Nonce(_) => kind::NONCE,
            Self::Notify(_) => kind::NOTIFY,
            Self::Delete(_) => kind::DELETE,
            Self::VendorId(_) => kind::VENDOR_ID,
            Self::TrafficSelectorInitiator(_) => kind::TRAFFIC_SELECTOR_INITIATOR,
            Self::TrafficSelectorResponder(_) => kind::TRAFFIC_SELECTOR_RESPONDER,
            Self::Encrypted(_) => kind::ENCRYPTED,
            Self::EncryptedFragment(_) => kind::ENCRYPTED_FRAGMENT,
            Self::Configuration(_) => kind::CONFIGURATION,
            Self::Eap(_) => kind::EAP,
        }
    }

    /// Reads the body of a payload; `next` is the Next Payload field of its generic header, which for SK
    /// and SKF names the first payload inside. `None` if the type is unknown.
    fn decode(payload: u8, next: u8, body: &[u8]) -> Result<Option<Self>, Malformed> {
        let mut reader = Reader::new(body, name(payload));
        Ok(Some(match payload {
            kind::SECURITY_ASSOCIATION => Self::SecurityAssociation(decode_proposals(body)?),
            kind::KEY_EXCHANGE => {
                let method = reader.u16()?;
                reader.take(2)?;
                Self::KeyExchange { method, data: reader.remainder().to_vec() }
            }
            kind::IDENTIFICATION_INITIATOR => Self::IdentificationInitiator(Identification::decode(body)?),
            kind::IDENTIFICATION_RESPONDER => Self::IdentificationResponder(Identification::decode(body)?),
            kind::CERTIFICATE => {
                Self::Certificate { encoding: reader.u8()?, data: reader.remainder().to_vec() }
            }
            kind::CERTIFICATE_REQUEST => {
                Self::CertificateRequest { encoding: reader.u8()?, authorities: reader.remainder().to_vec() }
            }
            kind::AUTHENTICATION => {
                let method = reader.u8()?;
                reader.take(3)?;
                Self::Authentication { method, data: reader.remainder().to_vec() }
            }
            kind::NONCE => Self::Nonce(checked_nonce(body)?),
            kind::NOTIFY => Self::Notify(Notify::decode(body)?),
            kind::DELETE => Self::Delete(Delete::decode(body)?),
            kind::VENDOR_ID => Self::VendorId(body.to_vec()),
            kind::TRAFFIC_SELECTOR_INITIATOR => Self::TrafficSelectorInitiator(decode_selectors(body)?),
            kind::TRAFFIC_SELECTOR_RESPONDER => Self::TrafficSelectorResponder(decode_selectors(body)?),
            kind::ENCRYPTED => Self::Encrypted(Encrypted { first_inner: next, body: body.to_vec() }),
            kind::ENCRYPTED_FRAGMENT => Self::EncryptedFragment(EncryptedFragment::decode(next, body)?),
            kind::CONFIGURATION => Self::Configuration(Configuration::decode(body)?),
            kind::EAP => Self::Eap(body.to_vec()),
            _ => return Ok(None),
        }))
    }

    fn encode_body(&self, out: &mut Vec<u8>) {
        match self {
            Self::SecurityAssociation(proposals) => encode_proposals(proposals, out),
            Self::KeyExchange { method, data } => {
                out.extend_from_slice(&method.to_be_bytes());
                out.extend_from_slice(&[0, 0]);
                out.extend_from_slice(data);
            }
            Self::IdentificationInitiator(id) | Self::IdentificationResponder(id) => id.encode(out),
            Self::Certificate { encoding, data }
            | Self::CertificateRequest { encoding, authorities: data } => {
                out.push(*encoding);
                out.extend_from_slice(data);
            }
            Self::Authentication { method, data } => {
                out.extend_from_slice(&[*method, 0, 0, 0]);
                out.extend_from_slice(data);
            }
            Self::Nonce(octets) | Self::VendorId(octets) | Self::Eap(octets) => out.extend_from_slice(octets),
            Self::Notify(notify) => notify.encode(out),
            Self::Delete(delete) => delete.encode(out),
            Self::TrafficSelectorInitiator(selectors) | Self::TrafficSelectorResponder(selectors) => {
                encode_selectors(selectors, out);
            }
            Self::Encrypted(encrypted) => out.extend_from_slice(&encrypted.body),
            Self::EncryptedFragment(fragment) => fragment.encode(out),
            Self::Configuration(configuration) => configuration.encode(out),
        }
    }

    /// What the Next Payload field of this payload says, given the type of the payload after it.
    fn next_field(&self, following: u8) -> u8 {
        match self {
            Self::Encrypted(encrypted) => encrypted.first_inner,
            Self::EncryptedFragment(fragment) => fragment.first_inner,
            _ => following,
        }
    }
}

//= RFC 7296 §3.9: the size of nonce data MUST be between 16 and 256 octets.
fn checked_nonce(body: &[u8]) -> Result<Vec<u8>, Malformed> {
    if (16..=256).contains(&body.len()) { Ok(body.to_vec()) } else { Err(Malformed::Length("nonce")) }
}

/// Reads a chain of payloads of which the first has type `first`.
///
/// # Errors
/// [`Malformed::UnsupportedCritical`] for an unknown payload marked critical; others for broken octets.
pub fn decode_chain(first: u8, octets: &[u8]) -> Result<Vec<Payload>, Malformed> {
    let mut payloads = Vec::new();
    let mut reader = Reader::new(octets, "payload header");
    let mut current = first;
    for _ in 0..MAX_PAYLOADS {
        if current == kind::NONE {
            reader.finish().map_err(|_| Malformed::Length("payload chain"))?;
            return Ok(payloads);
        }
        let (next, flags, length) = (reader.u8()?, reader.u8()?, reader.u16()?);
        let body = reader.sub(length, GENERIC_HEADER_LEN, name(current))?.remainder();
        match Payload::decode(current, next, body)? {
            Some(payload) => payloads.push(payload),
            //= RFC 7296 §2.5: unknown and critical: reject the message; unknown and not critical: skip.
            // The flag is not even looked at for types that are known.
            None if flags & CRITICAL != 0 => return Err(Malformed::UnsupportedCritical(current)),
            None => {}
        }
        let is_encrypted = current == kind::ENCRYPTED || current == kind::ENCRYPTED_FRAGMENT;
        //= RFC 7296 §3.14: the Encrypted payload MUST be the last payload in the message.
        current = if is_encrypted { kind::NONE } else { next };
    }
    Err(Malformed::TooMany("payloads"))
}

/// Appends the chain.
pub fn encode_chain(payloads: &[Payload], out: &mut Vec<u8>) {
    let following = payloads.iter().skip(1).map(Payload::kind).chain([kind::NONE]);
    for (payload, following) in payloads.iter().zip(following) {
        let start = out.len();
        out.extend_from_slice(&[payload.next_field(following), 0, 0, 0]);
        payload.encode_body(out);
        patch_length(out, start, start.saturating_add(2));
    }
}

/// Name of a payload type in errors.
fn name(payload: u8) -> &'static str {
    match payload {
        kind::SECURITY_ASSOCIATION => "SA payload",
        kind::KEY_EXCHANGE => "KE payload",
        kind::IDENTIFICATION_INITIATOR | kind::IDENTIFICATION_RESPONDER => "ID payload",
        kind::CERTIFICATE => "CERT payload",
        kind::CERTIFICATE_REQUEST => "CERTREQ payload",
        kind::AUTHENTICATION => "AUTH payload",
        kind::NONCE => "nonce payload",
        kind::NOTIFY => "notify payload",
        kind::DELETE => "delete payload",
        kind::VENDOR_ID => "vendor ID payload",
        kind::TRAFFIC_SELECTOR_INITIATOR | kind::TRAFFIC_SELECTOR_RESPONDER => "TS payload",
        kind::ENCRYPTED => "encrypted payload",
        kind::ENCRYPTED_FRAGMENT => "encrypted fragment payload",
        kind::CONFIGURATION => "configuration payload",
        kind::EAP => "EAP payload",
        _ => "unknown payload",
    }
}
