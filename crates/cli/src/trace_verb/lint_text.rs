//! What real-time threads do wrong, in words.

use attribution::attribute::watch::WatchSection;
use report::lint;
use std::fmt::Write;

/// Findings that are printed.
const FINDINGS: usize = 40;

/// Everything about mistakes; empty where nobody asked.
pub(super) fn text(section: &WatchSection) -> String {
    let Some(found) = &section.lint else { return String::new() };
    let mut text = format!("lint: {}\n", lint::account(found));
    let open: Vec<_> = found.open().collect();
    for (at, finding) in open.iter().take(FINDINGS).enumerate() {
        let _ = writeln!(
            text,
            "  {:<15} {}: {}",
            finding.rule.name(),
            lint::thread(finding),
            lint::sentence(finding, section.t0_ns)
        );
        if let Some(callers) = lint::callers(finding) {
            let _ = writeln!(text, "  {:<15} {callers}", "");
        }
        // Once for all findings of a rule, which stand together.
        if open.get(at + 1).is_none_or(|next| next.rule != finding.rule) || at + 1 == FINDINGS {
            let _ = writeln!(text, "  {:<15} remedy: {}", "", finding.rule.remedy());
        }
    }
    if open.len() > FINDINGS {
        let _ = writeln!(text, "and {} more findings (--json lists all)", open.len() - FINDINGS);
    }
    for one in &found.not_applied {
        let _ = writeln!(text, "  {:<15} not applicable: {}", one.rule.name(), one.why);
    }
    for one in &found.unused {
        let _ = writeln!(text, "  {:<15} {}", one.rule.name(), lint::unused(one));
    }
    text + "\n"
}
