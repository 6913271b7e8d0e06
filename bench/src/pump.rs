//! Packets through an outbound and an inbound SA in memory: what the ESP core alone can do.

use esp::{Algorithm, Backend, InboundSa, OutboundSa};
use serde::Serialize;
use std::fmt;
use std::time::{Duration, Instant};

const METHOD: &str = "100,000 packets of each size, each sealed and opened in place by one thread, replay window of \
                      4,096 packets, AES-256-GCM with extended sequence numbers; median of 5 runs (least to greatest)";
const PACKETS: u32 = 100_000;
const RUNS: usize = 5;
const SIZES: [usize; 3] = [64, 512, 1280];
const WINDOW: u32 = 4096;
/// IPv6 in ESP (RFC 4303 §2.6).
const IPV6: u8 = 41;

/// What was measured.
#[derive(Serialize)]
pub(crate) struct Report {
    method: &'static str,
    rows: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    backend: String,
    octets: usize,
    /// Nanoseconds for sealing and opening one packet, of each run, sorted.
    nanoseconds: Vec<f64>,
    packets_per_second: f64,
    gigabits_per_second: f64,
}

/// Runs it.
pub(crate) fn run() -> Result<Report, String> {
    let mut rows = Vec::new();
    for backend in [Backend::AwsLc, Backend::RustCrypto] {
        for octets in SIZES {
            let runs: Result<Vec<_>, _> = (0..RUNS).map(|_| pump(backend, octets)).collect();
            rows.push(Row::new(format!("{backend:?}"), octets, runs?));
        }
    }
    Ok(Report { method: METHOD, rows })
}

fn pump(backend: Backend, octets: usize) -> Result<Duration, String> {
    let key = [7; 36];
    let words = |error: &dyn fmt::Display| error.to_string();
    let outbound =
        OutboundSa::new(0x1000, Algorithm::Aes256Gcm16, &key, true, backend).map_err(|e| words(&e))?;
    let inbound =
        InboundSa::new(0x1000, Algorithm::Aes256Gcm16, &key, true, WINDOW, backend).map_err(|e| words(&e))?;
    let mut buffer = vec![0_u8; esp::sealed_len(octets)];
    let started = Instant::now();
    for _ in 0..PACKETS {
        for sequence in outbound.reserve(1).map_err(|e| words(&e))? {
            let length = outbound.seal(sequence, &mut buffer, octets, IPV6).map_err(|e| words(&e))?;
            let datagram = buffer.get_mut(..length).ok_or("the datagram is longer than its buffer")?;
            let pending = inbound.pre_check(datagram).map_err(|e| words(&e))?;
            let opened = inbound.open(&pending, datagram).map_err(|e| words(&e))?;
            inbound.commit(opened, 1).map_err(|e| words(&e))?;
        }
    }
    Ok(started.elapsed())
}

impl Row {
    fn new(backend: String, octets: usize, runs: Vec<Duration>) -> Self {
        let mut nanoseconds: Vec<f64> =
            runs.iter().map(|run| run.as_secs_f64() * 1e9 / f64::from(PACKETS)).collect();
        nanoseconds.sort_by(f64::total_cmp);
        let median = nanoseconds.get(RUNS / 2).copied().unwrap_or(f64::NAN);
        let packets_per_second = 1e9 / median;
        let bits = f64::from(u32::try_from(octets).unwrap_or(u32::MAX)) * 8.0;
        let gigabits_per_second = packets_per_second * bits / 1e9;
        Self { backend, octets, nanoseconds, packets_per_second, gigabits_per_second }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n", self.method)?;
        writeln!(
            f,
            "{:<12} {:>6}  {:>24}  {:>12}  {:>8}",
            "BACK-END", "OCTETS", "NS PER PACKET", "PACKETS/S", "GBIT/S"
        )?;
        for row in &self.rows {
            let runs = &row.nanoseconds;
            let (least, greatest) = (runs.first().unwrap_or(&f64::NAN), runs.last().unwrap_or(&f64::NAN));
            let median = 1e9 / row.packets_per_second;
            let times = format!("{median:.0} ({least:.0} to {greatest:.0})");
            writeln!(
                f,
                "{:<12} {:>6}  {times:>24}  {:>12.0}  {:>8.2}",
                row.backend, row.octets, row.packets_per_second, row.gigabits_per_second
            )?;
        }
        Ok(())
    }
}
