//! The Linux kernel's segment routing: waypoint, exit and headend beside ours, with 1, 2, 3 and 6 segments, reduced and
//! in full, with an HMAC and without.

mod journey;
mod kernel;
mod travellers;

use crate::case::Case;
use journey::{Journey, Neighbour, OUR_END, OUR_EXIT, OURS, Station};
use kernel::{KERNEL_END, KERNEL_END_X, KERNEL_PSP, Kernel, Requirement};
use srv6::headend::Form;
use srv6::hmac::HmacKey;
use srv6::{Encapsulation, FlowSummary, SegmentPath};
use std::net::Ipv6Addr;
use travellers::{Traveller, V4, V6};

/// Segments in a list.
const LENGTHS: [usize; 4] = [1, 2, 3, 6];
const FORMS: [Form; 2] = [Form::Reduced, Form::Full];
/// The secret that both sides know, and its number.
const KEY: (u32, &str) = (7, "a secret of both sides");

pub(crate) fn cases() -> Vec<Case> {
    let cases: [(&str, fn()); 7] = [
        ("trace", the_kernel_answers_probes_that_expire_at_its_segments),
        ("waypoint", the_kernel_is_a_waypoint_of_our_paths),
        ("exit", the_kernel_is_the_exit_of_our_paths),
        ("headend", the_kernel_is_the_headend_of_paths_over_our_stops),
        ("compressed", the_kernel_goes_on_to_the_next_compressed_sid),
        ("wrong-keys/theirs", the_kernel_refuses_what_is_signed_with_another_key_or_not_at_all),
        ("wrong-keys/ours", we_refuse_what_the_kernel_signs_with_another_key),
    ];
    cases.into_iter().map(|(name, run)| Case::new("seg6", name, run)).collect()
}

fn key() -> HmacKey {
    HmacKey::new(KEY.0, KEY.1.as_bytes()).unwrap()
}

/// A journey of `length` segments that ends in `last`: before it, the kernel's `waypoint` and ours in turn.
fn stops(waypoint: Ipv6Addr, length: usize, last: Ipv6Addr) -> Vec<Ipv6Addr> {
    let alternating = [waypoint, OUR_END].into_iter().cycle();
    alternating.take(length - 1).chain([last]).collect()
}

/// The stations of that journey.
fn stations(length: usize, last: Station) -> Vec<Station> {
    let alternating = [Station::Kernel, Station::Ours].into_iter().cycle();
    alternating.take(length - 1).chain([last]).collect()
}

/// Our headend's packet.
fn encapsulated(stops: &[Ipv6Addr], form: Form, key: Option<&HmacKey>, traveller: &Traveller) -> Vec<u8> {
    let path = SegmentPath::new(stops).unwrap();
    let envelope = match key {
        Some(key) => Encapsulation::with_hmac(OURS, &path, form, key),
        None => Encapsulation::new(OURS, &path, form),
    };
    let envelope = envelope.unwrap();
    let mut packet = vec![0; envelope.header_len()];
    let inner = traveller.packet();
    envelope.write(&mut packet, &FlowSummary::parse(&inner).unwrap(), inner.len()).unwrap();
    packet.extend_from_slice(&inner);
    packet
}

/// All combinations of list length, form and HMAC, each told in words.
fn matrix(mut case: impl FnMut(usize, Form, Option<&HmacKey>, &str)) {
    let key = key();
    for length in LENGTHS {
        for form in FORMS {
            for key in [None, Some(&key)] {
                let what = format!("{length} segments, {form:?}, HMAC {}", key.is_some());
                case(length, form, key, &what);
            }
        }
    }
}

fn the_kernel_is_a_waypoint_of_our_paths() {
    let mut kernel = Kernel::new();
    kernel.set_key(KEY);
    for waypoint in [KERNEL_END, KERNEL_END_X, KERNEL_PSP] {
        matrix(|length, form, key, what| {
            if length == 1 {
                return; // Then the kernel would be the exit: another test.
            }
            // Whoever demands an HMAC checks it; without one the kernel must not demand it.
            kernel.require_hmac(if key.is_some() { Requirement::Demanded } else { Requirement::IfPresent });
            for traveller in [&V4, &V6] {
                let packet = encapsulated(&stops(waypoint, length, OUR_EXIT), form, key, traveller);
                let journey = Journey::carry(&mut kernel, &Neighbour::new(key), packet);
                assert_eq!(journey.stations, stations(length, Station::Ours), "{waypoint}, {what}");
                traveller.assert_same(&journey.traveller, what);
            }
        });
    }
}

fn the_kernel_is_the_exit_of_our_paths() {
    let mut kernel = Kernel::new();
    kernel.set_key(KEY);
    for (exit, traveller) in kernel.exits() {
        matrix(|length, form, key, what| {
            kernel.require_hmac(if key.is_some() { Requirement::Demanded } else { Requirement::IfPresent });
            // The list alternates, so the last stop before the kernel's exit may be the kernel as well.
            let packet = encapsulated(&stops(KERNEL_END, length, exit.sid), form, key, traveller);
            let journey = Journey::carry(&mut kernel, &Neighbour::new(key), packet);
            assert_eq!(journey.ended, Station::Kernel, "{}, {what}", exit.name);
            traveller.assert_same(&journey.traveller, what);
        });
    }
}

fn the_kernel_is_the_headend_of_paths_over_our_stops() {
    let mut kernel = Kernel::new();
    kernel.set_key(KEY);
    matrix(|length, form, key, what| {
        for traveller in [&V4, &V6] {
            kernel.require_hmac(Requirement::IfPresent);
            // Our stop first, then the kernel itself and ours in turn; the last is our exit.
            let alternating = [OUR_END, KERNEL_END].into_iter().cycle();
            let list: Vec<Ipv6Addr> = alternating.take(length - 1).chain([OUR_EXIT]).collect();
            kernel.steer(traveller, form, &list, key.map(HmacKey::id));
            let packet = kernel.exchange(&traveller.packet()).unwrap_or_else(|| panic!("no packet: {what}"));
            let neighbour = Neighbour::new(key).demanding(key.is_some());
            let journey = Journey::carry(&mut kernel, &neighbour, packet);
            let between = [Station::Ours, Station::Kernel].into_iter().cycle().take(length - 1);
            assert_eq!(journey.stations, between.chain([Station::Ours]).collect::<Vec<_>>(), "{what}");
            traveller.assert_same(&journey.traveller, what);
        }
    });
}

fn the_kernel_refuses_what_is_signed_with_another_key_or_not_at_all() {
    let mut kernel = Kernel::new();
    kernel.set_key(KEY);
    kernel.require_hmac(Requirement::Demanded);
    let stops = [KERNEL_END, OUR_END, OUR_EXIT];
    let wrong = HmacKey::new(KEY.0, b"a secret of nobody").unwrap();
    let unknown = HmacKey::new(8, KEY.1.as_bytes()).unwrap();
    for key in [Some(&wrong), Some(&unknown), None] {
        kernel.assert_drops(&encapsulated(&stops, Form::Reduced, key, &V4));
    }
    // The same without a fault passes, so it was the key that the kernel looked at.
    let right = encapsulated(&stops, Form::Reduced, Some(&key()), &V4);
    assert!(kernel.exchange(&right).is_some());
}

fn we_refuse_what_the_kernel_signs_with_another_key() {
    let mut kernel = Kernel::new();
    kernel.set_key((KEY.0, "a secret of the kernel alone"));
    kernel.steer(&V4, Form::Full, &[OUR_END, OUR_EXIT], Some(KEY.0));
    let packet = kernel.exchange(&V4.packet()).unwrap();
    let error = Neighbour::new(Some(&key())).check(&packet).unwrap_err();
    assert!(matches!(error, srv6::Error::Violation(srv6::Violation::Hmac { .. })), "{error:?}");
}

fn the_kernel_goes_on_to_the_next_compressed_sid() {
    let mut kernel = Kernel::new();
    if let Err(reason) = kernel.add_compressed_waypoint() {
        kernel::not_run("End with NEXT-C-SID", &reason);
        return;
    }
    let csid = |number| srv6::CompressedSid::new(kernel::BLOCK, number).unwrap();
    let (theirs, ours) = (csid(kernel::KERNEL_CSID), csid(journey::OUR_CSID));
    let path =
        srv6::compressed_sid::pack(&[theirs, ours, theirs], &ours, srv6::compressed_sid::Function::Dt46);
    let path = path.unwrap();
    assert_eq!(path.len(), 1, "all stops in one address");
    for traveller in [&V4, &V6] {
        let packet = encapsulated(path.as_slice(), Form::Reduced, None, traveller);
        let journey = Journey::carry(&mut kernel, &Neighbour::new(None), packet);
        let expected = [Station::Kernel, Station::Ours, Station::Kernel, Station::Ours];
        assert_eq!(journey.stations, expected);
        traveller.assert_same(&journey.traveller, "NEXT-C-SID");
    }
}

/// What `trace` relies on where a stop runs other software: it answers a probe whose hops run out there.
fn the_kernel_answers_probes_that_expire_at_its_segments() {
    const HOP_LIMIT: usize = 7;
    let mut kernel = Kernel::new();
    for waypoint in [KERNEL_END, KERNEL_END_X] {
        for traveller in [&V4, &V6] {
            let mut probe = encapsulated(&[waypoint, OUR_END, OUR_EXIT], Form::Reduced, None, traveller);
            probe[HOP_LIMIT] = 1;
            let answer = kernel.exchange(&probe).unwrap();
            let quoted = srv6::ip::icmp_quote::quoted_traveller(&answer).unwrap();
            assert_eq!(quoted.error, srv6::IcmpError::TimeExceeded, "{waypoint}");
            assert_eq!((quoted.reporter, quoted.envelope_source), (kernel::ADDRESS, OURS));
            assert_eq!(quoted.inner, traveller.packet());
        }
    }
}
