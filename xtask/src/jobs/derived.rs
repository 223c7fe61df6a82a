//! Rows that follow from the JSON of studies: `study.json` of experiments, `curves.json` of
//! schedulability, `matrix.json` of kernels.

use std::path::Path;

use anyhow::{Context, Result};
use result::Row;
use serde::Deserialize;
use serde_json::Value;

/// The shape of a file.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Source {
    /// `stillcore.study-run`: a value a combination of levels, published numbers beside.
    Study,
    /// `sched study`: shares along an axis, areas, paired differences.
    Curves,
    /// `lab matrix`: events per operation by kernel and profile.
    Matrix,
    /// `stillcore.study-replicate`: the statements of papers.
    Papers,
}

/// Conditions and rows of a file; `prefix` is in front of each row's name.
pub(super) fn read(from: Source, path: &Path, prefix: &str) -> Result<(Vec<String>, Vec<Row>)> {
    let text = std::fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
    let json: Value = serde_json::from_str(&text).with_context(|| format!("parse {}", path.display()))?;
    let (notes, mut rows) = match from {
        Source::Study => study(&json),
        Source::Curves => curves(&json),
        Source::Matrix => matrix(&json),
        Source::Papers => papers(&json),
    };
    anyhow::ensure!(!rows.is_empty(), "{}: no rows; expected the JSON of a {from:?}", path.display());
    rows.iter_mut().for_each(|row| row.what.insert_str(0, prefix));
    Ok((notes, rows))
}

fn list<'a>(json: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    json[key].as_array().into_iter().flatten()
}

fn text<'a>(json: &'a Value, key: &str) -> &'a str {
    json[key].as_str().unwrap_or_default()
}

/// Levels in one string, the kernel first.
fn levels(of: &Value) -> String {
    let all = of.as_object().into_iter().flatten();
    let (kernel, rest): (Vec<_>, Vec<_>) = all.partition(|(factor, _)| *factor == "kernel");
    let words: Vec<&str> = kernel.into_iter().chain(rest).filter_map(|(_, level)| level.as_str()).collect();
    words.join(" ")
}

/// The name of a row: what it was measured on, a colon, what was measured.
fn name(on: &str, what: &str) -> String {
    if on.is_empty() { what.to_owned() } else { format!("{on}: {what}") }
}

fn study(json: &Value) -> (Vec<String>, Vec<Row>) {
    let mut rows = Vec::new();
    for group in list(json, "groups") {
        let on = levels(&group["levels"]);
        for (value, summary) in group["values"].as_object().into_iter().flatten() {
            let Some(median) = summary["median"].as_f64() else { continue };
            let mut row = Row::new(name(&on, value), median, "").n(summary["n"].as_u64().unwrap_or(0));
            if let (Some(low), Some(high)) = (summary["low"].as_f64(), summary["high"].as_f64()) {
                row = row.between(low, high);
            }
            let matches = |one: &&Value| {
                let mut at = one["at"].as_object().into_iter().flatten();
                text(one, "value") == value && at.all(|(factor, level)| group["levels"][factor] == *level)
            };
            if let Some(one) = list(json, "published").find(matches) {
                let published = one["published"].as_f64().unwrap_or(f64::NAN);
                row = row.beside(format!("published, {}", text(one, "system")), published).why(format!(
                    "{}: {}",
                    text(one, "judgement"),
                    text(one, "why")
                ));
            }
            rows.push(row);
        }
    }
    rows.extend(list(json, "claims").map(claimed));
    let sum = |key: &str| list(json, "groups").filter_map(|group| group[key].as_u64()).sum::<u64>();
    let (cells, ok) = (sum("cells"), sum("ok"));
    rows.push(Row::new("cells with values", ok as f64, "").n(cells));
    for judgement in ["agrees", "differs", "cannot-be-told", "not-comparable", "not-applicable"] {
        let all = list(json, "published").chain(list(json, "claims"));
        let n = all.filter(|one| text(one, "judgement") == judgement).count();
        if n > 0 {
            rows.push(Row::new(format!("published numbers and statements: {judgement}"), n as f64, ""));
        }
    }
    let scale = json["scale"].as_f64().unwrap_or(1.0);
    let note = format!("{}: {}, scale {scale}", text(json, "name"), text(json, "title"));
    let repetitions =
        "Intervals are from the lowest to the highest repetition, values their median.".to_owned();
    let settings = list(json, "settings").filter_map(|one| one.as_str().map(str::to_owned));
    ([note, repetitions].into_iter().chain(settings).collect(), rows)
}

/// A statement on one kernel: 1 where it holds, with the repetitions of the smallest group.
fn claimed(claim: &Value) -> Row {
    let statement = claim["statement"].as_str().unwrap_or_else(|| text(claim, "text"));
    let on = text(claim, "condition");
    let what = if on.is_empty() { statement.to_owned() } else { format!("{statement} on {on}") };
    let holds = text(claim, "judgement") == "agrees";
    let n = list(claim, "figures").filter_map(|group| group["n"].as_u64()).min();
    let why = format!("{}: {}", text(claim, "judgement"), text(claim, "why"));
    Row::new(format!("statement: {what}"), f64::from(u8::from(holds)), "").n(n.unwrap_or(0)).why(why)
}

/// Statements of papers: 1 where one is decided, with its answer; how many are, by paper.
fn papers(json: &Value) -> (Vec<String>, Vec<Row>) {
    let mut rows = Vec::new();
    for (paper, tally) in json["papers"].as_object().into_iter().flatten() {
        for what in ["decided", "by_own_numbers", "not_run", "open"] {
            let value = tally[what].as_u64().unwrap_or(0) as f64;
            let row = Row::new(format!("{paper}: {}", what.replace('_', " ")), value, "");
            rows.push(row.n(tally["all"].as_u64().unwrap_or(0)));
        }
    }
    for statement in list(json, "statements") {
        let verdict = |one: &Value| {
            let on = text(one, "condition");
            let on = if on.is_empty() { String::new() } else { format!(" on {on}") };
            format!("{}{on}: {}", text(one, "word"), text(one, "why"))
        };
        let open = statement["why_open"].as_str().map(str::to_owned);
        let why: Vec<String> = list(statement, "verdicts").map(verdict).chain(open).collect();
        let what =
            format!("{} ({}): {}", text(statement, "id"), text(statement, "where"), text(statement, "quote"));
        let decided = statement["decided"] == true;
        rows.push(Row::new(what, f64::from(u8::from(decided)), "").why(why.join("; ")));
    }
    let hours = json["spent_s"].as_f64().unwrap_or(0.0) / 3600.0;
    let note = format!("scale {}, {hours:.1} hours of experiments", json["scale"]);
    let notes = list(json, "notes").filter_map(|one| one.as_str().map(str::to_owned));
    ([note].into_iter().chain(notes).collect(), rows)
}

/// Shares in percent with Wilson's interval; points where a share is 0 or 100 % of all sets are
/// left out, as is every difference of nought.
fn curves(json: &Value) -> (Vec<String>, Vec<Row>) {
    let (mut rows, sets) = (Vec::new(), json["sets"].as_u64().unwrap_or(0));
    let percent = |value: &Value| value.as_f64().unwrap_or(f64::NAN) * 100.0;
    let points: Vec<f64> = list(json, "values").filter_map(Value::as_f64).collect();
    for curve in list(json, "curves") {
        let curve_name = text(curve, "name");
        let published: Vec<f64> = list(curve, "published").filter_map(Value::as_f64).collect();
        for (at, (x, point)) in points.iter().zip(list(curve, "points")).enumerate() {
            let accepted = point["accepted"].as_u64().unwrap_or(0);
            let beside = published.get(at);
            if beside.is_none() && (accepted == 0 || Some(accepted) == point["sets"].as_u64()) {
                continue;
            }
            let interval = [0, 1].map(|end| percent(&point["interval"][end]));
            let row = Row::new(format!("{x}: {curve_name}"), percent(&point["share"]), "%").n(sets);
            let row = row.between(interval[0], interval[1]);
            rows.push(match beside {
                Some(share) => row.beside("published", *share),
                None => row,
            });
        }
    }
    for curve in list(json, "curves") {
        let row = Row::new(
            format!("area: {}", text(curve, "name")),
            curve["area"]["area"].as_f64().unwrap_or(f64::NAN),
            "",
        );
        let [low, high] = [0, 1].map(|end| curve["area"]["area_interval"][end].as_f64().unwrap_or(f64::NAN));
        rows.push(row.n(sets).between(low, high));
    }
    for pair in list(json, "pairs").filter(|pair| pair["grouped"] == true) {
        let of = format!("{} against {}", text(pair, "second"), text(pair, "first"));
        for point in list(pair, "points") {
            let paired = &point["paired"];
            let gain = percent(&paired["difference"]);
            if gain != 0.0 {
                let [low, high] = [0, 1].map(|end| percent(&paired["interval"][end]));
                let row = Row::new(format!("{}: gain of {of}", point["x"]), gain, "points").n(sets);
                rows.push(row.between(low, high));
            }
        }
    }
    let note = format!("{}: {sets} sets a point, seed {}", text(json, "title"), json["seed"]);
    (vec![note], rows)
}

/// Events per operation where they were seen, and the events of an idle second.
fn matrix(json: &Value) -> (Vec<String>, Vec<Row>) {
    let mut rows = Vec::new();
    for column in list(json, "columns") {
        let on = format!("{} {}", text(column, "kernel"), text(column, "profile"));
        for (class, per_s) in column["idle_per_s"].as_object().into_iter().flatten() {
            rows.push(Row::new(format!("{on}: idle, {class}"), per_s.as_f64().unwrap_or(f64::NAN), "per s"));
        }
        for row in list(column, "rows") {
            let operations = row["operations"].as_u64().unwrap_or(0);
            for class in list(row, "classes").filter(|class| class["seen"] == true) {
                let number = |key: &str| class[key].as_f64().unwrap_or(f64::NAN);
                rows.push(
                    Row::new(
                        format!("{on}: {}, {}", text(row, "stressor"), text(class, "class")),
                        number("per_operation"),
                        "per operation",
                    )
                    .n(operations)
                    .between(number("low"), number("high")),
                );
            }
        }
    }
    let conditions = json["conditions"].as_object().into_iter().flatten();
    let notes = conditions.map(|(what, text)| format!("{what}: {}", text.as_str().unwrap_or_default()));
    (notes.collect(), rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn find<'a>(rows: &'a [Row], what: &str) -> &'a Row {
        rows.iter().find(|row| row.what == what).unwrap_or_else(|| panic!("no {what:?} in {rows:#?}"))
    }

    #[test]
    fn a_study_gives_medians_beside_published_numbers() {
        let summary = json!({ "n": 3, "median": 7.0, "low": 5.0, "high": 9.0 });
        let answer = json!({
            "name": "t1", "title": "Table I", "scale": 1.0,
            "groups": [{ "levels": { "boot": "isolated", "kernel": "5.10" }, "cells": 3, "ok": 3,
                "values": { "switches": summary, "tlb": { "n": 0, "median": null } } }],
            "published": [{ "value": "switches", "at": { "kernel": "5.10" }, "system": "vanilla", "published": 32.0,
                "judgement": "not-comparable", "why": "lines of text" }],
            "claims": [{ "statement": "p.1", "condition": "5.10", "figures": [{ "n": 3 }, { "n": 2 }],
                "judgement": "cannot-be-told", "why": "p = 0.5" }],
        });
        let (notes, rows) = study(&answer);
        let row = find(&rows, "5.10 isolated: switches");
        assert_eq!((row.value, row.low, row.high, row.n), (Some(7.0), Some(5.0), Some(9.0), Some(3)));
        assert_eq!(row.peer.as_ref().unwrap().value, Some(32.0));
        assert_eq!(find(&rows, "cells with values").value, Some(3.0));
        assert_eq!(find(&rows, "published numbers and statements: cannot-be-told").value, Some(1.0));
        let claim = find(&rows, "statement: p.1 on 5.10");
        assert_eq!((claim.value, claim.n), (Some(0.0), Some(2)));
        assert_eq!(notes[0], "t1: Table I, scale 1");
        assert!(!rows.iter().any(|row| row.what.ends_with("tlb")), "a value that nothing has is no row");
    }

    #[test]
    fn papers_give_a_row_a_statement_with_its_answer() {
        let verdict = json!({ "word": "agrees", "condition": "6.1", "why": "p = 0.01" });
        let answer = json!({
            "scale": 0.1, "spent_s": 7200.0, "notes": ["x: no time left"],
            "papers": { "p": { "all": 2, "decided": 1, "by_own_numbers": 0, "not_run": 0, "open": 1 } },
            "statements": [
                { "id": "p.1", "where": "I", "quote": "less", "decided": true, "why_open": null, "verdicts": [verdict] },
                { "id": "p.2", "where": "II", "quote": "more", "decided": false, "why_open": "quoted only", "verdicts": [] },
            ],
        });
        let (notes, rows) = papers(&answer);
        assert_eq!(notes, ["scale 0.1, 2.0 hours of experiments", "x: no time left"]);
        assert_eq!((find(&rows, "p: decided").value, find(&rows, "p: decided").n), (Some(1.0), Some(2)));
        let decided = find(&rows, "p.1 (I): less");
        assert_eq!((decided.value, decided.why.as_deref()), (Some(1.0), Some("agrees on 6.1: p = 0.01")));
        assert_eq!(find(&rows, "p.2 (II): more").why.as_deref(), Some("quoted only"));
    }

    #[test]
    fn curves_give_shares_areas_and_gains() {
        let point = |accepted: u64| json!({ "accepted": accepted, "sets": 4, "share": accepted as f64 / 4.0, "interval": [0.1, 0.9] });
        let answer = json!({
            "title": "EDF", "seed": 1, "sets": 4, "values": [0.5, 0.8],
            "curves": [{ "name": "linux", "points": [point(4), point(2)], "area": { "area": 0.75, "area_interval": [0.7, 0.8] } }],
            "pairs": [{ "first": "linux", "second": "rt", "grouped": true,
                "points": [{ "x": 0.8, "paired": { "difference": 0.25, "interval": [0.0, 0.5] } }] }],
        });
        let (_, rows) = curves(&answer);
        assert_eq!(rows.len(), 3, "a point where all sets pass is no row");
        assert_eq!(find(&rows, "0.8: linux").value, Some(50.0));
        assert_eq!(find(&rows, "area: linux").high, Some(0.8));
        assert_eq!(find(&rows, "0.8: gain of rt against linux").value, Some(25.0));
    }

    #[test]
    fn a_matrix_gives_what_was_seen() {
        let class = |name: &str, seen: bool| json!({ "class": name, "seen": seen, "per_operation": 3.0, "low": 2.5, "high": 3.6 });
        let answer = json!({ "conditions": { "guest": "3 CPUs" }, "columns": [{ "kernel": "6.1", "profile": "none",
            "idle_per_s": { "timer.tick": 250.0 },
            "rows": [{ "stressor": "schedstats", "operations": 40, "classes": [class("ipi.call", true), class("work", false)] }] }] });
        let (notes, rows) = matrix(&answer);
        assert_eq!(rows.len(), 2);
        assert_eq!(find(&rows, "6.1 none: schedstats, ipi.call").n, Some(40));
        assert_eq!(find(&rows, "6.1 none: idle, timer.tick").unit, "per s");
        assert_eq!(notes, ["guest: 3 CPUs"]);
    }
}
