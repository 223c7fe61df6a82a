//! The one next command. Only commands that exist are named.

use model::FindingState;
use serde::{Deserialize, Serialize};

use super::{Advice, AdviceKind, Facts, Step};
use crate::document::join;

/// What to type next, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NextStep {
    /// One line for a shell, or the change that a boot needs.
    pub command: String,
    /// Why.
    pub why: String,
    /// What the costliest thing needs at the next boot, where it needs one.
    pub at_boot: Option<String>,
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
    let boot = remedy(advice, FindingState::Boot);
    if let Some((step, remedy)) = remedy(advice, FindingState::Fixable) {
        let at_boot = boot.map(|(_, remedy)| remedy.to_owned());
        return NextStep { at_boot, ..next(remedy, format!("{}; then `{again}` again", step.title)) };
    }
    match boot {
        Some((step, remedy)) => next(remedy, format!("{}; after the boot `{again}` again", step.title)),
        None => look(facts, advice),
    }
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

fn remedy(advice: &[Advice], state: FindingState) -> Option<(&Step, &str)> {
    let mut steps = advice.iter().flat_map(|a| &a.steps).filter(|step| step.state == state);
    steps.find_map(|step| Some((step, step.remedy.as_deref()?)))
}

fn assess(facts: &Facts, more: &str) -> String {
    if facts.run.measured_cpus.is_empty() {
        return format!("stillcore assess{more}");
    }
    format!("stillcore assess --cpus {}{more}", facts.run.measured_cpus)
}

fn next(command: impl Into<String>, why: impl Into<String>) -> NextStep {
    NextStep { command: command.into(), why: why.into(), at_boot: None }
}
