//! Certificates of authorities in the registry.

use ikev2::Authority;

use crate::config::code::Code;
use crate::config::credentials;
use crate::config::diagnostic::{Diagnostic, Diagnostics};
use crate::config::record::{Field, OneOrMany};

/// All certificates of an `authority` field; what is none is reported.
pub(super) fn read(field: &Field<OneOrMany<String>>, diagnostics: &mut Diagnostics) -> Vec<Authority> {
    let mut authorities = Vec::new();
    for text in &field.value.0 {
        let found = credentials::certificates(text.value.as_bytes());
        let read = found.and_then(|found| {
            let read = found.iter().map(|der| Authority::from_der(der).map_err(|error| error.to_string()));
            read.collect::<Result<Vec<_>, _>>()
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
