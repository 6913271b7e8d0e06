//! Another configuration for a running daemon: only what differs is touched, and what is wrong changes nothing.

use crate::scene::{Internet, PATIENCE, QUICK, Scene};
use lab::{RunOutput, UdpStream};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use viamesh::config::key;

fn start(names: &[&str]) -> Scene {
    Internet::new(names, 10).start(|site| site.node().with(QUICK).with("registry_watch: false"))
}

/// Changes a file of the mesh.
fn edit(path: PathBuf, change: impl Fn(String) -> String) {
    let text = std::fs::read_to_string(&path).unwrap();
    let changed = change(text.clone());
    assert_ne!(text, changed, "the edit finds nothing in {}", path.display());
    std::fs::write(path, changed).unwrap();
}

fn node_file(scene: &Scene) -> PathBuf {
    scene.mesh.node("alpha").config.clone()
}

fn registry(scene: &Scene) -> PathBuf {
    scene.mesh.directory.join("registry.yaml")
}

/// `viamesh reload` at alpha; what it says.
fn reload(scene: &Scene) -> String {
    scene.viamesh("alpha", &["reload"]).successful().unwrap().stdout
}

fn fails(output: RunOutput, code: i32) -> String {
    assert_eq!(output.status.code(), Some(code), "{}{}", output.stdout, output.stderr);
    output.stderr
}

/// Initiator SPIs of the IKE SAs that alpha has with a node, without those that are being deleted.
fn ike_sas(scene: &Scene, peer: &str) -> Vec<String> {
    let all = scene.associations("alpha").associations.into_iter();
    all.filter(|sa| sa.node == peer && sa.state == "established").map(|sa| sa.initiator_spi).collect()
}

/// The entry of a node in the registry, with all its lines.
fn entry_of(text: &str, name: &str) -> String {
    let begin = text.find(&format!("  - common_name: {name}\n")).unwrap();
    let rest = &text[begin..];
    let end = rest[1..].find("  - common_name:").map_or(rest.len(), |at| at + 1);
    rest[..end].to_owned()
}

#[test]
fn a_reload_loses_no_packet_of_tunnels_that_it_is_not_about() {
    let scene = start(&["alpha", "bravo", "charlie"]);
    let before = ike_sas(&scene, "bravo");
    let target = SocketAddr::new(scene.site("bravo").inside(), 7300);
    let source = Some(scene.site("alpha").inside());
    let stream = UdpStream { target, source, packets_per_second: 500.0, payload: 100 };
    let stream = stream.start(scene.host("alpha"), scene.host("bravo")).unwrap();
    scene.wait("the stream", || stream.received() > 200);

    assert_eq!(reload(&scene), "nothing changes\n");
    let registry_text = std::fs::read_to_string(registry(&scene)).unwrap();
    edit(registry(&scene), |text| text.replace(&entry_of(&text, "charlie"), ""));
    assert_eq!(reload(&scene), "changed:\n  node removed: charlie\n");
    assert_eq!(ike_sas(&scene, "charlie"), Vec::<String>::new());
    std::fs::write(registry(&scene), registry_text).unwrap();
    assert!(reload(&scene).contains("node added: charlie"));

    edit(node_file(&scene), |text| {
        text.replace("announce: [", "announce: [10.77.0.0/16, ").replace("hello: 1s", "hello: 900ms")
            + "addresses: [10.99.0.1]\ncost: { rxcost: 9 }\npolicies:\n- name: p\n  from: [10.88.0.0/16]\n  \
               to: [10.3.0.0/24]\n  exit: charlie\n  if_unreachable: drop\n"
    });
    let said = reload(&scene);
    for change in
        ["10.77.0.0/16", "address added: 10.99.0.1", "policies: changed", "timers: changed", "cost: changed"]
    {
        assert!(said.contains(change), "no {change} in:\n{said}");
    }
    // A policy that takes the stream over charlie, and one that takes it straight again.
    edit(node_file(&scene), |text| {
        text + "- name: detour\n  from: [10.1.0.0/24]\n  to: [10.2.0.0/24]\n  via: [charlie]\n  exit: bravo\n  \
                if_unreachable: any-path\n"
    });
    scene.wait_path("alpha", "charlie", None);
    scene.wait_path("charlie", "bravo", None);
    assert_eq!(reload(&scene), "changed:\n  policies: changed\n");
    scene.wait("the stream on its detour", || {
        let status = scene.mesh.status("alpha").unwrap();
        status.policies.iter().any(|policy| policy.policy == "detour" && policy.packets > 500)
    });
    edit(node_file(&scene), |text| text.replace("  via: [charlie]\n", ""));
    reload(&scene);
    let seen = stream.received();
    scene.wait("the stream goes on", || stream.received() > seen + 500);

    let report = stream.stop(Duration::from_secs(5)).unwrap();
    assert_eq!((report.lost(), report.refused), (0, 0), "{report:?}");
    assert_eq!(ike_sas(&scene, "bravo"), before, "the tunnel is another one");
    scene.wait("the new network at bravo", || {
        let routes = scene.document("bravo", &["routes"]);
        routes["routes"].as_array().unwrap().iter().any(|route| route["prefix"] == "10.77.0.0/16")
    });
}

#[test]
fn a_peer_whose_key_is_removed_is_cut_before_the_reload_returns() {
    let scene = start(&["alpha", "bravo", "charlie"]);
    scene.ping("alpha", scene.site("bravo").inside());
    let kept = ike_sas(&scene, "charlie");
    let public = |name: &str| {
        let file = scene.mesh.directory.join(name).join("key.pem");
        key::public_pem(&key::load(&file).unwrap().verifying_key()).unwrap()
    };
    let indented = |pem: &str| pem.lines().map(|line| format!("          {line}\n")).collect::<String>();
    let old = indented(&public("bravo"));
    let new = indented(&key::public_pem(&key::generate().unwrap().verifying_key()).unwrap());

    // The new key beside the old one: nothing happens to the tunnel.
    let tunnel = ike_sas(&scene, "bravo");
    edit(registry(&scene), |text| text.replace(&old, &format!("{new}{old}")));
    assert_eq!(reload(&scene), "changed:\n  node bravo: key added\n");
    assert_eq!(ike_sas(&scene, "bravo"), tunnel);

    edit(registry(&scene), |text| text.replace(&old, ""));
    assert_eq!(reload(&scene), "changed:\n  node bravo: key removed\n");
    assert_eq!(ike_sas(&scene, "bravo"), Vec::<String>::new());
    let links = scene.document("alpha", &["status", "bravo"])["nodes"][0]["links"].clone();
    assert_ne!(links[0]["state"], "up", "{links:#}");
    // Bravo dials again and again, and is not let in.
    scene.wait("bravo to be refused", || {
        let status = scene.mesh.status("bravo").unwrap();
        status.problems.iter().any(|problem| problem.code == "peer/no-answer" && problem.subject == "alpha")
    });
    assert_eq!(ike_sas(&scene, "bravo"), Vec::<String>::new());
    assert_eq!(ike_sas(&scene, "charlie"), kept);
}

#[test]
fn a_bad_reload_leaves_everything_running_and_says_so() {
    let scene = start(&["alpha", "bravo"]);
    let tunnel = ike_sas(&scene, "bravo");
    edit(node_file(&scene), |text| text + "anounce: [10.4.0.7/16]\nworkers: none\n");
    let said = fails(scene.viamesh("alpha", &["reload"]), 78);
    for part in ["config/unknown-field", "config/invalid-value", "node.yaml:", "nothing has changed"] {
        assert!(said.contains(part), "no {part} in:\n{said}");
    }
    let is_told = || {
        let problems = scene.mesh.status("alpha").unwrap().problems;
        problems.iter().any(|problem| problem.code == "config/not-reloaded")
    };
    assert!(is_told());
    scene.ping("alpha", scene.site("bravo").inside());
    assert_eq!(ike_sas(&scene, "bravo"), tunnel);

    edit(node_file(&scene), |text| text.replace("anounce: [10.4.0.7/16]\nworkers: none\n", "workers: 2\n"));
    assert_eq!(reload(&scene), "nothing changes\nneeds a restart: workers\n");
    assert!(!is_told());

    // The same by the signal: nobody waits, so the log and the health tell.
    edit(node_file(&scene), |text| text.replace("workers: 2", "announce: [10.4.0.7/16]"));
    scene.mesh.node("alpha").process.as_ref().unwrap().signal(1).unwrap();
    scene.wait("a failed reload", is_told);
    assert!(scene.log("alpha").contains("config/duplicate-field"), "{}", scene.log("alpha"));
    edit(node_file(&scene), |text| text.replace("announce: [10.4.0.7/16]\n", ""));
    scene.mesh.node("alpha").process.as_ref().unwrap().signal(1).unwrap();
    scene.wait("a good reload", || !is_told());
    assert_eq!(ike_sas(&scene, "bravo"), tunnel);
}

#[test]
fn endpoints_come_and_go() {
    let scene = start(&["alpha", "bravo"]);
    let tunnel = ike_sas(&scene, "bravo");
    let second = "- { serial_number: \"1\", address_family: ip4, port: 13001 }\n";
    edit(node_file(&scene), |text| text.replace("endpoints:\n", &format!("endpoints:\n{second}")));
    let address = scene.site("alpha").underlay.v4.unwrap();
    let listed = format!(
        "    - {{ serial_number: \"1\", address_family: ip4, address: \"{address}\", port: 13001 }}\n"
    );
    edit(registry(&scene), |text| {
        let entry = entry_of(&text, "alpha");
        text.replace(&entry, &entry.replace("    endpoints:\n", &format!("    endpoints:\n{listed}")))
    });
    let said = reload(&scene);
    assert!(said.contains("endpoint added: 1 (udp 13001, ip4)"), "{said}");
    scene.viamesh("bravo", &["reload"]).successful().unwrap();
    scene.wait("a second tunnel", || ike_sas(&scene, "bravo").len() == 2);
    assert!(ike_sas(&scene, "bravo").contains(&tunnel[0]));

    edit(node_file(&scene), |text| text.replace(second, ""));
    let said = reload(&scene);
    assert!(said.contains("endpoint removed: 1 (udp 13001, ip4)"), "{said}");
    assert_eq!(ike_sas(&scene, "bravo"), tunnel);
    // The port is free again, a moment later.
    scene.wait("the port", || {
        scene.host("alpha").within(|| std::net::UdpSocket::bind("0.0.0.0:13001").is_ok()).unwrap()
    });
    scene.ping("alpha", scene.site("bravo").inside());
}

/// A copy of alpha's node file that announces one network more.
fn copy_with_a_network(scene: &Scene) -> PathBuf {
    let copy = scene.mesh.directory.join("other.yaml");
    let text = std::fs::read_to_string(node_file(scene)).unwrap();
    std::fs::write(&copy, text.replace("announce: [", "announce: [10.77.0.0/16, ")).unwrap();
    copy
}

fn announces(scene: &Scene) -> bool {
    let routes = scene.document("alpha", &["check", "--live", &node_file(scene).display().to_string()]);
    // What the file on the disk would change, seen from what runs.
    !routes["live"]["changes"].as_array().unwrap().is_empty()
}

#[test]
fn a_change_on_trial_goes_away_unless_it_is_confirmed() {
    let mut scene = start(&["alpha", "bravo"]);
    let tunnel = ike_sas(&scene, "bravo");
    let copy = copy_with_a_network(&scene).display().to_string();
    let original = std::fs::read_to_string(node_file(&scene)).unwrap();

    // Nobody confirms.
    let trial = scene.viamesh("alpha", &["apply", &copy, "--confirm-within", "2s"]).successful().unwrap();
    assert!(
        trial.stdout.contains("10.77.0.0/16") && trial.stdout.contains("viamesh confirm"),
        "{}",
        trial.stdout
    );
    scene.wait("the way back", || scene.log("alpha").contains("went back to the configuration before"));
    assert!(!announces(&scene));

    // Somebody takes it back; while it waits, nothing else is let in.
    scene.viamesh("alpha", &["apply", &copy, "--confirm-within", "1h"]).successful().unwrap();
    assert!(announces(&scene));
    let said = fails(scene.viamesh("alpha", &["reload"]), 1);
    assert!(said.contains("viamesh confirm"), "{said}");
    scene.viamesh("alpha", &["undo"]).successful().unwrap();
    assert!(!announces(&scene));

    // The daemon dies meanwhile: it comes back with what it had.
    scene.viamesh("alpha", &["apply", &copy, "--confirm-within", "1h"]).successful().unwrap();
    assert_eq!(ike_sas(&scene, "bravo"), tunnel);
    scene.mesh.kill("alpha");
    scene.mesh.start_node("alpha").unwrap();
    scene.mesh.wait_connected(PATIENCE).unwrap();
    assert!(!announces(&scene));
    assert_eq!(std::fs::read_to_string(node_file(&scene)).unwrap(), original);

    // Confirmed: it is in the file, and `undo` still knows the one before.
    scene.viamesh("alpha", &["apply", &copy, "--confirm-within", "1h"]).successful().unwrap();
    scene.viamesh("alpha", &["confirm"]).successful().unwrap();
    assert!(
        !announces(&scene) && std::fs::read_to_string(node_file(&scene)).unwrap().contains("10.77.0.0/16")
    );
    fails(scene.viamesh("alpha", &["confirm"]), 1);
    let undone = scene.viamesh("alpha", &["undo"]).successful().unwrap();
    assert!(undone.stdout.contains("no longer announced: 10.77.0.0/16"), "{}", undone.stdout);
    assert_eq!(std::fs::read_to_string(node_file(&scene)).unwrap(), original);

    // A file with mistakes changes nothing, and the messages name that file.
    std::fs::write(&copy, original + "anounce: []\n").unwrap();
    let said = fails(scene.viamesh("alpha", &["apply", &copy]), 78);
    assert!(said.contains("other.yaml:"), "{said}");
    scene.ping("alpha", scene.site("bravo").inside());
}
