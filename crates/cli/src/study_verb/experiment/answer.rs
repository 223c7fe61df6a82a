//! What came out of an experiment: tables, and what was published beside them.

use super::files::words;
use super::{exposure, figures, loads, page, rows};
use crate::measure::table::table;
use crate::study_verb::experiment::options::AnswerOptions;
use model::store;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;
use study::Cell;
use study::experiment::{
    Apart, Beside, CellResult, CellState, Claimed, Concluded, Conclusion, Experiment, Judgement, Sheet,
    ablated, apart, conclude, sheets,
};

/// Schema of `--json` and of `study.json`.
pub(crate) const SCHEMA: &str = "stillcore.study-run/2";

/// Writes the conclusions and prints them.
pub(super) fn write_and_print(
    args: &AnswerOptions,
    experiment: &Experiment,
    results: &[(Cell, CellResult)],
    out: &Path,
) -> anyhow::Result<u8> {
    let apart = apart(experiment, results);
    if experiment.conclusion == Some(Conclusion::Exposure) {
        return exposure::write_and_print(args, experiment, &apart, out);
    }
    let results = apart.results.as_slice();
    let concluded = conclude(experiment, &super::files::published()?, results);
    let sheets = sheets(experiment, &concluded);
    let ablated = ablated(experiment, &concluded, results);
    let worth: Vec<String> = ablated.iter().flat_map(study::experiment::Ablated::sentences).collect();
    let mut object = json!({
        "schema": SCHEMA,
        "name": experiment.name.get_ref(),
        "title": experiment.title,
        "source": experiment.source,
        "notes": experiment.notes,
        "scale": args.scale,
        "seed": experiment.seed,
        "cells": args.cells,
        "results": results.len(),
        "tool_version": env!("CARGO_PKG_VERSION"),
        "groups": concluded.groups,
        "published": concluded.published,
        "claims": concluded.claims,
        "ablation": ablated,
    });
    if !apart.settings.is_empty() {
        object["settings"] = json!(apart.settings);
    }
    let load = loads::sentences(results);
    if !load.is_empty() {
        object["load"] = json!(load);
    }
    let notes = [notes(experiment, &concluded), settings(&apart), load].concat();
    store::write_json(&out.join("study.json"), &object)?;
    store::write_whole(&out.join("table.parquet"), &rows::parquet(experiment, args.scale, results)?)?;
    store::write_whole(&out.join("study.csv"), csv(&concluded).as_bytes())?;
    let drawn = figures::draw(experiment, &concluded, results, out)?;
    let parts = page::Parts { sheets: &sheets, notes: &notes, worth: &worth, figures: drawn, out };
    let page = page::page(args, experiment, &concluded, parts);
    let sentence = report::study_sentence(&page);
    let said = Said { sentence: &sentence, sheets: &sheets, worth: &worth, notes: &notes };
    store::write_whole(
        &out.join("study.md"),
        markdown(experiment, &concluded, &said, args.scale).as_bytes(),
    )?;
    store::write_whole(&out.join("study.html"), report::study_page(&page)?.as_bytes())?;
    if args.json {
        println!("{object}");
    } else if !args.quiet {
        print!("{}", text(experiment, &concluded, &said));
        if results.len() < args.cells {
            println!("note: {} of {} cells have a result", results.len(), args.cells);
        }
        println!("\n{}, with figures {}", out.join("study.md").display(), out.join("study.html").display());
        if let Some(next) = &page.next {
            println!("next: {}\n  {}", next.command, next.why);
        }
    }
    let ran = || results.iter().filter(|(_, result)| result.state != CellState::Needs);
    if ran().next().is_some() && ran().all(|(_, result)| result.state == CellState::Failed) {
        anyhow::bail!("every cell that was run failed; {} has the reasons", out.join("study.md").display());
    }
    Ok(0)
}

/// What the settings of results are, where there are several, and what was put together.
fn settings(apart: &Apart) -> Vec<String> {
    let several = (!apart.settings.is_empty()).then(|| {
        "results of different kernels, boot lines, machines or measured CPUs are kept apart: factor setting; --cpus names the CPUs to measure"
            .to_owned()
    });
    several.into_iter().chain(apart.settings.iter().cloned()).chain(apart.notes.iter().cloned()).collect()
}

/// What an answer says besides its numbers and statements.
struct Said<'a> {
    /// The verdict.
    sentence: &'a str,
    sheets: &'a [Sheet],
    worth: &'a [String],
    notes: &'a [String],
}

fn text(experiment: &Experiment, concluded: &Concluded, said: &Said) -> String {
    let mut page = format!("{}\n{}\n\n{}\n", experiment.title, experiment.source, said.sentence);
    for sheet in said.sheets {
        let head: Vec<&str> = sheet.head.iter().map(String::as_str).collect();
        let _ = write!(page, "\n{}\n{}", sheet.title, table(&head, sheet.rows.clone()));
    }
    page.push_str("median [lowest, highest repetition] (published); n/a: no cell of it could be run\n");
    for line in beside(concluded).iter().chain(said.worth) {
        let _ = writeln!(page, "- {line}");
    }
    for note in said.notes {
        let _ = writeln!(page, "note: {note}");
    }
    page
}

/// One sentence per published number and per statement.
fn beside(concluded: &Concluded) -> Vec<String> {
    let levels = |at: &BTreeMap<String, String>| at.values().cloned().collect::<Vec<_>>().join(" ");
    let number = |one: &Beside| {
        let measured = match (one.judgement, page::measured(&one.measured)) {
            (Judgement::NotApplicable, _) | (_, None) => String::new(),
            (_, Some(median)) => format!(", here {median}"),
        };
        let place = levels(&one.at);
        let place = if place.is_empty() { String::new() } else { format!(" ({place})") };
        format!(
            "{}{place}: {} published for {}{measured}: {}: {}",
            one.value,
            one.published,
            one.system,
            one.judgement.words(),
            one.why
        )
    };
    let published = concluded.published.iter().map(number);
    let claim = |claim: &Claimed| {
        format!("{}: {}{}: {}", words(claim), claim.judgement.words(), on(&claim.condition), claim.why)
    };
    // What papers state, and then what this file asks besides.
    let (papers, ours): (Vec<&Claimed>, Vec<&Claimed>) =
        concluded.claims.iter().partition(|claim| claim.statement.is_some());
    published.chain(papers.into_iter().chain(ours).map(claim)).collect()
}

/// A condition behind a verdict.
fn on(condition: &str) -> String {
    if condition.is_empty() { String::new() } else { format!(" on {condition}") }
}

/// The file's notes, and why cells have no values.
fn notes(experiment: &Experiment, concluded: &Concluded) -> Vec<String> {
    let mut notes = experiment.notes.clone();
    let mut reasons: Vec<(String, Vec<String>)> = Vec::new();
    for group in &concluded.groups {
        let levels = in_words(&group.levels);
        let absent = group.absent.iter().map(|(value, why)| format!("{value}: {why}"));
        for why in group.reasons.iter().cloned().chain(absent) {
            match reasons.iter_mut().find(|(known, _)| *known == why) {
                Some((_, places)) => places.push(levels.clone()),
                None => reasons.push((why, vec![levels.clone()])),
            }
        }
    }
    notes.extend(
        reasons.iter().map(|(why, places)| format!("{}: {why}", some(places, concluded.groups.len()))),
    );
    if concluded.groups.iter().any(|group| group.emulated) {
        notes.push(page::EMULATED.to_owned());
    }
    notes
}

/// Levels of a combination, with the names of their factors where two are called the same: `domain
/// on, irqs off`.
fn in_words(levels: &BTreeMap<String, String>) -> String {
    let unique: BTreeSet<&String> = levels.values().collect();
    if unique.len() == levels.len() {
        return levels.values().cloned().collect::<Vec<_>>().join(" ");
    }
    levels.iter().map(|(name, level)| format!("{name} {level}")).collect::<Vec<_>>().join(", ")
}

/// Combinations of levels, the first few by name.
fn some(places: &[String], all: usize) -> String {
    match places.len() {
        1..=3 => places.join(", "),
        count if count == all => format!("all {all} combinations"),
        count => format!("{count} of {all} combinations ({}, …)", places[..2].join(", ")),
    }
}

fn markdown(experiment: &Experiment, concluded: &Concluded, said: &Said, scale: f64) -> String {
    let mut page = format!("# {}\n\n{}\n\n{}\n\n", experiment.title, said.sentence, experiment.source);
    let mut places: Vec<&String> = concluded.groups.iter().flat_map(|group| &group.places).collect();
    places.sort();
    places.dedup();
    let places: Vec<String> = places.into_iter().cloned().collect();
    let _ = writeln!(
        page,
        "`stillcore study run {} --scale {scale}`, stillcore {}, on {}\n",
        experiment.name.get_ref(),
        env!("CARGO_PKG_VERSION"),
        places.join("; ")
    );
    for sheet in said.sheets {
        let row = |cells: &[String]| format!("| {} |\n", cells.join(" | ").replace('\n', " "));
        let _ = write!(page, "## {}\n\n{}", sheet.title, row(&sheet.head));
        let _ = writeln!(page, "|{}", "---|".repeat(sheet.head.len()));
        sheet.rows.iter().for_each(|cells| page.push_str(&row(cells)));
        page.push('\n');
    }
    page.push_str("Median [lowest, highest repetition] (published).\n");
    let lines = beside(concluded);
    if !lines.is_empty() {
        page.push_str("\n## Beside what was published\n\n");
        lines.iter().for_each(|line| _ = writeln!(page, "- {line}"));
    }
    if !said.worth.is_empty() {
        page.push_str("\n## What each is worth\n\n");
        said.worth.iter().for_each(|line| _ = writeln!(page, "- {line}"));
    }
    if !said.notes.is_empty() {
        page.push_str("\n## Notes\n\n");
        said.notes.iter().for_each(|note| _ = writeln!(page, "- {note}"));
    }
    page
}

/// One line per combination and value.
fn csv(concluded: &Concluded) -> String {
    let quoted = |text: &str| {
        if text.contains([',', '"', '\n']) {
            format!("\"{}\"", text.replace('"', "\"\""))
        } else {
            text.to_owned()
        }
    };
    let mut page = String::new();
    let factors: Vec<&String> =
        concluded.groups.iter().flat_map(|group| group.levels.keys()).fold(Vec::new(), |mut all, name| {
            if !all.contains(&name) {
                all.push(name);
            }
            all
        });
    factors.iter().for_each(|name| _ = write!(page, "{},", quoted(name)));
    page.push_str("value,n,median,low,high\n");
    let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    for group in &concluded.groups {
        let lists = group.lists.iter().flat_map(|(list, figures)| {
            figures.iter().map(move |(name, summary)| (format!("{list}/{name}"), summary))
        });
        let values = group.values.iter().map(|(value, summary)| (value.clone(), summary));
        for (value, summary) in values.chain(lists) {
            for name in &factors {
                let _ = write!(page, "{},", quoted(group.levels.get(*name).map_or("", String::as_str)));
            }
            let [median, low, high] = [summary.median, summary.low, summary.high].map(number);
            let _ = writeln!(page, "{},{},{median},{low},{high}", quoted(&value), summary.n);
        }
    }
    page
}
