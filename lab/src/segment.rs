//! A network that any number of hosts join: an internet in small, with its own properties between each two of them.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use crate::capture::Capture;
use crate::emulator::Emulator;
use crate::error::{LabError, Result};
use crate::fabric::Fabric;
use crate::host::Host;
use crate::interface::{Interface, InterfacePlan};
use crate::link_model::LinkSettings;
use crate::probe_log::ProbeLog;
use crate::tap::Tap;

/// Frames that a host may have waiting for the emulator: it sleeps now and then, and a device with a short queue
/// would lose frames that no link model asked to lose.
const TRANSMIT_QUEUE: u32 = 4096;

/// How a segment is set up.
#[derive(Debug, Clone)]
pub struct SegmentConfig {
    /// Its name in logs.
    pub name: String,
    /// The settings between two stations until they are set for that pair.
    pub settings: LinkSettings,
    /// The MTU of the interfaces.
    pub mtu: u32,
    /// The IPv4 network that stations get addresses from, .1 first; `None`: no IPv4.
    pub v4: Option<Ipv4Net>,
    /// The IPv6 network that stations get addresses from, ::1 first; `None`: no IPv6.
    pub v6: Option<Ipv6Net>,
}

/// What one direction between two stations did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames sent into it; a super-frame counts as the frames that it stands for.
    pub frames: u64,
    /// Bytes of these frames, Ethernet headers included.
    pub bytes: u64,
    /// Frames that were lost, for whatever reason.
    pub lost: u64,
    /// Of these, lost because the queue was full.
    pub queue_full: u64,
    /// Super-frames among the submitted ones.
    pub super_frames: u64,
    /// The longest frame, headers included; longer than the MTU allows if super-frames passed whole.
    pub longest: u64,
}

/// A network segment; clones are the same segment.
///
/// Stations are named by `&Host` or by name. Address resolution (ARP, neighbour discovery) is not delayed and never
/// lost: on a real path the nearest router answers it, however far the other end is.
#[derive(Debug, Clone)]
pub struct Segment {
    inner: Arc<SegmentInner>,
}

#[derive(Debug)]
struct SegmentInner {
    config: SegmentConfig,
    emulator: Emulator,
    /// Distinguishes the Ethernet addresses of this segment.
    number: u16,
    stations: AtomicU32,
}

impl Segment {
    pub(crate) fn create(config: SegmentConfig, number: u16, seed: u64, log: ProbeLog) -> Result<Self> {
        let fabric = Fabric::new(&config.name, config.settings, seed, log);
        let emulator = Emulator::start(&config.name, fabric)?;
        let inner = SegmentInner { config, emulator, number, stations: AtomicU32::new(0) };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Its name in logs.
    pub fn name(&self) -> &str {
        &self.inner.config.name
    }

    /// Joins a host: a new interface with an address of each family.
    ///
    /// # Errors
    /// When the kernel refuses or the host has joined already.
    pub fn attach(&self, host: &Host) -> Result<Interface> {
        self.attach_as(host, host.name())
    }

    /// Joins a host under another station name: for a second interface of the same host.
    ///
    /// # Errors
    /// When the kernel refuses or the name is taken.
    pub fn attach_as(&self, host: &Host, station: &str) -> Result<Interface> {
        let number = self.inner.stations.fetch_add(1, Ordering::Relaxed) + 1;
        let plan = InterfacePlan {
            name: host.next_interface_name(),
            mac: ethernet_address(self.inner.number, number),
            mtu: self.inner.config.mtu,
            transmit_queue: TRANSMIT_QUEUE,
            addresses: self.inner.config.addresses(number)?,
        };
        let tap = host.within(|| Tap::create(&plan.name))??;
        self.inner.emulator.attach(station, plan.mac, tap)?;
        plan.apply(host)
    }

    /// Changes both directions between two stations, from now on.
    ///
    /// # Errors
    /// When a station is unknown.
    pub fn set(&self, a: impl AsRef<str>, b: impl AsRef<str>, settings: LinkSettings) -> Result<()> {
        self.set_one_way(&a, &b, settings)?;
        self.set_one_way(&b, &a, settings)
    }

    /// Changes one direction, from now on.
    ///
    /// # Errors
    /// When a station is unknown.
    pub fn set_one_way(
        &self,
        from: impl AsRef<str>,
        to: impl AsRef<str>,
        settings: LinkSettings,
    ) -> Result<()> {
        self.inner.emulator.with_fabric(|fabric| {
            fabric.path(from.as_ref(), to.as_ref())?.model.set(settings);
            Ok(())
        })
    }

    /// Changes all directions to and from one station: for example [`LinkSettings::DEAD`].
    ///
    /// # Errors
    /// When the station is unknown.
    pub fn set_station(&self, station: impl AsRef<str>, settings: LinkSettings) -> Result<()> {
        self.inner.emulator.with_fabric(|fabric| {
            let station = fabric.station(station.as_ref())?;
            fabric.paths_of(station).for_each(|path| path.model.set(settings));
            Ok(())
        })
    }

    /// The present settings of one direction.
    ///
    /// # Errors
    /// When a station is unknown.
    pub fn settings(&self, from: impl AsRef<str>, to: impl AsRef<str>) -> Result<LinkSettings> {
        let emulator = &self.inner.emulator;
        emulator.with_fabric(|fabric| Ok(*fabric.path(from.as_ref(), to.as_ref())?.model.settings()))
    }

    /// What one direction did so far.
    ///
    /// # Errors
    /// When a station is unknown.
    pub fn counters(&self, from: impl AsRef<str>, to: impl AsRef<str>) -> Result<Counters> {
        let emulator = &self.inner.emulator;
        emulator.with_fabric(|fabric| Ok(fabric.path(from.as_ref(), to.as_ref())?.counters))
    }

    /// Writes all frames that stations send from now on, later lost or not, to a pcap file until the capture is
    /// dropped.
    ///
    /// # Errors
    /// When the file can't be created.
    pub fn capture(&self, path: &Path) -> Result<Capture> {
        let (capture, tap) = Capture::create(path, None)?;
        self.inner.emulator.with_fabric(|fabric| fabric.add_capture(tap));
        Ok(capture)
    }

    /// Like [`Segment::capture`], only for frames between two stations.
    ///
    /// # Errors
    /// When the file can't be created or a station is unknown.
    pub fn capture_between(&self, a: impl AsRef<str>, b: impl AsRef<str>, path: &Path) -> Result<Capture> {
        self.inner.emulator.with_fabric(|fabric| {
            let between = (fabric.station(a.as_ref())?, fabric.station(b.as_ref())?);
            let (capture, tap) = Capture::create(path, Some(between))?;
            fabric.add_capture(tap);
            Ok(capture)
        })
    }
}

impl SegmentConfig {
    /// The addresses of the station with that number, counted from 1.
    pub(crate) fn addresses(&self, number: u32) -> Result<Vec<IpNet>> {
        let full = || LabError::Misuse(format!("no address is left for station {number} of {}", self.name));
        let mut addresses = Vec::new();
        if let Some(net) = self.v4 {
            let address = Ipv4Addr::from_bits(net.network().to_bits().saturating_add(number));
            if !net.contains(&address) || address == net.broadcast() {
                return Err(full());
            }
            addresses.push(Ipv4Net::new_assert(address, net.prefix_len()).into());
        }
        if let Some(net) = self.v6 {
            let address = Ipv6Addr::from_bits(net.network().to_bits().saturating_add(number.into()));
            if !net.contains(&address) {
                return Err(full());
            }
            addresses.push(Ipv6Net::new_assert(address, net.prefix_len()).into());
        }
        Ok(addresses)
    }
}

/// A locally administered address that no other interface of the world has.
pub(crate) fn ethernet_address(segment: u16, station: u32) -> [u8; 6] {
    let [segment_high, segment_low] = segment.to_be_bytes();
    let [_, _, station_high, station_low] = station.to_be_bytes();
    [0x02, 0x76, segment_high, segment_low, station_high, station_low]
}

#[cfg(test)]
mod tests {
    use super::SegmentConfig;
    use crate::link_model::LinkSettings;

    #[test]
    fn addresses_are_counted_until_the_network_is_full() {
        let config = SegmentConfig {
            name: "small".into(),
            settings: LinkSettings::PERFECT,
            mtu: 1500,
            v4: Some("192.0.2.0/30".parse().unwrap()),
            v6: Some("2001:db8::/64".parse().unwrap()),
        };
        let second: Vec<_> = config.addresses(2).unwrap().iter().map(|net| net.to_string()).collect();
        assert_eq!(second, ["192.0.2.2/30", "2001:db8::2/64"]);
        assert!(config.addresses(3).is_err(), "the broadcast address is nobody's");
    }
}
