//! `viamesh report`: one archive with what somebody who helps needs to see, and no secret.

mod anonymous;
mod secrets;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use super::arguments::{Global, Report};
use super::ask;
use super::failure::{Exit, Failure};
use super::output::Output;
use crate::control::report::{GraphReport, Text};
use crate::control::{Reply, Request};
use anonymous::Pseudonyms;

/// Lines of the journal that are taken.
const JOURNAL_LINES: &str = "2000";
/// Longest file that is taken, in octets.
const LONGEST: u64 = 4 * 1024 * 1024;

pub(super) fn run(report: &Report, global: &Global, output: &mut Output) -> Result<Exit, Failure> {
    let mut files = Files::default();
    let answers = from_daemon(global, &mut files);
    from_host(global, &mut files);
    let mut texts: BTreeMap<String, String> =
        files.0.into_iter().map(|(name, text)| (name, secrets::without(&text))).collect();
    if report.anonymize {
        let mut pseudonyms = Pseudonyms::of(&answers, &texts, anonymous::host_name());
        for text in texts.values_mut() {
            *text = pseudonyms.apply(text);
        }
    }
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let stem = format!("viamesh-report-{seconds}");
    let path = report.output.clone().unwrap_or_else(|| PathBuf::from(format!("{stem}.tar.gz")));
    write(&path, &stem, &texts, seconds).map_err(|error| {
        let reason = crate::config::key::reason(&error);
        Failure::new(Exit::Failed, format!("cannot write {}: {reason}", path.display()))
            .help("`--output FILE` writes it elsewhere; an existing file is never replaced")
    })?;
    if output.json() {
        let names: Vec<&String> = texts.keys().collect();
        output.document(&serde_json::json!({"format": 1, "file": path, "anonymized": report.anonymize, "contents": names}))?;
    } else {
        output.line(&path.display().to_string())?;
        output.narrate(if report.anonymize {
            "Names and addresses are replaced, and the same ones by the same. Look into it before you give it away."
        } else {
            "Keys are taken out; names and addresses are in it. `--anonymize` replaces them."
        });
    }
    Ok(Exit::Done)
}

/// Names of files in the archive, and their texts.
#[derive(Default)]
struct Files(BTreeMap<String, String>);

impl Files {
    fn add(&mut self, name: &str, text: String) {
        self.0.insert(name.to_owned(), text);
    }
}

/// Everything that the daemon can tell. What it does not answer is in the archive as an error: that may be the news.
fn from_daemon(global: &Global, files: &mut Files) -> Vec<Reply> {
    let questions = [
        ("status", Request::Status { node: None }),
        ("routes", Request::Routes { address: None }),
        ("neighbours", Request::Neighbours),
        ("associations", Request::Associations { node: None }),
        ("registry", Request::Registry),
        ("counters", Request::Counters),
    ];
    let mut answers = Vec::new();
    for (name, request) in questions {
        match ask::ask(&request, global) {
            Ok(reply) => {
                files.add(&format!("{name}.txt"), reply.text());
                files.add(&format!("{name}.json"), reply.json().unwrap_or_else(|error| error.to_string()));
                answers.push(reply);
            }
            Err(failure) => files.add(&format!("{name}.error"), format!("{}\n", failure.message())),
        }
    }
    if let [Reply::Status(status), Reply::Routes(routes), ..] = answers.as_slice() {
        files.add("graph.dot", GraphReport::of(status, routes).text());
    }
    answers
}

fn from_host(global: &Global, files: &mut Files) {
    files.add("node.yaml", contents(&global.config));
    let request = super::check::request(&global.config, &super::arguments::Files::default(), global);
    let loaded = crate::config::load(&request, &crate::config::load::System);
    let verdict = loaded.diagnostics.render(false);
    files.add("check.txt", if verdict.is_empty() { "ok\n".to_owned() } else { verdict });
    if let Some(registry) = registry_path(&global.config) {
        files.add("registry.yaml", contents(&registry));
    }
    files.add(
        "version.txt",
        format!("viamesh {}\n{}", env!("CARGO_PKG_VERSION"), contents(Path::new("/proc/version"))),
    );
    files.add("os-release.txt", contents(Path::new("/etc/os-release")));
    for (name, program, arguments) in [
        (
            "journal.txt",
            "journalctl",
            &["-u", "viamesh", "-n", JOURNAL_LINES, "--no-pager", "-o", "short-iso"][..],
        ),
        ("addresses.txt", "ip", &["address"]),
        ("rules.txt", "ip", &["rule"]),
        ("kernel-routes.txt", "ip", &["route", "show", "table", "all"]),
    ] {
        files.add(name, said_by(program, arguments));
    }
}

/// The registry's file, if it is one: read from the text, because a file with mistakes is what reports are for.
fn registry_path(node: &Path) -> Option<PathBuf> {
    let text = std::fs::read_to_string(node).ok()?;
    let named = text.lines().find_map(|line| line.strip_prefix("registry:"));
    let named =
        named.map(|value| value.split(" #").next().unwrap_or_default().trim().trim_matches(['"', '\'']));
    let path = node.parent()?.join(named.unwrap_or("/etc/viamesh/registry.yaml"));
    path.is_file().then_some(path)
}

/// A file's text, or why there is none.
fn contents(path: &Path) -> String {
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.len() > LONGEST => format!("{} is too long\n", path.display()),
        _ => std::fs::read(path).map_or_else(
            |error| format!("cannot read {}: {error}\n", path.display()),
            |text| String::from_utf8_lossy(&text).into_owned(),
        ),
    }
}

/// What a program prints, or why it does not.
fn said_by(program: &str, arguments: &[&str]) -> String {
    match std::process::Command::new(program).args(arguments).output() {
        Ok(output) => {
            format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
        }
        Err(error) => format!("cannot run {program}: {error}\n"),
    }
}

/// Only the owner can read it, from the first octet.
fn write(path: &Path, stem: &str, texts: &BTreeMap<String, String>, seconds: u64) -> io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    let file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    let compressed = flate2::write::GzEncoder::new(file, flate2::Compression::default());
    let mut archive = tar::Builder::new(compressed);
    for (name, text) in texts {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o600);
        header.set_mtime(seconds);
        archive.append_data(&mut header, format!("{stem}/{name}"), text.as_bytes())?;
    }
    archive.into_inner()?.finish()?.sync_all()
}
