//! A load → a file of rt-app. Its times are whole microseconds, its jobs are all alike, and it
//! draws nothing: what is lost is said.

use super::US;
use model::load::{Jobs, Load, LoadThread, Phase, Releases, Share, Step};
use serde_json::json;
use std::fmt::Write;

/// The text of the file, and what of the load is not in it, one sentence each. `duration_ns` rounds
/// up to seconds.
pub fn write(load: &Load, duration_ns: u64) -> (String, Vec<String>) {
    let mut notes = Vec::new();
    let names = names(load);
    let mut tasks: Vec<(String, String)> = Vec::new();
    for (at, thread) in load.threads.iter().enumerate() {
        let mut task = Task { load, names: &names, at, notes: &mut notes, keys: Vec::new(), sequels: 0 };
        if task.write(thread) {
            let keys = std::mem::take(&mut task.keys);
            tasks.push((names[at].clone(), object(&keys, 2)));
        }
    }
    let global = [
        ("duration".to_owned(), json!(duration_ns.div_ceil(1_000_000 * US)).to_string()),
        ("calibration".to_owned(), json!("CPU0").to_string()),
        ("default_policy".to_owned(), json!("SCHED_OTHER").to_string()),
        ("pi_enabled".to_owned(), "false".to_owned()),
        ("lock_pages".to_owned(), "true".to_owned()),
        ("log_size".to_owned(), json!("disable").to_string()),
    ];
    let root = [("global".to_owned(), object(&global, 1)), ("tasks".to_owned(), object(&tasks, 1))];
    notes.dedup();
    (object(&root, 0) + "\n", notes)
}

/// Keys and texts of values as an object, so deep in others.
fn object(keys: &[(String, String)], depth: usize) -> String {
    let mut text = "{\n".to_owned();
    for (at, (key, value)) in keys.iter().enumerate() {
        let comma = if at + 1 < keys.len() { "," } else { "" };
        let _ = writeln!(text, "{}{}: {value}{comma}", "\t".repeat(depth + 1), json!(key));
    }
    text + &"\t".repeat(depth) + "}"
}

/// A name for each thread, no two alike.
fn names(load: &Load) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for thread in &load.threads {
        let mut name = thread.name.clone();
        let mut number = 2;
        while names.contains(&name) {
            name = format!("{}-{number}", thread.name);
            number += 1;
        }
        names.push(name);
    }
    names
}

struct Task<'a> {
    load: &'a Load,
    names: &'a [String],
    at: usize,
    notes: &'a mut Vec<String>,
    keys: Vec<(String, String)>,
    /// Events so far: their keys end in a number, so that no two are alike.
    sequels: usize,
}

impl Task<'_> {
    fn note(&mut self, what: &str) {
        self.notes.push(format!("{}: {what}", self.names[self.at]));
    }

    fn key(&mut self, key: &str, value: impl serde::Serialize) {
        self.keys.push((key.to_owned(), json!(value).to_string()));
    }

    fn event(&mut self, event: &str, value: impl serde::Serialize) {
        let key = format!("{event}{}", self.sequels);
        self.sequels += 1;
        self.key(&key, value);
    }

    /// A time in microseconds; costs and sleeps round up, so that no load gets lighter.
    fn micros(&mut self, ns: u64) -> u64 {
        if !ns.is_multiple_of(US) {
            self.note("its times are rounded up to microseconds");
        }
        ns.div_ceil(US)
    }

    /// A period: a shorter one is the heavier.
    fn period(&mut self, ns: u64) -> u64 {
        if !ns.is_multiple_of(US) {
            self.note("its period is rounded down to microseconds");
        }
        (ns / US).max(1)
    }

    /// False where the thread is left out.
    fn write(&mut self, thread: &LoadThread) -> bool {
        let [Phase { rounds: 1, steps }] = thread.phases.as_slice() else {
            self.note("left out: only threads of one phase are written");
            return false;
        };
        for step in steps {
            if let Step::Release(Releases::Apart { least_ns, mean_ns, .. }) = step
                && least_ns.first().is_none_or(|least_ns| least_ns.saturating_mul(2) < *mean_ns)
            {
                self.note("left out: its releases come in bursts, for which rt-app has no event");
                return false;
            }
        }
        let policy = &thread.policy;
        self.key("policy", &policy.name);
        if policy.priority > 0 {
            self.key("priority", policy.priority);
        }
        if let Some(reservation) = policy.reservation {
            self.key("dl-runtime", reservation.runtime_ns / US);
            self.key("dl-deadline", reservation.deadline_ns / US);
            self.key("dl-period", reservation.period_ns / US);
        }
        if let Some(cpus) = &thread.cpus {
            self.key("cpus", cpus.iter().collect::<Vec<u32>>());
        }
        let delay_ns = thread.cycle().map_or(thread.delay_ns, |cycle| cycle.offset_ns);
        if delay_ns > 0 {
            let delay = self.micros(delay_ns);
            self.key("delay", delay);
        }
        if let Some(rounds) = thread.rounds {
            self.key("loop", rounds.min(i32::MAX as u64));
        }
        // A timer of rt-app first expires a period after the thread has begun: it comes last.
        let (timers, others): (Vec<&Step>, Vec<&Step>) =
            steps.iter().partition(|step| matches!(step, Step::Release(_)));
        others.into_iter().chain(timers).for_each(|step| self.step(step));
        true
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Release(releases) => self.release(releases),
            Step::Timer { timer, period_ns, absolute } => self.timer(*timer, *period_ns, *absolute),
            Step::Wait { channel } => {
                let name = self.names[self.at].clone();
                if self.senders(*channel) == 0 {
                    self.note("nobody resumes it");
                }
                self.event("suspend", name);
            }
            Step::Send { channel, share } => self.send(*channel, *share),
            Step::Job(jobs) => self.job(jobs),
            Step::Execute(ns) => {
                let us = self.micros(*ns);
                self.event("run", us);
            }
            Step::Spin(ns) => {
                let us = self.micros(*ns);
                self.event("runtime", us);
            }
            Step::Sleep(ns) => {
                let us = self.micros(*ns);
                self.event("sleep", us);
            }
            Step::Lock(lock) => self.event("lock", &self.load.locks[*lock]),
            Step::Unlock(lock) => self.event("unlock", &self.load.locks[*lock]),
            Step::Barrier(barrier) => self.event("barrier", &self.load.barriers[*barrier].0),
            Step::Yield => self.event("yield", ""),
        }
    }

    fn senders(&self, channel: usize) -> usize {
        let steps = self.load.threads.iter().flat_map(|thread| &thread.phases).flat_map(|phase| &phase.steps);
        steps.filter(|step| matches!(step, Step::Send { channel: to, .. } if *to == channel)).count()
    }

    fn send(&mut self, channel: usize, share: Share) {
        let waits = |thread: &LoadThread| {
            let mut steps = thread.phases.iter().flat_map(|phase| &phase.steps);
            steps.any(|step| matches!(step, Step::Wait { channel: from } if *from == channel))
        };
        if share != Share::EACH {
            self.note("it resumes others in each of its jobs, not in some only");
        }
        let (load, names) = (self.load, self.names);
        for (_, name) in load.threads.iter().zip(names).filter(|(thread, _)| waits(thread)) {
            self.event("resume", name);
        }
    }

    fn release(&mut self, releases: &Releases) {
        match releases {
            Releases::Periodic { period_ns, jitter_ns, left_out, .. } => {
                if *jitter_ns > 0 {
                    self.note("its release jitter is left out: rt-app has none");
                }
                if left_out.n > 0 {
                    self.note("no release is left out, as some are in the model");
                }
                self.timer(0, *period_ns, true);
            }
            Releases::Apart { least_ns, mean_ns, .. } => {
                self.note("it is released as often as its releases were apart at least");
                self.timer(0, least_ns.first().copied().unwrap_or(*mean_ns), false);
            }
        }
    }

    fn timer(&mut self, timer: usize, period_ns: u64, absolute: bool) {
        let period = self.period(period_ns);
        let mode = if absolute { "absolute" } else { "relative" };
        self.event("timer", json!({ "ref": format!("unique{timer}"), "period": period, "mode": mode }));
    }

    fn job(&mut self, jobs: &Jobs) {
        let most_ns = jobs.most_ns.first().copied().unwrap_or(0);
        if jobs.total_ns / jobs.n.max(1) < most_ns {
            self.note("each job executes as long as the longest did");
        }
        let sleeps = if jobs.sleeps.jobs > 0 { jobs.sleeps.most.max(1) } else { 0 };
        if sleeps > 0 && jobs.sleeps.total_ns < jobs.sleeps.longest_ns.saturating_mul(jobs.n) {
            self.note("each job sleeps as long as the longest did");
        }
        let mut cost = self.micros(most_ns);
        let mut asleep = self.micros(jobs.sleeps.longest_ns);
        for piece in (0..=sleeps).rev() {
            let part = cost / (piece + 1);
            cost -= part;
            self.event("run", part);
            if let Some(part) = asleep.checked_div(piece) {
                asleep -= part;
                self.event("sleep", part);
            }
        }
    }
}
