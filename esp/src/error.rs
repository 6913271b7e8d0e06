//! Why something was refused, and whose fault it is.

/// Our own caller did something wrong. Never caused by bytes from the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Misuse {
    /// The key material has another length than the algorithm needs (key and salt, in bytes).
    #[error("{actual} bytes of key material where the algorithm needs {expected}")]
    KeyMaterialLength {
        /// What [`Algorithm::key_material_len`](crate::Algorithm::key_material_len) says.
        expected: usize,
        /// What was given.
        actual: usize,
    },
    /// An SPI of 0 is never on the wire and 1 to 255 are reserved (RFC 4303 §2.1).
    #[error("SPI {0} is reserved")]
    ReservedSpi(u32),
    /// The replay window is outside
    /// [`MIN_REPLAY_WINDOW`](crate::MIN_REPLAY_WINDOW)..=[`MAX_REPLAY_WINDOW`](crate::MAX_REPLAY_WINDOW).
    #[error("a replay window of {0} packets is not supported")]
    ReplayWindow(u32),
    /// The payload is longer than [`MAX_PAYLOAD_LEN`](crate::MAX_PAYLOAD_LEN).
    #[error("a payload of {0} bytes is longer than any IP packet")]
    PayloadLength(usize),
    /// The buffer cannot hold the sealed datagram.
    #[error("a buffer of {actual} bytes where the datagram needs {needed}")]
    BufferTooShort {
        /// [`sealed_len`](crate::sealed_len) of the payload.
        needed: usize,
        /// What was given.
        actual: usize,
    },
    /// The sequence number was reserved from an SA with another SPI: sealing would break the nonce rule.
    #[error("the sequence number was reserved from SA {reserved_from:#010x}, not from {spi:#010x}")]
    ForeignSequenceNumber {
        /// The SPI of the SA that made the reservation.
        reserved_from: u32,
        /// The SPI of the SA that was asked to seal.
        spi: u32,
    },
}

/// The SA has fewer sequence numbers left than were asked for; nothing was reserved. It needs a rekey.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the sequence numbers are exhausted ({remaining} remain)")]
pub struct SequenceExhausted {
    /// How many numbers a smaller reservation could still get.
    pub remaining: u64,
}

/// The ICV does not match: the bytes were changed, or sealed under another key or sequence number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("integrity check failed")]
pub struct IntegrityFailure;

/// Why a packet went no further. [`Discard::name`] is stable: use it as a metric label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Discard {
    /// Shorter than the smallest ESP datagram.
    #[error("too short for ESP")]
    TooShort,
    /// The ciphertext does not end on a 4-byte boundary (RFC 4303 §2.4).
    #[error("ciphertext is not a multiple of 4 bytes")]
    Misaligned,
    /// The SPI is not the one of the SA that was asked.
    #[error("the SPI belongs to another SA")]
    WrongSpi,
    /// The sequence number was seen before.
    #[error("replayed sequence number")]
    Replayed,
    /// The sequence number is older than the replay window.
    #[error("sequence number is older than the replay window")]
    OutsideWindow,
    /// The ICV does not match.
    #[error("integrity check failed")]
    IntegrityFailure,
    /// Authentic, but the padding is not 1, 2, 3, … or longer than the packet. The peer broke RFC 4303 §2.4.
    #[error("bad padding")]
    BadPadding,
    /// Authentic, but of next header 59: traffic-flow confidentiality, to be dropped in silence (§2.6).
    #[error("dummy packet")]
    Dummy,
    /// Outbound: no sequence number left.
    #[error("sequence numbers exhausted")]
    SequenceExhausted,
}

impl Discard {
    /// Every reason, in the order of the enum.
    pub const ALL: [Self; 9] = [
        Self::TooShort,
        Self::Misaligned,
        Self::WrongSpi,
        Self::Replayed,
        Self::OutsideWindow,
        Self::IntegrityFailure,
        Self::BadPadding,
        Self::Dummy,
        Self::SequenceExhausted,
    ];

    /// A stable name in kebab case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::TooShort => "esp-too-short",
            Self::Misaligned => "esp-misaligned",
            Self::WrongSpi => "esp-wrong-spi",
            Self::Replayed => "esp-replayed",
            Self::OutsideWindow => "esp-outside-window",
            Self::IntegrityFailure => "esp-integrity-failure",
            Self::BadPadding => "esp-bad-padding",
            Self::Dummy => "esp-dummy",
            Self::SequenceExhausted => "esp-sequence-exhausted",
        }
    }
}

impl From<SequenceExhausted> for Discard {
    fn from(_: SequenceExhausted) -> Self {
        Self::SequenceExhausted
    }
}

impl From<IntegrityFailure> for Discard {
    fn from(_: IntegrityFailure) -> Self {
        Self::IntegrityFailure
    }
}
