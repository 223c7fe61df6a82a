//! `stillcore report`: the conclusions of a run, drawn again. Needs no root, no Linux tracing, no network.

use crate::args::ReportArgs;
use crate::conclude;

/// Rebuilds analysis and report of a run.
pub(crate) fn run(args: &ReportArgs) -> anyhow::Result<u8> {
    let document = conclude::document(&args.run)?;
    match &args.html {
        // The run may be somebody else's, or on a medium that cannot be written.
        Some(html) => conclude::write_page(&document, html)?,
        None => conclude::write(&document, &args.run)?,
    }
    conclude::print(&document, args.json)?;
    Ok(document.outcome.exit_code())
}
