//! The way out of a worker: its sockets, its TUN, and its rings.

use super::device::{SendError, TunDevice, UdpTransport};
use crate::forwarding::{
    DropReason, Egress, Forwarding, Punt, Rings, Sent, Stranger, Transmit, WorkerCounters,
};
use std::io::{ErrorKind, IoSlice};
use std::sync::atomic::Ordering::Relaxed;

/// How long a link's trains leave as single datagrams after the kernel refused one.
const SINGLE_MILLIS: u64 = 60_000;

/// Behind [`Egress`] in the running daemon and in simulations.
pub(super) struct Port<'a, T, U> {
    pub(super) tun: &'a mut T,
    pub(super) sockets: &'a mut [Option<U>],
    pub(super) rings: &'a Rings,
    pub(super) counters: &'a WorkerCounters,
    pub(super) forwarding: &'a Forwarding,
    pub(super) now_millis: u64,
    /// Something was handed up.
    pub(super) punted: bool,
    /// A datagram that was too big has been reported: one report for each turn is enough.
    pub(super) too_big_reported: bool,
}

impl<T: TunDevice, U: UdpTransport> Egress for Port<'_, T, U> {
    fn transmit(&mut self, transmit: &Transmit<'_>) -> Sent {
        let index = usize::from(transmit.route.socket.0);
        let Some(socket) = self.sockets.get_mut(index).and_then(Option::as_mut) else {
            self.counters.drops.add(DropReason::SendRefused, transmit.count() as u64);
            return Sent::Taken;
        };
        match socket.send(transmit) {
            Ok(()) => {
                self.count(transmit.count(), transmit.contents.len());
                Sent::Taken
            }
            Err(error) => self.recover(transmit, error),
        }
    }

    fn deliver(&mut self, frame: &[IoSlice<'_>]) -> bool {
        self.tun.write(frame).is_ok()
    }

    fn punt(&mut self, punt: Punt) -> bool {
        self.punted = true;
        self.rings.authenticated.push(punt).is_ok()
    }

    fn stranger(&mut self, stranger: Stranger) -> bool {
        self.punted = true;
        self.rings.stranger.push(stranger).is_ok()
    }
}

impl<T: TunDevice, U: UdpTransport> Port<'_, T, U> {
    /// What to do about a train that stopped after `done` octets.
    fn recover(&mut self, transmit: &Transmit<'_>, mut failure: SendError) -> Sent {
        let mut done = 0;
        loop {
            let rest = Transmit { contents: &transmit.contents[done..], ..*transmit };
            let gone = failure.done.min(rest.contents.len());
            self.count(gone.div_ceil(transmit.segment.max(1)), gone);
            done += gone;
            let rest = Transmit { contents: &transmit.contents[done..], ..*transmit };
            if failure.error.kind() == ErrorKind::WouldBlock {
                return Sent::Blocked { done };
            }
            if failure.segmented {
                return self.resend_singly(&rest, &failure, done);
            }
            // The next datagram was refused for itself: the others may still go.
            self.refuse(&rest, &failure);
            done += transmit.segment.min(rest.contents.len());
            let rest = Transmit { contents: &transmit.contents[done..], ..*transmit };
            if rest.contents.is_empty() {
                return Sent::Taken;
            }
            match self.send_singly(&rest) {
                Ok(()) => return Sent::Taken,
                Err(next) => failure = next,
            }
        }
    }

    /// The kernel refused a train. The same datagrams go at once, one by one; only if that works
    /// was segmentation to blame.
    fn resend_singly(&mut self, rest: &Transmit<'_>, failure: &SendError, done: usize) -> Sent {
        match self.send_singly(rest) {
            Ok(()) => {
                self.mark_single(rest, failure);
                Sent::Taken
            }
            Err(next) if next.segmented => {
                self.refuse(rest, &next);
                Sent::Taken
            }
            Err(next) => {
                if next.done > 0 {
                    self.mark_single(rest, failure);
                }
                match self.recover(rest, next) {
                    Sent::Blocked { done: more } => Sent::Blocked { done: done + more },
                    Sent::Taken => Sent::Taken,
                }
            }
        }
    }

    fn send_singly(&mut self, rest: &Transmit<'_>) -> Result<(), SendError> {
        let mut route = rest.route;
        route.single = true;
        let index = usize::from(route.socket.0);
        let Some(socket) = self.sockets.get_mut(index).and_then(Option::as_mut) else { return Ok(()) };
        socket.send(&Transmit { route, ..*rest })?;
        self.count(rest.count(), rest.contents.len());
        Ok(())
    }

    fn mark_single(&mut self, transmit: &Transmit<'_>, failure: &SendError) {
        let errno = failure.error.raw_os_error().unwrap_or(0);
        let caused_by_segmentation = matches!(errno, libc::EIO | libc::EINVAL);
        let Some(link) = transmit.route.link.filter(|_| caused_by_segmentation) else { return };
        if let Some(path) = self.forwarding.link(link) {
            path.counters.single_until_millis.store(self.now_millis + SINGLE_MILLIS, Relaxed);
        }
        self.punt(Punt::SegmentationFailed { link, errno });
    }

    /// Counts the first datagram of `rest` as lost for a reason of the kernel's.
    fn refuse(&mut self, rest: &Transmit<'_>, failure: &SendError) {
        let datagram = rest.segment.min(rest.contents.len());
        let reason = match failure.error.raw_os_error() {
            Some(libc::EMSGSIZE) => {
                if let Some(link) = rest.route.link
                    && !std::mem::replace(&mut self.too_big_reported, true)
                {
                    self.punt(Punt::DatagramTooBig { link, datagram });
                }
                DropReason::DatagramTooBig
            }
            Some(libc::ENOBUFS | libc::ENOMEM) => DropReason::NoKernelBuffer,
            _ => DropReason::SendRefused,
        };
        self.counters.drops.add(reason, 1);
    }

    fn count(&self, datagrams: usize, bytes: usize) {
        if datagrams > 0 {
            self.counters.sent.add(datagrams as u64, bytes as u64);
            self.counters.sends.add(1);
        }
    }
}
