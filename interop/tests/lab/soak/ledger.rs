//! What each node holds: in every calm the same as at the beginning.

use crate::scene::{PATIENCE, Scene};
use lab::{Footprint, wait_until};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

/// Memory that a daemon may gain between its first calms and its last, in KiB: allocators keep some of what they had
/// in the worst moment.
const GROWTH_KIB: u64 = 16 * 1024;

/// What a process holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Holdings {
    threads: usize,
    descriptors: usize,
    /// Interfaces, addresses, routes, rules, firewall tables of its host.
    kernel: BTreeSet<String>,
}

/// How much memory a process had, in KiB, and when.
struct Memory {
    pid: u32,
    samples: Vec<(f64, u64)>,
}

/// How many security associations were seen.
#[derive(Debug, Clone, Copy)]
pub(super) struct Keys {
    pub(super) ike: usize,
    pub(super) child: usize,
}

/// The books.
pub(super) struct Ledger {
    start: Instant,
    baseline: BTreeMap<String, Holdings>,
    memory: BTreeMap<String, Memory>,
    ike: BTreeSet<String>,
    children: BTreeSet<String>,
}

impl Ledger {
    /// Notes what nodes hold while all is well.
    pub(super) fn open(scene: &Scene) -> Self {
        let mut ledger = Self {
            start: Instant::now(),
            baseline: BTreeMap::new(),
            memory: BTreeMap::new(),
            ike: BTreeSet::new(),
            children: BTreeSet::new(),
        };
        ledger.settle(scene);
        for name in scene.mesh.names() {
            ledger.baseline.insert(name.to_owned(), Holdings::of(scene, name));
        }
        ledger.look_at_keys(scene);
        ledger
    }

    /// Waits until all nodes reach each other with one tunnel for each pair, without keys of the past.
    pub(super) fn settle(&self, scene: &Scene) {
        scene.mesh.wait_connected(PATIENCE).unwrap();
        let names: Vec<&str> = scene.mesh.names().collect();
        let lean = |name: &&str| {
            let report = scene.associations(name);
            report.associations.iter().all(|ike| ike.children.len() == 1)
        };
        let settled =
            wait_until(PATIENCE, "one tunnel for each pair of nodes, without keys of the past", || {
                scene.has_one_tunnel_for_each_pair() && names.iter().all(lean)
            });
        if let Err(error) = settled {
            let all: Vec<_> = names.iter().map(|name| (name, scene.associations(name))).collect();
            panic!("{error}: {all:#?}");
        }
    }

    /// Fails if a node holds more than at the beginning. Returns a summary.
    pub(super) fn audit(&mut self, scene: &Scene) -> String {
        let mut summary = Vec::new();
        for (name, then) in &self.baseline {
            let fits = wait_until(PATIENCE, "what was held at the beginning", || {
                let now = Holdings::of(scene, name);
                now.threads <= then.threads
                    && now.descriptors <= then.descriptors
                    && now.kernel == then.kernel
            });
            if fits.is_err() {
                let now = Holdings::of(scene, name);
                let (more, less): (Vec<_>, Vec<_>) = (
                    now.kernel.difference(&then.kernel).collect(),
                    then.kernel.difference(&now.kernel).collect(),
                );
                panic!(
                    "{name}: {} threads ({} before), {} descriptors ({}), new: {more:#?}, gone: {less:#?}\n{}",
                    now.threads,
                    then.threads,
                    now.descriptors,
                    then.descriptors,
                    scene.mesh.describe()
                );
            }
            let (pid, kib) = (pid(scene, name), resident_kib(scene, name));
            let memory =
                self.memory.entry(name.clone()).or_insert_with(|| Memory { pid, samples: Vec::new() });
            if memory.pid != pid {
                *memory = Memory { pid, samples: Vec::new() };
            }
            memory.samples.push((self.start.elapsed().as_secs_f64(), kib));
            summary.push(format!("{name} {kib} KiB"));
        }
        summary.join(", ")
    }

    /// Notes the security associations that exist now.
    pub(super) fn look_at_keys(&mut self, scene: &Scene) {
        for name in scene.mesh.names().filter(|name| scene.mesh.node(name).process.is_some()) {
            let Ok(viamesh::control::Reply::Associations(report)) =
                scene.mesh.ask(name, &viamesh::control::Request::Associations { node: None })
            else {
                continue;
            };
            for ike in report.associations {
                self.ike.insert(ike.initiator_spi);
                self.children.extend(ike.children.into_iter().map(|child| child.inbound_spi));
            }
        }
    }

    /// What was seen. Each CHILD SA counts at both ends, so halves.
    pub(super) fn keys(&self) -> Keys {
        Keys { ike: self.ike.len(), child: self.children.len() / 2 }
    }

    /// Growth of memory for each node since it was last started; fails if it is not flat.
    pub(super) fn memory(&self) -> Vec<String> {
        self.memory.iter().map(|(name, memory)| memory.judge(name)).collect()
    }
}

impl Memory {
    fn judge(&self, name: &str) -> String {
        let quarter = self.samples.len().div_ceil(4);
        let highest = |samples: &[(f64, u64)]| samples.iter().map(|(_, kib)| *kib).max().unwrap_or_default();
        let first = highest(&self.samples[..quarter]);
        let last = highest(&self.samples[self.samples.len() - quarter..]);
        assert!(last <= first + GROWTH_KIB, "{name} grew from {first} to {last} KiB");
        format!(
            "{name}: {first} KiB at first, {last} KiB at last, slope {:.1} KiB a minute over {} samples",
            self.slope() * 60.0,
            self.samples.len()
        )
    }

    /// By least squares, in KiB a second.
    fn slope(&self) -> f64 {
        let count = self.samples.len() as f64;
        let mean = |of: fn(&(f64, u64)) -> f64| self.samples.iter().map(of).sum::<f64>() / count;
        let (time, kib) = (mean(|sample| sample.0), mean(|sample| sample.1 as f64));
        let both: f64 = self.samples.iter().map(|(at, held)| (at - time) * (*held as f64 - kib)).sum();
        let squares: f64 = self.samples.iter().map(|(at, _)| (at - time).powi(2)).sum();
        if squares > 0.0 { both / squares } else { 0.0 }
    }
}

impl Holdings {
    fn of(scene: &Scene, name: &str) -> Self {
        let count = |what: &str| {
            std::fs::read_dir(format!("/proc/{}/{what}", pid(scene, name)))
                .map_or(0, |entries| entries.count())
        };
        let footprint = Footprint::of(scene.host(name)).unwrap();
        Self {
            threads: count("task"),
            descriptors: count("fd"),
            kernel: footprint.lines().filter_map(unnumbered).collect(),
        }
    }
}

/// Without interface numbers and the addresses that the kernel makes up for each new TUN device.
fn unnumbered(line: &str) -> Option<String> {
    if line.contains("fe80:") {
        return None;
    }
    let words: Vec<&str> = line.split(' ').collect();
    let number =
        |index: usize| index > 0 && words[index - 1] == "link" && words[index].parse::<u32>().is_ok();
    let kept = words.iter().enumerate().filter(|(index, _)| !number(*index));
    Some(kept.map(|(_, word)| *word).collect::<Vec<_>>().join(" "))
}

fn pid(scene: &Scene, name: &str) -> u32 {
    scene.mesh.node(name).process.as_ref().unwrap().pid()
}

fn resident_kib(scene: &Scene, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", pid(scene, name))).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap()
}
