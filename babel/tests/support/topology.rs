//! Routers joined by point-to-point links with delay, jitter and loss, in virtual time. The same seed gives the
//! same run.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
    net::Ipv6Addr,
    time::{Duration, Instant},
};

use babel::{
    Config, Event, InterfaceConfig, InterfaceId, MULTICAST_GROUP, PacketError, Prefix, RouteReport, Router,
    RouterId, Seqno, Violation,
};
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
use rand_core::Rng;

/// A link; index 0 of each pair is the direction from `ends[0]` to `ends[1]`.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    pub ends: [usize; 2],
    pub delay: [Duration; 2],
    /// Up to this is added to or taken from the delay of each packet.
    pub jitter: Duration,
    /// Probability of loss.
    pub loss: [f64; 2],
    pub up: [bool; 2],
    /// The largest IPv6 packet that arrives.
    pub mtu: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    Wake(usize),
    Delivery { link: usize, to: usize, multicast: bool, arrives: Instant, payload: Vec<u8> },
}

/// The network.
pub struct Network {
    pub start: Instant,
    pub now: Instant,
    pub routers: Vec<Option<Router>>,
    pub links: Vec<Link>,
    /// Everything that the routers reported, with the time since the start.
    pub log: Vec<(Duration, usize, Event)>,
    pub interface_config: InterfaceConfig,
    /// Applied to each new router.
    pub adjust: fn(&mut Config),
    /// Router and prefix to the router that packets go to next.
    pub next: BTreeMap<(usize, Prefix), usize>,
    pub origins: BTreeMap<Prefix, usize>,
    /// Whether routers may refuse packets, and what they said.
    pub refusals_allowed: bool,
    pub violations: Vec<Violation>,
    pub packets: u64,
    pub octets: u64,
    queue: BinaryHeap<Reverse<(Instant, u64, Happening)>>,
    wakes: Vec<Instant>,
    booted: Vec<Instant>,
    /// Until then a router's control loop does nothing: packets and deadlines wait.
    frozen: Vec<Instant>,
    counter: u64,
    rng: ChaCha20Rng,
    seed: u64,
}

pub fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// The prefix that router `index` originates.
pub fn prefix_of(index: usize) -> Prefix {
    Prefix::to(format!("fd00:{index:x}::/64").parse().unwrap())
}

/// The interface of both ends of a link.
pub fn interface_of(link: usize) -> InterfaceId {
    InterfaceId(u32::try_from(link).unwrap())
}

pub fn router_id(index: usize) -> RouterId {
    RouterId((index as u64 + 1).to_be_bytes())
}

impl Network {
    pub fn new(routers: usize, seed: u64) -> Self {
        Self::with(routers, seed, |_| {})
    }

    pub fn with(routers: usize, seed: u64, adjust: fn(&mut Config)) -> Self {
        #[expect(clippy::disallowed_methods, reason = "virtual time needs some origin")]
        let start = Instant::now();
        let mut network = Self {
            start,
            now: start,
            routers: Vec::new(),
            links: Vec::new(),
            log: Vec::new(),
            interface_config: InterfaceConfig::new(Ipv6Addr::UNSPECIFIED),
            adjust,
            next: BTreeMap::new(),
            origins: BTreeMap::new(),
            refusals_allowed: false,
            violations: Vec::new(),
            packets: 0,
            octets: 0,
            queue: BinaryHeap::new(),
            wakes: Vec::new(),
            booted: Vec::new(),
            frozen: Vec::new(),
            counter: 0,
            rng: ChaCha20Rng::seed_from_u64(seed),
            seed,
        };
        for index in 0..routers {
            network.routers.push(None);
            network.wakes.push(start);
            network.booted.push(start);
            network.frozen.push(start);
            network.boot(index, None);
        }
        network
    }

    /// Starts router `index` anew; it originates its prefix, and its links are up again.
    pub fn boot(&mut self, index: usize, seqno: Option<Seqno>) {
        self.crash(index);
        self.booted[index] = self.now;
        let mut config = Config::new(router_id(index));
        config.seqno = seqno;
        (self.adjust)(&mut config);
        self.counter += 1;
        let rng = ChaCha20Rng::seed_from_u64(self.seed ^ (self.counter << 20));
        let mut router = Router::new(config, rng, self.now).unwrap();
        router.announce(prefix_of(index), self.now);
        self.origins.insert(prefix_of(index), index);
        for (id, link) in self.links.iter().enumerate() {
            if link.ends.contains(&index) {
                router.add_interface(interface_of(id), self.config_for(id, index), self.now);
            }
        }
        self.routers[index] = Some(router);
        self.touch(index);
    }

    /// The router is gone, without a word.
    pub fn crash(&mut self, index: usize) {
        self.routers[index] = None;
        self.next.retain(|(router, _), _| *router != index);
    }

    /// The router's control loop sleeps for a while, as when its clock steps or its machine is overloaded.
    pub fn freeze(&mut self, index: usize, time: Duration) {
        self.frozen[index] = self.now + time;
    }

    /// Connects two routers; `rtt` is shared equally by both directions.
    pub fn link(&mut self, a: usize, b: usize, rtt: Duration) -> usize {
        let id = self.links.len();
        self.links.push(Link {
            ends: [a, b],
            delay: [rtt / 2; 2],
            jitter: Duration::ZERO,
            loss: [0.0; 2],
            up: [true; 2],
            mtu: 1280,
        });
        for end in [a, b] {
            let config = self.config_for(id, end);
            let now = self.now;
            if let Some(router) = &mut self.routers[end] {
                router.add_interface(interface_of(id), config, now);
            }
            self.touch(end);
        }
        id
    }

    pub fn set_rtt(&mut self, link: usize, rtt: Duration) {
        self.links[link].delay = [rtt / 2; 2];
    }

    pub fn set_up(&mut self, link: usize, up: bool) {
        self.links[link].up = [up; 2];
    }

    fn config_for(&self, link: usize, end: usize) -> InterfaceConfig {
        InterfaceConfig { local: address(link, end), ..self.interface_config.clone() }
    }

    pub fn router(&mut self, index: usize) -> &mut Router {
        self.routers[index].as_mut().unwrap()
    }

    /// Changes a router and delivers what follows.
    pub fn with_router<R>(&mut self, index: usize, change: impl FnOnce(&mut Router, Instant) -> R) -> R {
        let now = self.now;
        let result = change(self.router(index), now);
        self.touch(index);
        result
    }

    /// Runs for a while of virtual time.
    pub fn run(&mut self, time: Duration) {
        self.run_checking(time, |_, _, _| {});
    }

    /// Runs until `done`, at most for `limit`. Returns how long it took.
    pub fn run_until(&mut self, limit: Duration, mut done: impl FnMut(&Self) -> bool) -> Option<Duration> {
        let start = self.now;
        let end = start + limit;
        while !done(self) {
            if !self.step(end, &mut |_, _, _| {}) {
                return None;
            }
        }
        Some(self.now - start)
    }

    /// Runs for a while; `check` sees every change of a selected route.
    pub fn run_checking(&mut self, time: Duration, mut check: impl FnMut(&Self, usize, Prefix)) {
        let end = self.now + time;
        while self.step(end, &mut check) {}
    }

    fn step(&mut self, end: Instant, check: &mut impl FnMut(&Self, usize, Prefix)) -> bool {
        let due = self.queue.peek().is_some_and(|Reverse((at, _, _))| *at <= end);
        let Some(Reverse((at, _, happening))) = due.then(|| self.queue.pop()).flatten() else {
            self.now = end;
            return false;
        };
        self.now = self.now.max(at);
        let before = self.log.len();
        let (Happening::Wake(whose) | Happening::Delivery { to: whose, .. }) = &happening;
        let awake = self.frozen[*whose];
        if awake > self.now {
            if let Happening::Wake(index) = happening
                && self.wakes[index] == at
            {
                self.wakes[index] = awake;
            }
            self.schedule(awake, happening);
            return true;
        }
        match happening {
            Happening::Wake(index) if self.wakes[index] == at => {
                let now = self.now;
                if let Some(router) = &mut self.routers[index] {
                    router.handle_timeout(now);
                    self.touch(index);
                }
            }
            Happening::Wake(_) => {}
            Happening::Delivery { link, to, multicast, arrives, payload } => {
                self.deliver(link, to, (multicast, arrives), &payload)
            }
        }
        for index in before..self.log.len() {
            let (_, router, event) = &self.log[index];
            if let Event::RouteSelected { prefix, .. } = event {
                check(self, *router, *prefix);
            }
        }
        true
    }

    fn deliver(&mut self, link: usize, to: usize, (multicast, arrived): (bool, Instant), payload: &[u8]) {
        let ends = self.links[link].ends;
        let from = if ends[0] == to { ends[1] } else { ends[0] };
        let (now, source) = (self.now, address(link, from));
        if let Some(router) = &mut self.routers[to] {
            let result = router.handle_packet(interface_of(link), source, multicast, payload, arrived, now);
            match result {
                Ok(()) => {}
                Err(PacketError::Violation(violation)) if self.refusals_allowed => {
                    self.violations.push(violation)
                }
                Err(error) => panic!("our own packet is refused: {error}"),
            }
            self.touch(to);
        }
    }

    /// Takes everything out of a router and notes when it wants to wake.
    fn touch(&mut self, index: usize) {
        let Some(mut router) = self.routers[index].take() else { return };
        let mut buffer = Vec::new();
        while let Some(transmit) = router.poll_transmit(&mut buffer, self.now) {
            let multicast = transmit.destination == MULTICAST_GROUP;
            self.send(transmit.interface.0 as usize, index, multicast, buffer.clone());
        }
        while let Some(event) = router.poll_event() {
            self.note(index, event);
        }
        if let Some((at, _)) = router.poll_timeout() {
            let at = at.max(self.now);
            self.wakes[index] = at;
            self.schedule(at, Happening::Wake(index));
        }
        self.routers[index] = Some(router);
    }

    fn send(&mut self, link: usize, from: usize, multicast: bool, payload: Vec<u8>) {
        self.packets += 1;
        self.octets += payload.len() as u64;
        let Link { ends, delay, jitter, loss, up, mtu } = self.links[link];
        let fits = payload.len() + 48 <= mtu;
        assert!(payload.len() + 48 <= 1280 || !multicast, "a packet exceeds the MTU");
        let direction = usize::from(ends[1] == from);
        if !fits || !up[direction] || f64::from(self.rng.next_u32()) < loss[direction] * f64::from(u32::MAX) {
            return;
        }
        let spread = jitter.mul_f64(2.0 * f64::from(self.rng.next_u32()) / f64::from(u32::MAX));
        let at = self.now + (delay[direction] + spread).saturating_sub(jitter);
        let to = ends[1 - direction];
        self.schedule(at, Happening::Delivery { link, to, multicast, arrives: at, payload });
    }

    fn note(&mut self, index: usize, event: Event) {
        match &event {
            Event::RouteSelected { prefix, interface, .. } => {
                let ends = self.links[interface.0 as usize].ends;
                let next = if ends[0] == index { ends[1] } else { ends[0] };
                self.next.insert((index, *prefix), next);
            }
            Event::RouteLost { prefix } => {
                self.next.remove(&(index, *prefix));
            }
            _ => {}
        }
        self.log.push((self.now - self.start, index, event));
    }

    fn schedule(&mut self, at: Instant, happening: Happening) {
        self.counter += 1;
        self.queue.push(Reverse((at, self.counter, happening)));
    }

    /// The routers that a packet from `from` for the prefix of `to` visits, `from` first. `None` if it does not
    /// arrive.
    pub fn path(&self, from: usize, to: usize) -> Option<Vec<usize>> {
        let mut path = vec![from];
        while path.last() != Some(&to) {
            let next = *self.next.get(&(*path.last()?, prefix_of(to)))?;
            if path.contains(&next) {
                return None;
            }
            path.push(next);
        }
        Some(path)
    }

    /// Panics if packets from `from` for `prefix` go in a circle.
    pub fn assert_no_loop(&self, from: usize, prefix: Prefix) {
        let mut path = vec![from];
        while let Some(next) = path.last().and_then(|at| self.next.get(&(*at, prefix))) {
            if let Some(first) = path.iter().position(|router| router == next) {
                let since_boot = |router: &usize| (*router, self.now - self.booted[*router]);
                let circle: Vec<_> = path[first..].iter().map(since_boot).collect();
                panic!("seed {}: after {:?} a loop for {prefix}: {circle:?}", self.seed, self.elapsed());
            }
            path.push(*next);
        }
    }

    pub fn selected(&mut self, router: usize, prefix: Prefix) -> Option<RouteReport> {
        let now = self.now;
        self.router(router).selected(now).into_iter().find(|report| report.prefix == prefix)
    }

    /// How often router `index` changed its route for the prefix since `since` (time since the start).
    pub fn changes(&self, index: usize, prefix: Prefix, since: Duration) -> usize {
        let is_change =
            |event: &Event| matches!(event, Event::RouteSelected { prefix: p, .. } if *p == prefix);
        let lost = |event: &Event| matches!(event, Event::RouteLost { prefix: p } if *p == prefix);
        let recent = self.log.iter().filter(|(at, router, _)| *at >= since && *router == index);
        recent.filter(|(_, _, event)| is_change(event) || lost(event)).count()
    }

    pub fn elapsed(&self) -> Duration {
        self.now - self.start
    }
}

fn address(link: usize, end: usize) -> Ipv6Addr {
    let part = |index: usize| u16::try_from(index + 1).unwrap();
    Ipv6Addr::new(0xFE80, 0, 0, 0, 0, 0, part(link), part(end))
}
