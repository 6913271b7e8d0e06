//! The receiving half of a CHILD SA.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects, clippy::unwrap_used, clippy::expect_used)]

use crate::aead::{Algorithm, Backend, Transform};
use crate::error::{Discard, Misuse};
use crate::replay_window::{Place, ReplayWindow};
use crate::trailer::{self, NEXT_HEADER_DUMMY, Trailer};
use crate::wire::{Datagram, HEADER_LEN, Header, peek_header};
use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The smallest replay window in packets: less drops honest packets of a batched, reordered path.
pub const MIN_REPLAY_WINDOW: u32 = 4096;
/// The largest replay window in packets (128 KiB of bits).
pub const MAX_REPLAY_WINDOW: u32 = 1 << 20;

/// Opens datagrams of one SPI of ours. Shared by threads: the replay window has a lock of its own, which is
/// never held during cryptography.
pub struct InboundSa {
    transform: Transform,
    algorithm: Algorithm,
    backend: Backend,
    window: Mutex<ReplayWindow>,
    counters: Counters,
}

/// Written under the window's lock with plain loads and stores, except for integrity failures, which happen
/// outside of it. Read by anybody.
#[derive(Default)]
#[repr(align(64))]
struct Counters {
    packets: AtomicU64,
    bytes: AtomicU64,
    replayed: AtomicU64,
    outside_window: AtomicU64,
    last_authenticated_millis: AtomicU64,
    integrity_failures: AtomicU64,
}

impl InboundSa {
    /// An SA for receiving. `key_material` is the key and the salt of this direction
    /// ([`Algorithm::key_material_len`] bytes); the caller wipes its copy. `replay_window` is in packets.
    ///
    /// # Errors
    /// [`Misuse`] if the SPI is reserved, the key material has another length, or the window is outside
    /// [`MIN_REPLAY_WINDOW`]..=[`MAX_REPLAY_WINDOW`].
    pub fn new(
        spi: u32,
        algorithm: Algorithm,
        key_material: &[u8],
        esn: bool,
        replay_window: u32,
        backend: Backend,
    ) -> Result<Self, Misuse> {
        if !(MIN_REPLAY_WINDOW..=MAX_REPLAY_WINDOW).contains(&replay_window) {
            return Err(Misuse::ReplayWindow(replay_window));
        }
        let transform = Transform::new(spi, algorithm, key_material, esn, backend)?;
        let window = Mutex::new(ReplayWindow::new(replay_window));
        Ok(Self { transform, algorithm, backend, window, counters: Counters::default() })
    }

    /// The SPI that we chose.
    #[must_use]
    pub fn spi(&self) -> u32 {
        self.transform.spi()
    }

    /// The cipher.
    #[must_use]
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The library that does the work.
    #[must_use]
    pub fn backend(&self) -> Backend {
        self.backend
    }

    /// Whether sequence numbers have 64 bits.
    #[must_use]
    pub fn esn(&self) -> bool {
        self.transform.esn()
    }

    /// Packets accepted, dummies and those with bad padding included: all that took a place in the window.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.counters.packets.load(Ordering::Relaxed)
    }

    /// Bytes of payload accepted.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.counters.bytes.load(Ordering::Relaxed)
    }

    /// Datagrams whose sequence number was seen before.
    #[must_use]
    pub fn replayed(&self) -> u64 {
        self.counters.replayed.load(Ordering::Relaxed)
    }

    /// Datagrams that were older than the window. With extended sequence numbers such a datagram usually looks
    /// like one of the next 2^32 numbers (RFC 4303 appendix A2.2) and counts as an integrity failure.
    #[must_use]
    pub fn outside_window(&self) -> u64 {
        self.counters.outside_window.load(Ordering::Relaxed)
    }

    /// Datagrams whose ICV didn't match. A stranger can cause these at will.
    #[must_use]
    pub fn integrity_failures(&self) -> u64 {
        self.counters.integrity_failures.load(Ordering::Relaxed)
    }

    /// The latest arrival time that was given to `commit` with an authentic packet; 0 if there was none.
    #[must_use]
    pub fn last_authenticated_millis(&self) -> u64 {
        self.counters.last_authenticated_millis.load(Ordering::Relaxed)
    }

    /// Takes the lock of the replay window for a whole batch. Let it go before opening.
    #[must_use]
    pub fn batch(&self) -> InboundBatch<'_> {
        // Nothing panics while the lock is held, and the window is consistent between any two calls.
        let window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        InboundBatch { sa: self, window }
    }

    /// [`InboundBatch::pre_check`] for a single datagram.
    ///
    /// # Errors
    /// Those of [`InboundBatch::pre_check`].
    pub fn pre_check(&self, datagram: &[u8]) -> Result<PendingOpen, Discard> {
        self.batch().pre_check(datagram)
    }

    /// Verifies the ICV and decrypts in place: cryptography only, no lock, on any core.
    ///
    /// # Errors
    /// [`Discard::TooShort`] or [`Discard::Misaligned`] if this isn't the datagram of the pre-check,
    /// [`Discard::IntegrityFailure`] if the ICV doesn't match. Then the datagram's content is unspecified.
    pub fn open(&self, pending: &PendingOpen, datagram: &mut [u8]) -> Result<Opened, Discard> {
        let Datagram { header, ciphertext, icv } = Datagram::split(datagram)?;
        // The SPI and the number that the pre-check found are in the additional data: should the header say
        // something else by now, the ICV doesn't match.
        if self.transform.open(pending.sequence, header.iv, ciphertext, &icv).is_err() {
            self.counters.integrity_failures.fetch_add(1, Ordering::Relaxed);
            return Err(Discard::IntegrityFailure);
        }
        Ok(Opened { spi: self.spi(), sequence: pending.sequence, content: trailer::read(ciphertext) })
    }

    /// [`InboundBatch::commit`] for a single packet.
    ///
    /// # Errors
    /// Those of [`InboundBatch::commit`].
    pub fn commit(&self, opened: Opened, arrival_millis: u64) -> Result<Accepted, Discard> {
        self.batch().commit(opened, arrival_millis)
    }
}

impl fmt::Debug for InboundSa {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("InboundSa")
            .field("spi", &format_args!("{:#010x}", self.spi()))
            .field("algorithm", &self.algorithm)
            .field("backend", &self.backend)
            .field("esn", &self.esn())
            .field("packets", &self.packets())
            .finish_non_exhaustive()
    }
}

/// The replay window, locked for one batch.
pub struct InboundBatch<'a> {
    sa: &'a InboundSa,
    window: MutexGuard<'a, ReplayWindow>,
}

impl InboundBatch<'_> {
    /// Checks length and SPI, finds the full sequence number and looks it up in the window, so that a replay
    /// costs no cryptography. Changes nothing but counters.
    ///
    /// # Errors
    /// [`Discard::TooShort`], [`Discard::Misaligned`], [`Discard::WrongSpi`], [`Discard::Replayed`] or
    /// [`Discard::OutsideWindow`].
    #[inline]
    pub fn pre_check(&mut self, datagram: &[u8]) -> Result<PendingOpen, Discard> {
        let Header { spi, sequence_low, .. } = peek_header(datagram)?;
        if spi != self.sa.spi() {
            return Err(Discard::WrongSpi);
        }
        let sequence = if self.sa.esn() {
            self.window.infer(sequence_low).ok_or(Discard::OutsideWindow)
        } else {
            Ok(u64::from(sequence_low))
        };
        let checked = sequence.and_then(|sequence| self.window.check(sequence).map(|_| sequence));
        match checked {
            Ok(sequence) => Ok(PendingOpen { sequence }),
            Err(discard) => Err(self.count(discard)),
        }
    }

    /// Checks the window a second time, now that the packet is known to be authentic, and sets it: of two
    /// copies that were opened at once, one is accepted. `arrival_millis` is the time of arrival on the
    /// caller's clock.
    ///
    /// # Errors
    /// [`Discard::Replayed`] or [`Discard::OutsideWindow`] if the packet lost that race;
    /// [`Discard::BadPadding`] or [`Discard::Dummy`] if it is authentic and holds nothing to deliver;
    /// [`Discard::WrongSpi`] if another SA opened it.
    //= RFC 4303 §3.4.3
    #[inline]
    pub fn commit(&mut self, opened: Opened, arrival_millis: u64) -> Result<Accepted, Discard> {
        let Opened { spi, sequence, content } = opened;
        if spi != self.sa.spi() {
            return Err(Discard::WrongSpi);
        }
        let place = match self.window.set(sequence) {
            Ok(place) => place,
            Err(discard) => return Err(self.count(discard)),
        };
        let counters = &self.sa.counters;
        add_locked(&counters.packets, 1);
        if arrival_millis > counters.last_authenticated_millis.load(Ordering::Relaxed) {
            counters.last_authenticated_millis.store(arrival_millis, Ordering::Relaxed);
        }
        let Trailer { payload_len, next_header } = content?;
        //= RFC 4303 §2.6 (discarded without indicating an error, but it has used its sequence number)
        if next_header == NEXT_HEADER_DUMMY {
            return Err(Discard::Dummy);
        }
        add_locked(&counters.bytes, payload_len as u64);
        Ok(Accepted { sequence, payload_len, next_header, newest: place == Place::Ahead })
    }

    fn count(&self, discard: Discard) -> Discard {
        match discard {
            Discard::Replayed => add_locked(&self.sa.counters.replayed, 1),
            _ => add_locked(&self.sa.counters.outside_window, 1),
        }
        discard
    }
}

impl fmt::Debug for InboundBatch<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("InboundBatch")
            .field("sa", self.sa)
            .field("top", &self.window.top())
            .finish_non_exhaustive()
    }
}

/// Adds to a counter that only the holder of the lock writes: no read-modify-write on the bus.
fn add_locked(counter: &AtomicU64, amount: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(amount), Ordering::Relaxed);
}

/// A datagram that passed the pre-check. Plain data: crypto can happen anywhere.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "the datagram is still encrypted"]
pub struct PendingOpen {
    sequence: u64,
}

impl PendingOpen {
    /// The full sequence number, if the packet turns out to be authentic.
    #[must_use]
    pub const fn sequence(&self) -> u64 {
        self.sequence
    }
}

/// A datagram that was authentic and is decrypted. It shows no payload before it is committed.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "the replay window does not know of the packet before it is committed"]
pub struct Opened {
    spi: u32,
    sequence: u64,
    content: Result<Trailer, Discard>,
}

impl Opened {
    /// The full sequence number, authenticated.
    #[must_use]
    pub const fn sequence(&self) -> u64 {
        self.sequence
    }
}

/// An authentic packet that was seen for the first time.
#[derive(Debug, PartialEq, Eq)]
pub struct Accepted {
    sequence: u64,
    payload_len: usize,
    next_header: u8,
    newest: bool,
}

impl Accepted {
    /// The full sequence number.
    #[must_use]
    pub const fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Where the payload is in the datagram. It may end in traffic-flow confidentiality padding behind the
    /// inner packet's own length (RFC 4303 §2.7), which whoever parses that packet cuts off.
    #[must_use]
    pub const fn payload(&self) -> Range<usize> {
        HEADER_LEN..HEADER_LEN.saturating_add(self.payload_len)
    }

    /// What the payload is, an IP protocol number: [`NEXT_HEADER_IPV4`](crate::NEXT_HEADER_IPV4) or
    /// [`NEXT_HEADER_IPV6`](crate::NEXT_HEADER_IPV6) in tunnel mode.
    #[must_use]
    pub const fn next_header(&self) -> u8 {
        self.next_header
    }

    /// Whether this is the highest sequence number so far. Only such a packet may move the peer's address:
    /// an old one may have been held back and sent from elsewhere.
    #[must_use]
    pub const fn newest(&self) -> bool {
        self.newest
    }
}
