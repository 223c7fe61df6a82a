//! An audit as a page of text: what fails first, the rest as counts.

use super::baseline::Changes;
use crate::folded::folded;
use crate::isolate::boot_line;
use audit::Answer;
use model::fix::{FixFinding, FixState, Only};
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
    kernel(&mut page, audited, all);
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

/// Known interference that this kernel still has: what nothing keeps off first, then what settings
/// of this machine soften, then what concerns another way of isolation than this machine's.
fn kernel(page: &mut String, audited: &Answer, all: bool) {
    if all {
        page.push_str("\nwhat is known of interference and fixes\n");
        audited.fixes.iter().for_each(|fix| {
            let _ = writeln!(page, "{}", known(fix));
        });
        return;
    }
    let in_force = |id: &String| {
        audited.findings.iter().any(|finding| finding.id == *id && finding.state == FindingState::Ok)
    };
    let softened = |fix: &FixFinding| !fix.softened_by.is_empty() && fix.softened_by.iter().all(in_force);
    // In order without being in a partition: the CPUs are isolated since the boot.
    let at_boot = audited.findings.iter().any(|finding| {
        finding.id == "cpuset-partition"
            && finding.state == FindingState::Ok
            && finding.have.as_deref() != Some("isolated")
    });
    let elsewhere = |fix: &FixFinding| fix.only == Some(Only::Partition) && at_boot;
    let has = |fix: &&FixFinding| fix.state == FixState::Unfixed && !fix.interference.is_empty();
    let (apart, here): (Vec<_>, Vec<_>) = audited.fixes.iter().filter(has).partition(|fix| elsewhere(fix));
    let (softened, open): (Vec<_>, Vec<_>) = here.into_iter().partition(|fix| softened(fix));
    if !open.is_empty() {
        page.push_str("\nknown interference of this kernel\n");
    }
    let lines: Vec<String> = open.iter().map(|fix| known(fix)).collect();
    for line in &lines {
        let _ = writeln!(page, "{}", line.replace(EARLIER, ""));
    }
    if lines.iter().any(|line| line.contains(EARLIER)) {
        page.push_str("  (by version, unproven: stable kernels may have such a fix earlier)\n");
    }
    if !softened.is_empty() {
        page.push_str("\nknown interference of this kernel that a setting keeps off or makes rare\n");
    }
    for fix in softened {
        let _ = writeln!(page, "  {}: {} ({})", fix.commit, fix.interference, fix.softened_by.join(", "));
    }
    if !apart.is_empty() {
        let names: Vec<&str> = apart.iter().map(|fix| fix.commit.as_str()).collect();
        let _ = writeln!(
            page,
            "\nknown interference of {}; these CPUs are isolated at boot",
            Only::Partition.words()
        );
        page.push_str(&folded(&format!("  {}", names.join(", ")), "  "));
    }
}

/// What is said once below the list.
const EARLIER: &str = ", and stable kernels may have it earlier";

fn known(fix: &FixFinding) -> String {
    format!("  {}: {} ({}; {})", fix.commit, fix.interference, fix.state.name(), fix.basis)
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
    let of = |state: FindingState, optional: bool| {
        let found = audited.findings.iter().filter(|one| (one.state, one.optional) == (state, optional));
        found.count()
    };
    let states = SECTIONS.iter().filter(|(_, unproven, _)| !unproven).map(|(state, ..)| *state);
    let counted = |optional: bool| {
        let counts = states.clone().map(|state| (of(state, optional), state.name()));
        let counts = counts.filter(|(count, _)| *count > 0);
        counts.map(|(count, name)| format!("{count} {name}")).collect::<Vec<_>>().join(", ")
    };
    let choices = audited.findings.iter().filter(|finding| finding.optional).count();
    let unproven = audited.findings.iter().filter(|finding| finding.unproven).count();
    let of_unknown = if unproven == 0 {
        String::new()
    } else {
        format!("; {unproven} of the unknown are asked for and cannot be proven here")
    };
    format!(
        "\n{}\n{} are wanted: {}{of_unknown}\n{choices} are choices, which fail nothing: {}\n{}\n",
        audited.mechanisms,
        audited.findings.len() - choices,
        counted(false),
        counted(true),
        next(audited)
    )
}

/// What to do: what can be changed without a risk first.
fn next(audited: &Answer) -> String {
    let failed: Vec<_> = audited.findings.iter().filter(|finding| finding.failed()).collect();
    let now = |risky: bool| {
        failed.iter().filter(move |one| (one.state, one.risky) == (FindingState::Fixable, risky))
    };
    let risks: Vec<&str> = now(true).map(|one| one.id.as_str()).collect();
    let cpus = &audited.cpus;
    if now(false).next().is_some() {
        format!("next: stillcore isolate plan --cpus {cpus}")
    } else if !risks.is_empty() {
        format!("next, a risk: stillcore isolate plan --cpus {cpus} --with {}", risks.join(","))
    } else if failed.is_empty() {
        "nothing to change; stillcore assess measures what it comes to".to_owned()
    } else {
        "nothing more that is wanted can be changed now (audit --all has the choices); stillcore assess measures what it comes to".to_owned()
    }
}
