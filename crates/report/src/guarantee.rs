//! What follows for a task set if every release is as late as the latest wake-up that was observed.
//!
//! The observed maximum wake-up latency becomes the release jitter J of every task in the
//! response-time analysis R = w + J, w = C + sum ceil((w + J_k) / T_k) C_k (Audsley et al. 1993,
//! see crate `sched`). An observed maximum is not a bound, so the answer is conditional, and its
//! conditions travel with it.

use analysis::Analysis;
use analysis::distribution::Distribution;
use model::sample::{Policy, ProbeKind};
use model::{Machine, Run};
use sched::paper_sets::{IEEE_ACCESS_2020, PaperSet};
use sched::{Limits, Task, TaskSet, jitter_margin, jitter_steps, response_times};
use serde::{Deserialize, Serialize};

use crate::distribution::maximum;
use crate::format;

/// Changes of a ceiling looked at when searching the first step; the published set has a handful
/// below its margin.
const STEP_CAP: usize = 10_000;

/// Whether the task set meets its deadlines under the observed jitter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GuaranteeVerdict {
    /// It does, under the conditions stated.
    Holds,
    /// It does not.
    Fails,
    /// What was measured does not support an answer.
    Withheld,
}

/// The jitter that was observed, and where.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// Observed maximum wake-up latency over all windows and measured CPUs, missed releases
    /// charged, ns.
    pub jitter_ns: u64,
    /// Phase of the window it was observed in.
    pub phase: String,
    /// CPU it was observed on.
    pub cpu: u32,
    /// When the largest served wake-up of that window was due, CLOCK_MONOTONIC ns.
    pub at_ns: Option<i64>,
    /// Policy in force for the measuring thread.
    pub policy: Policy,
    /// Samples looked at, all windows.
    pub n: u64,
    /// Releases that passed unserved, all windows.
    pub missed: u64,
    /// Samples lost to a full ring, all windows.
    pub ring_lost: Option<u64>,
    /// Measured time, CPUs added, ns.
    pub duration_ns: u64,
}

/// Response times at one jitter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// Release jitter of every task, ns.
    pub jitter_ns: u64,
    /// Whether every task meets its deadline.
    pub schedulable: bool,
    /// Response times from arrival, ns; `null` where a busy window outgrows the deadline.
    pub response_times_ns: Vec<Option<u64>>,
}

/// The whole answer. Arrays are indexed by task, highest priority first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Guarantee {
    /// Name of the task set.
    pub task_set: String,
    /// Who published it.
    pub source: String,
    /// The set.
    pub tasks: Vec<Task>,
    /// The answer without any jitter.
    pub at_zero: Answer,
    /// The answer with the observed jitter.
    pub at_observed: Option<Answer>,
    /// Where the jitter came from.
    pub evidence: Option<Evidence>,
    /// Largest uniform jitter the set tolerates, exact, ns.
    pub tolerated_ns: Option<u64>,
    /// Jitter up to which every response grows by the jitter alone; past it a busy window takes in
    /// one more job, ns.
    pub first_step_ns: Option<u64>,
    /// Tolerated less observed, ns; negative where the observed jitter is too large.
    pub left_ns: Option<i64>,
    /// The verdict.
    pub verdict: GuaranteeVerdict,
    /// The verdict in one sentence.
    pub sentence: String,
    /// What must hold for the verdict to mean anything, one sentence each.
    pub conditions: Vec<String>,
}

/// Draws the conclusion for the published set of three tasks.
pub(crate) fn guarantee(run: &Run, machine: &Machine, analysis: &Analysis) -> Guarantee {
    for_set(&IEEE_ACCESS_2020, run, machine, analysis)
}

fn for_set(paper: &PaperSet, run: &Run, machine: &Machine, analysis: &Analysis) -> Guarantee {
    let set = paper.task_set();
    let limits = Limits::default();
    let tolerated_ns = jitter_margin(&set, limits).margin_ns;
    let steps = jitter_steps(&set, tolerated_ns.unwrap_or(0), STEP_CAP, limits);
    let evidence = evidence(analysis);
    let at_observed = evidence.as_ref().map(|evidence| answer(&set, evidence.jitter_ns));
    let verdict = verdict(at_observed.as_ref(), evidence.as_ref());
    let left_ns = match (tolerated_ns, &evidence) {
        (Some(tolerated), Some(evidence)) => Some(tolerated as i64 - evidence.jitter_ns as i64),
        _ => None,
    };
    let mut guarantee = Guarantee {
        task_set: paper.name.to_owned(),
        source: paper.source.to_owned(),
        tasks: set.tasks().to_vec(),
        at_zero: answer(&set, 0),
        at_observed,
        evidence,
        tolerated_ns,
        first_step_ns: steps.steps.first().map(|step| step.last_jitter_ns),
        left_ns,
        verdict,
        sentence: String::new(),
        conditions: Vec::new(),
    };
    guarantee.sentence = sentence(&guarantee);
    guarantee.conditions = conditions(&guarantee, run, machine, analysis);
    guarantee
}

fn answer(set: &TaskSet, jitter_ns: u64) -> Answer {
    let late = || Answer { jitter_ns, schedulable: false, response_times_ns: vec![None; set.tasks().len()] };
    // A jitter past what a task can hold (104 days) is past every deadline.
    set.with_added_jitter(jitter_ns).map_or_else(
        |_| late(),
        |set| {
            let verdict = response_times(&set, Limits::default());
            Answer { jitter_ns, schedulable: verdict.schedulable, response_times_ns: verdict.response_times }
        },
    )
}

/// The largest observed wake-up latency with its circumstances; `None` without a single counted
/// sample.
fn evidence(analysis: &Analysis) -> Option<Evidence> {
    let windows = || analysis.distributions.iter().filter(|d| d.probe == ProbeKind::Wakeup);
    let worst =
        windows().filter(|d| maximum(d).is_some()).max_by_key(|d| (maximum(d), std::cmp::Reverse(d.cpu)))?;
    Some(Evidence {
        jitter_ns: maximum(worst)?.max(0) as u64,
        phase: worst.phase.clone(),
        cpu: worst.cpu,
        at_ns: worst.observed_max_at_ns,
        policy: worst.policy.clone(),
        n: windows().map(|d| d.n).fold(0, u64::saturating_add),
        missed: windows().map(|d| d.missed).fold(0, u64::saturating_add),
        ring_lost: windows()
            .map(|d| d.ring_lost)
            .try_fold(0, |sum: u64, lost| Some(sum.saturating_add(lost?))),
        duration_ns: windows().map(|d| d.duration_ns).fold(0, u64::saturating_add),
    })
}

/// Lost samples can hide a larger latency: then "fails" still stands, "holds" does not.
fn verdict(at_observed: Option<&Answer>, evidence: Option<&Evidence>) -> GuaranteeVerdict {
    match (at_observed, evidence) {
        (Some(answer), _) if !answer.schedulable => GuaranteeVerdict::Fails,
        (Some(_), Some(evidence)) if evidence.ring_lost == Some(0) => GuaranteeVerdict::Holds,
        _ => GuaranteeVerdict::Withheld,
    }
}

fn sentence(guarantee: &Guarantee) -> String {
    let Some(evidence) = &guarantee.evidence else {
        return "withheld: no wake-up was measured, so there is no jitter to analyse with".to_owned();
    };
    let jitter = format::ns(evidence.jitter_ns as i64);
    let tolerated = guarantee.tolerated_ns.map_or_else(|| "none".to_owned(), format::ms_exact);
    match guarantee.verdict {
        GuaranteeVerdict::Holds => format!(
            "with {jitter} of release jitter, the largest observed, every task meets its deadline; the set tolerates \
             {tolerated}, so {} are left",
            format::ms_exact(guarantee.left_ns.unwrap_or(0).max(0) as u64)
        ),
        GuaranteeVerdict::Fails => format!(
            "with {jitter} of release jitter, the largest observed, {}; the set tolerates {tolerated}",
            late_tasks(guarantee)
        ),
        GuaranteeVerdict::Withheld => match evidence.ring_lost {
            Some(lost) => format!(
                "withheld: {} lost to a full ring, and any of them may have been later than the {jitter} that was stored",
                format::plural(lost, "sample")
            ),
            None => format!(
                "withheld: the run was cut off; what it lost is not known, and may have been later than the {jitter} that was stored"
            ),
        },
    }
}

fn late_tasks(guarantee: &Guarantee) -> String {
    let responses = guarantee.at_observed.iter().flat_map(|answer| &answer.response_times_ns);
    let late = responses.zip(&guarantee.tasks).enumerate();
    let late = late.filter(|(_, (response, task))| response.is_none_or(|r| r > task.deadline_ns));
    let names: Vec<String> = late.map(|(index, _)| (index + 1).to_string()).collect();
    match names.as_slice() {
        [one] => format!("task {one} can miss its deadline"),
        many => format!("tasks {} can miss their deadlines", many.join(", ")),
    }
}

fn conditions(guarantee: &Guarantee, run: &Run, machine: &Machine, analysis: &Analysis) -> Vec<String> {
    let mut all = Vec::new();
    if let Some(evidence) = &guarantee.evidence {
        all.push(format!(
            "The jitter is the observed maximum of {} in {} of measured time ({} charged; found in phase {} on CPU {}). It is no bound: a larger one was not seen, nothing more.",
            format::plural(evidence.n, "sample"),
            format::span(evidence.duration_ns),
            format::plural(evidence.missed, "missed release"),
            evidence.phase,
            evidence.cpu,
        ));
        all.push(format!("The probe ran under {}.", policy(&evidence.policy)));
        if !is_realtime(&evidence.policy) {
            all.push(
                "That is no fixed-priority policy: the analysis says what the latency would mean for fixed-priority \
                 tasks, which were not measured."
                    .to_owned(),
            );
        }
    }
    if let Some(gap) = longest_gap(analysis) {
        all.push(format!(
            "Execution times are taken as given. Time stolen while a task runs is not in them: the longest gap in the busy \
             loop was {} (phase {}, CPU {}).",
            format::ns(gap.1),
            gap.0.phase,
            gap.0.cpu
        ));
    }
    all.push(
        "One processor, fixed priorities with preemption, D = T, no locks, no blocking, no cost of a context switch."
            .to_owned(),
    );
    if let Some(hypervisor) = &machine.hypervisor {
        all.push(format!(
            "The machine is virtual ({hypervisor}): on a virtual machine the hypervisor can take the CPU at any time."
        ));
    }
    all.extend(run.stopped_at.iter().map(|at| {
        format!("The measurement {}: it saw less than was planned.", crate::stopped::sentence(at))
    }));
    if !run.complete {
        let why = run.incomplete_reason.as_deref().unwrap_or("no reason recorded");
        all.push(format!("The run is partial ({why}): it saw less than was asked for."));
    }
    all
}

fn longest_gap(analysis: &Analysis) -> Option<(&Distribution, i64)> {
    let noise = analysis.distributions.iter().filter(|d| d.probe == ProbeKind::Noise);
    noise.filter_map(|d| d.observed_max_ns.map(|max| (d, max))).max_by_key(|(_, max)| *max)
}

/// `SCHED_FIFO, priority 95`, `SCHED_DEADLINE, 12.50 ms in 125.0 ms every 125.0 ms`.
pub(crate) fn policy(policy: &Policy) -> String {
    match policy.reservation {
        Some(one) => format!(
            "{}, {} in {} every {}",
            policy.name,
            format::ns(one.runtime_ns as i64),
            format::ns(one.deadline_ns as i64),
            format::ns(one.period_ns as i64)
        ),
        None if policy.priority == 0 => policy.name.clone(),
        None => format!("{}, priority {}", policy.name, policy.priority),
    }
}

fn is_realtime(policy: &Policy) -> bool {
    matches!(policy.name.as_str(), "SCHED_FIFO" | "SCHED_RR" | "SCHED_DEADLINE")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    const MS: u64 = 1_000_000;

    /// The fixture with its largest wake-up latency set to `jitter_ns`.
    fn with_jitter(jitter_ns: i64) -> Guarantee {
        let mut document = fixture::document();
        for window in &mut document.analysis.distributions {
            window.corrected_max_ns = Some(jitter_ns.min(20_000));
            window.observed_max_ns = Some(jitter_ns.min(20_000));
        }
        let wakeup = document
            .analysis
            .distributions
            .iter_mut()
            .find(|d| d.probe == ProbeKind::Wakeup && d.phase == "disturbed");
        wakeup.unwrap().corrected_max_ns = Some(jitter_ns);
        guarantee(&document.run, &document.machine.machine, &document.analysis)
    }

    #[test]
    fn without_jitter_the_published_response_times_come_out() {
        let found = with_jitter(0);
        assert_eq!(found.at_zero.response_times_ns, [Some(3 * MS), Some(8 * MS), Some(29 * MS)]);
        assert_eq!(found.at_observed.as_ref().unwrap().response_times_ns, found.at_zero.response_times_ns);
        assert_eq!(found.tolerated_ns, Some(7 * MS));
        assert_eq!(found.first_step_ns, Some(MS));
        assert_eq!(found.left_ns, Some(7 * MS as i64));
    }

    #[test]
    fn the_margin_is_exact_to_the_nanosecond() {
        let at_margin = with_jitter(7 * MS as i64);
        assert_eq!(at_margin.verdict, GuaranteeVerdict::Holds);
        assert_eq!(at_margin.left_ns, Some(0));
        let past = with_jitter(7 * MS as i64 + 1);
        assert_eq!(past.verdict, GuaranteeVerdict::Fails);
        assert_eq!(past.left_ns, Some(-1));
        assert!(past.sentence.contains("can miss"), "{}", past.sentence);
    }

    #[test]
    fn past_the_first_step_a_response_grows_by_more_than_the_jitter() {
        let at = |jitter: u64| with_jitter(jitter as i64).at_observed.unwrap().response_times_ns[2].unwrap();
        assert_eq!(at(MS), 30 * MS);
        assert!(at(MS + 1) > 31 * MS, "{}", at(MS + 1));
    }

    #[test]
    fn evidence_names_the_window_and_counts_all_of_them() {
        let found = with_jitter(44_444);
        let evidence = found.evidence.unwrap();
        assert_eq!((evidence.jitter_ns, evidence.phase.as_str()), (44_444, "disturbed"));
        let document = fixture::document();
        let wakeups = document.analysis.distributions.iter().filter(|d| d.probe == ProbeKind::Wakeup);
        assert_eq!(evidence.n, wakeups.map(|d| d.n).sum::<u64>());
    }

    #[test]
    fn no_wake_up_sample_withholds() {
        let mut document = fixture::document();
        document.analysis.distributions.retain(|d| d.probe == ProbeKind::Noise);
        let found = guarantee(&document.run, &document.machine.machine, &document.analysis);
        assert_eq!(found.verdict, GuaranteeVerdict::Withheld);
        assert_eq!((found.at_observed, found.left_ns), (None, None));
    }

    #[test]
    fn lost_samples_withhold_a_pass_but_not_a_failure() {
        let mut document = fixture::document();
        document.analysis.distributions[0].ring_lost = Some(3);
        let found = guarantee(&document.run, &document.machine.machine, &document.analysis);
        assert_eq!(found.verdict, GuaranteeVerdict::Withheld);
        document.analysis.distributions[0].corrected_max_ns = Some(8 * MS as i64);
        assert_eq!(
            guarantee(&document.run, &document.machine.machine, &document.analysis).verdict,
            GuaranteeVerdict::Fails
        );
    }

    #[test]
    fn on_a_virtual_machine_the_hypervisor_is_a_condition_and_on_metal_it_is_not() {
        let mut document = fixture::document();
        let names_hypervisor = |document: &crate::Document| {
            let found = guarantee(&document.run, &document.machine.machine, &document.analysis);
            found
                .conditions
                .iter()
                .any(|condition| condition.contains("hypervisor can take the CPU at any time"))
        };
        assert!(names_hypervisor(&document));
        document.machine.machine.hypervisor = None;
        assert!(!names_hypervisor(&document));
    }

    #[test]
    fn a_jitter_no_task_can_hold_fails() {
        assert_eq!(with_jitter(i64::MAX).verdict, GuaranteeVerdict::Fails);
    }
}
