//! The one next command. Only commands that exist are named.

use model::FindingState;
use serde::{Deserialize, Serialize};

use super::proposals::apply_command;
use super::{Advice, AdviceKind, Facts, Step};
use crate::document::join;
use crate::heading;

/// What to type next, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NextStep {
    /// One line for a shell, or the change that a boot needs.
    pub command: String,
    /// Why.
    pub why: String,
    /// What the costliest thing needs at the next boot, where it needs one.
    pub at_boot: Option<String>,
    /// What is set now, where the command changes it: what to put back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub now: Option<String>,
    /// What the command does not do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caveat: Option<String>,
    /// What the change costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<String>,
}

/// The remedy of the costliest thing that can be changed now, harmless ones before risky ones. Else
/// one that needs another boot, then one that a rerun would hardly show, then a closer look or a
/// longer run. Where this run could not see enough, seeing more comes first.
pub fn next_step(facts: &Facts, advice: &[Advice]) -> NextStep {
    let again = assess(facts, "");
    if !facts.run.complete {
        return next(again, "this run is partial");
    }
    if facts.run.trace.is_none() && facts.machine.limits.euid != 0 {
        return next(format!("sudo {again}"), "root can record who interrupts, and measure under SCHED_FIFO");
    }
    let boot = remedy(advice, |step| step.state == FindingState::Boot);
    let now = |risky: bool| {
        remedy(advice, |step| {
            step.state == FindingState::Fixable && step.caveat.is_none() && step.risky == risky
        })
    };
    if let Some((step, remedy)) = now(false).or_else(|| now(true)) {
        let at_boot = boot.map(|(_, remedy)| remedy.to_owned());
        return NextStep { at_boot, ..change(facts, step, remedy) };
    }
    if let Some((step, remedy)) = boot {
        return change(facts, step, remedy);
    }
    match remedy(advice, |step| step.state == FindingState::Fixable) {
        Some((step, remedy)) => change(facts, step, remedy),
        None => look(facts, advice),
    }
}

/// After a measurement: who interrupts, and what removes it.
pub fn after_measurement(facts: &Facts) -> NextStep {
    if !facts.run.complete {
        return next(facts.run.command.join(" "), "this run is partial");
    }
    if heading::verb(facts.run) == heading::WATCH {
        let again = format!("stillcore trace watch --from {}", facts.dir);
        return next(again, "to see thread by thread when the program was to run, and what was in its way");
    }
    if heading::verb(facts.run) == heading::MODEL {
        let again = format!("stillcore model --from {}", facts.dir);
        return next(again, "to see the bounds of all threads, and what they rest on");
    }
    if heading::verb(facts.run) == heading::TOP {
        let explain = format!("stillcore trace explain {}", facts.dir);
        return next(explain, "to see who ran, how long, and who had asked for it");
    }
    if facts.run.trace.is_some() {
        let explain = format!("stillcore trace explain {}", facts.dir);
        return next(explain, "to see what each late sample waited for, and who caused it");
    }
    next(assess(facts, ""), "to see who interrupts, distinguished from idle, and what removes it")
}

/// Our own command, which records the change and can undo it, in place of the remedy that a user
/// would type: that one is in the advice.
fn change(facts: &Facts, step: &Step, remedy: &str) -> NextStep {
    let again = assess(facts, "");
    let finding = facts.findings.iter().find(|finding| finding.id == step.mechanism);
    let (command, why) = match finding {
        Some(finding) if finding.state == FindingState::Boot => (
            apply_command(finding),
            format!(
                "shows what the next boot needs for this: {}; after the boot `{again}` again",
                step.title
            ),
        ),
        Some(finding) => {
            let why = format!("sets this, and what else can be set now: {}", step.title);
            (
                apply_command(finding),
                format!("{why}; `stillcore isolate undo` restores; then `{again}` again"),
            )
        }
        None => (remedy.to_owned(), format!("{}; then `{again}` again", step.title)),
    };
    NextStep {
        now: step.now.clone(),
        caveat: step.caveat.clone(),
        cost: step.cost.clone(),
        ..next(command, why)
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

fn remedy(advice: &[Advice], wanted: impl Fn(&Step) -> bool) -> Option<(&Step, &str)> {
    let mut steps = advice.iter().flat_map(|a| &a.steps).filter(|step| wanted(step));
    steps.find_map(|step| Some((step, step.remedy.as_deref()?)))
}

fn assess(facts: &Facts, more: &str) -> String {
    if facts.run.measured_cpus.is_empty() {
        return format!("stillcore assess{more}");
    }
    format!("stillcore assess --cpus {}{more}", facts.run.measured_cpus)
}

fn next(command: impl Into<String>, why: impl Into<String>) -> NextStep {
    NextStep { command: command.into(), why: why.into(), at_boot: None, now: None, caveat: None, cost: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Document, fixture};

    /// The next step when only these mechanisms of the fixture are fixable, `(id, risky, caveat)`,
    /// and none needs a boot.
    fn next_of(open: &[(&str, bool, Option<&str>)], boot: bool) -> NextStep {
        let mut d = fixture::document();
        for finding in &mut d.findings {
            finding.state = if finding.state == FindingState::Boot && boot {
                FindingState::Boot
            } else {
                FindingState::Ok
            };
            if let Some((_, risky, caveat)) = open.iter().find(|(id, ..)| *id == finding.id) {
                finding.state = FindingState::Fixable;
                finding.remedy = Some(format!("fix {}", finding.id));
                (finding.risky, finding.caveat) = (*risky, caveat.map(Into::into));
            }
        }
        Document::conclude("run", d.run, d.machine, d.findings, d.analysis, &fixture::catalogue()).next
    }

    const LATER: Option<&str> = Some("only interrupts requested from now on");

    #[test]
    fn harmless_comes_before_risky_whatever_costs_more() {
        let next = next_of(&[("workqueue-cpumask", true, None), ("ksm-run", false, None)], false);
        assert_eq!(next.command, "stillcore isolate apply --cpus 2,3");
        let alone = next_of(&[("workqueue-cpumask", true, None)], false);
        assert_eq!(alone.command, "stillcore isolate apply --cpus 2,3 --with workqueue-cpumask");
    }

    #[test]
    fn what_a_rerun_would_not_show_comes_after_everything_that_it_would() {
        let open = [("workqueue-cpumask", false, LATER), ("ksm-run", true, None)];
        assert_eq!(next_of(&open, false).command, "stillcore isolate apply --cpus 2,3 --with ksm-run");
        assert_eq!(next_of(&open[..1], true).command, "stillcore isolate plan --cpus 2,3");
        let alone = next_of(&open[..1], false);
        let command = "stillcore isolate apply --cpus 2,3";
        assert_eq!((alone.command.as_str(), alone.caveat.as_deref()), (command, LATER));
    }

    #[test]
    fn the_next_command_is_always_one_of_ours() {
        for open in [&[("workqueue-cpumask", true, None)][..], &[("ksm-run", false, LATER)], &[]] {
            for boot in [false, true] {
                let command = next_of(open, boot).command;
                assert!(command.starts_with("stillcore ") && !command.contains([';', '|', '>']), "{command}");
            }
        }
    }

    #[test]
    fn a_measurement_with_a_trace_is_explained_and_one_without_is_assessed() {
        let mut d = fixture::measurement("ipi");
        let mut command = |trace: Option<model::run::TraceRecord>| {
            d.run.trace = trace;
            let (run, machine) = (d.run.clone(), d.machine.clone());
            let (findings, analysis) = (d.findings.clone(), d.analysis.clone());
            Document::conclude("run", run, machine, findings, analysis, &fixture::catalogue()).next.command
        };
        assert_eq!(command(fixture::document().run.trace), "stillcore trace explain run");
        assert!(command(None).starts_with("stillcore assess"));
    }

    #[test]
    fn the_next_step_shows_its_price_and_what_to_restore() {
        let next = fixture::document().next;
        assert_eq!(next.now.as_deref(), Some("f"));
        assert_eq!(next.cost.as_deref(), Some("what workqueue-cpumask costs."));
    }
}
