//! What the comparison finds in simulated runs, and how rarely it finds something where there is
//! nothing.

use super::*;
use crate::compare::Verdict;
use crate::missed::{Charged, of_probe};
use crate::testing::{self, record, releases, spun};
use attribution::spans::Span;
use model::run::{Losses, ObserverCost, Phase};
use model::{Cpus, Sample};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;

const PHASES: [&str; 3] = ["idle-before", "disturbed", "idle-after"];
const SECOND: i64 = 1_000_000_000;
/// Fewer than a report's, for speed.
const DRAWS: usize = 200;

fn run() -> Run {
    let phase = |(at, name): (usize, &&str)| {
        let t0_ns = at as i64 * 100 * SECOND;
        Phase { name: (*name).to_owned(), t0_ns, t1_ns: t0_ns + 100 * SECOND, disturbed: at == 1 }
    };
    Run {
        schema: model::run::SCHEMA.into(),
        tool_version: "0".into(),
        command: Vec::new(),
        started_at: String::new(),
        complete: true,
        incomplete_reason: None,
        stopped_at: None,
        machine_before: String::new(),
        machine_after: None,
        measured_cpus: Cpus::one(1),
        housekeeping_cpus: Cpus::one(0),
        plan: Vec::new(),
        phases: PHASES.iter().enumerate().map(phase).collect(),
        windows: Vec::new(),
        probes: Vec::new(),
        stressors: Vec::new(),
        trace: None,
        losses: Losses::default(),
        observer: ObserverCost::default(),
        dma_latency_us: None,
        idle_states: model::cpu_states::IdleStates::default(),
        frequency_change_ns: model::cpu_states::FrequencyChanges::default(),
        seeds: std::collections::BTreeMap::from([("analysis".to_owned(), 1)]),
        limits: Vec::new(),
    }
}

/// Uniform in (0, 1).
fn uniform(random: &mut ChaCha8Rng) -> f64 {
    (f64::from(random.next_u32()) + 0.5) / 4_294_967_296.0
}

fn normal(random: &mut ChaCha8Rng) -> f64 {
    (-2.0 * uniform(random).ln()).sqrt() * (std::f64::consts::TAU * uniform(random)).cos()
}

/// Wake-up latencies around 5 µs with a long tail, autocorrelated by `rho`, times `factor`.
fn latencies(random: &mut ChaCha8Rng, n: i64, rho: f64, factor: f64) -> Vec<Sample> {
    let mut state = normal(random);
    (0..n)
        .map(|at| {
            state = rho * state + (1.0 - rho * rho).sqrt() * normal(random);
            let value_ns = (factor * 5_000.0 * (0.3 * state).exp()) as i64;
            Sample { t_ns: at * 1_000_000, value_ns, seq: at as u64, missed: 0, flags: 0 }
        })
        .collect()
}

fn wakeup_record(phase: &str, n: i64) -> ProbeRecord {
    ProbeRecord { phase: phase.into(), t1_ns: n * 1_000_000, ..record(ProbeKind::Wakeup) }
}

fn compared(
    run: &Run,
    windows: &[(ProbeRecord, Vec<Sample>)],
    tallies: &[Option<Tally>; 3],
) -> Vec<Comparison> {
    let windows: Vec<(&ProbeRecord, Intervals, Vec<Charged>, &Option<Tally>)> = windows
        .iter()
        .zip(tallies)
        .map(|((record, samples), tally)| {
            (record, Intervals::new(samples, 0), of_probe(record, samples), tally)
        })
        .collect();
    let data: Vec<WindowData<'_>> = windows
        .iter()
        .map(|(record, intervals, charged, tally)| WindowData {
            record,
            intervals,
            charged,
            tally: tally.as_ref(),
        })
        .collect();
    let observable = EventClass::ALL.iter().copied().collect();
    compare(run, &data, &EventTrust { observable: &observable, whole: &|_| true }, DRAWS)
}

fn wakeups(random: &mut ChaCha8Rng, n: i64, rho: f64, factors: [f64; 3]) -> Vec<Comparison> {
    let windows: Vec<_> = PHASES
        .iter()
        .zip(factors)
        .map(|(phase, factor)| (wakeup_record(phase, n), latencies(random, n, rho, factor)))
        .collect();
    compared(&run(), &windows, &[None, None, None])
}

/// A wake-up window of `n` releases in which the probe stood still from release `at` for so many
/// periods, and a half, for each of the `stalls`, ascending and apart.
fn stalled(
    random: &mut ChaCha8Rng,
    phase: &str,
    n: i64,
    stalls: &[(i64, i64)],
) -> (ProbeRecord, Vec<Sample>) {
    let mut samples = latencies(random, n, 0.5, 1.0);
    for &(at, periods) in stalls.iter().filter(|(_, periods)| *periods > 0) {
        let Some(late) = samples.iter().position(|sample| sample.t_ns == at * 1_000_000) else { continue };
        samples[late].value_ns = periods * 1_000_000 + 500_000;
        let swallowed = (periods as usize).min(samples.len() - late - 1);
        samples.drain(late + 1..=late + swallowed);
        if let Some(next) = samples.get_mut(late + 1) {
            next.missed = swallowed as u32;
        }
    }
    samples.iter_mut().enumerate().for_each(|(seq, sample)| sample.seq = seq as u64);
    let missed = n as u64 - samples.len() as u64;
    (ProbeRecord { detail: releases(1_000_000, n as u64, missed), ..wakeup_record(phase, n) }, samples)
}

/// Noise windows of `seconds` with bursts of `burst` gaps at `per_s` bursts a second.
fn noise(
    random: &mut ChaCha8Rng,
    seconds: i64,
    burst: u32,
    per_s: [f64; 3],
) -> [(ProbeRecord, Vec<Sample>); 3] {
    [0, 1, 2].map(|at| {
        let length = seconds * SECOND;
        let slices: Vec<_> = (0..seconds).map(|s| [s * SECOND, s * SECOND + 900_000_000]).collect();
        let phase = PHASES[at].to_owned();
        let record = ProbeRecord { phase, t1_ns: length, detail: spun(&slices), ..record(ProbeKind::Noise) };
        let mut samples = Vec::new();
        let mut t = 0.0;
        loop {
            t -= uniform(random).ln() / per_s[at];
            if t >= seconds as f64 {
                break;
            }
            for k in 0..burst {
                let t_ns = (t * 1e9) as i64 + i64::from(k) * 300_000;
                if t_ns % SECOND < 900_000_000 && t_ns < length {
                    samples.push(Sample {
                        t_ns,
                        value_ns: (5_000.0 * (0.5 * normal(random)).exp()) as i64,
                        ..Sample::default()
                    });
                }
            }
        }
        (record, samples)
    })
}

/// The same windows as noise samples and as irq and softirq spans of a trace.
fn noises(random: &mut ChaCha8Rng, seconds: i64, burst: u32, per_s: [f64; 3]) -> Vec<Comparison> {
    let windows = noise(random, seconds, burst, per_s);
    let tallies = [0, 1, 2].map(|at| {
        let (record, samples) = &windows[at];
        let mut tally = Tally::new(record, Intervals::default(), 0, None);
        for (number, sample) in samples.iter().enumerate() {
            let class = if number % 3 == 0 { EventClass::Softirq } else { EventClass::Irq };
            let (t0_ns, net_ns) = (sample.t_ns, sample.value_ns as u64);
            let t1_ns = t0_ns + sample.value_ns;
            tally.span(&Span { net_ns, ..testing::span(1, class, [t0_ns, t1_ns]) });
        }
        Some(tally)
    });
    compared(&run(), &windows, &tallies)
}

fn verdict(comparisons: &[Comparison], figure: &str) -> Verdict {
    comparisons
        .iter()
        .find(|c| c.figure == figure)
        .unwrap_or_else(|| panic!("no {figure} in {comparisons:#?}"))
        .verdict
}

fn is_decided(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Worse | Verdict::Better)
}

#[test]
fn a_doubled_latency_is_detected_and_a_halved_one_too() {
    let mut random = resample::generator(3, 0);
    let comparisons = wakeups(&mut random, 4_000, 0.5, [1.0, 2.0, 1.0]);
    assert_eq!(verdict(&comparisons, "wakeup p50"), Verdict::Worse);
    assert_eq!(verdict(&comparisons, "wakeup p99"), Verdict::Worse);
    assert_eq!(verdict(&comparisons, "wakeup observed max"), Verdict::Withheld);
    assert_eq!(verdict(&wakeups(&mut random, 4_000, 0.5, [1.0, 0.5, 1.0]), "wakeup p50"), Verdict::Better);
}

fn of<'a>(comparisons: &'a [Comparison], figure: &str) -> &'a Comparison {
    comparisons
        .iter()
        .find(|c| c.figure == figure)
        .unwrap_or_else(|| panic!("no {figure} in {comparisons:#?}"))
}

#[test]
fn a_probe_that_stood_still_is_not_called_quick() {
    let mut random = resample::generator(17, 0);
    let stalls: [&[(i64, i64)]; 3] = [&[], &[(2_000, 6_000)], &[]];
    let windows = [0, 1, 2].map(|at| stalled(&mut random, PHASES[at], 10_000, stalls[at]));
    let comparisons = compared(&run(), &windows, &[None, None, None]);
    // Half of all releases are later than 1 s, and 1 % later than 5.9 s; the served ones alone say
    // 5 us.
    let (half, tail) = (of(&comparisons, "wakeup p50"), of(&comparisons, "wakeup p99"));
    assert!(half.disturbed > Some(0.9e9) && tail.disturbed > Some(5.8e9), "{comparisons:#?}");
    assert!(half.idle_before < Some(10_000.0));
    for figure in [half, tail] {
        assert!(figure.sentence.contains("(missed releases charged) was"), "{}", figure.sentence);
        // One stall is one event, however many releases it swallows.
        assert_eq!(figure.verdict, Verdict::CannotTell, "{}", figure.sentence);
    }
}

#[test]
fn repeated_stalls_are_detected_by_the_releases_they_swallow() {
    let mut random = resample::generator(18, 0);
    let often: Vec<(i64, i64)> = (0..100).map(|k| (k * 100 + 5, 20)).collect();
    let long: Vec<(i64, i64)> = (0..10).map(|k| (k * 1_000 + 5, 900)).collect();
    for stalls in [&often, &long] {
        let windows =
            [0, 1, 2].map(|at| stalled(&mut random, PHASES[at], 10_000, if at == 1 { stalls } else { &[] }));
        let comparisons = compared(&run(), &windows, &[None, None, None]);
        assert_eq!(verdict(&comparisons, "wakeup p99"), Verdict::Worse, "{comparisons:#?}");
    }
}

#[test]
fn without_missed_releases_the_sentence_does_not_speak_of_them() {
    let comparisons = wakeups(&mut resample::generator(19, 0), 1_000, 0.5, [1.0; 3]);
    assert!(comparisons.iter().all(|c| !c.sentence.contains("charged")), "{comparisons:#?}");
}

#[test]
fn controls_that_drift_forbid_what_they_do_not_bracket() {
    let mut random = resample::generator(4, 0);
    let comparisons = wakeups(&mut random, 4_000, 0.5, [1.0, 2.0, 1.8]);
    assert_eq!(verdict(&comparisons, "wakeup p50"), Verdict::CannotTell);
}

#[test]
fn the_same_run_gives_the_same_answer() {
    let once = || wakeups(&mut resample::generator(5, 0), 1_000, 0.5, [1.0, 1.1, 1.0]);
    assert_eq!(once(), once());
}

#[test]
fn ten_times_the_noise_is_detected() {
    let comparisons = noises(&mut resample::generator(6, 0), 10, 1, [5.0, 50.0, 5.0]);
    for figure in ["noise share", "noise gaps per second", "noise irq per second", "noise softirq per second"]
    {
        assert_eq!(verdict(&comparisons, figure), Verdict::Worse, "{figure}");
    }
}

#[test]
fn one_burst_is_no_verdict() {
    // The first seed that gives a burst in the disturbed window alone.
    let burst = (0..).map(|seed| noises(&mut resample::generator(7, seed), 10, 30, [1e-9, 0.1, 1e-9]));
    let comparisons = burst.into_iter().find(|c| c[0].disturbed > Some(0.0)).unwrap();
    assert!(comparisons.iter().all(|c| c.verdict == Verdict::CannotTell), "{comparisons:#?}");
}

#[test]
fn a_missing_control_or_a_full_ring_withholds() {
    let mut random = resample::generator(8, 0);
    let windows: Vec<_> = PHASES[..2]
        .iter()
        .map(|phase| (wakeup_record(phase, 500), latencies(&mut random, 500, 0.0, 1.0)))
        .collect();
    let comparisons = compared(&run(), &windows, &[None, None, None]);
    assert!(comparisons.iter().all(|c| c.verdict == Verdict::Withheld), "{comparisons:#?}");
    assert!(
        comparisons[0].sentence.contains("the idle control after is missing"),
        "{}",
        comparisons[0].sentence
    );

    let windows: Vec<_> = PHASES
        .iter()
        .map(|phase| {
            let lossy = ProbeRecord { ring_lost: 3, ..wakeup_record(phase, 500) };
            (lossy, latencies(&mut random, 500, 0.0, 1.0))
        })
        .collect();
    let comparisons = compared(&run(), &windows, &[None, None, None]);
    assert!(comparisons[0].sentence.contains("9 samples were lost"), "{}", comparisons[0].sentence);
}

#[test]
fn a_trace_with_holes_withholds_events_and_nothing_else() {
    let [a, b, c] = noise(&mut resample::generator(9, 0), 5, 1, [5.0; 3]);
    let prepared: Vec<_> = [a, b, c]
        .into_iter()
        .map(|(record, samples)| {
            let mut tally = Tally::new(&record, Intervals::default(), 0, None);
            tally.span(&testing::span(1, EventClass::Irq, [100, 200]));
            (record, Intervals::new(&samples, 0), tally)
        })
        .collect();
    let data: Vec<_> = prepared
        .iter()
        .map(|(record, intervals, tally)| WindowData { record, intervals, charged: &[], tally: Some(tally) })
        .collect();
    let observable = BTreeSet::from([EventClass::Irq]);
    let comparisons =
        compare(&run(), &data, &EventTrust { observable: &observable, whole: &|_| false }, DRAWS);
    assert_eq!(verdict(&comparisons, "noise irq per second"), Verdict::Withheld);
    assert_ne!(verdict(&comparisons, "noise share"), Verdict::Withheld);
}

#[test]
fn missed_releases_are_rates_too() {
    let mut random = resample::generator(10, 0);
    let windows: Vec<_> = PHASES
        .iter()
        .zip([0, 60, 1])
        .map(|(phase, missed)| {
            let record =
                ProbeRecord { detail: releases(1_000_000, 2_000, missed), ..wakeup_record(phase, 2_000) };
            (record, latencies(&mut random, 2_000, 0.0, 1.0))
        })
        .collect();
    let comparisons = compared(&run(), &windows, &[None, None, None]);
    assert_eq!(verdict(&comparisons, "wakeup missed releases per second"), Verdict::Worse);
}

#[test]
fn a_run_without_a_disturbed_phase_compares_nothing() {
    let mut run = run();
    run.phases.iter_mut().for_each(|phase| phase.disturbed = false);
    assert!(compared(&run, &[], &[None, None, None]).is_empty());
}

/// Share of the repetitions in which a statistic gets a verdict although nothing differs.
fn false_verdicts(
    repetitions: usize,
    seed: u64,
    one: impl Fn(&mut ChaCha8Rng) -> Vec<Comparison>,
) -> Vec<(String, f64)> {
    let mut counts = std::collections::BTreeMap::<String, usize>::new();
    for repetition in 0..repetitions {
        for comparison in one(&mut resample::generator(seed, repetition as u64)) {
            *counts.entry(comparison.figure).or_default() += usize::from(is_decided(comparison.verdict));
        }
    }
    counts.into_iter().map(|(figure, count)| (figure, count as f64 / repetitions as f64)).collect()
}

fn assert_rare(shares: Vec<(String, f64)>) {
    assert!(!shares.is_empty());
    assert!(shares.iter().all(|(_, share)| *share < 0.05), "{shares:?}");
}

#[test]
fn nothing_is_rarely_taken_for_something_in_independent_samples() {
    assert_rare(false_verdicts(200, 11, |random| wakeups(random, 1_000, 0.0, [1.0; 3])));
}

#[test]
fn nothing_is_rarely_taken_for_something_in_autocorrelated_samples() {
    assert_rare(false_verdicts(200, 12, |random| wakeups(random, 2_000, 0.95, [1.0; 3])));
}

#[test]
fn nothing_is_rarely_taken_for_something_in_stalls() {
    // One stall a window on average, of up to a third of it.
    let shares = false_verdicts(200, 20, |random| {
        let windows = PHASES.map(|phase| {
            let stalls: Vec<(i64, i64)> = (0..5)
                .filter_map(|part| {
                    let (comes, start, length) = (uniform(random), uniform(random), uniform(random));
                    let at = part * 1_000 + (start * 500.0) as i64;
                    (comes < 0.2).then_some((at, (length * 1_600.0) as i64))
                })
                .collect();
            stalled(random, phase, 5_000, &stalls)
        });
        compared(&run(), &windows, &[None, None, None])
    });
    assert_rare(shares);
}

#[test]
fn nothing_is_rarely_taken_for_something_in_independent_events() {
    assert_rare(false_verdicts(200, 14, |random| noises(random, 10, 1, [20.0; 3])));
    assert_rare(false_verdicts(200, 16, |random| noises(random, 10, 1, [1.0; 3])));
}

#[test]
fn nothing_is_rarely_taken_for_something_in_bursts() {
    assert_rare(false_verdicts(200, 15, |random| noises(random, 10, 6, [4.0; 3])));
}
