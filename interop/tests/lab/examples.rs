//! The example configurations run: each becomes a mesh whose nodes find each other and whose policies are up.

use crate::scene::{PATIENCE, binary};
use ed25519_dalek::SigningKey;
use lab::{Host, Interface, LinkSettings, Process, World, wait_until};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use viamesh::config::key;
use viamesh::control::report::{NodeState, PolicyState, StatusReport};
use viamesh::control::{Client, Reply, Request};

/// A node of an example's registry.
struct Member {
    organization: String,
    name: String,
    endpoints: Vec<Endpoint>,
    key: SigningKey,
    /// It runs other software.
    foreign: bool,
}

/// An endpoint as the registry has it.
struct Endpoint {
    family: String,
    address: Option<String>,
    port: String,
}

/// The value of `key` in a line of YAML or JSON.
fn value(line: &str, key: &str) -> Option<String> {
    let line = line.split(" #").next()?;
    let at = line.match_indices(key).find(|(at, _)| {
        let rest = line[at + key.len()..].trim_start_matches('"');
        !line[..*at].ends_with(|c: char| c.is_alphanumeric() || c == '_') && rest.starts_with(':')
    })?;
    let rest = line[at.0 + key.len()..].trim_start_matches(['"', ':', ' ']);
    let end = rest.find(['"', ',', '}', ' ']).unwrap_or(rest.len());
    let value = &rest[..end];
    (value != "null" && !value.is_empty()).then(|| value.to_owned())
}

/// Reads the registry, and writes keys that the test has in the place of those in it.
fn members(registry: &str) -> (Vec<Member>, String) {
    let (mut members, mut text) = (Vec::<Member>::new(), String::new());
    let mut organization = String::new();
    let mut shared: Option<SigningKey> = None;
    let mut in_node = false;
    for line in registry.lines() {
        if let Some(name) = value(line, "organization") {
            (organization, in_node) = (name, false);
        }
        if let Some(name) = value(line, "common_name") {
            let key = shared.clone().unwrap_or_else(|| key::generate().unwrap());
            let organization = organization.clone();
            members.push(Member { organization, name, endpoints: vec![], key, foreign: false });
            in_node = true;
        }
        if let Some(family) = value(line, "address_family") {
            let endpoint =
                Endpoint { family, address: value(line, "address"), port: value(line, "port").unwrap() };
            members.last_mut().unwrap().endpoints.push(endpoint);
        }
        if in_node && value(line, "id").is_some() {
            members.last_mut().unwrap().foreign = true;
        }
        let Some(at) = line.find("MCow") else {
            writeln!(text, "{line}").unwrap();
            continue;
        };
        let known = if in_node { members.last().map(|member| member.key.clone()) } else { None };
        let ours = known.unwrap_or_else(|| shared.insert(key::generate().unwrap()).clone());
        let public = key::public_pem(&ours.verifying_key()).unwrap();
        let theirs = &line[at..at + 60];
        writeln!(text, "{}", line.replace(theirs, public.lines().nth(1).unwrap())).unwrap();
    }
    (members, text)
}

/// A mesh made of an example.
struct Running {
    _world: World,
    hosts: Vec<Host>,
    sockets: Vec<PathBuf>,
    configs: Vec<PathBuf>,
    members: Vec<Member>,
    processes: Vec<Process>,
}

/// Where each address of the registry is in the lab: every endpoint has an interface on one internet.
fn attach(world: &World, members: &[Member]) -> (Vec<Host>, BTreeMap<(String, String), String>) {
    let segment = world.segment("internet").unwrap();
    let (mut hosts, mut stations, mut places) = (Vec::new(), Vec::new(), BTreeMap::new());
    for member in members {
        let host = world.host(&member.name).unwrap();
        // Two endpoints of one family are two lines.
        let lines =
            ["ip4", "ip6"].map(|family| member.endpoints.iter().filter(|e| e.family == family).count());
        let interfaces: Vec<Interface> = (0..lines.into_iter().max().unwrap())
            .map(|line| {
                stations.push(format!("{}-{line}", member.name));
                segment.attach_as(&host, stations.last().unwrap()).unwrap()
            })
            .collect();
        let mut used = BTreeMap::<&str, usize>::new();
        for endpoint in &member.endpoints {
            let line = used.entry(&endpoint.family).or_default();
            let interface = &interfaces[*line];
            *line += 1;
            let address = match endpoint.family.as_str() {
                "ip4" => IpAddr::from(interface.v4.unwrap()),
                _ => IpAddr::from(interface.v6.unwrap()),
            };
            if let Some(named) = &endpoint.address {
                places.insert((endpoint.family.clone(), named.clone()), address.to_string());
            }
        }
        hosts.push(host);
    }
    for (at, a) in stations.iter().enumerate() {
        for b in &stations[at + 1..] {
            segment.set(a, b, LinkSettings::with_rtt_ms(10)).unwrap();
        }
    }
    (hosts, places)
}

/// The text with the addresses of the lab.
fn placed(text: &str, places: &BTreeMap<(String, String), String>) -> String {
    let line = |line: &str| {
        let (Some(family), Some(address)) = (value(line, "address_family"), value(line, "address")) else {
            return line.to_owned();
        };
        let Some(place) = places.get(&(family, address.clone())) else { return line.to_owned() };
        let quoted = line.replace(&format!("\"{address}\""), &address);
        quoted
            .replace(&format!("address: {address}"), &format!("address: \"{place}\""))
            .replace(&format!("\"address\": {address}"), &format!("\"address\": \"{place}\""))
    };
    text.lines().map(|each| line(each) + "\n").collect()
}

/// The node file of a member: the example's, if it has one, or the least that a node needs.
fn node_file(example: &Path, member: &Member, folder: &Path) -> String {
    let own = std::fs::read_to_string(example.join("node.yaml")).unwrap();
    let is_own = own.lines().find_map(|line| value(line, "common_name")).unwrap() == member.name;
    let others = std::fs::read_to_string(example.join(format!("{}.yaml", member.name)));
    let text = match (is_own, others) {
        (true, _) => own,
        (false, Ok(text)) => text,
        (false, Err(_)) => {
            let mut text = format!("organization: {}\ncommon_name: {}\n", member.organization, member.name);
            text += "private_key: /etc/viamesh/node.pem\nregistry: /etc/viamesh/registry.yaml\nendpoints:\n";
            for (serial, Endpoint { family, port, .. }) in member.endpoints.iter().enumerate() {
                let line = format!("serial_number: \"{serial}\", address_family: {family}, port: {port}");
                writeln!(text, "- {{ {line} }}").unwrap();
            }
            text
        }
    };
    let state = folder.join("state").display().to_string();
    let text = text.replace("/etc/viamesh", &folder.display().to_string());
    // A file in JSON has its own way to take one more field.
    match text.split_once("\n{\n") {
        Some((before, rest)) => format!("{before}\n{{\n  \"state_dir\": \"{state}\",\n{rest}"),
        None => format!("{text}\nstate_dir: {state}\n"),
    }
}

fn start(example: &Path) -> Running {
    let world = World::new().unwrap();
    let registry = std::fs::read_to_string(example.join("registry.yaml")).unwrap();
    let (members, registry) = members(&registry);
    let (hosts, places) = attach(&world, &members);
    let mut running = Running {
        hosts,
        sockets: vec![],
        configs: vec![],
        members: vec![],
        processes: vec![],
        _world: world,
    };
    for (member, host) in members.into_iter().zip(&running.hosts) {
        let folder = running._world.directory().join("etc").join(&member.name);
        std::fs::create_dir_all(folder.join("state")).unwrap();
        std::fs::write(folder.join("registry.yaml"), placed(&registry, &places)).unwrap();
        key::write_new(&folder.join("node.pem"), &member.key).unwrap();
        let config = folder.join("node.yaml");
        std::fs::write(&config, placed(&node_file(example, &member, &folder), &places)).unwrap();
        let socket = folder.join("control.sock");
        if !member.foreign {
            let mut check = Command::new(binary());
            check.arg("check").arg(&config);
            host.run(check, PATIENCE).unwrap().successful().unwrap();
            let mut run = Command::new(binary());
            run.arg("--socket").arg(&socket).arg("run").arg("--config").arg(&config);
            running.processes.push(host.spawn(run).unwrap());
        }
        running.sockets.push(socket);
        running.configs.push(config);
        running.members.push(member);
    }
    running
}

impl Running {
    fn status(&self, member: usize) -> Option<StatusReport> {
        let reply = Client::connect(&self.sockets[member]).ok()?.ask(&Request::Status { node: None }).ok()?;
        let Reply::Status(report) = reply else { return None };
        Some(report)
    }

    /// Whether a member reaches all others that run, over all their links, and all its policies are up.
    fn is_complete(&self, member: usize) -> bool {
        let Some(status) = self.status(member) else { return false };
        let others =
            self.members.iter().filter(|other| !other.foreign && other.name != self.members[member].name);
        let up = |name: &str| {
            let node = status.nodes.iter().find(|node| node.node.rsplit('/').next() == Some(name));
            node.is_some_and(|node| {
                node.state == NodeState::Up && node.links.iter().all(|link| link.state.is_up())
            })
        };
        others.map(|other| other.name.as_str()).all(up)
            && status.policies.iter().all(|policy| policy.state != PolicyState::Down)
    }
}

/// Runs one example until all is up.
fn runs(example: &Path) {
    let running = start(example);
    for member in (0..running.members.len()).filter(|member| !running.members[*member].foreign) {
        let what = format!("{} of {} to be complete", running.members[member].name, example.display());
        wait_until(PATIENCE, &what, || running.is_complete(member)).unwrap_or_else(|error| {
            let logs: Vec<_> = running.processes.iter().map(|process| process.log_tail(20)).collect();
            let node = std::fs::read_to_string(&running.configs[member]).unwrap();
            panic!("{error}\n{:#?}\n{node}\n{}", running.status(member), logs.join("\n---\n"));
        });
    }
}

#[test]
fn every_example_becomes_a_mesh() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("deploy/examples");
    let examples: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    let examples: Vec<_> = examples.into_iter().filter(|path| path.is_dir()).collect();
    assert!(examples.len() >= 8, "{examples:?}");
    // Each in a world of its own, all at the same time.
    std::thread::scope(|scope| {
        for example in &examples {
            scope.spawn(|| runs(example));
        }
    });
}
