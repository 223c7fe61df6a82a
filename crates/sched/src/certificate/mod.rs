//! Certificates: numbers that prove a verdict by substitution, without the analysis that found
//! them.
//!
//! | claim | numbers | what has to be checked |
//! |---|---|---|
//! | fixed priorities, in time | windows w_q of each task's jobs | demand in w_q is at most w_q, w_q + J - q T <= D, and the last job ends within T |
//! | fixed priorities, late | a job and points p_1 < p_2 < … | each p is at most the demand in the one before, the last + J > q T + D |
//! | EDF, in time | a busy window L and points t_1 > t_2 > … | work released in L is at most L; demand in t_i is at most t_i, and no deadline lies between it and t_(i+1) |
//! | EDF, late | an interval | its demand exceeds it |
//! | either, late | a task | the tasks down to it need more than a core |
//!
//! The idea of results that carry proofs for a small checker: McConnell, Mehlhorn, Näher and
//! Schweitzer, "Certifying algorithms", Computer Science Review 5(2), 2011. The arguments are those
//! of `fp_rta` and `edf_qpa`; the checker is [`check()`], in a file of its own.

mod about;
mod check;
mod edf;
mod fp;
mod responses;

pub use check::{Broken, check, digest};

use crate::analyze::{Refusal, Test};
use crate::partition::Heuristic;
use crate::system::System;
use crate::task::TaskSet;
use crate::window::Limits;
use serde::{Deserialize, Serialize};

/// Maximum number of tasks of a core for a proof: its length grows with their square.
const MOST_TASKS: usize = 20_000;

/// The schema of a certificate.
pub const SCHEMA: &str = "stillcore.sched-certificate/2";

/// A verdict on a system with the reason for each core. Times in ns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Certificate {
    /// [`SCHEMA`].
    pub schema: String,
    /// The test whose verdict it is, `fp-rta` or `edf-qpa`.
    pub test: String,
    /// The heuristic that placed the tasks; none where the question did.
    pub partition: Option<String>,
    /// Cores of the system, those without tasks too.
    pub system_cores: u32,
    /// The verdict.
    pub schedulable: bool,
    /// Every core that has tasks.
    pub cores: Vec<CoreProof>,
    /// FNV-1a of all else, in hexadecimal. Detects damage, not forgery; against forgery the numbers
    /// must hold by themselves.
    pub digest: String,
}

/// The tasks of one core and what is proved of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CoreProof {
    /// The core.
    pub core: u32,
    /// Its tasks, highest priority first.
    pub tasks: TaskSet,
    /// The place of each in the priority order of the whole system, 0 the highest.
    pub ranks: Vec<usize>,
    /// What is proved.
    pub proof: Proof,
}

/// The proof for one core. Times in ns, tasks by their place on the core, jobs from 0.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "claim", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Proof {
    /// Fixed priorities: all are in time.
    FpInTime {
        /// For each task the windows of the jobs 0, 1, … of its longest busy window.
        windows_ns: Vec<Vec<u64>>,
    },
    /// Fixed priorities: a job is late.
    FpLate {
        /// The task.
        task: usize,
        /// Its job.
        job: u64,
        /// Windows in which the job is not done.
        points_ns: Vec<u64>,
    },
    /// EDF: all are in time.
    EdfInTime {
        /// A window at whose end all work released in it is done.
        busy_ns: u64,
        /// Intervals, longest first.
        points_ns: Vec<u64>,
    },
    /// EDF: more is due in this interval than fits.
    EdfLate {
        /// The interval.
        interval_ns: u64,
    },
    /// A task cannot be in time even alone: C > D - J.
    Hopeless {
        /// The task.
        task: usize,
    },
    /// The tasks down to this one need more than one core.
    Overload {
        /// The last of them.
        task: usize,
    },
    /// Nothing is proved here.
    Open,
}

impl Proof {
    /// Whether it shows that a deadline is missed.
    pub const fn is_late(&self) -> bool {
        matches!(
            self,
            Self::FpLate { .. } | Self::EdfLate { .. } | Self::Hopeless { .. } | Self::Overload { .. }
        )
    }
}

/// Finds a certificate for the verdict of `fp-rta` or `edf-qpa` on tasks that have their cores, and
/// states the heuristic that chose them. None where the cap on rounds comes first, or without
/// tasks.
pub fn certify(
    system: &System,
    test: Test,
    placed_by: Option<Heuristic>,
    limits: Limits,
) -> Result<Option<Certificate>, Refusal> {
    let prove = match test {
        Test::FpRta => fp::prove,
        Test::EdfQpa => edf::prove,
        _ => return Err(beyond(test, "certificates", "fp-rta or edf-qpa")),
    };
    if system.beyond_independent().is_some() {
        let what = "certificates of suspending tasks, sections that cannot be preempted, shared resources, curves or a supply";
        return Err(beyond(test, what, "verdicts without"));
    }
    let mut cores = Vec::new();
    for (core, indices) in system.by_core().iter().enumerate().filter(|(_, indices)| !indices.is_empty()) {
        let tasks = system.set_of(indices)?;
        let proof = if indices.len() > MOST_TASKS { Proof::Open } else { prove(tasks.tasks(), limits) };
        cores.push(CoreProof { core: core as u32, tasks, ranks: indices.clone(), proof });
    }
    if cores.is_empty() {
        return Ok(None);
    }
    let late = cores.iter().any(|core| core.proof.is_late());
    if !late && cores.iter().any(|core| core.proof == Proof::Open) {
        return Ok(None);
    }
    let mut certificate = Certificate {
        schema: SCHEMA.to_owned(),
        test: test.name().to_owned(),
        partition: placed_by.map(|heuristic| heuristic.name().to_owned()),
        system_cores: system.cores,
        schedulable: !late,
        cores,
        digest: String::new(),
    };
    certificate.digest = digest(&certificate);
    Ok(Some(certificate))
}

fn beyond(test: Test, what: &'static str, instead: &'static str) -> Refusal {
    Refusal::Beyond { test: test.name(), what, instead }
}

/// Whether the utilization certainly exceeds 1: in units of 2^-60, rounded down.
fn overloads(tasks: &[crate::task::Task]) -> bool {
    let share = |task: &crate::task::Task| (u128::from(task.cost_ns) << 60) / u128::from(task.period_ns);
    tasks.iter().map(share).sum::<u128>() > 1 << 60
}

#[cfg(test)]
mod tests;
