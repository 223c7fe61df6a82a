//! The checker of certificates: it substitutes numbers and shares only the task type with the
//! tests. Nothing else has to be trusted.
//!
//! Arithmetic saturates at 128 bits. Saturation always leads to refusal, or to a statement that is
//! true anyway.

use super::{Certificate, CoreProof, Proof, SCHEMA};
use crate::task::Task;
use thiserror::Error;

/// Why a certificate proves nothing.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{place}: {reason}")]
pub struct Broken {
    /// Where: `the certificate`, or a core and its task.
    pub place: String,
    /// What does not hold.
    pub reason: String,
}

pub(super) fn broken(place: impl Into<String>, reason: impl Into<String>) -> Broken {
    Broken { place: place.into(), reason: reason.into() }
}

/// Checks all that a certificate claims.
pub fn check(certificate: &Certificate) -> Result<(), Broken> {
    let whole = |reason: &str| Err(broken("the certificate", reason));
    if certificate.schema != SCHEMA {
        return whole("its schema is unknown");
    }
    if certificate.digest != digest(certificate) {
        return whole("it was altered: its digest is another one");
    }
    if !certificate.cores.windows(2).all(|pair| pair[0].core < pair[1].core) {
        return whole("its cores are not in ascending order");
    }
    if certificate.cores.last().is_none_or(|core| core.core >= certificate.system_cores) {
        return whole("it has no core, or one that its system does not have");
    }
    if !are_in_order(&certificate.cores) {
        return whole("the ranks of its tasks are not those of one list of them all");
    }
    for core in &certificate.cores {
        check_core(core, &certificate.test)?;
    }
    let late = certificate.cores.iter().any(|core| core.proof.is_late());
    let open = certificate.cores.iter().any(|core| core.proof == Proof::Open);
    if certificate.schedulable == late || (open && !late) {
        return whole("its verdict is not what its cores prove");
    }
    Ok(())
}

/// Every core has tasks, in the order of their ranks, and these are 0, 1, … over all cores.
fn are_in_order(cores: &[CoreProof]) -> bool {
    let ascend = |core: &CoreProof| {
        let (ranks, tasks) = (&core.ranks, core.tasks.tasks());
        !tasks.is_empty() && ranks.len() == tasks.len() && ranks.windows(2).all(|pair| pair[0] < pair[1])
    };
    let mut all: Vec<usize> = cores.iter().flat_map(|core| core.ranks.iter().copied()).collect();
    all.sort_unstable();
    cores.iter().all(ascend) && all.iter().enumerate().all(|(at, rank)| at == *rank)
}

/// The digest that a certificate should have.
pub fn digest(certificate: &Certificate) -> String {
    let blank = Certificate { digest: String::new(), ..certificate.clone() };
    let text = serde_json::to_string(&blank).unwrap_or_default();
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    format!("{:016x}", text.bytes().fold(0xcbf2_9ce4_8422_2325, step))
}

fn check_core(core: &CoreProof, test: &str) -> Result<(), Broken> {
    let tasks = core.tasks.tasks();
    let is_for_test = match core.proof {
        Proof::FpInTime { .. } | Proof::FpLate { .. } => test == "fp-rta",
        Proof::EdfInTime { .. } | Proof::EdfLate { .. } | Proof::Hopeless { .. } => test == "edf-qpa",
        Proof::Overload { .. } | Proof::Open => ["fp-rta", "edf-qpa"].contains(&test),
    };
    let holds = is_for_test
        && match &core.proof {
            Proof::FpInTime { windows_ns } => {
                windows_ns.len() == tasks.len()
                    && (0..tasks.len()).all(|at| fp_in_time(&tasks[..=at], &windows_ns[at]))
            }
            Proof::FpLate { task, job, points_ns } => {
                *task < tasks.len() && fp_late(&tasks[..=*task], *job, points_ns)
            }
            Proof::EdfInTime { busy_ns, points_ns } => edf_in_time(tasks, *busy_ns, points_ns),
            Proof::EdfLate { interval_ns } => edf_late(tasks, *interval_ns),
            Proof::Hopeless { task } => tasks
                .get(*task)
                .is_some_and(|t| u128::from(t.cost_ns) + u128::from(t.jitter_ns) > t.deadline_ns.into()),
            Proof::Overload { task } => *task < tasks.len() && overload(&tasks[..=*task]),
            Proof::Open => true,
        };
    if holds {
        Ok(())
    } else {
        Err(broken(format!("core {}", core.core), "its numbers do not prove its claim"))
    }
}

/// Work of the last task's jobs up to `job` and of all above that can be released within a window,
/// with blocking.
fn work(tasks: &[Task], job: u128, window: u128) -> u128 {
    let Some((own, above)) = tasks.split_last() else { return 0 };
    let base = (job + 1).saturating_mul(own.cost_ns.into()).saturating_add(own.blocking_ns.into());
    above.iter().fold(base, |sum, task| {
        let jobs = window.saturating_add(task.jitter_ns.into()).div_ceil(task.period_ns.into());
        sum.saturating_add(jobs.saturating_mul(task.cost_ns.into()))
    })
}

/// Every job's window holds its work, no job is late, and after the last one the next finds the
/// core free, or the same again.
fn fp_in_time(tasks: &[Task], windows: &[u64]) -> bool {
    let (Some(own), Some(last)) = (tasks.last(), windows.last()) else { return false };
    let (period, jitter) = (u128::from(own.period_ns), u128::from(own.jitter_ns));
    let in_time = |(job, window): (usize, &u64)| {
        let (job, window) = (job as u128, u128::from(*window));
        work(tasks, job, window) <= window && window + jitter <= job * period + u128::from(own.deadline_ns)
    };
    let length = windows.len() as u128 * period;
    let ends = u128::from(*last) + jitter <= length;
    windows.iter().enumerate().all(in_time) && (ends || repeats(tasks, length))
}

/// The last task's windows repeat with this length: whole periods of all, and no more work in it
/// than fits.
fn repeats(tasks: &[Task], length: u128) -> bool {
    let asked = |task: &Task| (length / u128::from(task.period_ns)).saturating_mul(task.cost_ns.into());
    tasks.iter().all(|task| length.is_multiple_of(task.period_ns.into()))
        && tasks.iter().fold(0u128, |sum, task| sum.saturating_add(asked(task))) <= length
}

/// The job is not done before any of the points, and is late at the last.
fn fp_late(tasks: &[Task], job: u64, points: &[u64]) -> bool {
    let Some(own) = tasks.last() else { return false };
    let mut reached = 0u128;
    for point in points {
        if u128::from(*point) > work(tasks, job.into(), reached) {
            return false;
        }
        reached = (*point).into();
    }
    reached + u128::from(own.jitter_ns)
        > u128::from(job) * u128::from(own.period_ns) + u128::from(own.deadline_ns)
}

/// Work of jobs that arrive and are due within an interval, with the largest blocking.
fn due(tasks: &[Task], interval: u128) -> u128 {
    let blocking = tasks.iter().map(|task| task.blocking_ns).max().unwrap_or(0);
    tasks.iter().fold(blocking.into(), |sum: u128, task| {
        let room = (interval + u128::from(task.jitter_ns)).checked_sub(task.deadline_ns.into());
        let jobs = room.map_or(0, |room| room / u128::from(task.period_ns) + 1);
        sum.saturating_add(jobs.saturating_mul(task.cost_ns.into()))
    })
}

/// All intervals up to `busy` hold what is due in them, and longer ones do if these do.
fn edf_in_time(tasks: &[Task], busy: u64, points: &[u64]) -> bool {
    let blocking = tasks.iter().map(|task| task.blocking_ns).max().unwrap_or(0);
    let released = tasks.iter().fold(u128::from(blocking), |sum, task| {
        sum.saturating_add(u128::from(busy.div_ceil(task.period_ns)).saturating_mul(task.cost_ns.into()))
    });
    // Nothing is released in no time: that would prove nothing.
    if busy == 0 || released > busy.into() || tasks.iter().any(|task| task.jitter_ns >= task.deadline_ns) {
        return false;
    }
    // All from here up to the busy window is proved.
    let mut proved = u128::from(busy) + 1;
    for &point in points {
        let point = u128::from(point);
        if point >= proved || deadline_between(tasks, point, proved) || due(tasks, point) > point {
            return false;
        }
        proved = due(tasks, point);
    }
    !deadline_between(tasks, 0, proved)
}

/// Whether an interval between these, both excluded, ends with a deadline.
fn deadline_between(tasks: &[Task], low: u128, high: u128) -> bool {
    tasks.iter().any(|task| {
        let first = u128::from(task.deadline_ns - task.jitter_ns);
        let period = u128::from(task.period_ns);
        let after = if first > low { first } else { first + ((low - first) / period + 1) * period };
        after < high
    })
}

/// More is due than fits, in an interval that has a deadline.
fn edf_late(tasks: &[Task], interval: u64) -> bool {
    let some_due =
        tasks.iter().any(|task| u128::from(interval) + u128::from(task.jitter_ns) >= task.deadline_ns.into());
    some_due && due(tasks, interval.into()) > interval.into()
}

/// The shares, each rounded down to 2^-60, exceed 1.
fn overload(tasks: &[Task]) -> bool {
    let share = |task: &Task| (u128::from(task.cost_ns) << 60) / u128::from(task.period_ns);
    tasks.iter().map(share).fold(0, u128::saturating_add) > 1 << 60
}
