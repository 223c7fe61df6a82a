//! The report of ten minutes of four cores, a wake-up a millisecond: how long it takes from the stored samples to the page, and how large the
//! page is. `cargo bench -p stillcore --bench report [-- --turns N --period-us N --program PATH]`.
//!
//! The run is made up (`common/ten_minutes.rs`) and has no trace: what a trace adds is `--bench trace`'s. It judges nothing; the size is also a
//! test (`tests/report_formats.rs`).

mod common;
#[path = "common/ten_minutes.rs"]
mod ten_minutes;

use common::process::{children_cpu_ns, program};
use common::{Failed, median, option, run};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

fn main() {
    run("report", || measure(option("--turns", 7), option("--period-us", 1_000)));
}

fn measure(turns: u32, period_us: i64) -> Result<(), Failed> {
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
    println!("{samples} samples of four cores in ten minutes, no trace, {turns} turns");
    println!(
        "report  {:.2} s median ({:.2} s of CPU), budget 2 s; page {page} bytes, budget 500000",
        median(wall),
        median(cpu)
    );
    Ok(())
}
