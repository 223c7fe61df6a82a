//! Entries of the standing journal that change nothing and say what the rest is about: what was
//! asked, what is kept, what cannot be moved, what was right in the end.

use crate::head::Head;
use crate::watched::Watched;
use audit::Profile;
use journal::{Earlier, Form, Kind, Note, Owner, earlier, earlier_entry};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// What an earlier line of this id has as its value.
fn value<T: DeserializeOwned>(entry: &earlier_entry::Entry, id: &str) -> Earlier<T> {
    let text = || entry.new.as_deref().ok_or_else(|| earlier::wrong("it has no value"));
    let read = || serde_json::from_str(text()?);
    earlier::transient(entry, id).then(read)
}

/// How each note is read.
pub(crate) const OWNERS: &[Owner] = &[
    Owner::of::<Head>(),
    Owner::of::<Keeping>(),
    Owner::of::<Immovable>(),
    Owner::of::<Watched>(),
    Owner::of::<Desired>(),
];

impl Kind for Head {
    const FORM: Form = Form { kind: "isolation", version: 1 };

    fn of_earlier(entry: &earlier_entry::Entry) -> Earlier<Self> {
        value(entry, "isolation")
    }
}

impl Note for Head {}

impl Kind for Watched {
    const FORM: Form = Form { kind: "watch", version: 1 };

    fn of_earlier(entry: &earlier_entry::Entry) -> Earlier<Self> {
        value(entry, "watch")
    }
}

impl Note for Watched {}

/// What the user leaves where it is; the last such entry counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Keeping {
    /// Each as `--keep` takes it.
    pub(super) what: Vec<String>,
}

impl Kind for Keeping {
    const FORM: Form = Form { kind: "keep", version: 1 };

    fn of_earlier(entry: &earlier_entry::Entry) -> Earlier<Self> {
        Some(value(entry, "keep")?.map(|what| Self { what }))
    }
}

impl Note for Keeping {}

/// What the kernel lets nobody move, so that it is no newcomer later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Immovable {
    /// Its setting.
    pub(super) target: String,
}

impl Kind for Immovable {
    const FORM: Form = Form { kind: "immovable", version: 1 };

    fn of_earlier(entry: &earlier_entry::Entry) -> Earlier<Self> {
        earlier::transient(entry, "note").then(|| Ok(Self { target: entry.target.clone() }))
    }
}

impl Note for Immovable {}

/// What asked for the isolation; the last such entry counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Desired {
    /// As `isolation.toml` has it.
    pub(super) profile: Profile,
}

impl Kind for Desired {
    const FORM: Form = Form { kind: "desired", version: 1 };

    /// Journals of before kinds had versions have no such line.
    fn of_earlier(_: &earlier_entry::Entry) -> Earlier<Self> {
        None
    }
}

impl Note for Desired {}
