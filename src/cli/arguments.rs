//! What can be written on the command line.

use std::ffi::OsString;
use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// A policy-routed IPsec mesh node: IKEv2, ESP in UDP, Babel and SRv6 in user space.
#[derive(Clone, Debug, Parser)]
#[command(name = "viamesh", version, propagate_version = true, arg_required_else_help = true)]
#[command(disable_help_subcommand = true)]
#[command(
    after_help = "Exit codes: 0 done, 1 failed or not healthy, 2 wrong usage, 69 daemon not reachable, \
    77 not permitted, 78 configuration invalid."
)]
pub struct Arguments {
    /// Flags of all commands.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Flags of all commands.
#[derive(Args, Clone, Debug)]
pub struct Global {
    /// The node file
    #[arg(long, global = true, value_name = "FILE", default_value = "/etc/viamesh/node.yaml")]
    pub config: PathBuf,
    /// The daemon's control socket; `VIAMESH_SOCKET` in the environment otherwise
    #[arg(long, global = true, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// Print one JSON document instead of text
    #[arg(long, global = true)]
    pub json: bool,
    /// When to use colours
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub color: Color,
    /// Say more; twice: say everything
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
}

impl Global {
    /// Where the daemon listens unless `--socket` says otherwise.
    pub const DEFAULT_SOCKET: &str = "/run/viamesh/control.sock";

    /// The socket to talk to.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        let chosen = self.socket.clone().or_else(|| std::env::var_os("VIAMESH_SOCKET").map(PathBuf::from));
        chosen.unwrap_or_else(|| PathBuf::from(Self::DEFAULT_SOCKET))
    }
}

/// The words of a command line, with `demo --json FILE` written as `demo --report FILE`: everywhere else `--json`
/// has no value, and one flag cannot be both.
pub fn normalised(words: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> = words.into_iter().collect();
    if words.get(1).is_some_and(|command| command == "demo") {
        for word in words.iter_mut().filter(|word| *word == "--json") {
            *word = "--report".into();
        }
    }
    words
}

/// When to use colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless `NO_COLOR` is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// All commands.
#[derive(Clone, Debug, Subcommand)]
#[allow(clippy::large_enum_variant, reason = "one value per process")]
pub enum Command {
    /// Run the daemon in the foreground
    Run(Run),
    /// Check the configuration: every mistake at once
    Check(Check),
    /// Show who is up, which way, how far, and what is wrong
    Status(Status),
    /// Show Babel's routes: selected and alternative ones
    Routes(Routes),
    /// Show Babel's neighbours
    Neighbours(Neighbours),
    /// Show IKE and ESP security associations
    Associations(Associations),
    /// Tell which policy takes a packet and which way it goes; same code as the data path
    Explain(Explain),
    /// Send probes along the way of a packet: round-trip time and loss per stop
    Trace(Trace),
    /// Reach one node, or try a path before it goes into a policy
    Ping(Ping),
    /// List the nodes of the registry, and where it comes from; or sign one
    Registry(Registry),
    /// Read the configuration again and act on what differs; waits until it is in force
    Reload,
    /// Run on another node file, and put it in the place of the present one
    Apply(Apply),
    /// Keep what `apply --confirm-within` brought
    Confirm,
    /// Go back to the node file before the last change
    Undo,
    /// Show the daemon's log level, or change that of a component for a while
    Log(Log),
    /// Draw the mesh: Graphviz, Mermaid or JSON
    Graph(Graph),
    /// Collect what somebody who helps needs to see into one archive, without secrets
    Report(Report),
    /// Watch the mesh on the terminal: links, policies, problems, live
    Top,
    /// Make and show Ed25519 keys
    Key(Key),
    /// Make a key and a commented node file; print the block for the registry
    Init(Init),
    /// Show everything on this machine: five cities with real latencies and real daemons
    Demo(Demo),
    /// Print a script that lets a shell complete commands and flags
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page, or write those of all commands
    #[command(hide = true)]
    Man(Man),
    /// Help on a command, or on a code of `check` or `status`, such as policy/unknown-node
    Help {
        /// Command or code
        topic: Vec<String>,
    },
}

/// Files that the node file names, given here instead.
#[derive(Args, Clone, Debug, Default)]
pub struct Files {
    /// The private key, instead of the node file's `private_key`
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
    /// The registry, instead of the node file's `registry`
    #[arg(long, value_name = "FILE")]
    pub registry: Option<PathBuf>,
}

/// `viamesh run`
#[derive(Args, Clone, Debug)]
pub struct Run {
    /// Other files.
    #[command(flatten)]
    pub files: Files,
    /// Write the keys of all tunnels to FILE, for Wireshark. Whoever reads it can read the traffic
    #[arg(long, value_name = "FILE")]
    pub ike_keylog: Option<PathBuf>,
}

/// `viamesh check`
#[derive(Args, Clone, Debug)]
pub struct Check {
    /// The node file; `--config` unless given
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Also ask the running daemon what the file would change
    #[arg(long)]
    pub live: bool,
    /// Other files.
    #[command(flatten)]
    pub files: Files,
}

/// `viamesh registry`
#[derive(Args, Clone, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Registry {
    /// Something else than listing.
    #[command(subcommand)]
    pub command: Option<RegistryCommand>,
    /// Again and again.
    #[command(flatten)]
    pub watch: Watch,
}

/// What else `viamesh registry` does.
#[derive(Clone, Debug, Subcommand)]
pub enum RegistryCommand {
    /// Sign a registry that a web server shall serve: writes FILE.sig
    #[command(disable_version_flag = true)]
    Sign {
        /// The registry
        file: PathBuf,
        /// The private key whose public half the nodes have as `registry_key`
        #[arg(long, value_name = "FILE")]
        key: PathBuf,
        /// Its version, greater than those before; the time in seconds unless given
        #[arg(long, value_name = "N")]
        version: Option<u64>,
    },
}

/// `viamesh log`
#[derive(Args, Clone, Debug)]
pub struct Log {
    /// all, ike, babel, policy, kernel, config or data, and error, warn, info, debug or trace
    #[arg(value_name = "COMPONENT=LEVEL")]
    pub levels: Vec<String>,
    /// How long, before it returns by itself
    #[arg(long = "for", value_name = "TIME", default_value = "10m", value_parser = super::change::time)]
    pub time: std::time::Duration,
}

/// `viamesh apply`
#[derive(Args, Clone, Debug)]
pub struct Apply {
    /// The other node file
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Go back after this time unless `viamesh confirm` comes first: `90s`, `5m`, `1h`. So does a restart
    #[arg(long, value_name = "TIME", value_parser = super::change::time)]
    pub confirm_within: Option<std::time::Duration>,
}

/// Asking again and again.
#[derive(Args, Clone, Debug)]
pub struct Watch {
    /// Ask again every SECONDS, 2 unless given, until interrupted; with --json one document a line
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, require_equals = true, default_missing_value = "2",
        value_parser = seconds)]
    pub watch: Option<f64>,
}

/// `viamesh status`
#[derive(Args, Clone, Debug)]
pub struct Status {
    /// Only this node
    pub node: Option<String>,
    /// Again and again.
    #[command(flatten)]
    pub watch: Watch,
    /// Only an exit code: 0 if so, 1 if not
    #[arg(long, value_name = "WHAT", conflicts_with = "watch")]
    pub check: Option<HealthCheck>,
}

/// What `status --check` asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum HealthCheck {
    /// The daemon answers.
    Live,
    /// At least one tunnel is up and no policy is down.
    Ready,
}

/// `viamesh routes`
#[derive(Args, Clone, Debug)]
pub struct Routes {
    /// Only routes that cover this address
    pub address: Option<IpAddr>,
    /// Again and again.
    #[command(flatten)]
    pub watch: Watch,
}

/// `viamesh neighbours`
#[derive(Args, Clone, Debug)]
pub struct Neighbours {
    /// Again and again.
    #[command(flatten)]
    pub watch: Watch,
}

/// `viamesh associations`
#[derive(Args, Clone, Debug)]
pub struct Associations {
    /// Only those with this node
    pub node: Option<String>,
    /// Again and again.
    #[command(flatten)]
    pub watch: Watch,
}

/// Protocol and port of an imagined packet.
#[derive(Args, Clone, Debug)]
pub struct Flow {
    /// A TCP packet
    #[arg(long, conflicts_with = "udp")]
    pub tcp: bool,
    /// A UDP packet
    #[arg(long)]
    pub udp: bool,
    /// Its destination port
    #[arg(long, value_name = "N")]
    pub port: Option<u16>,
    /// The interface by which it comes to this host
    #[arg(long, value_name = "INTERFACE")]
    pub ingress: Option<String>,
    /// Its firewall mark
    #[arg(long, value_name = "MARK", value_parser = mark)]
    pub fwmark: Option<u32>,
}

/// A firewall mark, decimal or with `0x`.
fn mark(text: &str) -> Result<u32, String> {
    let number =
        text.strip_prefix("0x").map_or_else(|| text.parse(), |digits| u32::from_str_radix(digits, 16));
    number.map_err(|_| "not a mark of 32 bits, such as 0x20".to_owned())
}

/// `viamesh explain`
#[derive(Args, Clone, Debug)]
pub struct Explain {
    /// Source address
    pub source: IpAddr,
    /// Destination address
    pub destination: IpAddr,
    /// Protocol and port; ICMP unless given.
    #[command(flatten)]
    pub flow: Flow,
    /// Again and again.
    #[command(flatten)]
    pub watch: Watch,
}

/// `viamesh trace`
#[derive(Args, Clone, Debug)]
pub struct Trace {
    /// Destination address
    pub destination: IpAddr,
    /// Source address; this node's unless given
    #[arg(long, value_name = "SRC")]
    pub from: Option<IpAddr>,
    /// Protocol and port; ICMP unless given.
    #[command(flatten)]
    pub flow: Flow,
    /// Probes per stop
    #[arg(short, long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub count: u32,
    /// Longest wait for an answer in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0, value_parser = seconds)]
    pub timeout: f64,
}

/// `viamesh ping`
#[derive(Args, Clone, Debug)]
pub struct Ping {
    /// A node's name, or an address
    pub node: String,
    /// Stops on the way there, separated by commas
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub via: Vec<String>,
    /// How many probes
    #[arg(short, long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub count: u32,
    /// Longest wait for an answer in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0, value_parser = seconds)]
    pub timeout: f64,
}

/// `viamesh graph`
#[derive(Args, Clone, Debug)]
pub struct Graph {
    /// What draws it
    #[arg(long, value_name = "FORMAT", default_value = "dot")]
    pub format: GraphFormat,
}

/// Languages for graphs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum GraphFormat {
    /// Graphviz: `viamesh graph | dot -Tsvg > mesh.svg`.
    Dot,
    /// Mermaid, as forges and wikis draw it.
    Mermaid,
}

/// `viamesh report`
#[derive(Args, Clone, Debug)]
pub struct Report {
    /// Replace names and addresses, the same by the same
    #[arg(long)]
    pub anonymize: bool,
    /// The archive; `viamesh-report-TIME.tar.gz` in this directory unless given
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// `viamesh man`
#[derive(Args, Clone, Debug)]
pub struct Man {
    /// Write the pages of all commands into DIR
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

/// `viamesh key`
#[derive(Args, Clone, Debug)]
pub struct Key {
    /// What to do with a key.
    #[command(subcommand)]
    pub command: KeyCommand,
}

/// What `viamesh key` does.
#[derive(Clone, Debug, Subcommand)]
pub enum KeyCommand {
    /// Make a private key
    Generate {
        /// Write it to FILE, which must not exist yet; only the owner can read it. Without: to stdout
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Print the public key of a private one: the block that belongs into the registry
    Public {
        /// File with the private key
        file: PathBuf,
    },
    /// Print a key's fingerprint
    Fingerprint {
        /// File with the private or public key
        file: PathBuf,
    },
}

/// `viamesh init`
#[derive(Args, Clone, Debug)]
pub struct Init {
    /// Organization of this node
    #[arg(long, value_name = "NAME")]
    pub organization: Option<String>,
    /// Name of this node; the host's name unless given
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Address or DNS name under which others reach this node; none behind NAT
    #[arg(long, value_name = "ADDRESS")]
    pub address: Option<String>,
    /// UDP port
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub port: Option<u16>,
    /// Directory for the files
    #[arg(long, value_name = "DIR", default_value = "/etc/viamesh")]
    pub dir: PathBuf,
    /// Ask nothing: take the defaults for what is not given
    #[arg(short, long)]
    pub yes: bool,
}

/// `viamesh demo`
#[derive(Args, Clone, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Demo {
    /// Stay up afterwards, so that you can look around
    #[arg(long)]
    pub keep: bool,
    /// Also write what was measured to FILE; can be written `--json FILE`
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Also write every frame between the cities to FILE (pcap), and the keys for Wireshark beside it
    #[arg(long, value_name = "FILE")]
    pub capture: Option<PathBuf>,
    /// Something else than the show.
    #[command(subcommand)]
    pub command: Option<DemoCommand>,
}

/// What else `viamesh demo` does.
#[derive(Clone, Debug, Subcommand)]
pub enum DemoCommand {
    /// Open a shell in a city of a demo that was started with --keep
    Shell {
        /// The city
        city: String,
    },
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds <= 3600.0 => Ok(seconds),
        _ => Err("a number of seconds, more than 0 and at most 3600".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn definitions_are_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn flags_of_all_commands_stand_anywhere() {
        for line in ["viamesh --json status", "viamesh status --json"] {
            assert!(Arguments::try_parse_from(line.split(' ')).unwrap().global.json);
        }
        let line = "viamesh run --config a.yaml --key k.pem --registry r.json --socket s --ike-keylog log";
        assert!(Arguments::try_parse_from(line.split(' ')).is_ok());
    }

    #[test]
    fn a_path_is_a_list_of_names() {
        let arguments =
            Arguments::try_parse_from("viamesh ping delta --via bravo,charlie,bravo -c 2".split(' '))
                .unwrap();
        let Command::Ping(ping) = arguments.command else { panic!("not ping") };
        assert_eq!(ping.via, ["bravo", "charlie", "bravo"]);
        assert_eq!(ping.count, 2);
    }

    #[test]
    fn the_demo_writes_json_to_a_file() {
        let words = normalised("viamesh demo --json out.json --keep".split(' ').map(OsString::from));
        let arguments = Arguments::try_parse_from(words).unwrap();
        let Command::Demo(demo) = arguments.command else { panic!("not demo") };
        assert_eq!(demo.report, Some("out.json".into()));
        assert!(Arguments::try_parse_from("viamesh demo shell tokyo".split(' ')).is_ok());
    }
}
