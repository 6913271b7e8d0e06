//! A world: hosts, the links between them, and a folder for what they write.

use std::fs::DirBuilder;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use ipnet::{Ipv4Net, Ipv6Net};

use crate::capability::Capability;
use crate::error::{LabError, Result, Trying};
use crate::host::Host;
use crate::link::Link;
use crate::link_model::LinkSettings;
use crate::probe_log::ProbeLog;
use crate::roster::Roster;
use crate::segment::{Segment, SegmentConfig};
use crate::spawner::{Spawner, lock};
use crate::veth::Veth;

/// If this is set, the folder of a world stays.
const KEEP: &str = "VIAMESH_LAB_KEEP";
/// The networks for benchmarks (RFC 2544) and for documentation (RFC 3849): no mesh has addresses there.
const UNDERLAY_V4: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 0);
const UNDERLAY_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0);

/// A world; when it is dropped, its processes end and its namespaces vanish.
#[derive(Debug)]
pub struct World {
    directory: PathBuf,
    spawner: Arc<Spawner>,
    hosts: Mutex<Vec<Host>>,
    /// Held here so that links live as long as the world, whoever drops the handles.
    segments: Mutex<Vec<Segment>>,
    /// Numbers networks; their addresses follow from it.
    networks: AtomicU16,
    /// Numbers segments and veth pairs; their Ethernet addresses follow from it.
    wires: AtomicU16,
    seed: u64,
    log: ProbeLog,
}

impl World {
    /// What this process may do, and what a person should run if it may not.
    pub fn probe() -> Capability {
        Capability::probe()
    }

    /// An empty world.
    ///
    /// # Errors
    /// [`LabError::Impossible`] with advice where worlds can't be built.
    pub fn new() -> Result<Self> {
        Self::with_seed(1)
    }

    /// An empty world whose losses and jitter follow from `seed`.
    ///
    /// # Errors
    /// As [`World::new`].
    pub fn with_seed(seed: u64) -> Result<Self> {
        match Capability::probe() {
            Capability::Ready => {}
            Capability::UserNamespace => {
                let text = "Worlds need root, or a user namespace that this process has not entered.";
                return Err(LabError::Impossible(text.into()));
            }
            Capability::Impossible { reason, advice } => {
                return Err(LabError::Impossible(format!("{reason}\n{advice}")));
            }
        }
        let directory = create_directory()?;
        let spawner = Arc::new(Spawner::new(&directory)?);
        Ok(Self {
            directory,
            spawner,
            hosts: Mutex::default(),
            segments: Mutex::default(),
            networks: AtomicU16::new(0),
            wires: AtomicU16::new(0),
            seed,
            log: ProbeLog::default(),
        })
    }

    /// Adds a host: a network namespace with `lo` up, forwarding on, `rp_filter`, duplicate address detection and
    /// router solicitations off.
    ///
    /// # Errors
    /// When the kernel refuses or the name is taken.
    pub fn host(&self, name: &str) -> Result<Host> {
        if self.find(name).is_some() {
            return Err(LabError::Misuse(format!("there is a host {name} already")));
        }
        let host = Host::create(name, self.spawner.clone())?;
        lock(&self.hosts).push(host.clone());
        Ok(host)
    }

    /// The host of that name, if it exists.
    pub fn find(&self, name: &str) -> Option<Host> {
        lock(&self.hosts).iter().find(|host| host.name() == name).cloned()
    }

    /// Joins two hosts by an emulated link, with an address of each family on each side
    /// (198.18.*n*.1 and .2, 2001:db8:*n*::1 and ::2).
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn link(&self, a: &Host, b: &Host, settings: LinkSettings) -> Result<Link> {
        let config = self.segment_config(&format!("{}-{}", a.name(), b.name()));
        Link::join(self.segment_with(SegmentConfig { settings, ..config })?, a, b)
    }

    /// A segment without stations, MTU 1500, perfect until told otherwise, addresses as for [`World::link`].
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn segment(&self, name: &str) -> Result<Segment> {
        self.segment_with(self.segment_config(name))
    }

    /// The configuration that [`World::segment`] would use: to change some of it. Reserves the addresses in it.
    pub fn segment_config(&self, name: &str) -> SegmentConfig {
        let number = self.networks.fetch_add(1, Ordering::Relaxed);
        // 512 networks of /24 in 198.18.0.0/15: worlds are far smaller.
        let v4 = Ipv4Addr::from_bits(UNDERLAY_V4.to_bits() + u32::from(number % 512) * 256);
        let v6 = Ipv6Addr::from_bits(UNDERLAY_V6.to_bits() + (u128::from(number) << 80));
        SegmentConfig {
            name: name.to_owned(),
            settings: LinkSettings::PERFECT,
            mtu: 1500,
            v4: Some(Ipv4Net::new_assert(v4, 24)),
            v6: Some(Ipv6Net::new_assert(v6, 64)),
        }
    }

    /// A segment without stations.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn segment_with(&self, config: SegmentConfig) -> Result<Segment> {
        let number = self.wires.fetch_add(1, Ordering::Relaxed);
        let segment = Segment::create(config, number, self.seed ^ u64::from(number), self.log.clone())?;
        lock(&self.segments).push(segment.clone());
        Ok(segment)
    }

    /// Joins two hosts by a veth pair: no emulation, no delay. Addresses as for [`World::link`].
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn veth(&self, a: &Host, b: &Host) -> Result<Veth> {
        let number = self.wires.fetch_add(1, Ordering::Relaxed);
        Veth::create(a, b, &self.segment_config("veth"), number)
    }

    /// The log of frames of all links and segments.
    pub fn probe_log(&self) -> &ProbeLog {
        &self.log
    }

    /// The folder that logs go to and that a test may use; it is removed with the world, unless a test panics or
    /// `VIAMESH_LAB_KEEP` is set.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Writes the [`Roster`] of this world to a file.
    ///
    /// # Errors
    /// When the file can't be written.
    pub fn publish(&self, path: &Path) -> Result<()> {
        Roster::of(lock(&self.hosts).iter()).write(path)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.spawner.shut_down();
        if !std::thread::panicking() && std::env::var_os(KEEP).is_none() {
            let _ = std::fs::remove_dir_all(&self.directory);
        }
    }
}

/// A folder that only this user can look into, new for each world.
fn create_directory() -> Result<PathBuf> {
    static COUNTER: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let name = format!("viamesh-lab-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        match DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => return Ok(path),
            // Left by a process that had our number before.
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error).trying(|| format!("creating {}", path.display())),
        }
    }
}
