//! The steps of the demo, each measured.

use super::cities::{BAD_TRANSIT_MS, CITIES, City, FRANKFURT, GOOD_TRANSIT_MS, NEWYORK, SINGAPORE, TOKYO};
use super::mesh::{Mesh, NodeSpec};
use super::stage::ms;
use super::{Demo, World};
use lab::{Host, Interface, Pinger, ProbeFilter, Step, TcpPump, wait_until};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::{Duration, Instant};

/// How long anything may take before the demo gives up.
const PATIENCE: Duration = Duration::from_secs(45);

/// Octets of ICMP data in the probe of the journey: nothing else in the world has that size.
const PROBE_PAYLOAD: usize = 777;

/// Headers of an ICMP probe over IPv4, in octets.
const PROBE_HEADERS: usize = 28;

/// The stops of the journey: a policy names them in Tokyo's node file.
const JOURNEY: [City; 5] = [TOKYO, SINGAPORE, FRANKFURT, SINGAPORE, NEWYORK];

/// The node of a city. Tokyo has a policy: what it sends to New York's network takes the scenic route.
pub(super) fn node_spec(city: City, host: &Host, interface: &Interface, capture: Option<&Path>) -> NodeSpec {
    let spec = NodeSpec::new(host, interface)
        .announcing(&city.network())
        .with("timers: { hello: 1s, redial: 500ms }");
    let spec = match capture {
        Some(file) => {
            spec.argument("--ike-keylog").argument(format!("{}.{}.keys", file.display(), city.name))
        }
        None => spec,
    };
    if city != TOKYO {
        return spec;
    }
    spec.with(&format!(
        "policies:\n- name: scenic\n  from: [{}]\n  to: [{}]\n  via: [{}, {}, {}]\n  exit: {}\n  if_unreachable: drop\n",
        TOKYO.network(),
        NEWYORK.network(),
        SINGAPORE.name,
        FRANKFURT.name,
        SINGAPORE.name,
        NEWYORK.name
    ))
}

impl Demo {
    /// All tunnels come up.
    pub(super) fn tunnels(&mut self) -> Result<(), String> {
        self.stage.heading("Five daemons start and build ten tunnels: IKEv2 with Ed25519 keys, ESP over UDP");
        self.stage.remark("tokyo   singapore   frankfurt   newyork   saopaulo");
        let started = Instant::now();
        self.mesh.start()?;
        let up = || CITIES.iter().all(|city| all_links_up(&self.mesh, city.name));
        wait_until(PATIENCE, "all tunnels are up", up)
            .map_err(|e| format!("{e}\n{}", self.mesh.describe()))?;
        let took = started.elapsed();
        self.stage.result("all tunnels are up after", &ms(took));
        self.mesh.wait_connected(PATIENCE)?;
        self.report.steps.push(Step::Tunnels { ms: took.as_secs_f64() * 1000.0 });
        Ok(())
    }

    /// The direct link is slow, so traffic goes by a relay.
    pub(super) fn relay(&mut self) -> Result<(), String> {
        self.stage.heading("Tokyo to Frankfurt: bad transit makes the direct way slow, Babel finds a relay");
        let underlay = self.cities.underlay(FRANKFURT).ok_or("frankfurt has no underlay address")?;
        let direct = self.median_rtt(TOKYO, underlay)?;
        self.stage.result("direct round trip, below the mesh", &ms(direct));
        self.mesh.wait_path(TOKYO.name, FRANKFURT.name, Some(SINGAPORE.name), PATIENCE)?;
        self.mesh.wait_path(FRANKFURT.name, TOKYO.name, Some(SINGAPORE.name), PATIENCE)?;
        let relayed = self.median_rtt(TOKYO, self.mesh_address(FRANKFURT)?)?;
        self.stage.result("through the mesh, by singapore", &ms(relayed));
        self.report.steps.push(Step::Relay {
            direct_rtt_ms: direct.as_secs_f64() * 1000.0,
            relayed_rtt_ms: relayed.as_secs_f64() * 1000.0,
        });
        Ok(())
    }

    /// The direct link becomes fast again.
    pub(super) fn back_to_direct(&mut self) -> Result<(), String> {
        self.stage.heading("The provider repairs its routes: the direct way is the fastest again");
        let changed = Instant::now();
        self.set_transit(GOOD_TRANSIT_MS)?;
        self.mesh.wait_path(TOKYO.name, FRANKFURT.name, None, PATIENCE)?;
        let took = changed.elapsed();
        self.mesh.wait_path(FRANKFURT.name, TOKYO.name, None, PATIENCE)?;
        let rtt = self.median_rtt(TOKYO, self.mesh_address(FRANKFURT)?)?;
        self.stage.result("traffic is back on the direct path after", &ms(took));
        self.stage.result("round trip now", &ms(rtt));
        self.report.steps.push(Step::Return { ms: took.as_secs_f64() * 1000.0 });
        Ok(())
    }

    /// One probe takes the journey that the policy names.
    pub(super) fn journey(&mut self) -> Result<(), String> {
        self.stage
            .heading("A policy in Tokyo: to New York's network by Singapore, Frankfurt and Singapore again");
        for (a, b) in JOURNEY.iter().zip(JOURNEY.iter().skip(1)) {
            self.mesh.wait_path(a.name, b.name, None, PATIENCE)?;
        }
        let expected: Vec<String> = JOURNEY.iter().map(|city| city.name.to_owned()).collect();
        let header = srv6::overhead::of_path(JOURNEY.len() - 1, srv6::Form::Reduced);
        let datagram = esp::sealed_len(header + PROBE_HEADERS + PROBE_PAYLOAD);
        let log = self.world.probe_log();
        log.start(ProbeFilter::UdpPayload(datagram..=datagram));
        let probe = Pinger {
            source: Some(TOKYO.host()),
            count: Some(1),
            payload: PROBE_PAYLOAD,
            patience: Duration::from_secs(5),
            ..Pinger::new(NEWYORK.host())
        };
        let report = probe.run(self.cities.host(TOKYO)).map_err(|error| error.to_string())?;
        log.stop();
        let visited = log.journey();
        self.stage.remark("one probe of unique size, as the link emulator saw it:");
        self.stage.result(
            &visited.join(" > "),
            if visited == expected { "as the policy says" } else { "NOT as the policy says" },
        );
        if let Some(rtt) = report.median() {
            self.stage.result("round trip of the probe (it comes back directly)", &ms(rtt));
        }
        let matches = visited == expected;
        self.report.steps.push(Step::Journey { expected, visited });
        if matches { Ok(()) } else { Err(format!("the probe took another way\n{}", self.mesh.describe())) }
    }

    /// The relay is killed while traffic runs through it.
    pub(super) fn failover(&mut self) -> Result<(), String> {
        self.stage
            .heading("Transit turns bad again, traffic relays through Singapore, and Singapore is killed");
        self.set_transit(BAD_TRANSIT_MS)?;
        self.mesh.wait_path(TOKYO.name, FRANKFURT.name, Some(SINGAPORE.name), PATIENCE)?;
        self.mesh.wait_path(FRANKFURT.name, TOKYO.name, Some(SINGAPORE.name), PATIENCE)?;
        let pinger = Pinger {
            interval: Duration::from_millis(10),
            count: None,
            patience: Duration::from_secs(1),
            ..Pinger::new(self.mesh_address(FRANKFURT)?)
        };
        let running = pinger.start(self.cities.host(TOKYO)).map_err(|error| error.to_string())?;
        wait_until(PATIENCE, "the probes are answered", || running.received() > 20)
            .map_err(|e| e.to_string())?;
        self.mesh.kill(SINGAPORE.name);
        // What is under way at the kill still arrives within a round trip.
        let left_over = Instant::now() + Duration::from_millis(2 * BAD_TRANSIT_MS);
        wait_until(PATIENCE, "the last answers are in", || Instant::now() > left_over)
            .map_err(|e| e.to_string())?;
        let before = running.received();
        wait_until(PATIENCE, "traffic has recovered", || running.received() > before + 20)
            .map_err(|error| format!("{error}\n{}", self.mesh.describe()))?;
        let report = running.stop().map_err(|error| error.to_string())?;
        let outage = report.longest_gap;
        self.stage.result("longest gap that a probe every 10 ms saw", &ms(outage));
        self.report.steps.push(Step::Failover { outage_ms: outage.as_secs_f64() * 1000.0 });
        Ok(())
    }

    /// One tunnel over a cable.
    pub(super) fn throughput(&mut self) -> Result<(), String> {
        self.stage.heading("Two further nodes on one cable without delay: how much fits through one tunnel?");
        let (left, right) = (host(&self.world, "left")?, host(&self.world, "right")?);
        let cable = self.world.veth(&left, &right).map_err(|error| error.to_string())?;
        let specs = [
            (left.clone(), NodeSpec::new(&left, &cable.a)),
            (right.clone(), NodeSpec::new(&right, &cable.b)),
        ];
        let mut pair = Mesh::prepare(&self.world.directory().join("cable"), self.mesh.binary(), &specs)?;
        pair.start()?;
        pair.wait_connected(PATIENCE)?;
        let target = SocketAddr::new(IpAddr::V6(pair.address("right")?), 5201);
        let pump = TcpPump { duration: Duration::from_secs(3), ..TcpPump::new(target) };
        let report = pump.run(&left, &right).map_err(|error| format!("{error}\n{}", pair.describe()))?;
        self.stage.result("TCP, one stream, AES-256-GCM", &format!("{:.2} Gbit/s", report.gbps()));
        self.report.steps.push(Step::Throughput { gbps: report.gbps() });
        pair.stop("left")?;
        pair.stop("right")
    }

    /// Everything as it was before the relay was killed, for people who want to look around.
    pub(super) fn revive(&mut self) -> Result<(), String> {
        self.mesh.start_node(SINGAPORE.name)?;
        self.mesh.wait_connected(PATIENCE)
    }

    fn set_transit(&self, milliseconds: u64) -> Result<(), String> {
        self.cities.set_round_trip(TOKYO, FRANKFURT, milliseconds).map_err(|error| error.to_string())
    }

    fn mesh_address(&self, city: City) -> Result<IpAddr, String> {
        self.mesh.address(city.name).map(IpAddr::V6)
    }

    fn median_rtt(&self, from: City, to: IpAddr) -> Result<Duration, String> {
        let pinger = Pinger { interval: Duration::from_millis(50), ..Pinger::new(to) };
        let report = pinger.run(self.cities.host(from)).map_err(|error| error.to_string())?;
        report.median().ok_or_else(|| format!("{to} does not answer\n{}", self.mesh.describe()))
    }
}

fn host(world: &World, name: &str) -> Result<Host, String> {
    world.host(name).map_err(|error| error.to_string())
}

fn all_links_up(mesh: &Mesh, name: &str) -> bool {
    use crate::control::report::NodeState;
    mesh.status(name).is_ok_and(|status| {
        let mut links = status.nodes.iter().flat_map(|node| &node.links);
        links.all(|link| link.state == NodeState::Up)
    })
}
