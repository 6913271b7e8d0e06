//! Tells systemd how the daemon is doing: `sd_notify(3)` without the library.
//!
//! Without `NOTIFY_SOCKET` in the environment (a terminal, a container) every call does nothing.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// The way to the service manager, if there is one.
#[derive(Debug)]
pub struct Notifier {
    socket: Option<(UnixDatagram, SocketAddr)>,
    watchdog: Option<Duration>,
}

impl Notifier {
    /// From the environment that the service manager set.
    pub fn from_environment() -> Self {
        let variable = |name: &str| std::env::var(name).ok();
        let ours = variable("WATCHDOG_PID").is_none_or(|pid| pid == std::process::id().to_string());
        let watchdog = variable("WATCHDOG_USEC").filter(|_| ours);
        Self::new(variable("NOTIFY_SOCKET").as_deref(), watchdog.as_deref())
    }

    fn new(address: Option<&str>, watchdog: Option<&str>) -> Self {
        let socket = address.and_then(|address| {
            let address = match address.strip_prefix('@') {
                Some(name) => SocketAddr::from_abstract_name(name),
                None => SocketAddr::from_pathname(address),
            };
            Some((UnixDatagram::unbound().ok()?, address.ok()?))
        });
        let watchdog = watchdog.and_then(|microseconds| microseconds.parse().ok()).map(Duration::from_micros);
        Self { socket, watchdog: watchdog.filter(|_| address.is_some()) }
    }

    /// How often [`Self::alive`] must be called at least: half of what the service manager tolerates.
    pub fn watchdog_interval(&self) -> Option<Duration> {
        self.watchdog.map(|tolerated| tolerated / 2)
    }

    /// Start-up or reload is complete; `status` is one line for `systemctl status`.
    pub fn ready(&self, status: &str) {
        self.tell(&format!("READY=1\nSTATUS={}", one_line(status)));
    }

    /// A reload begins. `monotonic` is CLOCK_MONOTONIC: newer systemd ends a service that leaves it out.
    pub fn reloading(&self, monotonic: Duration) {
        self.tell(&format!("RELOADING=1\nMONOTONIC_USEC={}", monotonic.as_micros()));
    }

    /// One line for `systemctl status`.
    pub fn status(&self, status: &str) {
        self.tell(&format!("STATUS={}", one_line(status)));
    }

    /// The daemon is ending.
    pub fn stopping(&self) {
        self.tell("STOPPING=1");
    }

    /// The main loop still turns.
    pub fn alive(&self) {
        self.tell("WATCHDOG=1");
    }

    fn tell(&self, message: &str) {
        if let Some((socket, address)) = &self.socket {
            // Nobody could be told about a failure.
            let _: io::Result<usize> = socket.send_to_addr(message.as_bytes(), address);
        }
    }
}

fn one_line(text: &str) -> String {
    text.replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listener(address: &SocketAddr) -> UnixDatagram {
        let socket = UnixDatagram::bind_addr(address).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        socket
    }

    fn received(socket: &UnixDatagram) -> String {
        let mut buffer = [0; 256];
        let length = socket.recv(&mut buffer).unwrap();
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    }

    #[test]
    fn the_service_manager_hears_each_state() {
        let name = format!("viamesh-notify-{}", std::process::id());
        let socket = listener(&SocketAddr::from_abstract_name(&name).unwrap());
        let notifier = Notifier::new(Some(&format!("@{name}")), Some("3000000"));
        assert_eq!(notifier.watchdog_interval(), Some(Duration::from_millis(1500)));
        notifier.ready("4 peers\nup");
        assert_eq!(received(&socket), "READY=1\nSTATUS=4 peers up");
        notifier.reloading(Duration::from_millis(5));
        assert_eq!(received(&socket), "RELOADING=1\nMONOTONIC_USEC=5000");
        notifier.alive();
        assert_eq!(received(&socket), "WATCHDOG=1");
        notifier.stopping();
        assert_eq!(received(&socket), "STOPPING=1");
    }

    #[test]
    fn a_socket_in_the_file_system_works_too() {
        let path = std::env::temp_dir().join(format!("viamesh-notify-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let socket = listener(&SocketAddr::from_pathname(&path).unwrap());
        Notifier::new(path.to_str(), None).status("busy");
        assert_eq!(received(&socket), "STATUS=busy");
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn without_a_service_manager_nothing_happens() {
        let notifier = Notifier::new(None, Some("3000000"));
        assert_eq!(notifier.watchdog_interval(), None);
        notifier.ready("");
        Notifier::new(Some("/nowhere/notify"), None).ready("");
    }
}
