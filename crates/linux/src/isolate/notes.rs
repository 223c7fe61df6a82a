//! Entries of the standing journal that change nothing and say what the rest is about: what was
//! asked, what is kept, what cannot be moved, what was right in the end.

use super::standing::Head;
use super::watch::Watched;
use crate::error::Error;
use crate::journal::{Change, Form, Owner, Present, earlier};
use crate::settings::Settings;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::fmt::Debug;
use std::sync::Arc;

/// Something that is written down and changes nothing.
pub(super) trait Note: Debug + Send + Sync + Serialize + DeserializeOwned + 'static {
    /// Kind and version.
    const FORM: Form;
    /// What lines were called before kinds had versions.
    const EARLIER: &'static str;

    /// Reads the value that such a line had.
    fn of_earlier(entry: &earlier::Entry) -> Result<Self, String> {
        let text = entry.new.as_deref().ok_or("it has no value")?;
        serde_json::from_str(text).map_err(|error| error.to_string())
    }
}

impl<N: Note> Change for N {
    fn form(&self) -> Form {
        N::FORM
    }

    fn fields(&self) -> Result<Json, serde_json::Error> {
        serde_json::to_value(self)
    }

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

/// How a note is read.
const fn owner<N: Note>() -> Owner {
    Owner {
        form: N::FORM,
        read: |fields| Ok(Arc::new(serde_json::from_value::<N>(fields)?)),
        earlier: |entry| {
            let read = || Ok(Arc::new(N::of_earlier(entry)?) as _);
            earlier::transient(entry, N::EARLIER).then(read)
        },
    }
}

/// How each note is read.
pub(crate) const OWNERS: &[Owner] =
    &[owner::<Head>(), owner::<Keeping>(), owner::<Immovable>(), owner::<Watched>()];

impl Note for Head {
    const FORM: Form = Form { kind: "isolation", version: 1 };
    const EARLIER: &'static str = "isolation";
}

impl Note for Watched {
    const FORM: Form = Form { kind: "watch", version: 1 };
    const EARLIER: &'static str = "watch";
}

/// What the user leaves where it is; the last such entry counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Keeping {
    /// Each as `--keep` takes it.
    pub(super) what: Vec<String>,
}

impl Note for Keeping {
    const FORM: Form = Form { kind: "keep", version: 1 };
    const EARLIER: &'static str = "keep";

    fn of_earlier(entry: &earlier::Entry) -> Result<Self, String> {
        let what = serde_json::from_str(entry.new.as_deref().ok_or("it has no value")?);
        Ok(Self { what: what.map_err(|error| error.to_string())? })
    }
}

/// What the kernel lets nobody move, so that it is no newcomer later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Immovable {
    /// Its setting.
    pub(super) target: String,
}

impl Note for Immovable {
    const FORM: Form = Form { kind: "immovable", version: 1 };
    const EARLIER: &'static str = "note";

    fn of_earlier(entry: &earlier::Entry) -> Result<Self, String> {
        Ok(Self { target: entry.target.clone() })
    }
}
