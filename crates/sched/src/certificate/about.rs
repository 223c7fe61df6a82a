//! Whether a certificate answers a question: the same system, tasks, order and cores, one by one.
//! Numbers that prove something of other tasks, or of these in another order, prove nothing here.

use super::check::broken;
use super::{Broken, Certificate, CoreProof};
use crate::analyze::Test;
use crate::asked::Question;
use crate::system::SystemTask;

const PLACE: &str = "the question";

impl Certificate {
    /// Whether it is about this question as written. Where a heuristic placed the tasks, the proof
    /// is that the tasks on these cores are in time, or late; the question names no core then.
    pub fn is_about(&self, question: &Question) -> Result<(), Broken> {
        let system = &question.system;
        if let Some(what) = system.beyond_independent() {
            return Err(broken(PLACE, format!("it has {what}, which no certificate covers")));
        }
        if !question.equals.is_empty() && self.test == Test::FpRta.name() {
            return Err(broken(PLACE, "it has tasks of equal priority, which no certificate covers"));
        }
        if self.system_cores != system.cores {
            let reason = format!("cores: {}; the certificate has {}", system.cores, self.system_cores);
            return Err(broken(PLACE, reason));
        }
        let own: usize = self.cores.iter().map(|core| core.ranks.len()).sum();
        if own != system.tasks.len() {
            let reason = format!("tasks: {}; the certificate has {own}", system.tasks.len());
            return Err(broken(PLACE, reason));
        }
        if let (Some(name), true) = (&self.partition, question.placed) {
            return Err(broken(PLACE, format!("it names cores; the certificate has those of {name}")));
        }
        self.cores.iter().try_for_each(|core| self.core_is_about(core, question))
    }

    fn core_is_about(&self, core: &CoreProof, question: &Question) -> Result<(), Broken> {
        for (rank, task) in core.ranks.iter().zip(core.tasks.tasks()) {
            let Some(asked) = question.system.tasks.get(*rank) else {
                return Err(broken(PLACE, format!("it has no task of priority {rank} from the top")));
            };
            let SystemTask { task: asked, core: on, .. } = asked;
            let at = || format!("tasks[{}]", question.places[*rank]);
            if asked != task {
                return Err(broken(at(), "the certificate has another task in its place by priority"));
            }
            if self.partition.is_none() && *on != core.core {
                let reason = format!("on core {on}; the certificate has it on core {}", core.core);
                return Err(broken(at(), reason));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certificate::{certify, check, digest};
    use crate::system::{Access, Request, System};
    use crate::{Heuristic, Limits, Task};

    const TESTS: [Test; 2] = [Test::FpRta, Test::EdfQpa];

    /// Three tasks on two cores: 0 and 2 on the first.
    fn base() -> Vec<SystemTask> {
        let one = |core, period_ns, cost_ns| SystemTask {
            core,
            ..Task {
                deadline_ns: period_ns - 1,
                jitter_ns: 2,
                blocking_ns: 1,
                ..Task::implicit(period_ns, cost_ns)
            }
            .into()
        };
        vec![one(0, 20, 4), one(1, 31, 5), one(0, 60, 9)]
    }

    fn question(cores: u32, tasks: Vec<SystemTask>, placed: bool) -> Question {
        let places = (0..tasks.len()).collect();
        Question {
            unit: crate::asked::Unit::Ns,
            system: System { cores, tasks },
            places,
            placed,
            equals: Vec::new(),
        }
    }

    fn proof(question: &Question, test: Test, placed_by: Option<&str>) -> Certificate {
        let placed_by = placed_by.and_then(Heuristic::by_name);
        certify(&question.system, test, placed_by, Limits::default()).unwrap().unwrap()
    }

    /// Questions that differ from the first in one thing.
    fn others() -> Vec<Question> {
        let mut all = Vec::new();
        let fields: [fn(&mut SystemTask); 6] = [
            |task| task.task.period_ns += 1,
            |task| task.task.deadline_ns -= 1,
            |task| task.task.cost_ns -= 1,
            |task| task.task.jitter_ns -= 1,
            |task| task.task.blocking_ns -= 1,
            |task| task.core = 1 - task.core,
        ];
        for (at, change) in (0..3).flat_map(|at| fields.map(|change| (at, change))) {
            let mut tasks = base();
            change(&mut tasks[at]);
            all.push(question(2, tasks, true));
        }
        for order in [[0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            all.push(question(2, order.map(|at| base()[at].clone()).to_vec(), true));
        }
        for cores in [3, 4, 4096] {
            all.push(question(cores, base(), true));
        }
        for at in 0..3 {
            let mut fewer = base();
            fewer.remove(at);
            all.push(question(2, fewer, true));
            let mut more = base();
            more.insert(at, base()[at].clone());
            all.push(question(2, more, true));
        }
        all
    }

    #[test]
    fn a_certificate_of_another_question_is_refused_both_ways() {
        let asked = question(2, base(), true);
        let mut forged = 0;
        for (test, other) in
            TESTS.into_iter().flat_map(|test| others().into_iter().map(move |one| (test, one)))
        {
            for (certificate, question) in
                [(proof(&other, test, None), &asked), (proof(&asked, test, None), &other)]
            {
                assert_eq!(check(&certificate), Ok(()));
                assert!(certificate.is_about(question).is_err(), "{certificate:?}\n{question:?}");
                forged += 1;
            }
            proof(&other, test, None).is_about(&other).unwrap();
        }
        assert_eq!(forged, 128);
    }

    #[test]
    fn what_no_certificate_covers_is_never_proved() {
        let request = Request { resource: 0, count: 1, length_ns: 1, access: Access::Write };
        let beyond: [&dyn Fn(&mut SystemTask); 3] =
            [&|task| task.suspension_ns = 6, &|task| task.non_preemptive_ns = 3, &|task| {
                task.requests.push(request);
            }];
        let plain = question(2, base(), true);
        for (at, change) in (0..3).flat_map(|at| beyond.map(|change| (at, change))) {
            let mut tasks = base();
            change(&mut tasks[at]);
            let refused = proof(&plain, Test::FpRta, None).is_about(&question(2, tasks, true)).unwrap_err();
            assert!(refused.reason.contains("no certificate"), "{refused}");
        }
        let equal = Question { equals: crate::equals(&[7, 7, 8]), ..plain };
        assert!(proof(&equal, Test::FpRta, None).is_about(&equal).is_err());
        proof(&equal, Test::EdfQpa, None).is_about(&equal).unwrap();
    }

    #[test]
    fn a_placement_of_ours_answers_only_a_question_that_has_none() {
        let mut found = question(2, base(), false);
        for (name, _) in Heuristic::ALL {
            let certificate = proof(&found, Test::FpRta, Some(name));
            certificate.is_about(&found).unwrap();
            assert!(certificate.is_about(&question(2, base(), true)).is_err());
        }
        // Nor is its order another one.
        let certificate = proof(&found, Test::FpRta, Some("wfd"));
        found.system.tasks.swap(0, 2);
        assert!(certificate.is_about(&found).is_err());
    }

    /// Claims over cores and ranks that no list of tasks has.
    #[test]
    fn cores_and_ranks_are_those_of_one_system() {
        let good = proof(&question(2, base(), true), Test::FpRta, None);
        let changes: [fn(&mut Certificate); 10] = [
            |one| one.cores.clear(),
            |one| one.system_cores = 1,
            |one| one.cores[1].core = u32::MAX,
            |one| one.cores[1].core = 2,
            |one| one.cores[1].core = 0,
            |one| one.cores[0].ranks = vec![2, 0],
            |one| one.cores[0].ranks = vec![0, 1],
            |one| one.cores[0].ranks = vec![0],
            |one| one.cores[1].ranks = vec![3],
            |one| one.cores[0].ranks = vec![0, 0],
        ];
        for (number, change) in changes.into_iter().enumerate() {
            let mut forged = good.clone();
            change(&mut forged);
            forged.digest = digest(&forged);
            assert!(check(&forged).is_err(), "{number}");
        }
    }
}
