//! The same journey in other forms: compressed, signed, and written into the registry for both ends.

use crate::scene::{QUICK, Scene, Site};
use crate::waypoints::{JOURNEY, UNIQUE, five_sites, settle, visited};
use std::os::unix::fs::PermissionsExt;

/// The journey as a policy, with further lines.
fn policy(further: &str) -> String {
    format!(
        "- name: scenic\n  from: [10.1.0.0/24]\n  to: [10.4.0.0/24]\n  via: [bravo, charlie, bravo]\n  \
         exit: delta\n  if_unreachable: drop\n{further}"
    )
}

/// Alpha's node file with the policy.
fn steering(site: &Site, further: &str) -> viamesh::demo::NodeSpec {
    let spec = site.node().with(QUICK);
    match site.host.name() {
        "alpha" => spec.with(&format!("policies:\n{}", policy(further))),
        _ => spec,
    }
}

/// The stations of one probe of unique size that has so many bytes in front of it, and of its answer if that has too.
fn stations(scene: &Scene, envelope: usize) -> Vec<String> {
    let (alpha, delta) = (scene.site("alpha").inside(), scene.site("delta").inside());
    visited(scene, alpha, delta, esp::sealed_len(envelope + 28 + UNIQUE))
}

fn encoding(scene: &Scene) -> String {
    let (alpha, delta) = (scene.site("alpha").inside().to_string(), scene.site("delta").inside().to_string());
    let explained = scene.document("alpha", &["explain", &alpha, &delta]);
    assert_eq!(explained["path"], serde_json::json!(JOURNEY), "{explained:#}");
    explained["encoding"].as_str().unwrap().to_owned()
}

#[test]
fn stops_with_micro_sids_cost_one_header() {
    let scene = five_sites().start(|site| {
        let number = site.host.name().as_bytes()[0] - b'a' + 10;
        steering(site, "").remark(&format!("usid: {number:#x}"))
    });
    settle(&scene);
    scene.wait("all micro-SIDs to be announced", || encoding(&scene).starts_with("compressed"));
    assert_eq!(stations(&scene, 40), JOURNEY);
    let (alpha, delta) = (scene.site("alpha").inside().to_string(), scene.site("delta").inside().to_string());
    let trace = scene.document("alpha", &["trace", &delta, "--from", &alpha]);
    let stops: Vec<_> = trace["hops"].as_array().unwrap().iter().map(|hop| &hop["node"]).collect();
    assert_eq!(stops, JOURNEY[1..], "{trace:#}");
}

#[test]
fn a_signed_list_passes_stops_that_demand_it() {
    let internet = five_sites();
    let key = internet.world.directory().join("segments.key");
    std::fs::write(&key, "a secret of the whole mesh\n").unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    let keys = format!(
        "hmac_keys: [{{ id: 7, file: {} }}]\nrequire_hmac_from: [alpha, bravo, charlie, delta, echo]\n",
        key.display()
    );
    let scene = internet.start(|site| steering(site, "  hmac: 7\n").with(&keys));
    settle(&scene);
    assert!(encoding(&scene).ends_with("signed with key 7"), "{}", encoding(&scene));
    assert_eq!(stations(&scene, 96 + 40), JOURNEY);
    // A path that somebody writes by hand is not signed.
    let by_hand = scene.viamesh("alpha", &["ping", "charlie", "--via", "bravo", "-c", "2", "--timeout", "1"]);
    assert!(!by_hand.status.success(), "{}", by_hand.stdout);
    let direct = scene.viamesh("alpha", &["ping", "charlie", "-c", "2"]);
    assert!(direct.status.success(), "{}{}", direct.stdout, direct.stderr);
}

#[test]
fn a_policy_of_the_registry_leads_there_and_back_over_the_same_stops() {
    let scene = five_sites().start(|site| {
        let spec = site.node().with(QUICK);
        match site.host.name() {
            "alpha" => spec.remark(&format!("policies:\n{}", policy(""))),
            _ => spec,
        }
    });
    settle(&scene);
    scene.wait("the way back", || {
        let policies = scene.mesh.status("delta").unwrap().policies;
        policies.iter().any(|policy| policy.policy == "scenic, back" && policy.reason.is_none())
    });
    let there_and_back: Vec<&str> = JOURNEY.into_iter().chain(JOURNEY.into_iter().rev().skip(1)).collect();
    assert_eq!(stations(&scene, 96), there_and_back);
}
