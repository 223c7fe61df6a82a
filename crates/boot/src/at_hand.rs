//! The command line at hand, with and without what stillcore itself has put there.
//!
//! It is the line of this boot, and where the boot loader keeps other words for the next one,
//! those.

use super::edit::{backward, forward};
use super::line::{exchange, words, words_of};
use super::loader::{self, Way, form};
use super::merge::Lines;
use super::record::{self, Record};
use machine::{Root, same_name};

/// Parameters of which the loader's words count more than those of this boot.
const ISOLATION: [&str; 3] = ["isolcpus", "nohz_full", "rcu_nocbs"];

/// The line of the next boot as it is, and as it would be without us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AtHand {
    /// As it is.
    pub current: String,
    /// Without the words of an earlier `persist`.
    pub base: String,
    /// Names of the parameters that stillcore has written for the next boot.
    pub own: Vec<String>,
    /// Where the loader and this boot differ: a sentence each.
    pub notes: Vec<String>,
}

impl AtHand {
    /// As `merge` takes them.
    pub fn lines(&self) -> Lines<'_> {
        Lines { current: &self.current, base: &self.base }
    }

    /// Whether stillcore has written a parameter of this name for the next boot.
    pub fn is_own(&self, parameter: &str) -> bool {
        words(parameter).iter().any(|word| self.own.iter().any(|name| same_name(name, word.name)))
    }
}

/// The lines of the machine under `root`, whose kernel has booted with `cmdline`.
pub fn at_hand(root: &Root, cmdline: &str) -> AtHand {
    let mut notes = Vec::new();
    let record = record::read(root).unwrap_or_else(|error| {
        notes.push(format!("what an earlier persist has written is not known: {error}"));
        None
    });
    let edits = record.as_ref().map(|record| record.edits.clone()).unwrap_or_default();
    let own: Vec<_> =
        edits.iter().filter(|edit| !edit.new.is_empty()).map(|edit| edit.name.clone()).collect();
    let stored = stored(root, record.as_ref()).unwrap_or_else(|what| {
        notes.push(format!(
            "what the boot loader keeps for the next boot is not known, and the line of this boot is taken for it: {what}"
        ));
        None
    });
    let Some((stored_base, place)) = stored else {
        // The words are on the line of this boot once it was booted with them.
        let base = backward(cmdline, &edits);
        let lasting = record.as_ref().is_some_and(|record| record.lasting);
        let current = if lasting { forward(&base, &edits) } else { cmdline.to_owned() };
        return AtHand { current, base, own, notes };
    };
    let mut base = backward(cmdline, &edits);
    for name in ISOLATION {
        let kept: Vec<_> = words_of(&stored_base, name).into_iter().map(str::to_owned).collect();
        let here = words_of(&base, name).join(" ");
        if kept.join(" ") == here {
            continue;
        }
        if kept.is_empty() {
            notes.push(format!("{here} is on the line of this boot and not in {place}: it is kept; if it is to go, reboot first"));
        } else {
            let here = if here.is_empty() { "none".to_owned() } else { here };
            notes.push(format!("{place} has {} for the next boot, this one has {here}", kept.join(" ")));
            base = exchange(&base, name, &kept);
        }
    }
    if cmdline.is_empty() {
        base = stored_base;
    }
    let lasting = record.as_ref().is_some_and(|record| record.lasting);
    let current = if lasting { forward(&base, &edits) } else { base.clone() };
    AtHand { current, base, own, notes }
}

/// The line that the loader keeps, without our words, and the file it is in; the first of several.
/// Error: why it is not known.
fn stored(root: &Root, record: Option<&Record>) -> Result<Option<(String, String)>, String> {
    let edits = record.map(|record| record.edits.as_slice()).unwrap_or_default();
    match loader::find(root).way {
        Way::Files(places) => {
            let Some(place) = places.first() else { return Ok(None) };
            // A file that is to be made holds nothing; of one that may not be read nobody knows.
            let text = root.text(&place.path).map_err(|error| error.to_string())?.unwrap_or_default();
            let line = form::lines(place.form, &text).into_iter().next();
            Ok(line.map(|line| (backward(&line, edits), format!("/{}", place.path))))
        }
        // Our own file is none of these.
        Way::DropIn => {
            let unfit = |unfit: loader::Unfit| format!("/{}: {}", unfit.path, unfit.reason);
            let values = loader::grub_values(root).map_err(unfit)?;
            Ok(Some((values.join(" ").trim().to_owned(), format!("/{}", loader::DEFAULT))))
        }
        Way::Kargs | Way::Grubby | Way::Paste(_) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fixture::tree;

    #[test]
    fn a_line_that_cannot_be_read_is_not_an_empty_one() {
        let kept = |files: &[(&str, &str)]| {
            let (_dir, root) = tree(files);
            let line = stored(&root, None).map(|line| line.map(|(line, _)| line));
            (line, at_hand(&root, "root=/dev/x").notes.join(" "))
        };
        let config = ("boot/firmware/config.txt", "");
        let (line, _) = kept(&[config, ("boot/firmware/cmdline.txt", "quiet\n")]);
        assert_eq!(line, Ok(Some("quiet".to_owned())));
        // Nobody can read a directory as a file, root included.
        let (line, notes) = kept(&[config, ("boot/firmware/cmdline.txt/x", "")]);
        assert!(line.is_err_and(|what| what.contains("boot/firmware/cmdline.txt")));
        assert!(notes.contains("is not known"), "{notes}");
    }

    /// Words in a file that this user may not read could be there already, or be overruled by it.
    #[test]
    fn a_file_of_grubs_that_cannot_be_read_is_not_an_empty_one() {
        let grub = ("etc/default/grub", "GRUB_CMDLINE_LINUX=\"quiet\"\n");
        let kept = |more: (&str, &str)| {
            let (_dir, root) = tree(&[grub, more]);
            (stored(&root, None), at_hand(&root, "root=/dev/x").notes.join(" "))
        };
        let (line, _) = kept(("etc/default/grub.d/50-theirs.cfg", "GRUB_CMDLINE_LINUX=\"ro\"\n"));
        assert_eq!(line.unwrap().unwrap().0, "ro");
        for file in ["etc/default/grub.d/50-theirs.cfg/x", "etc/default/grub.d/95-theirs.cfg/x"] {
            let (line, notes) = kept((file, ""));
            assert!(line.is_err(), "{file}: {line:?}");
            assert!(notes.contains("is not known") && notes.contains("-theirs.cfg"), "{file}: {notes}");
        }
    }
}
