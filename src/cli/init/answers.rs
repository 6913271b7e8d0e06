//! The four questions.

use std::io::{self, BufRead, IsTerminal, Write};
use std::net::IpAddr;

use super::super::arguments::Init;
use super::super::failure::{Exit, Failure};
use super::super::output::Output;
use crate::config::settings::Family;

/// What `init` needs to know.
pub(super) struct Answers {
    pub(super) organization: String,
    pub(super) name: String,
    pub(super) address: Option<String>,
    pub(super) family: Family,
    pub(super) port: u16,
}

/// A port that needs no privilege, and ranet's.
const DEFAULT_PORT: u16 = 13000;

/// Takes what the flags say and asks for the rest, if somebody is there to ask.
pub(super) fn collect(init: &Init, output: &mut Output) -> Result<Answers, Failure> {
    let mut asker = Asker { asks: !init.yes && io::stdin().is_terminal() && io::stderr().is_terminal() };
    let hostname = hostname();
    let organization = match &init.organization {
        Some(organization) => organization.clone(),
        None => {
            let asked = asker.ask("Organization that this node belongs to", None)?;
            asked.ok_or_else(|| {
                Failure::new(Exit::Usage, "which organization?").help("give it with `--organization NAME`")
            })?
        }
    };
    let name = match &init.name {
        Some(name) => name.clone(),
        None => {
            let asked = asker.ask("Name of this node", hostname.as_deref())?.or(hostname);
            asked
                .ok_or_else(|| Failure::new(Exit::Usage, "which name?").help("give it with `--name NAME`"))?
        }
    };
    let address = match &init.address {
        Some(address) => Some(address.clone()).filter(|address| !address.is_empty()),
        None => asker.ask("Address or DNS name under which others reach it (none behind NAT)", None)?,
    };
    let port = match init.port {
        Some(port) => port,
        None => asker.ask_port()?,
    };
    let family =
        address.as_deref().and_then(|address| address.parse::<IpAddr>().ok()).map_or(Family::Ip4, Family::of);
    if asker.asks {
        output.narrate("");
    }
    Ok(Answers { organization, name, address, family, port })
}

struct Asker {
    asks: bool,
}

impl Asker {
    /// The answer; `None` if there is none, or nobody to ask.
    fn ask(&mut self, question: &str, default: Option<&str>) -> Result<Option<String>, Failure> {
        if !self.asks {
            return Ok(None);
        }
        let hint = default.map(|default| format!(" [{default}]")).unwrap_or_default();
        let mut stderr = io::stderr().lock();
        let _ = write!(stderr, "{question}{hint}: ").and_then(|()| stderr.flush());
        let mut line = String::new();
        let read = io::stdin().lock().read_line(&mut line);
        match read {
            Ok(0) => Err(Failure::new(Exit::Failed, "stopped before the last question; nothing was written")),
            Ok(_) => Ok(Some(line.trim().to_owned()).filter(|answer| !answer.is_empty())),
            Err(error) => Err(Failure::new(Exit::Failed, format!("cannot read the answer: {error}"))),
        }
    }

    fn ask_port(&mut self) -> Result<u16, Failure> {
        loop {
            let default = DEFAULT_PORT.to_string();
            let Some(answer) = self.ask("UDP port", Some(&default))? else { return Ok(DEFAULT_PORT) };
            match answer.parse() {
                Ok(port) if port > 0 => return Ok(port),
                _ => {
                    let _ = writeln!(io::stderr().lock(), "a port is a number from 1 to 65535");
                }
            }
        }
    }
}

/// The host's name without its domain.
fn hostname() -> Option<String> {
    let full = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    full.trim().split('.').next().map(str::to_owned).filter(|name| !name.is_empty())
}
