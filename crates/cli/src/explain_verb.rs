//! `stillcore explain`: one isolation setting, one event class, or one kernel fix, in the words of
//! the catalogue.

use crate::failure::Hinted;
use crate::failure::nearest::{containing, nearest};
use crate::folded::folded;
use audit::catalogue::Layer;
use audit::catalogue::mechanism_section;
use audit::fixes::{Fix, Fixes, NEWEST};
use audit::{Catalogue, Mechanism};
use clap::Args;
use model::EventClass;
use model::events::EventCatalogue;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The shortest beginning of a commit ID that names a fix, as git's own.
const SHORTEST_COMMIT: usize = 7;
/// The words of reports and of help.
const GLOSSARY: &str = include_str!("../../../docs/glossary.md");
/// Names of one kind that a hint lists at most.
const MOST_NAMES: usize = 6;

/// Arguments of `explain`.
#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// ID of a mechanism, an event class such as ipi.call, the start of a commit ID, or a word of a
    /// report such as exact [default: list them].
    pub(crate) word: Option<String>,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Explains.
pub(crate) fn run(args: &ExplainArgs) -> anyhow::Result<u8> {
    let catalogue = Catalogue::embedded()?;
    let word = args.word.as_deref().unwrap_or_default();
    let text = if args.word.is_none() {
        every_word(&catalogue)
    } else if let Some(mechanism) = catalogue.get(word) {
        mechanism_section(mechanism)
    } else if let Some(class) = EventClass::ALL.iter().find(|class| class.name() == word) {
        class_page(*class, &catalogue)?
    } else if let Some(fix) = fix(word)? {
        fix_page(&fix)
    } else if let Some(entry) = of_glossary(word) {
        entry
    } else {
        return Err(unknown(word, &catalogue)?.into());
    };
    if args.json {
        let answer = serde_json::json!({ "schema": "stillcore.explain/1", "word": word, "text": text });
        println!("{answer}");
    } else {
        print!("{text}");
    }
    Ok(0)
}

/// What the glossary says of a word, which may be one of several that a row explains together.
fn of_glossary(word: &str) -> Option<String> {
    let wanted = word.to_lowercase().replace(['-', '_'], " ");
    let rows = GLOSSARY.lines().filter_map(|line| {
        let (words, meaning) = line.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | ")?;
        Some((words, meaning))
    });
    let mut named = rows.filter(|(words, _)| words.split(", ").any(|one| one.eq_ignore_ascii_case(&wanted)));
    let (words, meaning) = named.next()?;
    Some(folded(&format!("{words}: {}", plain(meaning)), "  "))
}

/// Markdown without its marks: names of code, and links as their text.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    for (at, part) in text.replace('`', "").split("](").enumerate() {
        let part = if at == 0 { part } else { part.split_once(')').map_or(part, |(_, behind)| behind) };
        plain.push_str(&part.replace('[', ""));
    }
    plain
}

/// All that can be explained: classes with what they are, then settings by what they act on.
fn every_word(catalogue: &Catalogue) -> String {
    let mut page = "event classes: what interrupts a CPU\n".to_owned();
    for class in EventClass::ALL {
        page.push_str(&folded(&format!("  {}: {}", class.name(), class.about()), "      "));
    }
    let mut layers = BTreeMap::<Layer, Vec<&str>>::new();
    for mechanism in &catalogue.mechanisms {
        layers.entry(mechanism.layer).or_default().push(&mechanism.id);
    }
    page.push_str("\nsettings, by where they are made\n");
    for (layer, ids) in layers {
        let line = format!("  {}: {}", layer.words(), ids.join(", "));
        page.push_str(&folded(&line, "      "));
    }
    page.push_str("\nkernel fixes: by commit, as stillcore audit lists them\nwords of reports: such as exact, exposure, jitter, 'missed release'\n");
    page
}

fn fix(word: &str) -> anyhow::Result<Option<Fix>> {
    let long_enough = word.len() >= SHORTEST_COMMIT;
    Ok(Fixes::embedded()?.all.into_iter().find(|fix| long_enough && fix.commit.starts_with(word)))
}

fn class_page(class: EventClass, catalogue: &Catalogue) -> anyhow::Result<String> {
    let events = EventCatalogue::embedded()?;
    let mut page = format!("{}\n\n{}\n\n", class.name(), folded(class.about(), "").trim_end());
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
    if !page.ends_with("\n\n") {
        page.push('\n');
    }
    let removes = |mechanism: &&Mechanism| mechanism.removes.contains(&class);
    if !catalogue.mechanisms.iter().any(|mechanism| removes(&mechanism)) {
        return Ok(page.trim_end().to_owned() + "\n");
    }
    let first = events.classes.get(&class).map(|remedy| remedy.remedies.as_slice()).unwrap_or_default();
    let is_first = |mechanism: &&Mechanism| first.contains(&mechanism.id);
    let mut listed = |title: &str, mechanisms: Vec<&Mechanism>| {
        if !mechanisms.is_empty() {
            let _ = writeln!(page, "{title}");
        }
        for mechanism in mechanisms {
            let choice = if mechanism.optional { " (a choice)" } else { "" };
            let _ = writeln!(page, "  {:<32} {}{choice}", mechanism.id, mechanism.title);
        }
    };
    let (best, others): (Vec<_>, Vec<_>) =
        catalogue.mechanisms.iter().filter(|one| removes(one) || is_first(one)).partition(is_first);
    listed("removed, most of it, by", best);
    listed(if first.is_empty() { "removed by" } else { "parts of it by" }, others);
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

/// The error for a word that names nothing, with what contains it, else with what is most similar.
fn unknown(word: &str, catalogue: &Catalogue) -> anyhow::Result<Hinted> {
    let fixes = Fixes::embedded()?.all;
    let kinds: [(&str, Vec<&str>); 3] = [
        ("event class", EventClass::ALL.iter().map(|class| class.name()).collect()),
        ("setting", catalogue.mechanisms.iter().map(|mechanism| mechanism.id.as_str()).collect()),
        ("kernel fix", fixes.iter().map(|fix| fix.commit.as_str()).collect()),
    ];
    let all = || kinds.iter().flat_map(|(_, names)| names.iter().copied());
    let whole = all().any(|name| name.contains(word));
    // Commits that are alike have nothing in common.
    let (named, _) = kinds.split_at(2);
    let similar = nearest(word, named.iter().flat_map(|(_, names)| names.iter().copied()))
        .map(|name| format!("did you mean 'stillcore explain {name}'?"));
    let found = kinds.iter().filter(|_| whole || similar.is_none()).filter_map(|(kind, names)| {
        let names = names.iter().copied();
        let like = if whole {
            names.filter(|name| name.contains(word)).take(MOST_NAMES).collect()
        } else {
            containing(word, names, MOST_NAMES)
        };
        let plural = if like.len() > 1 { plural(kind) } else { (*kind).to_owned() };
        (!like.is_empty()).then(|| format!("{plural} {}", like.join(", ")))
    });
    let found: Vec<_> = found.collect();
    let hint = if found.is_empty() { similar } else { Some(found.join("; ")) };
    let all = || format!("event classes {}; settings: stillcore audit --all", kinds[0].1.join(", "));
    let hint = hint.unwrap_or_else(all);
    // It may be the name of a program.
    let tasks = if whole { "" } else { " (of a task: stillcore resources --cpus N, stillcore top)" };
    Ok(Hinted::new(format!("nothing is called '{word}'"), format!("{hint}{tasks}")))
}

fn plural(kind: &str) -> String {
    let ending = if kind.ends_with(['s', 'x']) { "es" } else { "s" };
    format!("{kind}{ending}")
}
