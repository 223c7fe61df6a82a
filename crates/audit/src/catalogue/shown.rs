//! How the effect of a mechanism can be shown, and where it cannot: a setting that nothing shows at
//! work is never said to be as isolation wants.

use super::Mechanism;
use model::Machine;
use serde::Deserialize;

/// What shows that a mechanism is at work, beyond its being set.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shown {
    /// The kind of evidence.
    pub by: By,
    /// What to look at: for events their names in a trace, for `none` why there is nothing.
    pub what: Option<String>,
    /// Whether a virtual machine cannot show it: its host decides.
    #[serde(default)]
    pub bare_metal: bool,
}

/// A kind of evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum By {
    /// What the audit reads is the effect.
    State,
    /// Events of the classes it removes, counted in a trace.
    Events,
    /// A counter.
    Counter,
    /// A measured time.
    Latency,
    /// Nothing.
    None,
}

impl Shown {
    /// Why the effect cannot be shown on this machine: a clause.
    pub(crate) fn unproven(&self, machine: &Machine) -> Option<String> {
        match (self.by, &machine.hypervisor) {
            (By::None, _) => Some(self.what.clone().unwrap_or_default()),
            (_, Some(host)) if self.bare_metal => {
                Some(format!("this is a virtual machine ({host}), and its host decides"))
            }
            _ => None,
        }
    }
}

/// Why the evidence does not go with the mechanism.
pub(super) fn misfit(mechanism: &Mechanism) -> Option<String> {
    let shown = &mechanism.shown;
    let said = shown.what.as_deref().is_some_and(|what| !what.trim().is_empty());
    match shown.by {
        By::Events if mechanism.removes.is_empty() => Some("shown by events, and it removes none".to_owned()),
        By::Counter | By::Latency | By::None if !said => Some("shown without saying by what".to_owned()),
        By::State if matches!(mechanism.probe, super::Probe::Practice { .. }) => {
            Some("shown by its state, and nothing reads it".to_owned())
        }
        By::None if shown.bare_metal => Some("shown by nothing, also on bare metal".to_owned()),
        _ => None,
    }
}

/// The evidence as a line of the page.
pub(super) fn line(mechanism: &Mechanism) -> String {
    let shown = &mechanism.shown;
    let what = shown.what.as_deref().unwrap_or_default();
    let classes: Vec<_> = mechanism.removes.iter().map(|class| format!("`{class}`")).collect();
    let line = match shown.by {
        By::State => "by what is read".to_owned(),
        By::Events if what.is_empty() => format!("by {} events in a trace", classes.join(", ")),
        By::Events => format!("by {} events in a trace: {what}", classes.join(", ")),
        By::Counter => format!("by a counter: {what}"),
        By::Latency => format!("by measuring: {what}"),
        By::None => format!("by nothing, so it is never `ok`: {what}"),
    };
    let bare = if shown.bare_metal { "; not in a virtual machine, where it is never `ok`" } else { "" };
    line + bare
}

#[cfg(test)]
mod tests {
    use super::super::Catalogue;
    use super::*;

    #[test]
    fn evidence_goes_with_the_mechanism() {
        let catalogue = Catalogue::embedded().unwrap();
        let with = |id: &str, by: By, what: Option<&str>| {
            let mut mechanism = catalogue.get(id).unwrap().clone();
            mechanism.shown = Shown { by, what: what.map(str::to_owned), bare_metal: false };
            misfit(&mechanism)
        };
        assert_eq!(with("swap", By::State, None), None);
        assert!(with("smi", By::State, None).is_some());
        assert!(with("swap", By::None, Some(" ")).is_some());
        assert!(with("config-hz", By::Events, Some("ticks")).is_some());
        assert_eq!(with("swap", By::Events, None), None);
    }
}
