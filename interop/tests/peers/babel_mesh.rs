//! Routers of three implementations on emulated links, and what their tables should come to.

use interop::babel_speaker::{BabelSpeaker, SpeakerInterface, SpeakerSetup};
use ipnet::IpNet;
use lab::peers::{BabelMac, BabelNeighbour, BabelSetup, Babeld, Bird, Release};
use lab::{Host, Interface, LinkSettings, Segment, World};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, Instant};

/// Far longer than any of the daemons takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(90);

/// Whose router.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Ours,
    Bird,
    Babeld,
}

enum Daemon {
    Ours(BabelSpeaker),
    Bird(Bird),
    Babeld(Babeld),
}

/// A router: its host, and its interface to each link.
struct Member {
    kind: Kind,
    host: Host,
    interfaces: Vec<(usize, Interface)>,
    daemon: Option<Daemon>,
}

struct MeshLink {
    ends: [usize; 2],
    segment: Segment,
    /// The round trip in milliseconds; `None` while it is dead.
    rtt: Option<u64>,
}

/// A prefix's metric, and the router that packets go to next.
type Table = BTreeMap<IpNet, (u32, usize)>;

/// Routers and links.
pub(crate) struct BabelMesh {
    world: World,
    release: Release,
    mac: Option<BabelMac>,
    members: Vec<Member>,
    links: Vec<MeshLink>,
    /// Further prefixes that one of the routers announces.
    extra: (usize, Vec<IpNet>),
    seed: u64,
}

impl BabelMesh {
    /// Routers of these kinds, joined by links `(one end, other end, round trip in milliseconds)`. `extra` are prefixes
    /// that a router announces beside its own two.
    pub(crate) fn start(
        release: Release,
        kinds: &[Kind],
        links: &[(usize, usize, u64)],
        mac: Option<BabelMac>,
        extra: (usize, Vec<IpNet>),
    ) -> Self {
        let world = World::new().unwrap();
        let mut members: Vec<Member> = Vec::new();
        for (index, kind) in kinds.iter().enumerate() {
            let host = world.host(&format!("r{index}")).unwrap();
            for prefix in own_prefixes(index) {
                host.add_address("lo", prefix).unwrap();
            }
            members.push(Member { kind: *kind, host, interfaces: Vec::new(), daemon: None });
        }
        let mut mesh = Self { world, release, mac, members, links: Vec::new(), extra, seed: 0 };
        for (id, (a, b, rtt)) in links.iter().enumerate() {
            // Without addresses of the link: IPv4 goes by IPv6 next hops.
            let config = mesh.world.segment_config(&format!("link{id}"));
            let config = lab::SegmentConfig { v4: None, v6: None, ..config };
            let segment = mesh.world.segment_with(config).unwrap();
            for end in [*a, *b] {
                let interface = segment.attach(&mesh.members[end].host).unwrap();
                mesh.members[end].interfaces.push((id, interface));
            }
            mesh.links.push(MeshLink { ends: [*a, *b], segment, rtt: None });
            mesh.set_rtt(id, Some(*rtt));
        }
        let (origin, prefixes) = &mesh.extra;
        if kinds.get(*origin) == Some(&Kind::Babeld) {
            // It announces addresses.
            prefixes.iter().for_each(|prefix| mesh.members[*origin].host.add_address("lo", *prefix).unwrap());
        }
        (0..kinds.len()).for_each(|index| mesh.start_member(index));
        mesh
    }

    /// Starts a router, for the first time or after [`Self::kill`].
    pub(crate) fn start_member(&mut self, index: usize) {
        self.seed += 1;
        let member = &self.members[index];
        let extra = if self.extra.0 == index { self.extra.1.clone() } else { Vec::new() };
        let interfaces = member.interfaces.iter().map(|(_, interface)| interface.name.clone()).collect();
        let setup = BabelSetup { interfaces, mac: self.mac, announce: extra.clone() };
        let directory = self.world.directory();
        let daemon = match member.kind {
            Kind::Ours => Daemon::Ours(self.start_ours(index, &extra)),
            Kind::Bird => {
                let root = self.release.root(directory).unwrap();
                Daemon::Bird(Bird::start(&member.host, &root, directory, &setup).unwrap())
            }
            Kind::Babeld => {
                let root = self.release.root(directory).unwrap();
                Daemon::Babeld(Babeld::start(&member.host, &root, directory, &setup).unwrap())
            }
        };
        self.members[index].daemon = Some(daemon);
    }

    fn start_ours(&self, index: usize, extra: &[IpNet]) -> BabelSpeaker {
        let member = &self.members[index];
        // As a daemon that lost its state: a new router-id would hide what its neighbours remember.
        let router_id = babel::RouterId([0x02, 0, 0, 0, 0, 0, 0, u8::try_from(index + 1).unwrap()]);
        let interfaces = member
            .interfaces
            .iter()
            .map(|(_, interface)| SpeakerInterface { index: interface.index, local: link_local(interface) });
        let setup = SpeakerSetup {
            config: babel::Config::new(router_id),
            interfaces: interfaces.collect(),
            keys: self.mac.iter().map(mac_key).collect(),
            seed: self.seed,
        };
        // Link-local addresses can be bound once the kernel has found no duplicate of them.
        let mut speaker = None;
        let begun = lab::wait_until(PATIENCE, "link-local addresses to speak from", || {
            speaker = BabelSpeaker::start(&member.host, &setup).ok();
            speaker.is_some()
        });
        begun.unwrap();
        let speaker = speaker.unwrap();
        for prefix in own_prefixes(index).into_iter().chain(extra.iter().copied()) {
            speaker.announce(prefix);
        }
        speaker
    }

    /// Kills a router as a crash would.
    pub(crate) fn kill(&mut self, index: usize) {
        match self.members[index].daemon.take() {
            Some(Daemon::Bird(bird)) => bird.process().kill(),
            Some(Daemon::Babeld(babeld)) => babeld.process().kill(),
            Some(Daemon::Ours(_)) | None => {}
        }
    }

    /// Changes a link's round trip; `None` kills it.
    pub(crate) fn set_rtt(&mut self, link: usize, rtt: Option<u64>) {
        let settings = rtt.map_or(LinkSettings::DEAD, LinkSettings::with_rtt_ms);
        self.set(link, settings);
        self.links[link].rtt = rtt;
    }

    /// Loses a share of the packets of a link, both ways.
    pub(crate) fn set_loss(&mut self, link: usize, loss: f64) {
        let rtt = self.links[link].rtt.unwrap_or_default();
        self.set(link, LinkSettings { loss, ..LinkSettings::with_rtt_ms(rtt) });
    }

    fn set(&self, link: usize, settings: LinkSettings) {
        let MeshLink { ends: [a, b], segment, .. } = &self.links[link];
        segment.set(self.members[*a].host.name(), self.members[*b].host.name(), settings).unwrap();
    }

    /// Lets the router with further prefixes announce them, or not.
    pub(crate) fn set_announcing(&mut self, on: bool) {
        let (index, prefixes) = &self.extra;
        match &self.members[*index].daemon {
            Some(Daemon::Ours(speaker)) if on => prefixes.iter().for_each(|prefix| speaker.announce(*prefix)),
            Some(Daemon::Ours(speaker)) => prefixes.iter().for_each(|prefix| speaker.withdraw(*prefix)),
            Some(Daemon::Bird(bird)) => bird.set_announcing(on).unwrap(),
            Some(Daemon::Babeld(_)) | None => panic!("no way to tell router {index}"),
        }
    }

    /// How many of the further prefixes each of the others has a route to.
    pub(crate) fn wait_extra(&self, count: usize) {
        let (origin, prefixes) = &self.extra;
        for index in (0..self.members.len()).filter(|index| index != origin) {
            let have = || {
                let table = self.table(index);
                prefixes.iter().filter(|prefix| table.contains_key(prefix)).count()
            };
            lab::wait_until(PATIENCE, &format!("{count} further routes at router {index}"), || {
                have() == count
            })
            .unwrap_or_else(|error| panic!("{error}: it has {}\n{}", have(), self.describe()));
        }
    }

    /// What a router has chosen, without its own prefixes.
    fn table(&self, index: usize) -> Table {
        let member = &self.members[index];
        let next = |prefix: IpNet, metric: u32, hop: Ipv6Addr| {
            self.owner(hop).map(|owner| (prefix, (metric, owner)))
        };
        match &member.daemon {
            None => Table::new(),
            Some(Daemon::Ours(speaker)) => {
                let routes = speaker.selected().into_iter();
                let routes = routes.filter_map(|route| match route.next_hop {
                    Some(IpAddr::V6(hop)) => next(route.prefix.destination, u32::from(route.metric), hop),
                    _ => None,
                });
                routes.collect()
            }
            // It may not listen yet: then it has no routes yet.
            Some(Daemon::Bird(bird)) => {
                let routes = bird.selected().unwrap_or_default().into_iter();
                routes.filter_map(|route| next(route.prefix, route.metric, route.next_hop)).collect()
            }
            Some(Daemon::Babeld(babeld)) => {
                let routes = babeld.selected().unwrap_or_default().into_iter();
                routes.filter_map(|route| next(route.prefix, route.metric, route.next_hop)).collect()
            }
        }
    }

    /// Whose address on a link.
    fn owner(&self, address: Ipv6Addr) -> Option<usize> {
        self.members.iter().position(|member| {
            member.interfaces.iter().any(|(_, interface)| link_local(interface) == address)
        })
    }

    /// Metric and next hop from router to router by the shortest path, and how many links that has.
    fn shortest(&self, from: usize, to: usize) -> Option<(u32, usize, u32)> {
        // Metric, links and first hop towards `to`; a round for each possible hop.
        let mut best: Vec<Option<(u32, usize, u32)>> = vec![None; self.members.len()];
        best[to] = Some((0, to, 0));
        for _ in 0..self.members.len() {
            for link in &self.links {
                let [a, b] = link.ends;
                let Some(rtt) = link.rtt else { continue };
                let alive = |end: usize| self.members[end].daemon.is_some();
                if !alive(a) || !alive(b) {
                    continue;
                }
                for (here, there) in [(a, b), (b, a)] {
                    let Some((metric, _, links)) = best[there] else { continue };
                    let offered = metric + link_cost(rtt);
                    if best[here].is_none_or(|(known, ..)| offered < known) {
                        best[here] = Some((offered, there, links + 1));
                    }
                }
            }
        }
        best[from].filter(|_| from != to)
    }

    /// Waits until every router has exactly the routes of the shortest paths: next hop by next hop, and metrics within
    /// 2 ms and a tenth of each link.
    pub(crate) fn wait_agreement(&self, what: &str) {
        let begin = Instant::now();
        loop {
            let wrong = self.disagreements();
            if wrong.is_empty() {
                return;
            }
            assert!(begin.elapsed() < PATIENCE, "{what}:\n{wrong}\n{}", self.describe());
            std::thread::sleep(Duration::from_millis(250));
        }
    }

    /// Every difference between tables and shortest paths, in words.
    fn disagreements(&self) -> String {
        let mut text = String::new();
        let alive = |index: &usize| self.members[*index].daemon.is_some();
        for from in (0..self.members.len()).filter(alive) {
            let table = self.table(from);
            for to in (0..self.members.len()).filter(|to| *to != from) {
                let expected = self.shortest(from, to);
                for prefix in own_prefixes(to) {
                    let found = table.get(&prefix);
                    let right = match (expected, found) {
                        (None, None) => true,
                        (Some((metric, next, links)), Some((found, via))) => {
                            // 2 ms are 8 units of the cost map.
                            *via == next && found.abs_diff(metric) <= 8 * links + metric / 10
                        }
                        _ => false,
                    };
                    if !right {
                        let kind = self.members[from].kind;
                        let _ = writeln!(
                            text,
                            "r{from} ({kind:?}) to {prefix}: {found:?} instead of {expected:?} (metric, next[, links])"
                        );
                    }
                }
            }
        }
        text
    }

    /// Waits until the round trips that both ends of each living link measure are the link's own, within 2 ms and a
    /// tenth.
    pub(crate) fn wait_round_trips(&self) {
        for link in &self.links {
            let Some(rtt) = link.rtt else { continue };
            let [a, b] = link.ends;
            for (here, there) in [(a, b), (b, a)] {
                let measured = || self.neighbour(here, there).and_then(|neighbour| neighbour.rtt);
                let right = || {
                    measured().is_some_and(|rtt_found| {
                        let off = rtt_found.abs_diff(Duration::from_millis(rtt));
                        off <= Duration::from_millis(2) + Duration::from_millis(rtt) / 10
                    })
                };
                lab::wait_until(PATIENCE, &format!("r{here} to measure {rtt} ms to r{there}"), right)
                    .unwrap_or_else(|error| panic!("{error}: {:?}\n{}", measured(), self.describe()));
            }
        }
    }

    /// A router's view of a neighbour.
    pub(crate) fn neighbour(&self, of: usize, other: usize) -> Option<BabelNeighbour> {
        let neighbours = match self.members[of].daemon.as_ref()? {
            Daemon::Ours(speaker) => {
                let view = |report: babel::NeighbourReport| BabelNeighbour {
                    address: report.address,
                    interface: String::new(),
                    cost: u32::from(report.cost),
                    rtt: report.rtt,
                };
                speaker.neighbours().into_iter().map(view).collect()
            }
            Daemon::Bird(bird) => bird.neighbours().unwrap_or_default(),
            Daemon::Babeld(babeld) => babeld.neighbours().unwrap_or_default(),
        };
        neighbours.into_iter().find(|neighbour| self.owner(neighbour.address) == Some(other))
    }

    /// What one of our routers advertises as its rxcost towards another router.
    pub(crate) fn our_rxcost(&self, of: usize, other: usize) -> Option<u16> {
        let Some(Daemon::Ours(speaker)) = &self.members[of].daemon else { return None };
        let found = speaker.neighbours().into_iter().find(|report| self.owner(report.address) == Some(other));
        found.map(|report| report.rxcost)
    }

    /// Everything, for messages about a failure.
    fn describe(&self) -> String {
        let mut text = String::new();
        for (index, member) in self.members.iter().enumerate() {
            let _ = writeln!(text, "--- r{index} ({:?})", member.kind);
            for other in 0..self.members.len() {
                if let Some(neighbour) = self.neighbour(index, other) {
                    let _ = writeln!(text, "    r{other}: {neighbour:?}");
                }
            }
            for (prefix, (metric, next)) in self.table(index).iter().take(12) {
                let _ = writeln!(text, "    {prefix} by r{next}, metric {metric}");
            }
            match &member.daemon {
                Some(Daemon::Bird(bird)) => text.push_str(&bird.process().log_tail(8)),
                Some(Daemon::Babeld(babeld)) => text.push_str(&babeld.process().log_tail(8)),
                Some(Daemon::Ours(_)) | None => {}
            }
        }
        text
    }
}

/// What router `index` announces: a prefix of each family.
fn own_prefixes(index: usize) -> [IpNet; 2] {
    [format!("10.200.{index}.1/32").parse().unwrap(), format!("fd00:200:{index}::1/128").parse().unwrap()]
}

/// By our default cost map.
fn link_cost(rtt: u64) -> u32 {
    8 + 4 * u32::try_from(rtt.saturating_sub(1)).unwrap()
}

fn mac_key(mac: &BabelMac) -> babel::MacKey {
    let algorithm = match mac {
        BabelMac::HmacSha256(_) => babel::MacAlgorithm::HmacSha256,
        BabelMac::Blake2s(_) => babel::MacAlgorithm::Blake2s128,
    };
    babel::MacKey::new(algorithm, mac.key()).unwrap()
}

/// The address that the kernel gives an interface (RFC 4291 appendix A).
fn link_local(interface: &Interface) -> Ipv6Addr {
    let [a, b, c, d, e, f] = interface.mac;
    Ipv6Addr::from([0xfe, 0x80, 0, 0, 0, 0, 0, 0, a ^ 2, b, c, 0xff, 0xfe, d, e, f])
}
