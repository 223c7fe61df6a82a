//! The boot line written where the loader keeps it, and taken out again.

use super::edit::{Edit, backward, between, forward};
use super::line::words;
use super::loader::{self, DROP_IN, Loader, MARK, Way, command, drop_in, form};
use super::record::{self, File, Record};
use super::store;
use crate::draft::{NewFile, Writing};
use machine::Root;
use model::Error;
use model::boot::BootLine;

/// The result of undoing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Undone {
    /// Files that are as they were, byte for byte.
    pub restored: Vec<String>,
    /// Files that somebody else has changed since: our words are out, all else is theirs.
    pub cleaned: Vec<String>,
    /// Files that could not be restored, with the reason.
    pub left: Vec<String>,
    /// Commands that make it effective on the machine that runs.
    pub commands: Vec<Vec<String>>,
}

/// Works out how a line comes to the next boot of the machine or image under `root`. Errors: a line
/// that is refused, a file that cannot be changed, a line of it that would be cut.
pub fn writing(root: &Root, line: &BootLine) -> Result<Writing, Error> {
    refuse(line)?;
    let Loader { name, way, generated, after, next } = loader::find(root);
    let edits = between(&line.base, &line.line);
    let record = record::read(root)?;
    let mut writing = Writing {
        loader: name,
        edits,
        files: Vec::new(),
        commands: Vec::new(),
        by_hand: Vec::new(),
        next,
        once: false,
    };
    if writing.edits.is_empty() {
        writing.next.clear();
        // What an earlier call has written goes.
        if record.is_some_and(|record| !record.files.is_empty()) {
            writing.commands = after;
        }
        return Ok(writing);
    }
    let new: Vec<_> = writing.edits.iter().flat_map(|edit| edit.new.clone()).collect();
    let edits = writing.edits.clone();
    match way {
        Way::Files(places) => {
            for place in places {
                let before = base(root, record.as_ref(), &place.path, place.form)?;
                let text = String::from_utf8(before.clone().unwrap_or_default())
                    .map_err(|_| unfit(root, &place.path, "it is not UTF-8"))?;
                let after = form::change(place.form, &text, &|line| forward(line, &edits))
                    .map_err(|reason| unfit(root, &place.path, &reason))?;
                short_enough(root, line.longest, &place.path, &form::lines(place.form, &after))?;
                if before.is_none() && after.is_empty() {
                    continue;
                }
                writing.files.push(NewFile { path: place.path, before, after: after.into_bytes() });
            }
            if let Some((path, text)) = generated {
                writing.files.push(own_file(root, path, text(&edits))?);
            }
            writing.commands = after;
        }
        Way::DropIn => {
            let named = |unfit_file: loader::Unfit| unfit(root, &unfit_file.path, &unfit_file.reason);
            let values = loader::grub_values(root).map_err(named)?;
            quoted_names(root, &values, &edits)?;
            loader::has_last_word(root, &edits).map_err(named)?;
            short_enough(root, line.longest, DROP_IN, &[forward(&values.join(" "), &edits)])?;
            writing.files.push(own_file(root, DROP_IN, drop_in(&edits))?);
            writing.commands = after;
        }
        Way::Kargs => {
            let call = kargs(&edits);
            if root.is_live() { writing.commands.push(call) } else { writing.by_hand.push(call.join(" ")) }
        }
        Way::Grubby => writing.by_hand.push(grubby(&edits)),
        Way::Paste(reason) => {
            let old: Vec<_> = edits.iter().flat_map(|edit| edit.old.clone()).collect();
            let instead =
                if old.is_empty() { String::new() } else { format!(" in the place of {}", old.join(" ")) };
            writing.by_hand.push(format!(
                "{reason}: put these words on the kernel command line, where your boot loader keeps it{instead}: {}",
                new.join(" ")
            ));
        }
    }
    Ok(writing)
}

/// A file that is stillcore's alone.
fn own_file(root: &Root, path: &str, text: String) -> Result<NewFile, Error> {
    if store::read(root, path)?.is_some_and(|bytes| !bytes.starts_with(MARK.as_bytes())) {
        return Err(unfit(root, path, "it is not stillcore's"));
    }
    Ok(NewFile { path: path.to_owned(), before: None, after: text.into_bytes() })
}

/// Takes away what calls that were killed in the middle of a write have left, in every place that
/// the loader of now or that of the record has.
fn sweep(root: &Root) -> Vec<String> {
    let mut files = vec![DROP_IN.to_owned()];
    let record = record::read(root).ok().flatten();
    files.extend(record::own_places().map(str::to_owned));
    files.extend(record.into_iter().flat_map(|record| record.files).map(|file| file.path));
    let Loader { way, generated, .. } = loader::find(root);
    if let Way::Files(places) = way {
        files.extend(places.into_iter().map(|place| place.path));
    }
    files.extend(generated.map(|(path, _)| path.to_owned()));
    store::sweep(root, files.iter().map(String::as_str))
}

/// Writes the files, record and backups first. On an error it restores the files already written.
pub fn write(root: &Root, writing: &Writing) -> Result<(), Error> {
    sweep(root);
    if let Some(old) = record::read(root)? {
        // The new files start from what stood there without us.
        let undone = undo_files(root, &old)?;
        if let Some(left) = undone.left.first() {
            let expected = "files as it left them, or their old bytes put back by hand";
            return Err(Error::invalid("what an earlier persist has written", left, expected));
        }
        record::forget(root, &old)?;
    }
    if writing.edits.is_empty() {
        return Ok(());
    }
    let folders = record::folders_to_make(root, writing);
    let mut files = Vec::new();
    for (at, file) in writing.files.iter().enumerate() {
        let backup = file.before.as_ref().map(|_| record::backup_of(at, &file.path));
        if let (Some(place), Some(before)) = (&backup, &file.before) {
            store::write(root, place, before, 0o600)?;
        }
        files.push(File::new(&file.path, backup, &file.after));
    }
    record::write(root, writing, files, folders)?;
    let written =
        writing.files.iter().try_for_each(|file| store::write(root, &file.path, &file.after, 0o644));
    if written.is_err() {
        let _ = undo(root);
    }
    written
}

/// Restores what `write` has changed; `None` where nothing of ours is in force.
pub fn undo(root: &Root) -> Result<Option<Undone>, Error> {
    let swept =
        sweep(root).into_iter().map(|path| format!("{path} (left by a call that was killed, removed)"));
    let swept: Vec<_> = swept.collect();
    let Some(old) = record::read(root)? else { return unrecorded(root, swept) };
    let mut undone = undo_files(root, &old)?;
    undone.restored.extend(swept);
    let Loader { way, after, .. } = loader::find(root);
    undone.commands = match way {
        Way::Kargs => vec![kargs(&reversed(&old.edits))],
        _ if old.files.is_empty() => Vec::new(),
        // What was written for one boot is in none of the files that a generator makes.
        _ if !old.lasting => loader::unchosen(root, &old.loader),
        _ => after,
    };
    if undone.left.is_empty() {
        record::forget(root, &old)?;
    }
    Ok(Some(undone))
}

/// Restores what was written for one boot; `None` where nothing of ours is in force, or what lasts.
pub fn undo_once(root: &Root) -> Result<Option<Undone>, Error> {
    match record::read(root)? {
        Some(record) if !record.lasting => undo(root),
        _ => Ok(None),
    }
}

/// The file that an earlier version has left for GRUB, of which there is no record.
fn unrecorded(root: &Root, swept: Vec<String>) -> Result<Option<Undone>, Error> {
    let found = store::read(root, DROP_IN)?;
    if !found.is_some_and(|bytes| bytes.starts_with(MARK.as_bytes())) {
        record::remove_folders(root);
        return Ok((!swept.is_empty()).then(|| Undone { restored: swept, ..Undone::default() }));
    }
    store::remove(root, DROP_IN)?;
    let restored = [vec![format!("/{DROP_IN} (removed)")], swept].concat();
    Ok(Some(Undone { restored, commands: loader::find(root).after, ..Undone::default() }))
}

fn reversed(edits: &[Edit]) -> Vec<Edit> {
    let turned = edits.iter().map(|edit| Edit {
        name: edit.name.clone(),
        old: edit.new.clone(),
        new: edit.old.clone(),
    });
    turned.collect()
}

fn undo_files(root: &Root, old: &Record) -> Result<Undone, Error> {
    let mut undone = Undone::default();
    let mut places: Vec<_> = match loader::find(root).way {
        Way::Files(places) => places,
        _ => Vec::new(),
    };
    for file in &old.files {
        places.retain(|place| place.path != file.path);
        let Some(now) = store::read(root, &file.path)? else {
            // An entry goes with its kernel.
            undone.restored.push(format!("/{} (gone)", file.path));
            continue;
        };
        let before = match &file.backup {
            None => None,
            Some(backup) => {
                Some(store::read(root, backup)?.ok_or_else(|| unfit(root, backup, "the backup is gone"))?)
            }
        };
        if before.as_ref() == Some(&now) {
            // Killed between the record and the file: it was never written.
            undone.restored.push(format!("/{}", file.path));
            continue;
        }
        if file.is_as_written(&now) {
            match before {
                Some(bytes) => store::write(root, &file.path, &bytes, 0o644)?,
                None => store::remove(root, &file.path)?,
            }
            undone.restored.push(format!("/{}", file.path));
        } else {
            clean(root, &file.path, &now, old, &mut undone)?;
        }
    }
    // Entries made since have our words from those that were there.
    for place in places {
        if let Some(now) = store::read(root, &place.path)? {
            clean(root, &place.path, &now, old, &mut undone)?;
        }
    }
    Ok(undone)
}

/// Takes our words out of a file that somebody else has written.
fn clean(root: &Root, path: &str, now: &[u8], old: &Record, undone: &mut Undone) -> Result<(), Error> {
    let changed = without(root, path, now, &old.edits);
    match changed {
        Ok(bytes) if bytes == now => {}
        Ok(bytes) => {
            store::write(root, path, &bytes, 0o644)?;
            undone.cleaned.push(format!("/{path}"));
        }
        Err(reason) => undone.left.push(format!("/{path}: {reason}")),
    }
    Ok(())
}

fn without(root: &Root, path: &str, now: &[u8], edits: &[Edit]) -> Result<Vec<u8>, String> {
    if loader::menu::find(root).is_some_and(|menu| menu.custom() == path) {
        let text = std::str::from_utf8(now).map_err(|_| "it is not UTF-8".to_owned())?;
        return Ok(loader::menu::custom_without(text).into_bytes());
    }
    let places = match loader::find(root).way {
        Way::Files(places) => places,
        _ => Vec::new(),
    };
    let place = places.iter().find(|place| place.path == path);
    let place = place.ok_or("somebody has changed it, and no boot loader is known to read it now")?;
    let text = std::str::from_utf8(now).map_err(|_| "it is not UTF-8".to_owned())?;
    Ok(form::change(place.form, text, &|line| backward(line, edits))?.into_bytes())
}

/// An error where no line is proposed.
pub(super) fn refuse(line: &BootLine) -> Result<(), Error> {
    let Some(reason) = &line.refused else { return Ok(()) };
    let expected = "a line that isolates the CPUs asked for and loses none that others isolate";
    Err(Error::invalid("the next kernel command line", reason, expected))
}

/// The file as it is without our words.
pub(super) fn base(
    root: &Root,
    record: Option<&Record>,
    path: &str,
    form: form::Form,
) -> Result<Option<Vec<u8>>, Error> {
    let Some(now) = store::read(root, path)? else { return Ok(None) };
    let Some(record) = record else { return Ok(Some(now)) };
    let as_written = record.files.iter().find(|file| file.path == path && file.is_as_written(&now));
    match as_written.map(|file| file.backup.as_ref()) {
        Some(Some(backup)) => return store::read(root, backup),
        // It was not there.
        Some(None) => return Ok(None),
        None => {}
    }
    let text = String::from_utf8(now).map_err(|_| unfit(root, path, "it is not UTF-8"))?;
    let changed = form::change(form, &text, &|line| backward(line, &record.edits));
    Ok(Some(changed.map_err(|reason| unfit(root, path, &reason))?.into_bytes()))
}

pub(super) fn unfit(root: &Root, path: &str, reason: &str) -> Error {
    Error::invalid(root.at(path).display(), reason, "a file whose kernel command line can be changed")
}

pub(super) fn short_enough(root: &Root, longest: usize, path: &str, lines: &[String]) -> Result<(), Error> {
    match lines.iter().map(String::len).max() {
        Some(length) if length > longest => {
            let reason =
                format!("its line would have {length} bytes, and the kernel cuts it after {longest}");
            Err(unfit(root, path, &reason))
        }
        _ => Ok(()),
    }
}

/// The shell that reads our own file takes words out by their names: such a name inside quotes of
/// another word it would harm.
fn quoted_names(root: &Root, lines: &[String], edits: &[Edit]) -> Result<(), Error> {
    let harmed = |text: &str| edits.iter().any(|edit| text.replace('-', "_").contains(&edit.name));
    for line in lines {
        let mut quoted = words(line).into_iter().filter(|word| word.text.contains(char::is_whitespace));
        if let Some(word) = quoted.find(|word| harmed(word.text)) {
            return Err(unfit(
                root,
                loader::DEFAULT,
                &format!("{} has one of the parameters inside quotes", word.text),
            ));
        }
    }
    Ok(())
}

fn kargs(edits: &[Edit]) -> Vec<String> {
    let mut call = command(&["rpm-ostree", "kargs"]);
    call.extend(edits.iter().flat_map(|edit| &edit.old).map(|word| format!("--delete-if-present={word}")));
    call.extend(edits.iter().flat_map(|edit| &edit.new).map(|word| format!("--append-if-missing={word}")));
    call
}

fn grubby(edits: &[Edit]) -> String {
    let quoted = |words: Vec<&String>| {
        words.iter().map(|word| word.replace('"', "\\\"")).collect::<Vec<_>>().join(" ")
    };
    let old = quoted(edits.iter().flat_map(|edit| &edit.old).collect());
    let new = quoted(edits.iter().flat_map(|edit| &edit.new).collect());
    let remove = if old.is_empty() { String::new() } else { format!(" --remove-args=\"{old}\"") };
    format!(
        "the entries name variables of the boot loader: grubby --update-kernel=ALL{remove} --args=\"{new}\""
    )
}
