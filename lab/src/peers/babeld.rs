//! babeld, the reference implementation.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::babel::{BabelMac, BabelNeighbour, BabelRoute, BabelSetup, RXCOST, milliseconds};
use crate::error::{LabError, Result, Trying};
use crate::host::Host;
use crate::process::Process;
use crate::root::Root;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// A running babeld.
#[derive(Debug)]
pub struct Babeld {
    process: Process,
    socket: PathBuf,
}

impl Babeld {
    /// Starts it in a host. Its files go to `directory`, which the root must share. It announces the addresses of `lo`;
    /// for [`BabelSetup::announce`] put addresses there.
    ///
    /// # Errors
    /// When a file can't be written or the program can't be started.
    pub fn start(host: &Host, root: &Root, directory: &Path, setup: &BabelSetup) -> Result<Self> {
        let path = |name: &str| directory.join(format!("babeld-{}.{name}", host.name()));
        let (config, socket) = (path("conf"), path("ctl"));
        // What a killed one left; it would refuse to start.
        for old in [&socket, &path("pid")] {
            let _ = std::fs::remove_file(old);
        }
        std::fs::write(&config, configuration(setup, &socket, &path("state")))
            .trying(|| format!("writing {}", config.display()))?;
        let mut command = Command::new("babeld");
        command.arg("-I").arg(path("pid")).arg("-c").arg(&config);
        Ok(Self { process: host.spawn_in(root, command)?, socket })
    }

    /// The program.
    pub const fn process(&self) -> &Process {
        &self.process
    }

    /// The routes that it has installed.
    ///
    /// # Errors
    /// When the daemon does not answer.
    pub fn selected(&self) -> Result<Vec<BabelRoute>> {
        Ok(self.dump()?.iter().filter_map(|line| parse_route(line)).collect())
    }

    /// Its neighbours.
    ///
    /// # Errors
    /// When the daemon does not answer.
    pub fn neighbours(&self) -> Result<Vec<BabelNeighbour>> {
        Ok(self.dump()?.iter().filter_map(|line| parse_neighbour(line)).collect())
    }

    /// Everything that it tells of itself, a line for each thing.
    ///
    /// # Errors
    /// When the daemon does not answer.
    pub fn dump(&self) -> Result<Vec<String>> {
        self.process.ensure_running()?;
        let trouble = || "asking babeld".to_owned();
        let mut stream = UnixStream::connect(&self.socket).trying(trouble)?;
        stream.set_read_timeout(Some(PATIENCE)).trying(trouble)?;
        let mut answers = 0;
        writeln!(stream, "dump").trying(trouble)?;
        let mut lines = Vec::new();
        for line in BufReader::new(stream).lines() {
            let line = line.trying(trouble)?;
            // The first `ok` ends the greeting, the second one the dump.
            answers += u32::from(line == "ok");
            if answers == 2 {
                return Ok(lines);
            }
            lines.push(line);
        }
        Err(LabError::Misuse("babeld hung up".into()))
    }
}

/// The configuration file.
fn configuration(setup: &BabelSetup, socket: &Path, state: &Path) -> String {
    let mut text = String::new();
    if let Some(mac) = setup.mac {
        let algorithm = match mac {
            BabelMac::HmacSha256(_) => "hmac-sha256",
            BabelMac::Blake2s(_) => "blake2s128",
        };
        let _ = writeln!(text, "key id mesh type {algorithm} value {}", mac.hex(""));
    }
    let _ = writeln!(text, "local-path-readwrite {}\nstate-file {}", socket.display(), state.display());
    text.push_str("random-id true\nskip-kernel-setup true\n");
    let key = if setup.mac.is_some() { " key mesh" } else { "" };
    for interface in &setup.interfaces {
        let _ = writeln!(
            text,
            "interface {interface} type tunnel rxcost {RXCOST} hello-interval 1 update-interval 4 \
             enable-timestamps true rtt-decay 128 rtt-min 1 rtt-max 1001 max-rtt-penalty 4000 v4-via-v6 true{key}"
        );
    }
    text.push_str("redistribute local if lo\nredistribute local deny\n");
    text
}

/// The word after `name`.
fn field<'a>(words: &[&'a str], name: &str) -> Option<&'a str> {
    let at = words.iter().position(|word| *word == name)?;
    words.get(at + 1).copied()
}

/// `add route 55 prefix 10.2.0.1/32 from 0.0.0.0/0 installed yes id … metric 166 refmetric 0 via fe80::b if eth0`.
fn parse_route(line: &str) -> Option<BabelRoute> {
    let words: Vec<&str> = line.split_whitespace().collect();
    if words.get(..2)? != ["add", "route"] || field(&words, "installed")? != "yes" {
        return None;
    }
    Some(BabelRoute {
        prefix: field(&words, "prefix")?.parse().ok()?,
        next_hop: field(&words, "via")?.parse().ok()?,
        interface: field(&words, "if")?.to_owned(),
        metric: field(&words, "metric")?.parse().ok()?,
    })
}

/// `add neighbour 55 address fe80::b if eth0 reach ffff ureach 0000 rxcost 8 txcost 8 rtt 0.241 rttcost 0 cost 8`.
fn parse_neighbour(line: &str) -> Option<BabelNeighbour> {
    let words: Vec<&str> = line.split_whitespace().collect();
    if words.get(..2)? != ["add", "neighbour"] {
        return None;
    }
    Some(BabelNeighbour {
        address: field(&words, "address")?.parse().ok()?,
        interface: field(&words, "if")?.to_owned(),
        cost: field(&words, "cost")?.parse().ok()?,
        rtt: field(&words, "rtt").and_then(milliseconds),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dump_is_read() {
        let route = "add route 5612 prefix 10.2.0.1/32 from 0.0.0.0/0 installed yes id 02:aa:bb:ff:fe:01:02:03 metric \
                     166 refmetric 0 via fe80::b if eth0";
        let found = parse_route(route).unwrap();
        assert_eq!((found.metric, found.interface.as_str()), (166, "eth0"));
        assert!(parse_route(&route.replace("yes", "no")).is_none());
        let neighbour = "add neighbour 56 address fe80::b if eth0 reach ffff ureach 0000 rxcost 8 txcost 8 rtt 40.241 \
                         rttcost 156 cost 164";
        let found = parse_neighbour(neighbour).unwrap();
        assert_eq!((found.cost, found.rtt), (164, Some(Duration::from_micros(40_241))));
    }
}
