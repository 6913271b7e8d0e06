//! Programs in hosts, and what is left of a world: nothing. Needs root.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use std::io::{BufRead, BufReader};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use lab::{
    EchoServer, Footprint, LabError, LinkSettings, Responder, Root, TcpEcho, World, ask_responder, wait_until,
};
use support::alone;

const PATIENCE: Duration = Duration::from_secs(10);

fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    command
}

fn exists(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

#[test]
fn a_program_runs_in_its_host_and_its_output_is_kept() {
    let _alone = alone();
    let world = World::new().unwrap();
    let host = world.host("lonely").unwrap();
    let output = host.run(shell("cat /proc/net/dev; echo no >&2; exit 3"), PATIENCE).unwrap();
    assert_eq!(output.status.code(), Some(3));
    let interfaces: Vec<_> = output.stdout.lines().filter(|line| line.contains(':')).collect();
    assert!(interfaces.iter().any(|line| line.trim().starts_with("lo:")), "{interfaces:?}");
    assert!(!interfaces.iter().any(|line| line.trim().starts_with("eth")), "{interfaces:?}");
    let error = output.successful().unwrap_err();
    assert!(error.to_string().contains("no"), "{error}");
    let error = host.run(shell("sleep 60"), Duration::from_millis(50)).unwrap_err();
    assert!(matches!(error, LabError::TimedOut { .. }), "{error}");
    assert!(host.run(Command::new("/does/not/exist"), PATIENCE).is_err());
}

#[test]
fn a_program_that_ends_early_is_reported_with_its_log() {
    let _alone = alone();
    let world = World::new().unwrap();
    let host = world.host("host").unwrap();
    let process = host.spawn(shell("echo this is why; exit 7")).unwrap();
    assert_eq!(process.wait(PATIENCE).unwrap().code(), Some(7));
    let error = process.ensure_running().unwrap_err();
    assert!(error.to_string().contains("this is why"), "{error}");
    let polite =
        host.spawn(shell("trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.01; done")).unwrap();
    wait_until(PATIENCE, "the trap", || polite.log_text().contains("up")).unwrap();
    assert!(polite.stop(PATIENCE).unwrap().success());
    assert!(polite.log_text().contains("bye"));
}

#[test]
fn dropping_ends_stubborn_programs_and_their_children() {
    let _alone = alone();
    let world = World::new().unwrap();
    let host = world.host("host").unwrap();
    let process = host.spawn(shell("sleep 1000 & echo $!; wait")).unwrap();
    let child: u32 = wait_until(PATIENCE, "the child", || process.log_text().trim().parse().ok()).unwrap();
    let stubborn = host.spawn(shell("trap '' TERM; echo up; while :; do sleep 0.05; done")).unwrap();
    wait_until(PATIENCE, "the stubborn one", || stubborn.log_text().contains("up")).unwrap();
    let pids = [process.pid(), stubborn.pid(), child];
    assert!(pids.iter().all(|pid| exists(*pid)));
    drop((process, stubborn));
    wait_until(PATIENCE, "all to be gone", || !pids.iter().any(|pid| exists(*pid))).unwrap();
}

#[test]
fn nothing_is_left_of_a_world() {
    let _alone = alone();
    assert_eq!(belongings(), Vec::<String>::new(), "tests run one at a time");
    let world = World::new().unwrap();
    let (a, b) = (world.host("a").unwrap(), world.host("b").unwrap());
    let _link = world.link(&a, &b, LinkSettings::with_rtt_ms(1)).unwrap();
    let process = a.spawn(shell("sleep 1000")).unwrap();
    let directory = world.directory().to_owned();
    assert!(
        belongings().len() >= 7,
        "two threads, two devices, two namespaces, a process: {:?}",
        belongings()
    );
    drop(world);
    assert!(!process.is_running(), "the world's end is its programs' end, whoever holds them");
    assert!(a.spawn(shell("true")).is_err());
    drop((a, b, _link, process));
    assert!(!directory.exists());
    wait_until(PATIENCE, "threads and descriptors to go", || belongings().is_empty()).unwrap();
}

/// The threads and descriptors of this process that can only be a world's.
fn belongings() -> Vec<String> {
    let entries = |directory: &str| std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let names = entries("/proc/self/task").filter_map(|task| std::fs::read_to_string(task.join("comm")).ok());
    let threads = names.filter(|name| name.starts_with("link ") || name.starts_with("spawner"));
    let targets = entries("/proc/self/fd").filter_map(|fd| std::fs::read_link(fd).ok());
    let targets = targets.map(|target| target.to_string_lossy().into_owned());
    let is_ours = |target: &String| {
        ["/dev/net/tun", "net:", "anon_inode:[pidfd]"].iter().any(|kind| target.starts_with(kind))
    };
    threads.chain(targets.filter(is_ours)).collect()
}

#[test]
#[ignore = "run by the test below, which kills it"]
#[expect(clippy::print_stdout, reason = "tells its parent whom to watch")]
fn world_to_be_killed() {
    let world = World::new().unwrap();
    let process = world.host("a").unwrap().spawn(shell("exec sleep 1000")).unwrap();
    println!("pid {}", process.pid());
    process.wait(Duration::from_secs(100)).unwrap();
}

#[test]
fn programs_die_with_a_killed_lab() {
    let _alone = alone();
    let mut helper = Command::new(std::env::current_exe().unwrap());
    helper.args(["--ignored", "--exact", "--nocapture", "world_to_be_killed"]).stdout(Stdio::piped());
    let mut helper = helper.spawn().unwrap();
    let lines = BufReader::new(helper.stdout.take().unwrap()).lines();
    let pid =
        lines.map_while(Result::ok).find_map(|line| line.split_once("pid ")?.1.trim().parse::<u32>().ok());
    let pid = pid.expect("the helper says whom it started");
    assert!(exists(pid));
    helper.kill().unwrap();
    helper.wait().unwrap();
    wait_until(PATIENCE, "the program to die with the lab", || !exists(pid)).unwrap();
    let _ = std::fs::remove_dir_all(std::env::temp_dir().join(format!("viamesh-lab-{}-0", helper.id())));
}

#[test]
fn a_long_connection_survives_a_change_of_the_link() {
    let _alone = alone();
    let world = World::new().unwrap();
    let (a, b) = (world.host("a").unwrap(), world.host("b").unwrap());
    let link = world.link(&a, &b, LinkSettings::with_rtt_ms(2)).unwrap();
    let target = SocketAddr::new(link.b().v6.unwrap().into(), 7100);
    let _server = EchoServer::start(&b, target).unwrap();
    let echo = TcpEcho::start(&a, target, 100_000, Duration::ZERO).unwrap();
    wait_until(PATIENCE, "blocks", || echo.blocks() > 5).unwrap();
    link.set(LinkSettings { loss: 0.01, ..LinkSettings::with_rtt_ms(6) }).unwrap();
    let before = echo.blocks();
    wait_until(PATIENCE, "more blocks", || echo.blocks() > before + 5).unwrap();
    let report = echo.stop().unwrap();
    assert_eq!(report.failure, None);
    assert_eq!(report.bytes, report.blocks * 100_000);
}

#[test]
fn the_responder_says_who_asks() {
    let _alone = alone();
    let world = World::new().unwrap();
    let (a, b) = (world.host("a").unwrap(), world.host("b").unwrap());
    let link = world.link(&a, &b, LinkSettings::PERFECT).unwrap();
    let target = SocketAddr::new(link.b().v4.unwrap().into(), 80);
    let _responder = Responder::start(&b, target).unwrap();
    let seen = ask_responder(&a, target, PATIENCE).unwrap();
    assert_eq!(seen, IpAddr::from(link.a().v4.unwrap()));
}

#[test]
fn a_footprint_shows_what_was_added() {
    let _alone = alone();
    let world = World::new().unwrap();
    let (a, b) = (world.host("a").unwrap(), world.host("b").unwrap());
    let before = Footprint::of(&a).unwrap();
    assert!(before.lines().any(|line| line == "link lo"), "{before:?}");
    assert!(before.lines().any(|line| line.starts_with("rule family 10")), "{before:?}");
    let link = world.link(&a, &b, LinkSettings::PERFECT).unwrap();
    let linked = Footprint::of(&a).unwrap();
    let added = linked.beyond(&before);
    assert!(added.contains(&"link eth0".to_owned()), "{added:?}");
    let address = format!("address {}/24 on link {}", link.a().v4.unwrap(), link.a().index);
    assert!(added.contains(&address), "{address} in {added:?}");
    a.add_route("10.9.0.0/16".parse().unwrap(), link.b().v4.unwrap().into()).unwrap();
    let added = Footprint::of(&a).unwrap().beyond(&linked);
    assert_eq!(added.len(), 1);
    assert!(added[0].contains("to 10.9.0.0/16 via 198.18."), "{added:?}");
    a.remove_route("10.9.0.0/16".parse().unwrap()).unwrap();
    assert_eq!(Footprint::of(&a).unwrap().beyond(&linked), Vec::<String>::new());
    a.set_up("eth0", false).unwrap();
    a.add_address("eth0", "2001:db8:99::1/64".parse().unwrap()).unwrap();
    a.set_up("eth0", true).unwrap();
    assert!(Footprint::of(&a).unwrap().lines().any(|line| line.contains("2001:db8:99::1/64")));
}

#[test]
fn a_program_may_have_folders_of_its_own() {
    let _alone = alone();
    let world = World::new().unwrap();
    let host = world.host("host").unwrap();
    std::fs::write(world.directory().join("note"), "shared").unwrap();
    let root = Root::new("/").private("/run").share(world.directory(), "/run/lab/here");
    let output =
        host.run_in(&root, shell("ls /run; cat /run/lab/here/note; echo x > /run/y"), PATIENCE).unwrap();
    assert_eq!(output.successful().unwrap().stdout, "lab\nshared");
    assert!(!Path::new("/run/y").exists() && !Path::new("/run/lab/here").exists());
    let missing = Root::new("/").private("/run").share("/does/not/exist", "/run/z");
    assert!(host.run_in(&missing, shell("true"), PATIENCE).is_err());
}

#[test]
fn routes_lead_through_a_forwarding_host() {
    let _alone = alone();
    let world = World::new().unwrap();
    let [a, b, c] = ["a", "b", "c"].map(|name| world.host(name).unwrap());
    let left = world.link(&a, &b, LinkSettings::with_rtt_ms(2)).unwrap();
    let right = world.link(&b, &c, LinkSettings::with_rtt_ms(4)).unwrap();
    for (near, far, hop_a, hop_c) in [
        (
            IpAddr::from(left.a().v4.unwrap()),
            IpAddr::from(right.b().v4.unwrap()),
            IpAddr::from(left.b().v4.unwrap()),
            IpAddr::from(right.a().v4.unwrap()),
        ),
        (
            left.a().v6.unwrap().into(),
            right.b().v6.unwrap().into(),
            left.b().v6.unwrap().into(),
            right.a().v6.unwrap().into(),
        ),
    ] {
        a.add_route(far.into(), hop_a).unwrap();
        c.add_route(near.into(), hop_c).unwrap();
        let report = lab::Pinger::new(far).run(&a).unwrap();
        assert_eq!(report.received, 10);
        assert!(report.min().unwrap() >= Duration::from_millis(6));
        a.remove_route(far.into()).unwrap();
        assert_eq!(
            lab::Pinger { patience: Duration::ZERO, ..lab::Pinger::new(far) }.run(&a).unwrap().refused,
            10
        );
    }
}
