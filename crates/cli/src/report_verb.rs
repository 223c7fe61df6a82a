//! `stillcore report`: the conclusions of a run, drawn again. Needs no root, no Linux tracing, no network.

use crate::args::{ReportArgs, ReportFormat};
use crate::conclude;
use analysis::Asked;
use model::store;
use report::{Document, export};
use std::path::Path;

/// Rebuilds analysis and report of a run, or prints its results in another format.
pub(crate) fn run(args: &ReportArgs) -> anyhow::Result<u8> {
    let ns = |time: &std::time::Duration| time.as_nanos().min(i64::MAX as u128) as i64;
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
    match &args.html {
        // The run may be somebody else's, or on a medium that cannot be written.
        Some(html) => conclude::write_page(&document, html)?,
        None => conclude::write(&document, &args.run)?,
    }
    conclude::print(&document, args.json)?;
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
