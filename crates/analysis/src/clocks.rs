//! Rates from clock readings: each clock against CLOCK_MONOTONIC, and the predicted rate of the
//! scheduler's clock.
//!
//! The rates are those of [`crate::drift`], which also has the kernel's arithmetic. A prediction
//! needs the CPU's counter as clock source, since only then both clocks are made of it
//! (`docs/measure-clocks.md`).

use crate::drift::{self, Drift, Frequency};
use crate::ipi::Columns;
use attribution::Error;
use model::Sample;
use model::clocks::{ClocksRecord, Pair, SCHEDULER};
use model::run::ProbeRecord;
use model::sample::OwnColumn;
use serde::{Deserialize, Serialize};
use stats::slots::{Slot, slots};

/// The counters of a CPU, which count ticks; the other clocks count ns.
const COUNTERS: [&str; 2] = ["tsc", "cntvct"];

/// The results of a clock run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Clocks {
    /// From the first reading to the last, ns.
    pub span_ns: i64,
    /// One entry a clock that counts ns.
    pub rates: Vec<Rate>,
    /// The CPU's counter, where it was read.
    pub counter: Option<CounterRate>,
    /// The scheduler's clock.
    pub scheduler: Scheduler,
    /// What could not be determined, one sentence each.
    pub limits: Vec<String>,
}

/// A clock against CLOCK_MONOTONIC.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    /// Its name.
    pub clock: String,
    /// Its rate; none with fewer than three pairs.
    pub drift: Option<Drift>,
    /// How far it has gained on CLOCK_MONOTONIC since the first reading, ns, for charts:
    /// `[t_ns, least, most]`.
    pub gained_ns: Vec<Slot>,
}

/// The CPU's counter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CounterRate {
    /// `tsc` or `cntvct`.
    pub name: String,
    /// Against CLOCK_MONOTONIC.
    pub hz: f64,
    /// Standard error of that.
    pub hz_error: f64,
    /// As the kernel knows it: reported by the CPU (arm64), or the nearest whole kHz (x86).
    pub kernel: Option<Frequency>,
}

/// The scheduler's clock.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Scheduler {
    /// Its rate, where it could be read.
    pub measured: Option<Drift>,
    /// What the rounding of the two clocks' fractions makes of it, without NTP, ppb.
    pub predicted_ppb: Option<f64>,
    /// NTP's part: CLOCK_MONOTONIC is corrected, the scheduler's clock is not, ppb.
    pub ntp_ppb: Option<f64>,
    /// Where the prediction has the scheduler's fraction from.
    pub predicted_from: Option<String>,
    /// ns per tick as mult / 2^shift, if the kernel reports it.
    pub mult: Option<u32>,
    /// See `mult`.
    pub shift: Option<u16>,
    /// Why it could not be read.
    pub unread: Option<String>,
}

/// The pairs of every clock, in the order of their codes.
fn series(
    facts: &ClocksRecord,
    record: &ProbeRecord,
    samples: &[Sample],
    columns: &[OwnColumn],
) -> Result<Vec<(String, Vec<Pair>)>, Error> {
    let columns = Columns::new(columns, record, samples.len());
    let [clock, value, error] = [columns.get("clock")?, columns.get("value")?, columns.get("error_ns")?];
    let mut all: Vec<(String, Vec<Pair>)> =
        facts.names.iter().map(|name| (name.clone(), Vec::new())).collect();
    for (row, sample) in samples.iter().enumerate() {
        let known = usize::try_from(clock[row]).ok().and_then(|code| all.get_mut(code));
        let unknown = || {
            let expected = format!("one of the {} that run.json names", facts.names.len());
            model::Error::invalid(&record.file, format!("clock {}", clock[row]), expected)
        };
        let (_, pairs) = known.ok_or_else(unknown)?;
        pairs.push(Pair { mono_ns: sample.t_ns, value: value[row], error_ns: error[row] });
    }
    Ok(all)
}

/// From pairs to rates.
pub fn clocks(record: &ProbeRecord, samples: &[Sample], columns: &[OwnColumn]) -> Result<Clocks, Error> {
    let missing = || model::Error::invalid(&record.file, "a record without clocks", "what was read");
    let facts = record.clocks().ok_or_else(missing)?;
    let series = series(facts, record, samples, columns)?;
    let is_counter = |name: &str| COUNTERS.contains(&name);
    let times = || samples.iter().map(|sample| sample.t_ns);
    let rates: Vec<Rate> = series.iter().filter(|(name, _)| !is_counter(name)).map(rate).collect();
    let found = |name: &str| rates.iter().find(|rate| rate.clock == name)?.drift.as_ref();
    let counted = series.iter().find(|(name, _)| is_counter(name));
    let counter = counted.and_then(|(name, pairs)| counter(name, pairs, facts, found("CLOCK_MONOTONIC_RAW")));
    let scheduler = scheduler(facts, counter.as_ref(), found(SCHEDULER), found("CLOCK_MONOTONIC_RAW"));
    let limits = limits(facts, &scheduler);
    Ok(Clocks {
        span_ns: times().max().unwrap_or(0).saturating_sub(times().min().unwrap_or(0)),
        rates,
        counter,
        scheduler,
        limits,
    })
}

fn rate((name, pairs): &(String, Vec<Pair>)) -> Rate {
    let ahead = |pair: &Pair| pair.value.wrapping_sub(pair.mono_ns);
    let first = pairs.first().map_or(0, ahead);
    let gained: Vec<(i64, i64)> =
        pairs.iter().map(|pair| (pair.mono_ns, ahead(pair).wrapping_sub(first))).collect();
    Rate { clock: name.clone(), drift: drift::drift(pairs), gained_ns: slots(&gained) }
}

/// `raw`: RAW's rate. RAW runs by the fraction of time keeping itself, CLOCK_MONOTONIC by what NTP
/// makes of it.
fn counter(name: &str, pairs: &[Pair], facts: &ClocksRecord, raw: Option<&Drift>) -> Option<CounterRate> {
    let (hz, hz_error) = drift::frequency_hz(pairs)?;
    let raw_hz = hz / (1.0 + raw.map_or(0.0, |drift| drift.ppb) / 1e9);
    let whole_khz = (name == "tsc").then(|| Frequency::Khz((raw_hz / 1000.0).round() as u64));
    let kernel = facts.nominal_hz.map(Frequency::Hz).or(whole_khz);
    Some(CounterRate { name: name.to_owned(), hz, hz_error, kernel })
}

fn scheduler(
    facts: &ClocksRecord,
    counter: Option<&CounterRate>,
    measured: Option<&Drift>,
    raw: Option<&Drift>,
) -> Scheduler {
    let from_counter = facts.source.as_deref().is_some_and(|name| matches!(name, "tsc" | "arch_sys_counter"));
    let kernel = counter.and_then(|counter| counter.kernel).filter(|_| from_counter);
    // RAW is what MONOTONIC would be without NTP.
    let measured_ppb = measured.zip(raw).map(|(scheduler, raw)| scheduler.ppb - raw.ppb);
    let predicted = kernel.and_then(|frequency| predicted(facts, frequency, measured_ppb));
    let (predicted_ppb, predicted_from) = predicted.unzip();
    Scheduler {
        measured: measured.cloned(),
        predicted_ppb,
        ntp_ppb: facts.ntp.as_ref().map(|ntp| ntp.before.frequency_ppb),
        predicted_from,
        mult: facts.mult,
        shift: facts.shift,
        unread: facts.scheduler_unread.clone(),
    }
}

/// ppb, and where the scheduler's fraction is from.
fn predicted(facts: &ClocksRecord, frequency: Frequency, measured_ppb: Option<f64>) -> Option<(f64, String)> {
    let guest = facts.sources.iter().any(|name| name == "kvm-clock");
    match (facts.mult.zip(facts.shift), frequency) {
        (Some((mult, shift)), _) => {
            let fraction = drift::Fraction { mult: mult.into(), shift: shift.into() };
            let ppb = drift::predicted_ppb(fraction.ns_per_tick(), frequency);
            Some((ppb, "the kernel's own mult and shift".to_owned()))
        }
        // The hypervisor says how fast the counter is, in whole kHz; the guest's kernel calibrated
        // its own value.
        (None, Frequency::Khz(khz)) if guest => {
            let rate = 1.0 + measured_ppb? / 1e9;
            let host_khz = (1.0 / (drift::timekeeping(frequency).ns_per_tick() * rate) * 1e6).round();
            let ppb = drift::predicted_ppb(1e6 / host_khz, frequency);
            let from =
                format!("kvm-clock at {host_khz} kHz, the nearest to what was measured; the guest has {khz}");
            Some((ppb, from))
        }
        (None, _) => {
            let ppb = drift::predicted_ppb(drift::scheduler(frequency).ns_per_tick(), frequency);
            Some((ppb, "the counter's frequency, rounded as the kernel rounds it".to_owned()))
        }
    }
}

fn limits(facts: &ClocksRecord, scheduler: &Scheduler) -> Vec<String> {
    let unread = facts.scheduler_unread.as_ref();
    let unread = unread.map(|why| format!("the scheduler's clock could not be read by perf ({why})"));
    let source = facts.source.as_deref().unwrap_or("unknown");
    let unpredicted = scheduler
        .predicted_ppb
        .is_none()
        .then(|| format!("no prediction: the clock source is {source}, not the CPU's counter"));
    let apart = facts.core_offsets_unread.as_ref();
    let apart = apart.map(|why| format!("the counters of the CPUs could not be compared ({why})"));
    unread.into_iter().chain(unpredicted).chain(apart).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::record;
    use model::probe::{ClocksDetail, ProbeDetail};
    use model::sample::ProbeKind;

    fn facts() -> ClocksRecord {
        ClocksRecord {
            names: ["CLOCK_MONOTONIC_RAW", "tsc", SCHEDULER].map(str::to_owned).to_vec(),
            step_ns: 10_000_000,
            mult: None,
            shift: None,
            scheduler_unread: None,
            nominal_hz: None,
            source: Some("tsc".to_owned()),
            sources: vec!["tsc".to_owned()],
            ntp: None,
            costs: Vec::new(),
            core_offsets: Vec::new(),
            core_offsets_unread: None,
        }
    }

    /// Readings every 10 ms of RAW at the rate of MONOTONIC, a counter of 2 GHz, and a scheduler's
    /// clock 50 ppb fast.
    fn read(facts: ClocksRecord) -> Result<Clocks, Error> {
        let steps = || (0..500i64).map(|k| k * 10_000_000);
        let rows: Vec<[i64; 3]> = steps()
            .map(|t| [t, 0, t + 7])
            .chain(steps().map(|t| [t, 1, 2 * t]))
            .chain(steps().map(|t| [t, 2, t + 9 + t / 1_000_000 * 50 / 1000]))
            .collect();
        let samples: Vec<Sample> =
            rows.iter().map(|row| Sample { t_ns: row[0], ..Sample::default() }).collect();
        let column = |name: &str, of: fn(&[i64; 3]) -> i64| OwnColumn {
            name: name.to_owned(),
            values: rows.iter().map(of).collect(),
        };
        let columns =
            [column("clock", |row| row[1]), column("value", |row| row[2]), column("error_ns", |_| 20)];
        let detail = ProbeDetail::Clocks(ClocksDetail { clocks: Some(facts) });
        clocks(&ProbeRecord { detail, ..record(ProbeKind::Clocks) }, &samples, &columns)
    }

    #[test]
    fn rates_and_the_counters_frequency_come_out_of_the_file() {
        let clocks = read(facts()).unwrap();
        let names: Vec<_> = clocks.rates.iter().map(|rate| rate.clock.as_str()).collect();
        assert_eq!((names, clocks.span_ns), (vec!["CLOCK_MONOTONIC_RAW", SCHEDULER], 4_990_000_000));
        let scheduler = clocks.scheduler.measured.unwrap();
        assert!((scheduler.ppb - 50.0).abs() < 0.5, "{scheduler:?}");
        assert_eq!(clocks.counter.unwrap().kernel, Some(Frequency::Khz(2_000_000)));
        assert_eq!(clocks.rates[1].gained_ns.last().unwrap().most, 249);
        // 2 GHz are 0.5 ns a tick: both fractions are exact.
        assert!(clocks.scheduler.predicted_ppb.unwrap().abs() < 1e-9 && clocks.limits.is_empty());
    }

    #[test]
    fn without_the_counter_as_clock_source_nothing_is_predicted() {
        let clocks = read(ClocksRecord { source: Some("hpet".to_owned()), ..facts() }).unwrap();
        assert_eq!(clocks.scheduler.predicted_ppb, None);
        assert!(clocks.limits[0].contains("hpet"), "{:?}", clocks.limits);
    }

    #[test]
    fn a_clock_that_nobody_named_is_refused() {
        let names = vec!["CLOCK_MONOTONIC_RAW".to_owned()];
        assert!(read(ClocksRecord { names, ..facts() }).is_err());
    }
}
