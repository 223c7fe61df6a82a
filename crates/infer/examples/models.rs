//! Models of sequences, for `benches/reference.py`: one JSON object a line,
//! `{"windows":[[earliest,latest],…],"most":N,"batch":N}`, and one a line back.
//! With `--stream N`: one sequence of N releases, generated as it is read; prints the peak memory.

use infer::delta_max::DeltaMax;
use infer::delta_min::{DeltaMin, Distances};
use infer::periodic::{Fit, Periodic, PeriodicModel};
use infer::regular::Regular;
use infer::{Disorder, Window};
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::io::{BufRead, Write};
use std::time::Instant;

#[derive(Deserialize)]
struct Sequence {
    windows: Vec<[i64; 2]>,
    most: usize,
    batch: usize,
}

/// Under the reference's names.
#[derive(Serialize)]
struct Models {
    min_hi: Vec<i64>,
    min_lo: Vec<i64>,
    max_hi: Vec<i64>,
    max_lo: Vec<i64>,
    certain: Option<[i64; 3]>,
    possible: Option<[i64; 3]>,
    /// What the curves and the certain fit took, ns.
    curve_ns: u128,
    certain_ns: u128,
}

fn curve<T>(
    windows: &[Window],
    mut curve: T,
    add: impl Fn(&mut T, Window) -> Result<(), Disorder>,
) -> Result<T, Disorder> {
    windows.iter().try_for_each(|window| add(&mut curve, *window))?;
    Ok(curve)
}

fn minima(windows: &[Window], distances: Distances, most: usize) -> Result<Vec<i64>, Disorder> {
    Ok(curve(windows, DeltaMin::new(distances, most), DeltaMin::add)?.curve().to_vec())
}

fn maxima(windows: &[Window], distances: Distances, most: usize) -> Result<Vec<i64>, Disorder> {
    Ok(curve(windows, DeltaMax::new(distances, most), DeltaMax::add)?.curve())
}

fn fit(windows: &[Window], fit: Fit, batch: usize) -> Result<Option<[i64; 3]>, Disorder> {
    let model = curve(windows, Periodic::in_batches(fit, batch), Periodic::add)?.model();
    Ok(model.map(|PeriodicModel { period_ns, offset_ns, jitter_ns }| [period_ns, offset_ns, jitter_ns]))
}

fn models(sequence: &Sequence) -> Result<Models, Disorder> {
    let Sequence { windows, most, batch } = sequence;
    let windows: Vec<Window> = windows
        .iter()
        .map(|[earliest_ns, latest_ns]| Window { earliest_ns: *earliest_ns, latest_ns: *latest_ns })
        .collect();
    let begin = Instant::now();
    let min_hi = minima(&windows, Distances::Shortest, *most)?;
    let curve_ns = begin.elapsed().as_nanos();
    let begin = Instant::now();
    let certain = fit(&windows, Fit::Certain, *batch)?;
    Ok(Models {
        certain_ns: begin.elapsed().as_nanos(),
        min_hi,
        min_lo: minima(&windows, Distances::Longest, *most)?,
        max_hi: maxima(&windows, Distances::Shortest, *most)?,
        max_lo: maxima(&windows, Distances::Longest, *most)?,
        certain,
        possible: fit(&windows, Fit::Possible, *batch)?,
        curve_ns,
    })
}

/// Every model of a stream that is stored nowhere, and the peak memory of this process, KiB.
fn stream(releases: i64) -> Result<String, Box<dyn Error>> {
    let mut regular = Regular::default();
    let mut shortest = DeltaMin::new(Distances::Shortest, 64);
    let mut longest = DeltaMax::new(Distances::Longest, 64);
    for index in 0..releases {
        let window = Window::at(index * 1_000_000 + (index * 7919) % 100_003);
        regular.add(window)?;
        shortest.add(window)?;
        longest.add(window)?;
    }
    let period_ns = regular.period().map(|found| found.model.period_ns);
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    Ok(format!("{} {}", period_ns.unwrap_or(0), peak.trim().trim_end_matches(" kB")))
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, _, releases] = arguments.as_slice() {
        println!("{}", stream(releases.parse()?)?);
        return Ok(());
    }
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let models = models(&serde_json::from_str(&line?)?)?;
        serde_json::to_writer(&mut out, &models)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}
