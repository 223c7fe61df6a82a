//! What if, in words and tables: bounds now and then, and of another machine what was measured
//! here and there.

use super::document::{MachineFacts, OtherMachine, WhatIf};
use super::words::{in_time, time};
use crate::measure::table::table;
use analysis::task_model::machine::Replaced;
use analysis::task_model::shape::Interference;
use analysis::task_model::verdict::{Bound, Guarantee};
use attribution::jobs::shape::Dispatches;
use report::format::count;
use report::task_model::{named, of_guarantee};
use std::fmt::Write;
use std::path::Path;

/// What is, and what would be. `source`: the recording.
pub(super) fn text(now: &Guarantee, what_if: &WhatIf, source: &Path) -> String {
    let Some(then) = &what_if.guarantee else {
        return "what if: no thread could be analysed then\n\n".to_owned();
    };
    let mut text = side_by_side(now, then);
    if let Some(machine) = &what_if.machine {
        text.push_str(&other_machine(machine, source));
    }
    for assumed in &what_if.assumed {
        let _ = writeln!(text, "assumed: {assumed}");
    }
    text + "\n"
}

fn side_by_side(now: &Guarantee, then: &Guarantee) -> String {
    let head = ["what if", "CPU", "bound now", "then", "deadline now", "then", "in time then"];
    let none = || "-".to_owned();
    let bound = |one: &Bound| one.bound_ns.map_or_else(|| "none".to_owned(), time);
    let deadline = |one: &Bound| one.deadline_ns.map_or_else(none, time);
    let of = |guarantee: &Guarantee, pid: i32| guarantee.bounds.iter().find(|one| one.pid == pid).cloned();
    let mut rows: Vec<Vec<String>> = then
        .bounds
        .iter()
        .map(|one| {
            let before = of(now, one.pid);
            vec![
                named(&one.comm, one.pid),
                one.cpu.to_string(),
                before.as_ref().map_or_else(none, bound),
                bound(one),
                before.as_ref().map_or_else(none, deadline),
                deadline(one),
                in_time(one).to_owned(),
            ]
        })
        .collect();
    let gone = now.bounds.iter().filter(|one| of(then, one.pid).is_none());
    rows.extend(gone.map(|one| {
        let name = format!("{} (not there)", named(&one.comm, one.pid));
        vec![name, one.cpu.to_string(), bound(one), none(), deadline(one), none(), none()]
    }));
    format!("{}now:  {}\nthen: {}\n", table(&head, rows), of_guarantee(now), of_guarantee(then))
}

/// What was measured of each CPU, here and there, and of which machines that is.
fn other_machine(machine: &OtherMachine, source: &Path) -> String {
    let head = ["CPU", "measured", "dispatch", "wake-ups", "timer late", "timers", "interrupts", "urgent"];
    let rows = machine.cpus.iter().flat_map(of_cpu).collect();
    let mut text = table(&head, rows);
    text.push_str("the longest of all dispatches and timers; interrupts: burst and share; urgent: share\n");
    for line in machines(machine, source) {
        let _ = writeln!(text, "{line}");
    }
    text
}

/// Of which machines the two are, a sentence each.
pub(super) fn machines(machine: &OtherMachine, source: &Path) -> [String; 2] {
    [facts_text("now", &machine.now, source), facts_text("then", &machine.then, &machine.run)]
}

fn of_cpu(cpu: &Replaced) -> [Vec<String>; 2] {
    let row = |of: String, seen: Option<&Dispatches>, competes: &[Interference]| {
        let none = || "-".to_owned();
        let interrupts = competes.iter().find(|one| one.prio.is_none());
        let urgent: f64 = competes.iter().filter(|one| one.prio.is_some()).map(|one| one.demand.rate).sum();
        vec![
            cpu.cpu.to_string(),
            of,
            seen.map_or_else(none, |one| time(one.longest_ns)),
            seen.map_or_else(none, |one| count(one.n)),
            seen.map_or_else(none, |one| time(one.late_ns)),
            seen.map_or_else(none, |one| count(one.timers)),
            interrupts.map_or_else(none, |one| {
                format!("{} and {:.2} %", time(one.demand.burst_ns), one.demand.rate * 100.0)
            }),
            if urgent > 0.0 { format!("{:.2} %", urgent * 100.0) } else { none() },
        ]
    };
    [
        row("now".to_owned(), cpu.now.as_ref(), &cpu.competes_now),
        row(format!("then, its CPU {}", cpu.theirs), Some(&cpu.then), &cpu.competes_then),
    ]
}

fn facts_text(when: &str, facts: &MachineFacts, run: &Path) -> String {
    let MachineFacts { kernel, realtime, boot_line, isolated, nohz_full, processor } = facts;
    let preempt = if *realtime { ", PREEMPT_RT" } else { "" };
    let set = |cpus: &model::Cpus| if cpus.is_empty() { "none".to_owned() } else { cpus.to_string() };
    format!(
        "{when} ({}): {kernel}{preempt}; {}; isolated CPUs: {}; nohz_full: {}; boot line: {boot_line}",
        run.display(),
        processor.as_deref().unwrap_or("processor not known"),
        set(isolated),
        set(nohz_full),
    )
}
