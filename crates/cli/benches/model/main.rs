//! Programs whose jobs are known (`tests/plants/jobs.c`), against what `stillcore model` finds of
//! them: periods, classes of release, suspensions, who releases whom. With `windows`: whether the
//! bounds from one window of a recording hold in the next. With `replays`: whether a replay of the
//! model has the same model. With `examples`: programs that exist.
//! `cargo bench -p stillcore --bench model [-- [windows [--guest KERNEL]|replays|examples]
//! --programs N]`; needs root and a C compiler.

#[path = "../common/mod.rs"]
mod common;
mod examples;
mod judge;
mod programs;
mod replays;
mod windows;

use common::plants::{compile, source};
use common::{Failed, option, run};
use judge::Score;
use programs::Program;
use result::{Limit, Of, Row, Sink};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

const SEED: u64 = 29;

fn main() {
    let program = option("--program", env!("CARGO_BIN_EXE_stillcore").to_owned());
    let count: u64 = option("--programs", 120);
    let guest = Some(option("--guest", String::new())).filter(|kernel| !kernel.is_empty());
    let is_asked = |what: &str| std::env::args().any(|word| word == what);
    run("model", |rows| {
        let place = tempfile::tempdir().map_err(Failed::because)?;
        let plant = place.path().join("jobs");
        let mut compiler = Command::new("cc");
        compile(
            compiler.args(["-O1", "-static", "-pthread", "-o"]).arg(&plant).arg(source("jobs.c")).arg("-lrt"),
        )?;
        if is_asked("windows") {
            let (plant, place, guest) = (plant.as_path(), place.path(), guest.as_deref());
            return windows::Plan { stillcore: &program, plant, place, programs: count, guest }.run(rows);
        }
        if is_asked("examples") {
            return examples::run(&program, place.path(), rows);
        }
        if is_asked("replays") {
            return replays::run(&program, &plant, place.path(), count, rows);
        }
        let mut score = Score::default();
        for index in 0..count {
            let drawn = Program::draw(SEED + index);
            let model = model(&program, &plant, &drawn, &place.path().join(index.to_string()))?;
            judge::judge(&drawn, &model, &mut score);
        }
        push(rows, count, &score)
    });
}

/// Records a program, models it, and leaves the run.
fn record(stillcore: &str, plant: &Path, drawn: &Program, out: &Path) -> Result<Value, Failed> {
    let words = [plant.display().to_string(), drawn.jobs.to_string()];
    let words = words.into_iter().chain(drawn.threads.iter().map(programs::Thread::argument));
    recorded(stillcore, None, words, out)
}

/// Records a command for some time, or until it ends, and models it.
fn recorded(
    stillcore: &str,
    duration: Option<&str>,
    command: impl IntoIterator<Item = String>,
    out: &Path,
) -> Result<Value, Failed> {
    let mut model = Command::new(stillcore);
    model.args(["model", "--json"]).args(duration.iter().flat_map(|time| ["--duration", *time]));
    let output = model.arg("--out").arg(out).arg("--").args(command).output()?;
    let last = || String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or_default().to_owned();
    serde_json::from_slice(&output.stdout).map_err(|_| Failed(last()))
}

/// What the command reports of a program.
fn model(stillcore: &str, plant: &Path, drawn: &Program, out: &Path) -> Result<Value, Failed> {
    let model = record(stillcore, plant, drawn, out)?;
    std::fs::remove_dir_all(out)?;
    Ok(model)
}

fn push(rows: &mut Sink, programs: u64, score: &Score) -> Result<(), Failed> {
    rows.push(Row::new("programs", programs as f64, "").n(score.threads))?;
    let mut share = |what: &str, good: u64, all: u64, least: f64| {
        let row = Row::new(what, good as f64 / all.max(1) as f64, "").n(all);
        rows.push(row.budget(Of::Value, Limit::AtLeast(least)))
    };
    share("periodic threads: period exact", score.exact, score.periodic, 0.98)?;
    share("threads: class of release right", score.class, score.threads, 0.95)?;
    share(
        "links between threads: reported ones that are there",
        score.links_right,
        score.links_reported,
        1.0,
    )?;
    share("links between threads: those there that are reported", score.links_right, score.links, 0.95)?;
    share("suspending threads: found as such, and no others", score.suspension, score.threads, 0.95)?;
    rows.push(Row::new("jobs held against their bounds", score.jobs as f64, ""))?;
    rows.push(Row::new(
        "of these, later than the bound of their own trace's model",
        score.refuted as f64,
        "",
    ))?;
    Ok(())
}
