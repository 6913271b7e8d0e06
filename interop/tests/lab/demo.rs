//! `viamesh demo`, as a person runs it.

use crate::capture::{nothing_else_is_on_the_wire, tshark_decodes_the_handshake, tshark_decodes_the_traffic};
use crate::frames::Kind;
use crate::scene::binary;
use crate::tshark::Judge;
use lab::{DemoReport, Step, World};
use std::process::Command;
use std::time::Duration;
use viamesh::demo::{CITIES, mesh::PORT};

#[test]
fn the_demo_measures_six_steps_that_make_sense() {
    let world = World::new().unwrap();
    let host = world.host("machine").unwrap();
    let (file, wire) = (world.directory().join("demo.json"), world.directory().join("demo.pcap"));
    let mut command = Command::new(binary());
    command.arg("demo").arg("--json").arg(&file).arg("--capture").arg(&wire);
    let output = host.run(command, Duration::from_secs(180)).unwrap().successful().unwrap();
    assert!(output.stdout.lines().count() > 12, "{}", output.stdout);
    let report: DemoReport = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    let [tunnels, relay, back, journey, failover, throughput] = report.steps.as_slice() else {
        panic!("not six steps: {report:?}");
    };
    assert!(matches!(tunnels, Step::Tunnels { ms } if *ms > 0.0), "{tunnels:?}");
    match relay {
        // What the links have: 265 ms directly, 68 + 132 ms by the relay.
        Step::Relay { direct_rtt_ms, relayed_rtt_ms } => {
            assert!(*direct_rtt_ms >= 265.0 && *relayed_rtt_ms >= 200.0, "{relay:?}");
            assert!(relayed_rtt_ms < direct_rtt_ms, "{relay:?}");
        }
        other => panic!("{other:?}"),
    }
    assert!(matches!(back, Step::Return { ms } if *ms > 0.0), "{back:?}");
    match journey {
        Step::Journey { expected, visited } => {
            assert_eq!((visited, expected.len()), (expected, 5));
        }
        other => panic!("{other:?}"),
    }
    assert!(matches!(failover, Step::Failover { outage_ms } if *outage_ms > 0.0), "{failover:?}");
    assert!(matches!(throughput, Step::Throughput { gbps } if *gbps > 0.0), "{throughput:?}");

    // The demo measures the direct way with pings below the mesh.
    nothing_else_is_on_the_wire(&wire, &[Kind::UnderlayEcho]);
    let keylogs = CITIES.map(|city| format!("{}.{}.keys", wire.display(), city.name).into());
    let judge = Judge::new(&host, world.directory(), &keylogs, &wire, PORT);
    tshark_decodes_the_handshake(&judge);
    tshark_decodes_the_traffic(&judge);
}
