//! What is wrong, in order of cost, and what to do about each.
//!
//! Losses come first, since they qualify everything below. Then what the kernel ran on the measured
//! CPUs, ranked by the time it stole per second from the busy loop in the disturbed phase (ties by
//! count). Classes that came only while the periodic task slept follow, since they cost a sleeping
//! task only its wake-up. Each is joined through the event catalogue with the mechanisms that
//! remove it and what the audit says of them. Last come settings for which this run has no
//! evidence.

mod interference;
mod losses;
mod next;
mod proposals;
mod remedies;

use analysis::Analysis;
use model::events::EventCatalogue;
use model::sample::ProbeKind;
use model::{Cpus, EventClass, Finding, FindingState, Machine, Run};
use serde::{Deserialize, Serialize};

use crate::guarantee::{Guarantee, GuaranteeVerdict};
use crate::outcome::is_settable;

pub use next::{NextStep, after_measurement, next_step};
pub use proposals::{Proposal, Seen, proposals};
pub(crate) use proposals::{apply_command, name_in_files};
pub(crate) use remedies::label_of;
pub use remedies::{Against, against};

/// What advice is drawn from.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The run directory as the user would type it.
    pub dir: &'a str,
    /// The run.
    pub run: &'a Run,
    /// The machine before it.
    pub machine: &'a Machine,
    /// The audit.
    pub findings: &'a [Finding],
    /// The conclusions from samples and trace.
    pub analysis: &'a Analysis,
    /// What follows for a task set.
    pub guarantee: &'a Guarantee,
    /// Which mechanisms remove which class.
    pub catalogue: &'a EventCatalogue,
}

/// What a piece of advice is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AdviceKind {
    /// Something was lost or did not happen: the values below are weaker for it.
    Loss,
    /// The task set misses a deadline.
    Guarantee,
    /// Something ran on a measured CPU.
    Interference,
    /// Samples got worse, and nothing recorded says by whom.
    Unattributed,
    /// A mechanism is not set; nothing observed argues for it in this run.
    Setting,
    /// Nothing is wrong, within what the run could see.
    Nothing,
}

/// What a class costs, pooled over the measured CPUs. Rates are per CPU and second.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// The probe in whose windows it was counted; only from a busy loop is time stolen.
    pub probe: ProbeKind,
    /// Events in the disturbed phase.
    pub count: u64,
    /// Events per second, disturbed.
    pub per_s: f64,
    /// Events per second, both idle controls together.
    pub idle_per_s: f64,
    /// ns stolen per second, disturbed.
    pub net_ns_per_s: f64,
    /// ns stolen per second, both idle controls together.
    pub idle_net_ns_per_s: f64,
    /// Longest, disturbed, ns.
    pub max_ns: u64,
    /// Share of the largest hundredth of the disturbed wake-up latencies that overlaps the class,
    /// on the CPU where it is largest.
    pub share_of_largest: Option<f64>,
    /// The same of all of them, on that CPU: what to compare it with.
    pub share_of_all: Option<f64>,
    /// The most frequent of what ran, by time, at most three, `label (count)`.
    pub ran: Vec<String>,
    /// The phase in which it took most; the list is in the order of this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dearest: Option<Dearest>,
}

/// The phase in which a class took most time of the measured CPUs. Rates are per CPU and second.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Dearest {
    /// Its name.
    pub phase: String,
    /// Whether it is a disturbed one.
    pub disturbed: bool,
    /// Events per second.
    pub per_s: f64,
    /// ns stolen per second.
    pub net_ns_per_s: f64,
    /// Longest, ns.
    pub max_ns: u64,
}

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// The mechanism's id.
    pub mechanism: String,
    /// Its title.
    pub title: String,
    /// What the audit says of it.
    pub state: FindingState,
    /// What to type or set.
    pub remedy: Option<String>,
    /// Why the audit says so.
    pub reason: String,
    /// What is set now, where it can be changed now: what to put back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub now: Option<String>,
    /// What the remedy does not do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caveat: Option<String>,
    /// What the mechanism costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<String>,
    /// Whether a mistake under it can take the machine away.
    #[serde(default)]
    pub risky: bool,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Advice {
    /// What it is about.
    pub kind: AdviceKind,
    /// What is wrong, in one sentence.
    pub what: String,
    /// The class, for interference.
    pub class: Option<EventClass>,
    /// The CPUs it concerns.
    pub cpus: Cpus,
    /// What it costs, for interference.
    pub cost: Option<Cost>,
    /// What to do, best first; only what could be set and is not.
    pub steps: Vec<Step>,
    /// Why there is nothing to do, where there is not.
    pub no_step: Option<String>,
    /// The file and field the statement comes from.
    pub source: String,
}

/// All advice, in order.
pub fn advise(facts: &Facts) -> Vec<Advice> {
    let mut all = losses::losses(facts);
    all.extend(late(facts));
    let interference = interference::interference(facts);
    let attributed = !interference.is_empty();
    all.extend(interference);
    if !attributed {
        all.extend(interference::unattributed(facts));
    }
    let settings = settings(facts, &all);
    all.extend(settings);
    if all.iter().all(|advice| advice.kind == AdviceKind::Loss) {
        all.push(interference::nothing(facts));
    }
    all
}

/// What weakens a measurement. What interrupts it was not recorded, and what could be set stands in
/// the audit.
pub fn of_measurement(facts: &Facts) -> Vec<Advice> {
    losses::losses(facts)
}

fn late(facts: &Facts) -> Option<Advice> {
    (facts.guarantee.verdict == GuaranteeVerdict::Fails).then(|| Advice {
        kind: AdviceKind::Guarantee,
        what: facts.guarantee.sentence.clone(),
        class: None,
        cpus: facts.guarantee.evidence.as_ref().map_or_else(Cpus::default, |e| Cpus::one(e.cpu)),
        cost: None,
        steps: Vec::new(),
        no_step: Some(observed(facts)),
        source: "analysis.json, guarantee".to_owned(),
    })
}

/// Where the maximum was observed, and what the list below it is about: another phase, as a rule.
fn observed(facts: &Facts) -> String {
    let Some(evidence) = &facts.guarantee.evidence else {
        return "no wake-up was measured".to_owned();
    };
    let begun = facts.run.phases.first().map(|phase| phase.t0_ns);
    let at = evidence.at_ns.zip(begun);
    // With missed releases charged the maximum itself has no sample; the largest that was served
    // has.
    let when = at.map_or_else(String::new, |(at_ns, t0_ns)| {
        format!(" (its largest served wake-up was due {:.3} s into the run)", (at_ns - t0_ns) as f64 / 1e9)
    });
    let list = if facts.run.trace.is_some() {
        "what follows is what ran in the disturbed phase, costliest first, and need not be what made this maximum"
    } else {
        "what ran then was not recorded"
    };
    format!("the maximum was observed in phase {} on CPU {}{when}; {list}", evidence.phase, evidence.cpu)
}

/// Mechanisms that could be set and that no interference above already asks for.
fn settings(facts: &Facts, above: &[Advice]) -> Vec<Advice> {
    let asked = |id: &str| above.iter().flat_map(|advice| &advice.steps).any(|step| step.mechanism == id);
    let open = facts.findings.iter().filter(|finding| is_settable(finding) && !asked(&finding.id));
    let mut open: Vec<&Finding> = open.collect();
    open.sort_by_key(|finding| finding.state);
    open.into_iter().map(setting).collect()
}

fn setting(finding: &Finding) -> Advice {
    Advice {
        kind: AdviceKind::Setting,
        what: format!("{}: {}", finding.title, finding.reason),
        class: None,
        cpus: finding.cpus.clone(),
        cost: None,
        steps: vec![step(finding)],
        no_step: None,
        source: format!("findings.json, {}", finding.id),
    }
}

fn step(finding: &Finding) -> Step {
    Step {
        mechanism: finding.id.clone(),
        title: finding.title.clone(),
        state: finding.state,
        remedy: finding.remedy.clone(),
        reason: finding.reason.clone(),
        now: finding.have.clone().filter(|have| finding.state == FindingState::Fixable && !have.is_empty()),
        caveat: finding.caveat.clone(),
        cost: finding.cost.clone(),
        risky: finding.risky,
    }
}

#[cfg(test)]
mod tests;
