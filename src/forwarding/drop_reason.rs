//! Why a packet was discarded.

/// Declares [`DropReason`] with its metric label and its sentence in one table.
macro_rules! drop_reasons {
    ($($variant:ident, $name:literal, $sentence:literal;)+) => {
        /// Why a packet was discarded: the label of the drop counter, the line of `trace`
        /// and the sentence that `explain` prints.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum DropReason {
            $(#[doc = $sentence] $variant,)+
        }

        impl DropReason {
            /// Every reason, in the order of its discriminants.
            pub const ALL: &'static [DropReason] = &[$(DropReason::$variant,)+];

            /// Stable snake-case name: the value of the metric label `reason`.
            pub const fn name(self) -> &'static str {
                match self { $(DropReason::$variant => $name,)+ }
            }

            /// One sentence for people.
            pub const fn explanation(self) -> &'static str {
                match self { $(DropReason::$variant => $sentence,)+ }
            }
        }
    };
}

drop_reasons! {
    // Datagrams, before anything in them is believed.
    Runt, "runt", "the datagram is too short to hold anything";
    UnknownSpi, "unknown_spi", "no inbound security association has this SPI";
    EspTooShort, "esp_too_short", "the ESP packet is shorter than its own header and trailer";
    Replayed, "replayed", "the ESP sequence number was received before";
    OutsideWindow, "outside_window", "the ESP sequence number is older than the replay window";
    IntegrityFailure, "integrity_failure", "the ESP integrity check failed";
    BadPadding, "bad_padding", "the ESP trailer holds padding that no sender may write";
    Dummy, "dummy", "an ESP dummy packet, discarded as RFC 4303 §2.6 demands";
    UnknownNextHeader, "unknown_next_header", "the ESP payload is neither IPv4 nor IPv6";
    StrangerTooLong, "stranger_too_long", "an IKE message longer than the control plane accepts";
    StrangerRingFull, "stranger_ring_full", "the control plane is behind with IKE messages";
    PuntRingFull, "punt_ring_full", "the control plane is behind with authenticated packets";
    // Inner packets.
    Malformed, "malformed", "the inner packet does not parse";
    Martian, "martian", "the inner source address can never be a sender";
    OwnAddressFromOutside, "own_address_from_outside", "the inner source is an address of this node, but the packet came from a link";
    TransitRefused, "transit_refused", "the peer may send only from its own prefixes and this source is outside them";
    Multicast, "multicast", "multicast and broadcast are not carried through the mesh";
    LinkLocalFromTun, "link_local_from_tun", "link-local destinations have no meaning on the TUN";
    OwnDestinationFromTun, "own_destination_from_tun", "the kernel sent a packet for this node into the mesh";
    SidFromTun, "sid_from_tun", "segment identifiers are not reachable from applications or the LAN";
    SidSourceOutside, "sid_source_outside", "the destination is a segment identifier but the source is outside the mesh";
    NestedSid, "nested_sid", "the decapsulated packet is addressed to a segment identifier again";
    HopLimitExceeded, "hop_limit_exceeded", "the hop limit ran out here";
    NoRoute, "no_route", "no prefix of the mesh contains the destination";
    Unreachable, "unreachable", "the destination is declared unreachable";
    RoutingLoop, "routing_loop", "the kernel sent a packet for a network behind this node into the mesh";
    LinkDown, "link_down", "the link towards the destination has no security association";
    PolicyUnreachable, "policy_unreachable", "a stop of the policy is unreachable and the policy says drop";
    TooBig, "too_big", "the packet is larger than the path takes";
    CongestionUnmarkable, "congestion_unmarkable", "the underlay marked congestion and the inner packet cannot carry the mark";
    // SRv6 behaviours.
    SegmentRouting, "segment_routing", "the segment routing header is invalid";
    SegmentsLeft, "segments_left", "a decapsulating segment is not the last one";
    SegmentListUnsigned, "segment_list_unsigned", "the signature of the segment list is wrong, or missing where it is demanded";
    UpperLayerAtSid, "upper_layer_at_sid", "the segment identifier serves no upper layer";
    InnerMismatch, "inner_mismatch", "the inner protocol is not the one that the segment decapsulates";
    // Leaving.
    BadOffload, "bad_offload", "the offload header of the TUN contradicts the packet";
    EgressFull, "egress_full", "no send buffer is free";
    SequenceExhausted, "sequence_exhausted", "the security association has no sequence number left";
    DatagramTooBig, "datagram_too_big", "the kernel knows a smaller path MTU for the datagram";
    SendRefused, "send_refused", "the kernel refused to send the datagram";
    NoKernelBuffer, "no_kernel_buffer", "the kernel had no buffer for the datagram";
    TunRefused, "tun_refused", "the kernel refused the packet on the TUN";
}

impl DropReason {
    /// How many reasons there are.
    pub const COUNT: usize = Self::ALL.len();
}

impl std::fmt::Display for DropReason {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_labels_and_indices_match() {
        let names: BTreeSet<_> = DropReason::ALL.iter().map(|reason| reason.name()).collect();
        assert_eq!(names.len(), DropReason::COUNT);
        for (index, reason) in DropReason::ALL.iter().enumerate() {
            assert_eq!(*reason as usize, index);
            assert!(reason.name().bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'));
            assert!(!reason.explanation().is_empty());
        }
    }
}
