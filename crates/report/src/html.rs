//! The page: one offline HTML file that works with scripts off, in light and dark, and on paper.
//!
//! A section is a partial in `templates/` and, where it needs computed values or charts, a file
//! beside this one that returns them. A new analysis adds one of each and a row in [`SECTIONS`].

mod bounds;
mod cards;
mod certainty;
mod clocks;
mod comparison;
mod conditions;
mod data;
mod events;
mod exposure;
mod filters;
mod findings;
mod front;
mod gist;
mod graph;
mod groups;
mod ipi;
mod matrix;
mod noise;
mod notebook;
mod off;
mod opening;
mod overheads;
mod overlap;
mod paths;
mod periodic;
mod plot;
mod policy;
mod senders;
mod shown;
mod snapshots;
mod sources;
mod study;
mod summary;
mod tail;
mod task_model;
mod taskset;
mod time;
mod timeline;
mod wakeup;
mod watch;
mod windows;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, Value, context};
use model::foreign::is_unseen;
use serde::Serialize;

use crate::{Document, Error, heading};

pub use exposure::exposure_page;
pub use front::PageNext;
pub use groups::comparison_page;
pub use matrix::matrix_page;
pub use notebook::notebook;
pub use study::{
    Judged, JudgedVerdict, StudyFigure, StudyPage, StudySheet, Times, study_page, study_sentence,
};
pub use task_model::{Compared, TaskModelPage, task_model_page};

/// One section of the page.
struct Section {
    /// Anchor, and name of the partial.
    id: &'static str,
    /// Heading.
    title: &'static str,
    /// The partial.
    template: &'static str,
    /// What the partial gets as `x`, beside the document.
    figures: fn(&Document) -> Value,
    /// Whether the page has it.
    shown: fn(&Document) -> bool,
}

/// A section and the partial of its name.
macro_rules! section {
    ($id:literal, $title:literal, $figures:path, $shown:path) => {
        Section {
            id: $id,
            title: $title,
            template: include_str!(concat!("../templates/", $id, ".html")),
            figures: $figures,
            shown: $shown,
        }
    };
}

/// The sections, folded below the opening, in the order in which a reader asks: what to do, the
/// numbers, by whom, over time, against what, what weakens it all, how the machine was set, how to
/// read it.
const SECTIONS: &[Section] = &[
    section!("advice", "What is wrong, in order of cost", nothing, shown::advice),
    section!("summary", "Worst events", summary::figures, shown::summary),
    section!("paths", "Where the latency went", paths::figures, shown::paths),
    section!("wakeup", "Wake-up latency", wakeup::figures, shown::wakeup),
    section!("noise", "Noise", noise::figures, shown::noise),
    section!("ipi", "Wake-ups from CPU to CPU", ipi::figures, shown::ipi),
    section!("overheads", "Overheads", overheads::figures, shown::overheads),
    section!("periodic", "Jobs", periodic::figures, shown::periodic),
    section!("graph", "Edges", graph::figures, shown::graph),
    section!("taskset", "Task set", taskset::figures, shown::taskset),
    section!("clocks", "Clocks", clocks::figures, shown::clocks),
    section!("watch", "Threads, locks, lint", watch::figures, shown::watch),
    section!("sources", "Who did it", sources::figures, shown::sources),
    section!("off", "Interrupts or preemption off", off::figures, shown::off),
    section!("events", "Interference events", events::figures, shown::assessment),
    section!("snapshots", "What ran during the largest samples", snapshots::figures, shown::snapshots),
    section!("overlap", "Overlap of samples and events", overlap::figures, shown::assessment),
    section!("timeline", "Over time", timeline::figures, shown::timeline),
    section!("time", "Periods and changes", time::figures, shown::time),
    section!("comparison", "Disturbed against idle", comparison::figures, shown::assessment),
    section!("guarantee", "Guarantee", nothing, shown::guarantee),
    section!("certainty", "How sure that is", certainty::figures, shown::certainty),
    section!("tail", "Beyond the largest sample", tail::figures, shown::tail),
    section!("losses", "Losses", losses, always),
    section!("observer", "Cost of measuring", nothing, always),
    section!("conditions", "Conditions", conditions::figures, always),
    section!("disturbance", "Disturbances", nothing, shown::disturbance),
    section!("machine", "Machine", nothing, always),
    section!("findings", "Audit of the isolation", findings::figures, always),
    section!("methods", "Methods", nothing, always),
    section!("how-to-read", "How to read this", nothing, always),
    section!("data", "Data", data::figures, always),
];

fn always(_: &Document) -> bool {
    true
}

fn losses(document: &Document) -> Value {
    context! { losses_known => document.run.has_ended() }
}

fn nothing(_: &Document) -> Value {
    Value::from(())
}

/// What every template sees as `doc`: the document without the long lists, which `figures` turn
/// into tables and charts.
#[derive(Serialize)]
struct View<'a> {
    run: &'a model::Run,
    machine: &'a model::Machine,
    findings: &'a [model::Finding],
    losses: &'a analysis::losses::LossSection,
    guarantee: &'a crate::Guarantee,
    advice: &'a [crate::Advice],
    next: &'a crate::NextStep,
    outcome: &'a crate::Outcome,
    exit: u8,
    measurement: bool,
}

/// The whole page.
pub fn page(document: &Document) -> Result<String, Error> {
    composed(document, None)
}

/// The page of a run of which a task model was made: that one's opening and sections, and folded
/// behind them those of the run.
pub fn page_of_model(document: &Document, model: &TaskModelPage<'_>) -> Result<String, Error> {
    composed(document, Some(model))
}

fn composed(document: &Document, model: Option<&TaskModelPage<'_>>) -> Result<String, Error> {
    let environment = environment()?;
    let doc = value(&View {
        run: &document.run,
        machine: &document.machine.machine,
        findings: &document.findings,
        losses: &document.analysis.losses,
        guarantee: &document.guarantee,
        advice: &document.advice,
        next: &document.next,
        outcome: &document.outcome,
        exit: document.outcome.exit_code(),
        measurement: heading::is_measurement(&document.run),
    });
    let title = heading::title(&document.run);
    let mut sections = match model {
        Some(model) => task_model::sections(&environment, model)?,
        None => Vec::new(),
    };
    for section in SECTIONS.iter().filter(|section| (section.shown)(document)) {
        let x = (section.figures)(document);
        let body = render(&environment, section.id, context! { doc => doc.clone(), x => x })?;
        sections.push(context! {
            id => section.id,
            title => section.title,
            gist => gist::gist(document, section.id),
            body => Value::from_safe_string(body),
        });
    }
    let opening = if let Some(model) = model {
        task_model::front(&environment, model)?
    } else {
        let x = opening::figures(document);
        let text = render(&environment, "opening", context! { doc => doc.clone(), x => x })?;
        Value::from_safe_string(text)
    };
    let figures = Value::from_safe_string(data::embedded(document)?);
    render(
        &environment,
        "page",
        context! { doc => doc, opening => opening, sections => sections, title => title, figures => figures },
    )
}

fn environment() -> Result<Environment<'static>, Error> {
    let mut environment = Environment::new();
    // Lines that hold only a statement leave no line behind.
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
    environment.set_syntax(syntax.map_err(|source| Error::Template { section: "page", source })?);
    // Every value is escaped unless it is marked safe, which only charts and rendered partials are.
    environment.set_auto_escape_callback(|_| minijinja::AutoEscape::Html);
    environment.set_formatter(|out, state, value| match value.as_str() {
        Some(text) if !value.is_safe() && text.contains(is_unseen) => {
            let shown = text.replace(is_unseen, "\u{fffd}");
            minijinja::escape_formatter(out, state, &Value::from(shown))
        }
        _ => minijinja::escape_formatter(out, state, value),
    });
    environment.set_undefined_behavior(minijinja::UndefinedBehavior::SemiStrict);
    filters::add(&mut environment);
    let pages = [
        ("page", include_str!("../templates/page.html")),
        ("opening", include_str!("../templates/opening.html")),
        ("front", include_str!("../templates/front.html")),
        ("exposure", include_str!("../templates/exposure.html")),
        ("matrix", include_str!("../templates/matrix.html")),
        ("notebook", include_str!("../templates/notebook.html")),
        ("groups", include_str!("../templates/groups.html")),
        ("study", include_str!("../templates/study.html")),
        ("task_model", include_str!("../templates/task_model.html")),
        ("macros", include_str!("../templates/macros.html")),
        ("style", include_str!("../templates/style.css")),
        ("script", include_str!("../templates/script.js")),
    ];
    let partials = SECTIONS.iter().map(|section| (section.id, section.template));
    for (name, source) in pages.into_iter().chain(partials).chain(task_model::partials()) {
        environment.add_template(name, source).map_err(|source| Error::Template { section: name, source })?;
    }
    Ok(environment)
}

fn render(environment: &Environment, name: &'static str, values: Value) -> Result<String, Error> {
    let template = environment.get_template(name);
    template
        .and_then(|template| template.render(values))
        .map(|page| policy::sealed(cards::labelled(page)))
        .map_err(|source| Error::Template { section: name, source })
}

/// A value for templates from anything that serialises.
fn value(of: &impl Serialize) -> Value {
    Value::from(Serde(of))
}

/// A chart as markup; none where there was nothing to draw.
fn chart(svg: Option<String>) -> Value {
    svg.map_or(Value::from(()), Value::from_safe_string)
}

#[cfg(test)]
pub(crate) use tests::assert_balanced;

#[cfg(test)]
mod tests;
