//! Every command, as a person and as a program would use it.

use crate::scene::{PATIENCE, Scene, binary};
use crate::waypoints::{five_sites, node, settle};
use lab::{Host, RunOutput, World};
use serde_json::Value;
use std::process::Command;

fn run(host: &Host, arguments: &[&str]) -> RunOutput {
    let mut command = Command::new(binary());
    command.args(arguments);
    host.run(command, PATIENCE).unwrap()
}

/// Runs a command both ways: text for people, one JSON document with its format number for programs.
fn says(scene: &Scene, arguments: &[&str], expected: &str) -> Value {
    let output = scene.viamesh("alpha", arguments).successful().unwrap();
    assert!(output.stdout.contains(expected), "{arguments:?} says nothing of {expected}:\n{}", output.stdout);
    let document = scene.document("alpha", arguments);
    assert_eq!(document["format"], 1, "{arguments:?}: {document:#}");
    document
}

/// `--watch` tells the same again and again: for programs a document on each line.
fn watches(scene: &Scene) {
    let mut command = Command::new(binary());
    command.arg("--socket").arg(&scene.mesh.node("alpha").socket);
    command.args(["status", "--watch=0.05", "--json"]);
    let watch = scene.host("alpha").spawn(command).unwrap();
    scene.wait("three documents", || watch.log_text().lines().count() > 3);
    for line in watch.log_text().lines().take(3) {
        let document: Value = serde_json::from_str(line).unwrap();
        assert_eq!((&document["format"], &document["node"]), (&1.into(), &"alpha.lab".into()), "{line}");
    }
    // Whoever reads no more ends it.
    let socket = scene.mesh.node("alpha").socket.display();
    let line = format!("{} --socket {socket} routes --watch=0.05 | head -n 3", binary().display());
    let mut shell = Command::new("sh");
    shell.args(["-c", &line]);
    let output = scene.host("alpha").run(shell, PATIENCE).unwrap();
    assert_eq!((output.stdout.lines().count(), output.stderr.as_str()), (3, ""));
}

#[test]
fn what_reports_state_does_so_in_text_and_in_json() {
    let scene = five_sites().start(node);
    settle(&scene);
    let (alpha, delta) = (scene.site("alpha").inside().to_string(), scene.site("delta").inside().to_string());

    let status = says(&scene, &["status"], "scenic");
    assert_eq!(status["nodes"].as_array().unwrap().len(), 4);
    assert_eq!(status["nodes"][0]["state"], "up");
    assert_eq!(says(&scene, &["status", "delta"], "delta")["nodes"].as_array().unwrap().len(), 1);
    let routes = says(&scene, &["routes"], "10.4.0.0/24");
    assert!(routes["routes"].as_array().unwrap().len() >= 10);
    let covering = says(&scene, &["routes", &delta], "10.4.0.0/24");
    assert!(covering["routes"].as_array().unwrap().iter().all(|route| route["prefix"] == "10.4.0.0/24"));
    assert_eq!(says(&scene, &["neighbours"], "bravo")["neighbours"].as_array().unwrap().len(), 4);
    let associations = says(&scene, &["associations"], "AES-256-GCM-16");
    assert_eq!(associations["associations"].as_array().unwrap().len(), 4);
    let exchange = associations["associations"][0]["key_exchange"].as_str().unwrap();
    assert!(exchange.to_lowercase().contains("x25519"), "{exchange}");
    says(&scene, &["registry"], "delta");

    let explained = says(&scene, &["explain", &alpha, &delta], "first match");
    assert_eq!(explained["rules"][0]["policy"], "scenic");
    let other = says(&scene, &["explain", "10.99.0.1", &delta, "--tcp", "--port", "443"], "delta");
    assert_eq!(other["rules"][0]["matched"], false);
    says(&scene, &["trace", &delta, "--from", &alpha], "charlie");
    let ping = says(&scene, &["ping", "echo", "-c", "2"], "echo");
    assert_eq!(ping["replies"].as_array().unwrap().len(), 2);
    let itself = scene.viamesh("alpha", &["ping", "alpha"]);
    assert!(itself.stderr.contains("is this node"), "{}", itself.stderr);
    let by_hand = says(&scene, &["ping", "delta", "--via", "bravo,charlie", "-c", "2"], "charlie");
    assert_eq!(by_hand["via"], serde_json::json!(["bravo", "charlie"]));
    assert!(by_hand["replies"][0]["rtt_ms"].as_f64().unwrap() > 0.0, "{by_hand:#}");
    watches(&scene);
    scene.viamesh("alpha", &["status", "--check", "live"]).successful().unwrap();
    scene.viamesh("alpha", &["status", "--check", "ready"]).successful().unwrap();

    let config = scene.mesh.node("alpha").config.display().to_string();
    let checked = says(&scene, &["check", &config], "ok");
    assert_eq!((&checked["ok"], &checked["errors"]), (&true.into(), &0.into()), "{checked:#}");
}

#[test]
fn a_node_made_by_init_passes_the_check() {
    let world = World::new().unwrap();
    let host = world.host("fresh").unwrap();
    let folder = world.directory().join("etc").display().to_string();
    let init = ["init", "--yes", "--organization", "acme", "--name", "alpha", "--address", "192.0.2.1"];
    let init = run(&host, &[&init[..], &["--dir", &folder]].concat()).successful().unwrap();
    assert!(init.stdout.contains("BEGIN PUBLIC KEY"), "{}", init.stdout);
    let file = format!("{folder}/node.yaml");
    let check = run(&host, &["check", &file]).successful().unwrap();
    assert!(check.stdout.contains("ok"), "{}", check.stdout);
    // Never over an existing node.
    let again = run(&host, &["init", "--yes", "--organization", "acme", "--dir", &folder]);
    assert_eq!(again.status.code(), Some(1), "{}", again.stderr);
    assert!(again.stderr.contains("exists already"), "{}", again.stderr);
}

#[test]
fn a_generated_key_has_a_public_half_and_a_fingerprint() {
    let world = World::new().unwrap();
    let host = world.host("fresh").unwrap();
    let file = world.directory().join("key.pem").display().to_string();
    run(&host, &["key", "generate", "--out", &file]).successful().unwrap();
    let public = run(&host, &["key", "public", &file]).successful().unwrap();
    assert!(public.stdout.starts_with("-----BEGIN PUBLIC KEY-----"), "{}", public.stdout);
    let fingerprint = run(&host, &["key", "fingerprint", &file]).successful().unwrap();
    assert!(fingerprint.stdout.starts_with("SHA256:"), "{}", fingerprint.stdout);
    let document = run(&host, &["key", "public", &file, "--json"]).successful().unwrap();
    let document: Value = serde_json::from_str(&document.stdout).unwrap();
    assert_eq!(document["format"], 1);
    assert_eq!(document["public_key"], public.stdout);
    assert_eq!(document["fingerprint"], fingerprint.stdout.trim());
}
