//! `stillcore explain`: one mechanism, one event class, or one kernel fix, in the words of the
//! catalogue.

use audit::Catalogue;
use audit::catalogue::mechanism_section;
use audit::fixes::{Fix, Fixes, NEWEST};
use clap::Args;
use model::events::EventCatalogue;
use model::{Error, EventClass};
use std::fmt::Write;

/// Arguments of `explain`.
#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// ID of a mechanism, an event class such as ipi.call, or the start of a commit ID.
    pub(crate) word: String,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Explains.
pub(crate) fn run(args: &ExplainArgs) -> anyhow::Result<u8> {
    let catalogue = Catalogue::embedded()?;
    let word = args.word.as_str();
    let text = if let Some(mechanism) = catalogue.get(word) {
        mechanism_section(mechanism)
    } else if let Some(class) = EventClass::ALL.iter().find(|class| class.name() == word) {
        class_page(*class, &catalogue)?
    } else if let Some(fix) = fix(word)? {
        fix_page(&fix)
    } else {
        return Err(unknown(word, &catalogue).into());
    };
    if args.json {
        let answer = serde_json::json!({ "schema": "stillcore.explain/1", "word": word, "text": text });
        println!("{answer}");
    } else {
        print!("{text}");
    }
    Ok(0)
}

fn fix(word: &str) -> anyhow::Result<Option<Fix>> {
    let long_enough = word.len() >= 7;
    Ok(Fixes::embedded()?.all.into_iter().find(|fix| long_enough && fix.commit.starts_with(word)))
}

fn class_page(class: EventClass, catalogue: &Catalogue) -> anyhow::Result<String> {
    let events = EventCatalogue::embedded()?;
    let mut page = format!("{}\n\n", class.name());
    let names: Vec<_> = events
        .events
        .iter()
        .filter(|event| event.class == Some(class))
        .map(|event| event.name.as_str())
        .collect();
    if !names.is_empty() {
        let _ = writeln!(page, "seen as: {}", names.join(", "));
    }
    if let Some(remedy) = events.classes.get(&class) {
        if let Some(why) = &remedy.why_none {
            let _ = writeln!(page, "{why}");
        }
        for (label, ids) in &remedy.by_label {
            let why = || remedy.why_not.get(label).cloned().unwrap_or_default();
            let ids = if ids.is_empty() { format!("nothing known, {}", why()) } else { ids.join(", ") };
            let _ = writeln!(page, "where {label} ran: {ids}");
        }
    }
    page.push_str("\nremoved by\n");
    for mechanism in catalogue.mechanisms.iter().filter(|mechanism| mechanism.removes.contains(&class)) {
        let choice = if mechanism.optional { " (a choice)" } else { "" };
        let _ = writeln!(page, "  {:<32} {}{choice}", mechanism.id, mechanism.title);
    }
    Ok(page)
}

fn fix_page(fix: &Fix) -> String {
    let none = format!("in no mainline kernel up to {}.{}", NEWEST.0, NEWEST.1);
    let first = fix
        .first
        .as_deref()
        .map_or(none, |first| format!("first in {first}; stable kernels may have it earlier"));
    let mut page = format!("{} {}\n\n{}: {first}\n", fix.commit, fix.title, fix.subsystem);
    if !fix.interference.is_empty() {
        let _ = writeln!(page, "without it: {}", fix.interference);
    }
    if !fix.mechanisms.is_empty() {
        let _ = writeln!(page, "softened by: {}", fix.mechanisms.join(", "));
    }
    if let Some(note) = &fix.note {
        let _ = writeln!(page, "note: {note}");
    }
    let _ = writeln!(page, "checked: {}", fix.checked);
    page
}

/// The error for an unknown id; it names the nearest ones.
fn unknown(word: &str, catalogue: &Catalogue) -> Error {
    let ids = catalogue.mechanisms.iter().map(|mechanism| mechanism.id.as_str());
    let parts: Vec<_> = word.split(['-', '_', '.']).filter(|part| part.len() > 2).collect();
    let near: Vec<_> = ids.filter(|id| parts.iter().any(|part| id.contains(part))).take(6).collect();
    let expected = if near.is_empty() {
        "an id as stillcore audit --all lists them, or an event class".to_owned()
    } else {
        format!("perhaps {}", near.join(", "))
    };
    Error::invalid("explain", format!("there is nothing called {word:?}"), expected)
}
