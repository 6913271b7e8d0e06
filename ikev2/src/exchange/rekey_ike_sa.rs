//! Rekeying the IKE SA, and both sides doing so at once (RFC 7296 §1.3.2, §2.8.2, §2.18, §2.25.2).

use std::time::{Duration, Instant};

use crate::child_sa::{ChildPhase, jittered};
use crate::collision::{Outcome, compare};
use crate::error::Violation;
use crate::event::{Event, IkeDownReason, IkeSpis};
use crate::exchange::child_negotiation::{
    agree, complete_exchange, further_payloads, key_exchange_payload, requested_method, retry,
};
use crate::exchange::ike_followup_ke::{self, HalfMade as Following};
use crate::exchange::ike_sa_init::policy;
use crate::exchange::{Contents, Pending, Refusal};
use crate::ike_sa::{IkeSa, Phase, Secured, Want};
use crate::key_exchange::{KeyExchange, Method};
use crate::key_schedule::Freshness;
use crate::proposal::{IkePolicy, IkeSuite};
use crate::secret::SecretBytes;
use crate::shared::{Action, Shared};
use crate::wire::registry::notify;
use crate::wire::{ExchangeType, Payload};

/// How long we wait for the peer to delete the IKE SA that it replaced.
const DELETE_GRACE: Duration = Duration::from_secs(30);
/// Wait before another try when CHILD SAs are in motion.
const BUSY_RETRY: Duration = Duration::from_millis(500);

/// What the initiator keeps until the response.
pub(crate) struct Rekey {
    spi: u64,
    nonce: Vec<u8>,
    exchange: KeyExchange,
    /// The peer's own rekey, if we answered one meanwhile.
    passive: Option<Passive>,
    /// What CREATE_CHILD_SA agreed on while IKE_FOLLOWUP_KE is outstanding.
    agreed: Option<Agreed>,
}

struct Agreed {
    suite: IkeSuite,
    remote_spi: u64,
    nonce_r: Vec<u8>,
    secrets: Vec<SecretBytes>,
    additional: Option<KeyExchange>,
}

impl Rekey {
    /// Whether the outstanding request is an IKE_FOLLOWUP_KE.
    pub(crate) fn is_following(&self) -> bool {
        self.agreed.is_some()
    }
}

/// An IKE SA that the responder completes in IKE_FOLLOWUP_KE.
pub(crate) struct HalfMade {
    pub(crate) suite: IkeSuite,
    local_spi: u64,
    remote_spi: u64,
    secrets: Vec<SecretBytes>,
    nonce_i: Vec<u8>,
    nonce_r: Vec<u8>,
}

/// Algorithms for the new SA. The additional key exchange of the old one is used again; where there was
/// none the peer may not know of such things.
fn rekey_policy(sa: &IkeSa, shared: &Shared) -> IkePolicy {
    let mut policy = policy(&shared.config);
    let suite = sa.secured.as_ref().map(|secured| secured.suite);
    policy.additional = suite.and_then(|suite| suite.additional).into_iter().collect();
    policy
}

struct Passive {
    local_spi: u64,
    spis: IkeSpis,
    lowest_nonce: Vec<u8>,
}

/// Asks to replace the IKE SA.
pub(crate) fn start(sa: &mut IkeSa, shared: &mut Shared, method: Option<Method>, now: Instant) {
    if !sa.is_established() {
        return;
    }
    if sa.following.is_some() || sa.children.iter().any(|child| child.phase != ChildPhase::Installed) {
        // What the peer still has to delete must be deleted on the SA that it knows.
        return sa.want(Want::RekeyIke, Some(now + BUSY_RETRY));
    }
    let policy = rekey_policy(sa, shared);
    let negotiated = sa.secured.as_ref().map(|secured| secured.suite.method);
    let Some(method) = method.or(negotiated) else { return };
    let (spi, nonce) = (shared.ike_spi(), shared.nonce());
    let exchange = KeyExchange::initiate(method, &mut shared.rng);
    let payloads = [
        Payload::SecurityAssociation(policy.offer(&spi.to_be_bytes())),
        Payload::Nonce(nonce.clone()),
        key_exchange_payload(&exchange),
    ];
    sa.rekey_at = None;
    let pending = Pending::RekeyIke(Box::new(Rekey { spi, nonce, exchange, passive: None, agreed: None }));
    sa.send_request(shared, ExchangeType::CreateChildSa, &payloads, pending, now);
}

/// Takes the response.
///
/// # Errors
/// [`Violation`] if the response breaks the protocol.
pub(crate) fn finish(
    sa: &mut IkeSa,
    shared: &mut Shared,
    mut rekey: Rekey,
    contents: Contents<'_>,
    now: Instant,
) -> Result<(), Violation> {
    if let Some(error) = contents.error() {
        if rekey.passive.is_some() {
            adopt(sa, shared, rekey.passive, now);
        } else if let Some(method) =
            requested_method(error, &policy(&shared.config).methods, Some(&rekey.exchange))
        {
            start(sa, shared, Some(method), now);
        } else {
            retry(sa, shared, Want::RekeyIke, now);
        }
        return Ok(());
    }
    let agreed = match rekey.agreed.take() {
        Some(mut agreed) => {
            let exchange = agreed.additional.take().ok_or(Violation::Unexpected("IKE_FOLLOWUP_KE"))?;
            agreed.secrets.push(complete_exchange(&exchange, contents)?);
            agreed
        }
        None => {
            let mut agreed = read_agreement(sa, shared, &rekey, contents)?;
            if let Some(method) = agreed.suite.additional {
                let link = contents.notify(notify::ADDITIONAL_KEY_EXCHANGE);
                let link = link.ok_or(Violation::Missing("ADDITIONAL_KEY_EXCHANGE"))?.data.clone();
                let exchange = KeyExchange::initiate(method, &mut shared.rng);
                let payloads = further_payloads(&exchange, link);
                agreed.additional = Some(exchange);
                rekey.agreed = Some(agreed);
                let pending = Pending::RekeyIke(Box::new(rekey));
                sa.send_request(shared, ExchangeType::IkeFollowupKe, &payloads, pending, now);
                return Ok(());
            }
            agreed
        }
    };
    conclude_own(sa, shared, rekey, &agreed, now);
    Ok(())
}

fn read_agreement(
    sa: &IkeSa,
    shared: &Shared,
    rekey: &Rekey,
    contents: Contents<'_>,
) -> Result<Agreed, Violation> {
    let choice = rekey_policy(sa, shared).confirm(contents.sa()?)?;
    let remote_spi = spi_of(&choice.spi).ok_or(Violation::Forbidden("IKE SPI"))?;
    let nonce_r = contents.nonce()?.to_vec();
    if choice.suite.method != rekey.exchange.method() {
        return Err(Violation::NotOffered("a key exchange method"));
    }
    let secrets = vec![complete_exchange(&rekey.exchange, contents)?];
    Ok(Agreed { suite: choice.suite, remote_spi, nonce_r, secrets, additional: None })
}

/// Our rekey made an SA: it takes over, unless it lost against the peer's.
fn conclude_own(sa: &mut IkeSa, shared: &mut Shared, rekey: Rekey, agreed: &Agreed, now: Instant) {
    let (nonce_i, nonce_r) = (rekey.nonce.as_slice(), agreed.nonce_r.as_slice());
    let fresh = Freshness { nonce_i, nonce_r, spi_i: rekey.spi, spi_r: agreed.remote_spi };
    let lowest = nonce_i.min(nonce_r);
    let outcome =
        rekey.passive.as_ref().map_or(Outcome::Ours, |passive| compare(lowest, &passive.lowest_nonce));
    let mut new = successor(sa, shared, true, agreed.suite, &agreed.secrets, fresh, now);
    match outcome {
        Outcome::Ours => {
            hand_over(sa, shared, new, true, now);
            //= RFC 7296 §2.8.2: exactly the old SA is deleted, by the initiator of its successor.
            sa.tasks.clear();
            sa.phase = Phase::Closing;
            sa.want(Want::DeleteIke(IkeDownReason::Rekeyed), None);
        }
        Outcome::Theirs => {
            new.phase = Phase::Closing;
            new.established = None;
            new.want(Want::DeleteIke(IkeDownReason::Redundant), None);
            shared.actions.push_back(Action::Insert(Box::new(new)));
            adopt(sa, shared, rekey.passive, now);
        }
    }
}

/// An IKE SPI as it stands in a proposal.
fn spi_of(octets: &[u8]) -> Option<u64> {
    let spi = u64::from_be_bytes(octets.try_into().ok()?);
    (spi != 0).then_some(spi)
}

/// The new IKE SA, without CHILD SAs yet.
fn successor(
    sa: &IkeSa,
    shared: &mut Shared,
    initiator: bool,
    suite: IkeSuite,
    secrets: &[SecretBytes],
    fresh: Freshness<'_>,
    now: Instant,
) -> IkeSa {
    let (local_spi, remote_spi) =
        if initiator { (fresh.spi_i, fresh.spi_r) } else { (fresh.spi_r, fresh.spi_i) };
    let mut new = IkeSa::new(local_spi, initiator, sa.path, now);
    new.remote_spi = remote_spi;
    new.connection = sa.connection;
    new.peer = sa.peer;
    new.proven.clone_from(&sa.proven);
    new.phase = Phase::Established;
    new.established = Some(now);
    new.rekey_at = Some(now + jittered(shared.config.timers.ike_rekey, shared));
    new.expire_at = Some(now + shared.config.timers.ike_rekey + shared.config.timers.expiry_grace);
    if let Some(secured) = &sa.secured {
        let keys = secured.keys.rekeyed(suite.prf, suite.cipher, secrets, fresh);
        new.secured = Some(Secured::new(suite, keys, initiator));
    }
    new.log_keys(shared);
    new
}

/// CHILD SAs and waiting tasks of `sa` go to its successor, which starts to live.
fn hand_over(sa: &mut IkeSa, shared: &mut Shared, mut new: IkeSa, initiator: bool, now: Instant) {
    new.announced = true;
    new.children = std::mem::take(&mut sa.children);
    let keep = |task: &crate::ike_sa::Task| task.what != Want::RekeyIke && task.what != Want::Liveness;
    new.tasks = std::mem::take(&mut sa.tasks).into_iter().filter(keep).collect();
    for child in new.children.iter_mut().filter(|child| child.phase == ChildPhase::Rekeying) {
        // Our request for it dies with the old SA.
        child.phase = ChildPhase::Installed;
        child.rekey_at = Some(now);
    }
    new.supersedes = std::mem::take(&mut sa.supersedes);
    announce(sa, shared, new.local_spi, new.spis(), initiator);
    // Indexed before the response leaves, so that the peer's next message finds it.
    shared.actions.push_back(Action::Insert(Box::new(new)));
}

fn announce(sa: &IkeSa, shared: &mut Shared, new: u64, new_spis: IkeSpis, initiator: bool) {
    let Some(connection) = sa.connection else { return };
    shared.events.push_back(Event::IkeRekeyed { connection, old: sa.spis(), new: new_spis, initiator });
    shared.actions.push_back(Action::Replaced { connection, old: sa.local_spi, new });
}

/// The peer's rekey stands: its SA inherits, and the peer deletes the old one.
fn adopt(sa: &mut IkeSa, shared: &mut Shared, passive: Option<Passive>, now: Instant) {
    let Some(passive) = passive else { return };
    if matches!(&sa.following, Some(following) if matches!(following.what, Following::Ike(_))) {
        // It is not complete yet; it takes over when it is.
        return;
    }
    announce(sa, shared, passive.local_spi, passive.spis, false);
    if let Some(connection) = sa.connection {
        shared.actions.push_back(Action::Adopt {
            connection,
            into: passive.local_spi,
            spis: passive.spis,
            children: std::mem::take(&mut sa.children),
            tasks: std::mem::take(&mut sa.tasks),
        });
    }
    sa.phase = Phase::Replaced { until: now + DELETE_GRACE, by: passive.local_spi };
}

/// The peer's rekey will never be complete.
pub(crate) fn forget_passive(sa: &mut IkeSa) {
    if let Some(Pending::RekeyIke(rekey)) = &mut sa.pending {
        rekey.passive = None;
    }
}

/// The peer deletes `sa` while our own rekey of it is outstanding.
//= RFC 7296 §2.25.2: reply as usual, and forget about the own rekeying request.
pub(crate) fn conclude(sa: &mut IkeSa, shared: &mut Shared, now: Instant) {
    if let Some(Pending::RekeyIke(rekey)) =
        sa.pending.take_if(|pending| matches!(pending, Pending::RekeyIke(_)))
    {
        sa.window.abandon();
        adopt(sa, shared, rekey.passive, now);
    }
}

/// Answers the peer's request to replace the IKE SA.
///
/// # Errors
/// [`Refusal`] with the notification of the RFC.
pub(crate) fn respond(
    sa: &mut IkeSa,
    shared: &mut Shared,
    contents: Contents<'_>,
    now: Instant,
) -> Result<Vec<Payload>, Refusal> {
    let busy = match &sa.pending {
        Some(Pending::CreateChild(_) | Pending::RekeyChild(_) | Pending::DeleteChild { .. }) => true,
        Some(Pending::RekeyIke(rekey)) => rekey.passive.is_some(),
        _ => false,
    };
    if busy || sa.following.is_some() || sa.children.iter().any(|child| child.phase == ChildPhase::Deleting) {
        //= RFC 7296 §2.25.2
        return Err(Refusal::with(notify::TEMPORARY_FAILURE));
    }
    let sent = contents.key_exchange()?.ok_or(Violation::Missing("KE"))?;
    let nonce_i = contents.nonce()?.to_vec();
    let choice = rekey_policy(sa, shared).select(contents.sa()?, Some(sent.0));
    let choice = choice.ok_or(Refusal::with(notify::NO_PROPOSAL_CHOSEN))?;
    let remote_spi = spi_of(&choice.spi).ok_or(Violation::Forbidden("IKE SPI"))?;
    let (exchange, secrets) = agree(shared, Some(choice.suite.method), Some(sent))?;
    let (local_spi, nonce_r) = (shared.ike_spi(), shared.nonce());
    let mut proposal = choice.proposal;
    proposal.spi = local_spi.to_be_bytes().to_vec();
    let mut payloads = vec![Payload::SecurityAssociation(vec![proposal]), Payload::Nonce(nonce_r.clone())];
    payloads.extend(exchange.as_ref().map(key_exchange_payload));
    if let Some(Pending::RekeyIke(rekey)) = &mut sa.pending {
        let spis = IkeSpis { initiator: remote_spi, responder: local_spi };
        let lowest_nonce = nonce_i.clone().min(nonce_r.clone());
        rekey.passive = Some(Passive { local_spi, spis, lowest_nonce });
    }
    let half = HalfMade { suite: choice.suite, local_spi, remote_spi, secrets, nonce_i, nonce_r };
    if choice.suite.additional.is_some() {
        payloads.push(ike_followup_ke::expect(sa, shared, Following::Ike(Box::new(half)), now));
    } else {
        install(sa, shared, half, now);
    }
    Ok(payloads)
}

/// Completes the peer's IKE SA with the secret of its additional key exchange.
pub(crate) fn complete(
    sa: &mut IkeSa,
    shared: &mut Shared,
    mut half: HalfMade,
    secret: SecretBytes,
    now: Instant,
) {
    half.secrets.push(secret);
    install(sa, shared, half, now);
}

/// The peer's rekey made an SA. If ours is under way, who inherits is decided when it ends.
fn install(sa: &mut IkeSa, shared: &mut Shared, half: HalfMade, now: Instant) {
    let (nonce_i, nonce_r) = (half.nonce_i.as_slice(), half.nonce_r.as_slice());
    let fresh = Freshness { nonce_i, nonce_r, spi_i: half.remote_spi, spi_r: half.local_spi };
    let mut new = successor(sa, shared, false, half.suite, &half.secrets, fresh, now);
    // Our own requests wait until the peer surely knows the new SA.
    new.hold_until = Some(now + shared.config.timers.inbound_overlap);
    // After our own rekey has won, the peer's is redundant: it will delete it.
    let inherits = sa.is_established() && !matches!(sa.pending, Some(Pending::RekeyIke(_)));
    if !inherits {
        new.rekey_at = None;
        shared.actions.push_back(Action::Insert(Box::new(new)));
    } else {
        let by = new.local_spi;
        hand_over(sa, shared, new, false, now);
        sa.rekey_at = None;
        sa.phase = Phase::Replaced { until: now + DELETE_GRACE, by };
    }
}
