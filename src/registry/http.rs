//! HTTP as the sources need it.

use super::SourceError;
use crate::config::registry_source::RegistryPlace;
use std::sync::Arc;
use std::time::Duration;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

/// How long one exchange may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// No registry is larger.
pub(super) const LARGEST: u64 = 16 << 20;

/// How long a watch lives before it begins anew: a connection that died without a word is noticed then.
const WATCH: Duration = Duration::from_secs(300);

/// A client for one place: it trusts whom the place trusts.
pub(super) struct Client {
    tls: TlsConfig,
}

impl Client {
    pub(super) fn new(place: &RegistryPlace) -> Self {
        let roots = match &place.authorities[..] {
            [] => RootCerts::PlatformVerifier,
            own => RootCerts::new_with_certs(
                &own.iter().map(|der| Certificate::from_der(der).to_owned()).collect::<Vec<_>>(),
            ),
        };
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let tls = TlsConfig::builder().root_certs(roots).unversioned_rustls_crypto_provider(provider).build();
        Self { tls }
    }

    /// For single exchanges.
    pub(super) fn agent(&self) -> ureq::Agent {
        self.with_patience(PATIENCE)
    }

    /// For answers that go on.
    pub(super) fn watching_agent(&self) -> ureq::Agent {
        self.with_patience(WATCH)
    }

    fn with_patience(&self, patience: Duration) -> ureq::Agent {
        let config = ureq::Agent::config_builder()
            .timeout_connect(Some(PATIENCE))
            .timeout_recv_response(Some(PATIENCE))
            .timeout_global(Some(patience))
            .http_status_as_error(false)
            .max_redirects(3)
            .tls_config(self.tls.clone())
            .user_agent(concat!("viamesh/", env!("CARGO_PKG_VERSION")))
            .build();
        config.into()
    }
}

/// Reads an answer's body.
pub(super) fn body(response: &mut ureq::http::Response<ureq::Body>) -> Result<Vec<u8>, SourceError> {
    response.body_mut().with_config().limit(LARGEST).read_to_vec().map_err(|error| unreachable(&error))
}

/// The error of an exchange.
pub(super) fn unreachable(error: &dyn std::fmt::Display) -> SourceError {
    SourceError::Unreachable(error.to_string())
}
