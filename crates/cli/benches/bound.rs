//! Bounds on the wake-up against the largest latency of the same run: runs under different loads,
//! in guests of six kernels and here. `cargo bench -p stillcore --bench bound [-- --runs N
//! --kernels LIST]`; needs root, and for guests QEMU. `--kernels here` boots none.
//!
//! A latency above its bound misses the budget: the largest is read from the samples, not from the
//! trace. How far bounds lie above it, their looseness, is printed beside.

mod common;

use common::{Failed, option, run};
use result::{Limit, Of, Row, Sink};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

const KERNELS: &str = "here,5.10,5.10-rt,6.1,6.1-rt,6.12,6.12-rt";
const HERE: &str = "here";

fn main() {
    let program = option("--program", env!("CARGO_BIN_EXE_stillcore").to_owned());
    let (kernels, runs) = (option("--kernels", KERNELS.to_owned()), option("--runs", 18_u64));
    run("bound", |rows| {
        let place = tempfile::tempdir().map_err(Failed::because)?;
        let mut all = Score::default();
        for kernel in kernels.split(',') {
            let out = place.path().join(kernel);
            measured(&program, kernel, runs, &out)?;
            let score = Score::of(&out.join("root"), kernel, runs)?;
            score.rows(kernel, rows)?;
            all.add(score);
        }
        all.rows("all", rows)
    });
}

/// Measures in a guest of a kernel, or here; both leave their answers in `out/root`.
fn measured(program: &str, kernel: &str, runs: u64, out: &Path) -> Result<(), Failed> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/bound.sh");
    let mut command;
    if kernel == HERE {
        std::fs::create_dir_all(out.join("root")).map_err(Failed::because)?;
        command = Command::new("sh");
        command.arg(&script).args([program, "1", &runs.to_string()]).current_dir(out.join("root"));
    } else {
        command = Command::new(program);
        command.args(["lab", "run", "--kernel", kernel, "--packages", "busybox-static", "--timeout", "900s"]);
        command.arg("--add").arg(format!("{}:/root/bound.sh", script.display())).arg("--out").arg(out);
        command.args(["--", "/bin/busybox", "sh", "/root/bound.sh", "/usr/bin/stillcore", "2"]);
        command.arg(runs.to_string());
    }
    let output = command.output().map_err(Failed::because)?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(Failed(format!("{kernel}: {}", said.lines().last().unwrap_or_default())))
}

#[derive(Default)]
struct Score {
    /// Bound over the largest latency, of each run with a bound.
    looseness: Vec<f64>,
    exceeded: u64,
    withheld: u64,
}

impl Score {
    fn of(folder: &Path, kernel: &str, runs: u64) -> Result<Self, Failed> {
        let mut score = Self::default();
        for number in 1..=runs {
            let log = std::fs::read_to_string(folder.join(format!("{number}.log"))).unwrap_or_default();
            let said = log.lines().last().unwrap_or("it said nothing");
            let failed = |error: String| Failed(format!("{kernel}, run {number}: {error}; {said}"));
            let text = std::fs::read(folder.join(format!("{number}.json")));
            let text = text.map_err(|error| failed(error.to_string()))?;
            let analysis = serde_json::from_slice(&text).map_err(|error| failed(error.to_string()))?;
            score.run(kernel, &analysis)?;
        }
        Ok(score)
    }

    /// One run, of one window on one CPU.
    fn run(&mut self, kernel: &str, analysis: &Value) -> Result<(), Failed> {
        let (bound, samples) = (&analysis["paths"][0]["bound"], &analysis["distributions"][0]);
        let largest = samples["observed_max_ns"].as_i64();
        let largest = largest.ok_or_else(|| Failed(format!("{kernel}: no largest sample: {samples}")))?;
        match (bound["ns"].as_i64(), bound["withheld"].as_str()) {
            (Some(ns), _) => {
                self.looseness.push(ns as f64 / largest.max(1) as f64);
                if ns < largest {
                    self.exceeded += 1;
                    eprintln!("{kernel}: {largest} ns were measured, {bound}");
                }
            }
            (None, Some(why)) => {
                self.withheld += 1;
                eprintln!("{kernel}: withheld: {why}");
            }
            _ => return Err(Failed(format!("{kernel}: a run has neither a bound nor a reason"))),
        }
        Ok(())
    }

    fn add(&mut self, other: Self) {
        self.looseness.extend(other.looseness);
        self.exceeded += other.exceeded;
        self.withheld += other.withheld;
    }

    fn rows(&self, name: &str, rows: &mut Sink) -> Result<(), Failed> {
        let mut sorted = self.looseness.clone();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len() as u64;
        let mut push = |row: Row| rows.push(row).map_err(Failed::from);
        let exceeded = Row::new(format!("{name}: runs above their bound"), self.exceeded as f64, "").n(n);
        push(exceeded.budget(Of::Value, Limit::AtMost(0.0)))?;
        push(
            Row::new(format!("{name}: runs without a bound"), self.withheld as f64, "").n(n + self.withheld),
        )?;
        for (what, at) in [("median", n / 2), ("most", n.saturating_sub(1))] {
            if let Some(value) = sorted.get(at as usize) {
                push(Row::new(format!("{name}: bound over the largest latency, {what}"), *value, "").n(n))?;
            }
        }
        Ok(())
    }
}
