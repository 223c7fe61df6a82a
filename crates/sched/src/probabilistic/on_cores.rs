//! The question for a whole system: each core by itself, with the same release latencies
//! everywhere.

use super::{Exceedance, ExceedanceError, Likelihood, Shares, likelihoods, response_at};
use crate::system::System;
use crate::task::TaskError;
use crate::window::Limits;
use thiserror::Error;

/// What was measured of releases.
#[derive(Debug, Clone)]
pub struct Releases {
    /// Bounds of the probability that one is later.
    pub exceedance: Exceedance,
    /// What was observed.
    pub shares: Shares,
    /// The latest observed, ns.
    pub longest_ns: u64,
}

impl Releases {
    /// Of bounds `(x, P)` of P(L > x), see [`Exceedance::new`], and how often each lateness was
    /// observed, ascending.
    pub fn new(bounds: Vec<(u64, f64)>, counts: &[(u64, u64)]) -> Result<Self, ExceedanceError> {
        Ok(Self {
            exceedance: Exceedance::new(bounds)?,
            shares: Shares::new(counts),
            longest_ns: counts.last().map_or(0, |one| one.0),
        })
    }
}

/// One task of a system.
#[derive(Debug, Clone, PartialEq)]
pub struct OnCore {
    /// What is known of it.
    pub likelihood: Likelihood,
    /// For each requested probability, a response time that a job exceeds with at most that.
    pub responses: Vec<Option<u64>>,
    /// The latest release that was assumed on its core, ns.
    pub latest_ns: u64,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LatestError {
    /// The system is more than independent tasks.
    #[error("{0}, of whose probabilities nothing is known here")]
    Beyond(&'static str),
    /// A release was later than the latest that was assumed.
    #[error("no release later than {latest_ns} ns is assumed, and {longest_ns} ns was observed")]
    Observed {
        /// Assumed; the shortest period of the core where nothing else was.
        latest_ns: u64,
        /// Observed.
        longest_ns: u64,
    },
    /// The tasks of a core are invalid.
    #[error(transparent)]
    Tasks(#[from] TaskError),
}

/// All tasks, in the order of the system. No release is later than `latest_ns`, or than the
/// shortest period of its core.
pub fn on_cores(
    system: &System,
    releases: &Releases,
    latest_ns: Option<u64>,
    probabilities: &[f64],
    limits: Limits,
) -> Result<Vec<OnCore>, LatestError> {
    if let Some(what) = system.beyond_independent() {
        return Err(LatestError::Beyond(what));
    }
    let mut by_task: Vec<Option<OnCore>> = vec![None; system.tasks.len()];
    for indices in system.by_core().into_iter().filter(|indices| !indices.is_empty()) {
        let set = system.set_of(&indices)?;
        let shortest = set.tasks().iter().map(|task| task.period_ns).min().unwrap_or(0);
        let latest_ns = latest_ns.unwrap_or(shortest);
        if latest_ns < releases.longest_ns {
            return Err(LatestError::Observed { latest_ns, longest_ns: releases.longest_ns });
        }
        let all = likelihoods(&set, &releases.exceedance, &releases.shares, latest_ns, limits);
        for (at, likelihood) in all.into_iter().enumerate() {
            let response = |p: &f64| response_at(&set, at, &likelihood, &releases.exceedance, *p, limits);
            let responses = probabilities.iter().map(response).collect();
            by_task[indices[at]] = Some(OnCore { likelihood, responses, latest_ns });
        }
    }
    Ok(by_task.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::question;

    fn ask(line: &str, latest_ns: Option<u64>) -> Result<Vec<OnCore>, LatestError> {
        let releases = Releases::new(vec![(0, 0.5), (3, 0.01)], &[(0, 99), (3, 1)]).unwrap();
        let system = question::read(line).unwrap().system;
        on_cores(&system, &releases, latest_ns, &[0.9], Limits::default())
    }

    #[test]
    fn every_core_by_itself() {
        let line = r#"{"cores":2,"tasks":[{"period":100,"cost":40},{"period":200,"cost":50,"core":1},{"period":200,"cost":50}]}"#;
        let tasks = ask(line, None).unwrap();
        assert_eq!(tasks.iter().map(|one| one.latest_ns).collect::<Vec<_>>(), [100, 200, 100]);
        let alone = ask(r#"{"tasks":[{"period":200,"cost":50}]}"#, None).unwrap();
        assert_eq!(tasks[1], alone[0]);
        assert!(tasks[2].likelihood.late_at_most > alone[0].likelihood.late_at_most);
    }

    #[test]
    fn what_was_observed_is_possible() {
        let line = r#"{"tasks":[{"period":200,"cost":50}]}"#;
        assert_eq!(ask(line, Some(2)), Err(LatestError::Observed { latest_ns: 2, longest_ns: 3 }));
        assert!(ask(line, Some(3)).is_ok());
        let suspends = r#"{"tasks":[{"period":200,"cost":50,"suspension":1}]}"#;
        assert_eq!(ask(suspends, None), Err(LatestError::Beyond("self-suspension")));
    }
}
