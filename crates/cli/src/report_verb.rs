//! `stillcore report`: the conclusions of a run, drawn again. Needs no root, no Linux tracing, no
//! network.

use crate::conclude;
use crate::model_verb::page as model_page;
use analysis::Asked;
use clap::{Args, ValueEnum};
use model::quantity::duration;
use model::store;
use report::{Document, export};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Arguments of `report`.
#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// The run directory.
    pub(crate) run: PathBuf,
    /// Count the releases at least this late, also per hour, with confidence intervals; repeatable.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) deadline: Vec<Duration>,
    /// Estimate the tail beyond the observed maximum by extreme value theory, or report why that is
    /// impossible.
    #[arg(long)]
    pub(crate) tail: bool,
    /// With --tail, also estimate the level reached once in this many releases, besides n, 10 n and
    /// 100 n; repeatable.
    #[arg(long, value_name = "RELEASES", requires = "tail", value_parser = releases)]
    pub(crate) once_in: Vec<f64>,
    /// Write the page to this file, and nothing into the run directory.
    #[arg(long, value_name = "FILE", conflicts_with = "format")]
    pub(crate) html: Option<PathBuf>,
    /// Print the run's results in this format instead of the summary; write nothing into the run
    /// directory.
    #[arg(long, value_name = "FORMAT", conflicts_with = "json")]
    pub(crate) format: Option<ReportFormat>,
    /// With --format, output file; for latex a directory [default: standard output].
    #[arg(long, value_name = "PATH", requires = "format")]
    pub(crate) out: Option<PathBuf>,
    /// Print one JSON object instead of the summary.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Formats of a run's results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// OpenMetrics text, for Prometheus or node exporter's textfile collector.
    Openmetrics,
    /// Comma-separated values, one line per value.
    Csv,
    /// Markdown tables.
    Markdown,
    /// pgfplots data, a document that draws them, and a table; needs --out.
    Latex,
    /// The same table as csv, as Parquet; needs --out.
    Parquet,
}

/// A number of releases: a count, or a power of ten such as 1e8.
fn releases(text: &str) -> Result<f64, String> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || b".e".contains(&byte));
    let number = text.parse::<f64>().ok().filter(|number| plain && number.is_finite() && *number >= 1.0);
    number.ok_or_else(|| format!("invalid number of releases {text:?}: expected such as 100000000 or 1e8"))
}

/// Rebuilds analysis and report of a run, or prints its results in another format.
pub(crate) fn run(args: &ReportArgs) -> anyhow::Result<u8> {
    let ns = |time: &Duration| time.as_nanos().min(i64::MAX as u128) as i64;
    let asked = Asked {
        deadlines_ns: args.deadline.iter().map(ns).collect(),
        tail: args.tail.then(|| args.once_in.clone()),
        ..Asked::default()
    };
    if let Some(format) = args.format {
        // Before the run is read: a missing place to write is known at once.
        let out = destination(format, args.out.as_deref())?;
        exported(&conclude::document_asked(&args.run, &asked)?, format, out)?;
        // Whoever takes the results in another format judges them.
        return Ok(0);
    }
    let document = conclude::document_asked(&args.run, &asked)?;
    let page = match model_page::of_run(&document, &args.run)? {
        Some(page) => page,
        None => report::page(&document)?,
    };
    // The run may be somebody else's, or on a medium that cannot be written.
    if args.html.is_none() {
        conclude::write_analysis(&document, &args.run)?;
    }
    let file = args.html.clone().unwrap_or_else(|| args.run.join(store::REPORT));
    store::write_whole(&file, page.as_bytes())?;
    conclude::print(&document, args.json, conclude::Length::Whole)?;
    Ok(document.outcome.exit_code())
}

/// The destination; an error for a format that does not fit a terminal.
fn destination(format: ReportFormat, out: Option<&Path>) -> anyhow::Result<Option<&Path>> {
    match (format, out) {
        (ReportFormat::Latex, None) => {
            anyhow::bail!("--format latex makes several files; expected --out with a directory for them")
        }
        (ReportFormat::Parquet, None) => {
            anyhow::bail!("--format parquet is no text; expected --out with a file for it")
        }
        _ => Ok(out),
    }
}

fn exported(document: &Document, format: ReportFormat, out: Option<&Path>) -> anyhow::Result<()> {
    let text = match format {
        ReportFormat::Openmetrics => export::openmetrics(document),
        ReportFormat::Csv => export::csv(document),
        ReportFormat::Markdown => export::markdown(document),
        ReportFormat::Latex => return directory(out, &export::latex(document)),
        ReportFormat::Parquet => return whole(out, &export::figures_parquet(document)?),
    };
    if out.is_none() {
        print!("{text}");
    }
    whole(out, text.as_bytes())
}

/// Whole or not at all: a collector may read it at any moment.
fn whole(out: Option<&Path>, bytes: &[u8]) -> anyhow::Result<()> {
    if let Some(file) = out {
        store::write_whole(file, bytes)?;
    }
    Ok(())
}

fn directory(out: Option<&Path>, files: &[(String, String)]) -> anyhow::Result<()> {
    let Some(dir) = out else { return Ok(()) };
    std::fs::create_dir_all(dir).map_err(|source| model::Error::io("create", dir, source))?;
    files.iter().try_for_each(|(name, text)| whole(Some(&dir.join(name)), text.as_bytes()))
}
