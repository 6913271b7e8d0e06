//! What a route leads to: a destination prefix and, for source-specific routes, a source prefix (RFC 9079 §3).

use std::fmt;

use ipnet::IpNet;

/// The key of the route and source tables. Always masked: host bits are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix {
    /// Where the packets go.
    pub destination: IpNet,
    /// Where the packets must come from; `None` means from anywhere.
    pub source: Option<IpNet>,
}

impl Prefix {
    /// A route for packets from anywhere; host bits of `destination` are cleared.
    #[must_use]
    pub fn to(destination: IpNet) -> Self {
        Self { destination: destination.trunc(), source: None }
    }

    /// A source-specific route. A source of length zero is the same as none (RFC 9079 §3.1).
    ///
    /// Returns `None` if the two prefixes are of different families.
    #[must_use]
    pub fn from_to(source: IpNet, destination: IpNet) -> Option<Self> {
        if source.addr().is_ipv4() != destination.addr().is_ipv4() {
            return None;
        }
        let source = (source.prefix_len() > 0).then(|| source.trunc());
        Some(Self { destination: destination.trunc(), source })
    }

    /// Whether the destination is IPv4.
    #[must_use]
    pub fn is_ipv4(&self) -> bool {
        self.destination.addr().is_ipv4()
    }
}

impl From<IpNet> for Prefix {
    fn from(destination: IpNet) -> Self {
        Self::to(destination)
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.source {
            None => self.destination.fmt(formatter),
            Some(source) => write!(formatter, "{} from {source}", self.destination),
        }
    }
}
