//! The page of a model: of a run folded behind it, or of a trace by itself.

use super::document::{Document, WhatIf};
use super::what_if_text::machines;
use analysis::task_model::observe::{Observed, observe};
use analysis::task_model::optimise::{Optimised, Proposal};
use analysis::task_model::shape::FILE;
use attribution::jobs::read::Source;
use model::store;
use report::task_model::searched;
use report::{Compared, TaskModelPage, page_of_model, task_model_page};
use std::path::Path;

/// Writes it.
pub(super) fn write(
    document: &Document,
    observed: &Observed,
    run: Option<&report::Document>,
    file: &Path,
) -> anyhow::Result<()> {
    Ok(store::write_whole(file, text(document, observed, run)?.as_bytes())?)
}

/// The page of a run that has a model: what the model says, and what was around the job nearest to
/// its deadline, found again in the trace. `None` for other runs.
pub(crate) fn of_run(run: &report::Document, dir: &Path) -> anyhow::Result<Option<String>> {
    if !dir.join(FILE).exists() {
        return Ok(None);
    }
    let document = Document::read(dir)?;
    let observed = match &document.guarantee {
        Some(guarantee) => {
            let source = Source::of_run(dir, &run.run)?;
            observe(&source, &source.jobs()?, &document.model, guarantee)?
        }
        None => Observed::default(),
    };
    text(&document, &observed, Some(run)).map(Some)
}

fn text(document: &Document, observed: &Observed, run: Option<&report::Document>) -> anyhow::Result<String> {
    let source = document.source.display().to_string();
    let earlier = document.checked_model.as_ref().map(|path| path.display().to_string());
    let mut compared = Vec::new();
    let asked = document.what_if.as_ref().map(asked).unwrap_or_default();
    let mut assumed = Vec::new();
    if let (Some(now), Some(WhatIf { guarantee: Some(then), machine, assumed: notes, .. })) =
        (&document.guarantee, &document.what_if)
    {
        assumed.extend(machine.iter().flat_map(|machine| machines(machine, &document.source)));
        assumed.extend(notes.iter().cloned());
        compared.push(Compared { title: "What if", changes: &asked, now, then, assumed: &assumed });
    }
    let proposed = document.optimised.as_ref().and_then(|one| one.proposal.as_ref());
    let proposed: Vec<String> =
        proposed.iter().flat_map(|one| one.changes.iter().map(ToString::to_string)).collect();
    let title = document.optimised.as_ref().map(searched).unwrap_or_default();
    if let Some(Optimised { now, proposal: Some(Proposal { then, .. }), assumed, .. }) = &document.optimised {
        compared.push(Compared { title: &title, changes: &proposed, now, then, assumed });
    }
    let page = TaskModelPage {
        source: &source,
        model: &document.model,
        guarantee: document.guarantee.as_ref(),
        checked: document.checked.as_ref(),
        earlier: earlier.as_deref(),
        observed,
        compared: &compared,
    };
    Ok(match run {
        Some(run) => page_of_model(run, &page)?,
        None => task_model_page(&page)?,
    })
}

/// What was asked for, as it was typed.
fn asked(what_if: &WhatIf) -> Vec<String> {
    let machine = what_if.machine.iter().map(|machine| machine.asked.clone());
    machine.chain(what_if.changes.iter().map(ToString::to_string)).collect()
}
