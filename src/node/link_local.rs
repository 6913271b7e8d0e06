//! Link-local addresses of links.
//!
//! Each end of a link derives its own address from the identities of both endpoints, so that it is stable
//! across restarts and differs from link to link. It exists inside the tunnel only, never on the TUN.

use ikev2::Identity;
use sha2::{Digest, Sha256};
use std::net::Ipv6Addr;

/// The link-local address of `local` on its link with `remote`: fe80::/64 and 64 bits of a hash.
pub(crate) fn link_local(local: &Identity, remote: &Identity) -> Ipv6Addr {
    let mut hash = Sha256::new();
    for identity in [local, remote] {
        // The textual form names type and content, and no identity is the beginning of another.
        let text = identity.to_string();
        hash.update(text.len().to_be_bytes());
        hash.update(text.as_bytes());
    }
    let digest = hash.finalize();
    let mut interface_identifier = [0; 8];
    interface_identifier.copy_from_slice(&digest[..8]);
    Ipv6Addr::from_bits((0xfe80_u128 << 112) | u128::from(u64::from_be_bytes(interface_identifier)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_differ_and_links_differ() {
        let name = |cn: &str| Identity::ranet("acme", cn, "0").expect("a good name");
        let ab = link_local(&name("a"), &name("b"));
        let ba = link_local(&name("b"), &name("a"));
        let ac = link_local(&name("a"), &name("c"));
        assert!(ab.is_unicast_link_local());
        assert_ne!(ab, ba);
        assert_ne!(ab, ac);
        assert_eq!(ab, link_local(&name("a"), &name("b")));
    }
}
