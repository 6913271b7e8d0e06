//! Certificates and shared keys of this node, in PEM and plain files. Secrets stay out of the settings.

use std::collections::BTreeMap;
use std::path::Path;

use ikev2::{OwnCertificate, SecretBytes, Signer};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use zeroize::Zeroizing;

use super::code::Code;
use super::diagnostic::{Diagnostic, Diagnostics, Severity};
use super::key::reason;
use super::load::Host;
use super::node_file::IkeSection;
use super::settings::{NodeName, Settings};

/// Shortest shared key in bytes. People make them up, and anyone who records a handshake may try all short ones.
const SHORTEST_SHARED_KEY: usize = 8;

/// What this node proves itself with besides its key.
#[derive(Default)]
pub struct Credentials {
    /// Its certificate, with the key that it is for.
    pub certificate: Option<OwnCertificate>,
    /// Keys that it shares with single nodes.
    pub shared_keys: BTreeMap<NodeName, SecretBytes>,
}

/// Reads what `settings` name.
///
/// # Errors
/// In words, if a file cannot be read or holds something else.
pub fn load(settings: &Settings, host: &dyn Host) -> Result<Credentials, String> {
    let ike = &settings.ike;
    let certificate = ike.certificate.as_ref();
    let certificate = certificate.map(|(chain, key)| own_certificate(chain, key, host)).transpose()?;
    let shared_keys = ike.shared_keys.iter();
    let shared_keys = shared_keys.map(|(node, file)| Ok((node.clone(), shared_key(file, host)?)));
    Ok(Credentials { certificate, shared_keys: shared_keys.collect::<Result<_, String>>()? })
}

/// Reports every file that [`load`] would refuse, and a certificate for somebody else, where they stand.
pub(super) fn check(
    section: &IkeSection,
    settings: &Settings,
    host: &dyn Host,
    diagnostics: &mut Diagnostics,
) {
    if let (Some(field), Some((chain, key))) = (&section.certificate, &settings.ike.certificate) {
        let checked = own_certificate(chain, key, host).and_then(|own| names_us(&own, settings));
        if let Err(problem) = checked {
            let diagnostic = Diagnostic::at(field.span, Code::UnreadableCertificate, problem);
            diagnostics.push(diagnostic.label("this node's certificate"));
        }
    }
    let entries = section.shared_keys.iter().flat_map(|field| &field.value);
    for file in entries.filter_map(|entry| entry.value.file.as_ref()) {
        let known = settings.ike.shared_keys.iter().find(|(_, path)| path.ends_with(&file.value));
        let Some((_, path)) = known else { continue };
        if host.mode(path).is_some_and(|mode| mode & 0o007 != 0) {
            let title = format!("everybody on this host can read the shared key {}", path.display());
            let diagnostic = Diagnostic::at(file.span, Code::KeyReadableByOthers, title);
            diagnostics
                .push(diagnostic.severity(Severity::Error).help(format!("`chmod 600 {}`", path.display())));
        }
        if let Err(problem) = shared_key(path, host) {
            diagnostics.push(Diagnostic::at(file.span, Code::UnreadableSharedKey, problem));
        }
    }
}

/// Whether the certificate names what this node calls itself to others that judge by certificates.
fn names_us(own: &OwnCertificate, settings: &Settings) -> Result<(), String> {
    for local in &settings.endpoints {
        let identity = settings.own_identity(&local.serial_number, true)?;
        own.check(&identity).map_err(|error| match error {
            ikev2::Misuse::BadIdentity(_) => format!("the certificate does not name `{identity}`"),
            other => other.to_string(),
        })?;
        if settings.ike.id.is_some() {
            break;
        }
    }
    Ok(())
}

fn read(path: &Path, host: &dyn Host) -> Result<Zeroizing<Vec<u8>>, String> {
    let read = host.read(path).map(Zeroizing::new);
    read.map_err(|error| format!("cannot read {}: {}", path.display(), reason(&error)))
}

fn own_certificate(chain: &Path, key: &Path, host: &dyn Host) -> Result<OwnCertificate, String> {
    let chain_pem = read(chain, host)?;
    let chain_der = certificates(&chain_pem).map_err(|error| format!("{}: {error}", chain.display()))?;
    Ok(OwnCertificate { chain: chain_der, signer: signer(key, host)? })
}

fn signer(path: &Path, host: &dyn Host) -> Result<Box<dyn Signer>, String> {
    let pem = read(path, host)?;
    let bad = |problem: &dyn std::fmt::Display| format!("{}: {problem}", path.display());
    let key = PrivatePkcs8KeyDer::from_pem_slice(&pem)
        .map_err(|_| bad(&"no `BEGIN PRIVATE KEY`; `openssl pkcs8 -topk8 -nocrypt` writes one"))?;
    ikev2::signer_from_pkcs8_der(key.secret_pkcs8_der())
        .map_err(|_| bad(&"neither an Ed25519 key nor one on P-256 or P-384"))
}

/// The DER of all certificates in a PEM text. White space inside the blocks is free, because YAML folds lines.
///
/// # Errors
/// In words, if there is none or one cannot be read.
pub(super) fn certificates(pem: &[u8]) -> Result<Vec<Vec<u8>>, String> {
    const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
    const END: &str = "-----END CERTIFICATE-----";
    let text = std::str::from_utf8(pem).map_err(|_| "not text".to_owned())?;
    let mut found = Vec::new();
    for block in text.split(BEGIN).skip(1) {
        let (body, _) = block.split_once(END).ok_or("no `END CERTIFICATE`")?;
        let body: String = body.split_whitespace().collect();
        let block = format!("{BEGIN}\n{body}\n{END}\n");
        let der = CertificateDer::from_pem_slice(block.as_bytes()).map_err(|error| error.to_string())?;
        found.push(der.to_vec());
    }
    if found.is_empty() { Err("no `BEGIN CERTIFICATE`".to_owned()) } else { Ok(found) }
}

fn shared_key(path: &Path, host: &dyn Host) -> Result<SecretBytes, String> {
    let octets = read(path, host)?;
    let key = octets.trim_ascii_end();
    if key.len() < SHORTEST_SHARED_KEY {
        let problem = format!("a shared key has at least {SHORTEST_SHARED_KEY} bytes");
        return Err(format!("{}: {problem}", path.display()));
    }
    Ok(SecretBytes::new(key.to_vec()))
}
