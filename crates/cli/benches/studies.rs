//! Every experiment at small scale in guests: each file of `experiments/` is run, and its answer
//! counted.
//! `cargo bench -p stillcore --bench studies [-- --program PATH --kernels 6.1,6.1-rt --scale F --jobs N --only NAME,NAME --out DIR]`
//!
//! A row per experiment: cells with values, those that do not apply, those that failed, charts,
//! judgements; then the reasons, each once. Scales stop at the floors of the files. An interrupted
//! study is resumed. It fails where a cell failed, or a study has no answer.

mod common;

use common::{Failed, option, run};
use result::{Limit, Of, Row, Sink};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

fn main() {
    let asked = Asked {
        program: option("--program", env!("CARGO_BIN_EXE_stillcore").to_owned()),
        kernels: option("--kernels", "6.1,6.1-rt".to_owned()),
        scale: option("--scale", "0.00001".to_owned()),
        jobs: option("--jobs", "2".to_owned()),
        only: option("--only", String::new()),
        out: option("--out", Path::new(env!("CARGO_TARGET_TMPDIR")).join("studies").display().to_string()),
    };
    run("studies", |rows| every(&asked, rows));
}

struct Asked {
    program: String,
    kernels: String,
    scale: String,
    jobs: String,
    only: String,
    out: String,
}

/// The outcome of a study.
#[derive(Default)]
struct Outcome {
    cells: u64,
    ok: u64,
    failed: u64,
    charts: usize,
    judged: BTreeMap<String, usize>,
    reasons: Vec<String>,
}

fn every(asked: &Asked, rows: &mut Sink) -> Result<(), Failed> {
    let names = names(&asked.program)?;
    let only: Vec<&str> = asked.only.split(',').filter(|name| !name.is_empty()).collect();
    let names: Vec<&String> =
        names.iter().filter(|name| only.is_empty() || only.contains(&name.as_str())).collect();
    rows.note(format!("kernels {}, scale {}, one repetition", asked.kernels, asked.scale))?;
    let names_in_all = names.len();
    let (mut all, mut without) = (Outcome::default(), Vec::new());
    for name in names {
        let begun = Instant::now();
        let out = Path::new(&asked.out).join(name);
        let answered = one(asked, name, &out);
        let seconds = begun.elapsed().as_secs();
        match answered.and_then(|()| outcome(&out)) {
            Ok(outcome) => {
                let judged: Vec<String> =
                    outcome.judged.iter().map(|(word, n)| format!("{n} {word}")).collect();
                let why = [judged.join(", "), outcome.reasons.join("; ")].join("; ");
                eprintln!("{name}: {} of {} cells, {seconds} s; {why}", outcome.ok, outcome.cells);
                let row =
                    Row::new(format!("{name}: cells with values"), outcome.ok as f64, "").n(outcome.cells);
                rows.push(row.why(why.trim_matches([';', ' '])))?;
                outcome.judged.iter().for_each(|(word, n)| *all.judged.entry(word.clone()).or_default() += n);
                all.cells += outcome.cells;
                all.ok += outcome.ok;
                all.failed += outcome.failed;
                all.charts += outcome.charts;
            }
            Err(why) => {
                eprintln!("{name}: no answer after {seconds} s: {why}");
                rows.push(Row::absent(format!("{name}: cells with values"), why.to_string()))?;
                without.push(name.clone());
            }
        }
    }
    let count = |what: &str, n: usize| Row::new(format!("all: {what}"), n as f64, "");
    rows.push(count("experiments", names_in_all))?;
    rows.push(count("cells", all.cells as usize))?;
    rows.push(count("cells with values", all.ok as usize))?;
    rows.push(count("cells that do not apply", (all.cells - all.ok - all.failed) as usize))?;
    rows.push(count("cells that failed", all.failed as usize).budget(Of::Value, Limit::AtMost(0.0)))?;
    rows.push(count("charts", all.charts))?;
    let without = count("studies without an answer", without.len()).why(without.join(", "));
    rows.push(without.budget(Of::Value, Limit::AtMost(0.0)))?;
    for (word, n) in &all.judged {
        rows.push(count(&format!("published numbers and statements, {word}"), *n))?;
    }
    Ok(())
}

/// The built-in experiments of the program; calculated ones have targets of their own.
fn names(program: &str) -> Result<Vec<String>, Failed> {
    let output = Command::new(program).args(["study", "list", "--json"]).output().map_err(Failed::because)?;
    let answer: Value = serde_json::from_slice(&output.stdout).map_err(Failed::because)?;
    let studies = answer["studies"].as_array().cloned().unwrap_or_default();
    let experiments = studies.iter().filter(|one| one["kind"] == "experiment");
    Ok(experiments.filter_map(|one| one["name"].as_str()).map(str::to_owned).collect())
}

fn one(asked: &Asked, name: &str, out: &Path) -> Result<(), Failed> {
    fs::create_dir_all(out.parent().unwrap_or(out)).map_err(Failed::because)?;
    let said = out.with_extension("log");
    let log = fs::File::create(&said).map_err(Failed::because)?;
    let mut command = Command::new(&asked.program);
    command.args(["study", "run", name, "--repetitions", "1", "--scale", &asked.scale, "--json", "--retry"]);
    command.args(["--jobs", &asked.jobs, "--out"]).arg(out);
    // An experiment that only computes needs no guest.
    let alone = fs::read_to_string(experiments().join(format!("{name}.toml")))
        .is_ok_and(|text| !text.contains("kernels ="));
    if alone {
        command.arg("--here");
    } else {
        command.args(["--lab", &asked.kernels]);
    }
    let status = command.stdout(Stdio::null()).stderr(log).status().map_err(Failed::because)?;
    if status.success() {
        return Ok(());
    }
    let said = fs::read_to_string(&said).unwrap_or_default();
    Err(Failed::because(said.lines().last().unwrap_or("it said nothing").to_owned()))
}

fn experiments() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments")
}

fn outcome(out: &Path) -> Result<Outcome, Failed> {
    let text = fs::read_to_string(out.join("study.json")).map_err(Failed::because)?;
    let answer: Value = serde_json::from_str(&text).map_err(Failed::because)?;
    let mut outcome = Outcome::default();
    for entry in fs::read_dir(out.join("cells")).map_err(Failed::because)?.flatten() {
        let Ok(text) = fs::read_to_string(entry.path()) else { continue };
        let Ok(cell) = serde_json::from_str::<Value>(&text) else { continue };
        outcome.cells += 1;
        match cell["result"]["state"].as_str() {
            Some("ok") => outcome.ok += 1,
            Some("failed") => outcome.failed += 1,
            _ => {}
        }
        if let Some(why) = cell["result"]["reason"].as_str() {
            let why = format!("{}: {why}", cell["result"]["state"].as_str().unwrap_or("?"));
            if !outcome.reasons.contains(&why) {
                outcome.reasons.push(why);
            }
        }
    }
    outcome.reasons.sort();
    outcome.charts = fs::read_dir(out.join("figures")).map_or(0, Iterator::count);
    for one in ["published", "claims"].iter().filter_map(|part| answer[part].as_array()).flatten() {
        *outcome.judged.entry(one["judgement"].as_str().unwrap_or("?").to_owned()).or_default() += 1;
    }
    Ok(outcome)
}
