//! HTTP as the sources need it.

use super::SourceError;
use std::time::Duration;

/// How long one exchange may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// No registry is larger.
pub(super) const LARGEST: u64 = 16 << 20;

/// A client; `patience` only while `None` waits for ever for an answer's body, as a watch must.
pub(super) fn agent(endless: bool) -> ureq::Agent {
    let config = ureq::Agent::config_builder()
        .timeout_connect(Some(PATIENCE))
        .timeout_recv_response(Some(PATIENCE))
        .timeout_global((!endless).then_some(PATIENCE))
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
