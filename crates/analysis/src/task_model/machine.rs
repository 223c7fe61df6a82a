//! What if the program ran on another machine, kernel or isolation: what the machine does is
//! replaced by what another recording measured of it, CPU by CPU.
//!
//! How late threads are dispatched, how late timers are, interrupts, and urgent threads that are
//! not of the program are the machine's. Execution times, suspensions, and how the program varies
//! its own releases stay as observed here. What the other recording does not show is refused:
//! nothing is taken to be zero.

use super::change::NoChange;
use super::choose::LEAST_JOBS;
use super::shape::{Interference, ReleaseKind, TaskModel, ThreadModel, competitor};
use super::system::Assumed;
use super::verdict::{Guarantee, guarantee};
use crate::words::{count, time};
use attribution::jobs::shape::{Dispatches, ProgramJobs, ThreadJobs};
use attribution::prio::Prio;
use model::Cpus;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Share of a thread's jobs, in percent, that another releases, from which on its releases follow
/// that one's completions.
const FOLLOWED: u64 = 90;
/// The interval for which demand is described best where nobody of the program is, ns.
const INTERVAL_NS: u64 = 10_000_000;

/// Which CPU of the other recording stands for which of ours; others by the same number.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CpuMap(BTreeMap<u32, u32>);

impl CpuMap {
    /// Reads `OURS:THEIRS,...`.
    pub fn parse(text: &str) -> Result<Self, NoChange> {
        let wrong =
            || NoChange::new(format!("cpus={text}: expected OURS:THEIRS, such as cpus=2:3 or cpus=2:3,4:5"));
        let mut map = BTreeMap::new();
        for pair in text.split(',') {
            let (ours, theirs) = pair.split_once(':').ok_or_else(wrong)?;
            let number =
                |text: &str| text.parse().ok().filter(|cpu| *cpu <= model::cpus::MAX_CPU).ok_or_else(wrong);
            if map.insert(number(ours)?, number(theirs)?).is_some() {
                return Err(NoChange::new(format!("cpus={text}: CPU {ours} has two places")));
            }
        }
        Ok(Self(map))
    }

    fn of(&self, ours: u32) -> u32 {
        self.0.get(&ours).copied().unwrap_or(ours)
    }

    /// Whether each CPU stands for itself.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for CpuMap {
    /// As [`CpuMap::parse`] reads it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pairs: Vec<String> = self.0.iter().map(|(ours, theirs)| format!("{ours}:{theirs}")).collect();
        f.write_str(&pairs.join(","))
    }
}

/// The other recording.
#[derive(Debug, Clone, Copy)]
pub struct Elsewhere<'a> {
    /// Its name, as the user typed it.
    pub name: &'a str,
    /// What is in it.
    pub jobs: &'a ProgramJobs,
    /// The CPUs that were recorded in full.
    pub recorded: &'a Cpus,
    /// Which of them stand for which of ours.
    pub cpus: &'a CpuMap,
}

/// What was measured of a CPU, here and there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Replaced {
    /// Our CPU.
    pub cpu: u32,
    /// The one that stands for it.
    pub theirs: u32,
    /// Dispatches here; `None` where no real-time thread was woken.
    pub now: Option<Dispatches>,
    /// The same there.
    pub then: Dispatches,
    /// What competes here without being of the program.
    pub competes_now: Vec<Interference>,
    /// The same there.
    pub competes_then: Vec<Interference>,
}

/// The program on the other machine.
#[derive(Debug, Clone, PartialEq)]
pub struct OnMachine {
    /// Its model there.
    pub model: TaskModel,
    /// CPU by CPU, what was replaced.
    pub replaced: Vec<Replaced>,
    /// What the answer rests on, a sentence each.
    pub assumed: Vec<String>,
}

/// The model of the program there. `further`: CPUs that threads are to be moved to.
pub fn on_machine(
    ours: &TaskModel,
    elsewhere: &Elsewhere<'_>,
    further: &Cpus,
    assumed: &Assumed,
) -> Result<OnMachine, NoChange> {
    let Elsewhere { name, jobs, .. } = *elsewhere;
    if jobs.holes > 0 {
        return Err(NoChange::new(format!(
            "{name}: events are missing in {} places, so what competes there is not known",
            jobs.holes
        )));
    }
    let tasks = || ours.threads.iter().filter(|thread| thread.is_task() && thread.of_program);
    let cpus: Cpus = tasks().flat_map(|thread| thread.cpus.iter()).chain(further.iter()).collect();
    let replaced: Vec<Replaced> =
        cpus.iter().map(|cpu| replaced(ours, elsewhere, cpu)).collect::<Result<_, _>>()?;
    let mut model = TaskModel {
        threads: ours.threads.iter().filter(|thread| thread.of_program).cloned().collect(),
        interference: own_interference(ours),
        dispatches: replaced.iter().map(|one| one.then.clone()).collect(),
        cpus,
        ..ours.clone()
    };
    model.interference.extend(replaced.iter().flat_map(|one| one.competes_then.clone()));
    model.interference.sort_by(|a, b| (a.cpu, a.prio, &a.what).cmp(&(b.cpu, b.prio, &b.what)));
    for thread in model.threads.iter_mut().filter(|thread| thread.is_task()) {
        let of = replaced.iter().find(|one| thread.cpus.contains(one.cpu));
        of.into_iter().for_each(|one| moved(thread, &one.then));
    }
    let grown = follow_the_chains(ours, &mut model, assumed);
    let assumed = assumptions(ours, elsewhere, &replaced, &grown);
    Ok(OnMachine { model, replaced, assumed })
}

/// Interference of the program itself: its urgent threads without a model.
fn own_interference(ours: &TaskModel) -> Vec<Interference> {
    let is_own = |one: &&Interference| {
        let of_it =
            |thread: &ThreadModel| thread.of_program && competitor(&thread.comm, thread.pid) == one.what;
        one.prio.is_some() && ours.threads.iter().any(of_it)
    };
    ours.interference.iter().filter(is_own).cloned().collect()
}

/// What was measured of the CPU that stands for one of ours, if that is enough.
fn replaced(ours: &TaskModel, elsewhere: &Elsewhere<'_>, cpu: u32) -> Result<Replaced, NoChange> {
    let Elsewhere { name, jobs, recorded, cpus } = *elsewhere;
    let theirs = cpus.of(cpu);
    let no = |what: String| Err(NoChange::new(format!("{name}: CPU {theirs}, for our CPU {cpu}: {what}")));
    if !recorded.contains(theirs) {
        let hint = format!("its CPUs are {recorded}: name the one that stands for it, as in cpus={cpu}:N");
        return no(format!("it was not recorded in full ({hint})"));
    }
    let here = || {
        let tasks = ours.threads.iter().filter(|thread| thread.is_task() && thread.of_program);
        tasks.filter(move |thread| thread.cpus.contains(cpu))
    };
    let longest = here().max_by_key(|thread| thread.release.period_ns);
    let longest_ns = longest.map_or(0, |thread| thread.release.period_ns);
    let recorded_ns = jobs.extent_ns[1].abs_diff(jobs.extent_ns[0]);
    if let Some(thread) = longest.filter(|_| recorded_ns < longest_ns.saturating_mul(LEAST_JOBS)) {
        return no(format!(
            "only {} were recorded, expected at least {LEAST_JOBS} periods of {}, which are {}",
            time(recorded_ns as f64),
            thread.comm,
            time(longest_ns.saturating_mul(LEAST_JOBS) as f64)
        ));
    }
    let record = "record it with a load of real-time threads there, such as `stillcore model replay`";
    let then = jobs.dispatches.iter().find(|one| one.cpu == theirs);
    let Some(then) = then.filter(|one| one.n >= LEAST_JOBS) else {
        let n = then.map_or(0, |one| one.n);
        return no(format!(
            "real-time threads were woken {n} times, expected at least {LEAST_JOBS} ({record})"
        ));
    };
    let timed = here().filter(|thread| thread.release.late_ns > 0);
    if timed.clone().next().is_some() && then.timers < LEAST_JOBS {
        let n = then.timers;
        return no(format!(
            "timers woke real-time threads {n} times, expected at least {LEAST_JOBS} ({record})"
        ));
    }
    let length_ns = if longest_ns == 0 { INTERVAL_NS } else { longest_ns };
    let competes_then = competes(jobs, theirs, cpu, length_ns);
    // The program's own timers interrupt there, too; some expire together.
    let needed: f64 = timed.map(|thread| rate(thread.release.n, ours.to_ns.abs_diff(ours.from_ns))).sum();
    let interrupts = competes_then.iter().filter(|one| one.prio.is_none()).map(|one| one.demand.n).sum();
    let seen = rate(interrupts, recorded_ns);
    if 2.0 * seen < needed {
        return no(format!(
            "{seen:.0} interrupts per second, less than half of the {needed:.0} of the program's own timers ({record})"
        ));
    }
    let others = |one: &&Interference| one.cpu == cpu && !own_interference(ours).contains(one);
    Ok(Replaced {
        cpu,
        theirs,
        now: ours.dispatches.iter().find(|one| one.cpu == cpu).cloned(),
        then: Dispatches { cpu, ..then.clone() },
        competes_now: ours.interference.iter().filter(others).cloned().collect(),
        competes_then,
    })
}

fn is_fair(prio: Option<i16>) -> bool {
    prio.is_some_and(|prio| Prio::new(i64::from(prio)).is_fair())
}

/// Per second.
fn rate(n: u64, in_ns: u64) -> f64 {
    n as f64 * 1e9 / in_ns.max(1) as f64
}

/// What competes for a CPU there and is not of the program that was recorded there: as demand, with
/// or without a model. `cpu`: our number of it.
fn competes(jobs: &ProgramJobs, theirs: u32, cpu: u32, length_ns: u64) -> Vec<Interference> {
    let interrupts = jobs.interrupts.iter().filter(|(cpu, _)| *cpu == theirs);
    let mut all: Vec<Interference> = interrupts
        .filter_map(|(_, demand)| demand.best(length_ns))
        .map(|demand| Interference { cpu, what: "interrupts".to_owned(), prio: None, demand })
        .collect();
    let urgent = |one: &&ThreadJobs| !one.is_of_program && !is_fair(one.prio) && one.cpus.contains(theirs);
    for thread in jobs.threads.iter().filter(urgent).filter(|thread| thread.executed_ns > 0) {
        let what = competitor(&thread.comm, thread.tid);
        let demand = thread.demand.best(length_ns);
        all.extend(demand.map(|demand| Interference { cpu, what, prio: thread.prio, demand }));
    }
    all
}

/// A thread of the program there: dispatched and released as late as threads and timers are.
fn moved(thread: &mut ThreadModel, then: &Dispatches) {
    thread.dispatch_ns = then.longest_ns;
    thread.kept.clone_from(&then.kept);
    let release = &mut thread.release;
    // Another thread or an interrupt releases it.
    if release.late_ns == 0 {
        return;
    }
    let more_ns = then.late_ns.saturating_sub(release.late_ns);
    release.jitter_ns = match (release.kind, release.own_jitter_ns) {
        // What lateness does not explain is the program's: of a release that is uncertain it is in
        // the jitter alone.
        (ReleaseKind::Periodic, Some(own_ns)) => {
            own_ns.max(release.jitter_ns.saturating_sub(release.late_ns)).saturating_add(then.late_ns)
        }
        // How much of it is lateness is not known; only more of that is added.
        (ReleaseKind::Periodic, None) => release.jitter_ns.saturating_add(more_ns),
        _ => release.jitter_ns.saturating_sub(release.late_ns).saturating_add(then.late_ns),
    };
    // A late release brings the next one nearer.
    let nearer = i64::try_from(more_ns).unwrap_or(i64::MAX);
    release.curve.iter_mut().for_each(|(length_ns, _)| *length_ns = length_ns.saturating_sub(nearer).max(1));
    release.late_ns = then.late_ns;
}

/// A thread that another releases is released as much later as that one's bound grows. Returns
/// their names.
fn follow_the_chains(ours: &TaskModel, then: &mut TaskModel, assumed: &Assumed) -> Vec<String> {
    let links: Vec<_> = ours.chains.iter().filter(|one| one.n * 100 >= one.of * FOLLOWED).collect();
    let Some(now) = guarantee(ours, assumed).filter(|_| !links.is_empty()) else { return Vec::new() };
    let bound = |guarantee: &Guarantee, pid: i32| {
        guarantee.bounds.iter().find(|one| one.pid == pid).and_then(|one| one.bound_ns)
    };
    let mut grown = Vec::new();
    // From the beginning of a chain to its end.
    for _ in 0..=links.len() {
        let Some(there) = guarantee(then, assumed) else { break };
        let mut changed = false;
        for link in &links {
            let (Some(before), Some(after)) = (bound(&now, link.from), bound(&there, link.from)) else {
                continue;
            };
            let own = ours.threads.iter().find(|one| one.pid == link.to).map(|one| one.release.jitter_ns);
            let thread = then.threads.iter_mut().find(|one| one.pid == link.to && one.is_task());
            let (Some(own_ns), Some(thread)) = (own, thread) else { continue };
            let jitter_ns = own_ns.saturating_add(after.saturating_sub(before));
            if jitter_ns > thread.release.jitter_ns {
                thread.release.jitter_ns = jitter_ns;
                grown.push(link.to_comm.clone());
                changed = true;
            }
        }
        if !changed {
            break;
        }
    }
    grown.sort_unstable();
    grown.dedup();
    grown
}

/// How many dispatches may be later than the worst of n, with 95 % confidence: 3 / n.
fn later(replaced: &[Replaced]) -> Vec<String> {
    let of_cpu = |one: &Replaced| {
        let most = (3.0 / one.then.n.max(1) as f64 * 1e4).ceil();
        let n = count(one.then.n);
        format!(
            "on CPU {} at most {most} of 10,000, after none of {n} (95 %, if late ones come singly)",
            one.cpu
        )
    };
    replaced.iter().map(of_cpu).collect()
}

fn assumptions(
    ours: &TaskModel,
    elsewhere: &Elsewhere<'_>,
    replaced: &[Replaced],
    grown: &[String],
) -> Vec<String> {
    let name = elsewhere.name;
    let mut all = vec![
        "costs, suspensions and the program's own release jitter are those of this recording, on the present machine: they were not measured on the other".to_owned(),
        format!("dispatch, timers, interrupts and urgent threads are the worst seen in {name}, with the margin; its own real-time threads are left out"),
        format!("later dispatches than these are not excluded: {}", later(replaced).join("; ")),
        format!("interrupts of the program's own devices are counted as far as the load in {name} has the like"),
    ];
    let others = ours.threads.iter().filter(|thread| !thread.of_program && thread.executes_urgently());
    let others: Vec<String> = others.map(|thread| competitor(&thread.comm, thread.pid)).collect();
    if !others.is_empty() {
        all.push(format!("urgent threads of the present machine are left out: {}", others.join(", ")));
    }
    let then: Vec<&str> = replaced
        .iter()
        .flat_map(|one| one.competes_then.iter().filter(|one| one.prio.is_some()))
        .map(|one| one.what.as_str())
        .collect();
    if !then.is_empty() {
        all.push(format!("urgent threads of the other machine count: {}", then.join(", ")));
    }
    if !grown.is_empty() {
        all.push(format!(
            "threads that others release are released as much later as those ones' bounds grow: {}",
            grown.join(", ")
        ));
    }
    all
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;
