//! `viamesh check`: every mistake at once.

use std::path::Path;

use serde_json::json;

use super::arguments::{Check, Files, Global};
use super::ask;
use super::failure::{Exit, Failure};
use super::output::Output;
use crate::config::load::System;
use crate::config::{self, Loaded, Settings, Severity};
use crate::control::report::ChangeReport;
use crate::control::{Reply, Request};

pub(super) fn run(check: &Check, global: &Global, output: &mut Output) -> Result<Exit, Failure> {
    let file = check.file.as_ref().unwrap_or(&global.config);
    let loaded = config::load(&request(file, &check.files, global), &System);
    if output.json() {
        let live = if loaded.settings.is_some() { live(check, file, global)? } else { None };
        output.document(&document(file, &loaded, live.as_ref()))?;
    } else {
        output.text(&loaded.diagnostics.render(output.colour()))?;
        output.line(&verdict(&loaded))?;
    }
    if loaded.settings.is_none() {
        return Ok(Exit::BadConfiguration);
    }
    if check.live && !output.json() {
        let file = super::change::read(file)?;
        return ask::print(&Request::Plan { file: Some(file) }, global, output);
    }
    Ok(Exit::Done)
}

/// What the running daemon says of the file, for the JSON document.
fn live(check: &Check, file: &Path, global: &Global) -> Result<Option<ChangeReport>, Failure> {
    if !check.live {
        return Ok(None);
    }
    let file = super::change::read(file)?;
    match ask::ask(&Request::Plan { file: Some(file) }, global)? {
        Reply::Change(report) => Ok(Some(report)),
        _ => Err(Failure::new(Exit::Failed, "the daemon's answer makes no sense")),
    }
}

/// Which files to load, by the flags.
pub(super) fn request(node: &Path, files: &Files, global: &Global) -> config::Request {
    config::Request {
        node: node.to_owned(),
        registry: files.registry.clone(),
        private_key: files.key.clone(),
        control_socket: global.socket.clone(),
    }
}

/// The last line: `ok` and what was understood, or how much is wrong.
fn verdict(loaded: &Loaded) -> String {
    let warnings = loaded.diagnostics.count(Severity::Warning);
    let warnings = if warnings == 0 { String::new() } else { count(warnings, "warning") };
    match &loaded.settings {
        Some(settings) => {
            let sum = summary(settings);
            if warnings.is_empty() { format!("ok: {sum}") } else { format!("ok, with {warnings}: {sum}") }
        }
        None => {
            let errors = count(loaded.diagnostics.count(Severity::Error), "error");
            if warnings.is_empty() {
                format!("not ok: {errors}")
            } else {
                format!("not ok: {errors}, {warnings}")
            }
        }
    }
}

fn summary(settings: &Settings) -> String {
    [
        settings.name.to_string(),
        count(settings.endpoints.len(), "endpoint"),
        count(settings.announce.len(), "announced network"),
        count(settings.policies.len(), "policy"),
        format!("{} in the registry", count(settings.nodes.len(), "node")),
    ]
    .join(", ")
}

fn count(number: usize, noun: &str) -> String {
    let plural = match (number, noun.strip_suffix('y')) {
        (1, _) => noun.to_owned(),
        (_, Some(stem)) => format!("{stem}ies"),
        (_, None) => format!("{noun}s"),
    };
    format!("{number} {plural}")
}

fn document(file: &Path, loaded: &Loaded, live: Option<&ChangeReport>) -> serde_json::Value {
    let summary = loaded.settings.as_ref().map(|settings| {
        json!({
            "node": settings.name.to_string(),
            "locator": settings.locator.to_string(),
            "endpoints": settings.endpoints.len(),
            "announced_networks": settings.announce.len(),
            "policies": settings.policies.len(),
            "nodes": settings.nodes.len(),
        })
    });
    json!({
        "format": 1,
        "file": file.display().to_string(),
        "ok": loaded.settings.is_some(),
        "errors": loaded.diagnostics.count(Severity::Error),
        "warnings": loaded.diagnostics.count(Severity::Warning),
        "diagnostics": loaded.diagnostics.to_json(),
        "summary": summary,
        "live": live,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_nouns_agree() {
        assert_eq!(count(1, "policy"), "1 policy");
        assert_eq!(count(2, "policy"), "2 policies");
        assert_eq!(count(0, "node"), "0 nodes");
    }
}
