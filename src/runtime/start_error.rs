//! Why the daemon could not start, what a person can do, and with which exit code it ends.

use std::fmt;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;

/// Why the daemon could not start or go on.
#[derive(Debug)]
pub struct StartError {
    /// What was tried and why it failed.
    pub text: String,
    /// What to do about it.
    pub help: Option<String>,
    /// 1, or 77 where permission is missing.
    pub exit_code: u8,
}

impl StartError {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), help: None, exit_code: 1 }
    }

    pub(super) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    pub(super) fn tun(name: &str, error: &io::Error) -> Self {
        let text = format!("cannot create the tunnel device {name}: {error}");
        match error.kind() {
            ErrorKind::PermissionDenied => Self { exit_code: 77, ..Self::new(text) }
                .help("needs CAP_NET_ADMIN: run it as root, or `setcap cap_net_admin+ep` on the program"),
            ErrorKind::NotFound => Self::new(text)
                .help("/dev/net/tun is missing: `modprobe tun`, or give the container the device"),
            ErrorKind::ResourceBusy => {
                Self::new(text).help("another process has it: stop it, or set `kernel.tun` to another name")
            }
            _ => Self::new(text),
        }
    }

    pub(super) fn socket(bind: SocketAddr, error: &io::Error) -> Self {
        match error.kind() {
            ErrorKind::AddrInUse => {
                let owner = owner_of(bind.port());
                let text = format!("udp port {} is taken on {}{owner}", bind.port(), bind.ip());
                Self::new(text)
                    .help("stop the other program, or choose another port here and in the registry")
            }
            ErrorKind::AddrNotAvailable => Self::new(format!("{} is no address of this host", bind.ip()))
                .help("remove `address` from the endpoint, or give an address that the host has"),
            ErrorKind::PermissionDenied => {
                let text = format!("not permitted to use udp port {}: {error}", bind.port());
                Self { exit_code: 77, ..Self::new(text) }.help(
                    "ports below 1024 need CAP_NET_BIND_SERVICE, marks need CAP_NET_ADMIN: run it as root",
                )
            }
            _ => Self::new(format!("cannot open udp port {} on {}: {error}", bind.port(), bind.ip())),
        }
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for StartError {}

/// ` (pid 812, charon)` where /proc tells who has a UDP port; nothing otherwise.
fn owner_of(port: u16) -> String {
    let inodes: Vec<String> = ["/proc/net/udp", "/proc/net/udp6"]
        .iter()
        .filter_map(|path| std::fs::read_to_string(path).ok())
        .flat_map(|table| table.lines().skip(1).filter_map(|line| inode_of(line, port)).collect::<Vec<_>>())
        .collect();
    processes_with(&inodes).unwrap_or_default()
}

/// The socket's inode, if a line of /proc/net/udp is about this local port.
fn inode_of(line: &str, port: u16) -> Option<String> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let local = fields.get(1)?.rsplit(':').next()?;
    (u16::from_str_radix(local, 16).ok()? == port).then(|| fields.get(9).map(|inode| (*inode).to_owned()))?
}

fn processes_with(inodes: &[String]) -> Option<String> {
    let wanted: Vec<String> = inodes.iter().map(|inode| format!("socket:[{inode}]")).collect();
    for entry in std::fs::read_dir("/proc").ok()?.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let Ok(descriptors) = std::fs::read_dir(entry.path().join("fd")) else { continue };
        let mut links = descriptors.flatten().filter_map(|fd| std::fs::read_link(fd.path()).ok());
        if links.any(|link| wanted.iter().any(|socket| link.as_os_str() == socket.as_str())) {
            let name = std::fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
            return Some(format!(" (pid {pid}, {})", name.trim()));
        }
    }
    None
}
