//! A host of a world: a network namespace with a name.

use std::net::IpAddr;
use std::process::Command;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use ipnet::IpNet;

use crate::error::Result;
use crate::namespace::Namespace;
use crate::process::{Process, RunOutput};

/// A host; clones are the same host.
#[derive(Debug, Clone)]
pub struct Host {
    inner: Arc<HostInner>,
}

#[derive(Debug)]
struct HostInner {
    name: String,
    namespace: Namespace,
}

impl AsRef<str> for Host {
    fn as_ref(&self) -> &str {
        self.name()
    }
}

impl Host {
    /// The name it was created with.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Its network namespace.
    pub fn namespace(&self) -> &Namespace {
        &self.inner.namespace
    }

    /// Starts a program in this host. Its output goes to a log file, see [`Process::log`].
    ///
    /// # Errors
    /// When it can't be started.
    pub fn spawn(&self, command: Command) -> Result<Process> {
        let _ = command;
        Err(crate::LabError::Misuse("not built yet".into()))
    }

    /// Runs a program in this host to its end and returns what it printed, whatever its exit status.
    ///
    /// # Errors
    /// When it can't be started or is not done in time (then it is killed).
    pub fn run(&self, command: Command, limit: Duration) -> Result<RunOutput> {
        let _ = (command, limit);
        Err(crate::LabError::Misuse("not built yet".into()))
    }

    /// Runs code in this host on a thread of its own.
    ///
    /// # Errors
    /// When the thread can't be started.
    pub fn thread<T: Send + 'static>(
        &self,
        name: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<JoinHandle<T>> {
        let _ = (name, work);
        Err(crate::LabError::Misuse("not built yet".into()))
    }

    /// Runs code in this host and waits for it; sockets that it opens and returns stay in the host.
    ///
    /// # Errors
    /// When the thread can't be started.
    pub fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T> {
        let _ = work;
        Err(crate::LabError::Misuse("not built yet".into()))
    }

    /// Adds an address to an interface (`lo` too), without duplicate address detection.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn add_address(&self, interface: &str, address: IpNet) -> Result<()> {
        let _ = (interface, address);
        Err(crate::LabError::Misuse("not built yet".into()))
    }

    /// Adds or replaces a route in the main table.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn add_route(&self, destination: IpNet, via: IpAddr) -> Result<()> {
        let _ = (destination, via);
        Err(crate::LabError::Misuse("not built yet".into()))
    }

    /// Removes a route from the main table.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn remove_route(&self, destination: IpNet) -> Result<()> {
        let _ = destination;
        Err(crate::LabError::Misuse("not built yet".into()))
    }

    /// Sets an interface up or down.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn set_up(&self, interface: &str, up: bool) -> Result<()> {
        let _ = (interface, up);
        Err(crate::LabError::Misuse("not built yet".into()))
    }

    /// Sets the MTU of an interface.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn set_mtu(&self, interface: &str, mtu: u32) -> Result<()> {
        let _ = (interface, mtu);
        Err(crate::LabError::Misuse("not built yet".into()))
    }

    /// Writes a value below `/proc/sys`, for example `net.ipv4.ip_forward`.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn sysctl(&self, name: &str, value: &str) -> Result<()> {
        let _ = (name, value);
        Err(crate::LabError::Misuse("not built yet".into()))
    }
}
