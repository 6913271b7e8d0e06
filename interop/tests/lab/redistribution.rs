//! A host's own routing tables feed the mesh and are fed by it, while they change.

use crate::scene::{Internet, PATIENCE, QUICK, Scene};
use std::process::Command;

/// What alpha takes and gives. Its table 100 is what a routing daemon fills, table 200 what it reads.
const FEED: &str = "redistribute:
  connected: [lan0]
  import:
  - table: 100
    protocols: [bird, kernel]
    prefixes: [10.60.0.0/16, 10.2.0.0/16, \"fd00:60::/32\"]
    except: [10.60.9.0/24]
    metric: 40
  export:
  - { table: 200, prefixes: [10.2.0.0/16, 10.60.0.0/16], metric: 77 }";

/// `ip …` at alpha.
fn ip(scene: &Scene, arguments: &str) -> String {
    ip_on(scene.host("alpha"), arguments)
}

fn ip_on(host: &lab::Host, arguments: &str) -> String {
    let mut command = Command::new("ip");
    command.args(arguments.split_whitespace());
    host.run(command, PATIENCE).unwrap().successful().unwrap().stdout
}

/// The standings and metrics of a node's routes to a prefix.
fn routes(scene: &Scene, node: &str, prefix: &str) -> Vec<(String, u64)> {
    let document = scene.document(node, &["routes"]);
    let routes = document["routes"].as_array().unwrap().iter().filter(|route| route["prefix"] == prefix);
    routes
        .map(|route| {
            (route["standing"].as_str().unwrap().to_owned(), route["metric"].as_u64().unwrap_or(65535))
        })
        .collect()
}

fn uses(scene: &Scene, node: &str, prefix: &str) -> bool {
    routes(scene, node, prefix).iter().any(|(standing, _)| standing == "selected")
}

fn announces(scene: &Scene, node: &str, prefix: &str) -> bool {
    routes(scene, node, prefix).iter().any(|(standing, _)| standing == "local")
}

#[test]
fn the_hosts_tables_feed_the_mesh_and_are_fed() {
    let internet = Internet::new(&["alpha", "bravo"], 4);
    let host = &internet.site("alpha").host;
    for line in [
        "link add lan0 type veth peer name lan1",
        "address add 10.50.0.1/24 dev lan0",
        "link set lan0 up",
        "link set lan1 up",
    ] {
        ip_on(host, line);
    }
    host.add_address("lo", "10.60.1.1/32".parse().unwrap()).unwrap();
    ip_on(host, "route add 10.60.8.0/24 dev lan0 table 100 proto bird");
    let mut scene = internet.start(|site| {
        let node = site.node().with(QUICK);
        if site.host.name() == "alpha" { node.with(FEED) } else { node }
    });

    // From the mesh: what the filter names, with our mark on it, and nothing else.
    scene.wait("the export", || ip(&scene, "route show table 200").contains("10.2.0.0/24"));
    let table = ip(&scene, "route show table 200");
    assert_eq!(table.lines().count(), 1, "{table}");
    assert!(
        table.contains("dev viamesh0") && table.contains("proto 118") && table.contains("metric 77"),
        "{table}"
    );

    // To the mesh: the network of an interface, and what is in the table, before and after the start.
    scene.wait("the network of the interface", || uses(&scene, "bravo", "10.50.0.0/24"));
    scene.wait("the first route", || uses(&scene, "bravo", "10.60.8.0/24"));
    scene.ping("bravo", "10.50.0.1".parse().unwrap());
    for line in [
        "route add 10.60.1.0/24 dev lan0 table 100 proto bird",
        "-6 route add fd00:60:1::/48 dev lan0 table 100 proto bird",
    ] {
        ip(&scene, line);
    }
    scene.wait("the new route", || {
        uses(&scene, "bravo", "10.60.1.0/24") && uses(&scene, "bravo", "fd00:60:1::/48")
    });
    scene.ping("bravo", "10.60.1.1".parse().unwrap());
    let metric = |prefix: &str| routes(&scene, "bravo", prefix)[0].1;
    let (fed, connected) = (metric("10.60.1.0/24"), metric("10.50.0.0/24"));
    assert!(fed >= connected + 30, "the metric is lost: {fed} and {connected}");

    // What must not come in: our own, whoever passes it on and whatever mark it has; what leads into the mesh; what
    // the filters leave out.
    for line in [
        "route add 10.2.0.0/24 dev lan0 table 100 proto bird",
        "route add 10.60.3.0/24 dev lan0 table 100 proto 118",
        "route add 10.60.4.0/24 dev viamesh0 table 100 proto bird",
        "route add 10.60.5.0/24 dev lan0 table 100 proto static",
        "route add unreachable 10.60.6.0/24 table 100 proto bird",
        "route add 10.60.9.0/25 dev lan0 table 100 proto bird",
        "route add 10.61.0.0/16 dev lan0 table 100 proto bird",
        "route add default dev lan0 table 100 proto bird",
        "route add 10.60.2.0/24 dev lan0 table 100 proto bird",
    ] {
        ip(&scene, line);
    }
    scene.wait("the last of them", || uses(&scene, "bravo", "10.60.2.0/24"));
    let refused = [
        "10.2.0.0/24",
        "10.60.3.0/24",
        "10.60.4.0/24",
        "10.60.5.0/24",
        "10.60.6.0/24",
        "10.60.9.0/25",
        "10.61.0.0/16",
        "0.0.0.0/0",
    ];
    for prefix in refused {
        assert!(!announces(&scene, "alpha", prefix), "{prefix}");
    }
    scene.ping("alpha", scene.site("bravo").inside());

    // Routes go, one by one and with their interface.
    ip(&scene, "route del 10.60.1.0/24 table 100");
    scene.wait("the route to go", || !uses(&scene, "bravo", "10.60.1.0/24"));
    assert!(uses(&scene, "bravo", "10.60.2.0/24"));
    ip(&scene, "link del lan0");
    scene.wait("the networks to go", || {
        ["10.50.0.0/24", "10.60.2.0/24", "fd00:60:1::/48"].iter().all(|prefix| !uses(&scene, "bravo", prefix))
    });

    // The filters are changed at run time.
    let file = scene.mesh.node("alpha").config.clone();
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(
        &file,
        text.replace("[10.2.0.0/16, 10.60.0.0/16], metric: 77", "[\"fd00::/16\"], metric: 78"),
    )
    .unwrap();
    let said = scene.viamesh("alpha", &["reload"]).successful().unwrap().stdout;
    assert!(said.contains("redistribution: changed"), "{said}");
    scene.wait("the other export", || {
        ip(&scene, "route show table 200").trim().is_empty()
            && ip(&scene, "-6 route show table 200").contains("fd00:0:0:2::/64")
    });

    // A route of the mesh goes there, too; and with the daemon all of them.
    scene.mesh.stop("bravo").unwrap();
    scene
        .wait("bravo's network to go", || !ip(&scene, "-6 route show table 200").contains("fd00:0:0:2::/64"));
    scene.mesh.start_node("bravo").unwrap();
    scene.wait("bravo's network", || ip(&scene, "-6 route show table 200").contains("fd00:0:0:2::/64"));
    scene.mesh.stop("alpha").unwrap();
    assert!(!ip(&scene, "-6 route show table all").contains("proto 118"));
}
