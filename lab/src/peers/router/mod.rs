//! A router that does everything in its kernel: strongSwan with XFRM interfaces, BIRD, and segments by seg6local. The
//! files are those of `docs/interop.md`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{Ipv4Net, Ipv6Net};

use super::babel::{BabelNeighbour, BabelRoute};
use super::bird;
use super::guest::Guest;
use super::template::{fill, indent};
use crate::error::Result;
use crate::process::RunOutput;

const DAEMON: &str = include_str!("strongswan.conf");
const CONNECTION: &str = include_str!("connection.conf");
const DEVICE: &str = include_str!("device.sh");
const SEGMENTS: &str = include_str!("segments.sh");
const BIRD: &str = include_str!("bird.conf");

/// Where its files are.
const FOLDER: &str = "/run/mesh";

/// What the router is.
#[derive(Debug, Clone)]
pub struct RouterSetup {
    /// Its own name; its key is called so.
    pub name: String,
    /// Its IKE identity.
    pub id: String,
    /// The UDP port of IKE and ESP, here and at its peers.
    pub port: u16,
    /// Its device to the underlay.
    pub underlay: String,
    /// Its device to the networks behind it.
    pub lan: String,
    /// The IPv4 network behind it.
    pub network_v4: Ipv4Net,
    /// The IPv6 network behind it.
    pub network_v6: Ipv6Net,
    /// Where its segments are: a /64.
    pub locator: Ipv6Net,
    /// Further lines of BIRD's static routes.
    pub static_routes: String,
    /// Its peers. The XFRM interface of the first has the number 1.
    pub peers: Vec<RouterPeer>,
}

/// A peer of the router.
#[derive(Debug, Clone)]
pub struct RouterPeer {
    /// Its name: of the connection, its child, its key.
    pub name: String,
    /// Its IKE identity, as swanctl writes it.
    pub id: String,
    /// The router's address towards it.
    pub local_address: IpAddr,
    /// Its address.
    pub address: IpAddr,
    /// Whether the router dials.
    pub dial: bool,
    /// Further lines of the connection.
    pub more: String,
    /// Further lines of the child.
    pub more_of_child: String,
}

impl RouterSetup {
    /// `strongswan.conf`.
    pub fn daemon(&self) -> String {
        fill(DAEMON, &[("port", &self.port.to_string())])
    }

    /// `swanctl.conf`.
    pub fn connections(&self) -> String {
        let peers = self.numbered().map(|(number, peer)| self.connection(number, peer));
        format!("connections {{\n{}}}\n", peers.collect::<String>())
    }

    fn connection(&self, number: usize, peer: &RouterPeer) -> String {
        fill(
            CONNECTION,
            &[
                ("name", &self.name),
                ("id", &self.id),
                ("peer", &peer.name),
                ("peer_id", &peer.id),
                ("local_address", &peer.local_address.to_string()),
                ("remote_address", &peer.address.to_string()),
                ("port", &self.port.to_string()),
                ("number", &number.to_string()),
                ("start_action", if peer.dial { "start" } else { "none" }),
                ("more", &indent(&peer.more, 4)),
                ("more_of_child", &indent(&peer.more_of_child, 8)),
            ],
        )
    }

    /// Commands for the devices of the tunnels.
    pub fn devices(&self) -> String {
        let device = |(number, peer): (usize, &RouterPeer)| {
            fill(
                DEVICE,
                &[
                    ("peer", &peer.name),
                    ("device", &device(number)),
                    ("underlay", &self.underlay),
                    ("number", &number.to_string()),
                ],
            )
        };
        self.numbered().map(device).collect()
    }

    /// Commands for the segments.
    pub fn segments(&self) -> String {
        fill(
            SEGMENTS,
            &[
                ("locator", &self.locator.network().to_string()),
                ("device", &device(1)),
                ("lan", &self.lan),
                ("network_v4", &self.network_v4.to_string()),
                ("network_v6", &self.network_v6.to_string()),
            ],
        )
    }

    /// `bird.conf`.
    pub fn bird(&self, router_id: Ipv4Addr) -> String {
        fill(
            BIRD,
            &[
                ("router_id", &router_id.to_string()),
                ("lan", &self.lan),
                ("locator", &self.locator.network().to_string()),
                ("more", &indent(&self.static_routes, 2)),
            ],
        )
    }

    /// What the registry says of its segments, in its `remarks.viamesh`.
    pub fn registry_lines(&self) -> String {
        let [end, dt4, dt6, dt46] = [0xe, 0x4, 0x6, 0x46].map(|function| self.segment(function));
        format!(
            "locator: \"{}\"\nsids: {{ end: \"{end}\", dt4: \"{dt4}\", dt6: \"{dt6}\", dt46: \"{dt46}\" }}\n",
            self.locator
        )
    }

    /// One of its segments.
    pub fn segment(&self, function: u16) -> Ipv6Addr {
        Ipv6Addr::from_bits(self.locator.network().to_bits() | u128::from(function))
    }

    /// The device of the tunnel to a peer.
    ///
    /// # Panics
    /// If it has no such peer.
    pub fn device_to(&self, peer: &str) -> String {
        match self.numbered().find(|(_, other)| other.name == peer) {
            Some((number, _)) => device(number),
            None => panic!("{peer} is no peer of {}", self.name),
        }
    }

    fn numbered(&self) -> impl Iterator<Item = (usize, &RouterPeer)> {
        (1..).zip(&self.peers)
    }
}

fn device(number: usize) -> String {
    format!("mesh{number}")
}

/// The router's daemons in a guest.
#[derive(Debug)]
pub struct Router {
    /// The machine.
    pub guest: Guest,
    /// What it is.
    pub setup: RouterSetup,
}

impl Router {
    /// Makes devices and segments, and starts the daemons. Keys are PEM: its own private one, and the public ones of all
    /// by name, its own among them.
    ///
    /// # Errors
    /// When the guest can't.
    pub fn start(guest: Guest, setup: RouterSetup, own_key: &str, public: &[(&str, &str)]) -> Result<Self> {
        let router = Self { guest, setup };
        let (guest, setup) = (&router.guest, &router.setup);
        guest.write(&format!("{FOLDER}/swanctl/pkcs8/{}.pem", setup.name), own_key)?;
        for (name, key) in public {
            guest.write(&format!("{FOLDER}/swanctl/pubkey/{name}.pem"), key)?;
        }
        guest.write(&format!("{FOLDER}/strongswan.conf"), &setup.daemon())?;
        guest.write(&format!("{FOLDER}/swanctl/swanctl.conf"), &setup.connections())?;
        guest.write(&format!("{FOLDER}/bird.conf"), &setup.bird(Ipv4Addr::new(10, 9, 0, 1)))?;
        guest.shell(&format!("set -e\n{}{}", setup.devices(), setup.segments()))?;
        router.start_bird()?;
        router.start_charon()?;
        Ok(router)
    }

    fn start_bird(&self) -> Result<()> {
        let command = format!("bird -c {FOLDER}/bird.conf -s {FOLDER}/bird.ctl -P {FOLDER}/bird.pid");
        self.guest.shell(&command).map(drop)
    }

    /// Kills BIRD as a crash would, and starts it again.
    ///
    /// # Errors
    /// When it does not run, or does not start.
    pub fn restart_bird(&self) -> Result<()> {
        let gone = format!("kill -9 $(cat {FOLDER}/bird.pid) && while pidof bird; do sleep 0.05; done");
        self.guest.shell(&gone)?;
        self.start_bird()
    }

    /// Starts charon, and tells it of the peers: it dials those that it shall dial.
    ///
    /// # Errors
    /// When it does not take them.
    pub fn start_charon(&self) -> Result<()> {
        self.guest.shell(&format!(
            "rm -f /run/charon.vici\n\
             STRONGSWAN_CONF={FOLDER}/strongswan.conf charon-systemd >/run/charon.out 2>&1 &\n\
             for try in $(seq 300); do [ -S /run/charon.vici ] && exit; sleep 0.1; done; cat /run/charon.out; false"
        ))?;
        self.swanctl("--load-all")?.successful().map(drop)
    }

    /// Ends charon as `systemctl stop` would: it deletes its SAs.
    ///
    /// # Errors
    /// When it does not end.
    pub fn stop_charon(&self) -> Result<()> {
        self.guest
            .shell("kill $(pidof charon-systemd) && while pidof charon-systemd; do sleep 0.05; done")?;
        Ok(())
    }

    /// Kills charon as a crash would. The kernel keeps its SAs.
    ///
    /// # Errors
    /// When it does not run.
    pub fn kill_charon(&self) -> Result<()> {
        self.guest
            .shell("kill -9 $(pidof charon-systemd) && while pidof charon-systemd; do sleep 0.05; done")?;
        Ok(())
    }

    /// Runs `swanctl`.
    ///
    /// # Errors
    /// When it can't be run; not when it fails.
    pub fn swanctl(&self, arguments: &str) -> Result<RunOutput> {
        self.guest.run(&format!(
            "SWANCTL_DIR={FOLDER}/swanctl STRONGSWAN_CONF={FOLDER}/strongswan.conf \
             swanctl {arguments} --uri unix:///run/charon.vici"
        ))
    }

    /// What charon has logged.
    ///
    /// # Errors
    /// When the guest does not answer.
    pub fn charon_log(&self) -> Result<String> {
        self.guest.shell("cat /run/charon.log")
    }

    /// BIRD's answer.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn ask_bird(&self, command: &str) -> Result<Vec<String>> {
        let answer = self.guest.shell(&format!("birdc -s {FOLDER}/bird.ctl '{command}'"))?;
        Ok(answer.lines().map(str::to_owned).collect())
    }

    /// BIRD's neighbours.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn neighbours(&self) -> Result<Vec<BabelNeighbour>> {
        Ok(bird::read_neighbours(&self.ask_bird("show babel neighbors")?))
    }

    /// The routes that BIRD has chosen.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn selected(&self) -> Result<Vec<BabelRoute>> {
        Ok(bird::read_routes(&self.ask_bird("show route protocol mesh primary")?))
    }

    /// The kernel's complaints about ESP, as far as there are any.
    ///
    /// # Errors
    /// When the guest does not answer.
    pub fn xfrm_errors(&self) -> Result<Vec<String>> {
        let text = self.guest.shell("cat /proc/net/xfrm_stat")?;
        let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
        Ok(lines.filter(|line| !line.ends_with(" 0")).collect())
    }
}
