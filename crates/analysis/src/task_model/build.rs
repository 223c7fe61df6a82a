//! From the jobs that were observed to the model.

use super::choose::choose;
use super::lock_shape::Locks;
use super::shape::{
    Interference, Link, Release, ReleaseKind, SCHEMA, Suspension, TaskModel, ThreadModel, competitor,
};
use crate::words::time;
use attribution::jobs::shape::{KindJobs, ProgramJobs, Releaser, ThreadJobs};
use attribution::prio::Prio;
use infer::cost::CostCurve;
use infer::regular::Regularity;
use model::Cpus;
use model::sample::Reservation;

/// Share of a thread's jobs, in percent, from which on who released them is a link.
const LINKED: u64 = 20;
/// Share of a thread's jobs, in percent, that one other releases, from which on it has its period.
const FOLLOWED: u64 = 90;
/// Burstiness: how many times denser the densest pair of releases is than the densest many, from
/// which on only the curve describes them.
const BURSTS: f64 = 3.0;
/// Below this part of the mean distance in the densest stretch, the least separation alone would
/// make a thread look far busier than it is.
const TIGHT: f64 = 0.7;
/// The interval for which demand without a model is described best where nothing suggests another,
/// ns.
const INTERVAL_NS: u64 = 10_000_000;

/// Makes the model.
pub fn build(jobs: &ProgramJobs) -> TaskModel {
    build_on(jobs, &Cpus::default())
}

/// The same, with what competes for further CPUs, which were recorded: threads of the program may
/// be moved there.
pub fn build_on(jobs: &ProgramJobs, further: &Cpus) -> TaskModel {
    let of_program = jobs.threads.iter().filter(|thread| thread.is_of_program);
    let cpus: Cpus = of_program.flat_map(|thread| thread.cpus.iter()).chain(further.iter()).collect();
    let competes = |thread: &&ThreadJobs| {
        thread.is_of_program || (!is_fair(thread) && thread.cpus.iter().any(|cpu| cpus.contains(cpu)))
    };
    let mut threads: Vec<(&ThreadJobs, ThreadModel)> = jobs
        .threads
        .iter()
        .filter(competes)
        .filter(|thread| thread.executed_ns > 0)
        .map(|thread| (thread, thread_model(thread, jobs.holes)))
        .collect();
    threads.sort_by_key(|(_, model)| (model.prio.unwrap_or(i16::MAX), model.pid));
    let chains = links(&threads);
    follow_the_chains(&mut threads, &chains);
    let threads: Vec<ThreadModel> = threads.into_iter().map(|(_, model)| model).collect();
    let interference = interference(jobs, &threads, &cpus);
    TaskModel {
        schema: SCHEMA.to_owned(),
        from_ns: jobs.extent_ns[0],
        to_ns: jobs.extent_ns[1],
        chains,
        interference,
        dispatches: jobs.dispatches.iter().filter(|one| cpus.contains(one.cpu)).cloned().collect(),
        cpus,
        lost: jobs.holes,
        locks: Locks::default(),
        statements: statements(jobs),
        threads,
    }
}

fn is_fair(thread: &ThreadJobs) -> bool {
    thread.prio.is_none_or(|prio| Prio::new(i64::from(prio)).is_fair())
}

fn thread_model(thread: &ThreadJobs, holes: u64) -> ThreadModel {
    let chosen = choose(thread);
    let kind = chosen.as_ref().ok().map(|(at, confidence)| (&thread.kinds[*at], *confidence));
    let why = why_not(thread, holes).or_else(|| chosen.as_ref().err().cloned());
    let empty = CostCurve { curve_ns: Vec::new(), n: 0, total_ns: 0 };
    let interval_ns =
        kind.map_or(INTERVAL_NS, |(kind, _)| release(kind, thread.reservation).period_ns.max(1));
    ThreadModel {
        pid: thread.tid,
        comm: thread.comm.clone(),
        policy: thread.policy.clone(),
        prio: thread.prio,
        cpus: thread.cpus.clone(),
        of_program: thread.is_of_program,
        waits_in: kind.map(|(kind, _)| kind.kind.words()),
        confidence: kind.map(|(_, confidence)| confidence),
        release: kind.map_or(Release::NONE, |(kind, _)| release(kind, thread.reservation)),
        cost: kind.map_or(empty, |(kind, _)| kind.costs.clone()),
        suspension: kind.map_or(Suspension::default(), |(kind, _)| Suspension {
            total_ns: kind.suspended_ns,
            most: kind.suspensions,
            jobs: kind.suspending.jobs,
            n: kind.suspending.suspensions,
            sum_ns: kind.suspending.total_ns,
        }),
        requests: Vec::new(),
        dispatch_ns: thread.dispatch_ns,
        kept: thread.kept.clone(),
        response_ns: kind.map_or(0, |(kind, _)| kind.response_ns),
        demand: if why.is_some() { thread.demand.best(interval_ns) } else { None },
        why,
    }
}

fn why_not(thread: &ThreadJobs, holes: u64) -> Option<String> {
    let Some(prio) = thread.prio.map(|prio| Prio::new(i64::from(prio))) else {
        return Some("its priority is not known".to_owned());
    };
    if prio.is_fair() {
        return Some("it is not under a real-time policy, and shares its CPU with whoever comes".to_owned());
    }
    if prio == Prio::DEADLINE {
        return Some("it is under SCHED_DEADLINE, and not analysed by priorities".to_owned());
    }
    if holes > 0 {
        return Some(format!("events are missing in {holes} places"));
    }
    if thread.cpus.len() > 1 {
        return Some(format!(
            "it ran on CPUs {}: a thread that is pinned to one can be analysed",
            thread.cpus
        ));
    }
    None
}

/// Released by this period.
fn periodic(release: Release, found: Regularity) -> Release {
    Release {
        kind: ReleaseKind::Periodic,
        period_ns: found.model.period_ns.unsigned_abs(),
        offset_ns: Some(found.model.offset_ns),
        jitter_ns: found.model.jitter_ns.max(0).unsigned_abs(),
        missed: found.missed,
        ..release
    }
}

/// A thread of which nearly each job is released by one job of a periodic thread has that one's
/// period: its own releases vary with what the other executes, and would show it less well.
fn follow_the_chains(threads: &mut [(&ThreadJobs, ThreadModel)], chains: &[Link]) {
    let nearly = |part: u64, whole: u64| part * 100 >= whole * FOLLOWED;
    // From the beginning of a chain to its end, however the threads are sorted.
    for _ in 0..threads.len() {
        let mut changed = false;
        for link in chains.iter().filter(|link| nearly(link.n, link.of)) {
            let of = |pid: i32| threads.iter().position(|(_, model)| model.pid == pid);
            let (Some(from), Some(to)) = (of(link.from), of(link.to)) else { continue };
            let first = &threads[from].1.release;
            let (n, period_ns) = (first.n, first.period_ns);
            let (jobs, model) = &threads[to];
            let each = nearly(n.min(link.of), n.max(link.of));
            if first.kind != ReleaseKind::Periodic || !each || model.release.period_ns == period_ns {
                continue;
            }
            let found = choose(jobs).ok().zip(i64::try_from(period_ns).ok());
            let found = found.and_then(|((at, _), period_ns)| jobs.kinds[at].regular.with_period(period_ns));
            if let Some(found) = found {
                threads[to].1.release = periodic(model.release.clone(), found);
                changed = true;
            }
        }
        if !changed {
            return;
        }
    }
}

/// When jobs of this kind are released; with a reservation by its period, if they follow that.
fn release(kind: &KindJobs, reservation: Option<Reservation>) -> Release {
    let curve: Vec<(i64, u64)> = kind.shortest_ns.iter().copied().zip(0..).skip(2).collect();
    let [from_ns, to_ns] = kind.extent_ns;
    let late_ns = kind.late_ns.unwrap_or(0);
    let common = Release {
        curve,
        lime: kind.lime,
        uncertain: kind.uncertain,
        from_ns,
        to_ns,
        n: kind.n,
        late_ns,
        ..Release::NONE
    };
    // What follows a sleep for a time comes when that sleep began, not by a period.
    let asked =
        |reservation: Reservation| kind.regular.with_period(i64::try_from(reservation.period_ns).ok()?);
    let period = reservation.and_then(asked).or_else(|| kind.regular.period());
    if let Some(found) = period.filter(|_| !kind.kind.is_relative_sleep()) {
        let own = kind.intended.with_period(found.model.period_ns);
        let own_jitter_ns = own.map(|own| own.model.jitter_ns.max(0).unsigned_abs());
        let release = periodic(common, found);
        // A timer that was very late left open to which period its release belongs, and is not in
        // the jitter: it may have come on top.
        let unseen_ns = if late_ns > release.jitter_ns { late_ns } else { 0 };
        let jitter_ns = release.jitter_ns.saturating_add(unseen_ns);
        return Release { jitter_ns, own_jitter_ns, ..release };
    }
    let Some((length_ns, most)) = common.curve.last().copied() else { return common };
    let distances = most - 1;
    let mean_ns = ((length_ns - 1).max(1).unsigned_abs() / distances).max(1);
    let least_ns = common.curve[0].0.saturating_sub(1).unsigned_abs();
    if least_ns as f64 >= TIGHT * mean_ns as f64 {
        let kind = ReleaseKind::Sporadic;
        return Release { kind, period_ns: least_ns, jitter_ns: late_ns, ..common };
    }
    // The least jitter with which releases so far apart on average explain every interval of the
    // curve; longer ones are made of these (the curve is superadditive).
    let early_ns = common.curve.iter().map(|(length_ns, count)| {
        (count - 1).saturating_mul(mean_ns).saturating_sub((length_ns - 1).max(0).unsigned_abs())
    });
    let jitter_ns = early_ns.max().unwrap_or(0).saturating_add(late_ns);
    let in_bursts = mean_ns as f64 >= BURSTS * least_ns.max(1) as f64;
    let kind = if in_bursts { ReleaseKind::Curve } else { ReleaseKind::Sporadic };
    Release { kind, period_ns: mean_ns, jitter_ns, ..common }
}

/// Who releases whom, by the kind that separates jobs.
fn links(threads: &[(&ThreadJobs, ThreadModel)]) -> Vec<Link> {
    let mut links = Vec::new();
    for (jobs, model) in threads {
        let Ok((at, _)) = choose(jobs) else { continue };
        let kind = &jobs.kinds[at];
        for (releaser, n) in &kind.releasers {
            let Releaser::Thread(from) = releaser else { continue };
            let Some((_, other)) = threads.iter().find(|(_, other)| other.pid == *from) else { continue };
            if n * 100 >= kind.n * LINKED && *from != model.pid {
                links.push(Link {
                    from: *from,
                    from_comm: other.comm.clone(),
                    to: model.pid,
                    to_comm: model.comm.clone(),
                    n: *n,
                    of: kind.n,
                });
            }
        }
    }
    links
}

/// Interrupts of the program's CPUs, and urgent threads that have no model.
fn interference(jobs: &ProgramJobs, threads: &[ThreadModel], cpus: &Cpus) -> Vec<Interference> {
    let longest = |cpu: u32| {
        let here = threads.iter().filter(|thread| thread.is_task() && thread.cpus.contains(cpu));
        here.map(|thread| thread.release.period_ns).max().unwrap_or(INTERVAL_NS).max(1)
    };
    let mut all: Vec<Interference> = jobs
        .interrupts
        .iter()
        .filter(|(cpu, _)| cpus.contains(*cpu))
        .filter_map(|(cpu, demand)| {
            let demand = demand.best(longest(*cpu))?;
            Some(Interference { cpu: *cpu, what: "interrupts".to_owned(), prio: None, demand })
        })
        .collect();
    for thread in threads.iter().filter(|thread| !thread.is_task()) {
        let fair = thread.prio.is_none_or(|prio| Prio::new(i64::from(prio)).is_fair());
        let Some(demand) = thread.demand.filter(|_| !fair) else { continue };
        let here = thread.cpus.iter().filter(|cpu| cpus.contains(*cpu));
        all.extend(here.map(|cpu| Interference {
            cpu,
            what: competitor(&thread.comm, thread.pid),
            prio: thread.prio,
            demand,
        }));
    }
    all.sort_by(|a, b| (a.cpu, a.prio, &a.what).cmp(&(b.cpu, b.prio, &b.what)));
    all
}

fn statements(jobs: &ProgramJobs) -> Vec<String> {
    let mut all = Vec::new();
    let observed_ns = jobs.extent_ns[1].saturating_sub(jobs.extent_ns[0]).max(0).unsigned_abs();
    all.push(format!(
        "the model is of the {} that were observed; costs are the longest seen, not worst-case execution times",
        time(observed_ns as f64)
    ));
    if jobs.holes > 0 {
        all.push(format!("events are missing in {} places: no thread has a model", jobs.holes));
    }
    if jobs.missing_switches > 0 {
        all.push(format!(
            "{} context switches are missing from the trace, though the kernel counts none as lost: jobs around them are left out",
            jobs.missing_switches
        ));
    }
    if !jobs.has_calls {
        all.push(
            "system calls were not recorded (raw_syscalls:sys_enter, sys_exit): what separates jobs is known by who ended each sleep alone"
                .to_owned(),
        );
    }
    all
}
