//! Where the boot loader of a machine or an image keeps the command line of the next boot: one row
//! a loader, tried in order.

pub(crate) mod form;
mod grub;
pub(crate) mod menu;
mod places;
mod u_boot;
mod variables;

use grub::without_words;
pub(crate) use grub::{DEFAULT, DROP_IN, MARK, drop_in, has_last_word, values as grub_values};
pub(crate) use variables::Unfit;

use super::edit::Edit;
use form::Form;
use machine::Root;

/// GRUB with a generated menu.
pub(crate) const GRUB: &str = "GRUB";

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
    /// A file of stillcore's own, which GRUB's generator reads after those of others.
    DropIn,
    /// `rpm-ostree kargs` keeps it.
    Kargs,
    /// `grubby` keeps it, in variables that no entry shows.
    Grubby,
    /// By hand; a clause why.
    Paste(String),
}

/// A file that a loader's generator reads: where, and what it holds for these words.
pub(crate) type Generated = (&'static str, fn(&[Edit]) -> String);

/// A boot loader as found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Loader {
    /// As users call it.
    pub(crate) name: &'static str,
    pub(crate) way: Way,
    /// A file of stillcore's own from which the loader's generator makes the same words anew, and
    /// what it holds.
    pub(crate) generated: Option<Generated>,
    /// Commands that make changed files effective, for the machine that runs.
    pub(crate) after: Vec<Vec<String>>,
    /// What the user should know or may do next, a sentence each.
    pub(crate) next: Vec<String>,
}

/// The loaders in the order in which they are looked for: a machine with entries of the Boot Loader
/// Specification may have GRUB's older files too, and firmware of a Raspberry Pi starts what it
/// likes.
const LOADERS: [fn(&Root) -> Option<Loader>; 7] = [
    places::ostree,
    places::raspberry,
    u_boot::extlinux,
    u_boot::armbian,
    places::entries,
    grub::find,
    places::kernel_install,
];

pub(crate) fn find(root: &Root) -> Loader {
    LOADERS.iter().find_map(|find| find(root)).unwrap_or_else(|| Loader {
        name: "no boot loader that is known here",
        way: Way::Paste("no file of a known boot loader was found".to_owned()),
        generated: None,
        after: Vec::new(),
        next: Vec::new(),
    })
}

/// A command as words.
pub(crate) fn command(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Commands that take back the choice of an entry that has not been booted.
pub(crate) fn unchosen(root: &Root, loader: &str) -> Vec<Vec<String>> {
    if loader == "systemd-boot" {
        return vec![command(&["bootctl", "set-oneshot", ""])];
    }
    let chosen = format!("next_entry={}", menu::ID);
    let folders = [("boot/grub", "grub-editenv"), ("boot/grub2", "grub2-editenv")];
    let holds = |folder: &str| {
        root.maybe(&format!("{folder}/grubenv")).is_some_and(|text| text.lines().any(|line| line == chosen))
    };
    let folders = folders.into_iter().filter(|(folder, _)| holds(folder));
    folders
        .map(|(folder, edit)| command(&[edit, &format!("/{folder}/grubenv"), "unset", "next_entry"]))
        .collect()
}
