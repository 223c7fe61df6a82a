//! `stillcore summary`: what samples files say, in bounded memory. Needs no root, no Linux tracing,
//! no network.

use crate::folded::folded;
use crate::measure::table::table;
use analysis::summary::{Summary, of_file, of_run};
use anyhow::Context;
use clap::Args;
use model::store;
use report::format;
use serde_json::json;
use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

/// Schema of the JSON answer.
const SCHEMA: &str = "stillcore.summary/1";
/// The largest samples that are printed; the JSON has a hundred.
const LARGEST: usize = 5;

/// Arguments of `summary`.
#[derive(Debug, Args)]
pub(crate) struct SummaryArgs {
    /// Run directories or samples files.
    #[arg(required = true, value_name = "RUN|FILE")]
    sources: Vec<PathBuf>,
    /// Count the releases at least this late, also per hour, with confidence intervals; repeatable.
    #[arg(long, value_name = "TIME", value_parser = model::quantity::duration)]
    deadline: Vec<Duration>,
    /// Print one JSON object instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Summarises.
pub(crate) fn run(args: &SummaryArgs) -> anyhow::Result<u8> {
    let limits: Vec<i64> =
        args.deadline.iter().map(|time| time.as_nanos().min(i64::MAX as u128) as i64).collect();
    let mut all = Vec::new();
    for source in &args.sources {
        let read = if source.is_dir() {
            of_run(source, &limits)
        } else {
            of_file(source, &limits).map(|one| vec![one])
        };
        all.extend(read.with_context(|| format!("{} cannot be summarised", source.display()))?);
    }
    if all.is_empty() {
        anyhow::bail!(
            "{}: no samples file in it; expected a run that measured something",
            args.sources[0].display()
        );
    }
    if args.json {
        println!("{}", json!({ "schema": SCHEMA, "series": all }));
    } else {
        all.iter().for_each(|one| print!("{}", text(one, &limits)));
    }
    Ok(0)
}

fn text(one: &Summary, limits: &[i64]) -> String {
    let thread = if one.thread > 0 { format!(", thread {}", one.thread) } else { String::new() };
    let period =
        one.period_ns.map_or_else(String::new, |ns| format!(", every {}", format::ns_round(ns as f64)));
    let lost =
        one.ring_lost.map_or_else(|| format!("unknown, {} is not beside it", store::RUN), format::count);
    let missed = one.period_ns.map_or_else(String::new, |_| {
        format!("missed {}, charged with the lateness they had; ", format::count(one.missed))
    });
    let mut text = format!(
        "{}: {}, phase {}, CPU {}{thread}{period}\nlost {lost}; {missed}not counted {}; early {}\n\
         {} samples over {}, {} to {} observed\n\n",
        one.file,
        one.probe.name(),
        one.phase,
        one.cpu,
        format::count(one.excluded),
        format::count(one.early),
        format::count(one.n),
        format::span(one.span_ns.max(0) as u64),
        time(one.min_ns),
        time(one.observed_max_ns)
    );
    let row = |quantile: &stats::sampled::Quantile| {
        let interval =
            quantile.interval_ns.map(|[low, high]| format!("{} to {}", format::ns(low), format::ns(high)));
        vec![
            format::quantile_name(quantile.p),
            quantile.value_ns.map_or_else(|| "not estimable".to_owned(), format::ns),
            interval.unwrap_or_else(|| "-".to_owned()),
            quantile.effective_above.map_or_else(|| "-".to_owned(), |n| format::count(n.round() as u64)),
        ]
    };
    let known = one.quantiles.iter().filter(|quantile| quantile.value_ns.is_some()).count();
    let rows = one.quantiles.iter().take(known + 1).map(row).collect();
    text += &table(&["quantile", "value", "95 % interval", "effective above"], rows);
    text.push('\n');
    for limit in limits {
        let found = one.exceedances.iter().find(|exceedance| exceedance.threshold_ns == *limit);
        let line = found.map_or_else(
            || format!("{}: below the shortest that is stored", format::ns(*limit)),
            report::exceedance_line,
        );
        text += &folded(&line, "  ");
    }
    let largest = one.largest.iter().take(LARGEST);
    let largest: Vec<String> =
        largest.map(|one| format!("{} at {}", format::ns(one.value_ns), one.t_ns)).collect();
    if !largest.is_empty() {
        let _ = writeln!(text, "{}", folded(&format!("largest: {}", largest.join(", ")), "  "));
    }
    text
}

fn time(ns: Option<i64>) -> String {
    ns.map_or_else(|| "-".to_owned(), format::ns)
}
