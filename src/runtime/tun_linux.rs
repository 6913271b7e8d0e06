//! A TUN of Linux, opened by tun-rs and read and written as raw virtio frames.

use super::device::TunDevice;
use crate::forwarding::{Offload, virtio};
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use tun_rs::{DeviceBuilder, Layer, SyncDevice};

/// How to open a TUN.
#[derive(Debug, Clone)]
pub struct TunConfig {
    /// Name of the interface.
    pub name: String,
    /// MTU in octets.
    pub mtu: u16,
    /// Queues: one for each worker.
    pub queues: usize,
    /// Exchange TCP super-packets. `VIAMESH_DISABLE_TUN_GSO` in the environment overrides it.
    pub tcp_offload: bool,
    /// Exchange UDP super-packets. `VIAMESH_DISABLE_TUN_USO` in the environment overrides it.
    pub udp_offload: bool,
}

impl TunConfig {
    /// One queue with all offloads.
    pub fn new(name: impl Into<String>, mtu: u16) -> Self {
        TunConfig { name: name.into(), mtu, queues: 1, tcp_offload: true, udp_offload: true }
    }
}

/// One queue of a TUN.
pub struct TunLinux {
    device: SyncDevice,
    virtio: bool,
    offload: Offload,
}

impl TunLinux {
    /// Opens the device and its queues. It stays down: bringing it up, addresses and routes are
    /// `src/kernel`'s work.
    ///
    /// # Errors
    /// `PermissionDenied` without CAP_NET_ADMIN, `ResourceBusy` if the name is taken, `NotFound`
    /// without /dev/net/tun.
    pub fn open(config: &TunConfig) -> io::Result<Vec<TunLinux>> {
        let allowed = |name: &str| std::env::var_os(name).is_none();
        let wanted = config.tcp_offload && allowed("VIAMESH_DISABLE_TUN_GSO");
        let udp = config.udp_offload && allowed("VIAMESH_DISABLE_TUN_USO");
        let device = match build(config, wanted) {
            // An old kernel refuses the offloads, not the device.
            Err(error) if wanted && error.raw_os_error() == Some(libc::EINVAL) => build(config, false)?,
            other => other?,
        };
        let mut queues = vec![device];
        while queues.len() < config.queues.max(1) {
            let next = queues[0].try_clone()?;
            queues.push(next);
        }
        queues.into_iter().map(|device| TunLinux::of(device, udp)).collect()
    }

    fn of(device: SyncDevice, udp: bool) -> io::Result<TunLinux> {
        device.set_nonblocking(true)?;
        let virtio = device.tcp_gso();
        let udp = udp && device.udp_gso();
        if virtio && !udp && device.udp_gso() {
            // The mask belongs to the device and says what the kernel may hand to us.
            set_offload(device.as_raw_fd(), libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6)?;
        }
        Ok(TunLinux { device, virtio, offload: Offload { tcp: virtio, udp } })
    }

    /// The interface's name, which the kernel chose if the configured one held a `%d`.
    ///
    /// # Errors
    /// What the kernel says, for example that the device is gone.
    pub fn name(&self) -> io::Result<String> {
        self.device.name()
    }
}

impl TunDevice for TunLinux {
    fn read(&mut self, frame: &mut [u8]) -> io::Result<usize> {
        if self.virtio {
            return self.device.recv(frame);
        }
        let (header, packet) = frame.split_at_mut(virtio::HEADER_LEN);
        header.fill(0);
        Ok(self.device.recv(packet)? + virtio::HEADER_LEN)
    }

    fn write(&mut self, frame: &[IoSlice<'_>]) -> io::Result<()> {
        let frame = if self.virtio { frame } else { frame.get(1..).unwrap_or_default() };
        loop {
            match self.device.send_vectored(frame) {
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn offload(&self) -> Offload {
        self.offload
    }
}

impl AsFd for TunLinux {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the device owns the descriptor and lives at least as long as the borrow of `self`.
        unsafe { BorrowedFd::borrow_raw(self.device.as_raw_fd()) }
    }
}

fn build(config: &TunConfig, offload: bool) -> io::Result<SyncDevice> {
    DeviceBuilder::new()
        .name(config.name.clone())
        .mtu(config.mtu)
        .layer(Layer::L3)
        .offload(offload)
        .multi_queue(config.queues > 1)
        // It comes up when its addresses are chosen: before that the kernel would invent one.
        .enable(false)
        .build_sync()
}

fn set_offload(descriptor: libc::c_int, mask: libc::c_uint) -> io::Result<()> {
    // SAFETY: TUNSETOFFLOAD takes its argument by value; the descriptor belongs to a live TUN.
    let result = unsafe { libc::ioctl(descriptor, libc::TUNSETOFFLOAD, libc::c_ulong::from(mask)) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
