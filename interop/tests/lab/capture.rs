//! What is on the wire, by our own eyes and by tshark's.

use crate::frames::{Content, Kind, classify, read};
use crate::scene::{Internet, Scene};
use crate::tshark::Judge;
use crate::waypoints::wait_policy;
use lab::Pinger;
use std::path::{Path, PathBuf};
use viamesh::control::report::PolicyState;
use viamesh::demo::mesh::PORT;

/// Three nodes with a policy, their whole life on the wire: handshakes, traffic of all kinds, rekeys, goodbyes.
struct Recording {
    scene: Scene,
    capture: PathBuf,
    keylogs: Vec<PathBuf>,
}

fn record() -> Recording {
    let internet = Internet::new(&["alpha", "bravo", "charlie"], 10);
    let directory = internet.world.directory().to_owned();
    let path = directory.join("wire.pcap");
    let capture = internet.segment.capture(&path).unwrap();
    let keylog = |name: &str| directory.join(format!("{name}.keys"));
    let timers = "timers: { hello: 1s, child_rekey: 3s, ike_rekey: 5s }";
    let policy = "policies:\n- name: scenic\n  from: [10.1.0.0/24]\n  to: [10.3.0.0/24]\n  \
                  via: [bravo, charlie, bravo]\n  exit: charlie\n  if_unreachable: drop\n";
    let mut scene = internet.start(|site| {
        let name = site.host.name();
        let spec = site.node().with(timers);
        let spec = spec.argument("--ike-keylog").argument(keylog(name).to_str().unwrap());
        if name == "alpha" { spec.with(policy) } else { spec }
    });
    wait_policy(&scene, PolicyState::Up);
    let first = spis(&scene);
    for target in [scene.address("bravo"), scene.site("charlie").inside(), scene.site("charlie").inside_v6()]
    {
        let source = target.is_ipv4().then(|| scene.site("alpha").inside());
        let report = Pinger { source, payload: 900, ..Pinger::new(target) }.run(scene.host("alpha")).unwrap();
        assert_eq!(report.received, report.sent, "{target}");
    }
    scene.wait("both kinds of rekey", || {
        let now = spis(&scene);
        now.0.is_disjoint(&first.0) && now.1.is_disjoint(&first.1)
    });
    scene.ping("alpha", scene.address("charlie"));
    for name in ["alpha", "bravo", "charlie"] {
        scene.mesh.stop(name).unwrap();
    }
    capture.finish().unwrap();
    let keylogs = ["alpha", "bravo", "charlie"].map(keylog).to_vec();
    Recording { scene, capture: path, keylogs }
}

type Spis = std::collections::BTreeSet<String>;

/// The SPIs of alpha's IKE and CHILD SAs.
fn spis(scene: &Scene) -> (Spis, Spis) {
    let report = scene.associations("alpha");
    let ike = report.associations.iter().map(|ike| ike.initiator_spi.clone()).collect();
    let children = report.associations.iter().flat_map(|ike| &ike.children);
    (ike, children.map(|child| child.inbound_spi.clone()).collect())
}

#[test]
fn the_wire_has_nothing_but_ike_esp_and_keepalives_and_tshark_understands_all_of_it() {
    let recording = record();
    nothing_else_is_on_the_wire(&recording.capture, &[]);
    let directory = recording.scene.internet.world.directory();
    let host = recording.scene.host("alpha");
    let judge = Judge::new(host, directory, &recording.keylogs, &recording.capture, PORT);
    tshark_decodes_the_handshake(&judge);
    tshark_decodes_rekeys_and_goodbyes(&judge);
    tshark_decodes_the_traffic(&judge);
}

/// The whole capture is IKE, ESP, keepalives, what finds neighbours and what is `allowed`; the first two are there.
pub(crate) fn nothing_else_is_on_the_wire(capture: &Path, allowed: &[Kind]) {
    let mut seen = Vec::new();
    for frame in read(capture) {
        match classify(&frame) {
            Kind::Neighbours | Kind::NobodyThere(PORT) => {}
            Kind::Datagram(datagram)
                if datagram.source.port() == PORT && datagram.destination.port() == PORT =>
            {
                let content = datagram.content().unwrap_or_else(|| panic!("{datagram:02x?}"));
                seen.push(content);
            }
            other if allowed.contains(&other) => {}
            other => panic!("{other:?} on the wire: {frame:02x?}"),
        }
    }
    for content in [Content::Ike, Content::Esp] {
        assert!(seen.contains(&content), "no {content:?} at all");
    }
}

/// tshark finds nothing malformed and reads every handshake.
pub(crate) fn tshark_decodes_the_handshake(judge: &Judge<'_>) {
    // Not Babel: tshark 4.0 reads past the end of a packet whose last TLV is an IHU with timestamps.
    let malformed = "(_ws.malformed || _ws.expert.severity == error) && !babel";
    let malformed = judge.fields(malformed, &["frame.number", "frame.protocols", "_ws.expert"]);
    assert!(malformed.is_empty(), "{malformed:?}");
    every_message_has(judge, "34", &["34"]);
    // IKE_AUTH (35): identities and signatures are visible in every message, so it was decrypted.
    every_message_has(judge, "35", &["39"]);
}

fn tshark_decodes_rekeys_and_goodbyes(judge: &Judge<'_>) {
    // CREATE_CHILD_SA (36): nonces or, where the peer had begun the same, a notification.
    every_message_has(judge, "36", &["40", "41"]);
    // INFORMATIONAL (37): deletes at least at the end.
    let messages = payloads(judge, "37");
    assert!(messages.iter().any(|payloads| payloads.iter().any(|kind| kind == "42")), "{messages:?}");
}

/// There are messages of an exchange, and each of them has one of these payloads.
fn every_message_has(judge: &Judge<'_>, exchange: &str, one_of: &[&str]) {
    let messages = payloads(judge, exchange);
    assert!(!messages.is_empty(), "no exchange {exchange}");
    for message in messages {
        assert!(message.iter().any(|kind| one_of.contains(&kind.as_str())), "{exchange}: {message:?}");
    }
}

/// The kinds of payload in each message of an exchange.
fn payloads(judge: &Judge<'_>, exchange: &str) -> Vec<Vec<String>> {
    let messages = judge.fields(&format!("isakmp.exchangetype == {exchange}"), &["isakmp.typepayload"]);
    messages.iter().map(|row| row[0].split(',').map(str::to_owned).collect()).collect()
}

/// tshark decrypts every ESP packet, and the kinds of traffic that we sent are among them.
pub(crate) fn tshark_decodes_the_traffic(judge: &Judge<'_>) {
    let fields =
        ["frame.protocols", "frame.number", "ip.src", "ip.dst", "esp.spi", "esp.sequence", "frame.len"];
    let mut packets = judge.fields("esp", &fields);
    // What the kernel of a killed node answers quotes the beginning of an ESP packet.
    packets.retain(|row| row[0].starts_with("eth:ethertype:ip:udp:"));
    assert!(!packets.is_empty());
    let inside = |row: &[String]| row[0].split_once(":esp:").map(|(_, inside)| inside.to_owned());
    // What cannot be decrypted shows as bytes.
    let is_clear = |inside: &str| inside.starts_with("ip:") || inside.starts_with("ipv6:");
    let sealed: Vec<_> =
        packets.iter().filter(|row| !inside(row).is_some_and(|inside| is_clear(&inside))).collect();
    assert!(sealed.is_empty(), "the keys are {}\nnot decrypted: {sealed:#?}", judge.esp_keys());
    let mut kinds: Vec<String> = packets.iter().filter_map(|row| inside(row)).collect();
    kinds.sort();
    kinds.dedup();
    for wanted in ["babel", "ip:icmp", "ipv6:icmpv6", "ipv6.routing"] {
        assert!(kinds.iter().any(|kind| kind.contains(wanted)), "no {wanted} in {kinds:?}");
    }
}
