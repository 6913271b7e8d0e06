//! What the endpoint and its connections are told.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use crate::authentication::{Signer, VerifyingKey};
use crate::certificate::{Authority, OwnCertificate, WallClock};
use crate::identity::Identity;
use crate::key_exchange::Method;
use crate::sealed_payload::IkeCipher;
use crate::secret::SecretBytes;

/// The two ends of a UDP flow as this node sees them. The local address may be unspecified if unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path {
    /// Our address and port.
    pub local: SocketAddr,
    /// The peer's address and port.
    pub remote: SocketAddr,
}

/// Names a link: the pair (local endpoint, remote endpoint).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u32);

/// Settings of the endpoint.
#[non_exhaustive]
pub struct Config {
    /// Signs for this node.
    pub signer: Box<dyn Signer>,
    /// Certificate of this node for connections that prove it by certificate, with the key that it is for.
    pub certificate: Option<OwnCertificate>,
    /// By which certificates of peers are judged. Without it none is accepted.
    pub wall_clock: Option<WallClock>,
    /// Octets of the Vendor ID payload by which nodes of this kind know each other.
    pub vendor_id: Vec<u8>,
    /// All intervals.
    pub timers: Timers,
    /// Bounds on what strangers may cause.
    pub limits: Limits,
    /// Which inbound ESP SPIs are chosen.
    pub spi_placement: SpiPlacement,
    /// Whether [`crate::Event::KeyLog`] is emitted. Gives every key away: tests and debugging only.
    pub keylog: bool,
    /// Whether MOBIKE is announced, and used with peers that know it.
    pub mobike: bool,
    /// Largest IKE datagram sent without fragmentation, in octets of UDP payload without marker.
    pub fragment_size: usize,
    /// Ciphers of IKE SAs in order of preference.
    pub ike_ciphers: Vec<IkeCipher>,
    /// Key exchange methods in order of preference; the first is the one that is tried.
    pub key_exchange_methods: Vec<Method>,
    /// Additional key exchange methods (key encapsulations) in order of preference, accepted from peers that offer
    /// hybrid key exchange.
    pub additional_methods: Vec<Method>,
    /// Whether hybrid key exchange, the first method followed by one of the additional ones, is offered ahead of the
    /// classical one. Costs one more round trip.
    pub offer_hybrid: bool,
    /// Whether key exchanges of strangers are handed out by [`crate::Endpoint::poll_work`] instead of done at once.
    pub defer_key_exchange: bool,
    /// Whether the raw public key is sent in a CERT payload (RFC 7670) although the peer has it pinned.
    pub send_certificate: bool,
}

impl Config {
    /// Defaults around the node's signing key.
    pub fn new(signer: Box<dyn Signer>) -> Self {
        Self {
            signer,
            certificate: None,
            wall_clock: None,
            vendor_id: b"viamesh".to_vec(),
            timers: Timers::default(),
            limits: Limits::default(),
            spi_placement: SpiPlacement::default(),
            keylog: false,
            mobike: true,
            fragment_size: 1180,
            ike_ciphers: IkeCipher::ALL.to_vec(),
            key_exchange_methods: vec![Method::X25519, Method::P256, Method::P384],
            additional_methods: vec![Method::MlKem768, Method::MlKem1024, Method::MlKem512],
            offer_hybrid: false,
            defer_key_exchange: false,
            send_certificate: false,
        }
    }
}

/// Intervals of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timers {
    /// Wait before the first retransmission.
    pub retransmit_first: Duration,
    /// Each further wait is this many percent of the one before.
    pub retransmit_growth_percent: u32,
    /// Longest wait between two retransmissions.
    pub retransmit_max: Duration,
    /// Retransmissions before the peer counts as dead.
    pub retransmit_tries: u32,
    /// Silence (no authenticated inbound traffic) after which liveness is checked.
    pub liveness: Duration,
    /// Age at which a CHILD SA is rekeyed, less up to `rekey_jitter_percent`.
    pub child_rekey: Duration,
    /// Age at which an IKE SA is rekeyed, less up to `rekey_jitter_percent`.
    pub ike_rekey: Duration,
    /// How much older than its rekey age an SA may become. One that could not be rekeyed by then is deleted.
    pub expiry_grace: Duration,
    /// How far below the rekey age the actual moment may fall.
    pub rekey_jitter_percent: u32,
    /// Wait before an exchange refused with TEMPORARY_FAILURE or NO_ADDITIONAL_SAS is tried again; doubles.
    pub refusal_retry: Duration,
    /// How long a half-open IKE SA of a stranger is kept.
    pub half_open: Duration,
    /// Wait before the second dial attempt; doubles up to `dial_retry_max`.
    pub dial_retry_first: Duration,
    /// Longest wait between dial attempts.
    pub dial_retry_max: Duration,
    /// How long the inbound half of a replaced CHILD SA goes on receiving stragglers.
    pub inbound_overlap: Duration,
    /// When a responder switches to the outbound SA of IKE_AUTH although nothing proved that the peer has it. For
    /// one that replaces another it waits longer: the other stays good until the peer deletes it.
    pub outbound_fallback: Duration,
    /// How long a closed IKE SA still answers retransmissions of the request that closed it.
    pub closed_linger: Duration,
}

impl Default for Timers {
    fn default() -> Self {
        Self {
            retransmit_first: Duration::from_millis(500),
            retransmit_growth_percent: 180,
            retransmit_max: Duration::from_secs(10),
            retransmit_tries: 7,
            liveness: Duration::from_secs(10),
            child_rekey: Duration::from_secs(3600),
            ike_rekey: Duration::from_secs(4 * 3600),
            expiry_grace: Duration::from_secs(600),
            rekey_jitter_percent: 10,
            refusal_retry: Duration::from_secs(2),
            half_open: Duration::from_secs(30),
            dial_retry_first: Duration::from_secs(1),
            dial_retry_max: Duration::from_secs(60),
            inbound_overlap: Duration::from_secs(5),
            outbound_fallback: Duration::from_secs(1),
            closed_linger: Duration::from_secs(15),
        }
    }
}

/// Bounds on what unauthenticated peers may cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Half-open IKE SAs of strangers above which every IKE_SA_INIT must carry a cookie.
    pub cookie_threshold: usize,
    /// The same, per source address.
    pub cookie_threshold_per_source: usize,
    /// Half-open IKE SAs of strangers above which new ones are refused.
    pub half_open: usize,
    /// The same, per source address.
    pub half_open_per_source: usize,
    /// CHILD SAs per IKE SA.
    pub children: usize,
    /// IKE SAs per connection (an authenticated peer may open several).
    pub ike_sas_per_connection: usize,
    /// How often a cookie is renewed.
    pub cookie_rotation: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            cookie_threshold: 64,
            cookie_threshold_per_source: 8,
            half_open: 4096,
            half_open_per_source: 64,
            children: 64,
            ike_sas_per_connection: 8,
            cookie_rotation: Duration::from_secs(120),
        }
    }
}

/// Which inbound ESP SPIs are chosen: SPI modulo `workers` is the number of the worker that receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpiPlacement {
    /// Number of workers, at least 1.
    pub workers: u32,
}

impl Default for SpiPlacement {
    fn default() -> Self {
        Self { workers: 1 }
    }
}

/// One link as configured.
#[non_exhaustive]
pub struct ConnectionConfig {
    /// Who we are on this link.
    pub local_id: Identity,
    /// Who the peer must be.
    pub remote_id: Identity,
    /// Keys any of which authenticates the peer (old and new during rotation).
    pub remote_keys: Vec<VerifyingKey>,
    /// Authorities whose certificates authenticate the peer too, if they name `remote_id`.
    pub remote_authorities: Vec<Authority>,
    /// Whether we prove ourselves with [`Config::certificate`] instead of the raw key.
    pub prove_by_certificate: bool,
    /// Shared secret that authenticates both sides instead of keys, if set.
    pub pre_shared_key: Option<SecretBytes>,
    /// Where to dial; `None` if the peer must dial us.
    pub remote_address: Option<SocketAddr>,
    /// Our address on this link, if it is fixed.
    pub local_address: Option<IpAddr>,
    /// The port of our socket for this link.
    pub local_port: u16,
    /// Whether we keep the link up by dialling.
    pub dial: bool,
    /// Worker that receives this link's ESP (inbound SPI modulo [`SpiPlacement::workers`]).
    pub worker: u32,
    /// Whether CHILD rekeys do a key exchange of their own (perfect forward secrecy).
    pub perfect_forward_secrecy: bool,
    /// ESP algorithms in order of preference.
    pub esp_algorithms: Vec<crate::event::EspAlgorithm>,
    /// Whether the first CHILD SA is created after IKE_AUTH, if the peer can (RFC 6023).
    pub childless: bool,
}

impl ConnectionConfig {
    /// Defaults: not dialled, all ESP algorithms with AES-256-GCM first, rekeys with perfect forward secrecy, port 500.
    pub fn new(local_id: Identity, remote_id: Identity, remote_keys: Vec<VerifyingKey>) -> Self {
        Self {
            local_id,
            remote_id,
            remote_keys,
            remote_authorities: Vec::new(),
            prove_by_certificate: false,
            pre_shared_key: None,
            remote_address: None,
            local_address: None,
            local_port: 500,
            dial: false,
            worker: 0,
            perfect_forward_secrecy: true,
            esp_algorithms: vec![
                crate::event::EspAlgorithm::Aes256Gcm16,
                crate::event::EspAlgorithm::Aes128Gcm16,
                crate::event::EspAlgorithm::ChaCha20Poly1305,
            ],
            childless: false,
        }
    }
}
