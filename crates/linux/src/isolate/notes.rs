//! Entries of the standing journal that change nothing and say what the rest is about: what was
//! asked, what is kept, what cannot be moved, what was right in the end.

use super::standing::Head;
use super::watch::Watched;
use crate::error::Error;
use crate::journal::{Change, Form, Kind, Owner, Present, earlier};
use crate::settings::Settings;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Something that is written down and changes nothing.
pub(super) trait Note: Kind {}

impl<N: Note> Change for N {
    fn target(&self) -> String {
        String::new()
    }

    fn describe(&self) -> String {
        format!("the note {:?}", N::FORM.kind)
    }

    fn bounds(&self) -> Result<(), Error> {
        Ok(())
    }

    fn check(&self, _: &mut dyn Settings) -> Result<Present, Error> {
        Ok(Present::Before)
    }

    fn undo(&self, _: &mut dyn Settings) -> Result<(), Error> {
        Ok(())
    }
}

/// What an earlier line of this id has as its value.
fn value<T: DeserializeOwned>(entry: &earlier::Entry, id: &str) -> Option<Result<T, String>> {
    let read = || {
        let text = entry.new.as_deref().ok_or("it has no value")?;
        serde_json::from_str(text).map_err(|error| error.to_string())
    };
    earlier::transient(entry, id).then(read)
}

/// How each note is read.
pub(crate) const OWNERS: &[Owner] =
    &[Owner::of::<Head>(), Owner::of::<Keeping>(), Owner::of::<Immovable>(), Owner::of::<Watched>()];

impl Kind for Head {
    const FORM: Form = Form { kind: "isolation", version: 1 };

    fn of_earlier(entry: &earlier::Entry) -> Option<Result<Self, String>> {
        value(entry, "isolation")
    }
}

impl Note for Head {}

impl Kind for Watched {
    const FORM: Form = Form { kind: "watch", version: 1 };

    fn of_earlier(entry: &earlier::Entry) -> Option<Result<Self, String>> {
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

    fn of_earlier(entry: &earlier::Entry) -> Option<Result<Self, String>> {
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

    fn of_earlier(entry: &earlier::Entry) -> Option<Result<Self, String>> {
        earlier::transient(entry, "note").then(|| Ok(Self { target: entry.target.clone() }))
    }
}

impl Note for Immovable {}
