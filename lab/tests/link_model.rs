//! The link model in virtual time: delay, order, rate, queue, loss.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::{Duration, Instant};

use lab::{Deliveries, LinkModel, LinkSettings, Lost, Random};
use proptest::prelude::*;

const MILLISECOND: Duration = Duration::from_millis(1);

/// Submits frames of these lengths, one every `spacing`, and returns when each left and what became of it.
fn run(
    settings: LinkSettings,
    lengths: &[usize],
    spacing: Duration,
    seed: u64,
) -> Vec<(Instant, Deliveries)> {
    let mut model = LinkModel::new(settings);
    let mut random = Random::new(seed);
    let start = Instant::now();
    let times = (0u32..).map(|turn| start + spacing * turn);
    lengths.iter().zip(times).map(|(bytes, now)| (now, model.submit(*bytes, now, &mut random))).collect()
}

#[test]
fn delay_is_exact_without_jitter() {
    let outcome = run(LinkSettings::with_rtt_ms(80), &[100; 50], MILLISECOND, 1);
    assert!(outcome.iter().all(|(sent, fate)| *fate == Deliveries::Once(*sent + 40 * MILLISECOND)));
}

#[test]
fn a_dead_link_passes_nothing() {
    let outcome = run(LinkSettings::DEAD, &[100; 50], MILLISECOND, 1);
    assert!(outcome.iter().all(|(_, fate)| *fate == Deliveries::Lost(Lost::Down)));
}

#[test]
fn a_shorter_delay_counts_at_once() {
    let mut model = LinkModel::new(LinkSettings::with_rtt_ms(200));
    let (mut random, now) = (Random::new(1), Instant::now());
    assert_eq!(model.submit(100, now, &mut random), Deliveries::Once(now + 100 * MILLISECOND));
    model.set(LinkSettings::with_rtt_ms(20));
    assert_eq!(model.submit(100, now, &mut random), Deliveries::Once(now + 10 * MILLISECOND));
}

#[test]
fn reordered_frames_are_overtaken() {
    let settings =
        LinkSettings { reorder: 0.2, reorder_by: 10 * MILLISECOND, ..LinkSettings::with_rtt_ms(20) };
    let outcome = run(settings, &[100; 2000], MILLISECOND, 3);
    let arrivals: Vec<Instant> = outcome.iter().flat_map(|(_, fate)| fate.iter()).collect();
    let late = arrivals.windows(2).filter(|pair| pair[0] > pair[1]).count();
    assert!((200..500).contains(&late), "{late} of 2000 were overtaken");
}

#[test]
fn duplicates_arrive_twice() {
    let settings = LinkSettings { duplicate: 0.5, ..LinkSettings::PERFECT };
    let outcome = run(settings, &[100; 2000], MILLISECOND, 3);
    let twice = outcome.iter().filter(|(_, fate)| matches!(fate, Deliveries::Twice(..))).count();
    assert!((900..1100).contains(&twice), "{twice} of 2000");
}

proptest! {
    #[test]
    fn jitter_keeps_order_and_bounds(
        seed: u64,
        delay in 0u64..100,
        jitter in 0u64..50,
        spacing in 0u64..5000,
    ) {
        let (delay, jitter) = (Duration::from_millis(delay), Duration::from_millis(jitter));
        let settings = LinkSettings { delay, jitter, ..LinkSettings::PERFECT };
        let outcome = run(settings, &[500; 200], Duration::from_micros(spacing), seed);
        let mut last = None;
        for (sent, fate) in outcome {
            let Deliveries::Once(at) = fate else { panic!("{fate:?}") };
            prop_assert!(at >= sent + delay && at <= sent + delay + jitter);
            prop_assert!(last.is_none_or(|last| at >= last));
            last = Some(at);
        }
    }

    #[test]
    fn a_saturated_link_runs_at_its_rate(seed: u64, rate in 1_000_000u64..10_000_000_000, bytes in 60usize..65_000) {
        // All at once: the queue is made to hold them, so that they leave back to back.
        let settings = LinkSettings { rate: Some(rate), queue: u64::MAX, ..LinkSettings::PERFECT };
        let outcome = run(settings, &[bytes; 100], Duration::ZERO, seed);
        let start = outcome[0].0;
        let last = outcome.last().unwrap().1.iter().next().unwrap();
        let expected = bytes as f64 * 100.0 * 8.0 / rate as f64;
        let ratio = (last - start).as_secs_f64() / expected;
        prop_assert!((0.99..1.01).contains(&ratio), "ratio {ratio}");
    }

    #[test]
    fn the_queue_is_bounded(seed: u64, queue in 2_000u64..200_000, rate in 1_000_000u64..100_000_000) {
        let settings = LinkSettings { rate: Some(rate), queue, ..LinkSettings::PERFECT };
        let outcome = run(settings, &[1000; 1000], Duration::ZERO, seed);
        let passed = outcome.iter().filter(|(_, fate)| matches!(fate, Deliveries::Once(_))).count() as u64;
        // The frame that fills the queue still enters it.
        prop_assert!(passed * 1000 <= queue + 2000 && passed * 1000 + 1000 >= queue.min(1_000_000), "{passed}");
        let dropped = outcome.iter().filter(|(_, fate)| *fate == Deliveries::Lost(Lost::QueueFull)).count() as u64;
        prop_assert_eq!(passed + dropped, 1000);
    }

    #[test]
    fn loss_is_what_was_asked_for(seed: u64, loss in 0.0f64..=1.0) {
        let settings = LinkSettings { loss, ..LinkSettings::PERFECT };
        let outcome = run(settings, &[100; 4000], MILLISECOND, seed);
        let lost = outcome.iter().filter(|(_, fate)| *fate == Deliveries::Lost(Lost::Loss)).count();
        // Five standard deviations and a little.
        let spread = 5.0 * (loss * (1.0 - loss) / 4000.0).sqrt() + 0.001;
        prop_assert!((lost as f64 / 4000.0 - loss).abs() <= spread, "{lost} of 4000 at {loss}");
    }

    #[test]
    fn the_same_seed_replays(seed: u64) {
        let settings = LinkSettings {
            jitter: MILLISECOND, loss: 0.3, duplicate: 0.1, reorder: 0.1, ..LinkSettings::with_rtt_ms(10)
        };
        let fates = || {
            let outcome = run(settings, &[100; 300], MILLISECOND, seed);
            let start = outcome[0].0;
            outcome.iter().map(|(_, fate)| fate.iter().map(|at| at - start).collect()).collect::<Vec<Vec<_>>>()
        };
        prop_assert_eq!(fates(), fates());
    }
}
