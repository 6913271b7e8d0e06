//! A mesh in a storm of faults, for two minutes or for hours (`cargo xtask soak`): rekeys every 20 seconds, a fault
//! every few seconds, and flows between all nodes that check every byte.
//!
//! Waves of faults alternate with calms. In each calm all flows must go on and each node must hold what it held at
//! the beginning: security associations, routes, rules, threads, descriptors.

mod fault;
mod flows;
mod ledger;

use crate::scene::{Internet, Scene};
use fault::{Faults, Storm};
use flows::Flows;
use lab::{Nat, NatKind};
use ledger::Ledger;
use std::time::{Duration, Instant};

/// How long faults come before they all end and everything is looked at.
const WAVE: Duration = Duration::from_secs(20);

/// Round trip between all sites in fair weather.
const FAIR_MS: u64 = 20;

/// Settings of all nodes: both kinds of keys live for 20 seconds, which makes both ends rekey at once now and then.
const TIMERS: &str =
    "timers: { hello: 1s, redial: 500ms, liveness: 4s, retransmit: 500ms, child_rekey: 20s, ike_rekey: 20s }";

/// What a person may choose.
struct Plan {
    length: Duration,
    seed: u64,
}

impl Plan {
    fn from_environment() -> Self {
        let number = |name: &str, default| {
            std::env::var(name)
                .map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}: {text}")))
        };
        let minutes: u64 = number("VIAMESH_SOAK_MINUTES", 2);
        Self { length: Duration::from_secs(60 * minutes), seed: number("VIAMESH_SOAK_SEED", 1) }
    }
}

#[expect(clippy::print_stderr, reason = "a person who soaks wants to see what happens")]
fn narrate(since: Instant, line: &str) {
    eprintln!("{:7.1} s  {line}", since.elapsed().as_secs_f64());
}

/// Five sites, the fifth behind a router that translates addresses.
fn mesh(seed: u64) -> (Scene, Nat) {
    let mut internet = Internet::with_seed(&["alpha", "bravo", "charlie", "delta"], FAIR_MS, seed);
    let nat = internet.add_behind_nat("echo", false, NatKind::Cone, FAIR_MS);
    // A second address on the cable must survive the first.
    internet.site("echo").host.sysctl("net.ipv4.conf.all.promote_secondaries", "1").unwrap();
    (internet.start(|site| site.node().with(TIMERS)), nat)
}

fn wave(scene: &mut Scene, storm: &mut Storm, faults: &mut Faults<'_>, ledger: &mut Ledger, start: Instant) {
    let begin = Instant::now();
    while begin.elapsed() < WAVE {
        let fault = storm.next_fault();
        narrate(start, &fault.to_string());
        faults.begin(&fault, scene);
        // The script's own pace, not a wait for anything.
        std::thread::sleep(storm.duration(800..4000));
        faults.end(&fault, scene);
        std::thread::sleep(storm.duration(200..1500));
        ledger.look_at_keys(scene);
    }
    faults.calm(scene);
}

#[test]
fn a_mesh_outlasts_a_storm_of_faults() {
    let plan = Plan::from_environment();
    let start = Instant::now();
    narrate(start, &format!("seed {}, {} s", plan.seed, plan.length.as_secs()));
    let (mut scene, nat) = mesh(plan.seed);
    let flows = Flows::start(&scene);
    flows.all_go_on(&scene);
    let mut ledger = Ledger::open(&scene);
    let mut storm = Storm::new(plan.seed, &scene);
    let mut faults = Faults::new(&nat);
    let begin = Instant::now();
    let mut waves = 0;
    while begin.elapsed() < plan.length {
        wave(&mut scene, &mut storm, &mut faults, &mut ledger, start);
        waves += 1;
        narrate(start, "calm");
        ledger.settle(&scene);
        narrate(start, "one tunnel for each pair");
        flows.all_go_on(&scene);
        narrate(start, "all flows go on");
        narrate(start, &ledger.audit(&scene));
    }
    let keys = ledger.keys();
    narrate(start, &format!("{waves} waves, {} faults, {keys:?}", faults.count()));
    narrate(start, &flows.finish());
    for line in ledger.memory() {
        narrate(start, &line);
    }
    let pairs = 10;
    assert!(keys.ike > 2 * pairs && keys.child > 2 * pairs, "too few rekeys: {keys:?}");
}
