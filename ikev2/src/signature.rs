//! Signature schemes: what an AlgorithmIdentifier of the digital signature method says (RFC 7427 appendix A,
//! RFC 8420), and what the methods of earlier documents mean (RFC 7296 §3.8, RFC 4754).

use aws_lc_rs::signature as aws;

use crate::verifying_key::KeyKind;

/// A hash function of SIGNATURE_HASH_ALGORITHMS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SignatureHash {
    /// SHA-256.
    Sha256,
    /// SHA-384.
    Sha384,
    /// SHA-512.
    Sha512,
    /// None: the signature algorithm takes the octets themselves (Ed25519).
    Identity,
}

impl SignatureHash {
    /// What we announce: all that we verify.
    pub const ALL: [Self; 4] = [Self::Sha256, Self::Sha384, Self::Sha512, Self::Identity];

    /// Number in SIGNATURE_HASH_ALGORITHMS.
    pub const fn code(self) -> u16 {
        match self {
            Self::Sha256 => 2,
            Self::Sha384 => 3,
            Self::Sha512 => 4,
            Self::Identity => 5,
        }
    }
}

/// Hashes that a peer announced.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct HashSet(u8);

impl HashSet {
    /// From the data of SIGNATURE_HASH_ALGORITHMS; numbers that we do not know are skipped.
    pub(crate) fn parse(data: &[u8]) -> Self {
        let (codes, _) = data.as_chunks::<2>();
        let known = SignatureHash::ALL.into_iter().enumerate();
        let listed = known.filter(|(_, hash)| codes.contains(&hash.code().to_be_bytes()));
        Self(listed.fold(0, |bits, (index, _)| bits | 1 << index))
    }

    pub(crate) fn contains(self, hash: SignatureHash) -> bool {
        let index = SignatureHash::ALL.iter().position(|known| *known == hash);
        index.is_some_and(|index| self.0 & (1 << index) != 0)
    }

    /// Whether the peer knows no digital signature method at all, as far as we can tell.
    pub(crate) const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// How a signature is made, given the kind of key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scheme {
    Ed25519,
    /// ECDSA as DER.
    Ecdsa(SignatureHash),
    /// ECDSA as two numbers of fixed length, with the hash that belongs to the curve.
    EcdsaFixed,
    RsaPkcs1(SignatureHash),
    RsaPss(SignatureHash),
    /// What method 1 means where nothing was agreed.
    RsaPkcs1Sha1,
}

/// AlgorithmIdentifier of Ed25519, without parameters.
//= RFC 8420 §2
const ED25519: &[u8] = &[0x30, 0x05, 0x06, 0x03, 0x2B, 0x65, 0x70];

/// OIDs 1.2.840.10045.4.3.x: ECDSA with SHA-2.
const ECDSA_PREFIX: [u8; 11] = [0x30, 0x0A, 0x06, 0x08, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x04, 0x03];
/// OIDs 1.2.840.113549.1.1.x: RSA with SHA-2, parameters NULL.
const RSA_PREFIX: [u8; 12] = [0x30, 0x0D, 0x06, 0x09, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01];

impl Scheme {
    /// The AlgorithmIdentifier that stands for it in method 14; `None` for schemes that have a method of their own.
    pub(crate) fn identifier(self) -> Option<Vec<u8>> {
        Some(match self {
            Self::Ed25519 => ED25519.to_vec(),
            Self::Ecdsa(hash) => [&ECDSA_PREFIX[..], &[last_arc(hash, [2, 3, 4])?]].concat(),
            Self::RsaPkcs1(hash) => [&RSA_PREFIX[..], &[last_arc(hash, [11, 12, 13])?, 0x05, 0x00]].concat(),
            Self::RsaPss(hash) => pss_identifiers(hash)?.next()?,
            Self::EcdsaFixed | Self::RsaPkcs1Sha1 => return None,
        })
    }

    /// What an AlgorithmIdentifier means. Only the exact encodings are known.
    pub(crate) fn from_identifier(identifier: &[u8]) -> Option<Self> {
        let hashes = [SignatureHash::Sha256, SignatureHash::Sha384, SignatureHash::Sha512];
        let plain = [Self::Ed25519]
            .into_iter()
            .chain(hashes.map(Self::Ecdsa))
            .chain(hashes.map(Self::RsaPkcs1))
            .find(|scheme| scheme.identifier().as_deref() == Some(identifier));
        plain.or_else(|| {
            let is_pss = |hash: &SignatureHash| {
                pss_identifiers(*hash).is_some_and(|mut known| known.any(|known| known == identifier))
            };
            hashes.into_iter().find(is_pss).map(Self::RsaPss)
        })
    }

    /// What verifies it with a key of this kind; `None` if the two do not fit.
    pub(crate) fn algorithm(self, kind: KeyKind) -> Option<&'static dyn aws::VerificationAlgorithm> {
        use SignatureHash::{Identity, Sha256, Sha384, Sha512};
        Some(match (self, kind) {
            (Self::Ecdsa(Sha256), KeyKind::P256) => &aws::ECDSA_P256_SHA256_ASN1,
            (Self::Ecdsa(Sha384), KeyKind::P256) => &aws::ECDSA_P256_SHA384_ASN1,
            (Self::Ecdsa(Sha512), KeyKind::P256) => &aws::ECDSA_P256_SHA512_ASN1,
            (Self::Ecdsa(Sha256), KeyKind::P384) => &aws::ECDSA_P384_SHA256_ASN1,
            (Self::Ecdsa(Sha384), KeyKind::P384) => &aws::ECDSA_P384_SHA384_ASN1,
            (Self::Ecdsa(Sha512), KeyKind::P384) => &aws::ECDSA_P384_SHA512_ASN1,
            (Self::EcdsaFixed, KeyKind::P256) => &aws::ECDSA_P256_SHA256_FIXED,
            (Self::EcdsaFixed, KeyKind::P384) => &aws::ECDSA_P384_SHA384_FIXED,
            (Self::RsaPkcs1(Sha256), KeyKind::Rsa) => &aws::RSA_PKCS1_2048_8192_SHA256,
            (Self::RsaPkcs1(Sha384), KeyKind::Rsa) => &aws::RSA_PKCS1_2048_8192_SHA384,
            (Self::RsaPkcs1(Sha512), KeyKind::Rsa) => &aws::RSA_PKCS1_2048_8192_SHA512,
            (Self::RsaPss(Sha256), KeyKind::Rsa) => &aws::RSA_PSS_2048_8192_SHA256,
            (Self::RsaPss(Sha384), KeyKind::Rsa) => &aws::RSA_PSS_2048_8192_SHA384,
            (Self::RsaPss(Sha512), KeyKind::Rsa) => &aws::RSA_PSS_2048_8192_SHA512,
            (Self::RsaPkcs1Sha1, KeyKind::Rsa) => &aws::RSA_PKCS1_2048_8192_SHA1_FOR_LEGACY_USE_ONLY,
            (Self::Ecdsa(Identity) | Self::RsaPkcs1(Identity) | Self::RsaPss(Identity), _)
            | (
                Self::Ed25519
                | Self::Ecdsa(_)
                | Self::EcdsaFixed
                | Self::RsaPkcs1(_)
                | Self::RsaPss(_)
                | Self::RsaPkcs1Sha1,
                _,
            ) => return None,
        })
    }
}

fn last_arc(hash: SignatureHash, arcs: [u8; 3]) -> Option<u8> {
    match hash {
        SignatureHash::Sha256 => Some(arcs[0]),
        SignatureHash::Sha384 => Some(arcs[1]),
        SignatureHash::Sha512 => Some(arcs[2]),
        SignatureHash::Identity => None,
    }
}

/// Encodings of RSASSA-PSS whose salt is as long as the hash: parameters of the hash may be NULL or absent, and the
/// trailer field may be spelt out although it has its default.
//= RFC 7427 §A.4, RFC 4055 §3.1
fn pss_identifiers(hash: SignatureHash) -> Option<impl Iterator<Item = Vec<u8>>> {
    let arc = last_arc(hash, [1, 2, 3])?;
    let salt_len = last_arc(hash, [32, 48, 64])?;
    let variants = [(true, false), (false, false), (true, true), (false, true)];
    Some(variants.into_iter().map(move |(null, trailer)| {
        let parameters: &[u8] = if null { &[0x05, 0x00] } else { &[] };
        let oid = [&[0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02][..], &[arc]].concat();
        let hash = element(0x30, &[&oid, parameters].concat());
        let mgf1 = [0x06, 0x09, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x08];
        let mask = element(0x30, &[&mgf1[..], &hash].concat());
        let trailer: &[u8] = if trailer { &[0xA3, 0x03, 0x02, 0x01, 0x01] } else { &[] };
        let salt = [0xA2, 0x03, 0x02, 0x01, salt_len];
        let inside = [&element(0xA0, &hash)[..], &element(0xA1, &mask), &salt, trailer].concat();
        let pss = [0x06, 0x09, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x0A];
        element(0x30, &[&pss[..], &element(0x30, &inside)].concat())
    }))
}

/// A DER element of fewer than 128 octets.
fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    [&[tag, u8::try_from(content.len()).unwrap_or(0x7F)][..], content].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_those_of_the_appendix_and_lead_back() {
        let sha256_rsa = [0x30, 0x0D, 0x06, 0x09, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x0B, 5, 0];
        let ecdsa_sha512 = [0x30, 0x0A, 0x06, 0x08, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x04, 0x03, 0x04];
        assert_eq!(Scheme::RsaPkcs1(SignatureHash::Sha256).identifier().unwrap(), sha256_rsa);
        assert_eq!(Scheme::Ecdsa(SignatureHash::Sha512).identifier().unwrap(), ecdsa_sha512);
        for hash in [SignatureHash::Sha256, SignatureHash::Sha384, SignatureHash::Sha512] {
            for scheme in [Scheme::Ed25519, Scheme::Ecdsa(hash), Scheme::RsaPkcs1(hash), Scheme::RsaPss(hash)]
            {
                let identifier = scheme.identifier().unwrap();
                assert_eq!(Scheme::from_identifier(&identifier), Some(scheme));
                assert_eq!(Scheme::from_identifier(&identifier[..identifier.len() - 1]), None);
            }
            for known in pss_identifiers(hash).unwrap() {
                assert_eq!(Scheme::from_identifier(&known), Some(Scheme::RsaPss(hash)));
                assert_eq!(usize::from(known[1]) + 2, known.len());
            }
        }
    }

    #[test]
    fn announced_hashes_are_read_and_unknown_ones_skipped() {
        let set = HashSet::parse(&[0, 1, 0, 5, 0, 99, 0, 2, 7]);
        assert!(set.contains(SignatureHash::Identity) && set.contains(SignatureHash::Sha256));
        assert!(!set.contains(SignatureHash::Sha384) && !set.is_empty());
        assert!(HashSet::parse(&[0, 1]).is_empty());
    }
}
