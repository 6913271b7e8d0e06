//! What must hold for any bytes taken for a packet that arrives at a SID. Shared by the fuzz target, the replayed corpus
//! and the property tests.

use srv6::error::Error;
use srv6::headend::MAX_HEADER_LEN;
use srv6::hmac::{HmacKey, HmacKeys, Requirement};
use srv6::ip::icmp_error::{self, IcmpError, MAX_LEN};
use srv6::ip::{Ipv4View, Ipv6View, decrement_hop_limit, echo, fragmentation, icmp_quote, mss};
use srv6::{Behaviour, Encapsulation, Flavours, FlowKey, FlowSummary, Form, Outcome, SegmentPath, process};

/// Runs everything that takes a packet over the bytes.
pub(crate) fn check(packet: &[u8]) {
    for behaviour in behaviours() {
        arrive(packet, behaviour);
    }
    let _ = FlowKey::parse(packet);
    check_hmac(packet);
    check_icmp(packet);
    change(packet);
    encapsulate(packet);
}

fn behaviours() -> [Behaviour; 9] {
    let all = Flavours { psp: true, usp: true, usd: true };
    [
        Behaviour::END,
        Behaviour::End(all),
        Behaviour::EndX(all, 3),
        Behaviour::EndNext(Flavours::NONE, 32),
        Behaviour::EndNext(all, u8::MAX),
        Behaviour::EndDt4,
        Behaviour::EndDt6,
        Behaviour::EndDt46,
        Behaviour::Internet,
    ]
}

/// What leaves a SID is whole, and an error changes nothing.
fn arrive(packet: &[u8], behaviour: Behaviour) {
    let mut changed = packet.to_vec();
    match process(&mut changed, behaviour) {
        Ok(Outcome::Forward { packet: place, destination, .. }) => {
            let view = Ipv6View::parse(&changed[place.clone()]).expect("a whole packet goes on");
            assert_eq!((view.total_len(), view.destination()), (place.len(), destination));
            let before = Ipv6View::parse(packet).expect("a whole packet came");
            assert_eq!(view.hop_limit() + 1, before.hop_limit(), "one hop was counted");
        }
        Ok(Outcome::Decapsulated { inner }) => {
            let inner = &changed[inner];
            let whole = Ipv4View::parse(inner).is_ok_and(|view| view.total_len() == inner.len())
                || Ipv6View::parse(inner).is_ok_and(|view| view.total_len() == inner.len());
            assert!(whole, "a whole packet leaves its envelope");
        }
        Ok(Outcome::UpperLayer { offset, .. }) => assert!(offset <= packet.len()),
        Err(error) => {
            assert_eq!(changed, packet, "{error} changed the packet");
            check_pointer(&error, packet);
        }
    }
}

fn check_pointer(error: &Error, packet: &[u8]) {
    if let Some(IcmpError::ParameterProblem { pointer, .. }) = error.icmp() {
        assert!(pointer as usize <= packet.len(), "{error} points beyond the packet");
    }
}

fn check_hmac(packet: &[u8]) {
    let keys = HmacKeys::new(vec![HmacKey::new(1, b"secret").expect("a key")]);
    for requirement in [Requirement::Ignored, Requirement::IfPresent, Requirement::Required] {
        if let Err(error) = keys.check(packet, requirement) {
            check_pointer(&error, packet);
        }
    }
}

/// An ICMP error is never too long, is never answered itself, and names the packet that it is about.
fn check_icmp(packet: &[u8]) {
    let mut out = [0; 2 * MAX_LEN];
    for source in ["fd5d:ac:0:1::1", "192.0.0.8"] {
        let source = source.parse().expect("an address");
        let told = icmp_error::write(IcmpError::PacketTooBig { mtu: 1280 }, source, packet, &mut out);
        let Ok(len) = told else { continue };
        assert!(len <= MAX_LEN);
        let report = out[..len].to_vec();
        let answer = icmp_error::write(IcmpError::TimeExceeded, source, &report, &mut out);
        assert!(answer.is_err(), "an error about an error");
        if let Some(traveller) = icmp_quote::quoted_traveller(&report) {
            assert!(packet[traveller.envelope_len..].starts_with(traveller.inner));
        }
    }
    let _ = icmp_quote::quoted_traveller(packet);
    if let Some(len) = echo::reply(packet, &mut out) {
        let mut second = [0; 2 * MAX_LEN];
        assert!(echo::reply(&out[..len], &mut second).is_none(), "a reply is not answered");
    }
}

/// What changes packets in place keeps their length, and does its work once.
fn change(packet: &[u8]) {
    let mut changed = packet.to_vec();
    if mss::clamp(&mut changed, 1280) {
        assert!(!mss::clamp(&mut changed, 1280));
    }
    let _ = decrement_hop_limit(&mut changed);
    if let Ok(Some(mut fragments)) = fragmentation::fragment(packet, 100) {
        let mut out = [0; 100];
        let mut pieces = 0;
        while let Some(len) = fragments.write_next(&mut out) {
            pieces += 1;
            assert!(Ipv4View::parse(&out[..len]).is_ok_and(|piece| piece.total_len() == len));
            assert!(pieces <= packet.len(), "fragments without end");
        }
    }
}

/// Whatever parses can be put onto a path, and arrives as it left.
fn encapsulate(packet: &[u8]) {
    let (Ok(summary), Ok(key)) = (FlowSummary::parse(packet), FlowKey::parse(packet)) else { return };
    assert_eq!(summary.flow_label, key.flow_label());
    let total_len = Ipv4View::parse(packet)
        .map(|view| view.total_len())
        .or_else(|_| Ipv6View::parse(packet).map(|view| view.total_len()))
        .expect("what has a key parses");
    let sid = "fd5d:ac:0:1::46".parse().expect("an address");
    let path = SegmentPath::new(&[sid]).expect("one stop");
    let encapsulation = Encapsulation::new(sid, &path, Form::Full).expect("an envelope");
    let mut out = vec![0; MAX_HEADER_LEN + total_len];
    let Ok(len) = encapsulation.write(&mut out, &summary, total_len) else { return };
    out[len..len + total_len].copy_from_slice(&packet[..total_len]);
    let end = len + total_len;
    let outcome = process(&mut out[..end], Behaviour::EndDt46);
    assert_eq!(outcome, Ok(Outcome::Decapsulated { inner: len..end }));
    assert_eq!(&out[len..end], &packet[..total_len]);
}
