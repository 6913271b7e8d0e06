//! strongSwan.

mod babel;
mod collision;
mod credentials;
mod lifecycle;
mod matrix;
mod moves;
mod nat;
mod pair;
mod ranet;
mod rekey;
mod underlay;

use crate::case::Case;
use lab::peers::Release;

const PEER: &str = "strongswan";

/// The releases of Debian whose strongSwan is tried.
const RELEASES: [Release; 3] = [Release::Debian12, Release::Debian13, Release::DebianNext];

pub(crate) fn cases() -> Vec<Case> {
    [
        matrix::cases(),
        ranet::cases(),
        rekey::cases(),
        collision::cases(),
        lifecycle::cases(),
        nat::cases(),
        moves::cases(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
