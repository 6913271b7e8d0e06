//! What both prove themselves with: raw keys, certificates or a shared secret.

use interop::foreign::{ForeignProof, IkeSection};
use lab::peers::Charon;
use lab::peers::charon::Proof;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, SignatureAlgorithm};
use viamesh::config::key;
use viamesh::demo::Mesh;

/// Kinds of proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Credentials {
    /// Ed25519 keys that each has of the other.
    RawKeys,
    /// Certificates that lead to one authority.
    Certificates,
    /// A secret that both have.
    SharedSecret,
}

/// How our node calls itself to those that do not know its key.
pub(crate) const OUR_NAME: &str = "ours.example";

/// How charon calls itself.
pub(crate) const ITS_NAME: &str = "swan.example";

const SECRET: &str = "a secret of no worth at all";

impl Credentials {
    /// What is in our node's file about them.
    pub(crate) fn section(self) -> IkeSection<'static> {
        let id = Some("fqdn:ours.example");
        let section = IkeSection::default();
        match self {
            Self::RawKeys => section,
            Self::Certificates => IkeSection { id, certificate: Some(("ours.crt", "ours.key")), ..section },
            Self::SharedSecret => IkeSection { id, shared_key: Some(("swan", "swan.psk")), ..section },
        }
    }

    /// How charon proves itself, and how we have to.
    pub(crate) fn proofs(self) -> (Proof, Proof) {
        match self {
            Self::RawKeys => (Proof::PublicKey("swan.pem".into()), Proof::PublicKey("ours.pem".into())),
            Self::Certificates => {
                (Proof::Certificate("swan.pem".into()), Proof::CertifiedBy("ca.pem".into()))
            }
            Self::SharedSecret => (Proof::SharedSecret(SECRET.into()), Proof::SharedSecret(SECRET.into())),
        }
    }

    /// Gives each side what it needs. `write` is told how charon proves itself to us.
    pub(crate) fn deal(self, mesh: &Mesh, charon: &Charon, write: impl FnOnce(ForeignProof<'_>)) {
        match self {
            Self::RawKeys => {
                let key = key::generate().unwrap();
                charon.write("swanctl/pkcs8/swan.pem", &key::private_pem(&key).unwrap()).unwrap();
                deal_our_key(mesh, charon);
                let public = key::public_pem(&key.verifying_key()).unwrap();
                charon.write("swanctl/pubkey/swan.pem", &public).unwrap();
                write(ForeignProof::PublicKey(&public));
            }
            Self::Certificates => {
                let authority = deal_certificates(mesh, charon);
                write(ForeignProof::Authority(&authority));
            }
            Self::SharedSecret => {
                write_secret(mesh, "swan.psk", SECRET);
                write(ForeignProof::SharedKey);
            }
        }
    }
}

/// Tells charon the public key of our node.
pub(crate) fn deal_our_key(mesh: &Mesh, charon: &Charon) {
    let own = key::load(&mesh.directory.join("ours/key.pem")).unwrap();
    charon.write("swanctl/pubkey/ours.pem", &key::public_pem(&own.verifying_key()).unwrap()).unwrap();
}

/// charon has an RSA key that the authority certifies itself; ours is on a curve, and there is somebody in between,
/// of whom charon learns from us. Returns the authority's certificate.
fn deal_certificates(mesh: &Mesh, charon: &Charon) -> String {
    let root = Authority::new(None, "Root", &rcgen::PKCS_ECDSA_P256_SHA256);
    let (certificate, key) = root.issue(ITS_NAME, &rcgen::PKCS_RSA_SHA256);
    charon.write("swanctl/x509ca/ca.pem", &root.pem).unwrap();
    charon.write("swanctl/x509/swan.pem", &certificate).unwrap();
    charon.write("swanctl/pkcs8/swan.pem", &key).unwrap();
    let middle = Authority::new(Some(&root), "Nodes", &rcgen::PKCS_RSA_SHA256);
    let (certificate, key) = middle.issue(OUR_NAME, &rcgen::PKCS_ECDSA_P256_SHA256);
    std::fs::write(mesh.directory.join("ours/ours.crt"), certificate + &middle.pem).unwrap();
    write_secret(mesh, "ours.key", &key);
    root.pem
}

/// Nobody else may read it: our node would refuse it.
fn write_secret(mesh: &Mesh, name: &str, text: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    let path = mesh.directory.join("ours").join(name);
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
}

/// Who certifies keys.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    fn new(above: Option<&Self>, name: &str, algorithm: &'static SignatureAlgorithm) -> Self {
        let key = KeyPair::generate_for(algorithm).unwrap();
        let mut params = named(name, Vec::new());
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = match above {
            Some(above) => params.signed_by(&key, &above.issuer),
            None => params.self_signed(&key),
        };
        Self { pem: certificate.unwrap().pem(), issuer: Issuer::new(params, key) }
    }

    /// A certificate for a new key of the host `name`, and the key.
    fn issue(&self, name: &str, algorithm: &'static SignatureAlgorithm) -> (String, String) {
        let key = KeyPair::generate_for(algorithm).unwrap();
        let certificate = named(name, vec![name.into()]).signed_by(&key, &self.issuer).unwrap();
        (certificate.pem(), key.serialize_pem())
    }
}

fn named(name: &str, hosts: Vec<String>) -> CertificateParams {
    let mut params = CertificateParams::new(hosts).unwrap();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}
