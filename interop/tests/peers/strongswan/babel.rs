//! The other half of a strongSwan peer: a Babel speaker on its tunnel device.

use lab::peers::{Release, charon};
use lab::{Host, Process, World};
use std::net::Ipv4Addr;
use std::process::Command;

/// BIRD, announcing the networks of the loopback device.
pub(crate) fn start_bird(host: &Host, world: &World) -> Process {
    let path = world.directory().join("bird.conf");
    std::fs::write(&path, charon::bird_configuration(Ipv4Addr::new(10, 2, 0, 1))).unwrap();
    let root = Release::Debian13.root(world.directory()).unwrap();
    let mut bird = Command::new("bird");
    bird.arg("-f").arg("-c").arg(path).arg("-s").arg(world.directory().join("bird.ctl"));
    host.spawn_in(&root, bird).unwrap()
}
