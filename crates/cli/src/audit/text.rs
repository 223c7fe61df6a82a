//! An audit as a page of text: what fails first, the rest as counts.

use super::baseline::Changes;
use crate::isolate::boot_line;
use audit::Answer;
use model::fix::{FixFinding, FixState};
use model::{Finding, FindingState};
use std::fmt::Write;

/// Sections, in this order: state, whether nothing shows it at work, title.
const SECTIONS: [(FindingState, bool, &str); 7] = [
    (FindingState::Fixable, false, "can be changed now"),
    (FindingState::Boot, false, "needs another boot"),
    (FindingState::Immovable, false, "cannot be moved"),
    (FindingState::Unknown, false, "unknown"),
    (FindingState::Unknown, true, "asked; cannot be proven here"),
    (FindingState::Ok, false, "as isolation wants"),
    (FindingState::NotApplicable, false, "not applicable"),
];

/// The page.
pub(crate) fn page(audited: &Answer, all: bool, changes: Option<&Changes>) -> String {
    let mut page = head(audited);
    for (state, unproven, title) in SECTIONS {
        let quiet = matches!(state, FindingState::Ok | FindingState::NotApplicable);
        let of_state = |finding: &&Finding| {
            (finding.state, finding.unproven) == (state, unproven) && (all || !finding.optional && !quiet)
        };
        let mut found = audited.findings.iter().filter(of_state).peekable();
        if found.peek().is_some() {
            let _ = write!(page, "\n{title}\n");
        }
        found.for_each(|finding| one(&mut page, finding));
    }
    either_way(&mut page, &audited.findings);
    let line = boot_line::text(&audited.boot_line);
    if !line.is_empty() {
        let _ = write!(page, "\nthe next boot\n{line}");
    }
    kernel(&mut page, &audited.fixes, all);
    if let Some(changes) = changes {
        compared(&mut page, changes);
    }
    page.push_str(&tail(audited));
    page
}

fn head(audited: &Answer) -> String {
    let machine = &audited.machine;
    let guest = machine.hypervisor.as_ref().map_or(String::new(), |name| {
        format!("; a virtual machine ({name}), whose host can take any CPU away")
    });
    format!(
        "audit of CPUs {} for stillness; housekeeping on {}\nLinux {} {}, {}{guest}\n",
        audited.cpus,
        audited.housekeeping,
        machine.kernel.release,
        machine.kernel.arch,
        machine.cpu_model.as_deref().unwrap_or("processor unknown")
    )
}

fn one(page: &mut String, finding: &Finding) {
    let choice = if finding.optional { " (a choice)" } else { "" };
    let _ = writeln!(page, "  {}{choice}: {}", finding.id, finding.reason);
    if !matches!(finding.state, FindingState::Fixable | FindingState::Boot) {
        return;
    }
    if let Some(remedy) = &finding.remedy {
        let shown: String = remedy.chars().take(300).collect();
        let cut = if shown.len() < remedy.len() { " …" } else { "" };
        let _ = writeln!(page, "      do: {shown}{cut}");
    }
    if let Some(caveat) = &finding.caveat {
        let _ = writeln!(page, "      but: {caveat}");
    }
    if let Some(cost) = &finding.cost {
        let _ = writeln!(page, "      costs: {cost}");
    }
}

/// What is in order as it is and could as well be otherwise: who has pinned a task to an isolated
/// CPU knows why, and the field does not agree on some settings.
fn either_way(page: &mut String, findings: &[Finding]) {
    let open = findings.iter().filter(|finding| finding.state == FindingState::Ok);
    let mut open = open.filter_map(|finding| Some((finding, finding.otherwise.as_ref()?))).peekable();
    if open.peek().is_some() {
        page.push_str("\nin order, unless you know better\n");
    }
    for (finding, otherwise) in open {
        let _ = writeln!(page, "  {}: {}\n      if not: {otherwise}", finding.id, finding.reason);
    }
}

/// Known interference that this kernel still has.
fn kernel(page: &mut String, fixes: &[FixFinding], all: bool) {
    let has = |fix: &&FixFinding| all || (fix.state == FixState::Unfixed && !fix.interference.is_empty());
    let mut known = fixes.iter().filter(has).peekable();
    if known.peek().is_some() {
        page.push_str("\nknown interference of this kernel\n");
    }
    for fix in known {
        let _ =
            writeln!(page, "  {}: {} ({}; {})", fix.commit, fix.interference, fix.state.name(), fix.basis);
    }
}

fn compared(page: &mut String, changes: &Changes) {
    page.push_str("\nagainst the baseline\n");
    for (what, lines) in [
        ("worse", &changes.worse),
        ("better", &changes.better),
        ("new", &changes.new),
        ("gone", &changes.gone),
    ] {
        lines.iter().for_each(|line| {
            let _ = writeln!(page, "  {what}: {line}");
        });
    }
    if *changes == Changes::default() {
        page.push_str("  nothing changed\n");
    }
}

fn tail(audited: &Answer) -> String {
    let counts: Vec<_> = audited.counts.iter().map(|(state, count)| format!("{count} {state}")).collect();
    let choices = audited.findings.iter().filter(|finding| finding.optional).count();
    let unproven = audited.findings.iter().filter(|finding| finding.unproven).count();
    let of_unknown = if unproven == 0 {
        String::new()
    } else {
        format!("; {unproven} of the unknown are asked for and cannot be proven here")
    };
    let failed = audited.findings.iter().filter(|finding| finding.failed()).count();
    let next = if failed == 0 {
        "nothing to change; stillcore assess measures what it comes to".to_owned()
    } else {
        format!("next: stillcore isolate plan --cpus {}", audited.cpus)
    };
    format!(
        "\n{}\nof them {}{of_unknown}; {choices} of them are choices; {failed} fail\n{next}\n",
        audited.mechanisms,
        counts.join(", ")
    )
}
