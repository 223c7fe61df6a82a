//! `stillcore report`: the conclusions of a run, drawn again. Needs no root, no Linux tracing, no network.

use crate::args::ReportArgs;
use crate::conclude;
use model::store;

/// Rebuilds analysis and report of a run.
pub(crate) fn run(args: &ReportArgs) -> anyhow::Result<u8> {
    let document = conclude::document(&args.run)?;
    let html = args.html.clone().unwrap_or_else(|| args.run.join(store::REPORT));
    conclude::write(&document, &args.run, &html)?;
    conclude::print(&document, args.json)?;
    Ok(document.outcome.exit_code())
}
