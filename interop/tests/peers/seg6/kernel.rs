//! A kernel in a network namespace of its own, at the other end of a wire.

use crate::seg6::journey::OURS;
use crate::seg6::travellers::{Traveller, V4, V6};
use ipnet::Ipv6Net;
use lab::{Host, RunOutput, World, wait_until};
use srv6::headend::Form;
use srv6::ip::protocol;
use std::io::IoSlice;
use std::net::Ipv6Addr;
use std::process::Command;
use std::time::Duration;
use viamesh::forwarding::virtio;
use viamesh::runtime::{TunConfig, TunDevice, TunLinux};

/// The wire's name at the kernel.
const WIRE: &str = "wire0";
/// A VRF and its table, where the kernel has such devices.
const VRF: &str = "vrf100";
const VRF_TABLE: u32 = 100;
const PATIENCE: Duration = Duration::from_secs(30);

/// What all segments here are in.
pub(crate) const BLOCK: Ipv6Net = Ipv6Net::new_assert(Ipv6Addr::new(0xfd5d, 0xac, 0, 0, 0, 0, 0, 0), 32);
/// The kernel's locator.
pub(crate) const LOCATOR: Ipv6Net = Ipv6Net::new_assert(Ipv6Addr::new(0xfd5d, 0xac, 0, 0x99, 0, 0, 0, 0), 64);
/// The kernel's own address.
pub(crate) const ADDRESS: Ipv6Addr = kernel_sid(1);
/// The kernel's End.
pub(crate) const KERNEL_END: Ipv6Addr = kernel_sid(0xe);
/// The kernel's End.X, whose adjacency is our node.
pub(crate) const KERNEL_END_X: Ipv6Addr = kernel_sid(0xe1);
/// The kernel's End with penultimate segment pop.
pub(crate) const KERNEL_PSP: Ipv6Addr = kernel_sid(0xe2);
/// The kernel's compressed SID.
pub(crate) const KERNEL_CSID: u16 = 0x99;

const fn kernel_sid(function: u16) -> Ipv6Addr {
    Ipv6Addr::new(0xfd5d, 0xac, 0, 0x99, 0, 0, 0, function)
}

/// A SID of the kernel's that ends a path.
pub(crate) struct KernelExit {
    pub(crate) name: &'static str,
    pub(crate) sid: Ipv6Addr,
}

/// What the kernel asks of the headers that it receives.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Requirement {
    IfPresent,
    Demanded,
}

/// A kernel and the wire to it. Packets are exchanged one at a time.
pub(crate) struct Kernel {
    host: Host,
    wire: TunLinux,
    _world: World,
}

impl Kernel {
    /// A kernel with End, End.X and exits, and routes to everything else over the wire.
    pub(crate) fn new() -> Self {
        let world = World::new().unwrap();
        let host = world.host("kernel").unwrap();
        let config = TunConfig { tcp_offload: false, udp_offload: false, ..TunConfig::new(WIRE, 9000) };
        let wire = host.within(|| TunLinux::open(&config)).unwrap().unwrap().remove(0);
        let kernel = Self { host, wire, _world: world };
        for (name, value) in [
            // One wire in both directions: the kernel would tell senders to go past it.
            ("net.ipv4.conf.all.send_redirects", "0"),
            ("net.ipv4.conf.default.send_redirects", "0"),
            (&format!("net.ipv4.conf.{WIRE}.send_redirects"), "0"),
            (&format!("net.ipv4.conf.{WIRE}.rp_filter"), "0"),
            ("net.ipv6.conf.all.seg6_enabled", "1"),
            (&format!("net.ipv6.conf.{WIRE}.seg6_enabled"), "1"),
        ] {
            kernel.host.sysctl(name, value).unwrap();
        }
        kernel.host.set_up("lo", true).unwrap();
        kernel.host.set_up(WIRE, true).unwrap();
        kernel.ip(&format!("-6 addr add {ADDRESS} dev {WIRE} nodad"));
        kernel.ip(&format!("sr tunsrc set {ADDRESS}"));
        kernel.ip(&format!("-6 route add {BLOCK} dev {WIRE}"));
        kernel.ip(&format!("-6 route add 2001:db8::/32 dev {WIRE}"));
        kernel.ip(&format!("route add 10.0.0.0/8 dev {WIRE}"));
        kernel.add_sid(KERNEL_END, "End");
        kernel.add_sid(KERNEL_END_X, &format!("End.X nh6 {OURS}"));
        kernel.add_sid(KERNEL_PSP, "End flavors psp");
        kernel
    }

    fn add_sid(&self, sid: Ipv6Addr, action: &str) {
        self.ip(&format!("-6 route add {sid}/128 encap seg6local action {action} dev {WIRE}"));
    }

    /// Exits for each family, as far as this kernel has them, with a packet for each. Those that look up in the table of
    /// a VRF need the device for it, which many kernels are built without.
    pub(crate) fn exits(&self) -> Vec<(KernelExit, &'static Traveller)> {
        let plain = [
            ("End.DX4", 0x4, format!("End.DX4 nh4 {} dev {WIRE}", V4.destination), &V4),
            ("End.DX6", 0x6, format!("End.DX6 nh6 {} dev {WIRE}", V6.destination), &V6),
            ("End.DT6", 0xd6, format!("End.DT6 table 254 dev {WIRE}"), &V6),
        ];
        let vrf = |action: &str| format!("{action} vrftable {VRF_TABLE} dev {VRF}");
        let by_vrf = [
            ("End.DT4", 0xd4, vrf("End.DT4"), &V4),
            ("End.DT46", 0xd46, vrf("End.DT46"), &V4),
            ("End.DT46", 0xd46, vrf("End.DT46"), &V6),
        ];
        let mut exits = plain.to_vec();
        match self.add_vrf() {
            Ok(()) => exits.extend(by_vrf),
            Err(reason) => not_run("End.DT4 and End.DT46 as the kernel's exits", &reason),
        }
        let add = |(name, function, action, traveller): (&'static str, u16, String, _)| {
            let sid = kernel_sid(function);
            self.ip(&format!("-6 route replace {sid}/128 encap seg6local action {action}"));
            (KernelExit { name, sid }, traveller)
        };
        exits.into_iter().map(add).collect()
    }

    /// A VRF whose table leads back over the wire, or why there is none.
    fn add_vrf(&self) -> Result<(), String> {
        let output = self.try_ip(&format!("link add {VRF} type vrf table {VRF_TABLE}"));
        output.successful().map_err(|error| error.to_string())?;
        self.host.sysctl("net.vrf.strict_mode", "1").map_err(|error| error.to_string())?;
        self.ip(&format!("link set {VRF} up"));
        self.ip(&format!("route add 10.0.0.0/8 dev {WIRE} table {VRF_TABLE}"));
        self.ip(&format!("-6 route add 2001:db8::/32 dev {WIRE} table {VRF_TABLE}"));
        Ok(())
    }

    /// A waypoint with NEXT-C-SID, or why there is none.
    pub(crate) fn add_compressed_waypoint(&self) -> Result<(), String> {
        let sid = srv6::CompressedSid::new(BLOCK, KERNEL_CSID).unwrap().prefix();
        let action = "End flavors next-csid lblen 32 nflen 16";
        let output = self.try_ip(&format!("-6 route add {sid} encap seg6local action {action} dev {WIRE}"));
        output.successful().map(drop).map_err(|error| error.to_string())
    }

    /// Makes the kernel the headend for a traveller's destination.
    pub(crate) fn steer(&self, traveller: &Traveller, form: Form, list: &[Ipv6Addr], key: Option<u32>) {
        let mode = match form {
            Form::Reduced => "encap.red",
            Form::Full => "encap",
        };
        let list: Vec<String> = list.iter().map(Ipv6Addr::to_string).collect();
        let hmac = key.map(|id| format!("hmac {id}")).unwrap_or_default();
        let family = if traveller.is_v4() { "-4" } else { "-6" };
        let destination = traveller.destination;
        let list = list.join(",");
        self.ip(&format!(
            "{family} route replace {destination} encap seg6 mode {mode} segs {list} {hmac} dev {WIRE}"
        ));
    }

    /// Gives the kernel a key. `ip` asks for the secret as a person would type it, at the terminal if there is one.
    pub(crate) fn set_key(&self, (id, secret): (u32, &str)) {
        let mut command = Command::new("setsid");
        command.args(["--wait", "sh", "-c", &format!("echo '{secret}' | ip sr hmac set {id} sha256")]);
        self.host.run(command, PATIENCE).unwrap().successful().unwrap();
    }

    /// What it asks of headers from now on.
    pub(crate) fn require_hmac(&self, requirement: Requirement) {
        let value = match requirement {
            Requirement::IfPresent => "0",
            Requirement::Demanded => "1",
        };
        self.host.sysctl(&format!("net.ipv6.conf.{WIRE}.seg6_require_hmac"), value).unwrap();
    }

    /// Gives the kernel a packet and waits for what it makes of it.
    pub(crate) fn exchange(&mut self, packet: &[u8]) -> Option<Vec<u8>> {
        self.send(packet);
        wait_until(PATIENCE, "the kernel's packet", || self.receive()).ok()
    }

    /// Fails unless the kernel drops a packet: what is sent after it comes back first.
    pub(crate) fn assert_drops(&mut self, packet: &[u8]) {
        self.send(packet);
        let marker = V4.packet();
        let answer = self.exchange(&marker).unwrap();
        V4.assert_same(&answer, "the packet behind the one that had to be dropped");
    }

    fn send(&mut self, packet: &[u8]) {
        let header = [0; virtio::HEADER_LEN];
        self.wire.write(&[IoSlice::new(&header), IoSlice::new(packet)]).unwrap();
    }

    /// The next packet that is not the kernel's own talk with its neighbours.
    fn receive(&mut self) -> Option<Vec<u8>> {
        let mut frame = [0; virtio::HEADER_LEN + 9000];
        loop {
            let length = self.wire.read(&mut frame).ok()?;
            let packet = &frame[virtio::HEADER_LEN..length];
            if !is_neighbour_talk(packet) {
                return Some(packet.to_vec());
            }
        }
    }

    fn ip(&self, arguments: &str) {
        self.try_ip(arguments).successful().unwrap_or_else(|error| panic!("ip {arguments}: {error}"));
    }

    fn try_ip(&self, arguments: &str) -> RunOutput {
        let mut command = Command::new("ip");
        command.args(arguments.split_whitespace());
        self.host.run(command, PATIENCE).unwrap()
    }
}

/// Discovery of neighbours and groups, and redirects: what came in over the wire leaves over it again, so the kernel
/// tells senders of a shorter way.
fn is_neighbour_talk(packet: &[u8]) -> bool {
    const REDIRECT: u8 = 137;
    let is_v6 = packet[0] >> 4 == 6;
    is_v6 && (packet[24] == 0xff || packet[6] == protocol::ICMPV6 && packet[40] == REDIRECT)
}

/// Tells loudly what this machine cannot judge.
#[expect(clippy::print_stderr, reason = "for whoever reads the test's output")]
pub(crate) fn not_run(what: &str, reason: &str) {
    eprintln!("NOT RUN: {what}: {}", reason.trim());
}
