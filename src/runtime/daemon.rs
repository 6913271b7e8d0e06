//! `viamesh run`: opens what the daemon needs, starts its workers and hands over to the control loop.

use super::control_loop::{ControlLoop, Host};
use super::kernel_task::KernelTask;
use super::key_log::{KeyLog, esp_path};
use super::start_error::StartError;
use super::state_file::SeqnoFile;
use super::{
    Clock, Snapshot, SocketConfig, TunConfig, TunLinux, UdpSocketLinux, UdpTransport, WorkerHandle,
    event_loop,
};
use crate::config::credentials::Credentials;
use crate::config::settings::{Bind, Settings};
use crate::control::Server;
use crate::forwarding::Forwarding;
use crate::kernel::class_tun_name;
use crate::node::{Node, SocketSpec, Startup, claim};
use crate::policy::Class;
use crate::telemetry::logging::LogLevel;
use crate::telemetry::{Health, HealthCode};
use crate::web::Web;
use arc_swap::ArcSwap;
use ed25519_dalek::SigningKey;
use ikev2::{Ed25519Signer, WallClock};
use srv6::hmac::HmacKey;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::Notify;

/// What `viamesh run` was asked to do.
pub struct RunOptions {
    /// The node's settings, checked.
    pub settings: Settings,
    /// The files that they came from, to be read again.
    pub files: crate::config::Request,
    /// The node's private key.
    pub key: SigningKey,
    /// Keys of signed segment lists.
    pub hmac_keys: Vec<HmacKey>,
    /// Changes the log level, if the process has a log.
    pub log_level: Option<LogLevel>,
    /// Certificate and shared keys.
    pub credentials: Credentials,
    /// Where key material goes, if a person asked for it.
    pub ike_keylog: Option<PathBuf>,
}

/// Runs the daemon until it is told to stop.
///
/// # Errors
/// [`StartError`] in words, with the exit code.
pub fn run(options: RunOptions) -> Result<(), StartError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| StartError::new(format!("cannot start the event loop: {error}")))?;
    runtime.block_on(serve(options))
}

async fn serve(options: RunOptions) -> Result<(), StartError> {
    let settings = options.settings;
    let clock = Clock::new();
    let key_log = open_key_log(options.ike_keylog)?;
    let seqno_file = SeqnoFile::new(&settings.state_dir);
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(|error| StartError::new(format!("no randomness: {error}")))?;
    let startup = Startup {
        signer: Box::new(Ed25519Signer::from_seed(&options.key.to_bytes())),
        credentials: options.credentials,
        wall_clock: wall_clock(&clock),
        seed,
        seqno: seqno_file.read(),
        keylog: key_log.is_some(),
        hmac_keys: options.hmac_keys,
    };
    let node = Node::new(settings.clone(), startup, clock.now()).map_err(StartError::new)?;
    let server =
        Server::bind(&settings.control_socket).map_err(|error| StartError::new(error.to_string()))?;
    let (incoming, requests) = tokio::sync::mpsc::channel(32);
    let (web, web_problems) = Web::start(&settings, &incoming).await;
    tokio::spawn(server.run(incoming));
    let snapshot: Snapshot = Arc::new(ArcSwap::from_pointee(Forwarding::empty(node.epoch())));
    let punted = Arc::new(Notify::new());
    let mut opened = open_devices(&settings, &node)?;
    opened.notes.extend(web_problems);
    let workers = start_workers(opened.tuns, opened.sockets, &snapshot, clock, &punted)?;
    for (class, _) in node.classes().iter() {
        let tun = open_class_tun(&settings, class)?;
        // The queue of a worker that has just begun is empty.
        let _ = workers.first().map(|worker| worker.set_tun(class, Some(tun)));
    }
    let (news, host_news) = tokio::sync::mpsc::channel(16);
    let kernel = KernelTask::start(
        claim(&settings.kernel),
        &settings.kernel.tun,
        settings.state_dir.join("host-settings"),
        news,
    )
    .await
    .map_err(|error| StartError::new(format!("cannot talk to the kernel: {error}")))?;
    let log_level = options.log_level;
    let host = Host {
        clock,
        snapshot,
        workers,
        punted,
        kernel,
        host_news,
        requests,
        key_log,
        seqno_file,
        log_level,
    };
    let outcome = ControlLoop::new(node, host, options.files, opened.notes).run().await;
    drop(web);
    outcome
}

struct Opened {
    tuns: Vec<TunLinux>,
    /// One set a worker.
    sockets: Vec<Vec<UdpSocketLinux>>,
    notes: Vec<Health>,
}

fn open_devices(settings: &Settings, node: &Node) -> Result<Opened, StartError> {
    let mut set = Vec::new();
    let mut notes = Vec::new();
    for (_, spec) in node.sockets().iter() {
        let socket = open_socket(spec)?;
        let limited = |text: String| {
            let next_step = "throughput may be lower than it could be; nothing else is affected";
            Health::new(HealthCode::SocketLimited, socket.local_address().to_string(), text, next_step)
        };
        notes.extend(socket.notes().iter().map(|note| limited(note.to_string())));
        set.push(socket);
    }
    let name = &settings.kernel.tun;
    let config = TunConfig::new(name.clone(), settings.kernel.tun_mtu);
    let tuns = TunLinux::open(&config).map_err(|error| StartError::tun(name, &error))?;
    Ok(Opened { tuns, sockets: vec![set], notes })
}

/// Opens the TUN of a class.
pub(super) fn open_class_tun(settings: &Settings, class: Class) -> Result<TunLinux, StartError> {
    let name = class_tun_name(&settings.kernel.tun, class.0);
    let config = TunConfig::new(name.clone(), settings.kernel.tun_mtu);
    let opened = TunLinux::open(&config).map_err(|error| StartError::tun(&name, &error))?;
    opened.into_iter().next().ok_or_else(|| StartError::new(format!("{name} has no queue")))
}

/// Opens a socket of the node.
pub(super) fn open_socket(spec: &SocketSpec) -> Result<UdpSocketLinux, StartError> {
    let config = socket_config(spec)?;
    UdpSocketLinux::bind(&config).map_err(|error| StartError::socket(config.bind, &error))
}

fn socket_config(spec: &SocketSpec) -> Result<SocketConfig, StartError> {
    let any = match spec.family {
        crate::config::settings::Family::Ip4 => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        crate::config::settings::Family::Ip6 => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    let address = match spec.bind {
        Bind::Any => any,
        Bind::Address(address) => address,
        Bind::Network(network) => own_address_in(&network).ok_or_else(|| {
            StartError::new(format!("no address of this host is in {network}"))
                .help("give the endpoint another `address`, or none for all addresses")
        })?,
    };
    let mut config = SocketConfig::new(SocketAddr::new(address, spec.port));
    config.mark = Some(spec.fwmark);
    Ok(config)
}

/// The address of this host inside a network, if it has one.
fn own_address_in(network: &ipnet::IpNet) -> Option<IpAddr> {
    let interfaces = nix::ifaddrs::getifaddrs().ok()?;
    let addresses = interfaces.filter_map(|interface| {
        let address = interface.address?;
        let v4 = address.as_sockaddr_in().map(|v4| IpAddr::V4(v4.ip()));
        v4.or_else(|| address.as_sockaddr_in6().map(|v6| IpAddr::V6(v6.ip())))
    });
    addresses.into_iter().find(|address| network.contains(address))
}

fn start_workers(
    tuns: Vec<TunLinux>,
    sockets: Vec<Vec<UdpSocketLinux>>,
    snapshot: &Snapshot,
    clock: Clock,
    punted: &Arc<Notify>,
) -> Result<Vec<WorkerHandle<TunLinux, UdpSocketLinux>>, StartError> {
    let pairs = tuns.into_iter().zip(sockets).enumerate();
    pairs
        .map(|(index, (tun, sockets))| {
            let punted = Arc::clone(punted);
            let notify: event_loop::Notify = Arc::new(move || punted.notify_one());
            event_loop::start(format!("worker-{index}"), tun, sockets, snapshot, clock, notify)
                .map_err(|error| StartError::new(format!("cannot start a worker thread: {error}")))
        })
        .collect()
}

fn open_key_log(path: Option<PathBuf>) -> Result<Option<KeyLog>, StartError> {
    let Some(path) = path else { return Ok(None) };
    let log = KeyLog::open(&path)
        .map_err(|error| StartError::new(format!("cannot write the key log {}: {error}", path.display())))?;
    tracing::warn!(
        ike = %path.display(),
        esp = %esp_path(&path).display(),
        "keys are being written to files: whoever reads them can decrypt all traffic. For debugging only"
    );
    Ok(Some(log))
}

/// What the time of day is now. `None` if the host's clock stands before 1970.
fn wall_clock(clock: &Clock) -> Option<WallClock> {
    let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).ok()?;
    Some(WallClock { at: clock.now(), since_epoch })
}
