//! Single steps of the data path, alone and with everything in the caches.

use serde::Serialize;
use srv6::FlowKey;
use std::fmt;
use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Instant;
use viamesh::policy::{Class, Rule, SteeringTable};

const METHOD: &str = "1,000 policies with 10 destination networks each; 1,024 TCP flows that hit policies all over the \
                      table, or none, classified again and again by one thread; median of 9 runs (least to greatest)";
const POLICIES: u32 = 1000;
const NETWORKS: u32 = 10;
const FLOWS: u32 = 1024;
const ROUNDS: u32 = 200;
const RUNS: usize = 9;

/// What was measured.
#[derive(Serialize)]
pub(crate) struct Report {
    method: &'static str,
    rows: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    step: &'static str,
    /// Nanoseconds for one packet, of each run, sorted.
    nanoseconds: Vec<f64>,
}

/// Runs it.
pub(crate) fn run() -> Result<Report, String> {
    let rules: Vec<Rule> = (0..POLICIES).map(rule).collect::<Result<_, _>>()?;
    let table = SteeringTable::compile(&rules);
    // A stride without common factor walks through the whole table.
    let hits: Vec<FlowKey> = (0..FLOWS).map(|n| flow(n * 7919 % (POLICIES * NETWORKS))).collect();
    let misses: Vec<FlowKey> = (0..FLOWS).map(|n| flow(POLICIES * NETWORKS + n)).collect();
    if !hits.iter().all(|flow| table.classify(flow, Class::NONE).is_some())
        || misses.iter().any(|flow| table.classify(flow, Class::NONE).is_some())
    {
        return Err("the table does not classify as it should".to_owned());
    }
    let rows = vec![
        Row { step: "classify, a policy takes it", nanoseconds: measure(&table, &hits) },
        Row { step: "classify, none takes it", nanoseconds: measure(&table, &misses) },
    ];
    Ok(Report { method: METHOD, rows })
}

/// The address of a /24.
fn network(number: u32) -> Ipv4Addr {
    Ipv4Addr::from(0x0a00_0000 + (number << 8))
}

fn rule(place: u32) -> Result<Rule, String> {
    let to = (0..NETWORKS).map(|part| format!("{}/24", network(place * NETWORKS + part)).parse());
    let to = to.collect::<Result<_, _>>().map_err(|_| "a network that is none")?;
    Ok(Rule { name: place.to_string(), to, ..Rule::default() })
}

fn flow(number: u32) -> FlowKey {
    FlowKey {
        source: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)),
        destination: IpAddr::V4(Ipv4Addr::from(u32::from(network(number)) + 9)),
        protocol: 6,
        ports: Some((50_000, 443)),
        dscp: 0,
        fragment: false,
    }
}

fn measure(table: &SteeringTable, flows: &[FlowKey]) -> Vec<f64> {
    let mut nanoseconds: Vec<f64> = (0..RUNS)
        .map(|_| {
            let started = Instant::now();
            for _ in 0..ROUNDS {
                for flow in flows {
                    black_box(table.classify(black_box(flow), Class::NONE));
                }
            }
            started.elapsed().as_secs_f64() * 1e9 / f64::from(ROUNDS * FLOWS)
        })
        .collect();
    nanoseconds.sort_by(f64::total_cmp);
    nanoseconds
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n\n{:<30}  NS PER PACKET", self.method, "STEP")?;
        for Row { step, nanoseconds: runs } in &self.rows {
            let at = |place: usize| runs.get(place).copied().unwrap_or(f64::NAN);
            writeln!(f, "{step:<30}  {:.0} ({:.0} to {:.0})", at(RUNS / 2), at(0), at(RUNS - 1))?;
        }
        Ok(())
    }
}
