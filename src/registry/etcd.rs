//! A registry in etcd, by the JSON gateway of its version 3 interface: every key under a prefix holds a part.

use super::SourceError;
use super::http::{Client, LARGEST, body, unreachable};
use crate::config::registry_source::RemoteRegistry;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::Deserialize;
use serde_json::json;
use std::io::{BufRead, BufReader, Read};

#[derive(Deserialize)]
struct Range {
    header: Header,
    #[serde(default)]
    kvs: Vec<KeyValue>,
}

#[derive(Deserialize)]
struct Header {
    /// 64-bit numbers are strings in this JSON.
    revision: String,
}

#[derive(Deserialize)]
struct KeyValue {
    key: String,
    #[serde(default)]
    value: String,
}

#[derive(Deserialize)]
struct WatchLine {
    #[serde(default)]
    result: Option<WatchResult>,
}

#[derive(Deserialize)]
struct WatchResult {
    #[serde(default)]
    events: Vec<serde::de::IgnoredAny>,
    #[serde(default)]
    canceled: bool,
}

/// Reads all parts at one revision, which is the version.
pub(super) fn read(client: &Client, endpoint: &str, prefix: &str) -> Result<RemoteRegistry, SourceError> {
    let range = json!({ "key": BASE64.encode(prefix), "range_end": BASE64.encode(after(prefix)) });
    let mut response = client
        .agent()
        .post(format!("{endpoint}/v3/kv/range"))
        .header("Content-Type", "application/json")
        .send(range.to_string())
        .map_err(|error| unreachable(&error))?;
    if response.status().as_u16() != 200 {
        return Err(SourceError::Unreachable(format!("{endpoint} answers {}", response.status().as_u16())));
    }
    let range: Range = serde_json::from_slice(&body(&mut response)?)
        .map_err(|error| SourceError::Unreachable(format!("{endpoint} is no etcd: {error}")))?;
    let version = range.header.revision.parse().map_err(|_| unreachable(&"no revision in the answer"))?;
    if range.kvs.is_empty() {
        return Err(SourceError::Refused(format!("no key begins with `{prefix}`")));
    }
    let parts: Option<Vec<(String, String)>> = range.kvs.iter().map(|pair| part(endpoint, pair)).collect();
    let parts =
        parts.ok_or_else(|| SourceError::Refused("a key or its value is not UTF-8 text".to_owned()))?;
    Ok(RemoteRegistry { version, parts })
}

fn part(endpoint: &str, pair: &KeyValue) -> Option<(String, String)> {
    let text = |base64: &str| String::from_utf8(BASE64.decode(base64).ok()?).ok();
    Some((format!("{endpoint}/{}", text(&pair.key)?), text(&pair.value)?))
}

/// The first key that does not begin with `prefix`.
fn after(prefix: &str) -> Vec<u8> {
    let mut end = prefix.as_bytes().to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return end;
        }
    }
    // All keys.
    vec![0]
}

/// Calls `changed` after every change behind revision `since`, until it returns `false` or the connection ends.
pub(super) fn watch(
    client: &Client,
    endpoint: &str,
    prefix: &str,
    since: u64,
    mut changed: impl FnMut() -> bool,
) -> Result<(), SourceError> {
    let request = json!({ "create_request": {
        "key": BASE64.encode(prefix),
        "range_end": BASE64.encode(after(prefix)),
        "start_revision": (since + 1).to_string(),
    } });
    let response = client
        .watching_agent()
        .post(format!("{endpoint}/v3/watch"))
        .header("Content-Type", "application/json")
        .send(request.to_string())
        .map_err(|error| unreachable(&error))?;
    if response.status().as_u16() != 200 {
        return Err(SourceError::Unreachable(format!("{endpoint} answers {}", response.status().as_u16())));
    }
    let mut lines = BufReader::new(response.into_body().into_reader());
    loop {
        let mut line = Vec::new();
        let read =
            lines.by_ref().take(LARGEST).read_until(b'\n', &mut line).map_err(|error| unreachable(&error))?;
        if read == 0 {
            return Err(SourceError::Unreachable("the watch ended".to_owned()));
        }
        let line: WatchLine = serde_json::from_slice(&line).map_err(|error| unreachable(&error))?;
        let Some(result) = line.result else {
            return Err(SourceError::Unreachable("the watch was refused".to_owned()));
        };
        // A watch whose revision is compacted away is cancelled: a new one begins with what is there.
        if result.canceled {
            return Err(SourceError::Unreachable("the watch was cancelled".to_owned()));
        }
        if !result.events.is_empty() && !changed() {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_ends_behind_its_prefix() {
        assert_eq!(after("mesh/"), b"mesh0");
        assert_eq!(after("a\u{7f}"), [b'a', 0x80]);
        assert_eq!(after(""), [0]);
    }

    #[test]
    fn what_etcd_says_is_understood() {
        let text = r#"{"header":{"cluster_id":"1","revision":"7"},"kvs":[{"key":"YQ==","mod_revision":"5","value":"Yg=="}],"count":"1"}"#;
        let range: Range = serde_json::from_str(text).unwrap();
        assert_eq!(part("http://e", &range.kvs[0]), Some(("http://e/a".to_owned(), "b".to_owned())));
        let created: WatchLine = serde_json::from_str(r#"{"result":{"header":{},"created":true}}"#).unwrap();
        assert!(created.result.is_some_and(|result| result.events.is_empty()));
        let event: WatchLine =
            serde_json::from_str(r#"{"result":{"header":{},"events":[{"kv":{"key":"YQ=="}}]}}"#).unwrap();
        assert_eq!(event.result.map(|result| result.events.len()), Some(1));
    }
}
