//! Identities of IKE, from what the files say of nodes.

use std::net::IpAddr;

use ikev2::Identity;

use super::settings::{NodeName, PeerIdentity, Settings};

impl PeerIdentity {
    /// The identity of the endpoint `serial` of the node `name`.
    ///
    /// # Errors
    /// In words, if the name cannot stand in one.
    pub fn of_endpoint(&self, name: &NodeName, serial: &str) -> Result<Identity, String> {
        Ok(match self {
            Self::Ranet => Identity::ranet(&name.organization, &name.common_name, serial)
                .map_err(|error| error.to_string())?,
            Self::Fqdn(name) => Identity::Fqdn(name.clone()),
            Self::Rfc822(name) => Identity::Rfc822(name.clone()),
            Self::Address(IpAddr::V4(address)) => Identity::Ipv4(*address),
            Self::Address(IpAddr::V6(address)) => Identity::Ipv6(*address),
            Self::KeyId(octets) => Identity::KeyId(octets.clone()),
            Self::DistinguishedName(der) => Identity::DistinguishedName(der.clone()),
        })
    }
}

impl Settings {
    /// How the endpoint `serial` of this node names itself: to nodes with an authority or a shared key
    /// (`by_credentials`) as `ike.id` says, to others as the registry says.
    ///
    /// # Errors
    /// In words, if the name cannot stand in an identity.
    pub fn own_identity(&self, serial: &str, by_credentials: bool) -> Result<Identity, String> {
        let listed = self.own_node().map_or(&PeerIdentity::Ranet, |node| &node.identity);
        let identity = self.ike.id.as_ref().filter(|_| by_credentials).unwrap_or(listed);
        identity.of_endpoint(&self.name, serial)
    }
}
