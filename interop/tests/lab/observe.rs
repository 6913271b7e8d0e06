//! Metrics, graph and `top`, judged by Prometheus' own tools, Graphviz and a real terminal.

use crate::scene::{PATIENCE, Scene, binary, judge};
use crate::waypoints::{five_sites, node, settle};
use lab::{Host, wait_until};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

fn scene() -> Scene {
    let scene = five_sites().start(|site| match site.host.name() {
        "alpha" => node(site).with("metrics: 127.0.0.1:9586"),
        _ => node(site),
    });
    settle(&scene);
    scene
}

/// Runs a shell line at a host; `$1` is a file.
fn shell(host: &Host, line: &str, file: &Path) -> String {
    let mut command = Command::new("sh");
    command.args(["-c", line, "sh"]).arg(file);
    host.run(command, PATIENCE).unwrap().successful().unwrap().stdout
}

/// What an address on the host's own loopback answers.
fn get(host: &Host, path: &str, accept: &str) -> String {
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: 127.0.0.1:9586\r\nAccept: {accept}\r\nConnection: close\r\n\r\n"
    );
    let answer = host.within(move || {
        let mut stream = std::net::TcpStream::connect("127.0.0.1:9586").unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    });
    answer.unwrap()
}

fn deploy(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy").join(file)
}

#[test]
fn prometheus_accepts_the_scrape_the_alerts_and_their_tests() {
    if !judge("/usr/bin/promtool") {
        return;
    }
    let scene = scene();
    let host = scene.host("alpha");
    let modern = get(host, "/metrics", "application/openmetrics-text;version=1.0.0,text/plain;q=0.5");
    assert!(
        modern.contains("content-type: application/openmetrics-text") && modern.ends_with("# EOF\n"),
        "{modern}"
    );
    let answer = get(host, "/metrics", "text/plain");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK") && head.contains("text/plain; version=0.0.4"), "{head}");
    for series in [
        "viamesh_peers{state=\"up\"} 4",
        "viamesh_policy_up{policy=\"scenic\"} 1",
        "viamesh_peer_rtt_seconds{peer=\"bravo\"}",
        "viamesh_associations{kind=\"ike\",state=",
        "viamesh_route_changes_total ",
        "viamesh_event_loop_delay_seconds_count",
    ] {
        assert!(body.contains(series), "no {series} in\n{body}");
    }
    // Names of the registry, and no addresses.
    for site in &scene.internet.sites {
        let address = site.underlay.v4.unwrap().to_string();
        assert!(!body.contains(&address), "{address} in\n{body}");
    }
    let file = scene.internet.world.directory().join("scrape");
    std::fs::write(&file, body).unwrap();
    shell(host, "promtool check metrics < \"$1\"", &file);
    shell(host, "promtool check rules \"$1\"", &deploy("prometheus/alerts.yaml"));
    shell(host, "promtool test rules \"$1\"", &deploy("prometheus/alerts.test.yaml"));
    // Only metrics were asked for: the page is not there.
    assert!(get(host, "/", "*/*").starts_with("HTTP/1.1 404"));
}

#[test]
fn graphviz_draws_the_graph() {
    if !judge("/usr/bin/dot") {
        return;
    }
    let scene = scene();
    let graph = scene.viamesh("alpha", &["graph"]).successful().unwrap().stdout;
    assert!(graph.contains("\"alpha\" -- \"bravo\""), "{graph}");
    let file = scene.internet.world.directory().join("mesh.dot");
    std::fs::write(&file, &graph).unwrap();
    let drawn = shell(scene.host("alpha"), "dot -Tsvg \"$1\"", &file);
    assert!(drawn.contains("</svg>") && drawn.contains("charlie"), "{drawn}");
    let mermaid = scene.viamesh("alpha", &["graph", "--format", "mermaid"]).successful().unwrap().stdout;
    assert!(mermaid.starts_with("graph LR"), "{mermaid}");
    let document = scene.document("alpha", &["graph"]);
    assert_eq!((&document["format"], document["nodes"].as_array().unwrap().len()), (&1.into(), 5));
}

/// A terminal of tmux, which ends with this value.
struct Terminal<'a> {
    host: &'a Host,
    name: String,
}

impl<'a> Terminal<'a> {
    fn open(host: &'a Host, command: &str) -> Self {
        let terminal = Self { host, name: format!("viamesh-top-{}", std::process::id()) };
        terminal.tmux(&["new-session", "-d", "-x", "140", "-y", "40", command]);
        terminal
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("tmux");
        command.args(["-f", "/dev/null", "-L", &self.name]).args(arguments);
        self.host.run(command, PATIENCE).unwrap().successful().unwrap().stdout
    }

    fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    fn wait(&self, text: &str) {
        let seen = || self.screen().contains(text);
        wait_until(PATIENCE, text, seen).unwrap_or_else(|error| panic!("{error}\n{}", self.screen()));
    }
}

impl Drop for Terminal<'_> {
    fn drop(&mut self) {
        let mut command = Command::new("tmux");
        command.args(["-L", &self.name, "kill-server"]);
        let _ = self.host.run(command, PATIENCE);
    }
}

#[test]
fn top_follows_the_mesh_on_a_real_terminal() {
    if !judge("/usr/bin/tmux") {
        return;
    }
    let mut scene = scene();
    let socket = scene.mesh.node("alpha").socket.clone();
    // The shell stays when `top` ends, so that the terminal can be looked at afterwards.
    let line =
        format!("{} --socket {} top; echo ended with $?; exec cat", binary().display(), socket.display());
    let host = scene.host("alpha").clone();
    let terminal = Terminal::open(&host, &line);
    terminal.wait("4 of 4 nodes up");
    terminal.wait("alpha > bravo > charlie > bravo > delta");
    terminal.wait("▁▁▁");
    terminal.tmux(&["send-keys", "Enter"]);
    terminal.wait("link 0 > bravo/0");
    terminal.tmux(&["send-keys", "Escape"]);
    terminal.wait("choose");
    scene.mesh.kill("echo");
    terminal.wait("3 of 4 nodes up");
    terminal.tmux(&["send-keys", "q"]);
    terminal.wait("ended with 0");
    assert!(!terminal.screen().contains("choose"), "the screen is given back:\n{}", terminal.screen());
}

#[test]
fn without_a_terminal_top_says_what_to_use() {
    let world = lab::World::new().unwrap();
    let mut command = Command::new(binary());
    command.arg("top");
    let output = world.host("fresh").unwrap().run(command, PATIENCE).unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", output.stderr);
    assert!(output.stderr.contains("status --json"), "{}", output.stderr);
}

#[test]
fn a_report_holds_what_helps_and_no_key() {
    let scene = scene();
    let host = scene.host("alpha");
    let folder = scene.internet.world.directory().join("reports");
    std::fs::create_dir_all(&folder).unwrap();
    let config = scene.mesh.node("alpha").config.display().to_string();
    let collect = |name: &str, more: &[&str]| {
        let file = folder.join(name);
        let path = file.display().to_string();
        let arguments = [&["report", "--config", &config, "--output", &path][..], more].concat();
        scene.viamesh("alpha", &arguments).successful().unwrap();
        (shell(host, "tar -xzOf \"$1\"", &file), shell(host, "stat -c %a \"$1\"", &file), file)
    };
    let (plain, mode, file) = collect("plain.tar.gz", &[]);
    assert_eq!(mode.trim(), "600");
    for fact in ["scenic", "charlie", "198.18.0.3", "\"format\": 1", "graph viamesh", "ok"] {
        assert!(plain.contains(fact), "{fact} is not in the report");
    }
    let key = std::fs::read_to_string(scene.mesh.node("alpha").config.with_file_name("key.pem")).unwrap();
    let secret = key.lines().nth(1).unwrap();
    assert!(
        !plain.contains(secret) && !plain.contains("BEGIN PRIVATE KEY"),
        "a private key is in the report"
    );
    // Never over an existing file.
    let again = scene.viamesh("alpha", &["report", "--output", &file.display().to_string()]);
    assert_eq!(again.status.code(), Some(1), "{}", again.stderr);

    let (hidden, ..) = collect("hidden.tar.gz", &["--anonymize"]);
    assert!(hidden.contains("node-1") && hidden.contains("policy-1") && hidden.contains("\"format\": 1"));
    let public = std::fs::read_to_string(scene.mesh.directory.join("registry.yaml")).unwrap();
    let public = public.lines().find(|line| line.trim_start().starts_with("MCow")).unwrap().trim();
    for name in ["alpha", "bravo", "charlie", "delta", "scenic", "fd5d:ac:", "10.4.0.0", public] {
        let place = hidden.lines().find(|line| {
            line.split(|c: char| !(c.is_alphanumeric() || "-_.:/+=".contains(c)))
                .any(|word| word.starts_with(name))
        });
        assert_eq!(place, None, "{name} is still in the report");
    }
}
