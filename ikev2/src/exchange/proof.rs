//! AUTH, CERT and CERTREQ payloads: how each side proves who it is (RFC 7296 §2.15, §3.6-3.8, RFC 7670).

use std::collections::BTreeSet;
use std::time::Instant;

use crate::authentication::{self, CannotSign, SignedOctets, VerifyingKey, shared_key_code};
use crate::certificate::{Authority, certified_key};
use crate::config::ConnectionConfig;
use crate::error::{Unsupported, Violation};
use crate::event::DialFailure;
use crate::exchange::Contents;
use crate::exchange::ike_sa_init::Transcript;
use crate::ike_sa::{IkeSa, Secured};
use crate::secret::SecretBytes;
use crate::shared::Shared;
use crate::wire::registry::{auth_method, certificate};
use crate::wire::{Identification, Payload};

/// Authorities that one CERTREQ names; with more of them, the peer may choose freely.
const MAX_REQUESTED: usize = 16;

impl From<CannotSign> for DialFailure {
    fn from(why: CannotSign) -> Self {
        match why {
            CannotSign::NoSigner => Self::NoSigner,
            CannotSign::PeerCannotVerify => {
                Self::Unsupported(Unsupported::AuthenticationMethod(auth_method::DIGITAL_SIGNATURE))
            }
        }
    }
}

/// Our CERT payloads, if any, for this connection.
pub(super) fn own_certificates(shared: &Shared, config: &ConnectionConfig) -> Vec<Payload> {
    if config.pre_shared_key.is_some() {
        return Vec::new();
    }
    match (&shared.config.certificate, config.prove_by_certificate) {
        (Some(own), true) => {
            let encoding = certificate::X509_SIGNATURE;
            //= RFC 7296 §3.6: the certificate of the key comes first
            own.chain.iter().map(|der| Payload::Certificate { encoding, data: der.clone() }).collect()
        }
        (_, true) => Vec::new(),
        (_, false) if shared.config.send_certificate => {
            let (encoding, data) =
                (certificate::RAW_PUBLIC_KEY, shared.config.signer.public_key().to_spki_der());
            vec![Payload::Certificate { encoding, data }]
        }
        (_, false) => Vec::new(),
    }
}

/// A CERTREQ payload that names the authorities of these connections, if there are any.
pub(super) fn request<'a>(configs: impl Iterator<Item = &'a ConnectionConfig>) -> Option<Payload> {
    let authorities = configs.flat_map(|config| &config.remote_authorities);
    let hashes: BTreeSet<[u8; 20]> = authorities.map(Authority::key_hash).collect();
    if hashes.is_empty() {
        return None;
    }
    let authorities =
        if hashes.len() > MAX_REQUESTED { Vec::new() } else { hashes.into_iter().flatten().collect() };
    Some(Payload::CertificateRequest { encoding: certificate::X509_SIGNATURE, authorities })
}

/// Our AUTH payload.
///
/// # Errors
/// [`CannotSign`] if there is no key for it, or none that the peer can verify.
pub(super) fn prove(
    sa: &IkeSa,
    shared: &Shared,
    secured: &Secured,
    config: &ConnectionConfig,
    transcript: &Transcript,
    id: &Identification,
) -> Result<Payload, CannotSign> {
    let octets = signed_octets(secured, transcript, &id.octets(), sa.initiator);
    let (method, data) = match &config.pre_shared_key {
        Some(secret) => {
            let code = shared_key_code(secured.keys.prf, secret, &octets);
            (auth_method::SHARED_KEY, code.expose().to_vec())
        }
        None if config.prove_by_certificate => {
            let own = shared.config.certificate.as_ref().ok_or(CannotSign::NoSigner)?;
            authentication::sign(own.signer.as_ref(), &octets, sa.peer.signature_hashes)?
        }
        None => authentication::sign(shared.config.signer.as_ref(), &octets, sa.peer.signature_hashes)?,
    };
    Ok(Payload::Authentication { method, data })
}

/// Octets that the initiator's or the responder's AUTH covers.
fn signed_octets(secured: &Secured, transcript: &Transcript, id: &[u8], of_initiator: bool) -> Vec<u8> {
    let keys = &secured.keys;
    let (first_message, nonce, sk_p) = if of_initiator {
        (&transcript.request, &transcript.nonce_r, &keys.sk_pi)
    } else {
        (&transcript.response, &transcript.nonce_i, &keys.sk_pr)
    };
    let intermediate = &transcript.intermediate;
    SignedOctets { first_message, nonce, prf: keys.prf, sk_p, identification: id, intermediate }.concatenate()
}

/// What the peer proved to own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Proven {
    /// The shared key.
    SharedKey,
    /// This pinned key.
    Key(VerifyingKey),
    /// A key that one of these authorities vouches for.
    Certificate(Vec<Authority>),
}

/// Checks the peer's AUTH payload against what the connection demands.
///
/// # Errors
/// [`Violation`] if it proves nothing.
pub(super) fn verify(
    sa: &IkeSa,
    shared: &Shared,
    config: &ConnectionConfig,
    transcript: &Transcript,
    contents: Contents<'_>,
    id: &Identification,
    now: Instant,
) -> Result<Proven, Violation> {
    let secured = sa.secured.as_ref().ok_or(Violation::Unexpected("AUTH payload"))?;
    let octets = signed_octets(secured, transcript, &id.octets(), !sa.initiator);
    let (method, data) = contents.authentication()?;
    match (method, &config.pre_shared_key) {
        (auth_method::SHARED_KEY, Some(secret)) => {
            let expected = shared_key_code(secured.keys.prf, secret, &octets);
            if SecretBytes::new(data.to_vec()) == expected {
                Ok(Proven::SharedKey)
            } else {
                Err(Violation::Authentication("the shared key differs"))
            }
        }
        (auth_method::SHARED_KEY, None) | (_, Some(_)) => {
            Err(Violation::Authentication("another method than configured"))
        }
        (_, None) => {
            check_raw_keys(contents, config)?;
            let check = |key: &VerifyingKey| {
                let keys = std::slice::from_ref(key);
                authentication::verify(method, data, &octets, keys, sa.peer.signature_hashes)
            };
            let mut result = Err(Violation::Authentication("no key of the peer is known"));
            // The old and the new key of a peer count side by side.
            for key in &config.remote_keys {
                result = check(key);
                if result.is_ok() {
                    return Ok(Proven::Key(key.clone()));
                }
            }
            let presented: Vec<&[u8]> = of_encoding(contents, certificate::X509_SIGNATURE).collect();
            if config.remote_authorities.is_empty() || presented.is_empty() {
                return Err(result.err().unwrap_or(Violation::Missing("CERT")));
            }
            let clock = shared.config.wall_clock;
            let clock = clock.ok_or(Violation::Authentication("the time of day is not known"))?;
            let authorities = &config.remote_authorities;
            let key = certified_key(&presented, authorities, &config.remote_id, clock.read(now))?;
            check(&key).map(|()| Proven::Certificate(authorities.clone()))
        }
    }
}

/// A raw public key in a CERT payload must be a pinned one; it is never a source of trust.
//= RFC 7670 §3
fn check_raw_keys(contents: Contents<'_>, config: &ConnectionConfig) -> Result<(), Violation> {
    let pinned = |data: &[u8]| config.remote_keys.iter().any(|key| key.to_spki_der() == data);
    if of_encoding(contents, certificate::RAW_PUBLIC_KEY).all(pinned) {
        Ok(())
    } else {
        Err(Violation::Authentication("the presented key is not the pinned one"))
    }
}

fn of_encoding(contents: Contents<'_>, wanted: u8) -> impl Iterator<Item = &[u8]> {
    contents.certificates().filter(move |(encoding, _)| *encoding == wanted).map(|(_, data)| data)
}
