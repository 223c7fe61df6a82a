//! Units of systemd's that are stillcore's own: how they differ from those of others, how words
//! stand in them, and the directory of their links.
//!
//! Sources: systemd.unit(5), systemd.service(5) ("Command lines").

use boot::store;
use machine::Root;
use sys::Error;

/// The unit that isolates after each boot.
pub(crate) const ISOLATE: &str = "etc/systemd/system/stillcore-isolate.service";
/// The unit that goes on with a replication.
pub(crate) const REPLICATE: &str = "etc/systemd/system/stillcore-replicate.service";
/// The unit that isolates after each boot and heals.
pub(crate) const HOLD: &str = "etc/systemd/system/stillcore-hold.service";
/// The unit that watches CPUs.
pub(crate) const MONITOR: &str = "etc/systemd/system/stillcore-monitor.service";

/// The first words of what is ours.
const OURS: &str = "# Made by stillcore ";

/// How a unit says that the directory of its link was made with it.
const MADE: &str = "# Made with it: /etc/systemd/system/multi-user.target.wants\n";
pub(crate) const WANTS: &str = "etc/systemd/system/multi-user.target.wants";

/// The line by which a unit says that the directory of its link is made with it; empty where it was
/// there before.
pub(crate) fn link_folder(root: &Root) -> &'static str {
    let ours = [ISOLATE, REPLICATE, HOLD, MONITOR].iter().any(|unit| made_folder(root, unit));
    if !root.has(WANTS) || ours { MADE } else { "" }
}

/// The command by which a changed unit counts, on a machine that runs systemd.
pub(crate) fn reload(root: &Root, changed: bool) -> Vec<Vec<String>> {
    let call = || ["systemctl", "daemon-reload"].map(str::to_owned).to_vec();
    (changed && root.has("run/systemd/system")).then(call).into_iter().collect()
}

/// A word of a unit file's command line (systemd.service(5)).
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/-_.,=:+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    let escaped = word.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%").replace('$', "$$");
    format!("\"{escaped}\"")
}

/// A unit's command line.
pub(crate) fn command_line<'a>(words: impl Iterator<Item = &'a str>) -> String {
    words.map(quoted).collect::<Vec<_>>().join(" ")
}

/// Takes a unit and its link away; gives what was removed, and the commands that make that count.
pub(crate) fn take_away(
    root: &Root,
    unit: &str,
    link: &str,
) -> Result<(Vec<String>, Vec<Vec<String>>), Error> {
    let removed = remove_files(root, &[link, unit])?;
    let commands = reload(root, !removed.is_empty());
    Ok((removed, commands))
}

/// Takes ours of these files and links away, and the directory of the links where it was made with
/// one of them and nothing else is in it.
pub(crate) fn remove_files(root: &Root, files: &[&str]) -> Result<Vec<String>, Error> {
    let mut removed = store::sweep(root, files.iter().copied());
    let made = files.iter().any(|file| made_folder(root, file));
    for file in files {
        // One that leads to the unit of a package was made by `systemctl enable`.
        let link = file.starts_with(WANTS) && leads_to_own(root, file);
        if link || ours(root, file) {
            store::remove(root, file)?;
            removed.push(format!("/{file}"));
        }
    }
    if made {
        store::remove_folders(root, [WANTS].into_iter());
    }
    Ok(removed)
}

/// Whether a link leads where our units are.
pub(crate) fn leads_to_own(root: &Root, link: &str) -> bool {
    store::link_target(root, link).is_some_and(|to| to.starts_with("/etc/systemd/system"))
}

/// Whether the directory of a unit's link was made with it.
fn made_folder(root: &Root, unit: &str) -> bool {
    ours(root, unit) && root.maybe(unit).is_some_and(|text| text.contains(MADE))
}

/// Whether a file is stillcore's.
pub(crate) fn ours(root: &Root, file: &str) -> bool {
    store::read(root, file).ok().flatten().is_some_and(|bytes| bytes.starts_with(OURS.as_bytes()))
}
