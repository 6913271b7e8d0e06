//! BIRD on XFRM interfaces: the same routes, metrics and round trips as ours, route by route.

use super::PEER;
use super::mesh::{KernelMesh, OURS, PATIENCE, ROUTER, Setup, inside};
use crate::case::Case;
use lab::wait_until;
use std::collections::BTreeMap;
use std::time::Duration;
use viamesh::control::report::{NeighbourEntry, RouteEntry, RouteStanding};
use viamesh::control::{Reply, Request};

/// Round trips in which the way from alpha to bravo leads through the router.
const ROUND_TRIPS: [u64; 3] = [160, 40, 30];
/// What two measurements of the same length may differ by in cost, of 4 units a millisecond.
const TOLERANCE: u32 = 4 * 4;

pub(crate) fn cases() -> Vec<Case> {
    vec![Case::new(PEER, "routes", run)]
}

fn run() {
    let mut all = Setup { rtt_ms: ROUND_TRIPS, ..Setup::default() }.start();
    for (a, b) in [("alpha", "bravo"), ("bravo", "alpha")] {
        all.mesh.wait_path(a, b, Some(ROUTER.0), PATIENCE).unwrap();
    }
    wait_round_trips(&all);
    wait_agreement(&all);
    ipv4_goes_by_ipv6(&all);
    all.wait_traffic();

    all.router.ask_bird("disable direct1").unwrap();
    wait_network(&all, false);
    all.router.ask_bird("enable direct1").unwrap();
    wait_network(&all, true);

    all.router.restart_bird().unwrap();
    wait_agreement(&all);
    all.wait_traffic();
    all.check();
    all.mesh.stop("alpha").unwrap();
    all.wait("BIRD to forget a node that has stopped", || {
        let routes = all.router.selected().unwrap();
        routes.iter().all(|route| !route.prefix.contains(&ipnet::IpNet::from(inside(1, 1)[0])))
    });
}

fn neighbour(all: &KernelMesh, node: &str) -> Option<NeighbourEntry> {
    match all.mesh.ask(node, &Request::Neighbours).unwrap() {
        Reply::Neighbours(report) => report.neighbours.into_iter().find(|entry| entry.node == ROUTER.0),
        other => panic!("{other:?} is no answer to a question for neighbours"),
    }
}

/// Both ends of each tunnel measure its length.
fn wait_round_trips(all: &KernelMesh) {
    for ((name, _), rtt) in OURS.into_iter().zip(&ROUND_TRIPS[1..]) {
        let true_one = Duration::from_millis(*rtt);
        let allowed = Duration::from_millis(2) + true_one / 10;
        let device = all.router.setup.device_to(name);
        let both = || {
            let ours = neighbour(all, name)?.rtt_ms?;
            let theirs = all.router.neighbours().ok()?.into_iter().find(|other| other.interface == device)?;
            Some([Duration::from_secs_f64(ours / 1000.0), theirs.rtt?])
        };
        // A busy machine adds to both alike; nothing makes the way shorter.
        let right = || {
            both().is_some_and(|[ours, theirs]| {
                ours.abs_diff(theirs) <= allowed && ours.min(theirs) + allowed >= true_one
            })
        };
        wait_until(PATIENCE, &format!("both to measure {true_one:?} between router and {name}"), right)
            .unwrap_or_else(|error| panic!("{error}: {:?}", both()));
    }
}

/// The routes in use at a node of ours, by prefix.
fn routes(all: &KernelMesh, node: &str) -> BTreeMap<String, RouteEntry> {
    let Reply::Routes(report) = all.mesh.ask(node, &Request::Routes { address: None }).unwrap() else {
        panic!("no routes");
    };
    let used = report.routes.into_iter().filter(|route| route.standing == RouteStanding::Selected);
    used.map(|route| (route.prefix.to_string(), route)).collect()
}

/// What BIRD has chosen is what it announces, and what ours choose follows from it.
fn wait_agreement(all: &KernelMesh) {
    let outcome = wait_until(PATIENCE, "all to agree", || disagreements(all).is_empty());
    outcome.unwrap_or_else(|error| panic!("{error}: {:#?}\n{}", disagreements(all), all.mesh.describe()));
}

fn disagreements(all: &KernelMesh) -> Vec<String> {
    let mut found = Vec::new();
    let Ok(selected) = all.router.selected() else { return vec!["BIRD does not answer".into()] };
    for ((name, network), (other, far)) in OURS.into_iter().zip(OURS.into_iter().rev()) {
        let (ours, cost) = (routes(all, name), neighbour(all, name).and_then(|entry| entry.cost));
        let device = all.router.setup.device_to(name);
        let theirs = all.router.neighbours().unwrap_or_default();
        let its_cost = theirs.into_iter().find(|entry| entry.interface == device).map(|entry| entry.cost);
        // Ours behind its own tunnel, at BIRD.
        for prefix in [format!("10.{network}.0.0/24"), format!("fd00:0:0:{network}::/64")] {
            let route = selected.iter().find(|route| route.prefix.to_string() == prefix);
            let right = route.zip(its_cost).is_some_and(|(route, cost)| {
                route.interface == device && route.metric.abs_diff(cost) <= TOLERANCE
            });
            if !right {
                found.push(format!("BIRD's route to {prefix} of {name}: {route:?}, cost {its_cost:?}"));
            }
        }
        // What is behind the router, and what is behind the other of ours, at ours.
        let behind: Vec<(String, Option<u32>)> = ["10.9.0.0/24", "fd00:0:0:9::/64", "fd5d:ac:0:9::/64"]
            .into_iter()
            .map(|prefix| (prefix.to_owned(), Some(0)))
            .chain([format!("10.{far}.0.0/24"), format!("fd00:0:0:{far}::/64")].into_iter().map(|prefix| {
                let route = selected.iter().find(|route| route.prefix.to_string() == prefix);
                (prefix, route.map(|route| route.metric))
            }))
            .collect();
        for (prefix, metric) in behind {
            let route = ours.get(&prefix);
            let right = route.zip(metric).zip(cost).is_some_and(|((route, metric), cost)| {
                let (Some(announced), Some(ours)) = (route.announced_metric, route.metric) else {
                    return false;
                };
                route.neighbour.as_deref() == Some(ROUTER.0)
                    && announced.abs_diff(metric) <= TOLERANCE
                    && ours.abs_diff(announced + cost) <= TOLERANCE
            });
            if !right {
                found.push(format!(
                    "{name}'s route to {prefix} (towards {other}): {route:?}, cost {cost:?}, BIRD's {metric:?}"
                ));
            }
        }
    }
    found
}

/// The guest has no IPv4 address on a tunnel, and needs none.
fn ipv4_goes_by_ipv6(all: &KernelMesh) {
    for (name, network) in OURS {
        let route = all.router.guest.shell(&format!("ip route show 10.{network}.0.0/24")).unwrap();
        let device = all.router.setup.device_to(name);
        assert!(route.contains("via inet6 fe80::") && route.contains(&format!("dev {device}")), "{route}");
    }
}

/// Waits until ours know the network behind the router, or do not.
fn wait_network(all: &KernelMesh, known: bool) {
    for (name, _) in OURS {
        for prefix in ["10.9.0.0/24", "fd00:0:0:9::/64"] {
            let what = format!("{name} to {} {prefix}", if known { "know" } else { "forget" });
            all.wait(&what, || routes(all, name).contains_key(prefix) == known);
        }
    }
}
