//! The commands that need files only, run as a person would run them: `check`, `key`, `init`.
#![allow(clippy::unwrap_used, reason = "a test stops where something is not as it should be")]

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A directory that goes away with the test.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn viamesh(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_viamesh"));
    command.args(arguments).env_remove("NO_COLOR").stdin(Stdio::null()).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Makes a node in `directory` and returns its node file.
fn init(directory: &Directory, more: &[&str]) -> String {
    let base = ["init", "--organization", "acme", "--name", "alpha", "--dir", directory.0.to_str().unwrap()];
    let output = viamesh(&[&base[..], more].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    directory.file("node.yaml")
}

#[test]
fn init_makes_a_node_that_passes_the_check() {
    let directory = Directory::new("init");
    let node = init(&directory, &["--address", "2001:db8::1", "--port", "4500"]);
    let checked = viamesh(&["check", &node]);
    assert_eq!(checked.status.code(), Some(0));
    assert_eq!(
        stdout(&checked),
        "ok: acme/alpha, 1 endpoint, 0 announced networks, 0 policies, 1 node in the registry\n"
    );
    assert_eq!(stderr(&checked), "");
    let registry = std::fs::read_to_string(directory.file("registry.yaml")).unwrap();
    assert!(registry.contains("address_family: ip6, address: \"2001:db8::1\", port: 4500"), "{registry}");
    let mode = std::fs::metadata(directory.file("node.pem")).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o600);
}

#[test]
fn init_overwrites_nothing() {
    let directory = Directory::new("init-twice");
    let node = init(&directory, &[]);
    let before = std::fs::read(directory.file("node.pem")).unwrap();
    let again = viamesh(&[
        "init",
        "--organization",
        "acme",
        "--name",
        "beta",
        "--dir",
        directory.0.to_str().unwrap(),
    ]);
    assert_eq!(again.status.code(), Some(1));
    assert!(stderr(&again).contains("exists already"), "{}", stderr(&again));
    assert_eq!(std::fs::read(directory.file("node.pem")).unwrap(), before);
    std::fs::remove_file(&node).unwrap();
    std::fs::remove_file(directory.file("node.pem")).unwrap();
    let registry = std::fs::read(directory.file("registry.yaml")).unwrap();
    let third = viamesh(&[
        "init",
        "--organization",
        "acme",
        "--name",
        "beta",
        "--dir",
        directory.0.to_str().unwrap(),
    ]);
    assert_eq!(third.status.code(), Some(0));
    assert_eq!(std::fs::read(directory.file("registry.yaml")).unwrap(), registry);
    assert!(stdout(&third).starts_with("- organization: acme\n"), "{}", stdout(&third));
}

#[test]
fn init_refuses_answers_that_make_no_configuration_and_leaves_nothing_behind() {
    let directory = Directory::new("init-bad");
    let path = directory.0.join("deeper");
    let bad = viamesh(&[
        "init",
        "--organization",
        "acme",
        "--name",
        "alpha",
        "--address",
        "not a host",
        "--dir",
        path.to_str().unwrap(),
    ]);
    assert_eq!(bad.status.code(), Some(1));
    assert!(stderr(&bad).contains("config/invalid-value"), "{}", stderr(&bad));
    assert!(!path.exists());
    let unanswered = viamesh(&["init", "--dir", path.to_str().unwrap()]);
    assert_eq!(unanswered.status.code(), Some(2));
    assert!(stderr(&unanswered).contains("--organization"), "{}", stderr(&unanswered));
}

#[test]
fn init_quotes_what_yaml_would_misread() {
    let directory = Directory::new("init-quotes");
    let base = [
        "init",
        "--organization",
        "acme \"corp\": #1",
        "--name",
        "null",
        "--dir",
        directory.0.to_str().unwrap(),
    ];
    assert_eq!(viamesh(&base).status.code(), Some(0));
    let checked = viamesh(&["check", &directory.file("node.yaml")]);
    assert!(stdout(&checked).starts_with("ok: acme \"corp\": #1/null,"), "{}", stdout(&checked));
}

#[test]
fn check_ends_with_78_on_a_mistake() {
    let directory = Directory::new("check");
    let node = init(&directory, &[]);
    let text = std::fs::read_to_string(&node).unwrap() + "anounce: [10.1.0.0/16]\n";
    std::fs::write(&node, text).unwrap();
    let checked = viamesh(&["check", &node]);
    assert_eq!(checked.status.code(), Some(78));
    assert!(stdout(&checked).contains("error[config/unknown-field]: unknown field `anounce`"));
    assert!(stdout(&checked).ends_with("not ok: 1 error\n"), "{}", stdout(&checked));
    let by_flag = viamesh(&["--config", &node, "check"]);
    assert_eq!(by_flag.stdout, checked.stdout);
    let run = viamesh(&["run", "--config", &node]);
    assert_eq!(run.status.code(), Some(78), "{}", stderr(&run));
    assert!(stderr(&run).contains("config/unknown-field"));
}

#[test]
fn check_as_json_is_one_document() {
    let directory = Directory::new("check-json");
    let node = init(&directory, &[]);
    let document: serde_json::Value =
        serde_json::from_slice(&viamesh(&["check", "--json", &node]).stdout).unwrap();
    assert_eq!((&document["format"], &document["ok"]), (&1.into(), &true.into()));
    assert_eq!(document["summary"]["node"], "acme/alpha");
    std::fs::write(&node, "organization: acme\n").unwrap();
    let output = viamesh(&["check", "--json", &node]);
    assert_eq!(output.status.code(), Some(78));
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["ok"], false);
    let first = &document["diagnostics"][0];
    assert_eq!(
        (&first["code"], &first["line"], &first["column"]),
        (&"config/missing-field".into(), &1.into(), &1.into())
    );
}

#[test]
fn the_key_and_the_registry_may_be_named_by_flags() {
    let directory = Directory::new("flags");
    let node = init(&directory, &[]);
    let (key, registry) = (directory.file("moved.pem"), directory.file("moved.json"));
    std::fs::rename(directory.file("node.pem"), &key).unwrap();
    std::fs::rename(directory.file("registry.yaml"), &registry).unwrap();
    assert_eq!(viamesh(&["check", &node]).status.code(), Some(78));
    assert_eq!(viamesh(&["check", &node, "--key", &key, "--registry", &registry]).status.code(), Some(0));
}

#[test]
fn keys_are_private_and_never_overwritten() {
    let directory = Directory::new("keys");
    let file = directory.file("key.pem");
    assert_eq!(viamesh(&["key", "generate", "--out", &file]).status.code(), Some(0));
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o7777, 0o600);
    let before = std::fs::read(&file).unwrap();
    let again = viamesh(&["key", "generate", "--out", &file]);
    assert_eq!(again.status.code(), Some(1));
    assert!(stderr(&again).contains("never overwritten"), "{}", stderr(&again));
    assert_eq!(std::fs::read(&file).unwrap(), before);
    let public = stdout(&viamesh(&["key", "public", &file]));
    assert!(public.starts_with("-----BEGIN PUBLIC KEY-----\n") && public.lines().count() == 3, "{public}");
    let public_file = directory.file("key.pub");
    std::fs::write(&public_file, &public).unwrap();
    let fingerprint = stdout(&viamesh(&["key", "fingerprint", &file]));
    assert_eq!(fingerprint, stdout(&viamesh(&["key", "fingerprint", &public_file])));
    assert!(fingerprint.starts_with("SHA256:") && fingerprint.len() == 7 + 43 + 1, "{fingerprint}");
}

#[test]
fn a_new_key_goes_to_stdout_and_is_another_each_time() {
    let keys: Vec<String> = (0..2).map(|_| stdout(&viamesh(&["key", "generate"]))).collect();
    assert!(keys[0].starts_with("-----BEGIN PRIVATE KEY-----\n"));
    assert_ne!(keys[0], keys[1]);
    assert_eq!(viamesh(&["key", "generate", "--json"]).status.code(), Some(2));
}

#[test]
fn a_public_key_is_not_taken_for_a_private_one() {
    let directory = Directory::new("public");
    let file = directory.file("key.pub");
    std::fs::write(&file, "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----\n").unwrap();
    let output = viamesh(&["key", "public", &file]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("this is a public key"), "{}", stderr(&output));
}

#[test]
fn wrong_usage_ends_with_2_and_help_with_0() {
    assert_eq!(viamesh(&[]).status.code(), Some(2));
    assert_eq!(viamesh(&["nonsense"]).status.code(), Some(2));
    assert_eq!(viamesh(&["explain", "10.0.0.1"]).status.code(), Some(2));
    assert_eq!(viamesh(&["--help"]).status.code(), Some(0));
    assert_eq!(viamesh(&["--version"]).status.code(), Some(0));
}

#[test]
fn help_knows_commands_and_codes() {
    assert_eq!(viamesh(&["help"]).stdout, viamesh(&["--help"]).stdout);
    assert!(stdout(&viamesh(&["help", "key", "generate"])).contains("--out <FILE>"));
    let code = viamesh(&["help", "policy/never-matches"]);
    assert!(stdout(&code).starts_with("warning: policy/never-matches\n"), "{}", stdout(&code));
    let unknown = viamesh(&["help", "policy/never-match"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(stderr(&unknown).contains("did you mean `policy/never-matches`?"));
    assert_eq!(viamesh(&["help", "nonsense"]).status.code(), Some(2));
}

#[test]
fn every_shell_gets_its_completions() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = stdout(&viamesh(&["completions", shell]));
        assert!(script.contains("explain") && script.contains("viamesh"), "{shell}");
    }
}

#[test]
fn a_reader_that_went_away_is_no_error() {
    let directory = Directory::new("pipe");
    let node = init(&directory, &[]);
    let broken = "anounce: [10.1.0.0/16]\n".repeat(3000);
    std::fs::write(&node, broken).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_viamesh"))
        .args(["check", &node])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(stderr(&output), "");
    assert!(output.status.code().is_some(), "killed by a signal");
}

#[test]
fn colours_only_where_they_are_wanted() {
    let directory = Directory::new("colours");
    let node = init(&directory, &[]);
    std::fs::write(&node, "anounce: 1\n").unwrap();
    let escape = |arguments: &[&str]| stdout(&viamesh(arguments)).contains('\x1b');
    assert!(!escape(&["check", &node]));
    assert!(escape(&["check", &node, "--color", "always"]));
    assert!(!escape(&["check", &node, "--color", "never"]));
    assert!(!escape(&["check", &node, "--color", "always", "--json"]));
}

/// On a terminal: `script` gives the program one.
#[test]
fn a_terminal_has_colours_unless_somebody_minds() {
    let directory = Directory::new("terminal");
    let node = init(&directory, &[]);
    std::fs::write(&node, "anounce: 1\n").unwrap();
    let line = format!("{} check {node}", env!("CARGO_BIN_EXE_viamesh"));
    let shown = |no_colour: Option<&str>, term: &str| {
        let mut command = Command::new("script");
        command.args(["-qec", &line, "/dev/null"]).env("TERM", term).stdin(Stdio::null());
        match no_colour {
            Some(value) => command.env("NO_COLOR", value),
            None => command.env_remove("NO_COLOR"),
        };
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(78), "{}", stdout(&output));
        stdout(&output).contains("\x1b[")
    };
    assert!(shown(None, "xterm"));
    assert!(shown(Some(""), "xterm"), "an empty NO_COLOR is none");
    assert!(!shown(Some("1"), "xterm"));
    assert!(!shown(None, "dumb"));
}
