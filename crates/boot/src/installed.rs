//! Kernels that the boot loader has entries for, and a line for one boot of one of them.

use super::edit::{Edit, forward};
use super::limit::longest;
use super::line::{plain_name, words, words_of};
use super::loader::{self, Way, form, menu};
use super::target::Kernel;
use crate::once::ENTRY;
use machine::Root;
use model::boot::BootLine;
use std::collections::BTreeSet;

/// A kernel that an entry starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// `uname -r` once it runs.
    pub release: String,
    /// The command line that its entry gives it.
    pub line: String,
}

/// The kernels that can be chosen for one boot, in the loader's order, each once; none where the
/// loader has no entries that could be.
pub fn installed(root: &Root) -> Vec<Installed> {
    let found = loader::find(root);
    let all = match &found.way {
        Way::Files(places) if places.iter().any(|place| place.form == form::Form::Options) => {
            places.iter().filter_map(|place| of_entry(root, place)).collect()
        }
        _ if found.name == loader::GRUB => menu::find(root).map_or_else(Vec::new, |menu| {
            let entries = menu.entries().into_iter();
            entries.map(|entry| Installed { release: entry.release, line: entry.line }).collect()
        }),
        _ => Vec::new(),
    };
    let mut seen = BTreeSet::new();
    all.into_iter().filter(|one| seen.insert(one.release.clone())).collect()
}

/// Of an entry of the Boot Loader Specification: `version`, else the name of the kernel's file.
fn of_entry(root: &Root, place: &loader::Place) -> Option<Installed> {
    if place.form != form::Form::Options || place.path.ends_with(ENTRY) {
        return None;
    }
    let text = root.maybe(&place.path)?;
    let value = |key: &str| {
        let mut values = text.lines().filter_map(|line| line.trim().split_once([' ', '\t']));
        values.find(|(name, _)| *name == key).map(|(_, value)| value.trim().to_owned())
    };
    let of_file = || {
        let path = value("linux")?;
        let name = path.rsplit('/').next()?.to_owned();
        // kernel-install names the folder after the release, and the file `linux`.
        let named = name.strip_prefix("vmlinuz-").map(str::to_owned);
        named.or_else(|| path.rsplit('/').nth(1).map(str::to_owned))
    };
    let release = value("version").or_else(of_file)?;
    let line = form::lines(place.form, &text).into_iter().next().unwrap_or_default();
    Some(Installed { release, line })
}

/// The line of a kernel's entry with these words in the place of others of their names, and without
/// the parameters `without`, by name.
pub fn line_with(kernel: &Kernel, entry: &Installed, with: &[String], without: &[String]) -> BootLine {
    let mut names: Vec<String> = Vec::new();
    let wanted = with.join(" ");
    for name in words(&wanted).into_iter().map(|word| word.name).chain(without.iter().map(String::as_str)) {
        let name = plain_name(name);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let owned = |line: &str, name: &str| words_of(line, name).into_iter().map(str::to_owned).collect();
    let edits: Vec<Edit> = names
        .into_iter()
        .map(|name| Edit { old: owned(&entry.line, &name), new: owned(&wanted, &name), name })
        .collect();
    BootLine {
        kernel: format!("{} {}", entry.release, kernel.arch),
        base: entry.line.clone(),
        line: forward(&entry.line, &edits),
        longest: longest(kernel),
        ..BootLine::default()
    }
}

/// Whether a kernel was given the same line, apart from what boot loaders add of their own: the
/// kernel's file (`BOOT_IMAGE`, GRUB's and others') and the initial file system (`initrd`,
/// systemd-boot's).
pub fn same_line(one: &str, other: &str) -> bool {
    let own = |line: &str| {
        let words = words(line).into_iter().filter(|word| !["BOOT_IMAGE", "initrd"].contains(&word.name));
        words.map(|word| word.text.to_owned()).collect::<Vec<_>>()
    };
    own(one) == own(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_take_the_place_of_others_of_their_name() {
        let entry = Installed {
            release: "6.1.0".to_owned(),
            line: "root=/dev/a isolcpus=1 nohz-full=1 quiet".to_owned(),
        };
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let with = owned(&["isolcpus=2,3", "panic=10"]);
        let line = line_with(&Kernel::default(), &entry, &with, &owned(&["nohz_full"]));
        assert_eq!(line.line, "root=/dev/a isolcpus=2,3 quiet panic=10");
        assert_eq!(line.base, entry.line);
        assert!(same_line(&line.line, &format!("BOOT_IMAGE=/vmlinuz {}  initrd=\\x", line.line)));
        assert!(!same_line(&line.line, &line.base));
    }
}
