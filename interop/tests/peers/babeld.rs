//! babeld, the reference implementation: cases beside those that it shares with BIRD (see `bird`).

use crate::babel_mesh::{BabelMesh, Kind};
use crate::bird::many_prefixes;
use crate::case::Case;
use lab::peers::Release;

pub(crate) fn cases() -> Vec<Case> {
    let case = |name: &str, run: fn()| Case::new("babeld", name, run);
    let mut cases = vec![case("pair", || pair(Release::Debian13))];
    if super::is_full() {
        cases.push(case("prefixes", || many_prefixes(Kind::Ours)));
        cases.push(case("debian-12/pair", || pair(Release::Debian12)));
        cases.push(case("chain", chain));
    }
    cases
}

/// Ours and babeld alone: routes, round-trip times, restarts.
fn pair(release: Release) {
    let kinds = [Kind::Ours, Kind::Babeld];
    let mut mesh = BabelMesh::start(release, &kinds, &[(0, 1, 60)], None, (0, Vec::new()));
    mesh.wait_agreement("at the start");
    mesh.wait_round_trips();
    let restarting = if super::is_full() { 0..2 } else { 1..2 };
    for router in restarting {
        mesh.kill(router);
        mesh.wait_agreement(&format!("without router {router}"));
        mesh.start_member(router);
        mesh.wait_agreement(&format!("when router {router} has restarted"));
    }
}

/// A chain in which each implementation passes on what the others announce.
fn chain() {
    use Kind::{Babeld, Bird, Ours};
    let links = [(0, 1, 15), (1, 2, 25), (2, 3, 35), (3, 4, 10)];
    let kinds = [Babeld, Ours, Bird, Ours, Babeld];
    let mut mesh = BabelMesh::start(Release::Debian13, &kinds, &links, None, (0, Vec::new()));
    mesh.wait_agreement("at the start");
    mesh.kill(2);
    mesh.wait_agreement("cut by BIRD's end");
    mesh.start_member(2);
    mesh.wait_agreement("whole again");
}
