//! Certificates of authorities in the registry.

use ikev2::Authority;
use rustls_pki_types::CertificateDer;

use crate::config::code::Code;
use crate::config::credentials;
use crate::config::diagnostic::{Diagnostic, Diagnostics};
use crate::config::record::{Field, OneOrMany};

/// All certificates of an `authority` field, as IKE uses them; what is none is reported.
pub(super) fn read(field: &Field<OneOrMany<String>>, diagnostics: &mut Diagnostics) -> Vec<Authority> {
    each(field, diagnostics, |der| Authority::from_der(&der).map_err(|error| error.to_string()))
}

/// All certificates of a field; what is none is reported.
pub(in crate::config) fn certificates(
    field: &Field<OneOrMany<String>>,
    diagnostics: &mut Diagnostics,
) -> Vec<CertificateDer<'static>> {
    each(field, diagnostics, Ok)
}

fn each<T>(
    field: &Field<OneOrMany<String>>,
    diagnostics: &mut Diagnostics,
    understand: impl Fn(CertificateDer<'static>) -> Result<T, String>,
) -> Vec<T> {
    let mut authorities = Vec::new();
    for text in &field.value.0 {
        let found = credentials::certificates(text.value.as_bytes());
        let read = found.and_then(|found| {
            found.into_iter().map(|der| understand(CertificateDer::from(der))).collect::<Result<Vec<_>, _>>()
        });
        match read {
            Ok(read) => authorities.extend(read),
            Err(error) => {
                let title = format!("no certificate here: {error}");
                let diagnostic = Diagnostic::at(text.span, Code::BadAuthority, title);
                diagnostics
                    .push(diagnostic.label("the `BEGIN CERTIFICATE` block of the authority belongs here"));
            }
        }
    }
    authorities
}
