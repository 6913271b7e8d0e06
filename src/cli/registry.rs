//! `viamesh registry`

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::json;

use super::arguments::{Global, Registry, RegistryCommand};
use super::ask;
use super::failure::{Exit, Failure};
use super::output::Output;
use crate::config::key;
use crate::control::Request;
use crate::registry::signature;

pub(super) fn run(registry: &Registry, global: &Global, output: &mut Output) -> Result<Exit, Failure> {
    match &registry.command {
        None => ask::print_or_watch(&Request::Registry, &registry.watch, global, output),
        Some(RegistryCommand::Sign { file, key, version }) => sign(file, key, *version, output),
    }
}

fn sign(file: &Path, key: &Path, version: Option<u64>, output: &mut Output) -> Result<Exit, Failure> {
    let key = key::load(key)?;
    let failed = |what: &str, path: &Path, error: &std::io::Error| {
        Failure::new(Exit::Failed, format!("cannot {what} {}: {}", path.display(), key::reason(error)))
    };
    let text = std::fs::read(file).map_err(|error| failed("read", file, &error))?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let signed = signature::sign(&key, version.unwrap_or(now), &text);
    let mut target = file.as_os_str().to_owned();
    target.push(".sig");
    let target = std::path::PathBuf::from(target);
    let content = format!("{:#}\n", json!({ "version": signed.version, "signature": signed.signature }));
    std::fs::write(&target, content).map_err(|error| failed("write", &target, &error))?;
    let name = target.display().to_string();
    if output.json() {
        output.document(&json!({ "format": 1, "file": name, "version": signed.version }))?;
    } else {
        output.narrate(&format!("wrote {name}: version {}; serve both files from one place", signed.version));
    }
    Ok(Exit::Done)
}
