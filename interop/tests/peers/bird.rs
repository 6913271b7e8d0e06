//! BIRD as a Babel neighbour and as a judge: the same routes, route by route.

use crate::babel_mesh::{BabelMesh, Kind};
use crate::case::Case;
use ipnet::IpNet;
use lab::peers::{BabelMac, Release};

/// A key for all packets.
pub(crate) const KEY: [u8; 32] = *b"a key that every router has read";

pub(crate) fn cases() -> Vec<Case> {
    let case = |name: &str, run: fn()| Case::new("bird", name, run);
    let mut cases = vec![
        case("triangle", || triangle(Release::Debian13, None)),
        case("ring", ring),
        case("mac/hmac-sha256", || authenticated(Release::Debian13, BabelMac::HmacSha256(KEY))),
        case("prefixes", || many_prefixes(Kind::Bird)),
        case("loss", a_lossy_link_costs_it_as_we_say),
    ];
    if super::is_full() {
        cases.push(case("mac/blake2s", || authenticated(Release::Debian13, BabelMac::Blake2s(KEY))));
        cases.push(case("debian-12/triangle", || triangle(Release::Debian12, None)));
        cases.push(case("debian-12/mac", || authenticated(Release::Debian12, BabelMac::HmacSha256(KEY))));
        cases.push(case("mac/triangle", || triangle(Release::Debian13, Some(BabelMac::Blake2s(KEY)))));
    }
    cases
}

/// All that can happen to three routers of three implementations.
fn triangle(release: Release, mac: Option<BabelMac>) {
    use Kind::{Babeld, Bird, Ours};
    let extra: IpNet = "10.99.0.0/16".parse().unwrap();
    let extra_v6: IpNet = "fd99::/32".parse().unwrap();
    let links = [(0, 1, 40), (1, 2, 30), (0, 2, 160)];
    let mut mesh = BabelMesh::start(release, &[Ours, Bird, Babeld], &links, mac, (1, vec![extra, extra_v6]));
    mesh.wait_agreement("at the start");
    mesh.wait_extra(2);
    mesh.wait_round_trips();

    mesh.set_rtt(2, Some(20));
    mesh.wait_agreement("with a short way from ours to babeld");
    mesh.set_rtt(1, None);
    if super::is_full() {
        mesh.wait_agreement("without the link from BIRD to babeld");
    }
    mesh.set_rtt(0, None);
    mesh.wait_agreement("without any link to BIRD");
    mesh.wait_extra(0);
    mesh.set_rtt(0, Some(40));
    mesh.set_rtt(1, Some(30));
    mesh.wait_agreement("when BIRD is back");
    mesh.wait_extra(2);

    mesh.set_announcing(false);
    mesh.wait_extra(0);
    mesh.set_announcing(true);
    mesh.wait_extra(2);

    if !super::is_full() {
        return; // The cases with MACs restart ours, babeld's own case babeld.
    }
    for router in 0..3 {
        mesh.kill(router);
        mesh.wait_agreement(&format!("without router {router}"));
        mesh.start_member(router);
        mesh.wait_agreement(&format!("when router {router} has restarted"));
    }
}

/// Five routers in a ring: routes of several hops through foreign routers.
fn ring() {
    use Kind::{Babeld, Bird, Ours};
    let links = [(0, 1, 20), (1, 2, 30), (2, 3, 25), (3, 4, 35), (4, 0, 55)];
    let kinds = [Ours, Bird, Babeld, Ours, Bird];
    let mut mesh = BabelMesh::start(Release::Debian13, &kinds, &links, None, (0, Vec::new()));
    mesh.wait_agreement("at the start");
    mesh.set_rtt(0, None);
    mesh.wait_agreement("with the ring broken between ours and BIRD");
    if !super::is_full() {
        return;
    }
    mesh.set_rtt(2, None);
    mesh.wait_agreement("in two parts");
    mesh.set_rtt(0, Some(20));
    mesh.set_rtt(2, Some(90));
    mesh.wait_agreement("when it is whole again, and longer on one side");
}

/// The same tables with MACs.
pub(crate) fn authenticated(release: Release, mac: BabelMac) {
    use Kind::{Babeld, Bird, Ours};
    let links = [(0, 1, 40), (1, 2, 30), (0, 2, 160)];
    let mut mesh = BabelMesh::start(release, &[Ours, Bird, Babeld], &links, Some(mac), (0, Vec::new()));
    mesh.wait_agreement("at the start");
    // Whoever restarts is challenged, and challenges.
    mesh.kill(0);
    mesh.wait_agreement("without ours");
    mesh.start_member(0);
    mesh.wait_agreement("when ours has restarted");
}

/// 2,000 prefixes of `origin` reach all others, leave, and come back.
pub(crate) fn many_prefixes(origin: Kind) {
    use Kind::{Babeld, Bird, Ours};
    let prefix = |number: u32| -> IpNet {
        match number % 2 {
            0 => format!("10.{}.{}.0/24", 100 + number / 256, number % 256).parse().unwrap(),
            _ => format!("fd50:{number:x}::/48").parse().unwrap(),
        }
    };
    let kinds = [Ours, Bird, Babeld];
    let index = kinds.iter().position(|kind| *kind == origin).unwrap();
    let prefixes: Vec<IpNet> = (0..2000).map(prefix).collect();
    let links = [(0, 1, 10), (1, 2, 10), (0, 2, 80)];
    let mut mesh = BabelMesh::start(Release::Debian13, &kinds, &links, None, (index, prefixes));
    mesh.wait_extra(2000);
    mesh.set_announcing(false);
    mesh.wait_extra(0);
    if !super::is_full() {
        return;
    }
    mesh.set_announcing(true);
    mesh.wait_extra(2000);
    mesh.wait_agreement("with all of them");
}

/// BIRD grades no loss itself; what we say of a link counts for it.
fn a_lossy_link_costs_it_as_we_say() {
    let links = [(0, 1, 20)];
    let mut mesh =
        BabelMesh::start(Release::Debian13, &[Kind::Ours, Kind::Bird], &links, None, (0, Vec::new()));
    mesh.wait_agreement("at the start");
    let before = mesh.neighbour(1, 0).unwrap().cost;
    mesh.set_loss(0, 0.3);
    lab::wait_until(std::time::Duration::from_secs(120), "BIRD to know of the loss", || {
        let (told, known) = (mesh.our_rxcost(0, 1), mesh.neighbour(1, 0));
        let added = told.map_or(0, |rxcost| u32::from(rxcost).saturating_sub(8));
        known.is_some_and(|known| added >= 200 && known.cost.abs_diff(before + added) <= 200)
    })
    .unwrap();
}
