//! What was observed beside the model: the job that came nearest to its deadline, with what all
//! threads did around it, and how long chains took from end to end.

use super::chain::{Chain, ChainTimes, Followed, chains};
use super::choose::choose;
use super::shape::TaskModel;
use super::verdict::{Bound, Guarantee};
use attribution::Error;
use attribution::jobs::kind::Kind;
use attribution::jobs::read::Source;
use attribution::jobs::shape::{ObservedJob, ProgramJobs};
use attribution::jobs::stretch::Stretch;
use std::collections::BTreeMap;

/// Part of what is drawn that lies before the job, and behind it.
const BESIDE: i64 = 8;
/// A deadline or bound farther away than this many responses is not drawn to scale.
const FARTHEST: u64 = 6;
/// Chains of which an instance is drawn.
const DRAWN_CHAINS: usize = 2;

/// All of it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Observed {
    /// `None` where no job has a bound or deadline to be held against.
    pub worst: Option<Worst>,
    /// The longest first.
    pub chains: Vec<ChainTimes>,
    /// Around the longest instances of the first of them.
    pub chain_stretches: Vec<Stretch>,
}

/// The job that used most of its deadline; where no thread has one, most of its bound.
#[derive(Debug, Clone, PartialEq)]
pub struct Worst {
    /// The name of its thread.
    pub comm: String,
    /// The job.
    pub job: ObservedJob,
    /// What its response is held against, ns.
    pub bound_ns: Option<u64>,
    /// The same.
    pub deadline_ns: Option<u64>,
    /// What happened around it.
    pub stretch: Stretch,
}

/// Looks through the trace that the model is of.
pub fn observe(
    source: &Source,
    jobs: &ProgramJobs,
    model: &TaskModel,
    guarantee: &Guarantee,
) -> Result<Observed, Error> {
    let separators = separators(jobs, model);
    let has_deadlines = guarantee.bounds.iter().any(|bound| bound.deadline_ns.is_some());
    let limit = |bound: &Bound| if has_deadlines { bound.deadline_ns } else { bound.bound_ns };
    let limits: BTreeMap<i32, u64> =
        guarantee.bounds.iter().filter_map(|one| Some((one.pid, limit(one)?.max(1)))).collect();
    let mut worst: Option<ObservedJob> = None;
    let found: Vec<Chain> = chains(model, guarantee);
    let mut followed: Vec<Followed> = found.into_iter().map(Followed::new).collect();
    source.each_job(&separators, |job| {
        let used = |job: &ObservedJob| {
            limits.get(&job.tid).map(|limit_ns| [u128::from(job.response_ns), u128::from(*limit_ns)])
        };
        if let Some([response, limit]) = used(job)
            && worst.as_ref().and_then(used).is_none_or(|[most, of]| response * of > most * limit)
        {
            worst = Some(*job);
        }
        followed.iter_mut().for_each(|chain| chain.add(job));
    })?;
    let chains: Vec<ChainTimes> = followed.into_iter().map(Followed::finish).collect();
    let mut chain_stretches = Vec::new();
    for chain in chains.iter().take(DRAWN_CHAINS) {
        let (Some(first), Some(last)) = (chain.longest.first(), chain.longest.last()) else { continue };
        let of_chain = |tid: &i32| chain.threads.iter().any(|(pid, _)| pid == tid);
        let ours = separators.iter().filter(|(tid, _)| of_chain(tid)).map(|(tid, kind)| (*tid, *kind));
        let window = around(first.release_ns, last.ended_ns, last.ended_ns);
        chain_stretches.push(source.stretch(&ours.collect(), window)?);
    }
    let worst = match worst {
        Some(job) => Some(drawn(source, &separators, guarantee, job)?),
        None => None,
    };
    Ok(Observed { worst, chains, chain_stretches })
}

/// The kind of sleep that separates the jobs of each thread that has a model.
pub(super) fn separators(jobs: &ProgramJobs, model: &TaskModel) -> BTreeMap<i32, Kind> {
    let is_task = |tid: i32| model.threads.iter().any(|one| one.pid == tid && one.is_task());
    let tasks = jobs.threads.iter().filter(|thread| is_task(thread.tid));
    tasks.filter_map(|thread| Some((thread.tid, thread.kinds[choose(thread).ok()?.0].kind))).collect()
}

/// A little more than from one time to another; the end at the latest of two.
fn around(from_ns: i64, ended_ns: i64, marked_ns: i64) -> [i64; 2] {
    let length_ns = marked_ns.max(ended_ns).saturating_sub(from_ns).max(1);
    let beside_ns = (length_ns / BESIDE).max(1);
    [from_ns.saturating_sub(beside_ns), from_ns.saturating_add(length_ns).saturating_add(beside_ns)]
}

fn drawn(
    source: &Source,
    separators: &BTreeMap<i32, Kind>,
    guarantee: &Guarantee,
    job: ObservedJob,
) -> Result<Worst, Error> {
    let bound = guarantee.bounds.iter().find(|bound| bound.pid == job.tid);
    let (bound_ns, deadline_ns) = bound.map_or((None, None), |one| (one.bound_ns, one.deadline_ns));
    let near = |ns: &u64| *ns <= job.response_ns.saturating_mul(FARTHEST);
    let marked_ns = [bound_ns, deadline_ns].into_iter().flatten().filter(near).max().unwrap_or(0);
    let window = around(job.release_ns, job.ended_ns, job.release_ns.saturating_add_unsigned(marked_ns));
    let comm = bound.map(|bound| bound.comm.clone()).unwrap_or_default();
    Ok(Worst { comm, job, bound_ns, deadline_ns, stretch: source.stretch(separators, window)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretch_has_room_on_both_sides_and_reaches_to_its_marks() {
        assert_eq!(around(1_000, 1_800, 1_800), [900, 1_900]);
        assert_eq!(around(1_000, 1_800, 2_600), [800, 2_800]);
    }
}
