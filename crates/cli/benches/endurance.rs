//! A run of hours: does what its processes take grow, do its accounts balance, is the machine as it
//! was?
//! `cargo bench -p stillcore --bench endurance [-- --program FILE --seconds N --guest KERNEL]`;
//! needs root.
//!
//! Here, or with `--guest` in a guest of one CPU whose clock runs ahead of ours. Measurement,
//! disturbances and recording run together; the recording keeps what is around the latest wake-ups,
//! as is fit for days.

#[allow(dead_code, reason = "the tests of guests use the other half")]
#[path = "../tests/guests/state.rs"]
mod state;

mod common;

use common::{Failed, option, run};
use result::{Limit, Of, Row, Sink};
use serde_json::Value;
use stats::time::trend::trend;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/endurance.sh");
/// At the beginning buffers are filled and libraries find their size: not yet looked at.
const WARM_UP: f64 = 0.1;
/// A process that came and went, as those of fork storms do, has no growth of its own.
const THERE: f64 = 0.8;
/// Growth that a machine bears for weeks.
const MEMORY_KIB_PER_HOUR: f64 = 256.0;
const DESCRIPTORS_PER_HOUR: f64 = 0.5;

fn main() {
    let plan = Plan {
        program: option("--program", PathBuf::from(env!("CARGO_BIN_EXE_stillcore"))),
        seconds: option("--seconds", 3600),
        guest: Some(option("--guest", String::new())).filter(|kernel| !kernel.is_empty()),
        stressors: option("--stressors", "suite:ordinary".to_owned()),
        rate: option("--rate", 0),
        every: option("--every", 0),
    };
    run("endurance", |rows| {
        let place = tempfile::tempdir().map_err(Failed::because)?;
        let done = plan.run(place.path()).and_then(|root| plan.rows(&root, rows));
        if done.is_err() {
            eprintln!("kept: {}", place.keep().display());
        }
        done
    });
}

struct Plan {
    program: PathBuf,
    seconds: u64,
    /// A kernel of the lab.
    guest: Option<String>,
    stressors: String,
    /// Operations per second of each of them; 0: as fast as they go.
    rate: u64,
    /// Between two notes, s; 0: 400 of them in all.
    every: u64,
}

impl Plan {
    /// Runs it; where its files are.
    fn run(&self, place: &Path) -> Result<PathBuf, Failed> {
        let every = if self.every > 0 { self.every } else { (self.seconds / 400).max(2) };
        let numbers = [self.seconds.to_string(), every.to_string()];
        let further = ["--period", if self.guest.is_some() { "100ms" } else { "1ms" }];
        let recorded = ["--trace-over", if self.guest.is_some() { "1ms" } else { "5ms" }, "--keep", "5"];
        let mut command;
        let root;
        if let Some(kernel) = &self.guest {
            root = place.join("lab/root");
            command = Command::new(&self.program);
            command.args(["lab", "run", "--kernel", kernel, "--accel", "icount", "--smp", "1"]);
            command.args(["--append", "isolcpus= nohz_full=", "--packages", "busybox-static"]);
            command.args(["--timeout", "6h", "--out"]).arg(place.join("lab"));
            command.arg("--add").arg(format!("{SCRIPT}:/root/endurance.sh"));
            command.args([
                "--",
                "/bin/busybox",
                "sh",
                "/root/endurance.sh",
                "/usr/bin/stillcore",
                "/root",
                "0",
            ]);
        } else {
            let last = std::thread::available_parallelism().map_err(Failed::because)?.get() - 1;
            root = place.to_owned();
            command = Command::new("sh");
            command.arg(SCRIPT).arg(&self.program).arg(place).arg(last.to_string());
        }
        command.args(numbers).arg(&self.stressors).arg(self.rate.to_string());
        command.args(further).args(recorded);
        let output = command.output().map_err(Failed::because)?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(Failed(said.lines().last().unwrap_or("no reason given").to_owned()));
        }
        Ok(root)
    }

    fn rows(&self, root: &Path, rows: &mut Sink) -> Result<(), Failed> {
        let text = |name: &str| std::fs::read_to_string(root.join(name)).map_err(Failed::because);
        let json = |name: &str| -> Result<Value, Failed> {
            serde_json::from_str(&text(name)?).map_err(|error| Failed(format!("{name}: {error}")))
        };
        let code = text("code")?;
        if code.trim() != "0" {
            return Err(Failed(format!("the run ended with {}: {}", code.trim(), text("log")?)));
        }
        let place = self.guest.as_ref().map_or_else(
            || "here".to_owned(),
            |kernel| format!("in a guest of {kernel} with one CPU whose clock runs ahead"),
        );
        rows.note(format!(
            "{} s {place}: measure wakeup, {}{} and the recorder together; growth: Theil and Sen's slope and its 95 % interval, the first \
             tenth left out",
            self.seconds,
            self.stressors,
            if self.rate > 0 { format!(" at {} a second each", self.rate) } else { String::new() }
        ))?;
        growth(&text("notes")?, rows)?;
        let measured = json("run/run.json")?;
        accounts(&measured, rows)?;
        // With a rate, another command makes the disturbances.
        let disturbed = if self.rate > 0 { json("disturb.json")? } else { measured };
        proofs(&disturbed, rows)?;
        if self.guest.is_some() {
            // Not on this machine: others may have changed it.
            let changed = state::differences(&json("before.json")?, &json("after.json")?);
            rows.push(named("settings of the machine that differ afterwards", &changed))?;
        }
        Ok(())
    }
}

/// The resources of one process, at (ns of the boot).
#[derive(Default)]
struct Taken {
    part: String,
    memory_kib: Vec<(i64, f64)>,
    descriptors: Vec<(i64, f64)>,
}

fn growth(notes: &str, rows: &mut Sink) -> Result<(), Failed> {
    let mut processes: BTreeMap<u32, Taken> = BTreeMap::new();
    let mut times = Vec::new();
    for line in notes.lines() {
        // One that ended meanwhile has fewer words.
        let words: Vec<&str> = line.split(' ').collect();
        let [now, pid, rss, _, _, descriptors, part @ ..] = &words[..] else { continue };
        let (Ok(now), Ok(pid), Ok(rss), Ok(descriptors)) =
            (now.parse::<f64>(), pid.parse(), rss.parse(), descriptors.parse())
        else {
            continue;
        };
        let at = (now * 1e9) as i64;
        if times.last() != Some(&at) {
            times.push(at);
        }
        let taken = processes.entry(pid).or_default();
        taken.part = part.join(" ");
        taken.memory_kib.push((at, rss));
        taken.descriptors.push((at, descriptors));
    }
    // After the last note with a probe the run draws conclusions, whose cost is not limited.
    let measured = |taken: &&Taken| taken.part == "probe";
    let last = processes.values().filter(measured).filter_map(|taken| Some(taken.memory_kib.last()?.0)).max();
    let (Some(first), Some(last)) = (times.first(), last) else {
        return Err(Failed::because("no probe was noted"));
    };
    let from = first + ((last - first) as f64 * WARM_UP) as i64;
    let inside = from..=last;
    let noted = times.iter().filter(|at| inside.contains(at)).count();
    rows.note(format!("{noted} notes in {:.0} s", (last - from) as f64 / 1e9))?;
    let mut parts: BTreeMap<&str, u32> = BTreeMap::new();
    for taken in processes.values() {
        // Some stressors work in several processes.
        let number = parts.entry(&taken.part).and_modify(|number| *number += 1).or_insert(1);
        let part = if *number > 1 { format!("{} ({number})", taken.part) } else { taken.part.clone() };
        for (what, unit, values, most) in [
            ("memory", "KiB", &taken.memory_kib, MEMORY_KIB_PER_HOUR),
            ("descriptors", "", &taken.descriptors, DESCRIPTORS_PER_HOUR),
        ] {
            let values: Vec<(i64, f64)> =
                values.iter().copied().filter(|(at, _)| inside.contains(at)).collect();
            if (values.len() as f64) < THERE * noted as f64 {
                continue;
            }
            let most_there = values.iter().map(|(_, value)| *value).fold(0.0, f64::max);
            let name = format!("{part}: {what}, growth");
            let row = match trend(&values) {
                // That function has ns for values.
                Some(trend) => {
                    let [low, high] = trend.interval_us_per_hour.map(|bound| bound * 1e3);
                    Row::new(name, trend.us_per_hour * 1e3, format!("{unit} per h").trim()).between(low, high)
                }
                None => Row::absent(name, "too few notes"),
            };
            let row = row.n(values.len() as u64).budget(Of::Value, Limit::AtMost(most));
            rows.push(row.why(format!("at most {most_there} {unit}").trim_end()))?;
        }
    }
    Ok(())
}

/// Every release is a sample, missed or lost; every event was read or is lost.
fn accounts(run: &Value, rows: &mut Sink) -> Result<(), Failed> {
    let probes = run["probes"].as_array().ok_or_else(|| Failed::because("the run names no probes"))?;
    let sum = |key: &str| probes.iter().filter_map(|probe| probe[key].as_u64()).sum::<u64>();
    let (released, accounted) = (sum("released"), sum("samples") + sum("missed") + sum("ring_lost"));
    rows.push(none("releases without account", released.abs_diff(accounted) as usize).n(released))?;
    rows.push(none("samples lost", sum("ring_lost") as usize).n(released))?;
    let lost = run["losses"]["trace_events"].as_u64();
    let lost = lost.ok_or_else(|| Failed::because("the run does not say how many events it lost"))?;
    rows.push(none("events lost in what is kept", lost as usize))?;
    let whole = run["complete"] == true;
    rows.push(none("runs that are not complete", usize::from(!whole)))?;
    Ok(())
}

/// Every stressor has caused its disturbance.
fn proofs(disturbed: &Value, rows: &mut Sink) -> Result<(), Failed> {
    let those = disturbed["stressors"].as_array();
    let those =
        those.filter(|those| !those.is_empty()).ok_or_else(|| Failed::because("no stressor is named"))?;
    let unwell = those.iter().filter(|one| one["state"] != "ok" && one["state"] != "weak");
    let unwell: Vec<String> = unwell.map(|one| format!("{}: {}", one["name"], one["reason"])).collect();
    rows.push(named("stressors without proof of work", &unwell).n(those.len() as u64))?;
    Ok(())
}

/// As many as there are, by name.
fn named(what: &str, those: &[String]) -> Row {
    let row = none(what, those.len());
    if those.is_empty() { row } else { row.why(those.join("; ")) }
}

fn none(what: &str, count: usize) -> Row {
    Row::new(what, count as f64, "").budget(Of::Value, Limit::AtMost(0.0))
}
