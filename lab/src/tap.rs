//! A TAP device: the host sees an Ethernet interface, the emulator holds its other side.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

use crate::error::{Result, Trying};

const DEVICE: &str = "/dev/net/tun";

/// Offloads that every kernel of the last decade accepts: checksums and TCP super-frames, with ECN.
const BASIC: u64 = (libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN) as u64;
/// UDP super-frames, since Linux 6.2; the kernel takes both or none.
const UDP_SUPER_FRAMES: u64 = 0x20 | 0x40;

/// As the type that `ioctl` wants here.
#[expect(
    clippy::cast_possible_truncation,
    reason = "an ioctl number is 32 bits, whatever type libc gives it"
)]
const TUNSETOFFLOAD: libc::c_int = libc::TUNSETOFFLOAD as libc::c_int;

nix::ioctl_write_ptr_bad!(tun_set_interface, libc::TUNSETIFF, libc::ifreq);
nix::ioctl_write_int_bad!(tun_set_offload, TUNSETOFFLOAD);

/// The emulator's side of a TAP device; the device vanishes with it.
#[derive(Debug)]
pub(crate) struct Tap {
    file: File,
}

impl Tap {
    /// Creates a device in the namespace of the calling thread.
    ///
    /// Super-frames are switched on as far as the kernel has them, so that TCP and UDP trains pass whole.
    pub(crate) fn create(name: &str) -> Result<Self> {
        let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(DEVICE);
        let file = file.trying(|| format!("opening {DEVICE}"))?;
        let request = request(name);
        // SAFETY: the descriptor is open and `request` is a valid `struct ifreq` for the length of the call.
        unsafe { tun_set_interface(file.as_raw_fd(), &request) }
            .trying(|| format!("creating the TAP device {name}"))?;
        let set = |flags: u64| {
            let flags = libc::c_int::try_from(flags).unwrap_or(libc::c_int::MAX);
            // SAFETY: the descriptor is open and the argument is a plain number.
            unsafe { tun_set_offload(file.as_raw_fd(), flags) }
        };
        set(BASIC | UDP_SUPER_FRAMES)
            .or_else(|_| set(BASIC))
            .trying(|| format!("setting the offloads of {name}"))?;
        Ok(Self { file })
    }

    /// The next frame that the host sent, behind its virtio header; `None` when there is none now.
    pub(crate) fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match (&self.file).read(buffer) {
            Ok(length) => Ok(Some(length)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Hands a frame, behind its virtio header, to the host.
    pub(crate) fn send(&self, frame: &[u8]) -> io::Result<()> {
        (&self.file).write(frame).map(drop)
    }
}

impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

fn request(name: &str) -> libc::ifreq {
    // SAFETY: `struct ifreq` is plain data, for which all zeros is a valid value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The last byte stays zero, as the end of the name.
    let room = libc::IFNAMSIZ - 1;
    for (to, from) in request.ifr_name.iter_mut().take(room).zip(name.bytes()) {
        *to = from.cast_signed();
    }
    let flags = libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_VNET_HDR;
    // All three are bits of the low half.
    request.ifr_ifru.ifru_flags = libc::c_short::try_from(flags).unwrap_or_default();
    request
}

/// Asks for a device only to see whether the kernel lets us; `descriptor` refers to `/dev/net/tun`. Makes one
/// system call and nothing else, so it may run between fork and exec.
pub(crate) fn try_device(descriptor: i32, request: &libc::ifreq) -> nix::Result<i32> {
    // SAFETY: the descriptor is open and `request` is valid for the length of the call.
    unsafe { tun_set_interface(descriptor, request) }
}

/// What [`try_device`] takes.
pub(crate) fn trial_request() -> libc::ifreq {
    request("probe%d")
}
