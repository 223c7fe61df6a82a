//! Looking at what stands again and again, as `verify --watch` and `hold` do.

use super::State;
use audit::Catalogue;
use isolate::standing::Found;
use isolate::verify::{Verified, verify};
use journal::settings::Live;
use machine::Root;
use std::path::Path;

/// The result of a later check.
pub(crate) enum Next {
    Seen(Verified),
    /// Another call is changing the isolation: that is no drift.
    Changing,
    Undone,
}

/// What is looked at, and by what it is judged.
pub(crate) struct Look<'a> {
    pub(crate) root: Root,
    pub(crate) catalogue: Catalogue,
    state: &'a State,
}

impl<'a> Look<'a> {
    /// At this machine, and the journal in this directory.
    pub(crate) fn at(state: &'a State) -> anyhow::Result<Self> {
        Ok(Self { root: Root::open(Path::new("/"))?, catalogue: Catalogue::embedded()?, state })
    }

    /// Checks against this journal.
    pub(crate) fn once(&self, found: &Found) -> anyhow::Result<Verified> {
        let mut live = Live::new(&std::env::current_exe()?);
        Ok(verify(&self.root, &self.catalogue, found, &mut live)?)
    }

    /// Checks against the current journal. What cannot be read now may be readable at the next
    /// check.
    pub(crate) fn again(&self) -> Next {
        let found = match self.state.standing() {
            Ok(Some((_, found))) if found.this_boot => found,
            Ok(_) => return Next::Undone,
            Err(error) => return Next::Seen(unreadable(&error)),
        };
        let seen = self.once(&found).unwrap_or_else(|error| unreadable(&error));
        let still = self.state.standing().ok().flatten();
        if still.is_some_and(|(_, still)| still == found) { Next::Seen(seen) } else { Next::Changing }
    }
}

/// The result of a check that failed.
fn unreadable(error: &anyhow::Error) -> Verified {
    Verified { drifted: vec![format!("{error:#}")], ..Verified::default() }
}
