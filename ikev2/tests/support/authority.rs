//! A certification authority for tests.

use ikev2::{Authority, EcdsaSigner, Ed25519Signer, Identity, OwnCertificate, Signer};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, SanType,
    SignatureAlgorithm,
};

/// One authority, or an intermediate one below it.
pub struct Ca {
    issuer: Issuer<'static, KeyPair>,
    pub der: Vec<u8>,
    /// Certificates between this one and the root, nearest first, this one included; empty for a root.
    above: Vec<Vec<u8>>,
}

fn params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

fn ca_params(name: &str) -> CertificateParams {
    let mut params = params(name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
}

impl Ca {
    pub fn new(name: &str, algorithm: &'static SignatureAlgorithm) -> Self {
        let key = KeyPair::generate_for(algorithm).unwrap();
        let params = ca_params(name);
        let der = params.self_signed(&key).unwrap().der().to_vec();
        Self { issuer: Issuer::new(params, key), der, above: Vec::new() }
    }

    pub fn below(&self, name: &str, algorithm: &'static SignatureAlgorithm) -> Self {
        let key = KeyPair::generate_for(algorithm).unwrap();
        let params = ca_params(name);
        let der = params.signed_by(&key, &self.issuer).unwrap().der().to_vec();
        let above = std::iter::once(der.clone()).chain(self.above.clone()).collect();
        Self { issuer: Issuer::new(params, key), der, above }
    }

    pub fn authority(&self) -> Authority {
        Authority::from_der(&self.der).unwrap()
    }

    /// A certificate for a new key that names `identity`; `change` may spoil it.
    pub fn issue(
        &self,
        identity: &Identity,
        algorithm: &'static SignatureAlgorithm,
        change: impl Fn(&mut CertificateParams),
    ) -> OwnCertificate {
        let mut params = params("node");
        match identity {
            Identity::Fqdn(name) => {
                params.subject_alt_names.push(SanType::DnsName(name.as_str().try_into().unwrap()));
            }
            Identity::Ipv4(address) => params.subject_alt_names.push(SanType::IpAddress((*address).into())),
            Identity::Ipv6(address) => params.subject_alt_names.push(SanType::IpAddress((*address).into())),
            other => panic!("no certificate for {other} here"),
        }
        change(&mut params);
        self.sign(&params, algorithm)
    }

    /// A certificate whose subject is ranet's name of an endpoint.
    pub fn issue_for_name(&self, parts: [&str; 3], algorithm: &'static SignatureAlgorithm) -> OwnCertificate {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::OrganizationName, parts[0]);
        params.distinguished_name.push(DnType::CommonName, parts[1]);
        params.distinguished_name.push(DnType::CustomDnType(vec![2, 5, 4, 5]), parts[2]);
        self.sign(&params, algorithm)
    }

    fn sign(&self, params: &CertificateParams, algorithm: &'static SignatureAlgorithm) -> OwnCertificate {
        let key = KeyPair::generate_for(algorithm).unwrap();
        let der = params.signed_by(&key, &self.issuer).unwrap().der().to_vec();
        let chain = std::iter::once(der).chain(self.above.clone()).collect();
        OwnCertificate { chain, signer: signer(&key) }
    }
}

fn signer(key: &KeyPair) -> Box<dyn Signer> {
    if key.algorithm() == &rcgen::PKCS_ED25519 {
        Box::new(Ed25519Signer::from_pkcs8_pem(&key.serialize_pem()).unwrap())
    } else if key.algorithm() == &rcgen::PKCS_RSA_SHA256 {
        Box::new(RsaSigner(aws_lc_rs::signature::RsaKeyPair::from_pkcs8(key.serialized_der()).unwrap()))
    } else {
        Box::new(EcdsaSigner::from_pkcs8_der(key.serialized_der()).unwrap())
    }
}

/// Restricts a certificate to one key purpose.
pub fn only_for(purpose: ExtendedKeyUsagePurpose) -> impl Fn(&mut CertificateParams) {
    move |params| params.extended_key_usages = vec![purpose.clone()]
}

/// A key that lives elsewhere, as far as the core is concerned.
struct RsaSigner(aws_lc_rs::signature::RsaKeyPair);

impl Signer for RsaSigner {
    fn sign(&self, octets: &[u8], hash: ikev2::SignatureHash) -> Result<Vec<u8>, ikev2::SignerUnavailable> {
        use aws_lc_rs::signature as aws;
        let encoding = match hash {
            ikev2::SignatureHash::Sha256 => &aws::RSA_PSS_SHA256,
            ikev2::SignatureHash::Sha384 => &aws::RSA_PSS_SHA384,
            ikev2::SignatureHash::Sha512 => &aws::RSA_PSS_SHA512,
            ikev2::SignatureHash::Identity => return Err(ikev2::SignerUnavailable),
        };
        let mut signature = vec![0; self.0.public_modulus_len()];
        let random = aws_lc_rs::rand::SystemRandom::new();
        self.0.sign(encoding, &random, octets, &mut signature).map_err(|_| ikev2::SignerUnavailable)?;
        Ok(signature)
    }

    fn public_key(&self) -> ikev2::VerifyingKey {
        use aws_lc_rs::encoding::{AsDer, PublicKeyX509Der};
        use aws_lc_rs::signature::KeyPair;
        let der: PublicKeyX509Der<'_> = self.0.public_key().as_der().unwrap();
        ikev2::VerifyingKey::from_spki_der(der.as_ref()).unwrap()
    }
}
