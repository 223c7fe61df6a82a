//! What threads did when, in a stretch of the trace: executed, waited for the CPU, slept within a
//! job. What a Gantt chart draws.

use super::shape::ObservedJob;
use crate::attribute::watch::event::{Leaves, WatchEvent, What};
use crate::names::Names;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Pieces that are kept.
const MOST: usize = 6_000;

/// What a thread does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// It has a CPU.
    Executes,
    /// Woken, and not yet on a CPU.
    Dispatch,
    /// It had the CPU, and another has it.
    Preempted,
    /// It sleeps within a job.
    Suspended,
}

/// A thread did one thing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece {
    /// The thread; 0 for all that were not followed.
    pub tid: i32,
    /// The name of one that was not followed.
    pub comm: String,
    /// Where it executes, or left the CPU last; `None` before it had one.
    pub cpu: Option<u32>,
    /// What it did.
    pub state: State,
    /// From then, ns of the trace's clock.
    pub from_ns: i64,
    /// To then.
    pub to_ns: i64,
}

/// The stretch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stretch {
    /// From then, ns of the trace's clock.
    pub from_ns: i64,
    /// To then.
    pub to_ns: i64,
    /// What was done, in the order of the ends.
    pub pieces: Vec<Piece>,
    /// Pieces beyond the most that are kept.
    pub left_out: u64,
    /// The jobs that lie in it at least in part.
    pub jobs: Vec<ObservedJob>,
}

/// Something of a trace.
#[derive(Debug, Clone, Copy)]
pub(super) enum Seen<'a> {
    Event(&'a WatchEvent, &'a Names),
    /// Events are missing.
    Lost,
}

/// Since when a thread does what.
#[derive(Debug, Clone, Copy)]
struct Open {
    state: State,
    since_ns: i64,
    cpu: Option<u32>,
}

/// Collects the pieces while the trace streams by.
#[derive(Debug)]
pub(super) struct Observer {
    window_ns: [i64; 2],
    /// The followed threads, and what each does since when.
    threads: BTreeMap<i32, Option<Open>>,
    /// By CPU: since when one executes that is not followed, and its name.
    others: BTreeMap<u32, (i64, String)>,
    pieces: Vec<Piece>,
    left_out: u64,
}

impl Observer {
    pub(super) fn new(threads: impl Iterator<Item = i32>, window_ns: [i64; 2]) -> Self {
        Self {
            window_ns,
            threads: threads.map(|tid| (tid, None)).collect(),
            others: BTreeMap::new(),
            pieces: Vec::new(),
            left_out: 0,
        }
    }

    pub(super) fn take(&mut self, seen: Seen<'_>) {
        match seen {
            Seen::Event(event, names) => self.event(event, names),
            Seen::Lost => {
                self.threads.values_mut().for_each(|open| *open = None);
                self.others.clear();
            }
        }
    }

    fn event(&mut self, event: &WatchEvent, names: &Names) {
        let ts_ns = event.ts_ns;
        match event.what {
            What::Switch { prev, leaves, next, .. } => {
                if self.threads.contains_key(&prev.0) {
                    let then = match leaves {
                        Leaves::Runnable => Some(State::Preempted),
                        Leaves::Sleeps | Leaves::Blocks => Some(State::Suspended),
                        Leaves::Ended => None,
                    };
                    self.change(prev.0, ts_ns, Some(event.cpu), then);
                } else if let Some((since_ns, comm)) = self.others.remove(&event.cpu) {
                    let executes = Open { state: State::Executes, since_ns, cpu: Some(event.cpu) };
                    self.keep(0, comm, executes, ts_ns);
                }
                if self.threads.contains_key(&next.0) {
                    self.change(next.0, ts_ns, Some(event.cpu), Some(State::Executes));
                } else if next.0 != 0 && ts_ns <= self.window_ns[1] {
                    self.others.insert(event.cpu, (ts_ns, names.labels.text(next.1).to_owned()));
                }
            }
            What::Waking { task: (tid, _), .. } | What::Woken { pid: tid, new: true } => {
                let open = self.threads.get(&tid).copied().flatten();
                let executes = open.is_some_and(|open| open.state == State::Executes);
                if self.threads.contains_key(&tid) && !executes {
                    self.change(tid, ts_ns, open.and_then(|open| open.cpu), Some(State::Dispatch));
                }
            }
            _ => {}
        }
    }

    /// The thread does something else from then on; what it did was on a CPU if it executed.
    fn change(&mut self, tid: i32, ts_ns: i64, cpu: Option<u32>, then: Option<State>) {
        let open = then.map(|state| Open { state, since_ns: ts_ns, cpu });
        if let Some(Some(before)) = self.threads.insert(tid, open) {
            self.keep(tid, String::new(), before, ts_ns);
        }
    }

    fn keep(&mut self, tid: i32, comm: String, Open { state, since_ns, cpu }: Open, to_ns: i64) {
        let [first_ns, last_ns] = self.window_ns;
        let (from_ns, to_ns) = (since_ns.max(first_ns), to_ns.min(last_ns));
        if from_ns > to_ns || (from_ns == to_ns && state != State::Executes) {
            return;
        }
        if self.pieces.len() == MOST {
            self.left_out += 1;
            return;
        }
        self.pieces.push(Piece { tid, comm, cpu, state, from_ns, to_ns });
    }

    /// The stretch, with the jobs in it. A sleep between two jobs is none of them.
    pub(super) fn finish(mut self, jobs: Vec<ObservedJob>) -> Stretch {
        let [from_ns, to_ns] = self.window_ns;
        let open: Vec<(i32, Open)> =
            self.threads.iter().filter_map(|(tid, open)| Some((*tid, (*open)?))).collect();
        for (tid, open) in open {
            self.keep(tid, String::new(), open, to_ns);
        }
        let within = |piece: &Piece| {
            let of_it = |job: &&ObservedJob| job.tid == piece.tid;
            jobs.iter().filter(of_it).any(|job| job.woken_ns <= piece.from_ns && piece.to_ns <= job.ended_ns)
        };
        self.pieces.retain(|piece| piece.state != State::Suspended || within(piece));
        Stretch { from_ns, to_ns, pieces: self.pieces, left_out: self.left_out, jobs }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prio::Prio;

    const A: i32 = 10;
    const OTHER: i32 = 11;

    fn job(woken_ns: i64, ended_ns: i64) -> ObservedJob {
        ObservedJob {
            tid: A,
            release_ns: woken_ns,
            ended_ns,
            response_ns: ended_ns.abs_diff(woken_ns),
            executed_ns: 0,
            suspended_ns: 0,
            dispatch_ns: 0,
            kept: None,
            woken_ns,
            released_by: None,
        }
    }

    #[test]
    fn a_job_is_dispatched_preempted_suspended_and_what_lies_between_jobs_is_not_drawn() {
        let names = Names::default();
        let mut observer = Observer::new([A].into_iter(), [100, 900]);
        let mut see = |ts_ns, what| {
            let event = WatchEvent { ts_ns, cpu: 3, pid: 0, in_task: true, what };
            observer.take(Seen::Event(&event, &names));
        };
        let prios = [Prio::new(50), Prio::new(50)];
        let switch = |prev, leaves, next| What::Switch { prev: (prev, 0), leaves, next: (next, 0), prios };
        let waking = What::Waking { task: (A, 0), prio: prios[0] };
        for (ts_ns, what) in [
            (50, switch(A, Leaves::Sleeps, 0)),
            (200, waking),
            (210, switch(0, Leaves::Runnable, A)),
            (300, switch(A, Leaves::Runnable, OTHER)),
            (350, switch(OTHER, Leaves::Sleeps, A)),
            (400, switch(A, Leaves::Sleeps, 0)),
            (500, waking),
            (510, switch(0, Leaves::Runnable, A)),
            (600, switch(A, Leaves::Sleeps, 0)),
            (800, waking),
            (810, switch(0, Leaves::Runnable, A)),
            (1_000, switch(A, Leaves::Sleeps, 0)),
        ] {
            see(ts_ns, what);
        }
        let stretch = observer.finish(vec![job(200, 600), job(800, 1_000)]);
        let seen: Vec<_> =
            stretch.pieces.iter().map(|piece| (piece.tid, piece.state, piece.from_ns, piece.to_ns)).collect();
        assert_eq!(
            seen,
            [
                (A, State::Dispatch, 200, 210),
                (A, State::Executes, 210, 300),
                (0, State::Executes, 300, 350),
                (A, State::Preempted, 300, 350),
                (A, State::Executes, 350, 400),
                (A, State::Suspended, 400, 500),
                (A, State::Dispatch, 500, 510),
                (A, State::Executes, 510, 600),
                (A, State::Dispatch, 800, 810),
                (A, State::Executes, 810, 900),
            ]
        );
    }

    #[test]
    fn nothing_is_drawn_across_missing_events() {
        let names = Names::default();
        let mut observer = Observer::new([A].into_iter(), [0, 100]);
        let waking = What::Waking { task: (A, 0), prio: Prio::new(50) };
        let event = |ts_ns, what| WatchEvent { ts_ns, cpu: 0, pid: 0, in_task: true, what };
        observer.take(Seen::Event(&event(10, waking), &names));
        observer.take(Seen::Lost);
        assert_eq!(observer.finish(Vec::new()).pieces, []);
    }
}
