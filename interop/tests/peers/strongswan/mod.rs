//! strongSwan.

mod babel;
mod credentials;
mod lifecycle;
mod matrix;
mod nat;
mod pair;
mod ranet;
mod rekey;
mod underlay;

use crate::case::Case;

const PEER: &str = "strongswan";

pub(crate) fn cases() -> Vec<Case> {
    [matrix::cases(), ranet::cases(), rekey::cases(), lifecycle::cases(), nat::cases()]
        .into_iter()
        .flatten()
        .collect()
}
