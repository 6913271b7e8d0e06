//! strongSwan: its IKE daemon `charon` with ESP in user space, in a host of its own.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::Release;
use super::template::{fill, indent};
use crate::error::{Result, Trying};
use crate::host::Host;
use crate::process::{Process, RunOutput};
use crate::root::Root;
use crate::wait::wait_until;

const DAEMON: &str = include_str!("strongswan.conf");
const CONNECTION: &str = include_str!("swanctl.conf");
const RANET: &str = include_str!("ranet.conf");
const BIRD: &str = include_str!("charon_bird.conf");

/// Longer than a start takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// The folders that swanctl looks into.
const FOLDERS: [&str; 4] = ["pkcs8", "pubkey", "x509", "x509ca"];

/// The device that all packets of the tunnel pass.
pub const DEVICE: &str = "ipsec0";

/// A running charon. Dropping it ends it.
#[derive(Debug)]
pub struct Charon {
    host: Host,
    root: Root,
    folder: PathBuf,
    process: Option<Process>,
}

/// What a [`Charon`] is started with.
#[derive(Debug, Clone)]
pub struct CharonConfig {
    /// The UDP port for IKE.
    pub port: u16,
    /// The UDP port for IKE with non-ESP marker, and ESP.
    pub nat_port: u16,
    /// Further lines of its section in `strongswan.conf`.
    pub more: String,
}

impl Default for CharonConfig {
    fn default() -> Self {
        Self { port: 500, nat_port: 4500, more: String::new() }
    }
}

/// How one side proves who it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Proof {
    /// A raw public key: name of a file in `pubkey/`.
    PublicKey(String),
    /// A certificate: name of a file in `x509/`. Those between it and its authority are in `x509ca/`.
    Certificate(String),
    /// Any certificate that leads to this authority: name of a file in `x509ca/`.
    CertifiedBy(String),
    /// The secret that both share.
    SharedSecret(String),
}

/// Whose configuration a [`Connection`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// What we recommend to those who join a mesh with strongSwan.
    Mesh,
    /// What ranet tells charon.
    Ranet,
}

/// A connection to one peer, called `mesh`, with one child of the same name.
#[derive(Debug, Clone)]
pub struct Connection {
    /// Whose it is.
    pub kind: Kind,
    /// Address of charon.
    pub local_address: IpAddr,
    /// Address of its peer; `None` where it waits for the peer to dial.
    pub remote_address: Option<IpAddr>,
    /// charon's port.
    pub local_port: u16,
    /// The peer's port.
    pub remote_port: u16,
    /// charon's identity, as swanctl writes it.
    pub local_id: String,
    /// The peer's.
    pub remote_id: String,
    /// How charon proves itself.
    pub local_proof: Proof,
    /// How the peer has to.
    pub remote_proof: Proof,
    /// Proposals for IKE, as swanctl writes them.
    pub proposals: String,
    /// Proposals for ESP.
    pub esp_proposals: String,
    /// Whether charon dials as soon as it knows of the connection.
    pub dial: bool,
    /// Further lines of the connection; they override those above them.
    pub more: String,
    /// Further lines of the child.
    pub more_of_child: String,
}

impl CharonConfig {
    /// The file `strongswan.conf`, with what it writes below `folder`.
    pub fn text(&self, folder: &Path) -> String {
        let path = |name: &str| folder.join(name).display().to_string();
        fill(
            DAEMON,
            &[
                ("port", &self.port.to_string()),
                ("nat_port", &self.nat_port.to_string()),
                ("log", &path("charon.log")),
                ("socket", &path("charon.vici")),
                ("more", &indent(&self.more, 2)),
            ],
        )
    }
}

impl Connection {
    /// The file `swanctl.conf`.
    pub fn text(&self) -> String {
        let remote_address = self.remote_address.map_or("%any".to_owned(), |address| address.to_string());
        let own = authentication(&self.local_id, &self.local_proof);
        let peer = authentication(&self.remote_id, &self.remote_proof);
        fill(
            match self.kind {
                Kind::Mesh => CONNECTION,
                Kind::Ranet => RANET,
            },
            &[
                ("local_address", &self.local_address.to_string()),
                ("remote_address", &remote_address),
                ("local_port", &self.local_port.to_string()),
                ("remote_port", &self.remote_port.to_string()),
                ("proposals", &self.proposals),
                ("esp_proposals", &self.esp_proposals),
                ("start_action", if self.dial { "start" } else { "none" }),
                ("certificates", &indent(self.certificates(), 4)),
                ("local_authentication", &indent(&own, 6)),
                ("remote_authentication", &indent(&peer, 6)),
                ("more", &indent(&self.more, 4)),
                ("more_of_child", &indent(&self.more_of_child, 8)),
                ("secrets", &self.secrets()),
            ],
        )
    }

    /// Raw keys are in the configuration of both: nothing is asked for and nothing sent.
    const fn certificates(&self) -> &'static str {
        match self.local_proof {
            Proof::Certificate(_) | Proof::CertifiedBy(_) => "",
            Proof::PublicKey(_) | Proof::SharedSecret(_) => "send_cert = never\nsend_certreq = no\n",
        }
    }

    fn secrets(&self) -> String {
        let Proof::SharedSecret(secret) = &self.local_proof else { return String::new() };
        format!(
            "secrets {{\n  ike-mesh {{\n    id-1 = {}\n    id-2 = {}\n    secret = \"{secret}\"\n  }}\n}}",
            quoted(&self.local_id),
            quoted(&self.remote_id),
        )
    }
}

/// BIRD's configuration for the host of a charon: Babel on [`DEVICE`], with the costs of the mesh.
pub fn bird_configuration(router_id: Ipv4Addr) -> String {
    fill(BIRD, &[("router_id", &router_id.to_string()), ("device", DEVICE)])
}

fn authentication(id: &str, proof: &Proof) -> String {
    let mut text = String::new();
    let _ = match proof {
        Proof::PublicKey(file) => writeln!(text, "auth = pubkey\npubkeys = {file}"),
        Proof::Certificate(file) => writeln!(text, "auth = pubkey\ncerts = {file}"),
        Proof::CertifiedBy(file) => writeln!(text, "auth = pubkey\ncacerts = {file}"),
        Proof::SharedSecret(_) => writeln!(text, "auth = psk"),
    };
    let _ = write!(text, "id = {}", quoted(id));
    text
}

fn quoted(id: &str) -> String {
    format!("\"{id}\"")
}

impl Charon {
    /// Starts charon of `release` in a host and waits until it takes orders. Its files are in `folder`, which is
    /// made.
    ///
    /// # Errors
    /// When the root is missing, or charon does not start.
    pub fn start(host: &Host, release: Release, folder: &Path, config: &CharonConfig) -> Result<Self> {
        for name in FOLDERS {
            let path = folder.join("swanctl").join(name);
            std::fs::create_dir_all(&path).trying(|| format!("creating {}", path.display()))?;
        }
        let root = release.root(folder)?;
        let mut charon = Self { host: host.clone(), root, folder: folder.to_owned(), process: None };
        charon.write("strongswan.conf", &config.text(folder))?;
        charon.restart()?;
        Ok(charon)
    }

    /// Starts it again with the configuration of its start, after [`Charon::kill`] or [`Charon::stop`]. It has
    /// forgotten its connections then.
    ///
    /// # Errors
    /// When it does not start.
    pub fn restart(&mut self) -> Result<()> {
        // Daemons that died leave their socket behind.
        let _ = std::fs::remove_file(self.socket());
        let mut command = Command::new("/usr/sbin/charon-systemd");
        command.env("STRONGSWAN_CONF", self.folder.join("strongswan.conf"));
        let process = self.host.spawn_in(&self.root, command)?;
        let what =
            format!("charon in {} to take orders; its output: {}", self.host.name(), process.log().display());
        wait_until(PATIENCE, &what, || !process.is_running() || self.socket().exists())?;
        process.ensure_running()?;
        self.process = Some(process);
        Ok(())
    }

    /// Ends it as `systemctl stop` would: it deletes its SAs.
    ///
    /// # Errors
    /// When it does not end.
    pub fn stop(&mut self) -> Result<()> {
        self.process.take().map_or(Ok(()), |process| process.stop(PATIENCE).map(drop))
    }

    /// Kills it as a crash would.
    pub fn kill(&mut self) {
        if let Some(process) = self.process.take() {
            process.kill();
        }
    }

    /// Writes a file of its configuration: `swanctl/pubkey/peer.pem`, for example.
    ///
    /// # Errors
    /// When the file can't be written.
    pub fn write(&self, name: &str, text: &str) -> Result<()> {
        let path = self.folder.join(name);
        std::fs::write(&path, text).trying(|| format!("writing {}", path.display()))
    }

    /// Tells it keys, secrets and the connection, anew.
    ///
    /// # Errors
    /// When it refuses.
    pub fn load(&self, connection: &Connection) -> Result<()> {
        self.write("swanctl/swanctl.conf", &connection.text())?;
        self.swanctl(&["--load-all"])?.successful().map(drop)
    }

    /// Has it dial, and waits for the outcome.
    ///
    /// # Errors
    /// When it can't reach the peer, or they do not agree.
    pub fn initiate(&self) -> Result<()> {
        self.swanctl(&["--initiate", "--child", "mesh"])?.successful().map(drop)
    }

    /// Runs `swanctl` with these arguments.
    ///
    /// # Errors
    /// When it can't be run; not when it fails.
    pub fn swanctl(&self, arguments: &[&str]) -> Result<RunOutput> {
        let mut command = Command::new("swanctl");
        command.args(arguments).arg("--uri").arg(format!("unix://{}", self.socket().display()));
        command.env("SWANCTL_DIR", self.folder.join("swanctl"));
        self.host.run_in(&self.root, command, PATIENCE)
    }

    /// What it has logged.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.join("charon.log")).unwrap_or_default()
    }

    fn socket(&self) -> PathBuf {
        self.folder.join("charon.vici")
    }
}

impl Drop for Charon {
    #[expect(clippy::print_stderr, reason = "a failing test shows what its peer said")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = self.log();
            let lines: Vec<&str> = log.lines().collect();
            let tail = lines.get(lines.len().saturating_sub(60)..).unwrap_or_default();
            eprintln!("--- the end of the log of charon in {}:\n{}", self.host.name(), tail.join("\n"));
        }
    }
}
