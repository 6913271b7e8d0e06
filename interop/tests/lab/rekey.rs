//! Keys change under load, and the load does not notice.

use crate::scene::{Internet, PATIENCE, Scene};
use lab::{Process, UdpReport, UdpStream, wait_until};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::process::Command;
use std::time::{Duration, Instant};

/// A rekey may add so much to the longest gap of a run without rekeys.
const SLACK: Duration = Duration::from_millis(200);

/// Reasons to drop a packet that a rekey could be to blame for.
const MISFITS: [&str; 6] =
    ["unknown_spi", "replayed", "outside_window", "integrity_failure", "bad_padding", "sequence_exhausted"];

/// How long each of the two runs takes.
fn length() -> Duration {
    let full = std::env::var("VIAMESH_FULL").is_ok_and(|value| value == "1");
    Duration::from_secs(if full { 60 } else { 20 })
}

/// What happened at the receiver during a run.
struct Run {
    stream: UdpReport,
    /// What iperf3 reached, in bit/s: 200 Mbit/s, unless the machine has no time for it.
    rate: f64,
    ike_rekeys: usize,
    child_rekeys: usize,
    /// Packets that were dropped for authentication, replay or SPI, by node and reason.
    dropped: Drops,
}

/// Counts what an inspector sees who looks many times.
#[derive(Default)]
struct Watch {
    ike: BTreeSet<String>,
    children: BTreeSet<String>,
}

impl Watch {
    fn look(&mut self, scene: &Scene) {
        for ike in scene.associations("bravo").associations {
            self.ike.insert(ike.initiator_spi);
            self.children.extend(ike.children.into_iter().map(|child| child.inbound_spi));
        }
    }
}

/// How many packets each node dropped, by the reason.
type Drops = BTreeMap<(&'static str, String), u64>;

/// What both nodes dropped because a key, a number or an SPI did not fit.
fn dropped(scene: &Scene) -> Drops {
    let of = |name: &'static str| {
        let drops = scene.mesh.status(name).unwrap().drops.into_iter();
        let misfits = drops.filter(|(reason, _)| MISFITS.contains(&reason.as_str()));
        misfits.map(move |(reason, count)| ((name, reason), count))
    };
    ["alpha", "bravo"].into_iter().flat_map(of).collect()
}

fn iperf_server(scene: &Scene, address: &str) -> Process {
    let mut server = Command::new("iperf3");
    server.args(["--server", "--one-off", "--forceflush", "--bind", address]);
    let server = scene.host("bravo").spawn(server).unwrap();
    scene.wait("iperf3", || server.log_text().contains("listening"));
    server
}

/// 200 Mbit/s by iperf3, and beside it a thin stream that shows every gap.
fn run(timers: &str) -> Run {
    let length = length();
    let scene = Internet::new(&["alpha", "bravo"], 10).start(|site| site.node().with(timers));
    // Nor is it about the first packets, which may come before the keys are in force.
    let before = dropped(&scene);
    let address = scene.address("bravo");
    let server = iperf_server(&scene, &address.to_string());
    let mut client = Command::new("iperf3");
    client.args(["--json", "--bitrate", "200M", "--client", &address.to_string()]);
    client.args(["--time", &length.as_secs().to_string()]);
    let client = scene.host("alpha").spawn(client).unwrap();
    let target = SocketAddr::new(address, 7200);
    let stream = UdpStream { target, source: None, packets_per_second: 500.0, payload: 100 };
    let stream = stream.start(scene.host("alpha"), scene.host("bravo")).unwrap();

    let mut watch = Watch::default();
    let started = Instant::now();
    wait_until(length + PATIENCE, "the end of the run", || {
        watch.look(&scene);
        started.elapsed() >= length && !client.is_running()
    })
    .unwrap();
    let stream = stream.stop(Duration::from_secs(5)).unwrap();
    let report: serde_json::Value = serde_json::from_str(&client.log_text()).unwrap();
    let rate = report["end"]["sum_received"]["bits_per_second"].as_f64().unwrap_or_default();
    assert!(rate > 0.0, "iperf3 moved nothing: {:#}", report["end"]);
    drop(server);
    let mut dropped = dropped(&scene);
    dropped.retain(|what, count| before.get(what) != Some(count));
    Run { stream, rate, ike_rekeys: watch.ike.len() - 1, child_rekeys: watch.children.len() - 1, dropped }
}

#[test]
fn rekeys_under_load_drop_nothing_and_leave_no_gap() {
    let control = run("timers: { child_rekey: 1h, ike_rekey: 4h }");
    assert_eq!((control.ike_rekeys, control.child_rekeys), (0, 0));
    let rekeyed = run("timers: { child_rekey: 4s, ike_rekey: 11s }");
    let counts = (rekeyed.ike_rekeys, rekeyed.child_rekeys);
    assert!(counts.0 >= 1 && counts.1 >= 3, "too few rekeys (IKE, CHILD): {counts:?}");
    assert_eq!((control.dropped, rekeyed.dropped), (Drops::new(), Drops::new()));
    let share = rekeyed.rate / control.rate;
    assert!(share > 0.75, "{} bit/s with rekeys, {} without", rekeyed.rate, control.rate);
    assert_eq!(rekeyed.stream.lost(), 0, "{:?}", rekeyed.stream);
    let (gap, allowed) = (rekeyed.stream.longest_gap, control.stream.longest_gap + SLACK);
    assert!(gap <= allowed, "a gap of {gap:?}, {:?} without rekeys", control.stream.longest_gap);
}
