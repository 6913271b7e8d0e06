//! The packet format (RFC 8966 §4). Everything here is total: no input makes it panic.
//!
//! [`packet::tlvs`] walks the frames, [`parser::Parser`] turns them into [`tlv::Tlv`] values while keeping the
//! state of §4.5, and [`writer::PacketWriter`] does the reverse with prefix and router-id compression.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects, clippy::unwrap_used, clippy::expect_used)]

pub mod acknowledgment;
pub mod address_encoding;
pub mod hello;
pub mod ihu;
pub mod mac;
pub mod next_hop;
pub mod packet;
pub mod parser;
pub mod reader;
pub mod route_request;
pub mod router_id;
pub mod seqno_request;
pub mod sub_tlv;
pub mod tlv;
pub mod update;
pub mod writer;
