//! One network namespace, held by a file descriptor.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::sched::{CloneFlags, setns, unshare};

use crate::error::{LabError, Result, Trying};

/// The namespace of whichever thread opens it.
const OWN_NETWORK: &str = "/proc/thread-self/ns/net";

/// A network namespace; it lives as long as this value, a process or a device in it.
#[derive(Debug)]
pub struct Namespace {
    net: OwnedFd,
}

impl Namespace {
    /// A new namespace, with nothing but a `lo` that is down.
    pub(crate) fn create() -> Result<Self> {
        // A thread of its own, since unshare moves the thread that calls it, and the caller is to stay where it is.
        let birth = || {
            unshare(CloneFlags::CLONE_NEWNET).trying(|| "creating a network namespace".into())?;
            File::open(OWN_NETWORK).trying(|| format!("opening {OWN_NETWORK}"))
        };
        let file = std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("namespace".into()).spawn_scoped(scope, birth);
            let thread = thread.trying(|| "starting a thread".into())?;
            thread.join().unwrap_or_else(|_| Err(LabError::Misuse("the namespace thread panicked".into())))
        })?;
        Ok(Self { net: file.into() })
    }

    /// Moves the calling thread into this namespace, for good.
    ///
    /// # Errors
    /// When the kernel refuses, for want of `CAP_SYS_ADMIN`.
    pub fn enter(&self) -> Result<()> {
        setns(&self.net, CloneFlags::CLONE_NEWNET).trying(|| "entering a network namespace".into())
    }

    /// Where other processes find this namespace, as long as this process lives.
    pub fn path(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", std::process::id(), self.net.as_raw_fd()).into()
    }
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.net.as_fd()
    }
}

/// Moves the calling thread into the user and network namespaces of a process.
///
/// Entering another user namespace needs a process with one thread.
///
/// # Errors
/// When the process is gone or the kernel refuses.
pub fn enter(pid: u32) -> Result<()> {
    enter_paths(Path::new(&format!("/proc/{pid}/ns/user")), Path::new(&format!("/proc/{pid}/ns/net")))
}

/// Like [`enter`], by the paths of the two namespaces.
pub(crate) fn enter_paths(user: &Path, net: &Path) -> Result<()> {
    let open = |path: &Path| File::open(path).trying(|| format!("opening {}", path.display()));
    // Both are opened first: within the other user namespace /proc may no longer let us.
    let (user, net) = (open(user)?, open(net)?);
    // The kernel refuses to enter the user namespace that one is in already.
    if inode(&user)? != inode(&open(Path::new("/proc/self/ns/user"))?)? {
        setns(&user, CloneFlags::CLONE_NEWUSER).trying(|| "entering a user namespace".into())?;
    }
    setns(&net, CloneFlags::CLONE_NEWNET).trying(|| "entering a network namespace".into())
}

fn inode(file: &File) -> Result<u64> {
    Ok(file.metadata().trying(|| "looking at a namespace".into())?.ino())
}
