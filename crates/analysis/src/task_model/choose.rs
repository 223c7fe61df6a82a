//! What separates the jobs of a thread.
//!
//! Between two jobs a thread waits for the next; within a job it may sleep as well. Which sleep is
//! which cannot be seen, and the rule is that of LiME's users: waiting for a point in time comes
//! before waiting for a message, that before waiting for another thread, and sleeping for a while
//! comes last.

use attribution::jobs::kind::{Ender, Kind};
use attribution::jobs::shape::{KindJobs, Releaser, ThreadJobs};
use model::syscalls::Wait;
use serde::{Deserialize, Serialize};

/// Jobs below which nothing is concluded from a thread.
pub const LEAST_JOBS: u64 = 40;
/// A sleep that ends less often than the most frequent one by this factor separates no jobs, unless
/// it waits for a point in time.
const RARER: u64 = 2;
/// The same where it does.
const MUCH_RARER: u64 = 50;
/// Share of the activations, in percent, that begin a job or lie within one of the only kind.
const NEARLY_ALL: u64 = 95;

/// How sure it is what separates the jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    /// The thread sleeps in nothing else.
    Exact,
    /// By the rule.
    Inferred,
}

/// Where waiting of this kind stands among those that may separate jobs; the first goes first.
fn rank(one: &KindJobs) -> u32 {
    let by_timer = matches!(one.releasers.first(), Some((Releaser::Timer(_), _)));
    match one.kind {
        Kind::Replenished => 0,
        Kind::Call { wait: Wait::Sleep, .. } if !one.kind.is_relative_sleep() => 0,
        Kind::Call { wait: Wait::Signal | Wait::Descriptor, .. } if by_timer => 0,
        Kind::Call { wait: Wait::Signal | Wait::Descriptor | Wait::MessageQueue | Wait::Poll, .. } => 1,
        Kind::Call { wait: Wait::SystemV | Wait::Futex, .. }
        | Kind::Elsewhere(Ender::Timer | Ender::Interrupt) => 2,
        Kind::Call { wait: Wait::Sleep, .. } => 3,
        Kind::Elsewhere(_) => 4,
        Kind::Call { wait: Wait::Child | Wait::Other, .. } => 5,
    }
}

/// The place of the kind that separates the jobs, or why none does.
pub fn choose(thread: &ThreadJobs) -> Result<(usize, Confidence), String> {
    if !thread.in_order {
        return Err("its releases are not in order of time".to_owned());
    }
    let most = thread.kinds.iter().map(|one| one.n).max().unwrap_or(0);
    if most < LEAST_JOBS {
        return Err(format!("{most} jobs were seen, expected at least {LEAST_JOBS}"));
    }
    let is_frequent = |one: &&KindJobs| {
        let factor = if rank(one) == 0 { MUCH_RARER } else { RARER };
        one.n >= LEAST_JOBS && one.n.saturating_mul(factor) >= most
    };
    let place = |wanted: &KindJobs| thread.kinds.iter().position(|one| one.kind == wanted.kind);
    // Of those of a rank the most frequent, which comes first.
    let best = thread.kinds.iter().filter(is_frequent).min_by_key(|one| rank(one));
    let Some(at) = best.and_then(place) else {
        return Err("no sleep of it is frequent enough to separate its jobs".to_owned());
    };
    let all: u64 = thread.kinds.iter().map(|one| one.n).sum::<u64>() + thread.unkept;
    let alone = thread.kinds[at].n.saturating_mul(100) >= all.saturating_mul(NEARLY_ALL);
    Ok((at, if alone { Confidence::Exact } else { Confidence::Inferred }))
}

/// The place of the kind that separates the jobs of a thread by its model: the same job is meant in
/// another trace only if it begins with the same wait. `waits_in`: that wait in words; `None` in
/// documents that do not have it. Of several that are alike the one of the rule, else the most
/// frequent.
pub fn choose_as(thread: &ThreadJobs, waits_in: Option<&str>) -> Result<usize, String> {
    let (by_rule, _) = choose(thread)?;
    let Some(waits_in) = waits_in else { return Ok(by_rule) };
    if let Some(same) = thread.kinds.iter().position(|one| one.kind.words() == waits_in) {
        return Ok(same);
    }
    let is_like = |one: &KindJobs| one.kind.is_like(waits_in);
    if is_like(&thread.kinds[by_rule]) {
        return Ok(by_rule);
    }
    let alike = thread.kinds.iter().enumerate().filter(|(_, one)| is_like(one));
    let most = alike.max_by_key(|(_, one)| one.n).map(|(at, _)| at);
    most.ok_or_else(|| {
        let here = thread.kinds[by_rule].kind.words();
        format!("it waits in {here} here, and in {waits_in} in the model")
    })
}
