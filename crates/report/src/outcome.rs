//! Pass or finding: what the exit status of `assess` and `report` says.

use analysis::Analysis;
use analysis::compare::{Comparison, Verdict};
use model::{EventClass, Finding, FindingState, Run};
use serde::{Deserialize, Serialize};

use crate::format;
use crate::guarantee::{Guarantee, GuaranteeVerdict};

/// The answer in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Nothing found, within what the run could see.
    Pass,
    /// At least one reason to act.
    Finding,
    /// Measured, and nothing judged: a measurement alone has no control to compare with.
    Measured,
}

/// The answer with its reasons.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// The answer.
    pub status: Status,
    /// Why it is a finding, or what a pass rests on; one sentence each.
    pub reasons: Vec<String>,
}

impl Outcome {
    /// Exit status: 0 pass or measured, 2 finding (1 is an error, which never gets here).
    pub fn exit_code(&self) -> u8 {
        match self.status {
            Status::Pass | Status::Measured => 0,
            Status::Finding => 2,
        }
    }
}

/// A run is a finding when at least one of these holds, and a pass otherwise:
///
/// 1. a value on a measured CPU differs from both idle controls and is worse (`Verdict::Worse`),
///    be it the rate of an event class or a value of the samples; the class `self`, which the probe
///    causes, does not count;
/// 2. the audit has a mechanism that could be set and is not (state `fixable` or `boot`);
/// 3. the task set misses a deadline under the observed jitter.
///
/// Withheld verdicts are no findings: they are shown as what they are, and the run proves nothing
/// by them.
pub(crate) fn outcome(findings: &[Finding], analysis: &Analysis, guarantee: &Guarantee) -> Outcome {
    let mut reasons = Vec::new();
    let worse = analysis.comparisons.iter().filter(|comparison| is_finding(comparison)).count();
    if worse > 0 {
        let figures = format::plural(worse as u64, "figure");
        let verb = if worse == 1 { "is" } else { "are" };
        reasons.push(format!("{figures} {verb} worse under disturbance than in both idle controls"));
    }
    let settable = findings.iter().filter(|finding| is_settable(finding)).count();
    if settable > 0 {
        let verb = if settable == 1 { "is" } else { "are" };
        reasons.push(format!("{} {verb} not set", format::plural(settable as u64, "isolation mechanism")));
    }
    if guarantee.verdict == GuaranteeVerdict::Fails {
        reasons.push("the example task set can miss deadlines under the observed jitter".to_owned());
    }
    if reasons.is_empty() {
        return Outcome { status: Status::Pass, reasons: grounds(findings, analysis, guarantee) };
    }
    Outcome { status: Status::Finding, reasons }
}

/// A measurement is a finding where a task missed a deadline or a job gave a wrong output, as its
/// own verb then exits with 2. Nothing else is judged; the audit that it stores shows the
/// conditions.
pub(crate) fn of_measurement(run: &Run, analysis: &Analysis) -> Outcome {
    let late = analysis.taskset.iter().flat_map(|one| [one.figures.late, one.figures.missed]);
    let late = late.fold(0, u64::saturating_add);
    let outputs = run.probes.iter().filter_map(model::run::ProbeRecord::jobs);
    let wrong = outputs.map(|jobs| jobs.outputs_wrong).fold(0, u64::saturating_add);
    let mut reasons = Vec::new();
    if late > 0 {
        reasons.push(format!("{} of the task set missed", format::plural(late, "deadline")));
    }
    if wrong > 0 {
        let verb = if wrong == 1 { "is" } else { "are" };
        reasons.push(format!("{} {verb} not the expected one", format::plural(wrong, "output")));
    }
    if reasons.is_empty() {
        let reason = "a measurement by itself judges nothing: its figures hold under the conditions below";
        return Outcome { status: Status::Measured, reasons: vec![reason.to_owned()] };
    }
    Outcome { status: Status::Finding, reasons }
}

/// What was looked at when nothing was found, so that a pass says how much it is worth.
fn grounds(findings: &[Finding], analysis: &Analysis, guarantee: &Guarantee) -> Vec<String> {
    let compared = analysis.comparisons.len() as u64;
    let withheld = analysis.comparisons.iter().filter(|c| c.verdict == Verdict::Withheld).count();
    let unknown = findings.iter().filter(|finding| finding.state == FindingState::Unknown).count();
    let task_set = match guarantee.verdict {
        GuaranteeVerdict::Holds => "the example task set meets its deadlines under the observed jitter",
        _ => "the verdict on the example task set is withheld",
    };
    vec![
        format!(
            "none of {} is distinguishably worse than idle ({withheld} withheld)",
            format::plural(compared, "figure")
        ),
        format!(
            "none of {} is left to set ({unknown} unknown)",
            format::plural(findings.len() as u64, "audited mechanism")
        ),
        task_set.to_owned(),
    ]
}

/// Whether somebody should act on it: fixable now, or with another boot, and no mere choice.
pub(crate) fn is_settable(finding: &Finding) -> bool {
    matches!(finding.state, FindingState::Fixable | FindingState::Boot) && !finding.optional
}

/// Whether it is in order as it is, and could as well be otherwise: that it is so is no remedy in
/// place.
pub(crate) fn is_contested(finding: &Finding) -> bool {
    finding.state == FindingState::Ok && finding.otherwise.is_some()
}

/// Mechanism whose `otherwise` moves tasks that somebody has pinned to the CPU.
const USER_TASKS: &str = "user-tasks";

/// Whether a setting that is in order either way speaks to what was seen: pinned tasks to a task
/// that ran, other settings to what came from another CPU.
pub(crate) fn speaks(finding: &Finding, class: Option<EventClass>, foreign: bool) -> bool {
    let fits = if finding.id == USER_TASKS { class == Some(EventClass::Switch) } else { foreign };
    is_contested(finding) && fits
}

/// The option of `isolate apply` that changes a mechanism which is in order as it is.
pub(crate) fn option_for(finding: &Finding) -> String {
    match finding.id.as_str() {
        USER_TASKS => "--move-pinned".to_owned(),
        id => format!("--with {id}"),
    }
}

/// A mechanism's name, with the tasks that it would move.
pub(crate) fn named(finding: &Finding) -> String {
    match &finding.have {
        Some(tasks) if finding.id == USER_TASKS && is_contested(finding) => {
            format!("{}: pinned there: {tasks}", finding.id)
        }
        _ => finding.id.clone(),
    }
}

fn is_finding(comparison: &Comparison) -> bool {
    comparison.verdict == Verdict::Worse && class_of(comparison) != Some(EventClass::SelfCaused)
}

/// The class whose rate is compared (`ipi.call per second`); `None` for values of the samples.
pub(crate) fn class_of(comparison: &Comparison) -> Option<EventClass> {
    comparison.figure.split_whitespace().find_map(|word| word.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn of(change: impl FnOnce(&mut crate::Document)) -> Outcome {
        let mut document = fixture::still();
        change(&mut document);
        outcome(&document.findings, &document.analysis, &document.guarantee)
    }

    fn comparison(figure: &str, verdict: Verdict) -> Comparison {
        Comparison {
            figure: figure.into(),
            unit: "per s".into(),
            cpu: 3,
            idle_before: Some(0.0),
            disturbed: Some(9.0),
            idle_after: Some(0.0),
            versus_before: None,
            versus_after: None,
            verdict,
            sentence: String::new(),
        }
    }

    #[test]
    fn a_still_core_passes() {
        let found = of(|_| ());
        assert_eq!((found.status, found.exit_code(), found.reasons.len()), (Status::Pass, 0, 3));
    }

    #[test]
    fn a_pass_says_what_it_rests_on() {
        let found = of(|d| {
            d.findings[0].state = FindingState::Unknown;
            d.analysis.comparisons[0].verdict = Verdict::Withheld;
            d.guarantee.verdict = GuaranteeVerdict::Withheld;
        });
        assert_eq!(found.status, Status::Pass);
        assert!(found.reasons[0].contains("1 withheld"), "{found:?}");
        assert!(found.reasons[1].contains("1 unknown"), "{found:?}");
        assert!(found.reasons[2].contains("withheld"), "{found:?}");
    }

    #[test]
    fn each_of_the_three_reasons_alone_is_a_finding() {
        let worse = of(|d| d.analysis.comparisons.push(comparison("ipi.call per second", Verdict::Worse)));
        let sampled = of(|d| d.analysis.comparisons.push(comparison("wakeup p99", Verdict::Worse)));
        let settable = of(|d| d.findings[0].state = FindingState::Boot);
        let late = of(|d| d.guarantee.verdict = GuaranteeVerdict::Fails);
        for found in [worse, sampled, settable, late] {
            assert_eq!((found.status, found.exit_code(), found.reasons.len()), (Status::Finding, 2, 1));
        }
    }

    #[test]
    fn the_probe_itself_and_withheld_verdicts_are_no_findings() {
        let own = of(|d| d.analysis.comparisons.push(comparison("self per second", Verdict::Worse)));
        let unsure =
            of(|d| d.analysis.comparisons.push(comparison("ipi.call per second", Verdict::CannotTell)));
        let withheld =
            of(|d| d.analysis.comparisons.push(comparison("ipi.call per second", Verdict::Withheld)));
        let better = of(|d| d.analysis.comparisons.push(comparison("wakeup p50", Verdict::Better)));
        let unknown = of(|d| d.findings[0].state = FindingState::Unknown);
        for found in [own, unsure, withheld, better, unknown] {
            assert_eq!(found.status, Status::Pass);
        }
    }
}
