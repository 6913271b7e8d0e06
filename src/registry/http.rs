//! HTTP as the sources need it.

use super::SourceError;
use std::time::Duration;

/// How long one exchange may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// No registry is larger.
pub(super) const LARGEST: u64 = 16 << 20;

/// How long a watch lives before it begins anew: a connection that died without a word is noticed then.
const WATCH: Duration = Duration::from_secs(300);

/// A client for single exchanges.
pub(super) fn agent() -> ureq::Agent {
    with_patience(PATIENCE)
}

/// A client for answers that go on.
pub(super) fn watching_agent() -> ureq::Agent {
    with_patience(WATCH)
}

fn with_patience(patience: Duration) -> ureq::Agent {
    let config = ureq::Agent::config_builder()
        .timeout_connect(Some(PATIENCE))
        .timeout_recv_response(Some(PATIENCE))
        .timeout_global(Some(patience))
        .http_status_as_error(false)
        .max_redirects(3)
        .user_agent(concat!("viamesh/", env!("CARGO_PKG_VERSION")))
        .build();
    config.into()
}

/// Reads an answer's body.
pub(super) fn body(response: &mut ureq::http::Response<ureq::Body>) -> Result<Vec<u8>, SourceError> {
    response.body_mut().with_config().limit(LARGEST).read_to_vec().map_err(|error| unreachable(&error))
}

/// The error of an exchange.
pub(super) fn unreachable(error: &dyn std::fmt::Display) -> SourceError {
    SourceError::Unreachable(error.to_string())
}
