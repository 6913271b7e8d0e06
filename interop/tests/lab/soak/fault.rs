//! Faults, drawn by a seeded script, and how they are brought about.

use super::FAIR_MS;
use crate::scene::Scene;
use ipnet::Ipv4Net;
use lab::{LinkSettings, Nat, Random};
use std::fmt;
use std::net::Ipv4Addr;
use std::ops::Range;
use std::time::Duration;

/// One thing that goes wrong.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Fault {
    /// Two stations have other link properties until the next calm, or only one direction between them.
    Weather { a: String, b: String, settings: LinkSettings, one_way: bool },
    /// Nothing passes between two stations, or in one direction.
    Death { a: String, b: String, one_way: bool },
    /// Nothing passes to or from a station.
    Isolation { station: String },
    /// A daemon is killed, and started later.
    Crash { node: String },
    /// A daemon is stopped in order, and started later.
    Restart { node: String },
    /// The router before the fifth node forgets its flows and chooses other ports.
    Rebind,
    /// The router forgets its flows.
    Forget,
    /// The fifth node has another address.
    Roam,
    /// A node's uplink takes smaller packets only.
    SmallPackets { node: String, mtu: u32 },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let arrow = |one_way: &bool| if *one_way { "->" } else { "<->" };
        match self {
            Self::Weather { a, b, settings, one_way } => write!(
                f,
                "weather {a} {} {b}: {:?} ± {:?}, loss {:.0} %, reordered {:.0} %, twice {:.0} %",
                arrow(one_way),
                settings.delay,
                settings.jitter,
                settings.loss * 100.0,
                settings.reorder * 100.0,
                settings.duplicate * 100.0
            ),
            Self::Death { a, b, one_way } => write!(f, "dead: {a} {} {b}", arrow(one_way)),
            Self::Isolation { station } => write!(f, "{station} is cut off"),
            Self::Crash { node } => write!(f, "{node} is killed"),
            Self::Restart { node } => write!(f, "{node} restarts"),
            Self::Rebind => write!(f, "the router chooses other ports"),
            Self::Forget => write!(f, "the router forgets its flows"),
            Self::Roam => write!(f, "echo has another address"),
            Self::SmallPackets { node, mtu } => write!(f, "{node} sends packets of {mtu} octets at most"),
        }
    }
}

/// Draws faults.
pub(super) struct Storm {
    random: Random,
    stations: Vec<String>,
    nodes: Vec<String>,
}

impl Storm {
    pub(super) fn new(seed: u64, scene: &Scene) -> Self {
        let sites = &scene.internet.sites;
        Self {
            random: Random::new(seed),
            stations: sites.iter().map(|site| site.station().to_owned()).collect(),
            nodes: sites.iter().map(|site| site.host.name().to_owned()).collect(),
        }
    }

    /// Milliseconds in this range.
    pub(super) fn duration(&mut self, range: Range<u64>) -> Duration {
        Duration::from_millis(range.start + self.random.next_u64() % (range.end - range.start))
    }

    pub(super) fn next_fault(&mut self) -> Fault {
        let ((a, b), one_way) = (self.pair(), self.random.happens(0.5));
        match self.random.next_u64() % 16 {
            0..=4 => Fault::Weather { settings: self.weather(), a, b, one_way },
            5 | 6 => Fault::Death { a, b, one_way: true },
            7 | 8 => Fault::Death { a, b, one_way: false },
            9 => Fault::Isolation { station: a },
            10 => Fault::Crash { node: self.node() },
            11 => Fault::Restart { node: self.node() },
            12 => Fault::Rebind,
            13 => Fault::Forget,
            14 => Fault::Roam,
            _ => {
                let mtu = [1280, 1400, 1492][(self.random.next_u64() % 3) as usize];
                Fault::SmallPackets { node: self.node(), mtu }
            }
        }
    }

    fn weather(&mut self) -> LinkSettings {
        let rare =
            |random: &mut Random, most: f64| if random.happens(0.5) { random.fraction() * most } else { 0.0 };
        LinkSettings {
            delay: self.duration(0..150),
            jitter: self.duration(0..20),
            loss: rare(&mut self.random, 0.4),
            reorder: rare(&mut self.random, 0.2),
            reorder_by: self.duration(1..10),
            duplicate: rare(&mut self.random, 0.2),
            ..LinkSettings::PERFECT
        }
    }

    fn node(&mut self) -> String {
        let index = self.index(self.nodes.len());
        self.nodes[index].clone()
    }

    fn pair(&mut self) -> (String, String) {
        let count = self.stations.len();
        let first = self.index(count);
        let second = (first + 1 + self.index(count - 1)) % count;
        (self.stations[first].clone(), self.stations[second].clone())
    }

    fn index(&mut self, count: usize) -> usize {
        (self.random.next_u64() % count as u64) as usize
    }
}

/// Brings faults about and takes them back.
pub(super) struct Faults<'a> {
    nat: &'a Nat,
    count: usize,
}

impl<'a> Faults<'a> {
    pub(super) fn new(nat: &'a Nat) -> Self {
        Self { nat, count: 0 }
    }

    /// How many there were.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    pub(super) fn begin(&mut self, fault: &Fault, scene: &mut Scene) {
        self.count += 1;
        match fault {
            Fault::Weather { a, b, settings, one_way } => set(scene, a, b, *settings, *one_way),
            Fault::Death { a, b, one_way } => set(scene, a, b, LinkSettings::DEAD, *one_way),
            Fault::Isolation { station } => {
                scene.internet.segment.set_station(station, LinkSettings::DEAD).unwrap();
            }
            Fault::Crash { node } => {
                scene.assert_no_panic();
                scene.mesh.kill(node);
            }
            Fault::Restart { node } => {
                scene.assert_no_panic();
                scene.mesh.stop(node).unwrap();
            }
            Fault::Rebind => self.nat.rebind().unwrap(),
            Fault::Forget => self.nat.forget().unwrap(),
            Fault::Roam => {
                let (old, new) = addresses(scene);
                replace_address(scene, old, new);
            }
            Fault::SmallPackets { node, mtu } => set_mtu(scene, node, *mtu),
        }
    }

    pub(super) fn end(&mut self, fault: &Fault, scene: &mut Scene) {
        match fault {
            // Weather stays, the rest is over in an instant.
            Fault::Weather { .. } | Fault::Rebind | Fault::Forget => {}
            Fault::Death { a, b, .. } => set(scene, a, b, LinkSettings::with_rtt_ms(FAIR_MS), false),
            Fault::Isolation { station } => {
                let fair = LinkSettings::with_rtt_ms(FAIR_MS);
                scene.internet.segment.set_station(station, fair).unwrap();
            }
            Fault::Crash { node } | Fault::Restart { node } => scene.mesh.start_node(node).unwrap(),
            Fault::Roam => {
                let (old, new) = addresses(scene);
                replace_address(scene, new, old);
            }
            Fault::SmallPackets { node, .. } => set_mtu(scene, node, 1500),
        }
    }

    /// Fair weather everywhere.
    pub(super) fn calm(&mut self, scene: &Scene) {
        for site in &scene.internet.sites {
            let fair = LinkSettings::with_rtt_ms(FAIR_MS);
            scene.internet.segment.set_station(site.station(), fair).unwrap();
        }
    }
}

fn set(scene: &Scene, a: &str, b: &str, settings: LinkSettings, one_way: bool) {
    let segment = &scene.internet.segment;
    if one_way {
        segment.set_one_way(a, b, settings).unwrap();
    } else {
        segment.set(a, b, settings).unwrap();
    }
}

fn set_mtu(scene: &Scene, node: &str, mtu: u32) {
    let site = scene.site(node);
    site.host.set_mtu(&site.underlay.name, mtu).unwrap();
}

/// The fifth node's address on its cable, and the one that it roams to.
fn addresses(scene: &Scene) -> (Ipv4Net, Ipv4Net) {
    let home = scene.site("echo").underlay.v4.unwrap();
    let [a, b, c, _] = home.octets();
    (Ipv4Net::new(home, 24).unwrap(), Ipv4Net::new(Ipv4Addr::new(a, b, c, 77), 24).unwrap())
}

fn replace_address(scene: &Scene, old: Ipv4Net, new: Ipv4Net) {
    let echo = scene.site("echo");
    echo.host.add_address(&echo.underlay.name, new.into()).unwrap();
    echo.host.remove_address(&echo.underlay.name, old.into()).unwrap();
    // Where the kernel took the default route along with the address.
    let router = Ipv4Addr::from_bits(old.network().to_bits() + 1);
    echo.host.add_route("0.0.0.0/0".parse().unwrap(), router.into()).unwrap();
}
