//! X.509 certificates of peers: a chain to a pinned authority, and the identity that it is for (RFC 7296 §3.6,
//! RFC 4945, RFC 5280). Nothing is ever fetched.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use rustls_pki_types::{CertificateDer, ServerName, TrustAnchor, UnixTime};
use sha1::{Digest, Sha1};
use webpki::{EndEntityCert, ExtendedKeyUsageValidator, KeyPurposeId, KeyPurposeIdIter};

use crate::authentication::Signer;
use crate::error::{Misuse, Violation};
use crate::identity::Identity;
use crate::verifying_key::VerifyingKey;

/// Certificates that one message may bring.
const MAX_CERTIFICATES: usize = 6;
/// Octets that one certificate may have.
const MAX_CERTIFICATE_LEN: usize = 8192;

/// Key purposes that a certificate may be restricted to and still serve for IKE: ipsecIKE, iKEIntermediate, server
/// and client authentication, any.
//= RFC 4945 §5.1.3.12
const PURPOSES: [&[u8]; 5] = [
    &[0x2B, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x11],
    &[0x2B, 0x06, 0x01, 0x05, 0x05, 0x08, 0x02, 0x02],
    &[0x2B, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x01],
    &[0x2B, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x02],
    &[0x55, 0x1D, 0x25, 0x00],
];

/// What the wall clock said at some instant. Certificates are valid by the wall clock; everything else here goes by
/// [`Instant`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WallClock {
    /// The instant.
    pub at: Instant,
    /// The time since 1970-01-01 00:00 UTC, without leap seconds.
    pub since_epoch: Duration,
}

impl WallClock {
    pub(crate) fn read(self, now: Instant) -> Duration {
        self.since_epoch + now.saturating_duration_since(self.at)
    }
}

/// A certification authority that vouches for a peer. Two are equal when their certificates are.
#[derive(Clone)]
pub struct Authority {
    certificate: CertificateDer<'static>,
    anchor: TrustAnchor<'static>,
    key_hash: [u8; 20],
}

impl Authority {
    /// From the DER of its certificate, which is trusted as it is: neither its own signature nor its validity count.
    ///
    /// # Errors
    /// [`Misuse::BadKey`] if it is no certificate.
    pub fn from_der(der: &[u8]) -> Result<Self, Misuse> {
        let certificate = CertificateDer::from(der.to_vec());
        let anchor =
            webpki::anchor_from_trusted_cert(&certificate).map_err(|_| Misuse::BadKey("certificate"))?;
        let anchor = anchor.to_owned();
        let key_hash = Sha1::digest(webpki::spki_for_anchor(&anchor)).into();
        Ok(Self { certificate, anchor, key_hash })
    }

    /// The DER that it was made of.
    pub fn to_der(&self) -> &[u8] {
        &self.certificate
    }

    /// What stands for it in CERTREQ: the SHA-1 hash of its SubjectPublicKeyInfo (RFC 7296 §3.7).
    pub const fn key_hash(&self) -> [u8; 20] {
        self.key_hash
    }
}

impl PartialEq for Authority {
    fn eq(&self, other: &Self) -> bool {
        self.certificate == other.certificate
    }
}

impl Eq for Authority {}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Authority(")?;
        self.key_hash.iter().try_for_each(|octet| write!(f, "{octet:02x}"))?;
        f.write_str(")")
    }
}

/// A certificate of this node with the key that it is for.
pub struct OwnCertificate {
    /// DER, the node's own first, each vouched for by the next. The authority itself need not be there.
    pub chain: Vec<Vec<u8>>,
    /// Signs with the key of the first.
    pub signer: Box<dyn Signer>,
}

impl OwnCertificate {
    /// Whether the first certificate is for the signer's key and names `identity`.
    ///
    /// # Errors
    /// [`Misuse`] that says what does not fit.
    pub fn check(&self, identity: &Identity) -> Result<(), Misuse> {
        let leaf = self.chain.first().ok_or(Misuse::BadKey("certificate"))?;
        let der = CertificateDer::from(leaf.as_slice());
        let leaf = EndEntityCert::try_from(&der).map_err(|_| Misuse::BadKey("certificate"))?;
        if leaf.subject_public_key_info().as_ref() != self.signer.public_key().to_spki_der() {
            return Err(Misuse::BadKey("certificate: it is for another key"));
        }
        if names(&leaf, identity) {
            Ok(())
        } else {
            Err(Misuse::BadIdentity("what the certificate does not name"))
        }
    }
}

struct AnyOfOurPurposes;

impl ExtendedKeyUsageValidator for AnyOfOurPurposes {
    fn validate(&self, purposes: KeyPurposeIdIter<'_, '_>) -> Result<(), webpki::Error> {
        let mut restricted = false;
        for purpose in purposes {
            let purpose = purpose?;
            restricted = true;
            if PURPOSES.iter().any(|known| KeyPurposeId::new(known) == purpose) {
                return Ok(());
            }
        }
        if restricted { Err(webpki::Error::BadDer) } else { Ok(()) }
    }
}

/// The key of the first certificate of `presented`, if it names `identity` and a chain of the others leads to one of
/// the authorities now.
///
/// # Errors
/// [`Violation::Authentication`] with the reason.
pub(crate) fn certified_key(
    presented: &[&[u8]],
    authorities: &[Authority],
    identity: &Identity,
    now: Duration,
) -> Result<VerifyingKey, Violation> {
    if presented.len() > MAX_CERTIFICATES || presented.iter().any(|der| der.len() > MAX_CERTIFICATE_LEN) {
        return Err(Violation::Authentication("too many or too long certificates"));
    }
    let (leaf, others) =
        presented.split_first().ok_or(Violation::Authentication("no certificate was sent"))?;
    let der = CertificateDer::from(*leaf);
    let leaf = EndEntityCert::try_from(&der)
        .map_err(|_| Violation::Authentication("the certificate cannot be read"))?;
    if !names(&leaf, identity) {
        return Err(Violation::Authentication("the certificate names somebody else"));
    }
    let others: Vec<CertificateDer<'_>> = others.iter().map(|der| CertificateDer::from(*der)).collect();
    let anchors: Vec<TrustAnchor<'_>> =
        authorities.iter().map(|authority| authority.anchor.clone()).collect();
    let (algorithms, time) = (webpki::ALL_VERIFICATION_ALGS, UnixTime::since_unix_epoch(now));
    leaf.verify_for_usage(algorithms, &anchors, &others, time, AnyOfOurPurposes, None, None)
        .map_err(|error| Violation::Authentication(reason(&error)))?;
    VerifyingKey::from_spki_der(&leaf.subject_public_key_info())
        .map_err(|_| Violation::Authentication("the certified key is of an unknown kind"))
}

/// Whether the certificate is for this identity: its subject, or one of its alternative names. Wildcards do not
/// count: they would let one host pose as another.
//= RFC 4945 §3.1
fn names(certificate: &EndEntityCert<'_>, identity: &Identity) -> bool {
    let for_address = |address: IpAddr| {
        let name = ServerName::IpAddress(address.into());
        certificate.verify_is_valid_for_subject_name(&name).is_ok()
    };
    match identity {
        Identity::DistinguishedName(_) => identity.is_same_name(certificate.subject()),
        Identity::Fqdn(name) => certificate
            .valid_dns_names()
            .any(|known| !known.contains('*') && known.eq_ignore_ascii_case(name)),
        Identity::Ipv4(address) => for_address(IpAddr::V4(*address)),
        Identity::Ipv6(address) => for_address(IpAddr::V6(*address)),
        Identity::Rfc822(_) | Identity::KeyId(_) => false,
    }
}

fn reason(error: &webpki::Error) -> &'static str {
    match error {
        webpki::Error::CertExpired { .. } => "the certificate has expired",
        webpki::Error::CertNotValidYet { .. } => "the certificate is not valid yet",
        webpki::Error::UnknownIssuer => "no chain leads to the configured authority",
        webpki::Error::InvalidSignatureForPublicKey => "a signature in the chain does not verify",
        _ => "the certificate chain is not acceptable",
    }
}
