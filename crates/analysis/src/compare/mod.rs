//! Can the disturbed phase be distinguished from the idle controls?
//!
//! Each statistic of the disturbed window is compared with the same statistic of the idle windows
//! before and after. Wake-up quantiles are those of all releases, the missed ones charged with the
//! lateness they had ([`crate::missed`]). Statistics of samples get block-bootstrap intervals
//! ([`stats::resample`]); event rates get an exact test, deflated by their dispersion and adjusted
//! over the classes ([`stats::rates`]). One run is one machine state: the verdict is about these
//! three windows, not about another boot.

mod decide;

pub use decide::{Chance, Trio, decide, withheld};

use crate::missed::{self, Charged};
use crate::overlap::Intervals;
use crate::tally::Tally;
use crate::words;
use model::EventClass;
use model::run::{ProbeRecord, Run};
use model::sample::ProbeKind;
use serde::{Deserialize, Serialize};
use stats::dispersion::dispersion;
use stats::rates::{self, Rate};
use stats::resample::{self, BlockedSamples};
use stats::stretches::Stretches;
use std::collections::BTreeSet;

/// Whether the disturbed phase can be distinguished from the idle controls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Disturbed is higher than both controls, by more than the controls differ.
    Worse,
    /// Disturbed is lower than both controls, by more than the controls differ.
    Better,
    /// The run cannot distinguish the two.
    CannotTell,
    /// Losses or too few samples forbid a verdict.
    Withheld,
}

/// One statistic in the disturbed phase against the same statistic in both idle controls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// What is compared, such as `wakeup p50`, `noise share`, `ipi.call per second`.
    pub figure: String,
    /// Unit of the values: `ns`, `share`, `per s`.
    pub unit: String,
    /// The CPU.
    pub cpu: u32,
    /// The value in the first idle control.
    pub idle_before: Option<f64>,
    /// The value in the disturbed phase.
    pub disturbed: Option<f64>,
    /// The value in the second idle control.
    pub idle_after: Option<f64>,
    /// 95 % interval of disturbed minus first control, where one was computed.
    pub versus_before: Option<[f64; 2]>,
    /// 95 % interval of disturbed minus second control, where one was computed.
    pub versus_after: Option<[f64; 2]>,
    /// The verdict.
    pub verdict: Verdict,
    /// The verdict with its reason in plain words.
    pub sentence: String,
}

/// What is known of one window on one CPU.
#[derive(Clone, Copy)]
pub struct WindowData<'a> {
    /// The probe's record.
    pub record: &'a ProbeRecord,
    /// Its samples.
    pub intervals: &'a Intervals,
    /// Its releases that passed unserved (wake-up).
    pub charged: &'a [Charged],
    /// Its events; `None` without a trace.
    pub tally: Option<&'a Tally>,
}

/// What the comparison of events needs to know about the trace.
pub struct EventTrust<'a> {
    /// Classes of which something was recorded.
    pub observable: &'a BTreeSet<EventClass>,
    /// CPUs of whose trace nothing is missing.
    pub whole: &'a dyn Fn(u32) -> bool,
}

/// Every comparison of a run, with `draws` draws of each bootstrap ([`resample::DRAWS`] in a
/// report). Empty where no phase was disturbed.
pub fn compare(
    run: &Run,
    windows: &[WindowData<'_>],
    trust: &EventTrust<'_>,
    draws: usize,
) -> Vec<Comparison> {
    let Some(phases) = Phases::of(run) else { return Vec::new() };
    let seed = run.seeds.get("analysis").copied().unwrap_or(0);
    let mut comparisons = Vec::new();
    for cpu in run.measured_cpus.iter() {
        let trio = |probe: ProbeKind| {
            phases.0.map(|phase| {
                let of_phase = |window: &&WindowData<'_>| {
                    window.record.cpu == cpu
                        && window.record.probe() == probe
                        && Some(window.record.phase.as_str()) == phase
                };
                windows.iter().find(of_phase).copied()
            })
        };
        let (wakeup, noise) = (trio(ProbeKind::Wakeup), trio(ProbeKind::Noise));
        let mut figures = Figures { cpu, seed, draws, next: u64::from(cpu) << 8, out: &mut comparisons };
        figures.wakeup(wakeup);
        figures.noise(noise);
        for (probe, trio) in [(ProbeKind::Wakeup, wakeup), (ProbeKind::Noise, noise)] {
            figures.events(probe, trio, trust);
        }
    }
    comparisons
}

/// Names of the phases: idle before, disturbed, idle after.
struct Phases<'a>([Option<&'a str>; 3]);

impl<'a> Phases<'a> {
    /// The first disturbed phase with its neighbours. `None` where nothing was disturbed.
    fn of(run: &'a Run) -> Option<Self> {
        let at = run.phases.iter().position(|phase| phase.disturbed)?;
        let idle = |phase: &&model::run::Phase| !phase.disturbed;
        let before = run.phases[..at].iter().rev().find(idle);
        let after = run.phases[at + 1..].iter().find(idle);
        let names = [before, run.phases.get(at), after];
        Some(Self(names.map(|phase| phase.map(|phase| phase.name.as_str()))))
    }
}

/// Windows of one probe on one CPU: before, disturbed, after.
type Windows<'a> = [Option<WindowData<'a>>; 3];

const NAMES: [&str; 3] = ["the idle control before", "the disturbed phase", "the idle control after"];

/// Adds the statistics of one CPU.
struct Figures<'o> {
    cpu: u32,
    seed: u64,
    draws: usize,
    /// Number of the next stream of random numbers.
    next: u64,
    out: &'o mut Vec<Comparison>,
}

impl Figures<'_> {
    fn generator(&mut self) -> rand_chacha::ChaCha8Rng {
        self.next += 1;
        resample::generator(self.seed, self.next)
    }

    fn trio(&self, figure: impl Into<String>, unit: &'static str, values: [Option<f64>; 3]) -> Trio {
        Trio { figure: figure.into(), unit, cpu: self.cpu, condition: None, values, intervals: [None; 2] }
    }

    /// Adds a statistic with the draws of its windows.
    fn sampled(
        &mut self,
        figure: &str,
        unit: &'static str,
        condition: Option<&'static str>,
        windows: Windows<'_>,
        drawn: [Option<(f64, Vec<f64>, usize)>; 3],
    ) {
        let values = [0, 1, 2].map(|at| drawn[at].as_ref().map(|(value, ..)| *value));
        let mut trio = Trio { condition, ..self.trio(figure, unit, values) };
        for (interval, control) in trio.intervals.iter_mut().zip([0, 2]) {
            if let (Some((d, d_draws, d_blocks)), Some((c, c_draws, c_blocks))) = (&drawn[1], &drawn[control])
            {
                *interval = resample::difference_interval(d - c, d_draws, c_draws, *d_blocks.min(c_blocks));
            }
        }
        let comparison = match obstacle(&trio.said(), &windows) {
            Some(reason) => withheld(trio, reason),
            None => decide(trio, &Chance::Intervals),
        };
        self.out.push(comparison);
    }

    fn wakeup(&mut self, windows: Windows<'_>) {
        if windows.iter().all(Option::is_none) {
            return;
        }
        let blocked = windows.map(|window| window.map(|w| all_releases(&w)));
        let any_missed = windows.iter().flatten().any(|window| !window.charged.is_empty());
        let condition = any_missed.then_some("missed releases charged");
        for (figure, parts) in [("wakeup p50", 50_000), ("wakeup p99", 99_000)] {
            let drawn = [0, 1, 2].map(|at| {
                let mut generator = self.generator();
                let samples = blocked[at].as_ref()?;
                let value = samples.quantile(parts)? as f64;
                Some((
                    value,
                    samples.quantile_draws(parts, self.draws, &mut generator),
                    samples.block_count(),
                ))
            });
            self.sampled(figure, "ns", condition, windows, drawn);
        }
        self.maxima(windows);
        self.missed(windows);
    }

    /// Maxima are shown side by side and not judged.
    fn maxima(&mut self, windows: Windows<'_>) {
        let most = windows.map(|window| window.and_then(|w| w.intervals.samples().map(|s| s.1).max()));
        let trio = self.trio("wakeup observed max", "ns", most.map(|max| max.map(|ns| ns as f64)));
        let values: Vec<String> =
            most.iter().map(|max| max.map_or("none".to_owned(), |ns| words::time(ns as f64))).collect();
        let sentence = format!(
            "observed maxima were {} disturbed against {} and {} idle; one window has one maximum, and three say nothing about \
             chance: they are not compared",
            values[1], values[0], values[2]
        );
        self.out.push(withheld(trio, sentence));
    }

    fn missed(&mut self, windows: Windows<'_>) {
        if windows.iter().flatten().all(|window| window.record.missed() == 0) {
            return;
        }
        let rates = windows.map(|window| {
            window.map(|w| Rate {
                count: w.record.missed(),
                seconds: w.record.t1_ns.saturating_sub(w.record.t0_ns).max(0) as f64 / 1e9,
                // One late sample swallows several releases: they have one reason, so as many as
                // the longest row of them could have had count as one.
                dispersion: longest_row(&w),
            })
        });
        let comparison =
            self.rate("wakeup missed releases per second".to_owned(), rates, &windows, |p| (p, 1));
        self.out.push(comparison);
    }

    fn noise(&mut self, windows: Windows<'_>) {
        if windows.iter().all(Option::is_none) {
            return;
        }
        let blocks = windows.map(|window| window.map(|w| NoiseBlocks::of(&w)));
        for (figure, unit) in [("noise share", "share"), ("noise gaps per second", "per s")] {
            let part = |blocks: &NoiseBlocks| {
                if unit == "share" { blocks.stolen_s.clone() } else { blocks.gaps.clone() }
            };
            let drawn = [0, 1, 2].map(|at| {
                let mut generator = self.generator();
                let blocks = blocks[at].as_ref()?;
                let ran: f64 = blocks.ran_s.iter().sum();
                let value = part(blocks).iter().sum::<f64>() / ran;
                let draws = resample::ratio_draws(&part(blocks), &blocks.ran_s, self.draws, &mut generator);
                (ran > 0.0).then_some((value, draws, blocks.ran_s.len()))
            });
            self.sampled(figure, unit, None, windows, drawn);
        }
    }

    /// One statistic per class that occurred; classes that did not occur still count in the
    /// adjustment.
    fn events(&mut self, probe: ProbeKind, windows: Windows<'_>, trust: &EventTrust<'_>) {
        let judged = |class: &EventClass| {
            trust.observable.contains(class)
                && !matches!(class, EventClass::SelfCaused | EventClass::Unexplained)
        };
        let classes: Vec<EventClass> = EventClass::ALL.iter().copied().filter(judged).collect();
        let rates: Vec<[Option<Rate>; 3]> =
            classes.iter().map(|class| windows.map(|window| class_rate(window?.tally?, *class))).collect();
        let p_values: Vec<f64> = rates.iter().map(larger_p).collect();
        let adjusted = rates::holm(&p_values);
        for ((class, rates), adjusted_p) in classes.iter().zip(rates).zip(adjusted) {
            if rates.iter().flatten().all(|rate| rate.count == 0) {
                continue;
            }
            let figure = format!("{} {class} per second", probe.name());
            let comparison = if (trust.whole)(self.cpu) {
                self.rate(figure, rates, &windows, |_| (adjusted_p, classes.len()))
            } else {
                let reason = format!(
                    "{figure}: events of CPU {} are missing from the trace, so they are not compared",
                    self.cpu
                );
                // A count is a lower bound here; a zero count is no evidence.
                let seen = rates.map(|rate| rate.filter(|rate| rate.count > 0).map(|rate| rate.per_s()));
                withheld(self.trio(figure, "per s", seen), reason)
            };
            self.out.push(comparison);
        }
    }

    fn rate(
        &self,
        figure: String,
        rates: [Option<Rate>; 3],
        windows: &Windows<'_>,
        adjust: impl Fn(f64) -> (f64, usize),
    ) -> Comparison {
        let mut trio = self.trio(figure, "per s", rates.map(|rate| rate.map(|rate| rate.per_s())));
        for (interval, control) in trio.intervals.iter_mut().zip([0, 2]) {
            *interval = rates[1].zip(rates[control]).and_then(|(d, c)| rates::difference_interval(&d, &c));
        }
        if let Some(missing) = missing(windows) {
            let reason = format!("{}: {missing} is missing, so it is not compared", trio.figure);
            return withheld(trio, reason);
        }
        let (adjusted_p, family) = adjust(larger_p(&rates));
        decide(trio, &Chance::Tested { adjusted_p, family })
    }
}

/// Disturbed must differ from both controls: the larger probability counts.
fn larger_p([before, disturbed, after]: &[Option<Rate>; 3]) -> f64 {
    match (before, disturbed, after) {
        (Some(b), Some(d), Some(a)) => rates::p_value(d, b).max(rates::p_value(d, a)),
        _ => 1.0,
    }
}

fn class_rate(tally: &Tally, class: EventClass) -> Option<Rate> {
    let sum = tally.class(class);
    let seconds = tally.duration_ns() as f64 / 1e9;
    let dispersion = dispersion(&sum.blocks, tally.block_exposure_ns());
    (seconds > 0.0).then_some(Rate { count: sum.total.count, seconds, dispersion })
}

fn missing(windows: &Windows<'_>) -> Option<&'static str> {
    windows.iter().zip(NAMES).find(|(window, _)| window.is_none()).map(|(_, name)| name)
}

/// Served and missed releases of a window, each at the time it was due.
fn all_releases(window: &WindowData<'_>) -> BlockedSamples {
    let charged = window.charged.iter().map(|release| (release.release_ns, release.lateness_ns));
    let all = window.intervals.samples().chain(charged);
    BlockedSamples::new(all, &missed::rows(window.charged), window.record.t0_ns, window.record.t1_ns)
}

/// What forbids a verdict on a statistic of samples.
fn obstacle(figure: &str, windows: &Windows<'_>) -> Option<String> {
    if let Some(missing) = missing(windows) {
        return Some(format!("{figure}: {missing} is missing, so it is not compared"));
    }
    let lost = windows.iter().flatten().fold(0u64, |sum, window| sum.saturating_add(window.record.ring_lost));
    (lost > 0).then(|| format!("{figure}: {lost} samples were lost to a full ring, so it is not compared"))
}

/// The longest row of releases that one late sample swallowed; at least 1.
fn longest_row(window: &WindowData<'_>) -> f64 {
    let period = window.record.period_ns().unwrap_or(0).max(1);
    let longest =
        window.intervals.samples().map(|(_, value)| value.max(0) as u64 / period).max().unwrap_or(0);
    longest.clamp(1, window.record.missed().max(1)) as f64
}

/// A noise window in blocks of time.
struct NoiseBlocks {
    ran_s: Vec<f64>,
    stolen_s: Vec<f64>,
    gaps: Vec<f64>,
}

impl NoiseBlocks {
    fn of(window: &WindowData<'_>) -> Self {
        let (t0_ns, t1_ns) = (window.record.t0_ns, window.record.t1_ns);
        let length = t1_ns.saturating_sub(t0_ns).max(1);
        let count = resample::block_count(length);
        let edge = |block: usize| t0_ns + (i128::from(length) * block as i128 / count as i128) as i64;
        let mut ran = Stretches::new(window.record.slices());
        let ran_s =
            (0..count).map(|block| ran.overlap_ns(edge(block), edge(block + 1)) as f64 / 1e9).collect();
        let (mut stolen_s, mut gaps) = (vec![0.0; count], vec![0.0; count]);
        for (t_ns, value_ns) in window.intervals.samples() {
            let block = resample::block_of(t_ns, t0_ns, t1_ns, count);
            stolen_s[block] += value_ns.max(0) as f64 / 1e9;
            gaps[block] += 1.0;
        }
        Self { ran_s, stolen_s, gaps }
    }
}

#[cfg(test)]
mod tests;
