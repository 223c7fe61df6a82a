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

use common::growth::growth;
use common::{Failed, option, run};
use result::{Limit, Of, Row, Sink};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/endurance.sh");
const NOTES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/notes.sh");
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
            command.arg("--add").arg(format!("{NOTES}:/root/notes.sh"));
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
        growth(&text("notes")?, "probe", rows)?;
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
