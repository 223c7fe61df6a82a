//! From a run directory to its conclusions: what `assess` does at its end, and `report` at any time
//! later, on any machine.

use crate::{stdout, terminal};
use analysis::{Analysis, Asked};
use anyhow::Context;
use model::events::EventCatalogue;
use model::{Run, monitor, store};
use report::Document;
use std::path::Path;

/// Reads a run and draws its conclusions.
pub(crate) fn document(dir: &Path) -> anyhow::Result<Document> {
    document_asked(dir, &Asked::default())
}

/// The same with what else was asked.
pub(crate) fn document_asked(dir: &Path, asked: &Asked) -> anyhow::Result<Document> {
    let run = model::run::stored::read_run(dir)?;
    let analysis = analysis::analyse_asked(dir, asked)
        .with_context(|| format!("{} cannot be analysed", dir.display()))?;
    let deadlines_ns = asked.deadlines_ns.clone();
    Ok(Document { deadlines_ns, ..of_analysis(dir, run, analysis)? })
}

/// Draws the conclusions from an analysis of the run.
pub(crate) fn of_analysis(dir: &Path, run: Run, analysis: Analysis) -> anyhow::Result<Document> {
    let machine = store::read_json(&dir.join(&run.machine_before))?;
    let findings = store::read_json(&dir.join(store::FINDINGS))?;
    let catalogue = EventCatalogue::embedded()?;
    let document =
        Document::conclude(&dir.display().to_string(), run, machine, findings, analysis, &catalogue);
    let breach = dir.join(monitor::FILE);
    let breach = if breach.exists() { Some(store::read_json(&breach)?) } else { None };
    Ok(Document { breach, ..document })
}

/// Writes `analysis.json` and `report.html` into the run.
pub(crate) fn write(document: &Document, dir: &Path) -> anyhow::Result<()> {
    write_analysis(document, dir)?;
    write_page(document, &dir.join(store::REPORT))
}

/// Writes `analysis.json` alone.
pub(crate) fn write_analysis(document: &Document, dir: &Path) -> anyhow::Result<()> {
    Ok(store::write_json(&dir.join(store::ANALYSIS), &document.analysis_json()?)?)
}

/// Writes the page to a place of its own.
pub(crate) fn write_page(document: &Document, html: &Path) -> anyhow::Result<()> {
    Ok(store::write_whole(html, report::page(document)?.as_bytes())?)
}

/// How much of the conclusions a verb prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Length {
    /// The answer, on one screen.
    Screen,
    /// Every section.
    Whole,
}

/// Prints the answer: as text, or as one JSON object.
pub(crate) fn print(document: &Document, json: bool, length: Length) -> anyhow::Result<()> {
    let text = match (json, length) {
        (true, _) => report::assess_json(document)?,
        (false, Length::Screen) => report::screen(document, terminal::text_options()),
        (false, Length::Whole) => report::summary(document, terminal::text_options()),
    };
    // The summary has made text from outside harmless, and may have colours.
    if json {
        println!("{}", text.trim_end());
    } else {
        stdout::put(&format!("{}\n", text.trim_end()));
    }
    Ok(())
}
