//! A CHILD SA as the control plane sees it (RFC 7296 §2.8, §2.9, §2.17).

use std::time::{Duration, Instant};

use rand_chacha::ChaCha20Rng;
use rand_core::Rng;

use crate::config::{ConnectionId, Timers};
use crate::event::{ChildDownReason, ChildReport, ChildSa, EspAlgorithm, Event, KeyLogTable};
use crate::ike_sa::IkeSa;
use crate::proposal::ChildSuite;
use crate::secret::SecretBytes;
use crate::shared::Shared;
use crate::traffic_selectors::ranges;
use crate::wire::TrafficSelector;

/// Longer than any peer waits between two attempts to get a response.
const SUCCESSOR_FALLBACK: Duration = Duration::from_secs(60);

pub(crate) struct Child {
    pub(crate) spi_in: u32,
    pub(crate) spi_out: u32,
    pub(crate) algorithm: EspAlgorithm,
    pub(crate) esn: bool,
    pub(crate) ts_local: Vec<TrafficSelector>,
    pub(crate) ts_remote: Vec<TrafficSelector>,
    pub(crate) phase: ChildPhase,
    pub(crate) established: Instant,
    /// When it is to be rekeyed by us; `None` once it is replaced.
    pub(crate) rekey_at: Option<Instant>,
    /// When it is deleted although nothing replaced it.
    pub(crate) expire_at: Instant,
    /// When it counts as known to the peer although nothing proved it; `None` once it is known.
    pub(crate) sure_at: Option<Instant>,
    /// Whether it came with IKE_AUTH: then an established peer has it.
    pub(crate) from_ike_auth: bool,
    /// Set if it was made to be the only one of its IKE SA, or replaced such a one.
    pub(crate) only: Option<Only>,
    /// When it is deleted by us because the peer, whose duty it was, did not.
    pub(crate) delete_at: Option<Instant>,
}

/// What decides between two CHILD SAs that were both made to be the only one.
#[derive(Debug, Clone)]
pub(crate) struct Only {
    /// The lower nonce of the exchange that made the first of the series.
    nonce: Vec<u8>,
    /// Whether we began that exchange.
    ours: bool,
}

/// Lifecycle of a CHILD SA.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChildPhase {
    /// In use.
    Installed,
    /// Our request to rekey it is outstanding.
    Rekeying,
    /// The peer replaced it and will delete it.
    Replaced,
    /// Our request to delete it is waiting or outstanding.
    Deleting,
}

impl ChildPhase {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Installed => "installed",
            Self::Rekeying => "rekeying",
            Self::Replaced => "replaced",
            Self::Deleting => "deleting",
        }
    }
}

/// What an exchange agreed on.
pub(crate) struct Agreement<'a> {
    pub(crate) spi_in: u32,
    pub(crate) spi_out: u32,
    pub(crate) suite: ChildSuite,
    pub(crate) ts_local: Vec<TrafficSelector>,
    pub(crate) ts_remote: Vec<TrafficSelector>,
    pub(crate) nonce_i: &'a [u8],
    pub(crate) nonce_r: &'a [u8],
    /// Shared secrets of the key exchanges of this very exchange, in order.
    pub(crate) secrets: &'a [SecretBytes],
    /// Whether we initiated the exchange.
    pub(crate) initiator: bool,
    pub(crate) replaces: Option<u32>,
    /// Whether it may carry our traffic (false for the loser of a collision).
    pub(crate) eligible: bool,
    /// Whether the exchange was IKE_AUTH.
    pub(crate) from_ike_auth: bool,
    /// Whether it is to be the only one of the IKE SA.
    pub(crate) only: bool,
}

/// Derives the keys, remembers the CHILD SA in `sa` and tells the driver.
pub(crate) fn install(sa: &mut IkeSa, shared: &mut Shared, agreement: Agreement<'_>, now: Instant) {
    let (Some(secured), Some(connection)) = (&sa.secured, sa.connection) else { return };
    let length = agreement.suite.algorithm.key_material_len();
    let material = secured.keys.child(agreement.secrets, agreement.nonce_i, agreement.nonce_r, 2 * length);
    //= RFC 7296 §2.17: keys for data from initiator to responder are taken first.
    let (from_initiator, from_responder) = material.expose().split_at(length);
    let (key_out, key_in) =
        if agreement.initiator { (from_initiator, from_responder) } else { (from_responder, from_initiator) };
    let only = match agreement.replaces {
        Some(old) => sa.child_by_inbound(old).and_then(|child| child.only.clone()),
        None => agreement.only.then(|| Only {
            nonce: agreement.nonce_i.min(agreement.nonce_r).to_vec(),
            ours: agreement.initiator,
        }),
    };
    let child = Child {
        spi_in: agreement.spi_in,
        spi_out: agreement.spi_out,
        algorithm: agreement.suite.algorithm,
        esn: agreement.suite.esn,
        ts_local: agreement.ts_local,
        ts_remote: agreement.ts_remote,
        phase: ChildPhase::Installed,
        established: now,
        rekey_at: Some(now + jittered(shared.config.timers.child_rekey, shared)),
        expire_at: now + shared.config.timers.child_rekey + shared.config.timers.expiry_grace,
        sure_at: (!agreement.initiator).then(|| sure_at(&shared.config.timers, agreement.from_ike_auth, now)),
        from_ike_auth: agreement.from_ike_auth,
        only,
        delete_at: None,
    };
    let public = ChildSa {
        spi_in: child.spi_in,
        spi_out: child.spi_out,
        algorithm: child.algorithm,
        esn: child.esn,
        key_in: SecretBytes::new(key_in.to_vec()),
        key_out: SecretBytes::new(key_out.to_vec()),
        ts_local: ranges(&child.ts_local),
        ts_remote: ranges(&child.ts_remote),
        initiator: agreement.initiator,
        replaces: agreement.replaces,
    };
    if shared.config.keylog {
        log_keys(sa, shared, connection, &public);
    }
    shared.events.push_back(Event::ChildUp { connection, child: public });
    if let Some(entry) = shared.connections.get_mut(&connection) {
        entry.outbound.add(child.spi_in, child.spi_out, agreement.initiator);
        if !agreement.eligible {
            entry.outbound.exclude(child.spi_in);
        }
    }
    sa.children.push(child);
    shared.choose_outbound(connection);
    delete_superfluous(sa, shared);
}

/// Both ends may ask for the only CHILD SA at once, and each answer the other. Both know all nonces, so both know
/// which one stays, as where rekeys cross; who began the other one deletes it.
//= RFC 7296 §2.8.1
fn delete_superfluous(sa: &mut IkeSa, shared: &mut Shared) {
    if !sa.peer.ours {
        // Others keep both: each is received on, and the newest is sent on.
        return;
    }
    let rivals = sa.children.iter().filter(|child| child.is_in_use());
    let rivals: Vec<(u32, Only)> =
        rivals.filter_map(|child| child.only.clone().map(|only| (child.spi_in, only))).collect();
    let Some(highest) = rivals.iter().map(|(_, only)| only.nonce.clone()).max() else { return };
    for (spi_in, only) in rivals {
        if only.ours && only.nonce != highest {
            sa.delete_child(shared, spi_in, ChildDownReason::Redundant);
        }
    }
}

/// When a CHILD SA that we responded for counts as known to the peer although nothing proved it.
///
/// One that came with CREATE_CHILD_SA has a predecessor, which stays good until the peer deletes it. A peer that
/// lacks our response asks again only after many seconds, so there is no hurry.
pub(crate) fn sure_at(timers: &Timers, from_ike_auth: bool, now: Instant) -> Instant {
    let fallback = timers.outbound_fallback;
    now + if from_ike_auth { fallback } else { fallback.max(SUCCESSOR_FALLBACK) }
}

/// `age` less a random part of up to the configured percentage.
pub(crate) fn jittered(age: Duration, shared: &mut Shared) -> Duration {
    let percent = shared.config.timers.rekey_jitter_percent.min(90);
    less_random_part(age, percent, &mut shared.rng)
}

fn less_random_part(age: Duration, percent: u32, rng: &mut ChaCha20Rng) -> Duration {
    age - age * (rng.next_u32() % (percent * 10 + 1)) / 1000
}

/// Lines of Wireshark's `esp_sa` table, one per direction. Addresses are wildcards: the SPI suffices.
fn log_keys(sa: &IkeSa, shared: &mut Shared, _connection: ConnectionId, child: &ChildSa) {
    let family = if sa.path.remote.is_ipv4() { "IPv4" } else { "IPv6" };
    let cipher = match child.algorithm {
        EspAlgorithm::Aes256Gcm16 | EspAlgorithm::Aes128Gcm16 => "AES-GCM with 16 octet ICV [RFC4106]",
        EspAlgorithm::ChaCha20Poly1305 => "ChaCha20 with Poly1305 [RFC7634]",
    };
    let sequence_bits = if child.esn { "64-bit" } else { "32-bit" };
    for (spi, key) in [(child.spi_in, &child.key_in), (child.spi_out, &child.key_out)] {
        let key = hex(key.expose());
        let line = format!(
            "\"{family}\",\"*\",\"*\",\"0x{spi:08x}\",\"{cipher}\",\"0x{key}\",\"NULL\",\"\",\"{sequence_bits}\""
        );
        shared.events.push_back(Event::KeyLog { table: KeyLogTable::Esp, line });
    }
}

/// Lower-case hexadecimal, for key logs only.
pub(crate) fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

impl Child {
    pub(crate) fn report(&self) -> ChildReport {
        ChildReport {
            spi_in: self.spi_in,
            spi_out: self.spi_out,
            state: self.phase.name(),
            algorithm: self.algorithm,
            esn: self.esn,
            established: self.established,
            rekey_at: self.rekey_at,
        }
    }

    /// Whether it is neither replaced nor about to be deleted.
    pub(crate) const fn is_in_use(&self) -> bool {
        matches!(self.phase, ChildPhase::Installed | ChildPhase::Rekeying)
    }

    /// Whether the peer has it, or is taken to. Before that nothing can be asked about it.
    pub(crate) const fn is_surely_known(&self) -> bool {
        self.sure_at.is_none()
    }

    /// The next moment at which something is due, and what.
    pub(crate) fn deadline(&self) -> Option<(Instant, &'static str)> {
        let may_rekey = self.phase == ChildPhase::Installed && self.is_surely_known();
        let rekey = self.rekey_at.filter(|_| may_rekey).map(|at| (at, "child rekey"));
        let sure = self.sure_at.map(|at| (at, "outbound switch"));
        let delete = self.delete_at.map(|at| (at, "child delete"));
        let expiry = (self.phase != ChildPhase::Deleting).then_some((self.expire_at, "child expiry"));
        [rekey, sure, delete, expiry].into_iter().flatten().min()
    }
}
