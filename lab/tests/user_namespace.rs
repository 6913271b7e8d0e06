//! A world inside a user namespace, and what an unprivileged user is told. Without the usual harness: only a process
//! with one thread may enter a user namespace.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test without a harness"
)]

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, ExitCode};
use std::time::Duration;

use lab::{Capability, LinkSettings, Pinger, World, enter_user_namespace, wait_until};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::stat::{Mode, SFlag, makedev, mknod};
use nix::unistd::{Uid, geteuid, setuid};

fn main() -> ExitCode {
    // Each role runs in a process of its own, which starts with one thread.
    let roles: [(&str, fn()); 3] =
        [("mapped-root", mapped_root), ("nobody", nobody), ("nobody-with-tun", nobody_with_tun)];
    let role = std::env::args().nth(1);
    if let Some((_, run)) = roles.iter().find(|(name, _)| role.as_deref() == Some(name)) {
        run();
        return ExitCode::SUCCESS;
    }
    let mut failed = false;
    for (name, _) in roles {
        let status = Command::new(std::env::current_exe().unwrap()).arg(name).status().unwrap();
        println!("test {name} ... {}", if status.success() { "ok" } else { "FAILED" });
        failed |= !status.success();
    }
    ExitCode::from(u8::from(failed))
}

/// The whole lab with the capabilities of a user namespace only.
fn mapped_root() {
    let (user, group) = (geteuid(), nix::unistd::getegid());
    unshare(CloneFlags::CLONE_NEWUSER).unwrap();
    std::fs::write("/proc/self/setgroups", "deny").unwrap();
    std::fs::write("/proc/self/uid_map", format!("0 {user} 1")).unwrap();
    std::fs::write("/proc/self/gid_map", format!("0 {group} 1")).unwrap();
    assert_eq!(World::probe(), Capability::Ready);
    enter_user_namespace().unwrap();
    build_and_use_a_world();
}

/// A user without any rights, on a machine where everybody may open the device.
fn nobody_with_tun() {
    // In a mount namespace of its own, so that the machine keeps its device as it is.
    unshare(CloneFlags::CLONE_NEWNS).unwrap();
    let nothing = None::<&str>;
    mount(nothing, "/", nothing, MsFlags::MS_REC | MsFlags::MS_PRIVATE, nothing).unwrap();
    mount(Some("dev"), "/dev/net", Some("tmpfs"), MsFlags::empty(), nothing).unwrap();
    mknod("/dev/net/tun", SFlag::S_IFCHR, Mode::empty(), makedev(10, 200)).unwrap();
    std::fs::set_permissions("/dev/net/tun", std::fs::Permissions::from_mode(0o666)).unwrap();
    nobody();
}

/// A user without any rights is either able to help himself, or told what to do.
fn nobody() {
    if geteuid().is_root() {
        setuid(Uid::from_raw(65_534)).unwrap();
        // After a change of user the kernel hides a process from itself; one started by nobody isn't hidden.
        nix::sys::prctl::set_dumpable(true).unwrap();
    }
    match World::probe() {
        Capability::Ready => panic!("nobody can't be ready"),
        Capability::UserNamespace => {
            assert!(World::new().is_err());
            enter_user_namespace().unwrap();
            assert_eq!(World::probe(), Capability::Ready);
            build_and_use_a_world();
        }
        Capability::Impossible { reason, advice } => {
            println!("{reason}\n{advice}");
            assert!(reason.contains("can't") && advice.contains("root"));
            let error = World::new().unwrap_err().to_string();
            assert!(error.contains(&advice), "{error}");
            assert!(enter_user_namespace().is_err());
        }
    }
}

fn build_and_use_a_world() {
    let world = World::new().unwrap();
    let (a, b) = (world.host("a").unwrap(), world.host("b").unwrap());
    let link = world.link(&a, &b, LinkSettings::with_rtt_ms(20)).unwrap();
    let report = Pinger::new(link.b().v6.unwrap().into()).run(&a).unwrap();
    assert_eq!(report.received, 10);
    assert!(report.min().unwrap() >= Duration::from_millis(20));
    let mut command = Command::new("sh");
    command.args(["-c", "cat /proc/net/dev; exec sleep 1000"]);
    let process = b.spawn(command).unwrap();
    wait_until(Duration::from_secs(5), "the interface", || process.log_text().contains("eth0:")).unwrap();
    // Another process enters by the roster, as a person's shell would.
    let path = world.directory().join("roster.json");
    world.publish(&path).unwrap();
    let roster = lab::Roster::read(&path).unwrap();
    assert_eq!(roster.hosts.iter().map(|host| host.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert!(roster.enter("nowhere").is_err());
    let namespace_of = |who: &str| std::fs::read_link(format!("/proc/{who}/ns/net")).unwrap();
    let enter = || {
        roster.enter("b").unwrap();
        namespace_of("thread-self")
    };
    let inside = std::thread::scope(|scope| scope.spawn(enter).join().unwrap());
    assert_eq!(inside, namespace_of(&process.pid().to_string()));
    assert_ne!(inside, namespace_of("self"));
    let by_process = std::thread::scope(|scope| {
        let enter = || {
            lab::enter(process.pid()).unwrap();
            namespace_of("thread-self")
        };
        scope.spawn(enter).join().unwrap()
    });
    assert_eq!(by_process, inside);
}
