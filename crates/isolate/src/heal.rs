//! Healing: a setting that stands and was changed since is set again, to what applying has left.
//!
//! Nothing is added to the journal. It has each of these settings already, with the value of before
//! the isolation, which undoing restores whether healed or not; and it is held meanwhile, so that
//! no undo and no other call is at work on the same settings.

use crate::setting::{Compared, Setting};
use crate::standing::Standing;
use audit::placement;
use journal::affinities;
use journal::settings::Settings;
use model::plan::StepKind;
use std::collections::BTreeSet;

/// A setting that was found otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drift {
    /// The setting as it stands in the journal.
    pub setting: Setting,
    /// What it is now.
    pub now: String,
}

/// What came of healing one setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Healed {
    /// The setting, and what it was found as.
    pub drift: Drift,
    /// Why it could not be set; `None` where it is as it was left.
    pub refused: Option<String>,
}

/// Kind and target of a setting.
pub type Key = (StepKind, String);

/// The key of a setting.
pub fn key(setting: &Setting) -> Key {
    (setting.kind, setting.target.clone())
}

/// Which settings are not as they were left.
pub fn drifts<'a>(
    in_force: impl IntoIterator<Item = &'a Setting>,
    settings: &mut dyn Settings,
) -> Vec<Drift> {
    let drift = |setting: &Setting| match setting.compare(settings) {
        Compared::Drifted(now) => Some(Drift { setting: setting.clone(), now }),
        Compared::Holds | Compared::Gone | Compared::Unread(_) => None,
    };
    in_force.into_iter().filter_map(drift).collect()
}

/// Sets those of these settings again that are in the journal and still otherwise, in the order in
/// which they were made.
pub fn heal(standing: &Standing, asked: &BTreeSet<Key>, settings: &mut dyn Settings) -> Vec<Healed> {
    let among = standing.in_force().into_iter().filter(|setting| asked.contains(&key(setting)));
    let found = drifts(among, settings);
    // A partition that is made again gives everybody all CPUs that are left (before 6.2; Linux
    // `kernel/cgroup/cpuset.c`, `update_tasks_cpumask`).
    let places = found.iter().any(|drift| placement::IDS.contains(&drift.setting.mechanism.as_str()));
    let before = if places { affinities::affinities() } else { Vec::new() };
    let healed = found.into_iter().map(|drift| one(drift, settings)).collect();
    if places {
        affinities::narrow(&before, settings);
    }
    healed
}

fn one(drift: Drift, settings: &mut dyn Settings) -> Healed {
    let Setting { kind, target, new, .. } = &drift.setting;
    let refused = match settings.write(*kind, target, new) {
        Err(error) => Some(error.to_string()),
        Ok(()) => match drift.setting.compare(settings) {
            Compared::Holds | Compared::Gone => None,
            Compared::Drifted(now) => Some(format!("it reads back {now:?}")),
            Compared::Unread(error) => Some(error.to_string()),
        },
    };
    Healed { drift, refused }
}
