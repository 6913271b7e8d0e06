//! What the endpoint tells its driver.

use std::fmt;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use crate::config::{ConnectionId, Path};
use crate::error::{Malformed, Unsupported, Violation};
use crate::identity::Identity;
use crate::secret::SecretBytes;

/// Something happened.
#[derive(Debug)]
pub enum Event {
    /// An IKE SA is established and authenticated. A connection may have several for a while.
    IkeUp {
        /// The link.
        connection: ConnectionId,
        /// The SA.
        spis: IkeSpis,
        /// Whether we initiated.
        initiator: bool,
        /// Whether the peer runs the same software (its Vendor ID, believed because it authenticated).
        ours: bool,
        /// Name of the key exchange, for people.
        key_exchange: &'static str,
        /// Where the peer is.
        path: Path,
    },
    /// An IKE SA took the place of another, with its CHILD SAs.
    IkeRekeyed {
        /// The link.
        connection: ConnectionId,
        /// The SA that is replaced.
        old: IkeSpis,
        /// The SA that replaces it.
        new: IkeSpis,
        /// Whether we asked for it.
        initiator: bool,
    },
    /// An IKE SA is gone (its CHILD SAs were reported before).
    IkeDown {
        /// The link.
        connection: ConnectionId,
        /// The SA.
        spis: IkeSpis,
        /// Why.
        reason: IkeDownReason,
    },
    /// A dial attempt failed; another follows by itself if the connection is set to dial.
    DialFailed {
        /// The link.
        connection: ConnectionId,
        /// What went wrong.
        what: DialFailure,
        /// Attempts since the last success.
        tries: u32,
    },
    /// A CHILD SA exists: receive on `child.spi_in` from now on, send only after [`Event::UseOutbound`].
    ChildUp {
        /// The link.
        connection: ConnectionId,
        /// The SA with its keys.
        child: ChildSa,
    },
    /// A CHILD SA is gone: forget both halves. Comes after the time for stragglers.
    ChildDown {
        /// The link.
        connection: ConnectionId,
        /// Our inbound SPI.
        spi_in: u32,
        /// The peer's inbound SPI.
        spi_out: u32,
        /// Why.
        reason: ChildDownReason,
    },
    /// Send on this SA from now on.
    UseOutbound {
        /// The link.
        connection: ConnectionId,
        /// Outbound SPI of a CHILD SA reported before.
        spi_out: u32,
    },
    /// The peer is at another address or port now.
    PathChanged {
        /// The link.
        connection: ConnectionId,
        /// The new path.
        path: Path,
    },
    /// A datagram was refused. Rate-limited.
    Rejected {
        /// Where it came from.
        path: Path,
        /// Why.
        reason: Rejection,
    },
    /// A line of key material for a packet analyser; only with [`crate::Config::keylog`].
    KeyLog {
        /// Which of Wireshark's tables the line belongs to.
        table: KeyLogTable,
        /// The line, without line break.
        line: String,
    },
}

/// Wireshark tables (`uat` files) that key log lines belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyLogTable {
    /// File `ikev2_decryption_table`.
    Ike,
    /// File `esp_sa`.
    Esp,
}

/// The pair of SPIs that names an IKE SA.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IkeSpis {
    /// SPI chosen by the initiator of this SA.
    pub initiator: u64,
    /// SPI chosen by its responder.
    pub responder: u64,
}

impl fmt::Display for IkeSpis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}_i {:016x}_r", self.initiator, self.responder)
    }
}

impl fmt::Debug for IkeSpis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// ESP algorithms that can be negotiated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EspAlgorithm {
    /// AES-GCM, 256-bit key, 16-octet ICV (RFC 4106).
    Aes256Gcm16,
    /// AES-GCM, 128-bit key, 16-octet ICV (RFC 4106).
    Aes128Gcm16,
    /// ChaCha20-Poly1305 (RFC 7634).
    ChaCha20Poly1305,
}

impl EspAlgorithm {
    /// Octets of key followed by salt that one direction needs.
    pub const fn key_material_len(self) -> usize {
        match self {
            Self::Aes256Gcm16 | Self::ChaCha20Poly1305 => 36,
            Self::Aes128Gcm16 => 20,
        }
    }

    /// Name for people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Aes256Gcm16 => "AES-256-GCM-16",
            Self::Aes128Gcm16 => "AES-128-GCM-16",
            Self::ChaCha20Poly1305 => "ChaCha20-Poly1305",
        }
    }
}

/// A CHILD SA, both directions.
#[derive(Debug)]
pub struct ChildSa {
    /// SPI of packets that we receive; unique on this node.
    pub spi_in: u32,
    /// SPI of packets that we send.
    pub spi_out: u32,
    /// Cipher of both directions.
    pub algorithm: EspAlgorithm,
    /// Whether 64-bit sequence numbers are used.
    pub esn: bool,
    /// Key followed by salt for packets that we receive.
    pub key_in: SecretBytes,
    /// Key followed by salt for packets that we send.
    pub key_out: SecretBytes,
    /// Our side of the traffic selectors: inclusive address ranges.
    pub ts_local: Vec<(IpAddr, IpAddr)>,
    /// The peer's side.
    pub ts_remote: Vec<(IpAddr, IpAddr)>,
    /// Whether we initiated the exchange that created it.
    pub initiator: bool,
    /// Inbound SPI of the CHILD SA that this one replaces.
    pub replaces: Option<u32>,
}

/// Why an IKE SA ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IkeDownReason {
    /// The peer sent a DELETE.
    DeletedByPeer,
    /// We closed it: shutdown, or the connection was removed.
    ClosedByUs,
    /// No answer to a request.
    PeerSilent,
    /// The peer started anew (INITIAL_CONTACT).
    PeerRestarted,
    /// Another SA of the same link serves in its place.
    Redundant,
    /// Replaced by rekeying.
    Rekeyed,
    /// What the peer authenticated itself with is no longer trusted.
    KeyRemoved,
    /// No rekey succeeded before its age exceeded all bounds.
    Expired,
    /// The peer broke the protocol.
    ProtocolError,
}

impl IkeDownReason {
    /// Stable name for metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::DeletedByPeer => "deleted-by-peer",
            Self::ClosedByUs => "closed-by-us",
            Self::PeerSilent => "peer-silent",
            Self::PeerRestarted => "peer-restarted",
            Self::Redundant => "redundant",
            Self::Rekeyed => "rekeyed",
            Self::KeyRemoved => "key-removed",
            Self::Expired => "expired",
            Self::ProtocolError => "protocol-error",
        }
    }
}

/// Why a CHILD SA ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChildDownReason {
    /// Replaced by rekeying.
    Rekeyed,
    /// The peer deleted it.
    DeletedByPeer,
    /// We deleted it.
    DeletedByUs,
    /// Its IKE SA is gone.
    IkeSaDown,
    /// Lost against the SA of a simultaneous rekey.
    Redundant,
    /// No rekey succeeded before its age exceeded all bounds.
    Expired,
}

impl ChildDownReason {
    /// Stable name for metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rekeyed => "rekeyed",
            Self::DeletedByPeer => "deleted-by-peer",
            Self::DeletedByUs => "deleted-by-us",
            Self::IkeSaDown => "ike-sa-down",
            Self::Redundant => "redundant",
            Self::Expired => "expired",
        }
    }
}

/// Why a dial attempt failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DialFailure {
    /// No answer to IKE_SA_INIT.
    NoAnswer,
    /// IKE_SA_INIT was answered, IKE_AUTH was not.
    NoAnswerToAuth,
    /// The peer refused with this error notification (RFC 7296 §3.10.1).
    Refused(u16),
    /// The peer accepted us but we do not accept the peer.
    NotAuthentic(Violation),
    /// The answer broke the protocol.
    Violation(Violation),
    /// The answer does not parse.
    Malformed(Malformed),
    /// The answer needs something we cannot do.
    Unsupported(Unsupported),
    /// Our own key could not be used.
    NoSigner,
}

impl fmt::Display for DialFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoAnswer => f.write_str("no answer to IKE_SA_INIT"),
            Self::NoAnswerToAuth => f.write_str("no answer to IKE_AUTH"),
            Self::Refused(code) => match notify_name(*code) {
                Some(name) => write!(f, "refused by the peer: {name}"),
                None => write!(f, "refused by the peer: notification {code}"),
            },
            Self::NotAuthentic(violation) | Self::Violation(violation) => violation.fmt(f),
            Self::Malformed(malformed) => malformed.fmt(f),
            Self::Unsupported(unsupported) => unsupported.fmt(f),
            Self::NoSigner => f.write_str("the signing key is not available"),
        }
    }
}

/// IANA name of an error notification.
fn notify_name(code: u16) -> Option<&'static str> {
    Some(match code {
        1 => "UNSUPPORTED_CRITICAL_PAYLOAD",
        4 => "INVALID_IKE_SPI",
        5 => "INVALID_MAJOR_VERSION",
        7 => "INVALID_SYNTAX",
        9 => "INVALID_MESSAGE_ID",
        11 => "INVALID_SPI",
        14 => "NO_PROPOSAL_CHOSEN",
        17 => "INVALID_KE_PAYLOAD",
        24 => "AUTHENTICATION_FAILED",
        34 => "SINGLE_PAIR_REQUIRED",
        35 => "NO_ADDITIONAL_SAS",
        36 => "INTERNAL_ADDRESS_FAILURE",
        37 => "FAILED_CP_REQUIRED",
        38 => "TS_UNACCEPTABLE",
        39 => "INVALID_SELECTORS",
        43 => "TEMPORARY_FAILURE",
        44 => "CHILD_SA_NOT_FOUND",
        _ => return None,
    })
}

/// Why a datagram was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rejection {
    /// It does not parse.
    Malformed(Malformed),
    /// It breaks the protocol.
    Violation(Violation),
    /// It needs something we cannot do.
    Unsupported(Unsupported),
    /// No IKE SA has that SPI.
    UnknownSpi,
    /// Neither the next message ID nor the last one.
    MessageId,
    /// Too many half-open IKE SAs.
    HalfOpenLimit,
    /// No connection is configured for these identities.
    UnknownPeer,
    /// The peer did not prove to be who it says.
    NotAuthentic,
}

impl Rejection {
    /// Stable name for metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Malformed(_) => "malformed",
            Self::Violation(_) => "violation",
            Self::Unsupported(_) => "unsupported",
            Self::UnknownSpi => "unknown-spi",
            Self::MessageId => "message-id",
            Self::HalfOpenLimit => "half-open-limit",
            Self::UnknownPeer => "unknown-peer",
            Self::NotAuthentic => "not-authentic",
        }
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(error) => error.fmt(f),
            Self::Violation(error) => error.fmt(f),
            Self::Unsupported(error) => error.fmt(f),
            Self::UnknownSpi
            | Self::MessageId
            | Self::HalfOpenLimit
            | Self::UnknownPeer
            | Self::NotAuthentic => f.write_str(self.name()),
        }
    }
}

/// State of an IKE SA for `status`.
#[derive(Debug, Clone)]
pub struct IkeSaReport {
    /// The link; `None` while the peer of a half-open SA is unknown.
    pub connection: Option<ConnectionId>,
    /// The SA.
    pub spis: IkeSpis,
    /// Name of its lifecycle state.
    pub state: &'static str,
    /// Whether we initiated it.
    pub initiator: bool,
    /// Whether the peer runs the same software.
    pub ours: bool,
    /// The peer's identity, once authenticated.
    pub remote_id: Option<Identity>,
    /// Cipher of the IKE SA.
    pub encryption: &'static str,
    /// Pseudo-random function.
    pub prf: &'static str,
    /// Key exchange.
    pub key_exchange: &'static str,
    /// When it was established.
    pub established: Option<Instant>,
    /// When it will be rekeyed.
    pub rekey_at: Option<Instant>,
    /// Last authenticated inbound traffic.
    pub last_inbound: Instant,
    /// Last measured round trip of an exchange.
    pub round_trip: Option<Duration>,
    /// Where the peer is.
    pub path: Path,
    /// Whether NAT detection says that we are behind a NAT.
    pub local_nat: bool,
    /// Whether NAT detection says (or the peer pretends) that it is behind a NAT.
    pub remote_nat: bool,
    /// Its CHILD SAs.
    pub children: Vec<ChildReport>,
}

/// State of a CHILD SA for `status`.
#[derive(Debug, Clone)]
pub struct ChildReport {
    /// Our inbound SPI.
    pub spi_in: u32,
    /// The peer's inbound SPI.
    pub spi_out: u32,
    /// Name of its lifecycle state.
    pub state: &'static str,
    /// Cipher.
    pub algorithm: EspAlgorithm,
    /// Whether 64-bit sequence numbers are used.
    pub esn: bool,
    /// When it was established.
    pub established: Instant,
    /// When it will be rekeyed.
    pub rekey_at: Option<Instant>,
}
