//! From the model of a program to a load that does the same: it can be played where the program is
//! not, or is not yet.

use super::shape::{Link, Release, ReleaseKind, TaskModel, ThreadModel};
use model::foreign::in_a_line;
use model::load::{Jobs, Load, LoadThread, MOST_THREADS, Phase, Releases, Share, Sleeps, Step};
use model::sample::Policy;
use model::{Cpus, Error};

/// Share of a thread's jobs, in percent, from which on only others release it.
const RELEASED: u64 = 90;
/// Distances of a curve: more than any model has.
const LONGEST_CURVE: usize = 64;
/// A thread that releases another in so many of a hundred jobs does so in each.
const EACH: u64 = 95;

/// The load, and what of the model is not in it, one sentence each. `place` is where the model is
/// from. Fails where no thread can be replayed.
pub fn load_of(model: &TaskModel, place: &str) -> Result<(Load, Vec<String>), Error> {
    let expected = "a model of which a thread can be replayed";
    if model.lost > 0 {
        let what = format!("events were missing in {} places", model.lost);
        return Err(Error::invalid(place, what, expected));
    }
    let (mut replayed, mut notes) = (Vec::new(), Vec::new());
    for thread in model.threads.iter().filter(|thread| thread.of_program) {
        match policy(thread).and_then(|policy| known(thread).map(|()| policy)) {
            Ok(policy) => replayed.push((thread, policy)),
            Err(why) => notes.push(format!("not replayed: {}: {why}", in_a_line(&thread.comm))),
        }
    }
    if replayed.is_empty() || replayed.len() > MOST_THREADS {
        let what = match replayed.len() {
            0 => notes.first().cloned().unwrap_or_else(|| "it has no thread".to_owned()),
            more => format!("{more} threads, more than {MOST_THREADS}"),
        };
        return Err(Error::invalid(place, what, expected));
    }
    let threads: Vec<&ThreadModel> = replayed.iter().map(|(thread, _)| *thread).collect();
    let waits = released_by_others(model, &threads);
    let first_ns = threads.iter().filter_map(|thread| thread.release.offset_ns).min().unwrap_or(0);
    let mut load = Load::default();
    for (thread, policy) in &replayed {
        let mut steps = Vec::new();
        if waits.contains(&thread.pid) {
            steps.push(Step::Wait { channel: load.channels.len() });
            load.channels.push(in_a_line(&thread.comm));
        } else {
            steps.push(Step::Release(releases(&thread.release, first_ns)));
        }
        steps.push(Step::Job(jobs(thread)));
        load.threads.push(LoadThread {
            name: in_a_line(&thread.comm),
            policy: policy.clone(),
            cpus: Some(thread.cpus.clone()).filter(|cpus: &Cpus| !cpus.is_empty()),
            delay_ns: 0,
            phases: vec![Phase { rounds: 1, steps }],
            rounds: None,
        });
    }
    // The channels are those of the waiting threads, in their order.
    let channels: Vec<i32> = threads.iter().map(|one| one.pid).filter(|pid| waits.contains(pid)).collect();
    for link in &model.chains {
        let from = threads.iter().position(|thread| thread.pid == link.from);
        let channel = channels.iter().position(|pid| *pid == link.to);
        if let (Some(from), Some(channel)) = (from, channel) {
            let share = share(link, threads[from].release.n);
            load.threads[from].phases[0].steps.push(Step::Send { channel, share });
        }
    }
    Ok((load, notes))
}

fn policy(thread: &ThreadModel) -> Result<Policy, String> {
    let words = thread.policy.as_deref().unwrap_or_default();
    if let Some(priority) = thread.realtime().and_then(|priority| u32::try_from(priority).ok()) {
        let round = words.starts_with("SCHED_RR");
        return Ok(if round { Policy::round_robin(priority) } else { Policy::fifo(priority) });
    }
    if thread.prio == Some(-1) {
        return Err("it is under SCHED_DEADLINE, and its reservation is not in the model".to_owned());
    }
    if thread.prio.is_none() {
        return Err("its priority is not known".to_owned());
    }
    let of_all = ["SCHED_BATCH", "SCHED_IDLE"].into_iter().find(|name| words.starts_with(name));
    Ok(of_all.map_or_else(Policy::other, |name| Policy { name: name.to_owned(), ..Policy::other() }))
}

/// Whether what it does is known.
fn known(thread: &ThreadModel) -> Result<(), String> {
    let release = &thread.release;
    let is_known = match release.kind {
        ReleaseKind::None => false,
        ReleaseKind::Periodic => release.period_ns > 0 && release.n > 0,
        ReleaseKind::Sporadic | ReleaseKind::Curve => release.n > 1 && release.to_ns > release.from_ns,
    };
    let why = || thread.why.clone().unwrap_or_else(|| "its releases are not known".to_owned());
    if is_known && thread.cost.n > 0 { Ok(()) } else { Err(why()) }
}

/// The threads that only others release, and of these only such that a thread with releases of its
/// own is at the beginning: a circle would never begin.
fn released_by_others(model: &TaskModel, threads: &[&ThreadModel]) -> Vec<i32> {
    let is_there = |pid: i32| threads.iter().any(|thread| thread.pid == pid);
    let links = |to: i32| model.chains.iter().filter(move |link| link.to == to && is_there(link.from));
    let mut waits: Vec<i32> = threads.iter().map(|thread| thread.pid).collect();
    waits.retain(|pid| {
        let (n, of) = links(*pid).fold((0, 1), |(n, _), link: &Link| (n + link.n, link.of.max(1)));
        n * 100 >= of * RELEASED
    });
    let mut begun: Vec<i32> =
        threads.iter().map(|thread| thread.pid).filter(|pid| !waits.contains(pid)).collect();
    for _ in threads {
        let next = waits.iter().filter(|pid| !begun.contains(pid));
        let next: Vec<i32> =
            next.filter(|pid| links(**pid).all(|link| begun.contains(&link.from))).copied().collect();
        begun.extend(next);
    }
    waits.retain(|pid| begun.contains(pid));
    waits
}

fn share(link: &Link, jobs: u64) -> Share {
    let (least, most) = (link.n.min(jobs), link.n.max(jobs));
    if least * 100 >= most * EACH { Share::EACH } else { Share { n: link.n, of: jobs.max(1) } }
}

/// The beginning of the load is that of the first release of all.
fn releases(release: &Release, first_ns: i64) -> Releases {
    if release.kind == ReleaseKind::Periodic {
        // No period has more left out than not.
        let missed = release.missed.min(release.n);
        let after_ns = release.offset_ns.unwrap_or(first_ns).saturating_sub(first_ns).max(0);
        return Releases::Periodic {
            period_ns: release.period_ns,
            offset_ns: after_ns.unsigned_abs() % release.period_ns,
            // How late timers are, this machine decides.
            jitter_ns: release.own_jitter_ns.unwrap_or(release.jitter_ns),
            left_out: Share { n: missed, of: release.n.saturating_add(missed) },
        };
    }
    let distances = release.n.saturating_sub(1).max(1);
    let length_ns = release.to_ns.saturating_sub(release.from_ns).max(1).unsigned_abs();
    let mut least_ns: Vec<u64> = release
        .curve
        .iter()
        .take(LONGEST_CURVE)
        .map(|(length_ns, _)| length_ns.saturating_sub(1).max(0).unsigned_abs())
        .collect();
    // As any curve of a model is.
    for at in 1..least_ns.len() {
        least_ns[at] = least_ns[at].max(least_ns[at - 1]);
    }
    Releases::Apart { least_ns, mean_ns: (length_ns / distances).max(1), n: release.n }
}

fn jobs(thread: &ThreadModel) -> Jobs {
    let (cost, sleeps) = (&thread.cost, &thread.suspension);
    let each = sleeps.jobs == 0 && sleeps.most > 0;
    // A model of an earlier version has only the longest and the most.
    let sleeps = Sleeps {
        jobs: if each { cost.n } else { sleeps.jobs },
        n: if each { cost.n.saturating_mul(sleeps.most) } else { sleeps.n },
        total_ns: if each { cost.n.saturating_mul(sleeps.total_ns) } else { sleeps.sum_ns },
        longest_ns: sleeps.total_ns,
        most: sleeps.most,
    };
    Jobs { most_ns: cost.curve_ns.clone(), total_ns: cost.total_ns, n: cost.n, sleeps }
}
