//! Wake-ups of many threads at once, while events stream by: until the switch to the thread, from
//! the request for it (`sched_waking`), or, where that came from a timer that the thread had armed
//! itself, from when that was to expire: interrupts that are off hold up both. And how long others
//! kept such a thread from running on.
//!
//! Only some CPUs are recorded in full, and a thread that is not bound to them may sleep and run on
//! others unseen. So a wake-up counts only if all of it was seen: the switch away in order to sleep
//! (who is woken while it still runs has not waited, though a switch to it may follow much later),
//! the request, its arrival at one of these CPUs (`sched_wakeup`), and the switch. A second request
//! means that the thread has run elsewhere meanwhile: the kernel writes one only for who sleeps
//! (try_to_wake_up, kernel/sched/core.c). What was not seen is not guessed, but counted as
//! unjudged.
//!
//! Some kernels do not write every switch. Then the first event that shows the thread running comes
//! at any time behind it, and the wake-up is unjudged, too.

use crate::labels::{LabelId, Labels};
use crate::view::{Context, KernelEvent, Task, What};
use model::EventClass;
use model::monitor::Buckets;
use rustc_hash::FxHashMap;

/// The most threads whose sleep is remembered. Those under a real-time policy are few; of others a
/// machine has thousands.
const MOST_THREADS: usize = 1 << 14;

/// A timer is not believed to be later than this, ns: its number is another clock's.
const LONGEST_LATE_NS: i64 = 10_000_000_000;

/// `task_struct.prio` of SCHED_DEADLINE (include/linux/sched/deadline.h, MAX_DL_PRIO - 1).
const DEADLINE: i16 = -1;

/// Whose wake-ups are measured.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Wanted {
    /// Threads with one of these names.
    pub names: Vec<String>,
    /// Threads with one of these numbers.
    pub tids: Vec<i32>,
    /// Threads under a real-time or deadline policy, whatever their name.
    pub real_time: bool,
}

/// A thread that ran later than it may.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LateThread {
    /// Whether it could run on and was kept from it; else it was woken.
    pub preempted: bool,
    /// The thread.
    pub tid: i32,
    /// Its name as it ran.
    pub comm: String,
    /// Where it ran.
    pub cpu: u32,
    /// When its timer was to expire or somebody asked for it, or when it was kept from running,
    /// CLOCK_MONOTONIC, ns.
    pub t_ns: i64,
    /// How much later it ran, ns.
    pub ns: u64,
}

/// Wake-ups of one name on one CPU since they were last taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Woken {
    /// The name.
    pub comm: String,
    /// The CPU.
    pub cpu: u32,
    /// How long each took.
    pub latency: Buckets,
}

/// What is known of a thread that does not run.
#[derive(Debug, Clone, Copy)]
enum State {
    Asleep,
    /// Since when it is to run; on which CPU is not known yet.
    Requested(i64),
    /// The same, on one of the CPUs that are recorded.
    Woken(i64),
    /// It could run on, and does not since then.
    Preempted(i64),
}

/// The table.
#[derive(Debug, Default)]
pub(super) struct Wakeups {
    wanted: Wanted,
    limit_ns: u64,
    cpus: Vec<u32>,
    threads: FxHashMap<i32, State>,
    /// The timers that threads have armed since they came, and when these are to expire, ns.
    armed: FxHashMap<i32, (u64, i64)>,
    /// The timer that expires on a CPU now.
    expiring: FxHashMap<u32, u64>,
    /// Who left a CPU last: the kernel's code of the switch still runs in its name.
    leaving: FxHashMap<u32, i32>,
    latencies: FxHashMap<(LabelId, u32), Buckets>,
    late: Vec<LateThread>,
    unjudged: u64,
}

impl Wakeups {
    /// On these CPUs, which are recorded in full; longer than `limit_ns` is late.
    pub(super) fn new(cpus: &[u32], wanted: Wanted, limit_ns: u64) -> Self {
        let mut new = Self { limit_ns, cpus: cpus.to_owned(), ..Self::default() };
        new.set_tids(wanted.tids.clone());
        new.wanted = Wanted { tids: std::mem::take(&mut new.wanted.tids), ..wanted };
        new
    }

    /// Threads that are watched by their numbers from here on.
    pub(super) fn set_tids(&mut self, tids: Vec<i32>) {
        self.wanted.tids = tids;
        self.wanted.tids.sort_unstable();
    }

    fn wants(&self, task: Task, labels: &Labels) -> bool {
        let Wanted { names, tids, real_time } = &self.wanted;
        let urgent = || task.prio.realtime().is_some() || task.prio.number() == Some(DEADLINE);
        let named = || names.iter().any(|name| name == labels.text(task.comm));
        (*real_time && urgent()) || tids.binary_search(&task.pid).is_ok() || (!names.is_empty() && named())
    }

    pub(super) fn event(&mut self, event: &KernelEvent, labels: &Labels) {
        if self.leaving.get(&event.cpu) != Some(&event.pid) {
            self.leaving.remove(&event.cpu);
            self.shows_running(event);
        }
        match event.what {
            What::Armed { timer, expires_ns } if event.in_task() => {
                self.armed.insert(event.pid, (timer, expires_ns));
            }
            What::Enter { class: EventClass::TimerHrtimer, context: Context::Preemptible, key, .. } => {
                self.expiring.insert(event.cpu, key);
            }
            What::Exit { .. } => drop(self.expiring.remove(&event.cpu)),
            What::Wake { pid, done: false, .. } => self.requested(event, pid),
            What::Wake { pid, target, done: true } => self.arrived(pid, target),
            What::Migrate { pid, from, .. } if !self.cpus.contains(&from) => self.was_away(pid),
            What::Switch { prev, runnable, next } => {
                self.left(event, prev, runnable, labels);
                self.runs(event, next, labels);
            }
            _ => {}
        }
    }

    /// A thread that was to come runs already: the switch to it is missing.
    fn shows_running(&mut self, event: &KernelEvent) {
        if self.threads.remove(&event.pid).is_some() {
            self.unjudged += 1;
        }
    }

    fn requested(&mut self, event: &KernelEvent, pid: i32) {
        let timer = self.armed.get(&pid).filter(|armed| self.expiring.get(&event.cpu) == Some(&armed.0));
        // Of timers of other clocks the number means something else, and is far away.
        let intended = timer.map(|(_, expires_ns)| *expires_ns);
        let now_ns = event.ts_ns;
        let since_ns = intended.filter(|at_ns| (now_ns - LONGEST_LATE_NS..now_ns).contains(at_ns));
        let t_ns = since_ns.unwrap_or(now_ns);
        match self.threads.get_mut(&pid) {
            Some(state @ State::Asleep) => *state = State::Requested(t_ns),
            Some(_) => self.was_away(pid),
            None => {}
        }
    }

    fn arrived(&mut self, pid: i32, target: u32) {
        let here = self.cpus.contains(&target);
        match self.threads.get_mut(&pid) {
            Some(state @ State::Requested(_)) if here => {
                if let State::Requested(t_ns) = *state {
                    *state = State::Woken(t_ns);
                }
            }
            Some(_) => self.was_away(pid),
            None => {}
        }
    }

    /// It has run, or is to run, where nothing shows when.
    fn was_away(&mut self, pid: i32) {
        let gone = self.threads.remove(&pid);
        if gone.is_some_and(|state| !matches!(state, State::Asleep)) {
            self.unjudged += 1;
        }
    }

    fn left(&mut self, event: &KernelEvent, prev: Task, runnable: bool, labels: &Labels) {
        self.leaving.insert(event.cpu, prev.pid);
        if prev.pid == 0 || !self.wants(prev, labels) {
            self.armed.remove(&prev.pid);
            return;
        }
        // Those that have ended sleep for ever.
        if self.threads.len() >= MOST_THREADS {
            self.forget();
        }
        let state = if runnable { State::Preempted(event.ts_ns) } else { State::Asleep };
        self.threads.insert(prev.pid, state);
    }

    fn runs(&mut self, event: &KernelEvent, next: Task, labels: &Labels) {
        if next.pid == 0 {
            return;
        }
        self.armed.remove(&next.pid);
        match self.threads.remove(&next.pid) {
            Some(State::Woken(t_ns)) => {
                let ns = since(t_ns, event);
                self.latencies.entry((next.comm, event.cpu)).or_default().add(ns);
                self.judge(event.cpu, next, labels, (t_ns, ns), false);
            }
            Some(State::Preempted(t_ns)) => {
                self.judge(event.cpu, next, labels, (t_ns, since(t_ns, event)), true);
            }
            // It ran, so it was woken, which was not recorded here.
            Some(State::Asleep | State::Requested(_)) => self.unjudged += 1,
            None => {}
        }
    }

    fn judge(&mut self, cpu: u32, next: Task, labels: &Labels, (t_ns, ns): (i64, u64), preempted: bool) {
        if ns > self.limit_ns {
            let comm = labels.text(next.comm).to_owned();
            self.late.push(LateThread { preempted, tid: next.pid, comm, cpu, t_ns, ns });
        }
    }

    /// Events are missing, or names get other numbers: of no thread is it known any more what it
    /// did last.
    pub(super) fn lost(&mut self) {
        self.forget();
    }

    fn forget(&mut self) {
        let waiting = self.threads.values().filter(|state| !matches!(state, State::Asleep)).count();
        self.unjudged += waiting as u64;
        self.threads.clear();
        self.armed.clear();
        self.expiring.clear();
    }

    /// The late ones since the last call.
    pub(super) fn take_late(&mut self) -> Vec<LateThread> {
        std::mem::take(&mut self.late)
    }

    /// All since the last call. Call it before names get other numbers.
    pub(super) fn take_latencies(&mut self, labels: &Labels) -> Vec<Woken> {
        let named = |((comm, cpu), latency)| Woken { comm: labels.text(comm).to_owned(), cpu, latency };
        self.latencies.drain().map(named).collect()
    }

    pub(super) fn unjudged(&self) -> u64 {
        self.unjudged
    }
}

fn since(t_ns: i64, event: &KernelEvent) -> u64 {
    (event.ts_ns - t_ns).max(0).unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prio::Prio;
    use crate::view::Level;

    struct Played {
        wakeups: Wakeups,
        labels: Labels,
    }

    impl Played {
        fn new(wanted: Wanted) -> Self {
            Self { wakeups: Wakeups::new(&[2, 3], wanted, 100), labels: Labels::default() }
        }

        fn event(&mut self, ts_ns: i64, what: What) {
            // In the name of who leaves, or of idle.
            let pid = if let What::Switch { prev, .. } = what { prev.pid } else { 0 };
            self.event_of(ts_ns, pid, what);
        }

        fn event_of(&mut self, ts_ns: i64, pid: i32, what: What) {
            let event = KernelEvent { ts_ns, cpu: 2, pid, what, ..KernelEvent::NOTHING };
            assert_eq!(event.level, Level::Task);
            self.wakeups.event(&event, &self.labels);
        }

        fn task(&mut self, pid: i32, prio: i16) -> Task {
            let comm = self.labels.id(&format!("t{pid}"));
            Task { pid, prio: Prio::new(prio.into()), comm, softirqd: false }
        }

        fn switch(&mut self, ts_ns: i64, [prev, next]: [(i32, i16); 2], runnable: bool) {
            let [prev, next] = [prev, next].map(|(pid, prio)| self.task(pid, prio));
            self.event(ts_ns, What::Switch { prev, runnable, next });
        }

        fn request(&mut self, ts_ns: i64, pid: i32) {
            self.event(ts_ns, What::Wake { pid, target: 2, done: false });
        }

        fn wake(&mut self, ts_ns: i64, pid: i32) {
            self.request(ts_ns, pid);
            self.event(ts_ns + 1, What::Wake { pid, target: 3, done: true });
        }

        fn late(&mut self) -> Vec<(i32, i64, u64)> {
            self.wakeups.take_late().iter().map(|late| (late.tid, late.t_ns, late.ns)).collect()
        }
    }

    const IDLE: (i32, i16) = (0, 120);
    const URGENT: (i32, i16) = (7, 9);
    const FAIR: (i32, i16) = (8, 120);
    const REAL_TIME: fn() -> Wanted = || Wanted { real_time: true, ..Wanted::default() };

    #[test]
    fn a_wakeup_lasts_from_the_request_to_the_switch() {
        let mut played = Played::new(REAL_TIME());
        played.switch(1_000, [URGENT, FAIR], false);
        played.wake(2_000, 7);
        played.switch(2_101, [FAIR, URGENT], true);
        assert_eq!(played.late(), [(7, 2_000, 101)]);
        played.switch(3_000, [URGENT, IDLE], false);
        played.wake(4_000, 7);
        played.switch(4_100, [IDLE, URGENT], true);
        assert!(played.late().is_empty());
        let all = played.wakeups.take_latencies(&played.labels);
        assert_eq!((all.len(), all[0].comm.as_str(), all[0].latency.count()), (1, "t7", 2));
        assert!(played.wakeups.take_latencies(&played.labels).is_empty());
    }

    #[test]
    fn who_was_woken_while_running_has_not_waited() {
        let mut played = Played::new(REAL_TIME());
        played.switch(1_000, [URGENT, IDLE], false);
        played.wake(1_500, 7);
        played.switch(1_510, [IDLE, URGENT], true);
        // Woken while it runs, then preempted.
        played.wake(2_000, 7);
        played.switch(3_000, [URGENT, (9, 4)], true);
        played.switch(9_000, [(9, 4), URGENT], false);
        let late = played.wakeups.take_late();
        assert_eq!((late.len(), late[0].preempted, late[0].t_ns, late[0].ns), (1, true, 3_000, 6_000));
        assert_eq!(played.wakeups.unjudged(), 0);
    }

    #[test]
    fn others_are_not_watched_but_by_name_or_number() {
        let plays = |wanted| {
            let mut played = Played::new(wanted);
            played.switch(1_000, [FAIR, IDLE], false);
            played.wake(2_000, 8);
            played.switch(3_000, [IDLE, FAIR], true);
            played.late().len()
        };
        assert_eq!(plays(REAL_TIME()), 0);
        assert_eq!(plays(Wanted { names: vec!["t8".to_owned()], ..Wanted::default() }), 1);
        assert_eq!(plays(Wanted { tids: vec![3, 8], ..Wanted::default() }), 1);
    }

    #[test]
    fn what_is_missing_is_not_judged() {
        let mut played = Played::new(REAL_TIME());
        played.switch(1_000, [URGENT, IDLE], false);
        played.wake(2_000, 7);
        played.wakeups.lost();
        played.switch(9_000, [IDLE, URGENT], true);
        played.switch(9_500, [URGENT, IDLE], false);
        played.switch(9_900, [IDLE, URGENT], true);
        assert!(played.late().is_empty());
        assert_eq!(played.wakeups.unjudged(), 2);
    }

    #[test]
    fn a_thread_that_was_elsewhere_meanwhile_is_not_judged() {
        let away: [fn(&mut Played); 4] = [
            // Woken for another CPU, where it runs, sleeps and is woken again.
            |played| played.request(2_000, 7),
            |played| {
                played.request(2_000, 7);
                played.event(2_001, What::Wake { pid: 7, target: 0, done: true });
            },
            // Pulled away before it ran, and asked for again.
            |played| {
                played.wake(2_000, 7);
                played.request(5_000, 7);
            },
            |played| {
                played.wake(2_000, 7);
                played.event(8_000, What::Migrate { pid: 7, from: 0, to: 2, label: 0 });
            },
        ];
        for (at, away) in away.into_iter().enumerate() {
            let mut played = Played::new(REAL_TIME());
            played.switch(1_000, [URGENT, IDLE], false);
            away(&mut played);
            played.switch(9_000, [IDLE, URGENT], true);
            assert!(played.late().is_empty(), "{at}");
            assert_eq!(played.wakeups.unjudged(), 1, "{at}");
        }
    }

    #[test]
    fn moves_between_recorded_cpus_are_seen() {
        let mut played = Played::new(REAL_TIME());
        played.switch(1_000, [URGENT, IDLE], false);
        played.request(2_000, 7);
        played.event(2_001, What::Migrate { pid: 7, from: 2, to: 3, label: 0 });
        played.event(2_002, What::Wake { pid: 7, target: 3, done: true });
        played.switch(2_300, [IDLE, URGENT], true);
        assert_eq!(played.late(), [(7, 2_000, 300)]);
    }

    #[test]
    fn who_runs_without_a_switch_is_not_judged() {
        // Whether the thread was seen first by a deed of its own, or as it left.
        for leaves in [false, true] {
            let mut played = Played::new(REAL_TIME());
            played.switch(1_000, [URGENT, IDLE], false);
            // The kernel's code of the switch.
            played.event_of(1_001, 7, What::Other);
            played.wake(2_000, 7);
            if leaves {
                played.switch(2_050, [URGENT, IDLE], false);
            } else {
                played.event_of(2_050, 7, What::Other);
            }
            assert!(played.late().is_empty() && played.wakeups.take_latencies(&played.labels).is_empty());
            assert_eq!(played.wakeups.unjudged(), 1, "{leaves}");
        }
    }

    #[test]
    fn a_timer_that_comes_late_is_part_of_the_wakeup() {
        let expiry = |key| What::Enter {
            class: EventClass::TimerHrtimer,
            context: Context::Preemptible,
            key,
            label: 0,
        };
        // The timer of the thread, another one, and one of another clock.
        for (armed_ns, expires, from_ns) in [(1_500, 5, 1_500), (1_500, 6, 2_000), (77 << 40, 5, 2_000)] {
            let mut played = Played::new(REAL_TIME());
            played.event_of(900, 7, What::Armed { timer: 5, expires_ns: armed_ns });
            played.switch(1_000, [URGENT, IDLE], false);
            played.event(1_999, expiry(expires));
            played.wake(2_000, 7);
            played.switch(2_400, [IDLE, URGENT], true);
            assert_eq!(played.late(), [(7, from_ns, (2_400 - from_ns) as u64)]);
            // The next sleep has no timer.
            played.switch(3_000, [URGENT, IDLE], false);
            played.event(3_999, expiry(5));
            played.wake(4_000, 7);
            played.switch(4_400, [IDLE, URGENT], true);
            assert_eq!(played.late(), [(7, 4_000, 400)]);
        }
    }
}
