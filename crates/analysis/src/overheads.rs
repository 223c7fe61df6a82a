//! Results of the overheads probe: a distribution per term, and the terms in the form that
//! schedulability analysis takes.
//!
//! The terms are those of overhead accounting (B. Brandenburg, "Scheduling and Locking in
//! Multiprocessor Real-Time Operating Systems", UNC 2011, §3.4): release Δrel, scheduling Δsch,
//! context switch Δcxs, tick Δtck, interprocessor interrupt Δipi, cache-related preemption delay
//! Δcpd.

use crate::distribution::{Distribution, distribution};
use crate::ipi::Columns;
use crate::lengths::TracedTerm;
use attribution::Error;
use model::Sample;
use model::run::ProbeRecord;
use model::sample::OwnColumn;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The terms by their code in the column `term`.
pub const TERMS: [&str; 8] = ["release", "sched", "switch", "gap", "ipi", "crpd", "migrate", "cpmd"];
/// Name of the gaps that recur at a tick's interval.
pub const TICK: &str = "tick";

/// One term, for cache terms of one working set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Overhead {
    /// Which.
    pub term: String,
    /// The working set; 0 for terms that have none.
    pub bytes: u64,
    /// The observer's own cost, which was subtracted from every value, ns.
    pub subtracted_ns: i64,
    /// The values; without a timeline, since the terms take turns.
    pub figures: Distribution,
}

/// The results of an overheads file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Overheads {
    /// The CPU.
    pub cpu: u32,
    /// Interval between ticks, ns; none where no gaps recur at one.
    pub tick_period_ns: Option<i64>,
    /// The terms that were measured; ticks once more as `tick` beside all `gap`s.
    pub terms: Vec<Overhead>,
    /// The same kernel work by its own tracepoints, from a window of its own; empty without a
    /// trace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub traced: Vec<TracedTerm>,
}

/// One term for every group of samples.
pub fn overheads(
    record: &ProbeRecord,
    samples: &[Sample],
    columns: &[OwnColumn],
) -> Result<Overheads, Error> {
    let columns = Columns::new(columns, record, samples.len());
    let [term, bytes, subtracted] =
        [columns.get("term")?, columns.get("bytes")?, columns.get("subtracted_ns")?];
    let mut groups: BTreeMap<(i64, i64), (i64, Vec<Sample>)> = BTreeMap::new();
    for (row, sample) in samples.iter().enumerate() {
        let group = groups.entry((term[row], bytes[row])).or_insert((subtracted[row], Vec::new()));
        group.1.push(*sample);
    }
    let mut overheads =
        Overheads { cpu: record.cpu, tick_period_ns: None, terms: Vec::new(), traced: Vec::new() };
    for ((code, bytes), (subtracted_ns, own)) in groups {
        let name = TERMS.get(code as usize).map_or_else(|| format!("term {code}"), ToString::to_string);
        let one = |term: String, own: &[Sample]| Overhead {
            term,
            bytes: bytes as u64,
            subtracted_ns,
            figures: Distribution { timeline: Vec::new(), by_us: Vec::new(), ..distribution(record, own) },
        };
        if name == "gap"
            && let Some((period_ns, ticks)) = ticks(&own)
        {
            overheads.tick_period_ns = Some(period_ns);
            overheads.terms.push(one(TICK.to_owned(), &ticks));
        }
        overheads.terms.push(one(name, &own));
    }
    Ok(overheads)
}

/// The tick intervals of Linux (`CONFIG_HZ` 1000, 300, 250, 100), ns.
const PERIODS_NS: [i64; 4] = [1_000_000, 3_333_333, 4_000_000, 10_000_000];
/// How far from their time ticks may be, as a part of the period: one in so many.
const PLAY: i64 = 40;
/// Share of the periods that must have a gap, in percent.
const COVERED: usize = 80;
/// Fewer periods give no result.
const LEAST: usize = 10;

/// Where short gaps are too many to find ticks, only longer ones are searched, ns.
const FLOORS_NS: [i64; 5] = [0, 1_000, 2_000, 4_000, 8_000];

/// The gaps that recur at a tick's interval, and that interval. Short gaps are left out as far as
/// it takes: a tick is not a short one.
pub fn ticks(gaps: &[Sample]) -> Option<(i64, Vec<Sample>)> {
    FLOORS_NS.into_iter().find_map(|floor| {
        let long: Vec<Sample> = gaps.iter().filter(|gap| gap.value_ns >= floor).copied().collect();
        ticks_among(&long)
    })
}

/// The shortest period of which four in five have a gap at the same phase,
/// where gaps are not so dense that this would happen by itself.
fn ticks_among(gaps: &[Sample]) -> Option<(i64, Vec<Sample>)> {
    let span = gaps.last()?.t_ns - gaps.first()?.t_ns;
    PERIODS_NS.into_iter().find_map(|period| {
        let periods = usize::try_from(span / period).ok().filter(|&periods| periods >= LEAST)?;
        let play = period / PLAY;
        // Probability that a random gap falls into a window of this width, in percent.
        let by_chance = 100.0 * (1.0 - (-(gaps.len() as f64) * play as f64 / span as f64).exp());
        if by_chance > COVERED as f64 / 2.0 {
            return None;
        }
        let mut phases: Vec<(i64, &Sample)> =
            gaps.iter().map(|gap| (gap.t_ns.rem_euclid(period), gap)).collect();
        phases.sort_by_key(|(phase, gap)| (*phase, gap.t_ns));
        let turned: Vec<(i64, &Sample)> =
            phases.iter().copied().chain(phases.iter().map(|&(phase, gap)| (phase + period, gap))).collect();
        let window = |start: usize| {
            let from = turned[start].0;
            let mut best: BTreeMap<i64, Sample> = BTreeMap::new();
            for (phase, gap) in turned[start..].iter().take_while(|(phase, _)| *phase < from + play) {
                // Of several gaps at one tick the longest is the tick.
                let number = (gap.t_ns - phase).div_euclid(period);
                let kept = best.entry(number).or_insert(**gap);
                if gap.value_ns > kept.value_ns {
                    *kept = **gap;
                }
            }
            best
        };
        // A window that begins with a gap is as good as any. Windows crowd around the tick, so that
        // few gaps need be tried first.
        let fullest = fullest_start(&turned[..], phases.len(), play);
        let best = window(fullest);
        (best.len() * 100 >= periods * COVERED).then(|| {
            let mut ticks: Vec<Sample> = best.into_values().collect();
            ticks.sort_by_key(|tick| tick.t_ns);
            (period, ticks)
        })
    })
}

/// Where the window of this width with the most gaps begins, by two pointers over the sorted
/// phases.
fn fullest_start(turned: &[(i64, &Sample)], starts: usize, play: i64) -> usize {
    let (mut end, mut best) = (0, (0, 0));
    for start in 0..starts {
        while end < turned.len() && turned[end].0 < turned[start].0 + play {
            end += 1;
        }
        if end - start > best.0 {
            best = (end - start, start);
        }
    }
    best.1
}

/// The statistic that stands for a distribution in schedulability analysis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Take {
    /// The median: average-case analysis.
    Median,
    /// The 99th percentile.
    P99,
    /// The observed maximum, outliers and all; of these samples, no bound on any other.
    Max,
}

impl Take {
    /// Its value for this distribution, ns, never below 0; none with too few samples.
    pub fn of(self, figures: &Distribution) -> Option<i64> {
        let quantile = |p: f64| figures.quantiles.iter().find(|one| (one.p - p).abs() < 1e-9)?.value_ns;
        let value = match self {
            Self::Median => quantile(0.5),
            Self::P99 => quantile(0.99),
            Self::Max => figures.observed_max_ns,
        };
        value.map(|ns| ns.max(0))
    }
}

/// Overheads as schedulability analysis takes them, ns. `None`: not measured, or too few samples
/// for the statistic; that is not 0.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accounting {
    /// Timer interrupt that releases a job.
    pub release: Option<i64>,
    /// Scheduling decision.
    pub sched: Option<i64>,
    /// Context switch, with the wake-up before it.
    pub switch: Option<i64>,
    /// Tick.
    pub tick: Option<i64>,
    /// Interval between ticks.
    pub tick_period: Option<i64>,
    /// Delay of an interprocessor interrupt.
    pub ipi: Option<i64>,
    /// Cache-related preemption delay by working set.
    pub crpd: Vec<CacheDelay>,
    /// Moving to another CPU.
    pub migrate: Option<i64>,
    /// Cache-related migration delay by working set.
    pub cpmd: Vec<CacheDelay>,
}

/// A delay for a working set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheDelay {
    /// Size of the working set.
    pub bytes: u64,
    /// The delay, ns.
    pub ns: Option<i64>,
}

/// One number a term.
pub fn accounting(measured: &Overheads, take: Take) -> Accounting {
    let one = |name: &str| {
        measured.terms.iter().find(|term| term.term == name).and_then(|term| take.of(&term.figures))
    };
    let by_size = |name: &str| {
        let terms = measured.terms.iter().filter(|term| term.term == name);
        terms.map(|term| CacheDelay { bytes: term.bytes, ns: take.of(&term.figures) }).collect()
    };
    Accounting {
        release: one("release"),
        sched: one("sched"),
        switch: one("switch"),
        tick: one(TICK),
        tick_period: measured.tick_period_ns,
        ipi: one("ipi"),
        crpd: by_size("crpd"),
        migrate: one("migrate"),
        cpmd: by_size("cpmd"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::record;
    use model::sample::ProbeKind;
    use proptest::prelude::*;

    fn gap(t_ns: i64, value_ns: i64) -> Sample {
        Sample { t_ns, value_ns, ..Sample::default() }
    }

    /// A cheap sequence that looks random.
    fn scattered(n: u64, span: u64) -> impl Iterator<Item = i64> {
        (1..=n).map(move |k| (k.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20) as i64 % span as i64)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn ticks_are_found_among_noise(which in 0usize..4, phase in 0i64..10_000_000, noise in 0u64..80) {
            let period = PERIODS_NS[which];
            let span = 800_000_000;
            let ticks_there = (0..span / period).map(|k| gap(phase + k * period + (k % 7) * 1000, 2000 + k % 5));
            let others = scattered(noise, span as u64).map(|t_ns| gap(phase + t_ns, 700));
            let mut all: Vec<Sample> = ticks_there.chain(others).collect();
            all.sort_by_key(|gap| gap.t_ns);
            let (found, found_ticks) = ticks(&all).expect("ticks");
            prop_assert_eq!(found, period);
            prop_assert!(found_ticks.iter().filter(|tick| tick.value_ns >= 2000).count() as i64 >= span / period - 1);
            prop_assert!(found_ticks.len() as i64 <= span / period + 2);
        }

        #[test]
        fn noise_alone_has_no_ticks(noise in 0u64..400) {
            let mut all: Vec<Sample> = scattered(noise, 800_000_000).map(|t_ns| gap(t_ns, 700)).collect();
            all.sort_by_key(|gap| gap.t_ns);
            prop_assert_eq!(ticks(&all), None);
        }
    }

    #[test]
    fn gaps_everywhere_are_no_ticks() {
        let all: Vec<Sample> = (0..40_000).map(|k| gap(k * 20_000, 900)).collect();
        assert_eq!(ticks(&all), None);
    }

    #[test]
    fn terms_are_separated_and_what_was_not_measured_is_no_zero() {
        let samples: Vec<Sample> = (0..60).map(|k| gap(k, 100 + k % 3)).collect();
        let column = |name: &str, of: fn(i64) -> i64| OwnColumn {
            name: name.to_owned(),
            values: (0..60).map(of).collect(),
        };
        let columns = vec![
            column("term", |k| if k < 20 { 1 } else { 5 }),
            column("bytes", |k| if k < 20 { 0 } else { 4096 * (1 + k % 2) }),
            column("subtracted_ns", |_| 30),
        ];
        let measured = overheads(&record(ProbeKind::Overheads), &samples, &columns).unwrap();
        assert_eq!(measured.terms.iter().map(|term| term.figures.n).collect::<Vec<_>>(), [20, 20, 20]);
        let given = accounting(&measured, Take::Max);
        assert_eq!((given.sched, given.release, given.tick), (Some(102), None, None));
        let sizes: Vec<_> = given.crpd.iter().map(|one| (one.bytes, one.ns)).collect();
        assert_eq!(sizes, [(4096, Some(102)), (8192, Some(102))]);
        assert_eq!(accounting(&measured, Take::P99).sched, None, "twenty samples have no 99th percentile");
        assert_eq!(accounting(&measured, Take::Median).sched, Some(101));
    }
}
