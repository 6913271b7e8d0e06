//! Mistakes: the exit code that scripts and systemd go by, and the message that people go by.

use crate::scene::{Internet, PATIENCE, QUICK, Scene, binary};
use lab::RunOutput;
use std::net::UdpSocket;
use std::process::Command;

/// A mesh of two whose nodes have not been started.
fn prepared() -> Scene {
    Internet::new(&["alpha", "bravo"], 10).prepare(|site| site.node().with(QUICK))
}

/// Starts alpha's daemon, which must end by itself with this code.
fn run_fails(scene: &Scene, program: &[&str], code: i32) -> RunOutput {
    let binary = binary().display().to_string();
    let node = scene.mesh.node("alpha");
    let (config, socket) = (node.config.display().to_string(), node.socket.display().to_string());
    let line = [program, &[&binary, "--socket", &socket, "run", "--config", &config]].concat();
    let mut command = Command::new(line[0]);
    command.args(&line[1..]);
    let output = scene.host("alpha").run(command, PATIENCE).unwrap();
    assert_eq!(output.status.code(), Some(code), "{}{}", output.stdout, output.stderr);
    assert!(!output.stderr.contains("panicked"), "{}", output.stderr);
    output
}

/// Changes alpha's node file.
fn edit(scene: &Scene, change: impl Fn(String) -> String) {
    let path = &scene.mesh.node("alpha").config;
    let text = std::fs::read_to_string(path).unwrap();
    std::fs::write(path, change(text)).unwrap();
}

#[test]
fn no_daemon_is_69() {
    let scene = prepared();
    for arguments in [&["status"][..], &["routes"], &["ping", "bravo"], &["trace", "10.2.0.1"]] {
        let output = scene.viamesh("alpha", arguments);
        assert_eq!(output.status.code(), Some(69), "{arguments:?}: {}", output.stderr);
        assert!(output.stderr.contains("cannot reach the daemon"), "{}", output.stderr);
        assert!(output.stderr.contains("help:"), "{}", output.stderr);
    }
}

#[test]
fn a_broken_node_file_is_78_with_file_line_and_column() {
    let scene = prepared();
    edit(&scene, |text| text + "announce: [10.1.0.0/16\npolicies: {\n");
    let lines = std::fs::read_to_string(&scene.mesh.node("alpha").config).unwrap().lines().count();
    let output = run_fails(&scene, &[], 78);
    let place = output.stderr.split_once("node.yaml:").map(|(_, rest)| rest).unwrap_or_default();
    let numbers: Vec<_> = place.split([':', '\n', ' ']).take(2).map(str::parse::<usize>).collect();
    let [Ok(line), Ok(column)] = numbers.as_slice() else { panic!("no place in:\n{}", output.stderr) };
    assert!((1..=lines + 1).contains(line) && *column >= 1, "{}", output.stderr);

    let config = scene.mesh.node("alpha").config.display().to_string();
    let check = scene.viamesh("alpha", &["check", &config, "--json"]);
    assert_eq!(check.status.code(), Some(78), "{}", check.stderr);
    let document: serde_json::Value = serde_json::from_str(&check.stdout).unwrap();
    assert_eq!((&document["format"], &document["ok"]), (&1.into(), &false.into()), "{document:#}");
}

#[test]
fn an_unknown_node_in_a_policy_is_78_with_a_suggestion() {
    let scene = prepared();
    edit(&scene, |text| {
        text + "policies:\n- name: p\n  from: [10.1.0.0/24]\n  to: [10.2.0.0/24]\n  via: [brvo]\n  exit: bravo\n"
    });
    let output = run_fails(&scene, &[], 78);
    assert!(output.stderr.contains("brvo") && output.stderr.contains("bravo"), "{}", output.stderr);
    assert!(output.stderr.contains("node.yaml:"), "{}", output.stderr);
}

#[test]
fn a_key_that_is_not_the_registrys_is_78() {
    let scene = prepared();
    let [ours, theirs] = ["alpha", "bravo"].map(|name| scene.mesh.directory.join(name).join("key.pem"));
    std::fs::copy(theirs, ours).unwrap();
    let output = run_fails(&scene, &[], 78);
    assert!(output.stderr.contains("key"), "{}", output.stderr);
    assert!(output.stderr.contains("registry"), "{}", output.stderr);
}

#[test]
fn a_port_in_use_is_1_and_names_its_owner() {
    let scene = prepared();
    let holder = scene.host("alpha").within(|| UdpSocket::bind("0.0.0.0:13000").unwrap()).unwrap();
    let output = run_fails(&scene, &[], 1);
    assert!(output.stderr.contains("13000"), "{}", output.stderr);
    let owner = format!("pid {}", std::process::id());
    assert!(output.stderr.contains(&owner), "no {owner} in:\n{}", output.stderr);
    drop(holder);
}

#[test]
fn a_second_daemon_does_not_disturb_the_first() {
    let mut scene = prepared();
    scene.mesh.start().unwrap();
    scene.mesh.wait_connected(PATIENCE).unwrap();
    let output = run_fails(&scene, &[], 1);
    assert!(output.stderr.contains("help:") || output.stderr.contains("error:"), "{}", output.stderr);
    scene.ping("alpha", scene.address("bravo"));
    scene.ping("bravo", scene.address("alpha"));
}

#[test]
fn a_missing_capability_is_77() {
    let scene = prepared();
    let capless = ["setpriv", "--bounding-set=-net_admin", "--inh-caps=-net_admin"];
    let output = run_fails(&scene, &capless, 77);
    assert!(output.stderr.contains("CAP_NET_ADMIN"), "{}", output.stderr);
}
