//! A newcomer's way: what the README, the guide and the page on observing tell people to type is typed here, in their
//! order, on five machines. A command in those pages that is not typed fails the test.

use crate::scene::{PATIENCE, binary};
use interop::documentation::{command_lines, mentioned_commands, read, root};
use lab::{Host, LinkSettings, Process, Root, RunOutput, World, wait_until};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// The pages that are followed.
const PAGES: [&str; 3] = ["README.md", "docs/guide.md", "docs/observe.md"];
/// The machines, in the order in which they join.
const NAMES: [&str; 5] = ["alpha", "bravo", "charlie", "delta", "echo"];
/// What each writes into its node file so that the test need not wait for what people would not notice.
const QUICK: &str = "timers: { hello: 1s, redial: 500ms }\n";

/// A machine with its own `/etc/viamesh`, `/var/lib/viamesh` and `/run/viamesh`.
struct Machine {
    host: Host,
    address: String,
    etc: PathBuf,
    root: Root,
    daemon: Option<Process>,
}

/// Whoever follows the guide.
struct Newcomer {
    machines: BTreeMap<&'static str, Machine>,
    typed: RefCell<Vec<String>>,
    _world: World,
}

impl Drop for Newcomer {
    fn drop(&mut self) {
        self.machines.clear();
        // Where the folders of the machines appeared; not empty if somebody uses them.
        for place in ["/etc/viamesh", "/var/lib/viamesh", "/run/viamesh"] {
            let _ = fs::remove_dir(place);
        }
    }
}

impl Newcomer {
    fn new() -> Self {
        let world = World::new().unwrap();
        let segment = world.segment("internet").unwrap();
        let mut machines = BTreeMap::new();
        for (number, name) in NAMES.into_iter().enumerate() {
            let host = world.host(name).unwrap();
            let address = segment.attach(&host).unwrap().v4.unwrap().to_string();
            let folder = world.directory().join(name);
            let mut root = Root::new("/");
            for inside in ["etc", "var/lib", "run"] {
                let folder = folder.join(inside);
                fs::create_dir_all(&folder).unwrap();
                root = root.share(&folder, format!("/{inside}/viamesh"));
            }
            let network = if number == 0 { "10.1.3.4/32" } else { "10.4.0.9/32" };
            if number == 0 || number == 3 {
                host.add_address("lo", network.parse().unwrap()).unwrap();
            }
            machines.insert(name, Machine { host, address, etc: folder.join("etc"), root, daemon: None });
        }
        for (at, a) in NAMES.iter().enumerate() {
            for b in &NAMES[at + 1..] {
                segment.set(a, b, LinkSettings::with_rtt_ms(10)).unwrap();
            }
        }
        Self { machines, typed: RefCell::default(), _world: world }
    }

    /// The command as a shell of that machine runs it.
    fn shell(&self, name: &str, line: &str) -> Command {
        let folder = binary().parent().unwrap().display().to_string();
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new("sh");
        command.arg("-c").arg(line).env("PATH", format!("{folder}:{path}")).env_remove("VIAMESH_SOCKET");
        command.env("PWD", &self.machines[name].etc).current_dir(&self.machines[name].etc);
        command
    }

    /// Types a line of the documentation at a machine; the documented address stands for the machine's own.
    fn types(&self, name: &str, line: &str) -> RunOutput {
        self.typed.borrow_mut().push(line.to_owned());
        self.runs(name, &line.replace("198.51.100.1", &self.machines[name].address))
    }

    /// The same without a place in the documentation.
    fn runs(&self, name: &str, line: &str) -> RunOutput {
        let machine = &self.machines[name];
        machine.host.run_in(&machine.root, self.shell(name, line), PATIENCE).unwrap().successful().unwrap()
    }

    /// Types a line that goes on until it is stopped.
    fn starts(&mut self, name: &'static str, line: &str) {
        self.typed.borrow_mut().push(line.to_owned());
        let command = self.shell(name, &format!("exec {line}"));
        let machine = self.machines.get_mut(name).unwrap();
        machine.daemon = Some(machine.host.spawn_in(&machine.root, command).unwrap());
    }

    /// `viamesh init`, which prints the block for the registry.
    fn joins(&self, name: &str, blocks: &mut String) {
        let line = format!(
            "viamesh init --organization acme --name {name} --address 198.51.100.1 --port 13000 --dir /etc/viamesh"
        );
        let block = self.types(name, &line).stdout;
        assert!(block.contains("BEGIN PUBLIC KEY"), "{block}");
        let nodes = block.split_once("nodes:\n").unwrap().1;
        *blocks += nodes;
        self.writes(name, QUICK);
    }

    /// Adds lines to a node file.
    fn writes(&self, name: &str, lines: &str) {
        let file = self.machines[name].etc.join("node.yaml");
        let text = fs::read_to_string(&file).unwrap();
        fs::write(&file, format!("{text}{lines}")).unwrap();
    }

    /// Copies the registry to the machines.
    fn distributes(&self, blocks: &str, names: &[&str]) {
        for name in names {
            let registry = format!("- organization: acme\n  nodes:\n{blocks}");
            fs::write(self.machines[name].etc.join("registry.yaml"), registry).unwrap();
        }
    }

    /// Waits until a line ends with success.
    fn waits(&self, name: &str, line: &str) {
        let machine = &self.machines[name];
        wait_until(PATIENCE, &format!("`{line}` at {name}"), || {
            let output = machine.host.run_in(&machine.root, self.shell(name, line), PATIENCE).unwrap();
            output.status.success()
        })
        .unwrap_or_else(|error| {
            let log = machine.daemon.as_ref().map(|daemon| daemon.log_tail(30));
            panic!("{error}\n{}\n{}", self.runs(name, "viamesh status").stdout, log.unwrap_or_default())
        });
    }

    /// Commands of the pages that nobody typed.
    fn forgotten(&self) -> Vec<String> {
        let typed = self.typed.borrow();
        let pages = PAGES.map(|page| read(&root().join(page)));
        let commands = pages.iter().flat_map(|page| [command_lines(page), mentioned_commands(page)].concat());
        commands.filter(|command| !typed.iter().any(|line| line.starts_with(command.as_str()))).collect()
    }
}

/// From nothing to three nodes.
fn three_nodes(newcomer: &mut Newcomer, blocks: &mut String) {
    for name in &NAMES[..3] {
        newcomer.joins(name, blocks);
    }
    newcomer.distributes(blocks, &NAMES[..3]);
    for name in &NAMES[..3] {
        assert!(
            newcomer.types(name, "viamesh check --config /etc/viamesh/node.yaml").stdout.starts_with("ok")
        );
        newcomer.starts(name, "viamesh run --config /etc/viamesh/node.yaml");
    }
    newcomer.waits(
        "alpha",
        "viamesh status --check ready && viamesh ping bravo -c 1 && viamesh ping charlie -c 1",
    );
    assert!(newcomer.types("alpha", "viamesh status").stdout.contains("charlie"));
    newcomer.types("alpha", "viamesh routes");
    newcomer.types("alpha", "viamesh ping bravo");
    newcomer.types("alpha", "viamesh ping charlie --via bravo");
    newcomer.types("alpha", "viamesh associations");
}

/// Two more nodes, and a policy through all of them.
fn five_nodes_and_a_policy(newcomer: &mut Newcomer, blocks: &mut String) {
    for name in &NAMES[3..] {
        newcomer.joins(name, blocks);
    }
    newcomer.distributes(blocks, &NAMES);
    newcomer.writes("alpha", "announce: [10.1.0.0/16]\n");
    newcomer.writes("delta", "announce: [10.4.0.0/16]\noffer: [internet]\n");
    for name in &NAMES[..3] {
        newcomer.types(name, "viamesh check --live");
        newcomer.types(name, "viamesh reload");
    }
    for name in ["delta", "echo"] {
        newcomer.starts(name, "viamesh run --config /etc/viamesh/node.yaml");
    }
    newcomer.waits("alpha", "viamesh ping delta -c 1 && viamesh ping echo -c 1");
    newcomer.writes(
        "alpha",
        "policies:\n  - name: inspected\n    from: [10.1.0.0/16]\n    to: [10.4.0.0/16]\n    \
         via: [bravo, charlie, bravo]\n    exit: delta\n    if_unreachable: drop\n  \
         - name: guests\n    from: [10.1.99.0/24]\n    to: [0.0.0.0/0]\n    exit: nearest\n    \
         if_unreachable: drop\n",
    );
    newcomer.runs("alpha", "viamesh reload");
    newcomer.waits("alpha", "viamesh status --check ready");
    let explained = newcomer.types("alpha", "viamesh explain 10.1.3.4 10.4.0.9 --tcp --port 443").stdout;
    assert!(explained.contains("alpha > bravo > charlie > bravo > delta"), "{explained}");
    newcomer.waits("alpha", "viamesh trace 10.4.0.9 --from 10.1.3.4 -c 1");
    newcomer.types("alpha", "viamesh trace 10.4.0.9 --from 10.1.3.4");
    newcomer.types("alpha", "viamesh routes 10.4.0.9");
}

/// Changes with a parachute.
fn changes(newcomer: &Newcomer) {
    let etc = &newcomer.machines["alpha"].etc;
    let text = fs::read_to_string(etc.join("node.yaml")).unwrap();
    fs::write(etc.join("new-node.yaml"), text.replace("[10.1.0.0/16]\n", "[10.1.0.0/16, 10.9.0.0/16]\n"))
        .unwrap();
    newcomer.types("alpha", "viamesh apply new-node.yaml --confirm-within 5m");
    newcomer.types("alpha", "viamesh confirm");
    assert!(fs::read_to_string(etc.join("node.yaml")).unwrap().contains("10.9.0.0/16"));
    newcomer.types("alpha", "viamesh undo");
    assert!(!fs::read_to_string(etc.join("node.yaml")).unwrap().contains("10.9.0.0/16"));
}

/// Looking at it, and what helps when something does not work.
fn looks(newcomer: &Newcomer) {
    assert!(newcomer.types("alpha", "viamesh graph").stdout.contains("graph"));
    newcomer.types("alpha", "viamesh graph | dot -Tsvg > mesh.svg");
    assert!(fs::read_to_string(newcomer.machines["alpha"].etc.join("mesh.svg")).unwrap().contains("</svg>"));
    // A terminal of its own, in which somebody types `q`.
    newcomer.typed.borrow_mut().push("viamesh top".to_owned());
    newcomer.runs("alpha", "echo q | TERM=xterm script -qec 'viamesh top' /dev/null");
    newcomer.types("alpha", "viamesh registry");
    newcomer.runs("alpha", "viamesh key generate --out signer.pem");
    newcomer.types("alpha", "viamesh registry sign registry.yaml --key signer.pem");
    newcomer.typed.borrow_mut().push("viamesh help CODE".to_owned());
    newcomer.runs("alpha", "viamesh help peer/no-answer");
    newcomer.types("alpha", "viamesh log ike=debug --for 5m");
    newcomer.types("alpha", "viamesh report --anonymize");
}

/// The same node again, which says more or writes keys.
fn says_more(newcomer: &mut Newcomer) {
    for line in ["viamesh run -v", "viamesh run --ike-keylog FILE"] {
        newcomer.machines.get_mut("echo").unwrap().daemon.take().unwrap().stop(PATIENCE).unwrap();
        newcomer.starts("echo", line);
        newcomer.waits("echo", "viamesh status --check ready");
    }
    let keys = newcomer.machines["echo"].etc.join("FILE");
    assert!(keys.metadata().unwrap().len() > 0, "{}", keys.display());
}

#[test]
fn what_the_documentation_tells_people_to_type_works() {
    let mut newcomer = Newcomer::new();
    let mut blocks = String::new();
    three_nodes(&mut newcomer, &mut blocks);
    five_nodes_and_a_policy(&mut newcomer, &mut blocks);
    changes(&newcomer);
    looks(&newcomer);
    says_more(&mut newcomer);
    assert_eq!(newcomer.forgotten(), Vec::<String>::new());
}
