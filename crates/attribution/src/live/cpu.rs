//! One CPU, and the thread that is followed there.

use super::recent::Longest;
use super::view::{CpuView, Latency, Running};
use super::{Follow, Followed, NO_PAUSE, NOBODY};
use crate::attribute::paths::Paths;
use crate::attribute::spread::Spread;
use crate::decode::Decoder;
use crate::prio::Prio;
use crate::view::Task;

/// One CPU while events stream by.
pub(super) struct Cpu {
    pub(super) number: u32,
    pub(super) tid: i32,
    pub(super) follow: Follow,
    pub(super) running: Option<(Task, i64)>,
    /// When the followed thread was asked to run, and has not run since.
    pub(super) awaited_ns: Option<i64>,
    pub(super) asleep: bool,
    /// Its next release, while it sleeps.
    pub(super) release_ns: Option<i64>,
    /// The last pause of a loop, ns; one that goes on has no end.
    pub(super) pause_ns: [i64; 2],
    pub(super) last_ns: Option<i64>,
    pub(super) latencies: Spread,
    pub(super) wakeups: u64,
    pub(super) max_ns: u64,
    /// Longest event or latency of each second.
    pub(super) maxima: Longest,
}

impl Cpu {
    /// A CPU where nothing has been seen yet, and the thread that is followed there.
    pub(super) fn new(number: u32, followed: Option<&Followed>) -> Self {
        Self {
            number,
            tid: followed.map_or(NOBODY, |one| one.tid),
            follow: followed.map_or(Follow::Requests, |one| one.follow),
            running: None,
            awaited_ns: None,
            asleep: false,
            release_ns: None,
            pause_ns: NO_PAUSE,
            last_ns: None,
            latencies: Spread::default(),
            wakeups: 0,
            max_ns: 0,
            maxima: Longest::default(),
        }
    }

    /// Whether wake-ups of a thread are looked at.
    pub(super) fn sleeps(&self) -> bool {
        self.tid != NOBODY && self.follow != Follow::Loop
    }

    /// Whether its loop paused then.
    pub(super) fn pauses_at(&self, t_ns: i64) -> bool {
        self.follow == Follow::Loop && (self.pause_ns[0]..self.pause_ns[1]).contains(&t_ns)
    }

    /// Its thread is to run from then on. Call it before the event that shows so.
    pub(super) fn await_from(&mut self, release_ns: i64, paths: &mut Paths) {
        if paths.released(self.tid, release_ns) {
            self.awaited_ns = Some(release_ns);
        } else {
            paths.ran(self.tid, None);
        }
    }

    /// What its thread did last is not known any more.
    pub(super) fn forget(&mut self, paths: &mut Paths) {
        if self.awaited_ns.take().is_some() {
            paths.ran(self.tid, None);
        }
        (self.asleep, self.release_ns) = (false, None);
    }

    pub(super) fn latency(&mut self, ns: i64) {
        let ns = ns.max(0);
        self.last_ns = Some(ns);
        self.wakeups += 1;
        self.latencies.add(ns.unsigned_abs());
        self.max_ns = self.max_ns.max(ns.unsigned_abs());
        self.maxima.add(ns.unsigned_abs());
    }

    /// How it stands.
    pub(super) fn view(&self, decoder: &Decoder) -> CpuView {
        let running = self.running.map(|(task, since_ns)| Running {
            pid: task.pid,
            comm: decoder.labels().text(task.comm).to_owned(),
            policy: policy(task.prio),
            since_ns,
        });
        let latency = self.sleeps().then(|| {
            let histogram = self.latencies.histogram();
            Latency {
                tid: self.tid,
                comm: decoder.comm(self.tid).unwrap_or_default().to_owned(),
                n: self.wakeups,
                last_ns: self.last_ns.map(i64::unsigned_abs),
                // The histogram knows a range, the maximum is exact.
                p999_ns: histogram.value_at_quantile(0.999).min(self.max_ns),
                max_ns: self.max_ns,
            }
        });
        CpuView { cpu: self.number, running, latency, maxima_ns: self.maxima.each() }
    }
}

/// `F80`, `N0`, `D`; empty where it is not known. FIFO and RR are not distinguished.
fn policy(prio: Prio) -> String {
    match prio.number() {
        None => String::new(),
        Some(-2) => "stop".to_owned(),
        Some(-1) => "D".to_owned(),
        Some(number) => match prio.realtime() {
            Some(priority) => format!("F{priority}"),
            None => format!("N{}", number - 120),
        },
    }
}
