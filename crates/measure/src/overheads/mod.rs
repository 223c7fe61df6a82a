//! The overheads probe: what the kernel's own work costs, each as a distribution, from user space.
//!
//! These are the terms that overhead-aware schedulability analysis adds to task parameters (B.
//! Brandenburg, "Scheduling and Locking in Multiprocessor Real-Time Operating Systems", UNC 2011,
//! ch. 3 and 4; in LITMUS-RT Feather-Trace measures them inside the kernel). One file a group of
//! terms. The observer's own cost is measured first, subtracted, and stored beside each sample.

mod cache;
mod gaps;
mod interrupt;
mod switch;

use super::batch::{self, Batch, BatchDrain, Finished};
use super::kind::{Drain, Loop, Place, Probe, Window};
use super::offset::stamp;
use super::ring::Ring;
use model::probe::ProbeKind;
use model::sample::{Policy, flag};
use serde::{Deserialize, Serialize};
use std::io;
use sys::clock;
use sys::counter::{self, Counter, Pair};

/// The columns of its samples, all i64: which term, the working set in bytes, and what was
/// subtracted from the raw value, ns.
pub const COLUMNS: [&str; 3] = ["term", "bytes", "subtracted_ns"];

/// What is measured. The order is that of the codes in samples files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Term {
    /// A timer interrupt that wakes nobody.
    Release,
    /// A call of the scheduler that continues the same thread.
    Sched,
    /// A wake-up of, and switch to, another thread on the same CPU.
    Switch,
    /// Gaps of a busy loop; the analysis decides which of them are ticks.
    Gap,
    /// From the order of an interprocessor interrupt until the loop on its target stands still.
    Ipi,
    /// Cache reloads after a preemption by something as large.
    Crpd,
    /// Moving to another CPU.
    Migrate,
    /// Cache reloads after moving to another CPU.
    Cpmd,
}

impl Term {
    /// All, in the order of their codes.
    pub const ALL: [Self; 8] = [
        Self::Release,
        Self::Sched,
        Self::Switch,
        Self::Gap,
        Self::Ipi,
        Self::Crpd,
        Self::Migrate,
        Self::Cpmd,
    ];

    /// The number in the column `term`.
    pub fn code(self) -> i64 {
        Self::ALL.iter().position(|one| *one == self).unwrap_or(0) as i64
    }
}

/// The overheads probe's own part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OverheadsSpec {
    /// Samples of each term.
    pub count: u32,
    /// Samples of each cache term and size.
    pub cache_count: u32,
    /// Working sets, bytes.
    pub bytes: Vec<u64>,
    /// Another CPU, for interprocessor interrupts and migration; none where there is no other.
    pub partner: Option<u32>,
    /// How long the loop looks for ticks, ns.
    pub gaps_ns: i64,
}

impl Probe for OverheadsSpec {
    fn stays(&self) -> bool {
        false
    }

    fn columns(&self) -> Vec<String> {
        COLUMNS.map(str::to_owned).to_vec()
    }

    fn prepare(&self, place: Place) -> io::Result<Box<dyn Loop>> {
        let (spec, detail) = (self.clone(), ProbeKind::Overheads.detail());
        Ok(Batch::boxed(detail, move |window: Window<'_>| run(&spec, &place, window)))
    }

    fn drain(&self, _policy: &Policy, _start_ns: i64) -> Box<dyn Drain> {
        Box::new(BatchDrain::default())
    }
}

/// Where the terms put their samples, and what they need to know.
struct Bench<'a> {
    ring: &'a mut Ring,
    order: &'a Place,
    spec: &'a OverheadsSpec,
    counter: Counter,
    begin: Pair,
    ns_per_tick: f64,
    finished: Finished,
    rested_ns: i64,
    /// Memory for the working set and for the intruder's: as large as the largest, touched.
    sets: [Vec<u64>; 2],
}

/// A term's name and its measurement.
type Named = (&'static str, fn(&mut Bench<'_>) -> io::Result<()>);

/// Measures every term, and stores its samples.
fn run(spec: &OverheadsSpec, order: &Place, window: Window<'_>) -> io::Result<Finished> {
    let Window { ring, start_ns, .. } = window;
    batch::wait_until(ring, start_ns);
    let counter = Counter::choose();
    let begin = counter::pair(counter);
    clock::sleep_until(begin.mono_ns + 20_000_000);
    let later = counter::pair(counter);
    let ns_per_tick =
        (later.mono_ns - begin.mono_ns) as f64 / later.ticks.wrapping_sub(begin.ticks).max(1) as f64;
    let largest = spec.bytes.iter().copied().max().unwrap_or(0);
    let sets = [cache::set_of(largest), cache::set_of(largest)];
    let mut bench = Bench {
        ring,
        order,
        spec,
        counter,
        begin,
        ns_per_tick,
        finished: Finished::default(),
        rested_ns: begin.mono_ns,
        sets,
    };
    let before = clock::thread_usage()?;
    let terms: [Named; 7] = [
        ("release", interrupt::release),
        ("sched", |bench| {
            switch::sched(bench);
            Ok(())
        }),
        ("switch", switch::switch),
        ("tick", |bench| {
            gaps::gaps(bench);
            Ok(())
        }),
        ("ipi", interrupt::ipi),
        ("crpd", |bench| {
            cache::crpd(bench);
            Ok(())
        }),
        ("migrate", cache::migrate),
    ];
    for (name, term) in terms {
        if bench.ring.stopped() {
            break;
        }
        // One term that this machine refuses leaves the others.
        if let Err(error) = term(&mut bench) {
            bench.finished.limits.push(format!("{name} was not measured: {error}"));
        }
    }
    bench.finished.used = clock::thread_usage()? - before;
    bench.finished.result.t1_ns = clock::now_ns();
    Ok(bench.finished)
}

impl Bench<'_> {
    /// ns of so many ticks.
    fn ns(&self, ticks: i64) -> i64 {
        (ticks as f64 * self.ns_per_tick).round() as i64
    }

    /// Ticks of so many ns.
    fn ticks(&self, ns: i64) -> u64 {
        (ns as f64 / self.ns_per_tick) as u64
    }

    /// Between two samples: sleeps for a tenth of the time, so that real-time throttling has no
    /// reason to step in.
    fn rest(&mut self) {
        const RUN_NS: i64 = 18_000_000;
        const REST_NS: i64 = 2_000_000;
        let now = clock::now_ns();
        if now - self.rested_ns > RUN_NS {
            clock::sleep_until(now + REST_NS);
            self.rested_ns = clock::now_ns();
        }
    }

    fn now(&self) -> u64 {
        stamp(self.counter)
    }

    /// Stores the samples of a term: when each began and how long it took, in ticks of this CPU;
    /// `own_ticks` is subtracted from each.
    fn store(&mut self, term: Term, bytes: u64, own_ticks: u64, samples: &[(u64, i64)]) {
        let own = [term.code(), bytes as i64, self.ns(own_ticks as i64)];
        for (number, &(at, took)) in samples.iter().enumerate() {
            let t_ns = self.begin.mono_ns + self.ns(at.wrapping_sub(self.begin.ticks) as i64);
            let value_ns = self.ns(took - own_ticks as i64);
            let flags = if number == 0 && term != Term::Gap { flag::WARM_UP } else { 0 };
            batch::push(self.ring, t_ns, value_ns, flags, 0, &own);
            self.finished.result.released += 1;
        }
    }

    /// The median cost of `what` with a stamp before and after, in ticks.
    fn median(&self, mut what: impl FnMut()) -> u64 {
        const TURNS: usize = 401;
        let mut turns: Vec<u64> = (0..TURNS)
            .map(|_| {
                let before = self.now();
                what();
                self.now().wrapping_sub(before)
            })
            .collect();
        turns.sort_unstable();
        turns[TURNS / 2]
    }

    /// The gap threshold of the busy loops here, and the median turn, in ticks: no ordinary turn is
    /// as long.
    fn turn(&self) -> (u64, u64) {
        const LEAST_NS: i64 = 500;
        let turn = self.median(|| {});
        (self.ticks(LEAST_NS).max(3 * turn), turn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_places_in_the_list() {
        assert_eq!(Term::ALL.map(Term::code), [0, 1, 2, 3, 4, 5, 6, 7]);
    }
}
