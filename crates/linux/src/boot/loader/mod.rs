//! Where the boot loader of a machine or an image keeps the command line of the next boot: one row
//! a loader, tried in order.

pub(crate) mod form;
mod grub;
mod places;

pub(crate) use grub::{DROP_IN, MARK as GRUB_MARK, drop_in};

use crate::machine::Root;
use form::Form;

/// A file that keeps command lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) path: String,
    pub(crate) form: Form,
}

/// How the line gets there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Way {
    /// Files are changed.
    Files(Vec<Place>),
    /// A file of stillcore's own, which GRUB's generator reads after these.
    DropIn(Vec<Place>),
    /// `rpm-ostree kargs` keeps it.
    Kargs,
    /// `grubby` keeps it, in variables that no entry shows.
    Grubby,
    /// By hand; a clause why.
    Paste(String),
}

/// A boot loader as found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Loader {
    /// As users call it.
    pub(crate) name: &'static str,
    pub(crate) way: Way,
    /// Commands that make changed files effective, for the machine that runs.
    pub(crate) after: Vec<Vec<String>>,
    /// What the user should know or may do next, a sentence each.
    pub(crate) next: Vec<String>,
}

/// The loaders in the order in which they are looked for: a machine with entries of the Boot Loader
/// Specification may have GRUB's older files too, and firmware of a Raspberry Pi starts what it
/// likes.
const LOADERS: [fn(&Root) -> Option<Loader>; 6] = [
    places::ostree,
    places::raspberry,
    places::extlinux,
    places::entries,
    grub::find,
    places::kernel_install,
];

pub(crate) fn find(root: &Root) -> Loader {
    LOADERS.iter().find_map(|find| find(root)).unwrap_or_else(|| Loader {
        name: "no boot loader that is known here",
        way: Way::Paste("no file of a known boot loader was found".to_owned()),
        after: Vec::new(),
        next: Vec::new(),
    })
}

/// A command as words.
pub(crate) fn command(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}
