//! MOBIKE: an end that moves says so, and the other makes sure that it answers there (RFC 4555).

use std::time::Instant;

use crate::config::{ConnectionId, Path};
use crate::endpoint::Endpoint;
use crate::error::Violation;
use crate::event::Event;
use crate::exchange::{Contents, Pending};
use crate::ike_sa::{IkeSa, Want};
use crate::nat_detection;
use crate::shared::Shared;
use crate::wire::registry::notify;
use crate::wire::{ExchangeType, Notify, Payload};

/// What the initiator of an address update or of a routability check keeps until the response.
pub(crate) struct Update {
    cookie: Vec<u8>,
    path: Path,
}

/// Tells the peer that we are to be reached along the current path. Only who began the first IKE SA may.
//= RFC 4555 §3.5
pub(crate) fn start(sa: &mut IkeSa, shared: &mut Shared, now: Instant) {
    let cookie = shared.nonce();
    let (spis, path) = (sa.spis(), sa.path);
    let mut payloads = vec![Payload::Notify(Notify::new(notify::UPDATE_SA_ADDRESSES, vec![]))];
    payloads.extend(nat_detection::notifications((spis.initiator, spis.responder), &path, &mut shared.rng));
    payloads.push(Payload::Notify(Notify::new(notify::COOKIE2, cookie.clone())));
    let pending = Pending::UpdateAddresses(Update { cookie, path });
    sa.send_request(shared, ExchangeType::Informational, &payloads, pending, now);
}

/// Asks the peer to show that it is where it says to be.
//= RFC 4555 §3.7
pub(crate) fn start_check(sa: &mut IkeSa, shared: &mut Shared, now: Instant) {
    let cookie = shared.nonce();
    let payloads = [Payload::Notify(Notify::new(notify::COOKIE2, cookie.clone()))];
    let pending = Pending::RoutabilityCheck(Update { cookie, path: sa.path });
    sa.send_request(shared, ExchangeType::Informational, &payloads, pending, now);
}

/// Takes the response to either.
///
/// # Errors
/// [`Violation`] if it does not bring our cookie back.
pub(crate) fn finish(
    sa: &mut IkeSa,
    update: &Update,
    contents: Contents<'_>,
    is_check: bool,
) -> Result<(), Violation> {
    //= RFC 4555 §3.7: another cookie means that somebody answers for the peer: the IKE SA is closed.
    if contents.notify(notify::COOKIE2).is_none_or(|notify| notify.data != update.cookie) {
        return Err(Violation::Forbidden("COOKIE2"));
    }
    if is_check || contents.error().is_some() {
        // A refused address: the old ones stay in use at the peer, and liveness checks tell whether that works.
        return Ok(());
    }
    if sa.path != update.path {
        // We moved again meanwhile: the last word counts.
        sa.want(Want::UpdateAddresses, None);
    } else {
        learn_nat(sa, contents, update.path);
    }
    Ok(())
}

/// What a request says about addresses, answered.
pub(crate) fn respond(sa: &mut IkeSa, shared: &mut Shared, contents: Contents<'_>) -> Vec<Payload> {
    let path = sa.arrived_on;
    let mut answer = Vec::new();
    //= RFC 4555 §4.2.5: COOKIE2 is copied, whatever the request is about
    answer.extend(
        contents
            .notify(notify::COOKIE2)
            .map(|cookie| Payload::Notify(Notify::new(notify::COOKIE2, cookie.data.clone()))),
    );
    let updates = contents.has_notify(notify::UPDATE_SA_ADDRESSES);
    if updates && sa.peer.mobike && !sa.peer.we_began && sa.is_established() {
        let refused =
            contents.notify(notify::NO_NATS_ALLOWED).filter(|claimed| claimed.data != addresses(path));
        if refused.is_some() {
            //= RFC 4555 §3.9: nothing changes
            answer.push(Payload::Notify(Notify::new(notify::UNEXPECTED_NAT_DETECTED, vec![])));
            return answer;
        }
        learn_nat(sa, contents, path);
        if sa.path != path {
            sa.path = path;
            sa.tell_path(shared);
        }
        sa.want(Want::RoutabilityCheck, None);
    }
    if contents.has_notify(notify::NAT_DETECTION_SOURCE_IP) {
        let spis = sa.spis();
        answer.extend(nat_detection::notifications((spis.initiator, spis.responder), &path, &mut shared.rng));
    }
    answer
}

fn learn_nat(sa: &mut IkeSa, contents: Contents<'_>, path: Path) {
    if contents.has_notify(notify::NAT_DETECTION_SOURCE_IP) {
        let spis = sa.spis();
        sa.peer.nat = nat_detection::evaluate(contents.notifies(), (spis.initiator, spis.responder), &path);
    }
}

/// Source, destination, and their ports, as NO_NATS_ALLOWED of the sender at the other end of `path` has them.
//= RFC 4555 §4.2.6
fn addresses(path: Path) -> Vec<u8> {
    let octets = |address: std::net::IpAddr| match address {
        std::net::IpAddr::V4(address) => address.octets().to_vec(),
        std::net::IpAddr::V6(address) => address.octets().to_vec(),
    };
    [
        octets(path.remote.ip()),
        octets(path.local.ip()),
        path.remote.port().to_be_bytes().to_vec(),
        path.local.port().to_be_bytes().to_vec(),
    ]
    .concat()
}

impl IkeSa {
    /// Tells the driver where the peer is now.
    pub(crate) fn tell_path(&self, shared: &mut Shared) {
        if let Some(connection) = self.connection {
            shared.events.push_back(Event::PathChanged { connection, path: self.path });
        }
    }

    /// We are somewhere else from now on.
    pub(crate) fn move_to(&mut self, shared: &mut Shared, path: Path) {
        if self.path == path {
            return;
        }
        self.path = path;
        self.tell_path(shared);
        let by_mobike = self.peer.mobike && self.peer.we_began;
        // Without MOBIKE, the peer follows an authenticated message from the new address.
        self.want(if by_mobike { Want::UpdateAddresses } else { Want::Liveness }, None);
    }
}

impl Endpoint {
    /// We are somewhere else: `path` is how the peer of this link is reached from now on. Peers are told by MOBIKE
    /// (RFC 4555) where it applies, and follow an authenticated message otherwise.
    pub fn local_path_changed(&mut self, id: ConnectionId, path: Path, now: Instant) {
        let ours = self.sas.values_mut().filter(|sa| sa.connection == Some(id) && sa.is_established());
        let mut moved = Vec::new();
        for sa in ours {
            sa.move_to(&mut self.shared, path);
            moved.push(sa.local_spi);
        }
        moved.into_iter().for_each(|spi| self.touch(spi));
        self.settle(now);
    }
}
