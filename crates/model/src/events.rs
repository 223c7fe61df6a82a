//! The event catalogue: which tracepoints are recorded, what class each belongs to, and what removes each class.
//!
//! The data is `catalogue/events.toml`; its header explains every key.

use crate::{Error, EventClass};
use serde::Deserialize;
use std::collections::BTreeMap;

/// The catalogue that ships with stillcore.
pub const EMBEDDED: &str = include_str!("../../../catalogue/events.toml");

/// What an event does in a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Opens a span.
    Enter,
    /// Closes a span.
    Exit,
    /// Stands alone.
    Instant,
    /// The scheduler's switch.
    Switch,
    /// Tells of cause or receipt; no interference itself.
    Link,
}

/// One tracepoint.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventSpec {
    /// `system:event`.
    pub name: String,
    /// What it does in a stream.
    pub role: Role,
    /// Class of its span or instant.
    pub class: Option<EventClass>,
    /// The event that closes the span.
    pub exit: Option<String>,
    /// Field that must agree between the two ends.
    pub key: Option<String>,
    /// Field that says what ran.
    pub label: Option<String>,
    /// Field that holds the length in ns of an instant.
    pub length_ns: Option<String>,
    /// In-kernel filter.
    pub filter: Option<String>,
    /// Row of `/proc/interrupts` that counts the same, or `softirqs`.
    pub row: Option<String>,
    /// Other classes by label value.
    #[serde(default)]
    pub when: BTreeMap<String, EventClass>,
    /// Only on this architecture.
    pub arch: Option<String>,
    /// Whether a context switch may come between enter and exit.
    #[serde(default)]
    pub preemptible: bool,
}

/// What removes the events of a class.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Remedy {
    /// Mechanism ids, best first.
    #[serde(default)]
    pub remedies: Vec<String>,
    /// Why there is none.
    pub why_none: Option<String>,
}

/// The whole catalogue.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventCatalogue {
    /// The tracepoints, in the order in which they are enabled.
    #[serde(rename = "event")]
    pub events: Vec<EventSpec>,
    /// Remedies by class.
    #[serde(rename = "class")]
    pub classes: BTreeMap<EventClass, Remedy>,
}

impl EventCatalogue {
    /// Reads a catalogue; `place` is what an error names.
    pub fn parse(place: &str, text: &str) -> Result<Self, Error> {
        let catalogue: Self = toml::from_str(text).map_err(|error| {
            let line =
                error.span().map_or(1, |span| text[..span.start.min(text.len())].lines().count().max(1));
            Error::invalid(format!("{place}:{line}"), error.message(), "an event catalogue")
        })?;
        catalogue.check(place)?;
        Ok(catalogue)
    }

    /// The catalogue that ships with stillcore.
    pub fn embedded() -> Result<Self, Error> {
        Self::parse("catalogue/events.toml", EMBEDDED)
    }

    /// The entry of an event.
    pub fn get(&self, name: &str) -> Option<&EventSpec> {
        self.events.iter().find(|event| event.name == name)
    }

    fn check(&self, place: &str) -> Result<(), Error> {
        let mut seen = std::collections::BTreeSet::new();
        for event in &self.events {
            let bad = |what: String, expected: &str| {
                Err(Error::invalid(format!("{place}: {}", event.name), what, expected))
            };
            if !seen.insert(&event.name) {
                return bad("a second entry".into(), "one entry an event");
            }
            if event.name.split(':').count() != 2 {
                return bad(format!("name {:?}", event.name), "system:event");
            }
            let spans = matches!(event.role, Role::Enter | Role::Instant | Role::Switch);
            if spans != event.class.is_some() {
                return bad(
                    format!("role {:?} with class {:?}", event.role, event.class),
                    "a class on enter, instant and switch only",
                );
            }
            if (event.role == Role::Enter) != event.exit.is_some() {
                return bad("exit does not go with the role".into(), "an exit on enter, and only there");
            }
            if let Some(exit) = &event.exit
                && self.get(exit).is_none_or(|exit| exit.role != Role::Exit)
            {
                return bad(format!("exit {exit:?}"), "the name of an event with role exit");
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_catalogue_is_sound_and_covers_every_class() {
        let catalogue = EventCatalogue::embedded().unwrap();
        for class in EventClass::ALL {
            let remedy = catalogue.classes.get(class).unwrap_or_else(|| panic!("{class} has no entry"));
            assert!(
                remedy.remedies.is_empty() == remedy.why_none.is_some(),
                "{class}: remedies or a reason, not both"
            );
        }
    }

    #[test]
    fn errors_name_line_and_event() {
        let text = "[[event]]\nname = \"a:b\"\nrole = \"enter\"\nclass = \"irq\"\n[class]\n";
        assert!(EventCatalogue::parse("x.toml", text).unwrap_err().to_string().starts_with("x.toml: a:b"));
        let text = "[[event]]\nname = \"a:b\"\nrole = \"sideways\"\n[class]\n";
        assert!(
            EventCatalogue::parse("x.toml", text).unwrap_err().to_string().starts_with("x.toml:3"),
            "{text}"
        );
    }
}
