//! Datagrams from strangers and from a network that misbehaves: the tunnel does not notice.
#![expect(clippy::cast_possible_truncation, reason = "random bytes and lengths are cut from longer numbers")]

use crate::frames::{Content, Datagram, datagrams};
use crate::scene::{Internet, PATIENCE, QUICK, Scene};
use ipnet::IpNet;
use lab::{Host, LinkSettings, Random, UdpReport, UdpStream};
use std::net::{SocketAddr, UdpSocket};
use std::thread::JoinHandle;
use std::time::Duration;
use viamesh::control::report::{AssociationsReport, PathStatus};
use viamesh::demo::mesh::PORT;

/// Datagrams of a stream that is long enough to show a gap.
const LENGTH: u64 = 1500;
/// Datagrams of one attack.
const ATTACK: usize = 12_000;
/// What a busy machine may add to a gap: the promise of the issue for rekeys.
const SLACK: Duration = Duration::from_millis(200);

fn stream(scene: &Scene, meanwhile: impl FnOnce()) -> UdpReport {
    let target = SocketAddr::new(scene.address("alpha"), 7100);
    let stream = UdpStream { target, source: None, packets_per_second: 500.0, payload: 400 };
    let stream = stream.start(scene.host("bravo"), scene.host("alpha")).unwrap();
    scene.wait("the stream", || stream.received() > 0);
    meanwhile();
    scene.wait("the whole stream", || stream.received() >= LENGTH);
    stream.stop(PATIENCE).unwrap()
}

fn is_complete(report: &UdpReport) -> bool {
    (report.lost(), report.duplicates, report.refused) == (0, 0, 0)
}

/// The SPIs of all SAs of a node and where its peer is: what an attack must not change. Half-open IKE SAs of
/// strangers don't count.
fn tunnel(scene: &Scene, name: &str, peer: &str) -> (Vec<String>, Option<PathStatus>) {
    let associations = scene.associations(name).associations.into_iter();
    let spis = associations.filter(|ike| ike.state == "established").flat_map(|ike| {
        let children = ike.children.into_iter().flat_map(|child| [child.inbound_spi, child.outbound_spi]);
        [ike.initiator_spi, ike.responder_spi].into_iter().chain(children).collect::<Vec<_>>()
    });
    (spis.collect(), scene.mesh.path(name, peer))
}

fn dropped(report: &AssociationsReport) -> (u64, u64) {
    let children = || report.associations.iter().flat_map(|ike| &ike.children);
    let replays = children().map(|child| child.replayed_packets).sum();
    (replays, children().map(|child| child.integrity_failures).sum())
}

/// Two nodes whose whole conversation was recorded, and a stranger on the same network.
struct Siege {
    scene: Scene,
    recorded: Vec<Datagram>,
    mallory: Host,
    /// Where alpha listens.
    target: SocketAddr,
}

fn siege() -> Siege {
    let internet = Internet::new(&["alpha", "bravo"], 4);
    let mallory = internet.world.host("mallory").unwrap();
    internet.segment.attach(&mallory).unwrap();
    let bravo = internet.site("bravo").underlay.v4.unwrap();
    // Mallory sends as bravo too, without ever answering for its address.
    for name in ["all", "default", "eth0", "lo"] {
        mallory.sysctl(&format!("net.ipv4.conf.{name}.arp_ignore"), "1").unwrap();
        mallory.sysctl(&format!("net.ipv4.conf.{name}.arp_announce"), "2").unwrap();
    }
    mallory.add_address("lo", IpNet::from(std::net::IpAddr::from(bravo))).unwrap();
    let path = internet.world.directory().join("recorded.pcap");
    let capture = internet.segment.capture(&path).unwrap();
    let scene = internet.start(|site| site.node().with(QUICK));
    scene.ping("bravo", scene.address("alpha"));
    capture.finish().unwrap();
    let target = SocketAddr::new(scene.site("alpha").underlay.v4.unwrap().into(), PORT);
    let recorded = datagrams(&path).into_iter().filter(|datagram| datagram.destination == target).collect();
    Siege { scene, recorded, mallory, target }
}

impl Siege {
    /// What was recorded of one kind.
    fn recorded(&self, content: Content) -> Vec<Vec<u8>> {
        let matching = self.recorded.iter().filter(|datagram| datagram.content() == Some(content));
        let payloads: Vec<_> = matching.map(|datagram| datagram.payload.clone()).collect();
        assert!(!payloads.is_empty(), "no {content:?} was recorded");
        payloads
    }

    /// Sends datagrams to alpha, a few per millisecond: in turn from mallory's own address and from bravo's.
    fn send(&self, payloads: Vec<Vec<u8>>) -> JoinHandle<()> {
        let bravo = SocketAddr::new(self.scene.site("bravo").underlay.v4.unwrap().into(), PORT);
        let target = self.target;
        let work = move || {
            let own = UdpSocket::bind("0.0.0.0:0").unwrap();
            let spoofed = UdpSocket::bind(bravo).unwrap();
            for (number, payload) in payloads.iter().enumerate() {
                let socket = if number % 2 == 0 { &own } else { &spoofed };
                // An ICMP error about an earlier datagram is no reason to stop.
                let _ = socket.send_to(payload, target);
                if number % 8 == 7 {
                    std::thread::sleep(Duration::from_millis(2));
                }
            }
        };
        self.mallory.thread("attack", work).unwrap()
    }

    /// Compares a stream during the attack with one before it.
    fn endure(&self, payloads: Vec<Vec<u8>>) {
        let before = tunnel(&self.scene, "alpha", "bravo");
        let control = stream(&self.scene, || ());
        let attacked = stream(&self.scene, || self.send(payloads).join().unwrap());
        assert!(is_complete(&control) && is_complete(&attacked), "{control:?}\n{attacked:?}");
        let (gap, allowed) = (attacked.longest_gap, control.longest_gap + SLACK);
        assert!(gap <= allowed, "a gap of {gap:?}, {:?} without the attack", control.longest_gap);
        assert_eq!(tunnel(&self.scene, "alpha", "bravo"), before, "the tunnel is another one");
        self.scene.assert_no_panic();
        assert_eq!(self.scene.mesh.status("alpha").unwrap().nodes.len(), 1);
    }
}

/// Variations of recorded datagrams: cut, with changed bits, prolonged, or with other first bytes.
fn damaged(recorded: &[Vec<u8>], count: usize) -> Vec<Vec<u8>> {
    let mut random = Random::new(7);
    let below = |random: &mut Random, limit: usize| (random.fraction() * limit as f64) as usize;
    let damage = |number: usize| {
        let mut payload = recorded[number % recorded.len()].clone();
        let length = payload.len();
        match number / recorded.len() % 4 {
            0 => payload.truncate(below(&mut random, length)),
            1 => payload[below(&mut random, length)] ^= 1 << below(&mut random, 8),
            2 => payload.extend((0..below(&mut random, 600)).map(|byte| byte as u8)),
            _ => payload[..4].copy_from_slice(&(random.next_u64() as u32 | 0x100).to_be_bytes()),
        }
        payload
    };
    (0..count).map(damage).collect()
}

#[test]
fn garbage_is_counted_and_harms_nothing() {
    let siege = siege();
    let mut random = Random::new(3);
    let garbage = |number: usize| {
        let length = (random.fraction() * 1400.0) as usize;
        let mut payload: Vec<u8> = (0..length).map(|_| random.next_u64() as u8).collect();
        // A third of it looks like IKE, a third like ESP with a low SPI.
        let marker = number % 3 * 4;
        payload.iter_mut().take(marker.min(7)).for_each(|byte| *byte = 0);
        payload
    };
    siege.endure((0..ATTACK).map(garbage).collect());
    let drops = siege.scene.mesh.status("alpha").unwrap().drops;
    assert!(drops.get("unknown_spi").is_some_and(|count| *count > 1000), "{drops:?}");
}

#[test]
fn damaged_and_foreign_esp_is_counted_and_harms_nothing() {
    let siege = siege();
    let (_, before) = dropped(&siege.scene.associations("alpha"));
    siege.endure(damaged(&siege.recorded(Content::Esp), ATTACK));
    let (_, after) = dropped(&siege.scene.associations("alpha"));
    assert!(after > before, "no integrity failure was counted");
}

#[test]
fn replayed_esp_is_counted_and_harms_nothing() {
    let siege = siege();
    let (before, _) = dropped(&siege.scene.associations("alpha"));
    let recorded = siege.recorded(Content::Esp);
    siege.endure(recorded.iter().cycle().take(ATTACK).cloned().collect());
    let (after, _) = dropped(&siege.scene.associations("alpha"));
    assert!(after > before, "no replay was counted");
}

#[test]
fn replayed_and_damaged_ike_harms_nothing() {
    let siege = siege();
    let recorded = siege.recorded(Content::Ike);
    let replayed = recorded.iter().cycle().take(ATTACK / 4).cloned();
    siege.endure(damaged(&recorded, ATTACK / 4).into_iter().chain(replayed).collect());
}

#[test]
fn requests_from_thousands_of_initiators_harm_nothing() {
    let siege = siege();
    let recorded = siege.recorded(Content::Ike);
    // Initiator's SPI new, responder's zero: IKE_SA_INIT requests of strangers.
    let request = recorded.iter().find(|message| message[12..20] == [0; 8] && message[22] == 34);
    let mut random = Random::new(11);
    let stranger = |request: &Vec<u8>| {
        let mut request = request.clone();
        request[4..12].copy_from_slice(&random.next_u64().to_be_bytes());
        request
    };
    // Whoever dialled, one side sent such a request; if it was not bravo, alpha's own will do.
    let request = request.cloned().unwrap_or_else(|| recorded[0].clone());
    siege.endure(std::iter::repeat_n(&request, ATTACK).map(stranger).collect());
}

#[test]
fn what_the_network_reorders_and_doubles_arrives_once_each() {
    let internet = Internet::new(&["alpha", "bravo"], 4);
    let scene = internet.start(|site| site.node().with(QUICK));
    let settings = LinkSettings::with_rtt_ms(4);
    let settings =
        LinkSettings { reorder: 0.2, reorder_by: Duration::from_millis(15), duplicate: 0.2, ..settings };
    scene.internet.set("alpha", "bravo", settings);
    let report = stream(&scene, || ());
    assert!(is_complete(&report), "{report:?}");
    assert!(report.reordered > 0, "the network did not reorder: {report:?}");
    let (replays, failures) = dropped(&scene.associations("alpha"));
    assert!(replays > 0 && failures == 0, "{replays} replays, {failures} failures");
}
