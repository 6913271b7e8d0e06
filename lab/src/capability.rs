//! What this process may do: build worlds at once, or only inside a user namespace, or not at all.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};

use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getegid, geteuid};

use crate::error::{LabError, Result, Trying};
use crate::tap::{trial_request, try_device};

/// What this process may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Capability {
    /// It may build worlds now.
    Ready,
    /// It may after [`enter_user_namespace`].
    UserNamespace,
    /// It may not.
    Impossible {
        /// What the kernel refused.
        reason: String,
        /// What a person should run instead.
        advice: String,
    },
}

impl Capability {
    /// Tries, in a child process that leaves nothing behind.
    pub fn probe() -> Self {
        let refusal = match attempt(false) {
            Ok(()) => return Self::Ready,
            Err(refusal) => refusal,
        };
        match attempt(true) {
            Ok(()) => Self::UserNamespace,
            // To root, the way without a user namespace is the natural one; to others, the one with it.
            Err(_) if geteuid().is_root() => refusal.into_verdict(),
            Err(refusal) => refusal.into_verdict(),
        }
    }
}

/// Moves this process into a user namespace of its own, as root in it; does nothing if that is not needed.
///
/// Must be called while the process has one thread, so at the start of `main`.
///
/// # Errors
/// [`LabError::Impossible`] when the kernel refuses; the text says what to run instead.
pub fn enter_user_namespace() -> Result<()> {
    match Capability::probe() {
        Capability::Ready => Ok(()),
        Capability::UserNamespace => {
            let maps = IdMaps::of_this_user();
            unshare(CloneFlags::CLONE_NEWUSER).trying(|| {
                "creating a user namespace (possible only while the process has one thread)".into()
            })?;
            maps.write().trying(|| "mapping this user to root in the user namespace".into())
        }
        Capability::Impossible { reason, advice } => Err(LabError::Impossible(format!("{reason}\n{advice}"))),
    }
}

/// This user becomes root, nobody else exists.
struct IdMaps {
    user: String,
    group: String,
}

impl IdMaps {
    fn of_this_user() -> Self {
        Self { user: format!("0 {} 1", geteuid()), group: format!("0 {} 1", getegid()) }
    }

    /// Allocates nothing, since it also runs in a forked child.
    fn write(&self) -> io::Result<()> {
        let write = |path: &std::ffi::CStr, text: &[u8]| {
            // SAFETY: a path that ends in zero and a flag.
            let fd = unsafe { libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC) };
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            // SAFETY: the descriptor is open and ours alone; the pointer is valid for the length.
            let written = unsafe { libc::write(fd, text.as_ptr().cast(), text.len()) };
            let outcome = if written < 0 { Err(io::Error::last_os_error()) } else { Ok(()) };
            // SAFETY: the descriptor is open and not used afterwards.
            unsafe { libc::close(fd) };
            outcome
        };
        write(c"/proc/self/setgroups", b"deny")?;
        write(c"/proc/self/uid_map", self.user.as_bytes())?;
        write(c"/proc/self/gid_map", self.group.as_bytes())
    }
}

/// The steps of building a world, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    UserNamespace = 1,
    Mapping,
    NetworkNamespace,
    OpenTun,
    CreateTap,
}

struct Refusal {
    stage: Stage,
    error: io::Error,
}

impl Refusal {
    fn into_verdict(self) -> Capability {
        let what = match self.stage {
            Stage::UserNamespace => "create a user namespace",
            Stage::Mapping => "become root in a user namespace",
            Stage::NetworkNamespace => "create a network namespace",
            Stage::OpenTun => "open /dev/net/tun",
            Stage::CreateTap => "create a TAP device",
        };
        let advice = match (self.stage, self.error.raw_os_error()) {
            (Stage::OpenTun, Some(libc::ENOENT | libc::ENODEV | libc::ENXIO)) => {
                "Load the driver (`modprobe tun`), or in a container give it the device: `--device /dev/net/tun`."
            }
            (Stage::OpenTun, _) => {
                "Run it as root (`sudo -E …`), or let everybody open the device: `sudo chmod 666 /dev/net/tun`."
            }
            _ if geteuid().is_root() => {
                "This root lacks capabilities. In a container: `--cap-add SYS_ADMIN --cap-add NET_ADMIN \
                 --cap-add NET_RAW --device /dev/net/tun`, or `--privileged`."
            }
            _ => {
                "Run it as root (`sudo -E …`), or allow user namespaces: `sudo sysctl \
                 kernel.unprivileged_userns_clone=1` (Debian), `sudo sysctl \
                 kernel.apparmor_restrict_unprivileged_userns=0` (Ubuntu)."
            }
        };
        Capability::Impossible {
            reason: format!("This process can't {what}: {}.", self.error),
            advice: advice.into(),
        }
    }
}

/// Tries all the steps in a child process.
fn attempt(user_namespace: bool) -> Result<(), Refusal> {
    let failed = |error: io::Error| Refusal { stage: Stage::NetworkNamespace, error };
    let (reader, writer) = nix::unistd::pipe().map_err(|errno| failed(errno.into()))?;
    let maps = IdMaps::of_this_user();
    let request = trial_request();
    // SAFETY: the child makes only system calls and then leaves by _exit, as a child of a process that may have
    // threads must.
    match unsafe { libc::fork() } {
        -1 => Err(failed(io::Error::last_os_error())),
        0 => {
            let outcome = try_stages(user_namespace.then_some(&maps), &request);
            report_and_exit(&writer, outcome)
        }
        child => {
            drop(writer);
            let verdict = read_verdict(reader);
            // SAFETY: a child of ours that nobody else waits for; no status is asked for.
            unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
            verdict
        }
    }
}

fn try_stages(maps: Option<&IdMaps>, request: &libc::ifreq) -> Result<(), (Stage, i32)> {
    let last = || io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO);
    let flag = |stage, errno: nix::errno::Errno| (stage, errno as i32);
    if let Some(maps) = maps {
        unshare(CloneFlags::CLONE_NEWUSER).map_err(|errno| flag(Stage::UserNamespace, errno))?;
        maps.write().map_err(|error| (Stage::Mapping, error.raw_os_error().unwrap_or(libc::EIO)))?;
    }
    unshare(CloneFlags::CLONE_NEWNET).map_err(|errno| flag(Stage::NetworkNamespace, errno))?;
    // SAFETY: a path that ends in zero and a flag; the descriptor dies with the process.
    let tun = unsafe { libc::open(c"/dev/net/tun".as_ptr(), libc::O_RDWR) };
    if tun < 0 {
        return Err((Stage::OpenTun, last()));
    }
    try_device(tun, request).map(drop).map_err(|errno| flag(Stage::CreateTap, errno))
}

/// Writes one byte for the stage (0: all went well) and four for the error.
fn report_and_exit(writer: &OwnedFd, outcome: Result<(), (Stage, i32)>) -> ! {
    let (stage, errno) = outcome.err().map_or((0, 0), |(stage, errno)| (stage as u8, errno));
    let mut bytes = [stage; 5];
    bytes[1..].copy_from_slice(&errno.to_ne_bytes());
    // SAFETY: the descriptor is open, the pointer valid for five bytes; _exit runs nothing of the parent's.
    unsafe {
        libc::write(writer.as_raw_fd(), bytes.as_ptr().cast(), bytes.len());
        libc::_exit(0)
    }
}

fn read_verdict(reader: OwnedFd) -> Result<(), Refusal> {
    let mut bytes = [0; 5];
    let outcome = File::from(reader).read_exact(&mut bytes);
    let [stage, errno @ ..] = bytes;
    let error = match outcome {
        Ok(()) => io::Error::from_raw_os_error(i32::from_ne_bytes(errno)),
        Err(error) => return Err(Refusal { stage: Stage::NetworkNamespace, error }),
    };
    let stages =
        [Stage::UserNamespace, Stage::Mapping, Stage::NetworkNamespace, Stage::OpenTun, Stage::CreateTap];
    match stages.into_iter().find(|known| *known as u8 == stage) {
        None => Ok(()),
        Some(stage) => Err(Refusal { stage, error }),
    }
}
