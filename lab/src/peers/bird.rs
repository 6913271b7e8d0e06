//! BIRD as a Babel speaker.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write as _};
use std::net::Ipv6Addr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use ipnet::IpNet;

use super::babel::{BabelMac, BabelNeighbour, BabelRoute, BabelSetup, RXCOST, milliseconds};
use crate::error::{LabError, Result, Trying};
use crate::host::Host;
use crate::process::Process;
use crate::root::Root;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// A running BIRD.
#[derive(Debug)]
pub struct Bird {
    process: Process,
    socket: PathBuf,
}

impl Bird {
    /// Starts it in a host. Its files go to `directory`, which the root must share.
    ///
    /// # Errors
    /// When a file can't be written or the program can't be started.
    pub fn start(host: &Host, root: &Root, directory: &Path, setup: &BabelSetup) -> Result<Self> {
        let path = |name: &str| directory.join(format!("bird-{}.{name}", host.name()));
        let (config, socket) = (path("conf"), path("ctl"));
        std::fs::write(&config, configuration(setup)).trying(|| format!("writing {}", config.display()))?;
        let mut command = Command::new("bird");
        command.arg("-f").arg("-c").arg(&config).arg("-s").arg(&socket).arg("-P").arg(path("pid"));
        Ok(Self { process: host.spawn_in(root, command)?, socket })
    }

    /// The program.
    pub const fn process(&self) -> &Process {
        &self.process
    }

    /// The routes that Babel has chosen.
    ///
    /// # Errors
    /// When the daemon does not answer.
    pub fn selected(&self) -> Result<Vec<BabelRoute>> {
        Ok(read_routes(&self.ask("show route protocol mesh primary")?))
    }

    /// Its neighbours.
    ///
    /// # Errors
    /// When the daemon does not answer.
    pub fn neighbours(&self) -> Result<Vec<BabelNeighbour>> {
        Ok(read_neighbours(&self.ask("show babel neighbors")?))
    }

    /// Stops to announce [`BabelSetup::announce`], or starts again.
    ///
    /// # Errors
    /// When the daemon does not answer.
    pub fn set_announcing(&self, on: bool) -> Result<()> {
        let verb = if on { "enable" } else { "disable" };
        for protocol in ["extra4", "extra6"] {
            self.ask(&format!("{verb} {protocol}"))?;
        }
        Ok(())
    }

    /// The lines of the answer to a command, without their codes.
    ///
    /// # Errors
    /// When the daemon does not answer.
    pub fn ask(&self, command: &str) -> Result<Vec<String>> {
        self.process.ensure_running()?;
        let trouble = || format!("asking BIRD: {command}");
        let mut stream = UnixStream::connect(&self.socket).trying(trouble)?;
        stream.set_read_timeout(Some(PATIENCE)).trying(trouble)?;
        writeln!(stream, "{command}").trying(trouble)?;
        let mut lines = Vec::new();
        let mut greeted = false;
        for line in BufReader::new(stream).lines() {
            let line = line.trying(trouble)?;
            match line.split_at_checked(5) {
                // A space after the code ends an answer; the first one is the greeting.
                Some((code, rest)) if is_code(code) => {
                    if greeted && !rest.is_empty() {
                        lines.push(rest.to_owned());
                    }
                    if code.ends_with(' ') && std::mem::replace(&mut greeted, true) {
                        return Ok(lines);
                    }
                }
                _ => lines.push(line.strip_prefix(' ').unwrap_or(&line).to_owned()),
            }
        }
        Err(LabError::Misuse(format!("BIRD hung up on `{command}`")))
    }
}

fn is_code(text: &str) -> bool {
    let (digits, separator) = text.split_at(4);
    digits.bytes().all(|octet| octet.is_ascii_digit()) && [" ", "-"].contains(&separator)
}

/// The configuration file.
fn configuration(setup: &BabelSetup) -> String {
    let mut text = String::from(
        "log stderr all;\nrouter id 192.0.2.1;\nprotocol device { scan time 1; }\n\
         protocol direct { ipv4; ipv6; interface \"lo\"; }\n\
         protocol kernel k4 { ipv4 { export all; }; }\nprotocol kernel k6 { ipv6 { export all; }; }\n",
    );
    for (family, is_v4) in [("4", true), ("6", false)] {
        let _ = writeln!(text, "protocol static extra{family} {{\n  ipv{family};");
        for prefix in setup.announce.iter().filter(|prefix| prefix.addr().is_ipv4() == is_v4) {
            let _ = writeln!(text, "  route {prefix} unreachable;");
        }
        text.push_str("}\n");
    }
    text.push_str("protocol babel mesh {\n  randomize router id yes;\n");
    for family in ["4", "6"] {
        let _ = writeln!(
            text,
            "  ipv{family} {{ import all; export where source = RTS_DEVICE || source = RTS_STATIC || \
             source = RTS_BABEL; }};"
        );
    }
    for interface in &setup.interfaces {
        let _ = writeln!(
            text,
            "  interface \"{interface}\" {{ type tunnel; rxcost {RXCOST}; hello interval 1 s; update interval 4 s;\n    \
             send timestamps yes; rtt min 1 ms; rtt max 1001 ms; rtt cost 4000; rtt decay 128;\n    \
             extended next hop yes; {} }};",
            setup.mac.map_or_else(String::new, authentication)
        );
    }
    text.push_str("}\n");
    text
}

fn authentication(mac: BabelMac) -> String {
    let algorithm = match mac {
        BabelMac::HmacSha256(_) => "hmac sha256",
        BabelMac::Blake2s(_) => "blake2s128",
    };
    format!("authentication mac; password {} {{ algorithm {algorithm}; }};", mac.hex(":"))
}

/// The neighbours in an answer.
pub(super) fn read_neighbours(lines: &[String]) -> Vec<BabelNeighbour> {
    lines.iter().filter_map(|line| parse_neighbour(line)).collect()
}

/// `IP address  Interface  Metric Routes Hellos Expires Auth RTT (ms)`.
fn parse_neighbour(line: &str) -> Option<BabelNeighbour> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [address, interface, cost, ..] = words[..] else { return None };
    Some(BabelNeighbour {
        address: address.parse().ok()?,
        interface: interface.to_owned(),
        cost: cost.parse().ok()?,
        rtt: words.last().and_then(|rtt| milliseconds(rtt)),
    })
}

/// The routes in an answer: a line for each, then one for its next hop.
pub(super) fn read_routes(lines: &[String]) -> Vec<BabelRoute> {
    let mut routes = Vec::new();
    let mut head: Option<(IpNet, u32)> = None;
    for line in lines {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let ["via", next_hop, "on", interface, ..] = words[..] {
            if let (Some((prefix, metric)), Ok(next_hop)) = (head.take(), next_hop.parse::<Ipv6Addr>()) {
                routes.push(BabelRoute { prefix, next_hop, interface: interface.to_owned(), metric });
            }
        } else if let Some(prefix) = words.first().and_then(|word| word.parse().ok()) {
            head = metric_of(line).map(|metric| (prefix, metric));
        }
    }
    routes
}

/// The second number in `(130/166)`.
fn metric_of(line: &str) -> Option<u32> {
    let (_, rest) = line.split_once("* (")?;
    let (both, _) = rest.split_once(')')?;
    both.split_once('/')?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_and_neighbours_are_read() {
        let text = "Table master4:\n\
            10.2.0.1/32          unicast [mesh 12:00:00.123] * (130/166) [00:00:00:00:0a:02:00:01]\n\
            \tvia fe80::b on eth0\n\
            10.3.0.1/32          unreachable [mesh 12:00:00.123] * (130/65535)\n";
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let route = BabelRoute {
            prefix: "10.2.0.1/32".parse().unwrap(),
            next_hop: "fe80::b".parse().unwrap(),
            interface: "eth0".into(),
            metric: 166,
        };
        assert_eq!(read_routes(&lines), vec![route]);
        let line = "fe80::b                   eth0         166     2     16    3.000  No       40.500";
        let neighbour = parse_neighbour(line).unwrap();
        assert_eq!((neighbour.cost, neighbour.rtt), (166, Some(Duration::from_micros(40_500))));
        assert!(parse_neighbour("IP address                Interface  Metric Routes").is_none());
    }

    #[test]
    fn codes_are_told_from_text() {
        assert!(is_code("1007-") && is_code("0000 "));
        assert!(!is_code("10.20") && !is_code(" \tvia"));
    }
}
