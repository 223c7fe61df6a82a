//! What is ahead: the plan cell by cell, what this boot can run of it, and what each further boot
//! would add.

use super::on::On;
use crate::measure::table::table;
use report::format;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use study::experiment::{Experiment, Ground, Plan, Planned, boot_line, decidable, expected, kernel_name};

/// One line before the first cell.
pub(super) fn ahead(cells: usize, todo: &[&Planned], out: &Path, ground: Option<&Ground>) -> String {
    let can: Vec<&Planned> = todo.iter().copied().filter(|planned| can(planned, ground)).collect();
    let guests = can.iter().any(|planned| planned.boot.kernel.is_some());
    let longer = if guests { " one after the other (guests take longer than their windows)" } else { "" };
    let others = match todo.len() - can.len() {
        0 => String::new(),
        others => format!("; {others} need another boot, kernel or machine"),
    };
    format!(
        "{} of {cells} cells to run, about {}{longer}{others}; results in {}",
        can.len(),
        format::span(expected(&can).as_nanos() as u64),
        out.display()
    )
}

/// Whether the machine as it is meets the cell's needs; assumed for guests and other machines,
/// which are not known yet.
fn can(planned: &Planned, ground: Option<&Ground>) -> bool {
    ground.is_none_or(|ground| planned.needs.unmet(ground).is_none())
}

/// The plan for `--plan`.
pub(super) fn page(experiment: &Experiment, plan: &Plan, cells: &[Planned], out: &Path, on: &On) -> String {
    let ground = on.ground.as_ref();
    let mut page = format!("{}\n{}\n\n", experiment.title, experiment.source);
    let row = |planned: &Planned| {
        let levels: Vec<&str> = planned.cell.factors.values().filter_map(|level| level.as_str()).collect();
        let boot = match (&planned.boot.kernel, can(planned, ground)) {
            (Some(kernel), _) => format!("{kernel} {}", of_lab(experiment, &planned.boot.append)),
            (None, true) if ground.is_some() => "this one".to_owned(),
            (None, true) => "its machine".to_owned(),
            (None, false) => "another".to_owned(),
        };
        vec![
            levels.join(" "),
            (planned.cell.repetition + 1).to_string(),
            boot.trim_end().to_owned(),
            format::ns(planned.takes.as_nanos() as i64),
        ]
    };
    page.push_str(&table(&["cell", "repetition", "boot", "window"], cells.iter().map(row).collect()));
    let boots = plan.boots().keys().filter(|boot| boot.kernel.is_some()).count();
    let all: Vec<&Planned> = cells.iter().collect();
    let _ =
        writeln!(page, "\n{} cells, {boots} boots; {}", cells.len(), ahead(cells.len(), &all, out, ground));
    if let Some(ground) = ground {
        page.push_str(&further(experiment, &all, ground, &on.kernels));
    }
    page.push_str(&statements(experiment, cells));
    page
}

/// What the repetitions can decide of each statement.
fn statements(experiment: &Experiment, cells: &[Planned]) -> String {
    let mut page = String::new();
    let found = decidable(experiment, cells);
    if !found.is_empty() {
        page.push_str("statements:\n");
    }
    for one in found {
        let name = one.statement.unwrap_or_else(|| format!("ours: {}", one.text));
        let condition =
            if one.condition.is_empty() { String::new() } else { format!(" on {}", one.condition) };
        let _ = writeln!(
            page,
            "- {name}{condition}, {} repetitions a group: {}",
            one.repetitions,
            one.limit.words()
        );
    }
    page
}

/// A boot line as guests of the lab get it.
fn of_lab(experiment: &Experiment, words: &str) -> String {
    let smp = experiment.machine.smp.as_deref().unwrap_or("4").parse::<lab::Smp>();
    match smp.ok().and_then(|smp| lab::qemu::partition(smp.cpus())) {
        Some((cpus, housekeeping)) => boot_line(words, cpus, housekeeping),
        None => words.to_owned(),
    }
}

/// What each further boot of this machine would add to the cells that it can run as it stands.
fn further(experiment: &Experiment, cells: &[&Planned], ground: &Ground, kernels: &[String]) -> String {
    let mut by: BTreeMap<String, usize> = BTreeMap::new();
    for what in cells.iter().filter_map(|planned| planned.needs.further(ground)) {
        *by.entry(what).or_default() += 1;
    }
    let mut page = String::new();
    if !by.is_empty() {
        let _ = writeln!(page, "measured CPUs {}; each further boot or machine would add:", ground.cpus);
    }
    let mut by: Vec<(String, usize)> = by.into_iter().collect();
    by.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    for (what, count) in &by {
        let _ = writeln!(page, "- {count} {}: {what}", if *count == 1 { "cell" } else { "cells" });
    }
    let running = kernel_name(&ground.machine);
    let others: Vec<&str> =
        experiment.machine.kernels.iter().filter(|one| !kernels.contains(one)).map(String::as_str).collect();
    if !others.is_empty() && !kernels.is_empty() {
        let each = cells.iter().filter(|one| {
            one.cell.factors.get(study::experiment::KERNEL).and_then(|level| level.as_str()) == Some(&running)
        });
        let _ = writeln!(
            page,
            "each other kernel of the file would add {} cells to the same --out: {}",
            each.count(),
            others.join(", ")
        );
    }
    page
}
