//! The one next command. Only commands that exist are named.

use model::FindingState;
use serde::{Deserialize, Serialize};

use super::{Advice, AdviceKind, Facts};
use crate::document::join;

/// What to type next, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NextStep {
    /// One line for a shell, or the change that a boot needs.
    pub command: String,
    /// Why.
    pub why: String,
}

/// The remedy of the costliest thing that can be changed now; else the one that needs another boot; else a closer look, or
/// a longer run. Where this run could not see enough, to see more comes first.
pub fn next_step(facts: &Facts, advice: &[Advice]) -> NextStep {
    let again = assess(facts, "");
    if !facts.run.complete {
        return next(again, "this run is partial");
    }
    if facts.run.trace.is_none() && facts.machine.limits.euid != 0 {
        return next(format!("sudo {again}"), "root can record who interrupts, and measure under SCHED_FIFO");
    }
    remedy(advice, FindingState::Fixable, |title| format!("{title}: can be changed now"))
        .or_else(|| {
            remedy(advice, FindingState::Boot, |title| format!("{title}: then boot again and type `{again}`"))
        })
        .unwrap_or_else(|| look(facts, advice))
}

fn look(facts: &Facts, advice: &[Advice]) -> NextStep {
    let open = advice.iter().any(|a| a.kind == AdviceKind::Interference);
    match &facts.run.trace {
        Some(trace) if open => {
            let path = join(facts.dir, &trace.file);
            next(
                format!("stillcore trace counts {path}"),
                "nothing is left to set; see what is still there, event by event",
            )
        }
        _ => next(assess(facts, " --duration 600s"), "a longer run bounds what was not seen more tightly"),
    }
}

fn remedy(advice: &[Advice], state: FindingState, why: impl Fn(&str) -> String) -> Option<NextStep> {
    let steps = advice.iter().flat_map(|a| &a.steps).filter(|step| step.state == state);
    let mut typed = steps.filter_map(|step| step.remedy.as_ref().map(|remedy| (step, remedy)));
    typed.next().map(|(step, remedy)| next(remedy.clone(), why(&step.title)))
}

fn assess(facts: &Facts, more: &str) -> String {
    if facts.run.measured_cpus.is_empty() {
        return format!("stillcore assess{more}");
    }
    format!("stillcore assess --cpus {}{more}", facts.run.measured_cpus)
}

fn next(command: impl Into<String>, why: impl Into<String>) -> NextStep {
    NextStep { command: command.into(), why: why.into() }
}
