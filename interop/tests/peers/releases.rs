//! The peers are the versions that we think they are.

use crate::case::Case;
use lab::World;
use lab::peers::Release;
use std::process::Command;
use std::time::Duration;

/// Peer, release, program with arguments, how its answer about itself has to contain its version.
type Expectation = (&'static str, Release, &'static [&'static str], &'static str);

const EXPECTATIONS: [Expectation; 8] = [
    ("strongswan", Release::Debian12, &["swanctl", "--version"], "5.9.8"),
    ("strongswan", Release::Debian13, &["swanctl", "--version"], "6.0.1"),
    ("strongswan", Release::DebianNext, &["swanctl", "--version"], "6."),
    ("libreswan", Release::Debian13Libreswan, &["ipsec", "--version"], "5.2"),
    ("bird", Release::Debian12, &["bird", "--version"], "2.0."),
    ("bird", Release::Debian13, &["bird", "--version"], "2.17"),
    ("babeld", Release::Debian12, &["babeld", "-V"], "1.12"),
    ("babeld", Release::Debian13, &["babeld", "-V"], "1.13"),
];

pub(crate) fn cases() -> Vec<Case> {
    let case = |expectation: Expectation| {
        let (peer, release, ..) = expectation;
        Case::new(peer, format!("version/{}", release.recipe().name), move || check(expectation))
    };
    EXPECTATIONS.into_iter().map(case).collect()
}

fn check((peer, release, program, version): Expectation) {
    let world = World::new().unwrap();
    let host = world.host("peer").unwrap();
    let root = release.root(world.directory()).unwrap();
    let mut command = Command::new(program[0]);
    command.args(&program[1..]);
    let output = host.run_in(&root, command, Duration::from_secs(60)).unwrap();
    let said = format!("{}{}", output.stdout, output.stderr);
    assert!(said.contains(version), "{peer} of {} is not {version}: {said}", release.recipe().name);
}
