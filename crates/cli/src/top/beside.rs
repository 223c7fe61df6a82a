//! The view beside a measurement (`--live`), on a thread of its own: whoever stores the samples
//! posts what they say, and never waits for the terminal.
//!
//! Latencies are those of the probes, exact and from the intended release. With a trace, the table
//! and the worst wake-ups are those of [`super::engine`]: from the release until the kernel
//! switches to the probe. Without one, the kernel's counters say what has happened how often.

use super::counters::Counters;
use super::engine::{Engine, Feed};
use super::shot::{Facts, Seen};
use super::view::{Source, View};
use attribution::live::view::Latency;
use attribution::live::{Follow, Followed};
use machine::Root;
use measure::handle::ProbeDrain;
use measure::spec::Task;
use measure::window::Progress;
use model::Cpus;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use sys::clock::{self, ClockId, SECOND_NS};
use sys::signals::EndSignals;

/// What is measured is posted so often, ns.
const POST_NS: i64 = 200_000_000;

/// What the probes say.
#[derive(Debug, Clone, Default)]
struct Figures {
    elapsed_ns: i64,
    duration_ns: i64,
    /// Releases that passed unserved; `None` of loops, which have none.
    missed: Option<u64>,
    probes: Vec<OfProbe>,
}

/// What one probe says.
#[derive(Debug, Clone)]
struct OfProbe {
    followed: Followed,
    latency: Latency,
    maxima_ns: Vec<u64>,
}

impl OfProbe {
    /// `None` for a probe that the scheduler may move.
    fn of(drain: &ProbeDrain, start_ns: i64, now_ns: i64) -> Option<Self> {
        let spec = drain.spec();
        if spec.cpus.len() > 1 {
            return None;
        }
        let (follow, what) = match &spec.task {
            Task::Noise(_) => (Follow::Loop, "gap"),
            // Those of SCHED_DEADLINE are the kernel's.
            Task::Wakeup(wakeup)
                if wakeup.clock == ClockId::Monotonic && spec.policy.reservation.is_none() =>
            {
                let first_ns = start_ns + wakeup.offset_ns;
                (Follow::Releases { first_ns, period_ns: wakeup.period_ns }, "wake-up")
            }
            _ => (Follow::Requests, "wake-up"),
        };
        let live = drain.live();
        let tid = i32::try_from(drain.pid()).ok()?;
        let latency = Latency {
            tid,
            comm: what.to_owned(),
            n: live.count,
            last_ns: live.last_ns.map(|ns| ns.max(0).unsigned_abs()),
            p999_ns: live.quantile_ns(0.999).unwrap_or(0),
            max_ns: live.max_ns.unwrap_or(0).max(0).unsigned_abs(),
        };
        let maxima_ns = live.maxima_ns(now_ns).into_iter().map(|ns| ns.max(0).unsigned_abs()).collect();
        Some(Self { followed: Followed { cpu: spec.cpu(), tid, follow }, latency, maxima_ns })
    }
}

#[derive(Default)]
struct Shared {
    figures: Mutex<Figures>,
    /// The measurement is over.
    over: AtomicBool,
    /// The user has left the view.
    left: AtomicBool,
}

/// Who causes what happens on the CPUs.
pub(crate) enum Sources {
    /// Is in these events.
    Of(Box<Feed>),
    /// Is not shown, and why.
    No(&'static str),
}

/// The view, on its thread.
pub(crate) struct Pane {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<anyhow::Result<()>>>,
    posted_ns: i64,
}

impl Pane {
    /// Takes the terminal over.
    pub(crate) fn begin(
        cpus: &Cpus,
        facts: Facts,
        dir: Option<PathBuf>,
        sources: Sources,
        signals: &EndSignals,
    ) -> anyhow::Result<Self> {
        let shared = Arc::new(Shared::default());
        let (of_view, signals) = (Arc::clone(&shared), signals.try_clone()?);
        let mut view = View::new(cpus, facts, dir)?;
        let counters = Counters::new(Root::live(), cpus, clock::now_ns());
        let (feed, without) = match sources {
            Sources::Of(feed) => (Some(feed), ""),
            Sources::No(why) => (None, why),
        };
        let (cpus, of_probes) = (cpus.clone(), Arc::clone(&shared));
        let mut probes = Probes { shared: of_probes, cpus, feed, engine: None, counters, without };
        let thread = Builder::new().name("live".to_owned()).spawn(move || {
            let over = || of_view.over.load(Ordering::Acquire);
            view.show(&mut probes, &over, &signals)?;
            of_view.left.store(true, Ordering::Release);
            Ok(())
        })?;
        Ok(Self { shared, thread: Some(thread), posted_ns: i64::MIN })
    }

    /// Posts what is measured.
    pub(crate) fn post(&mut self, progress: Progress<'_>) -> &Self {
        let now_ns = clock::now_ns();
        if now_ns < self.posted_ns.saturating_add(POST_NS) {
            return self;
        }
        self.posted_ns = now_ns;
        let Progress { start_ns, elapsed_ns, duration_ns, probes } = progress;
        let sleeps = probes.iter().any(|probe| !matches!(probe.spec().task, Task::Noise(_)));
        let missed = sleeps.then(|| probes.iter().map(|probe| probe.live().missed).sum());
        let probes = probes.iter().filter_map(|probe| OfProbe::of(probe, start_ns, now_ns)).collect();
        let figures = Figures { elapsed_ns, duration_ns, missed, probes };
        *self.shared.figures.lock().unwrap_or_else(PoisonError::into_inner) = figures;
        self
    }

    /// Whether the user has left.
    pub(crate) fn left(&self) -> bool {
        self.shared.left.load(Ordering::Acquire)
    }

    /// Gives the terminal back; why the view ended, where something went wrong.
    pub(crate) fn end(mut self) -> anyhow::Result<()> {
        self.join()
    }

    fn join(&mut self) -> anyhow::Result<()> {
        self.shared.over.store(true, Ordering::Release);
        let Some(thread) = self.thread.take() else { return Ok(()) };
        thread.join().unwrap_or_else(|_| Err(anyhow::anyhow!("its thread panicked")))
    }
}

impl Drop for Pane {
    /// Whatever goes wrong meanwhile: the terminal is given back.
    fn drop(&mut self) {
        let _ = self.join();
    }
}

/// What the probes and the events of their CPUs say.
struct Probes {
    shared: Arc<Shared>,
    cpus: Cpus,
    /// Until the probes are known.
    feed: Option<Box<Feed>>,
    engine: Option<Engine>,
    counters: Counters,
    /// Why there are no sources; empty where there are.
    without: &'static str,
}

impl Probes {
    fn figures(&self) -> Figures {
        self.shared.figures.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Source for Probes {
    fn feed(&mut self) -> anyhow::Result<()> {
        if self.engine.is_none() && self.feed.is_some() {
            let followed: Vec<_> = self.figures().probes.iter().map(|probe| probe.followed).collect();
            let feed = self.feed.take_if(|_| !followed.is_empty());
            let cpus: Vec<u32> = self.cpus.iter().collect();
            self.engine = feed.map(|feed| Engine::begin(*feed, &cpus, followed));
        }
        self.engine.iter_mut().try_for_each(Engine::feed)
    }

    fn second(&mut self) -> anyhow::Result<Seen> {
        let figures = self.figures();
        let counted = self.counters.second(clock::now_ns());
        let (mut view, lost) = match &mut self.engine {
            Some(engine) => (engine.second()?, Some(engine.lost())),
            None => (counted, None),
        };
        for cpu in &mut view.cpus {
            let own = figures.probes.iter().filter(|probe| probe.followed.cpu == cpu.cpu);
            if let Some(OfProbe { latency, maxima_ns, .. }) = own.max_by_key(|probe| probe.latency.max_ns) {
                (cpu.latency, cpu.maxima_ns) = (Some(latency.clone()), maxima_ns.clone());
            }
        }
        let seconds = |ns: i64| ns.max(0) / SECOND_NS;
        let (at, of) = (seconds(figures.elapsed_ns), seconds(figures.duration_ns));
        let mut note = format!("{at} s of {of} s");
        if let Some(missed) = figures.missed {
            note = format!("{note}; missed releases {missed}");
        }
        if !self.without.is_empty() {
            note = format!("{note}; {}", self.without);
        }
        Ok(Seen { view, lost, note: Some(note) })
    }

    /// The probes' own maxima are the measurement's, and stay.
    fn reset(&mut self) {
        self.engine.iter_mut().for_each(Engine::reset);
    }

    /// The probes are followed.
    fn follow(&mut self, _comm: &str) {}
}
