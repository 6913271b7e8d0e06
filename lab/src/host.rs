//! A host of a world: a network namespace with a name.

use std::net::IpAddr;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use ipnet::IpNet;

use crate::error::{LabError, Result, Trying};
use crate::interface::{add_address, index_of};
use crate::namespace::Namespace;
use crate::netlink::{LinkChange, Netlink};
use crate::process::{Process, RunOutput};
use crate::root::Root;
use crate::spawner::Spawner;

/// What every host starts with. Duplicate address detection would hold back the first second of everything, and
/// hosts forward with whatever paths the test builds.
const SYSCTLS: &[(&str, &str)] = &[
    ("net.ipv4.ip_forward", "1"),
    ("net.ipv4.conf.all.rp_filter", "0"),
    ("net.ipv4.conf.default.rp_filter", "0"),
    ("net.ipv6.conf.all.forwarding", "1"),
    ("net.ipv6.conf.default.forwarding", "1"),
    ("net.ipv6.conf.all.accept_dad", "0"),
    ("net.ipv6.conf.default.accept_dad", "0"),
    ("net.ipv6.conf.all.accept_ra", "0"),
    ("net.ipv6.conf.default.accept_ra", "0"),
    ("net.ipv6.conf.all.router_solicitations", "0"),
    ("net.ipv6.conf.default.router_solicitations", "0"),
];

/// A host; clones are the same host.
#[derive(Debug, Clone)]
pub struct Host {
    inner: Arc<HostInner>,
}

#[derive(Debug)]
struct HostInner {
    name: String,
    namespace: Namespace,
    spawner: Arc<Spawner>,
    interfaces: AtomicU32,
}

impl AsRef<str> for Host {
    fn as_ref(&self) -> &str {
        self.name()
    }
}

impl Host {
    pub(crate) fn create(name: &str, spawner: Arc<Spawner>) -> Result<Self> {
        let namespace = Namespace::create()?;
        let inner = HostInner { name: name.to_owned(), namespace, spawner, interfaces: AtomicU32::new(0) };
        let host = Self { inner: Arc::new(inner) };
        for (name, value) in SYSCTLS {
            host.sysctl(name, value)?;
        }
        host.set_up("lo", true)?;
        Ok(host)
    }

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
        self.inner.spawner.spawn(self, None, command)
    }

    /// Like [`Host::spawn`], with another root file system or private folders.
    ///
    /// # Errors
    /// When the root can't be entered or the program can't be started.
    pub fn spawn_in(&self, root: &Root, command: Command) -> Result<Process> {
        self.inner.spawner.spawn(self, Some(root), command)
    }

    /// Runs a program in this host to its end and returns what it printed, whatever its exit status.
    ///
    /// # Errors
    /// When it can't be started or is not done in time (then it is killed).
    pub fn run(&self, command: Command, limit: Duration) -> Result<RunOutput> {
        self.inner.spawner.run(self, None, command, limit)
    }

    /// Like [`Host::run`], with another root file system or private folders.
    ///
    /// # Errors
    /// As [`Host::run`], or when the root can't be entered.
    pub fn run_in(&self, root: &Root, command: Command, limit: Duration) -> Result<RunOutput> {
        self.inner.spawner.run(self, Some(root), command, limit)
    }

    /// Runs code in this host on a thread of its own.
    ///
    /// # Errors
    /// When the thread can't be started or can't enter the host.
    pub fn thread<T: Send + 'static>(
        &self,
        name: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<JoinHandle<T>> {
        // Whether the thread got inside is known before this function returns, so that its work can't fail to start.
        let (entered, answer) = std::sync::mpsc::sync_channel(1);
        let host = self.clone();
        let body = move || {
            let outcome = host.namespace().enter();
            let outside = outcome.is_err();
            let _ = entered.send(outcome);
            if outside {
                // Ends this thread without a message: the caller gets the error.
                std::panic::resume_unwind(Box::new("outside"));
            }
            work()
        };
        let thread = Builder::new().name(format!("{}/{name}", self.name())).spawn(body);
        let thread = thread.trying(|| format!("starting the thread {name}"))?;
        answer.recv().unwrap_or_else(|_| Err(LabError::Misuse("the thread died at birth".into())))?;
        Ok(thread)
    }

    /// Runs code in this host and waits for it; sockets that it opens and returns stay in the host.
    ///
    /// # Errors
    /// When the thread can't be started or can't enter the host.
    ///
    /// # Panics
    /// When the code panics.
    pub fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T> {
        std::thread::scope(|scope| {
            let visit = || {
                self.namespace().enter()?;
                Ok(work())
            };
            let thread = Builder::new().name(self.name().to_owned()).spawn_scoped(scope, visit);
            let thread = thread.trying(|| "starting a thread".into())?;
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Adds an address to an interface (`lo` too), without duplicate address detection.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn add_address(&self, interface: &str, address: IpNet) -> Result<()> {
        self.with_netlink(|netlink| add_address(netlink, interface, address))
    }

    /// Removes an address from an interface, and with the last one of a network the route to that network.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn remove_address(&self, interface: &str, address: IpNet) -> Result<()> {
        self.with_netlink(|netlink| netlink.remove_address(index_of(interface)?, address))
    }

    /// Adds or replaces a route in the main table.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn add_route(&self, destination: IpNet, via: IpAddr) -> Result<()> {
        self.with_netlink(|netlink| netlink.add_route(destination, via))
    }

    /// Removes a route from the main table.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn remove_route(&self, destination: IpNet) -> Result<()> {
        self.with_netlink(|netlink| netlink.remove_route(destination))
    }

    /// Sets an interface up or down.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn set_up(&self, interface: &str, up: bool) -> Result<()> {
        let change = LinkChange { up: Some(up), ..LinkChange::default() };
        self.with_netlink(|netlink| netlink.change_link(index_of(interface)?, change))
    }

    /// Sets the MTU of an interface.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn set_mtu(&self, interface: &str, mtu: u32) -> Result<()> {
        let change = LinkChange { mtu: Some(mtu), ..LinkChange::default() };
        self.with_netlink(|netlink| netlink.change_link(index_of(interface)?, change))
    }

    /// Writes a value below `/proc/sys`, for example `net.ipv4.ip_forward`.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn sysctl(&self, name: &str, value: &str) -> Result<()> {
        // The kernel shows each thread the values of its own network namespace.
        let path = format!("/proc/sys/{}", name.replace('.', "/"));
        self.within(|| std::fs::write(&path, value))?
            .trying(|| format!("setting {name} to {value} in {}", self.name()))
    }

    /// The name for the next Ethernet interface: `eth0`, `eth1` and so on.
    pub(crate) fn next_interface_name(&self) -> String {
        format!("eth{}", self.inner.interfaces.fetch_add(1, Ordering::Relaxed))
    }

    fn with_netlink<T: Send>(&self, work: impl FnOnce(&mut Netlink) -> Result<T> + Send) -> Result<T> {
        self.within(|| work(&mut Netlink::open()?))?
    }
}
