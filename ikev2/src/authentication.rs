//! AUTH payloads: what they cover, how they are made and checked (RFC 7296 §2.15, RFC 7427, RFC 8420).

use crate::error::Violation;
use crate::key_schedule::Prf;
use crate::secret::SecretBytes;
use crate::signature::{HashSet, Scheme};
use crate::wire::registry::auth_method;

pub use crate::signature::SignatureHash;
pub use crate::signer::{EcdsaSigner, Ed25519Signer, Signer, SignerUnavailable, signer_from_pkcs8_der};
pub use crate::verifying_key::{KeyKind, VerifyingKey};

/// What a peer's AUTH payload covers (RFC 7296 §2.15, RFC 9242 §3.3.2).
pub struct SignedOctets<'a> {
    /// The peer's IKE_SA_INIT message as it was on the wire.
    pub first_message: &'a [u8],
    /// The other side's nonce.
    pub nonce: &'a [u8],
    /// The negotiated pseudo-random function.
    pub prf: Prf,
    /// SK_pi or SK_pr of the peer.
    pub sk_p: &'a SecretBytes,
    /// Body of the peer's ID payload.
    pub identification: &'a [u8],
    /// IntAuth, if and only if IKE_INTERMEDIATE exchanges took place.
    pub intermediate: &'a [u8],
}

impl SignedOctets<'_> {
    /// The concatenation.
    pub fn concatenate(&self) -> Vec<u8> {
        let maced_id = self.prf.compute(self.sk_p.expose(), &[self.identification]);
        [self.first_message, self.nonce, maced_id.expose(), self.intermediate].concat()
    }
}

/// Why there is no AUTH payload of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CannotSign {
    /// The key is not there, or of a kind that we do not sign with.
    NoSigner,
    /// The peer announced no hash that our key can be used with.
    PeerCannotVerify,
}

impl From<SignerUnavailable> for CannotSign {
    fn from(_: SignerUnavailable) -> Self {
        Self::NoSigner
    }
}

/// Method and data of our AUTH payload, for a peer that announced these hashes.
pub(crate) fn sign(
    signer: &dyn Signer,
    octets: &[u8],
    announced: HashSet,
) -> Result<(u8, Vec<u8>), CannotSign> {
    use SignatureHash::{Identity, Sha256, Sha384, Sha512};
    let kind = signer.public_key().kind();
    let (hashes, legacy): (&[SignatureHash], u8) = match kind {
        KeyKind::Ed25519 => (&[Identity], 0),
        KeyKind::P256 => (&[Sha256, Sha384, Sha512], auth_method::ECDSA_P256),
        KeyKind::P384 => (&[Sha384, Sha512, Sha256], auth_method::ECDSA_P384),
        KeyKind::Rsa => (&[Sha256, Sha384, Sha512], auth_method::RSA),
    };
    //= RFC 7427 §4: only hashes that the peer announced
    if let Some(hash) = hashes.iter().copied().find(|hash| announced.contains(*hash)) {
        let signature = signer.sign(octets, hash)?;
        let scheme = match kind {
            KeyKind::Ed25519 => Scheme::Ed25519,
            KeyKind::P256 | KeyKind::P384 => Scheme::Ecdsa(hash),
            KeyKind::Rsa => Scheme::RsaPss(hash),
        };
        return Ok((auth_method::DIGITAL_SIGNATURE, digital_signature(scheme, &signature)));
    }
    //= RFC 4754 §3: before the digital signature method, each curve had a method with its own hash.
    match (announced.is_empty(), hashes.first()) {
        (true, Some(hash)) if matches!(kind, KeyKind::P256 | KeyKind::P384) => {
            let signature = fixed_length(kind, &signer.sign(octets, *hash)?).ok_or(CannotSign::NoSigner)?;
            Ok((legacy, signature))
        }
        _ => Err(CannotSign::PeerCannotVerify),
    }
}

/// An ECDSA signature as two numbers of the curve's length.
fn fixed_length(kind: KeyKind, der: &[u8]) -> Option<Vec<u8>> {
    match kind {
        KeyKind::P256 => {
            p256::ecdsa::Signature::from_der(der).ok().map(|signature| signature.to_bytes().to_vec())
        }
        KeyKind::P384 => {
            p384::ecdsa::Signature::from_der(der).ok().map(|signature| signature.to_bytes().to_vec())
        }
        KeyKind::Ed25519 | KeyKind::Rsa => None,
    }
}

/// AUTH data of method 14: the length of the AlgorithmIdentifier, itself, the signature.
//= RFC 7427 §3
pub(crate) fn digital_signature(scheme: Scheme, signature: &[u8]) -> Vec<u8> {
    let identifier = scheme.identifier().unwrap_or_default();
    let length = u8::try_from(identifier.len()).unwrap_or(0);
    [&[length][..], &identifier, signature].concat()
}

/// Checks AUTH data of a signature method against any of the keys. A peer that announced no hashes may know the
/// methods of earlier documents only.
///
/// # Errors
/// [`Violation::Authentication`] if it is not exactly a signature by one of them.
pub(crate) fn verify(
    method: u8,
    data: &[u8],
    octets: &[u8],
    keys: &[VerifyingKey],
    announced: HashSet,
) -> Result<(), Violation> {
    let any = |kind: KeyKind, scheme: Scheme| {
        keys.iter().any(|key| key.kind() == kind && key.verifies(scheme, octets, data))
    };
    let verified = match method {
        auth_method::DIGITAL_SIGNATURE => return verify_digital_signature(data, octets, keys),
        auth_method::ECDSA_P256 => any(KeyKind::P256, Scheme::EcdsaFixed),
        auth_method::ECDSA_P384 => any(KeyKind::P384, Scheme::EcdsaFixed),
        //= RFC 7296 §3.8: SHA-1 unless something else is known; a peer that announced hashes knows better.
        auth_method::RSA if announced.is_empty() => {
            let better = [SignatureHash::Sha256, SignatureHash::Sha384, SignatureHash::Sha512];
            any(KeyKind::Rsa, Scheme::RsaPkcs1Sha1)
                || better.into_iter().any(|hash| any(KeyKind::Rsa, Scheme::RsaPkcs1(hash)))
        }
        _ => return Err(Violation::Authentication("another method than configured")),
    };
    if verified { Ok(()) } else { Err(Violation::Authentication("the signature does not verify")) }
}

/// Checks AUTH data of method 14 against any of the keys.
///
/// # Errors
/// [`Violation::Authentication`] if it is not exactly a signature by one of them.
pub fn verify_digital_signature(data: &[u8], octets: &[u8], keys: &[VerifyingKey]) -> Result<(), Violation> {
    const UNKNOWN: Violation = Violation::Authentication("the signature algorithm is unknown");
    let (length, rest) = data.split_first().ok_or(UNKNOWN)?;
    let (identifier, signature) = rest.split_at_checked(usize::from(*length)).ok_or(UNKNOWN)?;
    let scheme = Scheme::from_identifier(identifier).ok_or(UNKNOWN)?;
    let verified = keys.iter().any(|key| key.verifies(scheme, octets, signature));
    if verified { Ok(()) } else { Err(Violation::Authentication("the signature does not verify")) }
}

/// AUTH data of the shared key method: prf(prf(secret, "Key Pad for IKEv2"), octets).
//= RFC 7296 §2.15
pub fn shared_key_code(prf: Prf, secret: &SecretBytes, octets: &[u8]) -> SecretBytes {
    let padded = prf.compute(secret.expose(), &[b"Key Pad for IKEv2"]);
    prf.compute(padded.expose(), &[octets])
}

#[cfg(test)]
mod tests {
    use p256::pkcs8::EncodePrivateKey;

    use super::*;

    fn all() -> HashSet {
        HashSet::parse(&[0, 2, 0, 3, 0, 4, 0, 5])
    }

    fn signers() -> [Box<dyn Signer>; 3] {
        let p256 = p256::SecretKey::from_slice(&[3; 32]).unwrap().to_pkcs8_der().unwrap();
        let p384 = p384::SecretKey::from_slice(&[4; 48]).unwrap().to_pkcs8_der().unwrap();
        [
            Box::new(Ed25519Signer::from_seed(&[7; 32])),
            Box::new(EcdsaSigner::from_pkcs8_der(p256.as_bytes()).unwrap()),
            Box::new(EcdsaSigner::from_pkcs8_der(p384.as_bytes()).unwrap()),
        ]
    }

    /// The whole kind: any shorter, longer or changed AUTH data, and any other key or octets.
    #[test]
    fn only_the_exact_encoding_verifies() {
        for signer in signers() {
            let keys = [Ed25519Signer::from_seed(&[8; 32]).public_key(), signer.public_key()];
            let (method, data) = sign(signer.as_ref(), b"octets", all()).unwrap();
            let check = |data: &[u8], octets: &[u8], keys| verify(method, data, octets, keys, all());
            assert_eq!(method, 14);
            assert_eq!(check(&data, b"octets", &keys), Ok(()));
            assert!(check(&data, b"other", &keys).is_err());
            assert!(check(&data, b"octets", &keys[..1]).is_err());
            for length in 0..data.len() {
                assert!(check(&data[..length], b"octets", &keys).is_err(), "{length} octets");
            }
            assert!(check(&[&data[..], &[0]].concat(), b"octets", &keys).is_err());
            for index in 0..data.len() {
                for change in [1, 0x80, 0xFF] {
                    let mut changed = data.clone();
                    changed[index] ^= change;
                    assert!(check(&changed, b"octets", &keys).is_err(), "octet {index}");
                }
            }
        }
    }

    #[test]
    fn ed25519_has_the_octets_of_the_rfc() {
        let (_, data) = sign(signers()[0].as_ref(), b"octets", all()).unwrap();
        assert_eq!(data[..8], [0x07, 0x30, 0x05, 0x06, 0x03, 0x2B, 0x65, 0x70]);
        assert_eq!(data.len(), 72);
    }

    #[test]
    fn curves_use_the_hash_that_the_peer_knows_or_the_method_of_earlier_times() {
        for (signer, legacy, length) in [(1, 9, 64), (2, 10, 96)] {
            let signer = &signers()[signer];
            let keys = [signer.public_key()];
            for code in [2, 3, 4] {
                let announced = HashSet::parse(&[0, code]);
                let (method, data) = sign(signer.as_ref(), b"octets", announced).unwrap();
                assert_eq!((method, data[12]), (14, code), "the last arc of ECDSA with SHA-2 is that number");
                assert_eq!(verify(method, &data, b"octets", &keys, announced), Ok(()));
            }
            let (method, data) = sign(signer.as_ref(), b"octets", HashSet::default()).unwrap();
            assert_eq!((method, data.len()), (legacy, length));
            assert_eq!(verify(method, &data, b"octets", &keys, HashSet::default()), Ok(()));
            assert!(verify(19 - method, &data, b"octets", &keys, HashSet::default()).is_err());
            let only_identity = HashSet::parse(&[0, 5]);
            assert_eq!(sign(signer.as_ref(), b"", only_identity), Err(CannotSign::PeerCannotVerify));
        }
        let unable = sign(signers()[0].as_ref(), b"", HashSet::default());
        assert_eq!(unable, Err(CannotSign::PeerCannotVerify));
    }
}
