//! Whole messages inside an SK payload.

use crate::error::Malformed;
use crate::sealed_payload::{PayloadCipher, SEALING_OVERHEAD};
use crate::wire::registry::payload as kind;
use crate::wire::{HEADER_LEN, Header, Payload, encode_chain};

const PAYLOAD_HEADER_LEN: usize = 4;

/// The datagrams of a message whose payloads are encrypted.
pub(crate) fn seal_message(cipher: &mut PayloadCipher, header: Header, payloads: &[Payload]) -> Vec<Vec<u8>> {
    let mut plaintext = Vec::new();
    encode_chain(payloads, &mut plaintext);
    let first_inner = payloads.first().map_or(kind::NONE, Payload::kind);
    let payload_len = PAYLOAD_HEADER_LEN + plaintext.len() + SEALING_OVERHEAD;
    let mut out = Vec::with_capacity(HEADER_LEN + payload_len);
    let length = u32::try_from(HEADER_LEN + payload_len).unwrap_or(u32::MAX);
    Header { first_payload: kind::ENCRYPTED, length, ..header }.encode(&mut out);
    let payload_len = u16::try_from(payload_len).unwrap_or(u16::MAX).to_be_bytes();
    out.extend_from_slice(&[first_inner, 0, payload_len[0], payload_len[1]]);
    let associated = out.clone();
    cipher.seal(&associated, &plaintext, &mut out);
    vec![out]
}

/// Payloads of a message before the encrypted part, type of the first payload inside, and the octets.
pub(crate) struct OpenedMessage {
    /// Type of the first payload inside.
    pub(crate) first_inner: u8,
    /// The payload chain inside.
    pub(crate) plaintext: Vec<u8>,
}

/// Decrypts the SK payload that must end `datagram`, of which `payloads` is the decoded outside.
///
/// # Errors
/// [`Malformed`] if there is no SK payload or it does not authenticate.
pub(crate) fn open_message(
    cipher: &PayloadCipher,
    datagram: &[u8],
    payloads: &[Payload],
) -> Result<OpenedMessage, Malformed> {
    let Some(Payload::Encrypted(encrypted)) = payloads.last() else {
        return Err(Malformed::Value("unencrypted message"));
    };
    let outside = datagram.len().saturating_sub(encrypted.body.len());
    let associated = datagram.get(..outside).ok_or(Malformed::Truncated("encrypted payload"))?;
    let plaintext = cipher.open(associated, &encrypted.body)?;
    Ok(OpenedMessage { first_inner: encrypted.first_inner, plaintext })
}
