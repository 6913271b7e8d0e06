//! What the tests of the lab share.
#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::io::IoSlice;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use nix::sys::socket::{ControlMessage, MsgFlags, SockaddrStorage, sendmsg};
use pcap_file::DataLink;
use pcap_file::pcap::PcapReader;

/// Times are measured: tests run one at a time.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sends one UDP train (UDP_SEGMENT) from the namespace of the calling thread.
pub(crate) fn send_train(target: SocketAddr, bytes: usize, step: u16) {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    let payload = vec![7; bytes];
    let parts = [IoSlice::new(&payload)];
    let control = [ControlMessage::UdpGsoSegments(&step)];
    let to = SockaddrStorage::from(target);
    assert_eq!(sendmsg(socket.as_raw_fd(), &parts, &control, MsgFlags::empty(), Some(&to)).unwrap(), bytes);
}

/// All frames of a capture.
pub(crate) fn read_capture(path: &Path) -> Vec<Vec<u8>> {
    let mut reader = PcapReader::new(std::fs::File::open(path).unwrap()).unwrap();
    assert_eq!(reader.header().datalink, DataLink::ETHERNET);
    let mut frames = Vec::new();
    while let Some(packet) = reader.next_packet() {
        let packet = packet.unwrap();
        assert_eq!(packet.orig_len as usize, packet.data.len());
        frames.push(packet.data.into_owned());
    }
    frames
}

/// Checks lengths and checksums of the TCP and UDP frames over IPv4.
pub(crate) fn assert_checksums(frames: &[Vec<u8>]) {
    let mut checked = 0;
    for frame in frames.iter().filter(|frame| frame[12..14] == [8, 0] && matches!(frame[23], 6 | 17)) {
        let length = usize::from(u16::from_be_bytes([frame[16], frame[17]]));
        assert_eq!(frame.len(), (14 + length).max(frame.len().min(60)), "IPv4 length");
        let ip = &frame[14..14 + length];
        assert_eq!(fold(add(&ip[..20], 0)), 0xffff, "IPv4 checksum");
        let pseudo = u64::from(ip[9]) + ip.len() as u64 - 20;
        assert_eq!(fold(add(&ip[20..], add(&ip[12..20], pseudo))), 0xffff, "transport checksum");
        checked += 1;
    }
    assert!(checked > 20, "only {checked} frames to check");
}

fn add(bytes: &[u8], start: u64) -> u64 {
    let word = |pair: &[u8]| u64::from(pair[0]) << 8 | u64::from(*pair.get(1).unwrap_or(&0));
    bytes.chunks(2).map(word).sum::<u64>() + start
}

fn fold(mut sum: u64) -> u64 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum
}
