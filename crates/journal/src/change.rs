//! What the journal asks of whoever changes a machine.

use crate::earlier_entry;
use crate::settings::Settings;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;
use sys::Error;

/// Kind and version of a change: what its fields are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Form {
    /// The kind, as lines name it.
    pub kind: &'static str,
    /// Counted up whenever a field of the kind comes, goes or means something else.
    pub version: u32,
}

/// A change compared with the present state of the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Present {
    /// What was changed is not there (any more).
    Gone,
    /// It is as it was before.
    Before,
    /// It is as the change made it, or that cannot be said.
    Made,
    /// Somebody else has set it since, to this.
    Other(String),
}

/// What a line has of a change.
pub trait Stored: Any + Debug + Send + Sync {
    /// The kind and the version that is written.
    fn form(&self) -> Form;

    /// The fields: a JSON object that the [`Owner`] of the same form reads.
    fn fields(&self) -> Result<Value, serde_json::Error>;
}

/// A type that is a kind of change: its fields are those of a line.
pub trait Kind: Serialize + DeserializeOwned + Any + Debug + Send + Sync {
    /// Kind and version.
    const FORM: Form;

    /// Reads a line of a journal from before kinds had versions; nothing where it is none of this
    /// kind.
    fn of_earlier(entry: &earlier_entry::Entry) -> Earlier<Self>;
}

impl<K: Kind> Stored for K {
    fn form(&self) -> Form {
        K::FORM
    }

    fn fields(&self) -> Result<Value, serde_json::Error> {
        serde_json::to_value(self)
    }
}

/// One change of a machine, as its owner implements it for undoing.
///
/// [`undo`](Self::undo) may be called twice, and may find the change already gone: a process that
/// was undoing it may have been killed in the middle.
pub trait Change: Stored {
    /// What is changed: a path, a process.
    fn target(&self) -> String;

    /// The change in words, for the report on undoing.
    fn describe(&self) -> String {
        format!("{} {}", self.form().kind, self.target())
    }

    /// The same with the values, for undoing it by hand.
    fn in_full(&self) -> String {
        self.describe()
    }

    /// Refuses a target that no change of this kind has, whatever a journal says. Who undoes asks
    /// this first.
    fn bounds(&self) -> Result<(), Error>;

    /// How it stands now.
    fn check(&self, settings: &mut dyn Settings) -> Result<Present, Error>;

    /// Undoes it. Tries for up to a second where the target may still be busy.
    fn undo(&self, settings: &mut dyn Settings) -> Result<(), Error>;

    /// Whether it lasts longer than the boot it was made in; what does not is gone with that boot,
    /// and its target may by now be somebody else's.
    fn outlives_boot(&self) -> bool {
        false
    }
}

impl dyn Change {
    /// The change as its owner's own type, if it is of that.
    pub fn of<T: Change>(&self) -> Option<&T> {
        (self as &dyn Any).downcast_ref()
    }
}

/// What an owner makes of a line of before: nothing where it is none of its kind.
pub type Earlier<T> = Option<Result<T, serde_json::Error>>;

/// A row of the list of owners: how the fields of one kind and version are read.
#[derive(Debug, Clone, Copy)]
pub struct Owner {
    /// Kind and version.
    pub form: Form,
    /// Reads the fields; an unknown one is an error.
    pub read: fn(Value) -> Result<Arc<dyn Change>, serde_json::Error>,
    /// Reads a line of a journal from before kinds had versions.
    pub earlier: fn(&earlier_entry::Entry) -> Earlier<Arc<dyn Change>>,
}

impl Owner {
    /// That of a kind.
    pub const fn of<K: Kind + Change>() -> Self {
        Self {
            form: K::FORM,
            read: |fields| Ok(Arc::new(serde_json::from_value::<K>(fields)?)),
            earlier: |entry| Some(K::of_earlier(entry)?.map(|change| Arc::new(change) as _)),
        }
    }
}
