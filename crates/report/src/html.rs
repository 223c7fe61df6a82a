//! The page: one offline HTML file that works with scripts off, in light and dark, and on paper.
//!
//! A section is a partial in `templates/` and, where it needs figures computed or charts drawn, a file beside this one that
//! returns them. A new analysis adds one of each and a row in [`SECTIONS`].

mod comparison;
mod events;
mod filters;
mod noise;
mod overlap;
mod summary;
mod wakeup;
mod windows;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, Value, context};
use serde::Serialize;

use crate::{Document, Error};

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
}

/// The sections in the order in which a reader needs them: the answer, what it rests on, what weakens it, how to read it.
const SECTIONS: &[Section] = &[
    section("summary", "Summary", include_str!("../templates/summary.html"), summary::figures),
    section("wakeup", "Wake-up latency", include_str!("../templates/wakeup.html"), wakeup::figures),
    section("noise", "Noise", include_str!("../templates/noise.html"), noise::figures),
    section("events", "Interference events", include_str!("../templates/events.html"), events::figures),
    section(
        "overlap",
        "Overlap of samples and events",
        include_str!("../templates/overlap.html"),
        overlap::figures,
    ),
    section(
        "comparison",
        "Disturbed against idle",
        include_str!("../templates/comparison.html"),
        comparison::figures,
    ),
    section("guarantee", "Guarantee", include_str!("../templates/guarantee.html"), nothing),
    section("findings", "Audit of the isolation", include_str!("../templates/findings.html"), nothing),
    section("disturbance", "Disturbances", include_str!("../templates/disturbance.html"), nothing),
    section("losses", "Losses", include_str!("../templates/losses.html"), nothing),
    section("observer", "Cost of measuring", include_str!("../templates/observer.html"), nothing),
    section("machine", "Machine", include_str!("../templates/machine.html"), nothing),
    section("how-to-read", "How to read this", include_str!("../templates/how-to-read.html"), nothing),
];

const fn section(
    id: &'static str,
    title: &'static str,
    template: &'static str,
    figures: fn(&Document) -> Value,
) -> Section {
    Section { id, title, template, figures }
}

fn nothing(_: &Document) -> Value {
    Value::from(())
}

/// What every template sees as `doc`: the document without the long lists, which `figures` turn into tables and charts.
#[derive(Serialize)]
struct View<'a> {
    run: &'a model::Run,
    machine: &'a model::Machine,
    findings: &'a [model::Finding],
    losses: &'a analysis::shape::LossSection,
    guarantee: &'a crate::Guarantee,
    advice: &'a [crate::Advice],
    next: &'a crate::NextStep,
    outcome: &'a crate::Outcome,
    exit: u8,
}

/// The whole page.
pub fn page(document: &Document) -> Result<String, Error> {
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
    });
    let several = document.run.measured_cpus.len() > 1;
    let mut sections = Vec::new();
    for section in SECTIONS {
        let x = (section.figures)(document);
        let body = render(&environment, section.id, context! { doc => doc.clone(), x => x })?;
        sections.push(
            context! { id => section.id, title => section.title, body => Value::from_safe_string(body) },
        );
    }
    render(&environment, "page", context! { doc => doc, sections => sections, several => several })
}

fn environment() -> Result<Environment<'static>, Error> {
    let mut environment = Environment::new();
    // Lines that hold only a statement leave no line behind.
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
    environment.set_syntax(syntax.map_err(|source| Error::Template { section: "page", source })?);
    // Every value is escaped unless it is marked safe, which only charts and rendered partials are.
    environment.set_auto_escape_callback(|_| minijinja::AutoEscape::Html);
    environment.set_undefined_behavior(minijinja::UndefinedBehavior::SemiStrict);
    filters::add(&mut environment);
    let pages = [
        ("page", include_str!("../templates/page.html")),
        ("macros", include_str!("../templates/macros.html")),
        ("style", include_str!("../templates/style.css")),
        ("script", include_str!("../templates/script.js")),
    ];
    let partials = SECTIONS.iter().map(|section| (section.id, section.template));
    for (name, source) in pages.into_iter().chain(partials) {
        environment.add_template(name, source).map_err(|source| Error::Template { section: name, source })?;
    }
    Ok(environment)
}

fn render(environment: &Environment, name: &'static str, values: Value) -> Result<String, Error> {
    let template = environment.get_template(name);
    template
        .and_then(|template| template.render(values))
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
mod tests;
