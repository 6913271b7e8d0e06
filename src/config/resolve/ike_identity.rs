//! Identities as people write them: `fqdn:gate.example`, `ip:192.0.2.1`, and so on.

use crate::config::code::Code;
use crate::config::diagnostic::{Diagnostic, Diagnostics};
use crate::config::record::Field;
use crate::config::settings::PeerIdentity;

/// Reads an identity; `None` after reporting what is wrong with it.
pub(super) fn parse(field: &Field<String>, diagnostics: &mut Diagnostics) -> Option<PeerIdentity> {
    let (kind, value) = field.value.split_once(':').unwrap_or_default();
    let identity = match kind {
        "fqdn" if !value.is_empty() => Some(PeerIdentity::Fqdn(value.to_owned())),
        "email" if !value.is_empty() => Some(PeerIdentity::Rfc822(value.to_owned())),
        "ip" => value.parse().ok().map(PeerIdentity::Address),
        "keyid" => hexadecimal(value).map(PeerIdentity::KeyId),
        "dn" => hexadecimal(value).map(PeerIdentity::DistinguishedName),
        _ => None,
    };
    if identity.is_none() {
        let title = format!("`{}` is no identity", field.value);
        let diagnostic = Diagnostic::at(field.span, Code::InvalidValue, title);
        let diagnostic = diagnostic.label("how does this peer name itself in IKE?");
        diagnostics
            .push(diagnostic.help("write `fqdn:NAME`, `email:NAME`, `ip:ADDRESS`, `keyid:HEX` or `dn:HEX`"));
    }
    identity
}

fn hexadecimal(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2);
    let bytes: Option<Vec<u8>> =
        pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect();
    bytes.filter(|bytes| {
        !bytes.is_empty() && text.len().is_multiple_of(2) && text.bytes().all(|b| b.is_ascii_hexdigit())
    })
}
