//! The report of ten minutes of four cores, a wake-up a millisecond: how long it takes from the
//! stored samples to the page, and how large the page is.
//! `cargo bench -p stillcore --bench report [-- --turns N --period-us N --program PATH]`.
//!
//! The run is made up (`common/ten_minutes.rs`) and has no trace: what a trace adds is
//! `--bench trace`'s. Budgets of section 7 of the design; the size is also a test
//! (`tests/report_formats.rs`).

mod common;
#[path = "common/ten_minutes.rs"]
mod ten_minutes;

use common::process::{children_cpu_ns, program};
use common::{Failed, median, option, run};
use result::row::median_interval;
use result::{Limit, Of, Row, Sink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

fn main() {
    run("report", |rows| measure(option("--turns", 7), option("--period-us", 1_000), rows));
}

fn measure(turns: u32, period_us: i64, rows: &mut Sink) -> Result<(), Failed> {
    let place = tempfile::tempdir().map_err(Failed::because)?;
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/runs/small");
    ten_minutes::write(&from, place.path(), period_us * 1_000).map_err(Failed::because)?;
    let (mut wall, mut cpu) = (Vec::new(), Vec::new());
    for _ in 0..turns {
        let (begun, before) = (Instant::now(), children_cpu_ns());
        let mut command = Command::new(program());
        command.arg("report").arg(place.path()).stdout(Stdio::null());
        // Whatever it judges: 2 is a finding, 1 an error.
        if command.status().map_err(Failed::because)?.code() == Some(1) {
            return Err(Failed("the report failed".to_owned()));
        }
        wall.push(begun.elapsed().as_secs_f64());
        cpu.push((children_cpu_ns() - before) as f64 / 1e9);
    }
    let page = std::fs::metadata(place.path().join("report.html")).map_err(Failed::because)?.len();
    let samples = 4 * 600_000_000 / period_us;
    rows.note(format!(
        "a stored run of four cores and ten minutes, {samples} samples, no trace; {turns} turns"
    ))?;
    for (what, mut values) in [("wall time", wall), ("CPU time", cpu)] {
        let median = median(values.clone());
        values.sort_by(f64::total_cmp);
        let mut row = Row::new(format!("report: {what}"), median, "s").n(u64::from(turns));
        if let Some([low, high]) = median_interval(&values) {
            row = row.between(low, high);
        }
        rows.push(if what == "wall time" { row.budget(Of::Value, Limit::AtMost(2.0)) } else { row })?;
    }
    let size = Row::new("report: size of the page", page as f64 / 1e3, "KB");
    rows.push(size.budget(Of::Value, Limit::AtMost(500.0)))?;
    Ok(())
}
