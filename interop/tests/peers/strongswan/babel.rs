//! The other half of a strongSwan peer: a Babel speaker on its tunnel device.

use lab::peers::Release;
use lab::{Host, Process, World};
use std::process::Command;

/// BIRD with the mesh's cost map, announcing the networks of the loopback device.
pub(crate) fn start_bird(host: &Host, world: &World, device: &str) -> Process {
    let configuration = format!(
        r#"router id 10.2.0.1;
protocol device {{ scan time 2; }}
protocol direct {{ ipv4; ipv6; interface "lo"; }}
protocol kernel {{ ipv4 {{ export where source = RTS_BABEL; }}; }}
protocol kernel {{ ipv6 {{ export where source = RTS_BABEL; }}; }}
protocol babel mesh {{
  randomize router id yes;
  ipv4 {{ import all; export all; }};
  ipv6 {{ import all; export all; }};
  interface "{device}" {{
    type tunnel;
    rxcost 8; rtt cost 4000; rtt min 1 ms; rtt max 1001 ms;
    hello interval 1 s; update interval 4 s;
    extended next hop yes;
  }};
}}
"#
    );
    let path = world.directory().join("bird.conf");
    std::fs::write(&path, configuration).unwrap();
    let root = Release::Debian13.root(world.directory()).unwrap();
    let mut bird = Command::new("bird");
    bird.arg("-f").arg("-c").arg(path).arg("-s").arg(world.directory().join("bird.ctl"));
    host.spawn_in(&root, bird).unwrap()
}
