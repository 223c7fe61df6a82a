//! What a catalogue must satisfy beyond its shape: ids, references, texts, and that wants fit the
//! values they are about.

use super::kinds::{Change, Probe, ValueType, Want};
use super::{Mechanism, shown, sources};
use model::Error;
use std::collections::BTreeSet;
use std::path::Path;

/// The CPU sets that a template may name.
pub(super) const SETS: [&str; 4] = ["isolated", "isolated:hex", "housekeeping", "housekeeping:hex"];

/// Checks the mechanisms, of which `files` are the places and texts, in the same order.
pub(super) fn check(mechanisms: &[Mechanism], files: &[(String, String)]) -> Result<(), Error> {
    let ids: BTreeSet<_> = mechanisms.iter().map(|mechanism| mechanism.id.as_str()).collect();
    for (mechanism, (place, text)) in mechanisms.iter().zip(files) {
        let stem = Path::new(place).file_stem().unwrap_or_default().to_string_lossy();
        let bad = |key: &str, what: String, expected: &str| {
            let line = text.lines().position(|line| line.starts_with(key)).map_or(1, |at| at + 1);
            Err(Error::invalid(format!("{place}:{line}"), what, expected))
        };
        if mechanism.id != stem {
            return bad("id", format!("id {:?}", mechanism.id), &format!("{stem:?}, the name of the file"));
        }
        if let Some(key) = empty(mechanism) {
            return bad(key, format!("{key} is empty"), "some words");
        }
        for (key, named) in [("requires", &mechanism.requires), ("conflicts", &mechanism.conflicts)] {
            if let Some(id) = named.iter().find(|id| !ids.contains(id.as_str())) {
                return bad(
                    key,
                    format!("{key} names {id:?}"),
                    "the id of a mechanism in the same catalogue",
                );
            }
        }
        if let Some(what) = misfit(mechanism) {
            return bad("value", what, "a want and a change that fit the value's type");
        }
        if let Some(what) = shown::misfit(mechanism) {
            return bad("[shown]", what, "evidence that goes with the mechanism");
        }
        if let Some(source) = mechanism.sources.iter().find(|source| !sources::is_dated(source)) {
            return bad("sources", format!("source {source:?}"), sources::EXPECTED);
        }
        for template in mechanism.change.iter().filter_map(template) {
            if let Some(name) = names(template).find(|name| !SETS.contains(name)) {
                return bad(
                    "[[change]]",
                    format!("{{{name}}} in {template:?}"),
                    "{isolated} or {housekeeping}, :hex or not",
                );
            }
        }
    }
    Ok(())
}

fn empty(mechanism: &Mechanism) -> Option<&'static str> {
    let texts = [
        ("title", &mechanism.title),
        ("harm", &mechanism.harm),
        ("why", &mechanism.why),
        ("cost", &mechanism.cost),
        ("absent", &mechanism.absent),
    ];
    let text = texts.iter().find(|(_, text)| text.trim().is_empty()).map(|(key, _)| *key);
    text.or(mechanism.sources.is_empty().then_some("sources"))
}

/// Why want, value and changes do not go together.
fn misfit(mechanism: &Mechanism) -> Option<String> {
    let set = matches!(mechanism.value, ValueType::Hexmask | ValueType::Cpulist | ValueType::PidAffinity);
    let about_sets = matches!(mechanism.want, Want::Covers {} | Want::Avoids {});
    let active = matches!(
        mechanism.probe,
        Probe::Daemon { .. }
            | Probe::Swaps {}
            | Probe::Units { .. }
            | Probe::Listing { .. }
            | Probe::SchedDomains {}
    );
    if about_sets && !set {
        return Some(format!("a want of CPU sets with value {:?}", mechanism.value));
    }
    if active != matches!(mechanism.want, Want::None {}) {
        return Some(
            "want none goes with daemons, units, swap, lists and domains, and only there".to_owned(),
        );
    }
    let literals: Vec<_> = match &mechanism.want {
        Want::Literal { value } => vec![value],
        Want::Contested { values, .. } => values.iter().collect(),
        _ => Vec::new(),
    };
    let number = mechanism.value == ValueType::Integer;
    if let Some(value) = literals.iter().find(|value| number && value.parse::<i64>().is_err()) {
        return Some(format!("want {value:?} is no integer"));
    }
    let spelled_hex = mechanism
        .change
        .iter()
        .filter_map(written)
        .find(|value| value.contains('{'))
        .map(|v| v.contains(":hex"));
    match (mechanism.value, spelled_hex) {
        (ValueType::Hexmask, Some(false)) => Some("a CPU list is written into a hex mask".to_owned()),
        (ValueType::Cpulist, Some(true)) => Some("a hex mask is written into a CPU list".to_owned()),
        _ => None,
    }
}

/// What the change writes into the probe's own files.
fn written(change: &Change) -> Option<&str> {
    match change {
        Change::Write { path: None, value, .. } => Some(value),
        _ => None,
    }
}

fn template(change: &Change) -> Option<&str> {
    match change {
        Change::Option { value }
        | Change::Parameter { value }
        | Change::Write { value, .. }
        | Change::Governor { value } => Some(value),
        Change::Advice { what, .. } => Some(what),
        _ => None,
    }
}

/// The names in braces.
fn names(template: &str) -> impl Iterator<Item = &str> {
    template.split('{').skip(1).map(|rest| rest.split_once('}').map_or(rest, |(name, _)| name))
}

#[cfg(test)]
mod tests {
    use super::super::Catalogue;
    use super::*;

    fn changed(id: &str, change: impl Fn(&mut Mechanism)) -> String {
        let mut mechanism = Catalogue::embedded().unwrap().get(id).unwrap().clone();
        change(&mut mechanism);
        let place = format!("{id}.toml");
        check(&[mechanism], &[(place, "id = \"x\"\nvalue = \"word\"\n".to_owned())]).unwrap_err().to_string()
    }

    #[test]
    fn a_want_must_fit_its_value() {
        for (id, want) in [
            ("swap", Want::Covers {}),
            ("numa_balancing", Want::Literal { value: "never".into() }),
            ("numa_balancing", Want::None {}),
        ] {
            let error = changed(id, |mechanism| mechanism.want = want.clone());
            assert!(error.starts_with(&format!("{id}.toml:2: ")), "{error}");
        }
    }

    #[test]
    fn masks_and_lists_are_not_mixed_and_sets_are_known() {
        let error = changed("workqueue-cpumask", |mechanism| {
            mechanism.change =
                vec![Change::Write { path: None, value: "{housekeeping}".into(), caveat: None }];
        });
        assert!(error.contains("a CPU list is written into a hex mask"), "{error}");
        let error = changed("workqueue-cpumask", |mechanism| {
            mechanism.change = vec![Change::Write { path: None, value: "{house:hex}".into(), caveat: None }];
        });
        assert!(error.contains("{house:hex}"), "{error}");
    }

    #[test]
    fn references_lead_somewhere() {
        let error = changed("swap", |mechanism| mechanism.requires = vec!["gone".into()]);
        assert!(error.contains("requires names \"gone\""), "{error}");
    }
}
