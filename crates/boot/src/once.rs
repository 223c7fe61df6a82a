//! The boot line in an entry of its own that boots once: should it not come up, the boot after it
//! is the old one.
//!
//! Sources: the Boot Loader Specification (type 1 entries, "title", "sort-key"); bootctl(1)
//! (`set-oneshot`); GRUB's manual, "Invoking grub-reboot", "Invoking grub-editenv".

use super::edit::{between, forward};
use super::loader::form::{self, Form};
use super::loader::{self, Way, command, menu};
use super::record::{self, Record};
use super::store;
use super::write::{base, refuse, short_enough, unfit};
use crate::draft::{NewFile, Writing};
use machine::Root;
use model::Error;
use model::boot::BootLine;

/// The entry's file.
pub(crate) const ENTRY: &str = "stillcore-once.conf";

/// What means something in a menu's script, outside quotes.
const READ_BY_GRUB: [char; 11] = ['$', ';', '|', '&', '<', '>', '{', '}', '\\', '\'', '#'];

/// What to know of an entry that boots once.
const NEXT: [&str; 2] = [
    "the next boot alone takes it; the one after is as before, also should this one not come up",
    "call persist without --once to make it last",
];

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
        if let Some(found) = menu::find(root).filter(|_| loader.name == loader::GRUB) {
            return in_menu(root, &found, line, release);
        }
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
        next: NEXT.map(str::to_owned).to_vec(),
        once: true,
    })
}

/// The same in a menu that GRUB's generator made: an entry in the file that it leaves to others.
fn in_menu(root: &Root, menu: &menu::Menu, line: &BootLine, release: &str) -> Result<Writing, Error> {
    let refused = |what: String| Error::invalid("an entry that boots once", what, "no --once");
    if let Some(why) = menu.unfit(root) {
        return Err(refused(why));
    }
    let entries = menu.entries();
    let of_kernel = |entry: &&menu::Entry| !release.is_empty() && entry.release == release;
    let entry = entries.iter().find(of_kernel).or(entries.first());
    let entry = entry.ok_or_else(|| refused(format!("/{}/grub.cfg starts no kernel", menu.folder)))?;
    let path = menu.custom();
    let record = record::read(root)?;
    let before = as_without_us(root, record.as_ref(), &path)?;
    let text = String::from_utf8(before.clone().unwrap_or_default())
        .map_err(|_| unfit(root, &path, "it is not UTF-8"))?;
    let edits = between(&line.base, &line.line);
    let new = forward(&entry.line, &edits);
    short_enough(root, line.longest, &path, std::slice::from_ref(&new))?;
    let added = edits.iter().flat_map(|edit| &edit.new);
    if let Some(word) = added.into_iter().find(|word| word.contains(READ_BY_GRUB)) {
        return Err(refused(format!("GRUB's menu would read {word} as its own script")));
    }
    let after = menu::custom_with(&text, &entry.with(&new)).into_bytes();
    Ok(Writing {
        loader: loader::GRUB,
        edits,
        files: vec![NewFile { path, before, after }],
        commands: vec![command(&[&menu.program("reboot"), menu::ID])],
        by_hand: Vec::new(),
        next: NEXT.map(str::to_owned).to_vec(),
        once: true,
    })
}

/// A file that may have been written by an earlier call, as it was before that.
fn as_without_us(root: &Root, record: Option<&Record>, path: &str) -> Result<Option<Vec<u8>>, Error> {
    let Some(now) = store::read(root, path)? else { return Ok(None) };
    let written = record.and_then(|record| record.files.iter().find(|file| file.path == path));
    match written.filter(|file| file.is_as_written(&now)) {
        Some(file) => file.backup.as_ref().map_or(Ok(None), |backup| store::read(root, backup)),
        None => Ok(Some(now)),
    }
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
