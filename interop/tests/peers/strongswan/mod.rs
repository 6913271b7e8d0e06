//! strongSwan.

mod babel;
mod pair;

use crate::case::Case;
use lab::peers::Release;
use pair::{Dialler, Setup};

const PEER: &str = "strongswan";

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for release in [Release::Debian12, Release::Debian13, Release::DebianNext] {
        for dialler in [Dialler::Us, Dialler::Peer] {
            let setup = Setup { release, dialler, ..Setup::default() };
            let who = if dialler == Dialler::Us { "we_dial" } else { "it_dials" };
            let name = format!("plain/{}/{who}", release.recipe().name);
            cases.push(Case::new(PEER, name, move || plain(setup)));
        }
    }
    cases
}

/// Raw Ed25519 keys, X25519, AES-GCM.
fn plain(setup: Setup) {
    let dialler = setup.dialler;
    let pair = setup.connect();
    let associations = pair.associations();
    let [association] = associations.as_slice() else { panic!("one IKE SA, not {associations:#?}") };
    assert_eq!(association.initiator, dialler == Dialler::Us);
    assert_eq!(association.children.len(), 1);
    assert!(pair.misfits().is_empty(), "{:?}", pair.misfits());
    pair.check();
}
