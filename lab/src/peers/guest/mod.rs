//! A machine in the machine: a Linux kernel of its own, with what the kernel outside may lack (ESP, XFRM interfaces,
//! VRFs), as an ordinary process: User-Mode Linux. Its root is that of a [`Release`].

mod kernel;

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use ipnet::IpNet;

use super::Release;
use crate::error::{LabError, Result, Trying};
use crate::host::Host;
use crate::interface::Interface;
use crate::process::{Process, RunOutput};
use crate::wait::wait_until;

pub use kernel::GuestKernel;

const INIT: &str = include_str!("init.sh");

/// The guest's memory.
const MEMORY: &str = "mem=192M";
/// Longer than a start takes on a busy machine.
const BOOT_PATIENCE: Duration = Duration::from_secs(60);
/// Longer than a command takes that does not wait for others.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running guest. Dropping it switches it off.
#[derive(Debug)]
pub struct Guest {
    process: Process,
    folder: PathBuf,
    name: String,
    scripts: AtomicU32,
}

impl Guest {
    /// Boots a guest that takes the place of `host`: it has the host's interfaces, with their addresses, as `vec0`,
    /// `vec1` and so on. The host keeps no address. Files are exchanged in `folder`, which is made.
    ///
    /// # Errors
    /// [`LabError::Impossible`] when the kernel or the root has not been made yet; or when it does not boot.
    pub fn boot(host: &Host, interfaces: &[Interface], release: Release, folder: &Path) -> Result<Self> {
        let kernel = GuestKernel::path();
        for (path, what) in [(&kernel, "the guest's kernel"), (&release.path(), release.recipe().name)] {
            if !path.exists() {
                let text = format!("{} is missing: `cargo xtask setup` makes {what}", path.display());
                return Err(LabError::Impossible(text));
            }
        }
        std::fs::create_dir_all(folder).trying(|| format!("creating {}", folder.display()))?;
        let init = folder.join("init");
        std::fs::write(&init, INIT).trying(|| format!("writing {}", init.display()))?;
        for interface in interfaces {
            hand_over(host, interface)?;
        }
        let mut command = Command::new(&kernel);
        command.arg(MEMORY).arg(format!("uml_dir={}/", folder.display())).arg("umid=guest");
        command.args(["ro", "rootfstype=hostfs"]).arg(format!("rootflags={}", release.path().display()));
        command.args(["con=null", "con0=null,fd:1", "quiet", "panic=-1"]);
        for (number, interface) in interfaces.iter().enumerate() {
            command.arg(network_card(number, interface));
        }
        let start =
            format!("\"mount -t hostfs -o hostfs={} hostfs /mnt && exec bash /mnt/init\"", folder.display());
        command.args(["init=/bin/bash", "--", "-c"]).arg(start);
        let process = host.spawn(command)?;
        let name = host.name().to_owned();
        let guest = Self { process, folder: folder.to_owned(), name, scripts: AtomicU32::new(0) };
        guest.run_for("true", BOOT_PATIENCE)?.successful()?;
        for (number, interface) in interfaces.iter().enumerate() {
            guest.set_up(number, interface)?;
        }
        Ok(guest)
    }

    /// What a card is called inside.
    pub fn device(number: usize) -> String {
        format!("vec{number}")
    }

    /// Runs a script of the guest's shell to its end.
    ///
    /// # Errors
    /// When it is not done within a minute, or the guest has died; not when the script fails.
    pub fn run(&self, script: &str) -> Result<RunOutput> {
        self.run_for(script, PATIENCE)
    }

    /// Runs a script that must succeed, and returns what it printed.
    ///
    /// # Errors
    /// As [`Guest::run`], and when it fails.
    pub fn shell(&self, script: &str) -> Result<String> {
        Ok(self.run(script)?.successful()?.stdout)
    }

    fn run_for(&self, script: &str, limit: Duration) -> Result<RunOutput> {
        let number = self.scripts.fetch_add(1, Ordering::Relaxed);
        let path = |suffix: &str| self.folder.join(format!("{number}{suffix}"));
        let partial = self.folder.join(format!("partial-{number}"));
        std::fs::write(&partial, script).trying(|| format!("writing {}", partial.display()))?;
        std::fs::rename(&partial, path("")).trying(|| format!("renaming {}", partial.display()))?;
        let first = script.lines().next().unwrap_or_default();
        let what = format!("`{first}` in the guest {}", self.name);
        let code = wait_until(limit, &what, || {
            if !self.process.is_running() {
                return Some(None);
            }
            std::fs::read_to_string(path(".status")).ok()?.trim().parse::<i32>().ok().map(Some)
        });
        let Some(code) = code.inspect_err(|_| self.complain())? else {
            self.process.ensure_running()?;
            return Err(LabError::Misuse(format!("{what}: the guest has died")));
        };
        let read = |suffix: &str| {
            let path = path(suffix);
            let bytes = std::fs::read(&path).trying(|| format!("reading {}", path.display()))?;
            let _ = std::fs::remove_file(&path);
            Ok::<_, LabError>(String::from_utf8_lossy(&bytes).into_owned())
        };
        let (stdout, stderr) = (read(".out")?, read(".err")?);
        Ok(RunOutput { what, status: ExitStatus::from_raw(code << 8), stdout, stderr })
    }

    /// Writes a file in the guest; its folder is made.
    ///
    /// # Errors
    /// When the guest can't.
    pub fn write(&self, path: &str, text: &str) -> Result<()> {
        let number = self.scripts.load(Ordering::Relaxed);
        let name = format!("file-{number}");
        let outside = self.folder.join(&name);
        std::fs::write(&outside, text).trying(|| format!("writing {}", outside.display()))?;
        self.shell(&format!("mkdir -p \"$(dirname {path})\" && cp /mnt/{name} {path}"))?;
        let _ = std::fs::remove_file(&outside);
        Ok(())
    }

    /// Gives a card its addresses.
    fn set_up(&self, number: usize, interface: &Interface) -> Result<()> {
        let device = Self::device(number);
        let mut script = format!("set -e\nip link set {device} up\n");
        // As in every host of the lab.
        for family in ["ipv4", "ipv6"] {
            script.push_str(&format!("echo 1 >/proc/sys/net/{family}/conf/all/forwarding\n"));
        }
        for which in ["all", "default", &device] {
            script.push_str(&format!("echo 0 >/proc/sys/net/ipv4/conf/{which}/rp_filter\n"));
            script.push_str(&format!("echo 0 >/proc/sys/net/ipv6/conf/{which}/accept_ra\n"));
        }
        if let Some(v4) = interface.v4 {
            script.push_str(&format!("ip address add {v4}/24 dev {device}\n"));
        }
        if let Some(v6) = interface.v6 {
            script.push_str(&format!("ip address add {v6}/64 dev {device} nodad\n"));
        }
        self.shell(&script).map(drop)
    }

    #[expect(clippy::print_stderr, reason = "a failing test shows what the guest said")]
    fn complain(&self) {
        eprintln!("--- the end of the console of the guest {}:\n{}", self.name, self.process.log_tail(40));
    }
}

/// The host's kernel has nothing to say on an interface any more; it only passes frames.
fn hand_over(host: &Host, interface: &Interface) -> Result<()> {
    host.sysctl(&format!("net.ipv6.conf.{}.disable_ipv6", interface.name), "1")?;
    host.sysctl("net.ipv4.ip_forward", "0")?;
    if let Some(v4) = interface.v4 {
        let network = ipnet::Ipv4Net::new_assert(v4, 24);
        host.remove_address(&interface.name, IpNet::V4(network))?;
    }
    Ok(())
}

/// A card of the guest whose cable is a packet socket on the host's interface. Trains of packets pass whole.
fn network_card(number: usize, interface: &Interface) -> String {
    let mac = interface.mac.map(|octet| format!("{octet:02x}")).join(":");
    format!("vec{number}:transport=raw,ifname={},mac={mac},depth=128,gro=1", interface.name)
}
