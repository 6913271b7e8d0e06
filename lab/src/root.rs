//! A file system of its own for a program: a foreign daemon with its own libraries and its own `/run`.
//!
//! Everything happens in a mount namespace that only the program is in, so nothing is left to unmount.

use std::ffi::{CStr, CString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use crate::error::{LabError, Result};

/// Where a program finds its files.
#[derive(Debug, Clone)]
pub struct Root {
    path: PathBuf,
    /// Empty folders that the program has for itself.
    private: Vec<PathBuf>,
    /// Folders of this machine, and where the program sees them.
    shared: Vec<(PathBuf, PathBuf)>,
}

impl Root {
    /// The root at `path`, with `/dev`, `/proc` and `/sys` of this machine; `/` is the machine's own root.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), private: Vec::new(), shared: Vec::new() }
    }

    /// Puts an empty folder in memory where the program sees `folder` (which exists): for example `/run`, so that
    /// several daemons of one kind don't meet there.
    #[must_use]
    pub fn private(mut self, folder: impl Into<PathBuf>) -> Self {
        self.private.push(folder.into());
        self
    }

    /// Shows the program a folder of this machine; `inside` is created if need be.
    #[must_use]
    pub fn share(mut self, folder: impl Into<PathBuf>, inside: impl Into<PathBuf>) -> Self {
        self.shared.push((folder.into(), inside.into()));
        self
    }

    /// Everything that the child has to do, as arguments for system calls.
    pub(crate) fn prepare(&self) -> Result<Entry> {
        let is_other = self.path != Path::new("/");
        let mut mounts = Vec::new();
        if is_other {
            for folder in ["/dev", "/proc", "/sys"] {
                mounts.push(self.share_mount(Path::new(folder), Path::new(folder))?);
            }
        }
        for folder in &self.private {
            let target = self.outside(folder)?;
            mounts.push(Mount { source: target.clone(), target, folders: Vec::new(), is_tmpfs: true });
        }
        for (folder, inside) in &self.shared {
            mounts.push(self.share_mount(folder, inside)?);
        }
        Ok(Entry { mounts, root: is_other.then(|| text(&self.path)).transpose()? })
    }

    fn share_mount(&self, folder: &Path, inside: &Path) -> Result<Mount> {
        let relative = relative(inside)?;
        let ancestors: Vec<_> = relative.ancestors().filter(|path| !path.as_os_str().is_empty()).collect();
        let folders = ancestors.into_iter().rev().map(|path| text(&self.path.join(path)));
        Ok(Mount {
            source: text(folder)?,
            target: self.outside(inside)?,
            folders: folders.collect::<Result<_>>()?,
            is_tmpfs: false,
        })
    }

    /// Where a folder of the program is for us.
    fn outside(&self, inside: &Path) -> Result<CString> {
        text(&self.path.join(relative(inside)?))
    }
}

/// What a child does between fork and exec to enter a root.
#[derive(Debug)]
pub(crate) struct Entry {
    mounts: Vec<Mount>,
    root: Option<CString>,
}

#[derive(Debug)]
struct Mount {
    source: CString,
    target: CString,
    /// To create first, outermost first.
    folders: Vec<CString>,
    is_tmpfs: bool,
}

impl Entry {
    /// Enters. Makes only system calls and allocates nothing, since it runs in a forked child.
    pub(crate) fn enter(&self) -> io::Result<()> {
        // SAFETY: a system call with a number.
        check(unsafe { libc::unshare(libc::CLONE_NEWNS) })?;
        // What is mounted here must not appear outside.
        mount(c"none", c"/", None, libc::MS_REC | libc::MS_PRIVATE)?;
        for step in &self.mounts {
            for folder in &step.folders {
                // SAFETY: a path that ends in zero. That it exists already is the common case; if it is missing
                // after this, the mount fails and says so.
                unsafe { libc::mkdir(folder.as_ptr(), 0o755) };
            }
            match step.is_tmpfs {
                true => mount(&step.source, &step.target, Some(c"tmpfs"), 0)?,
                false => mount(&step.source, &step.target, None, libc::MS_BIND | libc::MS_REC)?,
            }
        }
        let Some(root) = &self.root else { return Ok(()) };
        // SAFETY: two paths that end in zero.
        unsafe {
            check(libc::chroot(root.as_ptr()))?;
            check(libc::chdir(c"/".as_ptr()))
        }
    }
}

fn mount(source: &CStr, target: &CStr, kind: Option<&CStr>, flags: libc::c_ulong) -> io::Result<()> {
    let kind = kind.map_or(std::ptr::null(), CStr::as_ptr);
    // SAFETY: the strings end in zero or are absent; no data is passed.
    check(unsafe { libc::mount(source.as_ptr(), target.as_ptr(), kind, flags, std::ptr::null()) })
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// A path of the program without its leading slash; it must not lead out of the root.
fn relative(inside: &Path) -> Result<PathBuf> {
    let is_plain = |component: &Component<'_>| matches!(component, Component::Normal(_));
    let path: PathBuf =
        inside.components().skip_while(|component| *component == Component::RootDir).collect();
    if !path.as_os_str().is_empty() && path.components().all(|component| is_plain(&component)) {
        return Ok(path);
    }
    Err(LabError::Misuse(format!("{} is no folder inside a root", inside.display())))
}

fn text(path: &Path) -> Result<CString> {
    CString::new(path.as_os_str().as_bytes())
        .map_err(|_| LabError::Misuse(format!("{} holds a zero byte", path.display())))
}

#[cfg(test)]
mod tests {
    use super::Root;

    #[test]
    fn folders_stay_inside() {
        let entry = Root::new("/srv/peer").private("/run").share("/tmp/x", "/etc/peer.d").prepare().unwrap();
        let targets: Vec<_> = entry.mounts.iter().map(|mount| mount.target.to_str().unwrap()).collect();
        let base = ["/srv/peer/dev", "/srv/peer/proc", "/srv/peer/sys"];
        assert_eq!(targets, [base.as_slice(), &["/srv/peer/run", "/srv/peer/etc/peer.d"]].concat());
        let folders: Vec<_> = entry.mounts[4].folders.iter().map(|folder| folder.to_str().unwrap()).collect();
        assert_eq!(folders, ["/srv/peer/etc", "/srv/peer/etc/peer.d"]);
        assert!(Root::new("/srv/peer").private("/../etc").prepare().is_err());
        assert!(Root::new("/srv/peer").private("/").prepare().is_err());
    }

    #[test]
    fn the_machines_own_root_needs_no_devices() {
        let entry = Root::new("/").private("/run").prepare().unwrap();
        assert_eq!(entry.mounts.len(), 1);
        assert!(entry.root.is_none());
    }
}
