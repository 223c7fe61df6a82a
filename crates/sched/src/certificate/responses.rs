//! Response times that a certificate proves. A window w_q holds the work of job q and all above it.
//! The job ends w_q after the latest release of job 0, and so at most w_q + J - q T after its own
//! arrival.

use super::check::broken;
use super::{Broken, Certificate, Proof};
use crate::asked::Question;
use crate::task::Task;

impl Certificate {
    /// A bound of each task's response time, ns, in the order of the question; none where the proof
    /// of its core has no windows. The certificate has to be about the question, and to hold.
    pub fn response_bounds(&self, question: &Question) -> Vec<Option<u64>> {
        let mut bounds = vec![None; question.places.len()];
        for core in &self.cores {
            let Proof::FpInTime { windows_ns } = &core.proof else { continue };
            for ((task, windows), rank) in core.tasks.tasks().iter().zip(windows_ns).zip(&core.ranks) {
                if let Some(bound) = question.places.get(*rank).and_then(|place| bounds.get_mut(*place)) {
                    *bound = longest(task, windows);
                }
            }
        }
        bounds
    }

    /// Checks that response times, in the unit and order of the question, are at least the proved
    /// bounds; returns how many were compared. Those of a core whose proof has no windows are not.
    pub fn proves_responses(&self, question: &Question, responses: &[Option<u64>]) -> Result<usize, Broken> {
        let bounds = self.response_bounds(question);
        if responses.len() != bounds.len() {
            let reason = format!("{} response times of {} tasks", responses.len(), bounds.len());
            return Err(broken("the answer", reason));
        }
        let mut proved = 0;
        for (place, (response, bound)) in responses.iter().zip(bounds).enumerate() {
            let (Some(response), Some(bound)) = (response, bound) else { continue };
            let least = question.in_unit(bound);
            if *response < least {
                let unit = question.unit.name();
                let reason = format!("a response time of {response} {unit}; proved are {least} {unit}");
                return Err(broken(format!("tasks[{place}] of the answer"), reason));
            }
            proved += 1;
        }
        Ok(proved)
    }
}

/// From the arrival, over all jobs.
fn longest(task: &Task, windows: &[u64]) -> Option<u64> {
    let response = |(job, window): (usize, &u64)| {
        let before = (job as u128) * u128::from(task.period_ns);
        let all = u128::from(*window) + u128::from(task.jitter_ns);
        u64::try_from(all.saturating_sub(before)).unwrap_or(u64::MAX)
    };
    windows.iter().enumerate().map(response).max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Ask, Limits, Test, question};
    use proptest::prelude::*;

    /// What is answered, and what its certificate proves.
    fn both(line: &str) -> (Question, Vec<Option<u64>>, Certificate) {
        let ask = Ask::of(Test::FpRta);
        let question = question::read(line).unwrap();
        let verdict = ask.verdict(&question, Limits::default()).unwrap();
        let responses: Vec<Option<u64>> =
            verdict.response_times.iter().map(|one| one.map(|ns| question.in_unit(ns))).collect();
        let times = question.in_order(&responses);
        let certificate = ask.certificate(&question, Limits::default()).unwrap().unwrap();
        (question, times, certificate)
    }

    #[test]
    fn a_response_time_below_the_proved_one_is_not_believed() {
        let line = r#"{"unit":"ms","tasks":[{"period":40,"cost":10,"priority":3},{"period":10,"cost":3,"priority":1},{"period":20,"cost":5,"jitter":2,"priority":2}]}"#;
        let (question, times, certificate) = both(line);
        assert_eq!(times, [Some(29), Some(3), Some(10)]);
        assert_eq!(certificate.proves_responses(&question, &times), Ok(3));
        for place in 0..3 {
            let mut less = times.clone();
            less[place] = less[place].map(|one| one - 1);
            let why = certificate.proves_responses(&question, &less).unwrap_err().to_string();
            assert!(why.starts_with(&format!("tasks[{place}] of the answer: a response time of")), "{why}");
            let mut more = times.clone();
            more[place] = more[place].map(|one| one + 1);
            assert_eq!(certificate.proves_responses(&question, &more), Ok(3));
        }
        assert!(certificate.proves_responses(&question, &times[1..]).is_err());
    }

    #[test]
    fn a_core_with_a_late_task_proves_no_response_time() {
        let line = r#"{"cores":2,"tasks":[{"period":10,"cost":3},{"period":20,"cost":18},{"period":30,"cost":4,"core":1}]}"#;
        let (question, times, certificate) = both(line);
        assert_eq!((certificate.schedulable, times.as_slice()), (false, [Some(3), None, Some(4)].as_slice()));
        assert_eq!(certificate.response_bounds(&question), [None, None, Some(4)]);
        assert_eq!(certificate.proves_responses(&question, &times), Ok(1));
    }

    proptest! {
        /// The windows are least solutions, so they prove exactly the test's answer.
        #[test]
        fn what_is_proved_is_what_is_answered(
            rows in prop::collection::vec((4u64..60, 1u64..12, 0u64..9, 50u64..250), 1..6),
        ) {
            let task = |(period, cost, jitter, deadline): &(u64, u64, u64, u64)| {
                format!("{{\"period\":{period},\"cost\":{cost},\"jitter\":{jitter},\"deadline\":{}}}", (period * deadline / 100).max(1))
            };
            let tasks: Vec<String> = rows.iter().map(task).collect();
            let (question, times, certificate) = both(&format!("{{\"tasks\":[{}]}}", tasks.join(",")));
            if certificate.schedulable {
                prop_assert_eq!(certificate.response_bounds(&question), times);
            }
        }
    }
}
