//! A mesh of real daemons in a world of the lab: keys, registry, node files, processes.

use crate::config::key;
use crate::control::report::{NodeState, PathStatus, StatusReport};
use crate::control::{Client, Reply, Request};
use lab::{Host, Interface, Process, wait_until};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::{IpAddr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The organization of all nodes.
pub const ORGANIZATION: &str = "lab";
/// The UDP port of all nodes.
pub const PORT: u16 = 13000;

/// A node to be started.
#[derive(Debug, Clone)]
pub struct NodeSpec {
    /// Its common name; also the name of its host.
    pub name: String,
    /// Underlay addresses; each becomes an endpoint in the registry. None: the node sits behind NAT and dials.
    pub addresses: Vec<IpAddr>,
    /// Families of its own endpoints, in the order of their serial numbers.
    pub families: Vec<&'static str>,
    /// Networks behind it.
    pub announce: Vec<String>,
    /// Further lines of its node file.
    pub extra: String,
    /// Further lines of its `remarks.viamesh` in the registry.
    pub remarks: String,
    /// Further arguments of `viamesh run`.
    pub arguments: Vec<String>,
}

impl NodeSpec {
    /// A node with an IPv4 endpoint at the address of an interface.
    pub fn new(host: &Host, interface: &Interface) -> Self {
        Self {
            name: host.name().to_owned(),
            addresses: interface.v4.map(IpAddr::V4).into_iter().collect(),
            families: vec!["ip4"],
            announce: Vec::new(),
            extra: String::new(),
            remarks: String::new(),
            arguments: Vec::new(),
        }
    }

    /// The same with an IPv6 endpoint only.
    pub fn over_ipv6(host: &Host, interface: &Interface) -> Self {
        let addresses = interface.v6.map(IpAddr::V6).into_iter().collect();
        Self { addresses, families: vec!["ip6"], ..Self::new(host, interface) }
    }

    /// With a network behind it.
    #[must_use]
    pub fn announcing(mut self, network: &str) -> Self {
        self.announce.push(network.to_owned());
        self
    }

    /// With further lines in its node file.
    #[must_use]
    pub fn with(mut self, lines: &str) -> Self {
        self.extra.push_str(lines);
        if !lines.ends_with('\n') {
            self.extra.push('\n');
        }
        self
    }

    /// With further lines in its `remarks.viamesh` of the registry.
    #[must_use]
    pub fn remark(mut self, lines: &str) -> Self {
        self.remarks.push_str(lines);
        if !lines.ends_with('\n') {
            self.remarks.push('\n');
        }
        self
    }

    /// With a further argument for `viamesh run`.
    #[must_use]
    pub fn argument(mut self, argument: impl Into<String>) -> Self {
        self.arguments.push(argument.into());
        self
    }
}

/// A node of a running mesh.
pub struct MeshNode {
    /// Where it runs.
    pub host: Host,
    /// Its node file.
    pub config: PathBuf,
    /// Its control socket.
    pub socket: PathBuf,
    /// The daemon; `None` after [`Mesh::kill`] or [`Mesh::stop`].
    pub process: Option<Process>,
    arguments: Vec<String>,
}

/// Daemons that share a registry.
pub struct Mesh {
    /// Folder with one folder a node.
    pub directory: PathBuf,
    binary: PathBuf,
    nodes: BTreeMap<String, MeshNode>,
}

/// What went wrong, in words.
pub type Outcome<T> = Result<T, String>;

impl Mesh {
    /// Writes all files of a mesh. Nothing runs yet.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn prepare(directory: &Path, binary: &Path, members: &[(Host, NodeSpec)]) -> Outcome<Self> {
        let mut registry = format!("- organization: {ORGANIZATION}\n  nodes:\n");
        let mut nodes = BTreeMap::new();
        for (host, spec) in members {
            let folder = directory.join(&spec.name);
            std::fs::create_dir_all(folder.join("state"))
                .map_err(|e| format!("{}: {e}", folder.display()))?;
            registry.push_str(&registry_entry(spec, &write_key(&folder)?));
            let config = folder.join("node.yaml");
            write(&config, &node_file(spec, directory, &folder))?;
            let socket = folder.join("control.sock");
            let node = MeshNode {
                host: host.clone(),
                config,
                socket,
                process: None,
                arguments: spec.arguments.clone(),
            };
            nodes.insert(spec.name.clone(), node);
        }
        write(&directory.join("registry.yaml"), &registry)?;
        Ok(Self { directory: directory.to_owned(), binary: binary.to_owned(), nodes })
    }

    /// Starts all daemons.
    ///
    /// # Errors
    /// When one cannot be started.
    pub fn start(&mut self) -> Outcome<()> {
        let names: Vec<String> = self.nodes.keys().cloned().collect();
        names.iter().try_for_each(|name| self.start_node(name))
    }

    /// Starts one daemon.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start_node(&mut self, name: &str) -> Outcome<()> {
        let binary = self.binary.clone();
        let node = self.nodes.get_mut(name).ok_or_else(|| format!("no node {name}"))?;
        let mut command = Command::new(binary);
        command.arg("--socket").arg(&node.socket).arg("run").arg("--config").arg(&node.config);
        command.args(&node.arguments).env("RUST_BACKTRACE", "1").env_remove("NO_COLOR");
        node.process = Some(node.host.spawn(command).map_err(|error| error.to_string())?);
        Ok(())
    }

    /// Kills a daemon as a crash would.
    pub fn kill(&mut self, name: &str) {
        if let Some(process) = self.nodes.get_mut(name).and_then(|node| node.process.take()) {
            process.kill();
        }
    }

    /// Stops a daemon as `systemctl stop` would.
    ///
    /// # Errors
    /// When it does not end in time, or not with success.
    pub fn stop(&mut self, name: &str) -> Outcome<()> {
        let Some(process) = self.nodes.get_mut(name).and_then(|node| node.process.take()) else {
            return Err(format!("{name} does not run"));
        };
        let status = process.stop(Duration::from_secs(20)).map_err(|error| error.to_string())?;
        if status.success() {
            Ok(())
        } else {
            Err(format!("{name} ended with {status}:\n{}", process.log_tail(20)))
        }
    }

    /// One node.
    ///
    /// # Panics
    /// If the mesh has no such node.
    pub fn node(&self, name: &str) -> &MeshNode {
        match self.nodes.get(name) {
            Some(node) => node,
            None => panic!("no node {name} in this mesh"),
        }
    }

    /// Its nodes by name.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.nodes.keys().map(String::as_str)
    }

    /// The program that the daemons run.
    pub fn binary(&self) -> &Path {
        &self.binary
    }

    /// Asks a daemon.
    ///
    /// # Errors
    /// When it does not answer, or refuses.
    pub fn ask(&self, name: &str, request: &Request) -> Outcome<Reply> {
        let node = self.nodes.get(name).ok_or_else(|| format!("no node {name}"))?;
        if let Some(process) = &node.process {
            process.ensure_running().map_err(|error| error.to_string())?;
        }
        let answer = Client::connect(&node.socket).and_then(|mut client| client.ask(request));
        match answer {
            Ok(Reply::Refused(refusal)) => Err(refusal.text),
            Ok(reply) => Ok(reply),
            Err(error) => Err(error.to_string()),
        }
    }

    /// The status of a node.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub fn status(&self, name: &str) -> Outcome<StatusReport> {
        match self.ask(name, &Request::Status { node: None })? {
            Reply::Status(report) => Ok(report),
            other => Err(format!("{name} answered {other:?} to a status request")),
        }
    }

    /// How `from` reaches `to` now; `None` if it does not.
    pub fn path(&self, from: &str, to: &str) -> Option<PathStatus> {
        let status = self.status(from).ok()?;
        let node = status.nodes.into_iter().find(|node| node.node == to)?;
        (node.state == NodeState::Up).then_some(node.path)
    }

    /// Whether `from` reaches `to` through `via`, or directly if that is `None`.
    pub fn goes(&self, from: &str, to: &str, via: Option<&str>) -> bool {
        match (self.path(from, to), via) {
            (Some(PathStatus::Direct { .. }), None) => true,
            (Some(PathStatus::Through { node }), Some(via)) => node == via,
            _ => false,
        }
    }

    /// Waits until every running node reaches every other running node.
    ///
    /// # Errors
    /// When that takes too long, with what is missing.
    pub fn wait_connected(&self, limit: Duration) -> Outcome<()> {
        let running: Vec<&str> = self
            .nodes
            .iter()
            .filter(|(_, node)| node.process.is_some())
            .map(|(name, _)| name.as_str())
            .collect();
        let all_up = || {
            running.iter().all(|from| {
                self.status(from).is_ok_and(|status| {
                    let up = |name: &str| {
                        status.nodes.iter().any(|node| node.node == name && node.state == NodeState::Up)
                    };
                    running.iter().filter(|to| *to != from).all(|to| up(to))
                })
            })
        };
        wait_until(limit, "all nodes reach each other", all_up)
            .map_err(|error| format!("{error}\n{}", self.describe()))
    }

    /// Waits until `from` reaches `to` through `via`, or directly if that is `None`.
    ///
    /// # Errors
    /// When that takes too long.
    pub fn wait_path(&self, from: &str, to: &str, via: Option<&str>, limit: Duration) -> Outcome<()> {
        let what = format!(
            "{from} reaches {to} {}",
            via.map_or("directly".to_owned(), |via| format!("through {via}"))
        );
        wait_until(limit, &what, || self.goes(from, to, via))
            .map_err(|error| format!("{error}\n{}", self.describe()))
    }

    /// The address of a node in the mesh.
    ///
    /// # Errors
    /// When its daemon does not answer.
    pub fn address(&self, name: &str) -> Outcome<Ipv6Addr> {
        let status = self.status(name)?;
        let address = status.addresses.iter().find_map(|address| match address {
            IpAddr::V6(address) => Some(*address),
            IpAddr::V4(_) => None,
        });
        address.ok_or_else(|| format!("{name} has no address"))
    }

    /// State of all nodes, for messages about a failure.
    pub fn describe(&self) -> String {
        let mut text = String::new();
        for (name, node) in &self.nodes {
            let _ = writeln!(text, "--- {name}");
            match self.status(name) {
                Ok(status) => {
                    for peer in status.nodes {
                        let _ = writeln!(
                            text,
                            "    {} {:?} {:?} rtt {:?}",
                            peer.node, peer.state, peer.path, peer.rtt_ms
                        );
                    }
                }
                Err(error) => {
                    let _ = writeln!(text, "    {error}");
                }
            }
            if let Some(process) = &node.process {
                let _ = writeln!(text, "{}", process.log_tail(12));
            }
        }
        text
    }
}

fn registry_entry(spec: &NodeSpec, public_key: &str) -> String {
    let mut text = format!("  - common_name: {}\n    endpoints:\n", spec.name);
    for (serial, family) in spec.families.iter().enumerate() {
        let address =
            spec.addresses.get(serial).map_or(String::new(), |address| format!("address: \"{address}\", "));
        let _ = writeln!(
            text,
            "    - {{ serial_number: \"{serial}\", address_family: {family}, {address}port: {PORT} }}"
        );
    }
    text.push_str("    remarks:\n      viamesh:\n        public_key: |\n");
    for line in public_key.lines() {
        let _ = writeln!(text, "          {line}");
    }
    for line in spec.remarks.lines() {
        let _ = writeln!(text, "        {line}");
    }
    text
}

fn node_file(spec: &NodeSpec, directory: &Path, folder: &Path) -> String {
    let mut text = format!("organization: {ORGANIZATION}\ncommon_name: {}\n", spec.name);
    let _ = writeln!(text, "private_key: {}", folder.join("key.pem").display());
    let _ = writeln!(text, "registry: {}", directory.join("registry.yaml").display());
    let _ = writeln!(text, "state_dir: {}", folder.join("state").display());
    text.push_str("endpoints:\n");
    for (serial, family) in spec.families.iter().enumerate() {
        let _ = writeln!(text, "- {{ serial_number: \"{serial}\", address_family: {family}, port: {PORT} }}");
    }
    if !spec.announce.is_empty() {
        let _ = writeln!(text, "announce: [{}]", spec.announce.join(", "));
    }
    text.push_str(&spec.extra);
    text
}

/// Makes a node's key and returns its public half as PEM.
fn write_key(folder: &Path) -> Outcome<String> {
    let key = key::generate().map_err(|error| error.to_string())?;
    key::write_new(&folder.join("key.pem"), &key).map_err(|error| error.to_string())?;
    key::public_pem(&key.verifying_key()).map_err(|error| error.to_string())
}

fn write(path: &Path, text: &str) -> Outcome<()> {
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}
