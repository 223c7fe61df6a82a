//! `analyze`: a verdict a set, and certificates with their checker.

use super::arrays::matrix;
use super::sets::{TaskSets, by_name};
use crate::error::Wrong;
use crate::parallel;
use numpy::{PyArray1, PyArray2};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use sched::certificate::{self, Certificate};
use sched::global::sched_deadline::{Admission, FairServer, RealTimeShare};
use sched::locks::{Locks, Protocol, Semantics};
use sched::overheads::Overheads;
use sched::{Ask, AskError, EdfJitter, Heuristic, Limits, MAX_NS, Order, Test, Verdict};

/// What is asked of every set, as Python says it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Asked {
    test: String,
    partition: Option<String>,
    order: Option<String>,
    locks: Option<String>,
    ceilings: bool,
    blocking_only: bool,
    semantics: String,
    extra_jitter_ns: u64,
    edf_jitter: String,
    /// us in every period; -1 is no limit.
    rt_runtime_us: i64,
    rt_period_us: u64,
    /// Runtime and period, us.
    fair_server_us: (u64, u64),
    /// A JSON object.
    overheads: Option<String>,
    certificate: bool,
    threads: Option<usize>,
}

impl Asked {
    /// What tasks of `SCHED_DEADLINE` may take, as in the kernel: -1 is no limit at all.
    fn share(&self) -> Result<RealTimeShare, Wrong> {
        let most = 1 << 40;
        if !(-1..=most).contains(&self.rt_runtime_us) {
            return Err(Wrong::new("rt_runtime_us", self.rt_runtime_us, format!("-1 to {most}")));
        }
        if !(1..=most as u64).contains(&self.rt_period_us) {
            return Err(Wrong::new("rt_period_us", self.rt_period_us, format!("1 to {most}")));
        }
        let runtime_us = u64::try_from(self.rt_runtime_us).unwrap_or(u64::MAX);
        Ok(RealTimeShare { runtime_us, period_us: self.rt_period_us })
    }

    fn fair_server(&self) -> Result<FairServer, Wrong> {
        let (runtime_us, period_us) = self.fair_server_us;
        if runtime_us > period_us || !(1..=1 << 40).contains(&period_us) {
            let expected = "runtime and period, the runtime no longer";
            return Err(Wrong::new("fair_server_us", format!("({runtime_us}, {period_us})"), expected));
        }
        Ok(FairServer { runtime_us, period_us })
    }

    fn locks(&self) -> Result<Option<Locks>, Wrong> {
        let Some(name) = self.locks.as_deref() else {
            return if self.ceilings {
                Err(Wrong::new("ceilings", "no protocol", "locks"))
            } else {
                Ok(None)
            };
        };
        let protocol = by_name("locks", name, Protocol::by_name)?;
        let locks = if self.ceilings { Locks::with_ceilings(protocol) } else { Some(Locks::of(protocol)) };
        locks.map(Some).ok_or_else(|| Wrong::new("ceilings", format!("with {name}"), Locks::TAKE_CEILINGS))
    }

    fn ask(&self) -> Result<Ask, Wrong> {
        let semantics = by_name("semantics", &self.semantics, Semantics::by_name)?;
        let overheads = self.overheads.as_deref().map(|text| {
            let costs: Overheads = serde_json::from_str(text).map_err(|error| {
                Wrong::new("overheads", error, "overheads in ns, such as context_switch_ns")
            })?;
            costs.check().map_err(|error| {
                let expected = format!("{} to {MAX_NS}, ns", error.expected);
                Wrong::new(format!("overheads, {}", error.field), error.value, expected)
            })?;
            Ok::<_, Wrong>(costs)
        });
        let jitters =
            |name: &str| EdfJitter::ALL.iter().find(|(known, _)| *known == name).map(|(_, how)| *how);
        let ask = Ask {
            test: by_name("test", &self.test, Test::by_name)?,
            partition: self
                .partition
                .as_deref()
                .map(|name| by_name("partition", name, Heuristic::by_name))
                .transpose()?,
            order: self.order.as_deref().map(|name| by_name("order", name, Order::by_name)).transpose()?,
            locks: self.locks()?,
            blocking_only: self.blocking_only.then_some(semantics),
            extra_jitter_ns: self.extra_jitter_ns,
            edf_jitter: by_name("edf_jitter", &self.edf_jitter, jitters)?,
            overheads: overheads.transpose()?,
            admission: Admission { share: self.share()?, fair_server: self.fair_server()? },
        };
        ask.check().map_err(|AskError { option, found, expected }| {
            Wrong::new(option.replace('-', "_"), found, expected)
        })?;
        let proved = matches!(ask.test, Test::FpRta | Test::EdfQpa);
        if self.certificate
            && (!proved
                || ask.order.is_some()
                || ask.locks.is_some()
                || ask.overheads.is_some()
                || ask.edf_jitter != EdfJitter::Deadlines)
        {
            let expected = "fp-rta or edf-qpa without order, locks, overheads and edf_jitter td";
            return Err(Wrong::new("certificate", format!("of {}", self.test), expected));
        }
        Ok(ask)
    }
}

/// What was answered for a set.
struct Answer {
    verdict: Verdict,
    proof: Option<String>,
    /// Each task's place in the order of priority, 0 the highest.
    priorities: Vec<usize>,
}

/// The verdict on every set, as arrays by name.
#[pyfunction]
pub(crate) fn analyze<'py>(py: Python<'py>, sets: &TaskSets, asked: Asked) -> PyResult<Bound<'py, PyDict>> {
    let ask = asked.ask()?;
    let answers = parallel::each(py, sets.questions.len(), asked.threads, |at| {
        let mut question = sets.questions[at].clone();
        let refused =
            |error: sched::Refusal| Wrong::new(format!("sets[{at}]"), error, "what this test is for");
        let placed = ask.prepare(&mut question).map_err(refused)?;
        let verdict = if placed {
            ask.verdict(&question, Limits::default()).map_err(refused)?
        } else {
            Verdict::not_placed(&question.system)
        };
        let mut proof = None;
        if asked.certificate && placed {
            proof = ask.certificate(&question, Limits::default()).map_err(refused)?;
        }
        let proof = proof.map(|proof| serde_json::to_string(&proof).unwrap_or_default());
        Ok(Answer { verdict, proof, priorities: question.priorities() })
    })?;
    let all = PyDict::new(py);
    let of = |value: &dyn Fn(usize, &Verdict) -> Vec<Option<u64>>| -> PyResult<Bound<'py, PyArray2<i64>>> {
        matrix(py, answers.len(), sets.width(), |at| {
            let (values, priorities) = (value(at, &answers[at].verdict), &answers[at].priorities);
            priorities.iter().filter_map(|&priority| values.get(priority).copied()).collect()
        })
    };
    let times = |values: &dyn Fn(&Verdict) -> &Vec<u64>| {
        of(&|at, verdict| values(verdict).iter().map(|ns| Some(sets.questions[at].in_unit(*ns))).collect())
    };
    let schedulable = answers.iter().map(|answer| answer.verdict.schedulable);
    all.set_item("schedulable", PyArray1::from_vec(py, schedulable.collect()))?;
    let responses = of(&|at, verdict| {
        verdict.response_times.iter().map(|ns| ns.map(|ns| sets.questions[at].in_unit(ns))).collect()
    });
    all.set_item("response_times", responses?)?;
    all.set_item("blocking", times(&|verdict| &verdict.blocking)?)?;
    all.set_item("spin", times(&|verdict| &verdict.spin)?)?;
    all.set_item("arrival", times(&|verdict| &verdict.arrival)?)?;
    all.set_item(
        "cores",
        of(&|_, verdict| verdict.cores.iter().map(|core| Some(u64::from(*core))).collect())?,
    )?;
    let undecided = of(&|_, verdict| {
        (0..verdict.tasks.len()).map(|task| Some(u64::from(verdict.undecided.contains(&task)))).collect()
    });
    all.set_item("undecided", undecided?)?;
    all.set_item(
        "rounds",
        PyArray1::from_vec(py, answers.iter().map(|answer| answer.verdict.rounds).collect()),
    )?;
    if ask.order.is_some() {
        let places = |at: usize| answers[at].priorities.iter().map(|&place| Some(place as u64)).collect();
        all.set_item("priorities", matrix(py, answers.len(), sets.width(), places)?)?;
    }
    if asked.certificate {
        let proofs: Vec<Option<String>> = answers.into_iter().map(|answer| answer.proof).collect();
        all.set_item("certificates", proofs)?;
    }
    Ok(all)
}

/// Why a certificate does not prove what it says; `None` where it does. With a question, whether it
/// is about the tasks of its set `at`.
#[pyfunction]
pub(crate) fn check_certificate(
    certificate: &str,
    question: Option<&TaskSets>,
    at: usize,
) -> PyResult<Option<String>> {
    let read = serde_json::from_str::<Certificate>(certificate);
    let certificate =
        read.map_err(|error| Wrong::new("certificate", error, "what analyze gives for a set"))?;
    if let Err(broken) = certificate::check(&certificate) {
        return Ok(Some(broken.to_string()));
    }
    let Some(sets) = question else { return Ok(None) };
    let asked = sets
        .questions
        .get(at)
        .ok_or_else(|| Wrong::new("question", format!("set {at}"), "one of the sets"))?;
    Ok(certificate.is_about(asked).err().map(|error| error.to_string()))
}
