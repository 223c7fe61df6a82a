//! `stillcore report`: the conclusions of a run, drawn again. Needs no root, no Linux tracing, no network.

use crate::args::ReportArgs;
use crate::conclude;
use analysis::Asked;

/// Rebuilds analysis and report of a run.
pub(crate) fn run(args: &ReportArgs) -> anyhow::Result<u8> {
    let ns = |time: &std::time::Duration| time.as_nanos().min(i64::MAX as u128) as i64;
    let asked = Asked {
        deadlines_ns: args.deadline.iter().map(ns).collect(),
        tail: args.tail.then(|| args.once_in.clone()),
        ..Asked::default()
    };
    let document = conclude::document_asked(&args.run, &asked)?;
    match &args.html {
        // The run may be somebody else's, or on a medium that cannot be written.
        Some(html) => conclude::write_page(&document, html)?,
        None => conclude::write(&document, &args.run)?,
    }
    conclude::print(&document, args.json)?;
    Ok(document.outcome.exit_code())
}
