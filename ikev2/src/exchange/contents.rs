//! Looking up payloads in a message.

use crate::error::Violation;
use crate::wire::registry::protocol;
use crate::wire::{Identification, Notify, Payload, Proposal, TrafficSelector};

/// The payloads of one message.
#[derive(Clone, Copy)]
pub(crate) struct Contents<'a>(pub(crate) &'a [Payload]);

impl<'a> Contents<'a> {
    /// The one payload that `pick` accepts.
    fn only<T>(
        self,
        name: &'static str,
        pick: impl Fn(&'a Payload) -> Option<T>,
    ) -> Result<Option<T>, Violation> {
        let mut found = self.0.iter().filter_map(pick);
        let first = found.next();
        if found.next().is_some() { Err(Violation::Unexpected(name)) } else { Ok(first) }
    }

    fn required<T>(
        self,
        name: &'static str,
        pick: impl Fn(&'a Payload) -> Option<T>,
    ) -> Result<T, Violation> {
        self.only(name, pick)?.ok_or(Violation::Missing(name))
    }

    pub(crate) fn sa(self) -> Result<&'a [Proposal], Violation> {
        self.optional_sa()?.ok_or(Violation::Missing("SA"))
    }

    pub(crate) fn optional_sa(self) -> Result<Option<&'a [Proposal]>, Violation> {
        self.only("SA", |payload| match payload {
            Payload::SecurityAssociation(proposals) => Some(proposals.as_slice()),
            _ => None,
        })
    }

    pub(crate) fn key_exchange(self) -> Result<Option<(u16, &'a [u8])>, Violation> {
        self.only("KE", |payload| match payload {
            Payload::KeyExchange { method, data } => Some((*method, data.as_slice())),
            _ => None,
        })
    }

    pub(crate) fn nonce(self) -> Result<&'a [u8], Violation> {
        self.required("nonce", |payload| match payload {
            Payload::Nonce(nonce) => Some(nonce.as_slice()),
            _ => None,
        })
    }

    pub(crate) fn id_initiator(self) -> Result<&'a Identification, Violation> {
        self.required("IDi", |payload| match payload {
            Payload::IdentificationInitiator(id) => Some(id),
            _ => None,
        })
    }

    pub(crate) fn id_responder(self) -> Result<Option<&'a Identification>, Violation> {
        self.only("IDr", |payload| match payload {
            Payload::IdentificationResponder(id) => Some(id),
            _ => None,
        })
    }

    pub(crate) fn authentication(self) -> Result<(u8, &'a [u8]), Violation> {
        self.required("AUTH", |payload| match payload {
            Payload::Authentication { method, data } => Some((*method, data.as_slice())),
            _ => None,
        })
    }

    pub(crate) fn ts_initiator(self) -> Result<&'a [TrafficSelector], Violation> {
        self.required("TSi", |payload| match payload {
            Payload::TrafficSelectorInitiator(selectors) => Some(selectors.as_slice()),
            _ => None,
        })
    }

    pub(crate) fn ts_responder(self) -> Result<&'a [TrafficSelector], Violation> {
        self.required("TSr", |payload| match payload {
            Payload::TrafficSelectorResponder(selectors) => Some(selectors.as_slice()),
            _ => None,
        })
    }

    /// CERT payloads: encoding and data.
    pub(crate) fn certificates(self) -> impl Iterator<Item = (u8, &'a [u8])> {
        self.0.iter().filter_map(|payload| match payload {
            Payload::Certificate { encoding, data } => Some((*encoding, data.as_slice())),
            _ => None,
        })
    }

    pub(crate) fn notifies(self) -> impl Iterator<Item = &'a Notify> + Clone {
        self.0.iter().filter_map(|payload| match payload {
            Payload::Notify(notify) => Some(notify),
            _ => None,
        })
    }

    pub(crate) fn notify(self, kind: u16) -> Option<&'a Notify> {
        self.notifies().find(|notify| notify.kind == kind)
    }

    pub(crate) fn has_notify(self, kind: u16) -> bool {
        self.notify(kind).is_some()
    }

    /// The first error notification.
    pub(crate) fn error(self) -> Option<&'a Notify> {
        self.notifies().find(|notify| notify.is_error())
    }

    pub(crate) fn has_vendor_id(self, vendor_id: &[u8]) -> bool {
        self.0.iter().any(|payload| matches!(payload, Payload::VendorId(octets) if octets == vendor_id))
    }

    /// Whether the SA payload proposes an IKE SA, which makes the message an IKE rekey.
    pub(crate) fn offers_ike_sa(self) -> bool {
        let first = |payload: &Payload| match payload {
            Payload::SecurityAssociation(proposals) => {
                proposals.first().is_some_and(|proposal| proposal.protocol == protocol::IKE)
            }
            _ => false,
        };
        self.0.iter().any(first)
    }
}
