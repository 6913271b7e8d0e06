//! Pings to segments of this node, which no kernel answers.

use crate::forwarding::Down;
use crate::node::Node;
use srv6::ip::echo;

impl Node {
    /// Answers an echo request that is addressed to a segment. False if the packet is none.
    //= RFC 9259 §3.1
    pub(in crate::node) fn answer_echo(&mut self, packet: &[u8]) -> bool {
        let mut reply = vec![0; packet.len()];
        let Some(length) = echo::reply(packet, &mut reply) else { return false };
        reply.truncate(length);
        self.down.push_back(Down::Originate { packet: reply });
        true
    }
}
