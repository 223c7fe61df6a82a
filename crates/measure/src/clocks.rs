//! The clocks of a machine against one another: pairs read in brackets of CLOCK_MONOTONIC, from
//! which `analysis::drift` takes rates.
//!
//! A pair is only as good as its bracket is tight: monotonic, the other clock, monotonic again; of
//! several tries the tightest is kept, and half its width bounds the error of the pair. Also here:
//! what the kernel's time keeping says of itself (`adjtimex(2)`), and what reading each clock
//! costs.

use super::offset::{self, Table};
use model::clocks::{CoreOffset, Cost, NtpState, NtpStates, Pair, SCHEDULER, Series};
use model::sample::SampleMeta;
use model::samples_file::SampleWriter;
use model::{Cpus, Sample};
use std::io;
use std::path::Path;
use sys::clock::{self, ClockId};
use sys::counter::{self, Counter, batch_minimum_ns};
use sys::sched;
use sys::schedclock::{Conversion, SchedClock};

/// Brackets of which the tightest is kept.
const TRIES: u32 = 8;

/// What one clock is read by.
enum Reader {
    Os(ClockId),
    Raw,
    Counter,
    Scheduler(SchedClock),
}

impl Reader {
    fn now(&self) -> Option<i64> {
        match self {
            Self::Os(id) => Some(id.now_ns()),
            Self::Raw => Some(clock::raw_ns()),
            Self::Counter => Some(counter::read() as i64),
            Self::Scheduler(clock) => clock.now_ns().ok(),
        }
    }
}

/// Everything read about the clocks over a while.
#[derive(Debug)]
pub struct Reading {
    /// One series a clock, in the order of [`Reading::costs`] as far as a clock has both.
    pub series: Vec<Series>,
    /// How the scheduler's clock follows from the counter, where it does.
    pub conversion: Option<Conversion>,
    /// Why the scheduler's clock could not be read.
    pub scheduler_unread: Option<String>,
    /// What a read costs.
    pub costs: Vec<Cost>,
    /// Time keeping before and after.
    pub ntp: Option<NtpStates>,
}

/// Reads all clocks every `step_ns` for `duration_ns`, unless `go_on` says no.
pub fn read(duration_ns: i64, step_ns: i64, mut go_on: impl FnMut() -> bool) -> Reading {
    let ntp_before = ntp_state().ok();
    let scheduler = SchedClock::open();
    let conversion = scheduler.as_ref().ok().and_then(SchedClock::conversion);
    let counted = Counter::choose() == Counter::Cpu;
    let mut readers = vec![
        ("CLOCK_MONOTONIC_RAW", Reader::Raw),
        ("CLOCK_REALTIME", Reader::Os(ClockId::Realtime)),
        ("CLOCK_TAI", Reader::Os(ClockId::Tai)),
        ("CLOCK_BOOTTIME", Reader::Os(ClockId::Boottime)),
    ];
    if counted {
        readers.push((Counter::Cpu.name(), Reader::Counter));
    }
    let scheduler_unread = match scheduler {
        Ok(clock) => {
            readers.push((SCHEDULER, Reader::Scheduler(clock)));
            None
        }
        Err(error) => Some(error.to_string()),
    };
    let costs = costs(&readers, counted);
    let name = |(name, _): &(&str, Reader)| Series { clock: (*name).to_owned(), pairs: Vec::new() };
    let mut series: Vec<Series> = readers.iter().map(name).collect();
    let start = clock::now_ns();
    let mut next = start;
    while next <= start + duration_ns && go_on() {
        clock::sleep_until(next);
        for ((_, reader), series) in readers.iter().zip(&mut series) {
            series.pairs.extend(pair(reader));
        }
        next += step_ns;
    }
    let ntp = ntp_before.and_then(|before| Some(NtpStates { before, after: ntp_state().ok()? }));
    Reading { series, conversion, scheduler_unread, costs, ntp }
}

/// The columns of a samples file of clocks besides the common ones: which clock, by its place in
/// the run's list, what it said (ns, or ticks of a counter), and by how much the pair may be off.
pub const COLUMNS: [&str; 3] = ["clock", "value", "error_ns"];

/// Writes every pair: `t_ns` CLOCK_MONOTONIC, `value_ns` the clock minus that, or 0 for a counter,
/// which counts ticks. Gives the number of rows.
pub fn store(reading: &Reading, path: &Path, meta: &SampleMeta) -> Result<u64, model::Error> {
    let columns = COLUMNS.map(str::to_owned);
    let mut writer = SampleWriter::with_columns(path, &columns)?;
    let mut seq = 0;
    for (code, series) in reading.series.iter().enumerate() {
        let ticks = series.clock == Counter::Cpu.name();
        for pair in &series.pairs {
            let value_ns = if ticks { 0 } else { pair.value.wrapping_sub(pair.mono_ns) };
            let sample = Sample { t_ns: pair.mono_ns, value_ns, seq, ..Sample::default() };
            writer.push_with(sample, &[code as i64, pair.value, pair.error_ns])?;
            seq += 1;
        }
    }
    writer.finish(meta)
}

fn pair(reader: &Reader) -> Option<Pair> {
    let brackets = (0..TRIES).filter_map(|_| {
        let before = clock::now_ns();
        let value = reader.now()?;
        let width = clock::now_ns() - before;
        Some(Pair { mono_ns: before + width / 2, value, error_ns: width / 2 + 1 })
    });
    brackets.min_by_key(|pair| pair.error_ns)
}

fn costs(readers: &[(&str, Reader)], counted: bool) -> Vec<Cost> {
    let cost = |name: &str, ns| Cost { read: name.to_owned(), ns };
    let mut costs = vec![cost("CLOCK_MONOTONIC", Counter::Monotonic.read_cost_ns())];
    costs.extend(readers.iter().map(|(name, reader)| {
        let ns = match reader {
            Reader::Counter => Counter::Cpu.read_cost_ns(),
            _ => batch_minimum_ns(|| {
                std::hint::black_box(reader.now());
            }),
        };
        cost(name, ns)
    }));
    if !counted {
        costs.push(cost(Counter::Cpu.name(), Counter::Cpu.read_cost_ns()));
    }
    costs.extend(counter::ordered_read_cost_ns().map(|ns| cost("rdtscp", ns)));
    costs
}

/// What time keeping says of itself.
pub fn ntp_state() -> io::Result<NtpState> {
    const STA_UNSYNC: i32 = 0x40;
    const STA_NANO: i32 = 0x2000;
    let (state, time) = clock::adjtimex()?;
    let unit_ns = if time.status & STA_NANO == 0 { 1000 } else { 1 };
    Ok(NtpState {
        synchronised: time.status & STA_UNSYNC == 0 && state != libc::TIME_ERROR,
        status: time.status as u32,
        // ppm with 16 binary places.
        frequency_ppb: time.freq as f64 * 1000.0 / 65536.0,
        offset_ns: time.offset * unit_ns,
        tick_us: time.tick,
        tai_s: i64::from(time.tai),
        max_error_us: time.maxerror,
        est_error_us: time.esterror,
    })
}

/// How far the counters of other CPUs are ahead of the first one's that this process may use, each
/// with its bound. Takes two threads a pair, for a fraction of a millisecond. `ns_per_tick`: of the
/// CPU's counter.
pub fn core_offsets(ns_per_tick: f64) -> io::Result<Vec<CoreOffset>> {
    let cpus = sched::affinity()?;
    let Some(first) = cpus.iter().next() else { return Ok(Vec::new()) };
    let mut offsets = Vec::new();
    for cpu in cpus.iter().skip(1) {
        let table = Table::default();
        let rounds = std::thread::scope(|scope| {
            let follower = scope.spawn(|| {
                let pinned = sched::pin(&Cpus::one(cpu));
                // Without it the leader would wait for ever.
                offset::follow(&table, Counter::Cpu);
                pinned
            });
            let leader = scope.spawn(|| {
                let pinned = sched::pin(&Cpus::one(first));
                (pinned, offset::lead(&table, Counter::Cpu))
            });
            let (pinned, rounds) = leader.join().map_err(|_| io::Error::other("a thread died"))?;
            follower.join().map_err(|_| io::Error::other("a thread died"))??;
            pinned.map(|()| rounds)
        })?;
        let ns = |ticks: f64| ticks * ns_per_tick;
        offsets.extend(offset::offset(&rounds).map(|found| CoreOffset {
            from: first,
            to: cpu,
            ns: ns(found.ticks as f64),
            bound_ns: ns(found.bound as f64),
        }));
    }
    Ok(offsets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_clock_is_read_at_every_step() {
        let reading = read(20_000_000, 5_000_000, || true);
        assert!(reading.series.len() >= 4);
        for series in &reading.series {
            assert_eq!(series.pairs.len(), 5, "{}", series.clock);
            assert!(series.pairs.windows(2).all(|two| two[0].mono_ns < two[1].mono_ns));
            assert!(series.pairs.windows(2).all(|two| two[0].value < two[1].value), "{}", series.clock);
        }
        assert!(reading.costs.iter().all(|cost| cost.ns > 0.0));
        assert_eq!(
            reading.scheduler_unread.is_none(),
            reading.series.iter().any(|one| one.clock == SCHEDULER)
        );
    }
}
