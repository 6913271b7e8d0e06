use super::*;
use crate::forwarding::{LinkPath, LocalAddresses, PolicyPath, PrefixTable, Share, SidSpace, SocketIndex};
use crate::policy::{Rule, SteeringTable};
use esp::{Algorithm, Backend, OutboundSa};
use srv6::{Encapsulation, Form, SegmentPath};
use std::net::Ipv6Addr;
use std::sync::Arc;
use std::time::Instant;

const OURS: &str = "fd5d:ac:0:1::1";
const THEIRS: &str = "fd5d:ac:0:2::1";
const THEIR_END: &str = "fd5d:ac:0:2::e";

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn flow(source: &str, destination: &str) -> FlowKey {
    FlowKey {
        source: address(source),
        destination: address(destination),
        protocol: 17,
        ports: Some((1, 2)),
        dscp: 0,
        fragment: false,
    }
}

fn link(id: u32, up: bool) -> Option<LinkPath> {
    let sa =
        OutboundSa::new(0x1000 + id, Algorithm::Aes256Gcm16, &[7; 36], true, Backend::default()).unwrap();
    Some(LinkPath {
        id: LinkId(id),
        socket: SocketIndex(0),
        local: address("0.0.0.0"),
        remote: "192.0.2.1:13000".parse().unwrap(),
        outbound: up.then(|| Arc::new(sa)),
        mtu: 1400,
        fragment_outer: false,
        accept: None,
        hmac: srv6::hmac::Requirement::default(),
        counters: Arc::default(),
    })
}

/// Link 0 is up, link 1 down, link 2 was removed.
fn forwarding() -> Forwarding {
    let mut forwarding = Forwarding::empty(Instant::now());
    forwarding.locals = LocalAddresses::new([
        (address(OURS), Local::Address),
        (address("fd5d:ac:0:1::e"), Local::Sid(Behaviour::END)),
        (address("fd5d:ac:0:1::9"), Local::Probe),
    ]);
    let routes = [
        ("fd5d:ac:0:2::/64", NextHop::Link(LinkId(0))),
        ("fd5d:ac:0:3::/64", NextHop::Link(LinkId(1))),
        ("fd5d:ac:0:4::/64", NextHop::Link(LinkId(2))),
        ("10.1.0.0/16", NextHop::Local),
        ("10.1.9.0/24", NextHop::Link(LinkId(0))),
        ("10.2.0.0/16", NextHop::Unreachable),
    ];
    forwarding.routes = PrefixTable::new(routes.map(|(prefix, next)| (prefix.parse().unwrap(), next)));
    forwarding.links = vec![link(0, true), link(1, false), None];
    forwarding.node_address = OURS.parse().unwrap();
    forwarding.sids = SidSpace::new(
        "fd5d:ac::/32".parse().unwrap(),
        ["2001:db8:5::/48".parse().unwrap()],
        ["2001:db8:9::/48".parse().unwrap()],
    );
    forwarding
}

fn candidate(number: u8, first_stop: &str, link: Option<LinkId>) -> CandidatePath {
    let first: Ipv6Addr = first_stop.parse().unwrap();
    let path = SegmentPath::new(&[first, THEIR_END.parse().unwrap()]).unwrap();
    let encapsulation = Encapsulation::new(OURS.parse().unwrap(), &path, Form::Reduced).unwrap();
    CandidatePath { number, encapsulation, link, mtu: 1300 }
}

fn policy(first_stop: &str, usable: bool, if_unreachable: IfUnreachable) -> PolicyPath {
    let share = Share { weight: 1, path: usable.then(|| candidate(1, first_stop, None)) };
    PolicyPath::new(if_unreachable, Arc::default(), [share])
}

fn steered(policies: Vec<PolicyPath>) -> Decision {
    let mut forwarding = forwarding();
    let rule = Rule { to: vec!["fd5d:ac:0:2::/64".parse().unwrap()], ..Rule::default() };
    forwarding.steering = SteeringTable::compile(&vec![rule; policies.len()]);
    forwarding.policies = policies;
    decide(&forwarding, &flow(OURS, THEIRS), Origin::Tun(Class::NONE))
}

const LINK: Origin = Origin::Link(LinkId(0));
const INTERNET: Origin = Origin::Decapsulated(LinkId(0), Behaviour::Internet);
const DT46: Origin = Origin::Decapsulated(LinkId(0), Behaviour::EndDt46);

fn to_link(link: u32) -> Decision {
    Decision::Link { link: LinkId(link), policy: None }
}

#[test]
fn every_origin_and_destination_has_its_answer() {
    use Decision::{Drop, Local as Deliver, LocalSid, Punt};
    let down = Drop(DropReason::LinkDown);
    let table = [
        (Origin::Tun(Class::NONE), OURS, THEIRS, to_link(0)),
        (Origin::Tun(Class::NONE), OURS, "fd5d:ac:0:3::1", down),
        (Origin::Tun(Class::NONE), OURS, "fd5d:ac:0:4::1", down),
        (Origin::Tun(Class::NONE), OURS, "fd5d:ac:0:5::1", Drop(DropReason::NoRoute)),
        (Origin::Tun(Class::NONE), OURS, OURS, Drop(DropReason::OwnDestinationFromTun)),
        (Origin::Tun(Class::NONE), OURS, THEIR_END, Drop(DropReason::SidFromTun)),
        (Origin::Tun(Class::NONE), OURS, "fd5d:ac:0:1::e", Drop(DropReason::SidFromTun)),
        (Origin::Tun(Class::NONE), OURS, "2001:db8:5::1", Drop(DropReason::SidFromTun)),
        (Origin::Tun(Class::NONE), OURS, "ff02::1:6", Drop(DropReason::Multicast)),
        (Origin::Tun(Class::NONE), OURS, "fe80::1", Drop(DropReason::LinkLocalFromTun)),
        (Origin::Tun(Class::NONE), "::1", THEIRS, Drop(DropReason::Martian)),
        (Origin::Tun(Class::NONE), "10.9.9.9", "10.1.9.1", to_link(0)),
        (Origin::Tun(Class::NONE), "10.9.9.9", "10.1.2.1", Drop(DropReason::RoutingLoop)),
        (Origin::Tun(Class::NONE), "10.9.9.9", "10.2.2.1", Drop(DropReason::Unreachable)),
        (Origin::Tun(Class::NONE), "10.9.9.9", "224.0.0.251", Drop(DropReason::Multicast)),
        (LINK, THEIRS, OURS, Deliver),
        (LINK, THEIRS, "fd5d:ac:0:1::e", LocalSid(Behaviour::END)),
        (LINK, "2001:db8:9::1", "fd5d:ac:0:1::e", LocalSid(Behaviour::END)),
        (LINK, "2001:db8:1::1", "fd5d:ac:0:1::e", Drop(DropReason::SidSourceOutside)),
        (LINK, "2001:db8:1::1", "fd5d:ac:0:3::e", Drop(DropReason::SidSourceOutside)),
        (LINK, THEIRS, "fd5d:ac:0:1::9", Punt),
        (LINK, THEIRS, "fd5d:ac:0:2::7777:1", to_link(0)),
        (LINK, "fe80::1", "fe80::2", Punt),
        (LINK, "fe80::1", "ff02::1:6", Punt),
        (LINK, "fe80::1", "ff12::1:6", Punt),
        (LINK, "fe80::1", "ff05::2", Drop(DropReason::Multicast)),
        (LINK, "fe80::1", OURS, Drop(DropReason::Martian)),
        (LINK, OURS, THEIRS, Drop(DropReason::OwnAddressFromOutside)),
        // Our own envelope on its way between two stops, or with this node as a stop.
        (LINK, OURS, THEIR_END, to_link(0)),
        (LINK, OURS, "fd5d:ac:0:1::e", LocalSid(Behaviour::END)),
        (LINK, "fd5d:ac:0:1::e", THEIR_END, Drop(DropReason::OwnAddressFromOutside)),
        (DT46, OURS, THEIR_END, Drop(DropReason::OwnAddressFromOutside)),
        (LINK, "10.9.9.9", "10.1.2.1", Deliver),
        (LINK, "0.0.0.1", "10.1.2.1", Drop(DropReason::Martian)),
        (DT46, "10.9.9.9", "10.1.2.1", Deliver),
        (DT46, "10.9.9.9", "10.1.9.1", to_link(0)),
        (DT46, "10.9.9.9", "198.51.100.1", Drop(DropReason::NoRoute)),
        (DT46, THEIRS, "fd5d:ac:0:1::e", Drop(DropReason::NestedSid)),
        (DT46, THEIRS, "fd5d:ac:0:3::e", Drop(DropReason::NestedSid)),
        (DT46, "fe80::1", "fe80::2", Drop(DropReason::Martian)),
        (DT46, "fe80::1", "ff02::1:6", Drop(DropReason::Multicast)),
        (INTERNET, "10.9.9.9", "198.51.100.1", Deliver),
        (INTERNET, THEIRS, OURS, Deliver),
        (INTERNET, THEIRS, THEIR_END, Drop(DropReason::NestedSid)),
        (Origin::Node, OURS, THEIR_END, to_link(0)),
        (Origin::Node, OURS, OURS, Deliver),
        (Origin::Node, OURS, "10.1.2.1", Deliver),
    ];
    let forwarding = forwarding();
    for (origin, source, destination, expected) in table {
        let flow = FlowKey { source: address(source), destination: address(destination), ..flow(OURS, OURS) };
        assert_eq!(decide(&forwarding, &flow, origin), expected, "{origin:?} {source} {destination}");
    }
}

#[test]
fn policies_are_followed_in_order_and_step_aside_as_they_say() {
    use IfUnreachable::{AnyPath, Drop, Next};
    const READY: bool = true;
    const UNREACHABLE: bool = false;
    let by = |index| Decision::Link {
        link: LinkId(0),
        policy: Some(Steered { policy: PolicyIndex(index), candidate: 0 }),
    };
    let dropped = Decision::Drop(DropReason::PolicyUnreachable);
    assert_eq!(steered(vec![policy(THEIR_END, READY, Drop)]), by(0));
    assert_eq!(steered(vec![policy(THEIR_END, UNREACHABLE, Drop)]), dropped);
    assert_eq!(steered(vec![policy(THEIR_END, UNREACHABLE, AnyPath)]), to_link(0));
    assert_eq!(steered(vec![policy(THEIR_END, UNREACHABLE, Next)]), to_link(0));
    let next = vec![policy(THEIR_END, UNREACHABLE, Next), policy(THEIR_END, READY, Drop)];
    assert_eq!(steered(next), by(1));
    let next = vec![policy(THEIR_END, UNREACHABLE, Next), policy(THEIR_END, UNREACHABLE, Drop)];
    assert_eq!(steered(next), dropped);
    // Ready as far as the control plane knew, but the first stop's link is down or gone.
    for stop in ["fd5d:ac:0:3::e", "fd5d:ac:0:4::e", "fd5d:ac:0:5::e"] {
        assert_eq!(steered(vec![policy(stop, READY, Drop)]), dropped);
        assert_eq!(steered(vec![policy(stop, READY, AnyPath)]), to_link(0));
    }
    let empty = PolicyPath::new(Drop, Arc::default(), []);
    assert_eq!(steered(vec![empty]), dropped, "nothing to follow is not permission to leave");
}

#[test]
fn traffic_from_links_is_never_steered() {
    let mut forwarding = forwarding();
    forwarding.steering = SteeringTable::compile(&[Rule::default()]);
    forwarding.policies = vec![policy(THEIR_END, true, IfUnreachable::Drop)];
    for origin in [LINK, DT46, Origin::Node] {
        let flow = flow("fd5d:ac:0:6::1", THEIRS);
        assert_eq!(decide(&forwarding, &flow, origin), to_link(0), "{origin:?}");
    }
}

#[test]
fn a_policy_missing_from_the_snapshot_drops() {
    let mut forwarding = forwarding();
    forwarding.steering = SteeringTable::compile(&[Rule::default()]);
    let decision = decide(&forwarding, &flow(OURS, THEIRS), Origin::Tun(Class::NONE));
    assert_eq!(decision, Decision::Drop(DropReason::PolicyUnreachable));
}

#[test]
fn a_flow_leaves_a_candidate_whose_link_went_down() {
    let share = |path| Share { weight: 1, path: Some(path) };
    let shares = [share(candidate(1, "fd5d:ac:0:3::e", None)), share(candidate(2, THEIR_END, None))];
    let two = PolicyPath::new(IfUnreachable::Drop, Arc::default(), shares);
    let by =
        Decision::Link { link: LinkId(0), policy: Some(Steered { policy: PolicyIndex(0), candidate: 1 }) };
    assert_eq!(steered(vec![two]), by);
    // A first stop that must be next to this node is reached by its own link or not at all.
    let direct = |link| {
        let path = candidate(1, THEIR_END, Some(LinkId(link)));
        PolicyPath::new(IfUnreachable::Drop, Arc::default(), [share(path)])
    };
    let by =
        Decision::Link { link: LinkId(0), policy: Some(Steered { policy: PolicyIndex(0), candidate: 0 }) };
    assert_eq!(steered(vec![direct(0)]), by);
    assert_eq!(steered(vec![direct(1)]), Decision::Drop(DropReason::PolicyUnreachable));
}

#[test]
fn compressed_sids_are_found_by_their_prefix_and_protected_from_outside() {
    let mut forwarding = forwarding();
    let next = Behaviour::EndNext(srv6::Flavours::NONE, 32);
    let own = "fd5d:ac:b::/48".parse().unwrap();
    forwarding.locals = forwarding.locals.with_compressed([(own, next)]);
    let other: ipnet::Ipv6Net = "fd5d:ac:c::/48".parse().unwrap();
    forwarding.sids = SidSpace::new("fd5d:ac::/32".parse().unwrap(), [own, other], []);
    forwarding.routes = PrefixTable::new([(ipnet::IpNet::V6(other), NextHop::Link(LinkId(0)))]);
    let decide = |source, destination, origin| super::decide(&forwarding, &flow(source, destination), origin);
    assert_eq!(decide(THEIRS, "fd5d:ac:b:c:b:d:f046:0", LINK), Decision::LocalSid(next));
    assert_eq!(decide(THEIRS, "fd5d:ac:c:b:d:f046::", LINK), to_link(0));
    for destination in ["fd5d:ac:b:c:b:d:f046:0", "fd5d:ac:c:b:d:f046::", "fd5d:ac:0:2::e:7:9"] {
        let from_outside = decide("2001:db8:1::1", destination, LINK);
        assert_eq!(from_outside, Decision::Drop(DropReason::SidSourceOutside), "{destination}");
        assert_eq!(
            decide(OURS, destination, Origin::Tun(Class::NONE)),
            Decision::Drop(DropReason::SidFromTun)
        );
    }
}
