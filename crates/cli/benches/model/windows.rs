//! Whether a bound holds where it was not made: each program is recorded once and cut into windows;
//! the model of each, with the margin that was fixed before, is held against the jobs of the next.

use super::common::Failed;
use super::programs::Program;
use super::{SEED, record};
use analysis::task_model::build::build;
use analysis::task_model::check::check;
use analysis::task_model::system::Assumed;
use analysis::task_model::verdict::guarantee;
use attribution::jobs::read::Source;
use model::run::stored::read_run;
use result::{Limit, Of, Row, Sink};
use std::collections::BTreeMap;
use std::path::Path;

/// The default of the command.
const MARGIN_PPM: u64 = 200_000;
/// Enough for 40 jobs of the longest period.
const WINDOW_NS: i64 = 1_250_000_000;
/// Jobs of the thread with the shortest period: half a minute at most.
const JOBS: u64 = 2_400;

/// Sums over all windows.
#[derive(Debug, Default)]
struct Sums {
    windows: u64,
    without: u64,
    jobs: u64,
    late: u64,
    late_windows: u64,
    by_itself: u64,
}

pub(super) fn run(
    stillcore: &str,
    plant: &Path,
    place: &Path,
    programs: u64,
    rows: &mut Sink,
) -> Result<(), Failed> {
    let mut sums = Sums::default();
    for index in 0..programs {
        let mut drawn = Program::draw(SEED + 10_000 + index);
        drawn.jobs = JOBS;
        // All end about when the first does.
        let shortest = drawn.threads.iter().map(|thread| thread.period_us).min().unwrap_or(1);
        drawn.threads.iter_mut().for_each(|thread| thread.period_us = thread.period_us.min(3 * shortest));
        let out = place.join(format!("windows-{index}"));
        record(stillcore, plant, &drawn, &out)?;
        judge(&out, &mut sums)?;
        std::fs::remove_dir_all(&out)?;
        eprintln!("{index}: {sums:?}");
    }
    let jobs = sums.jobs.max(1) as f64;
    // Above it with 95 % confidence: Poisson, exact for none.
    let upper = if sums.late == 0 { 3.0 } else { sums.late as f64 + 1.96 * (sums.late as f64).sqrt() + 1.92 };
    rows.push(
        Row::new("windows: held against the model of the one before", sums.windows as f64, "").n(programs),
    )?;
    rows.push(Row::new("windows without a model to hold against", sums.without as f64, "").n(programs))?;
    let row = Row::new(
        "jobs later than the bound of the window before",
        sums.late as f64 / jobs * 1e4,
        "of 10,000",
    );
    let row = Row { low: Some(0.0), high: Some(upper / jobs * 1e4), ..row.n(sums.jobs) };
    rows.push(row.budget(Of::Value, Limit::AtMost(1.0)))?;
    rows.push(Row::new("windows with such a job", sums.late_windows as f64, "").n(sums.windows))?;
    rows.push(
        Row::new(
            "of these jobs, those that executed or slept longer than the model says",
            sums.by_itself as f64,
            "",
        )
        .n(sums.late),
    )?;
    Ok(())
}

fn judge(dir: &Path, sums: &mut Sums) -> Result<(), Failed> {
    let run = read_run(dir).map_err(Failed::because)?;
    let phase = run.phases.first().ok_or_else(|| Failed("no phase".to_owned()))?;
    let source = |index: i64| {
        let from_ns = phase.t0_ns + index * WINDOW_NS;
        Source::of_run(dir, &run).map(|one| one.within([from_ns, from_ns + WINDOW_NS - 1]))
    };
    let assumed = Assumed { margin_ppm: MARGIN_PPM, deadlines_ns: BTreeMap::new() };
    let windows = (phase.t1_ns - phase.t0_ns) / WINDOW_NS;
    let mut before = None;
    for index in 0..windows {
        let source = source(index).map_err(Failed::because)?;
        let jobs = source.jobs().map_err(Failed::because)?;
        let model = build(&jobs);
        if let Some((model, guarantee)) = &before {
            let checked = check(&source, &jobs, model, guarantee).map_err(Failed::because)?;
            sums.windows += 1;
            sums.jobs += checked.jobs();
            sums.late += checked.refuted;
            sums.late_windows += u64::from(checked.refuted > 0);
            sums.by_itself +=
                checked.refuting.iter().filter(|job| job.contradicts().is_some()).count() as u64;
        } else if index > 0 {
            sums.without += 1;
        }
        before = guarantee(&model, &assumed).map(|guarantee| (model, guarantee));
    }
    Ok(())
}
