//! The TLVs as values.

use super::{hello::Hello, ihu::Ihu, seqno_request::SeqnoRequest, update::Update};
use crate::Prefix;

/// A TLV that means something by itself; Router-Id and Next Hop only set parser state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tlv {
    /// "Answer with an Acknowledgment within the interval" (centiseconds).
    AckRequest {
        /// To be echoed.
        opaque: u16,
        /// Centiseconds.
        interval: u16,
    },
    /// The answer.
    Ack {
        /// The echo.
        opaque: u16,
    },
    /// A sign of life.
    Hello(Hello),
    /// "I heard you".
    Ihu(Ihu),
    /// A route, or its end.
    Update(Update),
    /// "Send an Update for this prefix", or for all.
    RouteRequest {
        /// `None` asks for everything.
        prefix: Option<Prefix>,
    },
    /// "Get me a newer sequence number".
    SeqnoRequest(SeqnoRequest),
}
