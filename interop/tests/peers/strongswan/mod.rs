//! strongSwan.

mod babel;
mod lifecycle;
mod matrix;
mod pair;
mod rekey;

use crate::case::Case;

const PEER: &str = "strongswan";

pub(crate) fn cases() -> Vec<Case> {
    [matrix::cases(), rekey::cases(), lifecycle::cases()].into_iter().flatten().collect()
}
