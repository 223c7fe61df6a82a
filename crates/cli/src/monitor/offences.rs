//! `monitor offences`: who on other CPUs caused what ran on the watched ones.

use super::Kept;
use super::store::STATUS;
use attribution::attribute::coverage::shows_callers;
use clap::Args;
use ftrace::Formats;
use model::monitor::{Offence, OffenceSum, Status};
use model::store;
use report::format;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Arguments of `monitor offences`.
#[derive(Debug, Args)]
pub(crate) struct OffencesArgs {
    /// Where it keeps what it knows.
    #[command(flatten)]
    kept: Kept,
    /// List at most so many, the most frequent.
    #[arg(long, value_name = "N", default_value_t = 20)]
    top: usize,
    /// Print one JSON object per caller and kind of call.
    #[arg(long)]
    json: bool,
}

/// What is said where the kernel does not show who calls other CPUs.
pub(super) fn limit(recorded: &Formats) -> Option<String> {
    let text = "this kernel does not show which task calls another CPU: no such caller is among the offences";
    (!shows_callers(|name| recorded.by_name(name).is_some())).then(|| text.to_owned())
}

/// Lists them.
pub(crate) fn run(args: &OffencesArgs) -> anyhow::Result<u8> {
    let status: Status = store::read_json(&args.kept.path()?.join(STATUS))?;
    if !args.json {
        print!("{}", page(&status, args.top));
        return Ok(0);
    }
    let mut text = String::new();
    for one in status.offences.iter().take(args.top) {
        text += &(serde_json::to_string(one)? + "\n");
    }
    print!("{text}");
    Ok(0)
}

/// How much of it there was, in a sentence.
pub(super) fn sentence(status: &Status) -> String {
    let (count, ns) = total(&status.offence_sums);
    let watched = format::span(status.watched_ns);
    match count {
        0 if unseen(status).is_some() => {
            let cpus = &status.cpus;
            format!("whether tasks on other CPUs caused anything on CPUs {cpus} in {watched} is not known")
        }
        0 => {
            format!("no task on another CPU was seen to cause anything on CPUs {} in {watched}", status.cpus)
        }
        count => format!(
            "tasks on other CPUs caused {} events on CPUs {} in {watched}, {} of their time",
            format::count(count),
            status.cpus,
            format::ns(ns as i64)
        ),
    }
}

/// What may have been caused without being listed.
fn unseen(status: &Status) -> Option<String> {
    let mut all = Vec::new();
    if status.offences_unnamed > 0 {
        all.push(format!(
            "who sent {} interrupts with a function to run",
            format::count(status.offences_unnamed)
        ));
    }
    if status.lost_events > 0 {
        all.push(format!("what {} lost events were", format::count(status.lost_events)));
    }
    (!all.is_empty()).then(|| all.join("; "))
}

fn total(sums: &[OffenceSum]) -> (u64, u64) {
    (sums.iter().map(|sum| sum.count).sum(), sums.iter().map(|sum| sum.ns).sum())
}

fn page(status: &Status, top: usize) -> String {
    let mut text = sentence(status) + "\n";
    let shown = &status.offences[..top.min(status.offences.len())];
    if !shown.is_empty() {
        let _ = writeln!(
            text,
            "{:>12} {:>10}  {:<8} who, and what it called: what that ran there",
            "events", "mean", "CPUs"
        );
    }
    for one in shown {
        let mean = format::ns((one.ns / one.count.max(1)) as i64);
        let cpus = one.cpus.to_string();
        let _ = writeln!(text, "{:>12} {mean:>10}  {cpus:<8} {}", format::count(one.count), words(one));
        let _ = writeln!(text, "{:>33} first {}, last {}", "", one.since, one.last);
    }
    let listed: u64 = shown.iter().map(|one| one.count).sum();
    let rest = total(&status.offence_sums).0.saturating_sub(listed);
    if rest > 0 {
        let _ = writeln!(text, "{:>12} {:>10}  {:<8} of others", format::count(rest), "", "");
    }
    let classes: BTreeSet<&str> = shown.iter().map(|one| one.class.name()).collect();
    for class in classes {
        let _ = writeln!(text, "against {class}: stillcore explain {class}");
    }
    if let Some(unseen) = unseen(status) {
        let _ = writeln!(text, "not known: {unseen}");
    }
    status.limits.iter().for_each(|limit| {
        let _ = writeln!(text, "note: {limit}");
    });
    text
}

fn words(one: &Offence) -> String {
    let group = one.group.as_ref().map(|group| format!(" ({group})")).unwrap_or_default();
    let call = one.call.as_deref().unwrap_or("by what call is not known");
    let known = if one.confidence == "exact" { "" } else { ", known by order in time" };
    format!("{}{group}, {call}: {} {}{known}", one.who, one.class.name(), one.what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn status(offences: &serde_json::Value, sums: &serde_json::Value) -> Status {
        serde_json::from_value(json!({
            "schema": "", "version": "", "pid": 7, "began": "", "at": "", "watched_ns": 61_500_000_000u64,
            "cpus": "2,3", "threads_watched": "", "limit_ns": 1, "interference_limit_ns": null, "threads": [],
            "interference": [], "offences": offences, "offence_sums": sums, "breaches": [], "last": null,
            "kept_bytes": 0, "quota_bytes": 0, "given_up": 0, "lost_events": 0, "unjudged": 0, "drifted": null,
            "steal_ns": [], "limits": [],
            "cost": { "process_ns": 1, "children_ns": 2, "events": 6, "event_ns": 90.5, "rss_kib": 1 },
        }))
        .unwrap()
    }

    fn offence(who: &str, count: u64) -> serde_json::Value {
        json!({ "class": "ipi.call", "what": "flush_tlb_func", "who": who, "group": "cron.service",
                "call": "system call munmap", "confidence": "exact", "cpus": "3", "count": count, "ns": 1000 * count,
                "since": "2026-01-02T03:04:05Z", "last": "2026-01-02T03:05:05Z" })
    }

    #[test]
    fn who_called_what_is_in_a_line_and_the_rest_is_counted() {
        let offences = json!([offence("bash", 1_200), offence("cat", 3)]);
        let page =
            page(&status(&offences, &json!([{ "class": "ipi.call", "count": 1_210, "ns": 1_210_000 }])), 1);
        let expected = "\
tasks on other CPUs caused 1,210 events on CPUs 2,3 in 61.5 s, 1.210 ms of their time
      events       mean  CPUs     who, and what it called: what that ran there
       1,200   1.000 us  3        bash (cron.service), system call munmap: ipi.call flush_tlb_func
                                  first 2026-01-02T03:04:05Z, last 2026-01-02T03:05:05Z
          10                      of others
against ipi.call: stillcore explain ipi.call
";
        assert_eq!(page, expected);
    }

    #[test]
    fn what_is_not_known_is_not_called_none_nor_sure() {
        let mut nothing = status(&json!([]), &json!([]));
        nothing.offences_unnamed = 7;
        let expected = "\
whether tasks on other CPUs caused anything on CPUs 2,3 in 61.5 s is not known
not known: who sent 7 interrupts with a function to run
";
        assert_eq!(page(&nothing, 20), expected);
        nothing.offences_unnamed = 0;
        nothing.lost_events = 3;
        assert!(page(&nothing, 20).ends_with("is not known\nnot known: what 3 lost events were\n"));
        let mut one = offence("bash", 2);
        one["confidence"] = "by-order".into();
        let page = page(&status(&json!([one]), &json!([{ "class": "ipi.call", "count": 2, "ns": 9 }])), 20);
        assert!(page.contains("ipi.call flush_tlb_func, known by order in time\n"), "{page}");
    }

    #[test]
    fn none_is_said_with_the_time_that_it_is_of() {
        let page = page(&status(&json!([]), &json!([])), 20);
        assert_eq!(page, "no task on another CPU was seen to cause anything on CPUs 2,3 in 61.5 s\n");
    }
}
