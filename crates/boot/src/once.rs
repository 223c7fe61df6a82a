//! The boot line in an entry of its own that boots once: should it not come up, the boot after it
//! is the old one.
//!
//! Sources: the Boot Loader Specification (type 1 entries, "title", "sort-key"); bootctl(1)
//! (`set-oneshot`); GRUB's manual, "Invoking grub-reboot".

use super::edit::{between, forward};
use super::loader::form::{self, Form};
use super::loader::{self, Way, command};
use super::record;
use super::write::{base, refuse, short_enough, unfit};
use crate::draft::{NewFile, Writing};
use machine::Root;
use model::Error;
use model::boot::BootLine;

/// The entry's file.
pub(crate) const ENTRY: &str = "stillcore-once.conf";

/// Works out the entry and the command that chooses it for the next boot alone. `release` is the
/// kernel whose entry is taken; the first one where none is of that kernel. Errors: a loader
/// without such entries, and those of [`super::writing`].
pub fn writing_once(root: &Root, line: &BootLine, release: &str) -> Result<Writing, Error> {
    refuse(line)?;
    let loader = loader::find(root);
    let entries: Vec<_> = match &loader.way {
        Way::Files(places) => places.iter().filter(|place| place.form == Form::Options).collect(),
        _ => Vec::new(),
    };
    let of_kernel = |path: &str| {
        let text = root.maybe(path).unwrap_or_default();
        !release.is_empty() && text.split_whitespace().any(|word| word.contains(release))
    };
    let entry = entries.iter().find(|place| of_kernel(&place.path)).or(entries.first());
    let Some(entry) = entry else {
        let what = format!("found {}, for which no entry is made that boots once", loader.name);
        let expected = "entries in loader/entries, of systemd-boot or GRUB; or no --once";
        return Err(Error::invalid("--once", what, expected));
    };
    let record = record::read(root)?;
    let edits = between(&line.base, &line.line);
    let text = base(root, record.as_ref(), &entry.path, entry.form)?.unwrap_or_default();
    let text = String::from_utf8(text).map_err(|_| unfit(root, &entry.path, "it is not UTF-8"))?;
    let text = form::change(entry.form, &text, &|line| forward(line, &edits))
        .map_err(|reason| unfit(root, &entry.path, &reason))?;
    short_enough(root, line.longest, &entry.path, &form::lines(entry.form, &text))?;
    let folder = entry.path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let path = format!("{folder}/{ENTRY}");
    let choose = if loader.name == "systemd-boot" {
        command(&["bootctl", "set-oneshot", ENTRY])
    } else {
        command(&["grub2-reboot", ENTRY.trim_end_matches(".conf")])
    };
    Ok(Writing {
        loader: loader.name,
        edits,
        files: vec![NewFile { path, before: None, after: titled(&text).into_bytes() }],
        commands: vec![choose],
        by_hand: Vec::new(),
        next: vec![
            "the next boot alone takes it; the one after is as before, also should this one not come up"
                .to_owned(),
            "call persist without --once to make it last".to_owned(),
        ],
        once: true,
    })
}

/// The entry under a title of its own, and sorted last where entries are sorted by key.
fn titled(text: &str) -> String {
    let mut lines = Vec::new();
    for line in text.lines() {
        match line.split_whitespace().next() {
            Some("title") => lines.push(format!("{} (stillcore, once)", line.trim_end())),
            Some("sort-key") => lines.push("sort-key zz-stillcore".to_owned()),
            _ => lines.push(line.to_owned()),
        }
    }
    lines.join("\n") + "\n"
}
