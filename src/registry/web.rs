//! A registry on the web: fetched when its ETag changes, believed if it is signed.

use super::http::{Client, body, unreachable};
use super::{SourceError, signature};
use crate::config::registry_source::RemoteRegistry;
use ed25519_dalek::VerifyingKey;

/// What came, and its ETag for the next time.
pub(super) type Fetched = (RemoteRegistry, Option<String>);

/// Fetches the registry; `None` if it is still the one with `etag`.
pub(super) fn fetch(
    client: &Client,
    address: &str,
    key: Option<&VerifyingKey>,
    etag: Option<&str>,
) -> Result<Option<Fetched>, SourceError> {
    let key =
        key.ok_or_else(|| SourceError::Refused("without `registry_key` nothing is believed".to_owned()))?;
    let agent = client.agent();
    let mut request = agent.get(address);
    if let Some(etag) = etag {
        request = request.header("If-None-Match", etag);
    }
    let mut response = request.call().map_err(|error| unreachable(&error))?;
    match response.status().as_u16() {
        200 => {}
        304 => return Ok(None),
        status => return Err(SourceError::Unreachable(format!("{address} answers {status}"))),
    }
    let etag = response.headers().get("etag").and_then(|etag| etag.to_str().ok()).map(str::to_owned);
    let text = body(&mut response)?;
    let signature_address = format!("{address}.sig");
    let mut response = agent.get(&signature_address).call().map_err(|error| unreachable(&error))?;
    if response.status().as_u16() != 200 {
        let status = response.status().as_u16();
        return Err(SourceError::Refused(format!(
            "{signature_address} answers {status}: there is no signature"
        )));
    }
    let version = signature::verify(key, &text, &body(&mut response)?).map_err(SourceError::Refused)?;
    let text = String::from_utf8(text).map_err(|_| SourceError::Refused("not UTF-8 text".to_owned()))?;
    Ok(Some((RemoteRegistry { version, parts: vec![(address.to_owned(), text)] }, etag)))
}
