//! The world of the demo: five cities and the round trips between them.

use lab::{Host, Interface, LinkSettings, Segment, World};
use std::net::{IpAddr, Ipv4Addr};

/// A city: its name, and the network behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct City {
    /// Its name, and that of its host and node.
    pub name: &'static str,
    /// Second octet of the network behind it: 10.*n*.0.0/24.
    pub net: u8,
}

impl City {
    /// The network behind it.
    pub fn network(self) -> String {
        format!("10.{}.0.0/24", self.net)
    }

    /// A host in the network behind it.
    pub fn host(self) -> IpAddr {
        IpAddr::V4(Ipv4Addr::new(10, self.net, 0, 1))
    }
}

/// Asia, east.
pub(super) const TOKYO: City = City { name: "tokyo", net: 81 };
/// Asia, south: the relay between east and west.
pub(super) const SINGAPORE: City = City { name: "singapore", net: 65 };
/// Europe.
pub(super) const FRANKFURT: City = City { name: "frankfurt", net: 49 };
/// North America.
pub(super) const NEWYORK: City = City { name: "newyork", net: 1 };
/// South America.
pub(super) const SAOPAULO: City = City { name: "saopaulo", net: 55 };

/// All of them.
pub const CITIES: [City; 5] = [TOKYO, SINGAPORE, FRANKFURT, NEWYORK, SAOPAULO];

/// The round trip between Tokyo and Frankfurt while its provider sends it the wrong way round the world.
pub(super) const BAD_TRANSIT_MS: u64 = 265;
/// The same once the provider has repaired its routes.
pub(super) const GOOD_TRANSIT_MS: u64 = 150;

/// Round trips in milliseconds, as they are between such cities. The direct way is always the shortest, except
/// between Tokyo and Frankfurt while their transit is bad.
const ROUND_TRIPS: [(City, City, u64); 10] = [
    (TOKYO, SINGAPORE, 68),
    (TOKYO, FRANKFURT, BAD_TRANSIT_MS),
    (TOKYO, NEWYORK, 168),
    (TOKYO, SAOPAULO, 255),
    (SINGAPORE, FRANKFURT, 132),
    (SINGAPORE, NEWYORK, 205),
    (SINGAPORE, SAOPAULO, 300),
    (FRANKFURT, NEWYORK, 82),
    (FRANKFURT, SAOPAULO, 180),
    (NEWYORK, SAOPAULO, 112),
];

/// Hosts for the cities, joined by one segment that stands for the internet.
pub struct Cities {
    /// The internet between them.
    pub internet: Segment,
    members: Vec<(City, Host, Interface)>,
}

impl Cities {
    /// Builds the world.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn build(world: &World) -> lab::Result<Self> {
        let internet = world.segment("internet")?;
        let mut members = Vec::new();
        for city in CITIES {
            let host = world.host(city.name)?;
            let interface = internet.attach(&host)?;
            host.add_address("lo", ipnet::IpNet::from(city.host()))?;
            members.push((city, host, interface));
        }
        let cities = Self { internet, members };
        for (a, b, rtt) in ROUND_TRIPS {
            cities.set_round_trip(a, b, rtt)?;
        }
        Ok(cities)
    }

    /// Changes the round trip between two cities.
    ///
    /// # Errors
    /// When the emulator has ended.
    pub fn set_round_trip(&self, a: City, b: City, milliseconds: u64) -> lab::Result<()> {
        self.internet.set(a.name, b.name, LinkSettings::with_rtt_ms(milliseconds))
    }

    /// The cities with their hosts and interfaces.
    pub fn members(&self) -> impl Iterator<Item = (City, &Host, &Interface)> {
        self.members.iter().map(|(city, host, interface)| (*city, host, interface))
    }

    /// The host of a city.
    ///
    /// # Panics
    /// If the city is not one of [`CITIES`].
    pub fn host(&self, city: City) -> &Host {
        match self.members.iter().find(|(known, ..)| *known == city) {
            Some((_, host, _)) => host,
            None => panic!("{} is not in this world", city.name),
        }
    }

    /// The underlay address of a city.
    pub fn underlay(&self, city: City) -> Option<IpAddr> {
        let (_, _, interface) = self.members.iter().find(|(known, ..)| *known == city)?;
        interface.v4.map(IpAddr::V4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Half a round trip for each relay more, the cost of a further link.
    const LINK_MS: u64 = 4;

    fn round_trip(a: City, b: City, tokyo_frankfurt: u64) -> u64 {
        let found = ROUND_TRIPS.iter().find(|(x, y, _)| (*x, *y) == (a, b) || (*x, *y) == (b, a));
        let (x, y, rtt) = *found.expect("all pairs are listed");
        if (x, y) == (TOKYO, FRANKFURT) { tokyo_frankfurt } else { rtt }
    }

    fn best_relay(a: City, b: City, tokyo_frankfurt: u64) -> (u64, City) {
        let others = CITIES.into_iter().filter(|city| *city != a && *city != b);
        let via = others.map(|city| {
            (round_trip(a, city, tokyo_frankfurt) + round_trip(city, b, tokyo_frankfurt) + LINK_MS, city)
        });
        via.min_by_key(|(rtt, _)| *rtt).expect("three other cities")
    }

    #[test]
    fn the_direct_way_is_the_best_where_transit_is_good() {
        for a in CITIES {
            for b in CITIES.into_iter().filter(|b| *b != a) {
                let (relayed, _) = best_relay(a, b, GOOD_TRANSIT_MS);
                assert!(round_trip(a, b, GOOD_TRANSIT_MS) < relayed, "{} to {}", a.name, b.name);
            }
        }
    }

    #[test]
    fn bad_transit_makes_singapore_the_relay() {
        let (relayed, city) = best_relay(TOKYO, FRANKFURT, BAD_TRANSIT_MS);
        assert_eq!(city, SINGAPORE);
        assert!(relayed < BAD_TRANSIT_MS);
    }
}
