//! What a program's real-time threads do wrong, in words that text and page share.

use crate::format;
use attribution::attribute::lint::shape::{Faults, Finding, LintSection, Unused};
use attribution::prio::Prio;
use model::foreign::in_a_line;

/// What was found, in one line.
pub fn account(section: &LintSection) -> String {
    if section.threads == 0 {
        return "no thread was seen to be real-time, so no rule was applied".to_owned();
    }
    let suppressed = section.findings.len() - section.open().count();
    let rest = match suppressed {
        0 => String::new(),
        n => format!(", {n} more suppressed"),
    };
    format!(
        "{} in {}{rest}",
        format::plural(section.open().count() as u64, "finding"),
        format::plural(section.threads, "real-time thread")
    )
}

/// A suppression that suppresses nothing, without its rule.
pub fn unused(one: &Unused) -> String {
    format!("line {} of the suppressions ({}) suppresses nothing here", one.line, in_a_line(&one.thread))
}

/// The thread of a finding, with its priority.
pub fn thread(finding: &Finding) -> String {
    let prio = finding.prio.and_then(|prio| Prio::new(i64::from(prio)).words());
    let prio = prio.map(|prio| format!(" ({prio})")).unwrap_or_default();
    format!("{}[{}]{prio}", in_a_line(&finding.comm), finding.tid)
}

/// Where in the program it was done, where that was recorded.
pub fn callers(finding: &Finding) -> Option<String> {
    finding.callers.as_ref().map(|callers| format!("from {}", in_a_line(callers)))
}

/// What it is, how often and since when, without its thread. `t0_ns`: the beginning of the
/// recording.
pub fn sentence(finding: &Finding, t0_ns: i64) -> String {
    let detail = if finding.detail.is_empty() { String::new() } else { format!(" ({})", finding.detail) };
    let when = match finding.first_ns {
        Some(first_ns) => {
            let since = format::ns(first_ns.saturating_sub(t0_ns).max(0));
            let times = if finding.n == 1 { "once".to_owned() } else { format!("{} times", finding.n) };
            format!(": {times}, first {since} after the start")
        }
        None if finding.n > 1 => format!(": {} times", finding.n),
        None => String::new(),
    };
    let faults = finding.faults.as_ref().map(|faults| of_faults(faults, finding.n)).unwrap_or_default();
    format!("{}{detail}{when}{faults}", finding.rule.what())
}

/// Whether it slept in its page faults, and whether it has locked memory all the same.
fn of_faults(faults: &Faults, n: u64) -> String {
    let longest = format::ns(faults.longest_ns);
    let slept = match (faults.slept, n) {
        (0, _) => String::new(),
        (1, 1) => format!("; it slept {longest} in it, as in a major fault: the page is read from storage"),
        (slept, _) => format!(
            "; in {slept} of them it slept, the longest {longest}, as in major faults: the page is read from storage"
        ),
    };
    let locked = faults.locked_kib.filter(|kib| *kib > 0);
    let locked = locked.map(|kib| format!("; though {} KiB of memory are locked", format::count(kib)));
    slept + &locked.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_faults_in_which_it_slept_are_set_apart_and_locked_memory_is_named() {
        let said = |slept, n, locked_kib| of_faults(&Faults { slept, longest_ns: 3_100_000, locked_kib }, n);
        assert_eq!(said(0, 7, None), "");
        assert_eq!(
            said(1, 1, Some(0)),
            "; it slept 3.100 ms in it, as in a major fault: the page is read from storage"
        );
        assert_eq!(
            said(2, 7, Some(2324)),
            "; in 2 of them it slept, the longest 3.100 ms, as in major faults: the page is read from storage; though 2,324 KiB \
             of memory are locked"
        );
    }
}
