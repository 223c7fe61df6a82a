//! Lines of a journal that change nothing and say what the rest is about.

use crate::settings::Settings;
use crate::{Change, Kind, Present};
use sys::Error;

/// Something that is written down and changes nothing.
pub trait Note: Kind {}

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
