//! GRUB's menu as its generator made it, `grub.cfg`: which kernels it starts, with which lines; and
//! an entry of our own in `custom.cfg` beside it, which the menu reads at its end.
//!
//! Sources: GRUB's manual, "Writing full configuration files directly" (`menuentry`), "Multi-boot
//! manual config" and "Invoking grub-reboot"; its generator's `10_linux`, `41_custom` and
//! `00_header` (`next_entry` is taken once, and stored empty before the kernel starts).

use machine::Root;

/// Folders in which distributions keep it.
const FOLDERS: [&str; 2] = ["boot/grub", "boot/grub2"];

/// The name by which our entry is chosen.
pub(crate) const ID: &str = "stillcore-once";

/// The first and the last line of what is ours in `custom.cfg`.
const BEGIN: &str = "### stillcore: an entry that boots once; made by stillcore, taken out by it";
const END: &str = "### stillcore: end";

/// A generated menu.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Menu {
    /// Its folder under the root.
    pub(crate) folder: &'static str,
    text: String,
}

/// An entry that starts a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The lines of the entry, with its head and its closing brace.
    block: Vec<String>,
    /// Which of them starts the kernel.
    at: usize,
    /// Release of the kernel, from the name of its file.
    pub(crate) release: String,
    /// The kernel's command line.
    pub(crate) line: String,
}

/// The menu of the machine; `None` where there is none, or where it reads no entries of others.
pub(crate) fn find(root: &Root) -> Option<Menu> {
    FOLDERS.into_iter().find_map(|folder| {
        let text = root.maybe(&format!("{folder}/grub.cfg"))?;
        (text.contains("menuentry ") && text.contains("/custom.cfg")).then_some(Menu { folder, text })
    })
}

impl Menu {
    /// The file with entries of others.
    pub(crate) fn custom(&self) -> String {
        format!("{}/custom.cfg", self.folder)
    }

    /// The programs' names: distributions that keep the menu in `grub2` name them so too.
    pub(crate) fn program(&self, name: &str) -> String {
        format!("{}-{name}", if self.folder.ends_with('2') { "grub2" } else { "grub" })
    }

    /// Why an entry chosen for one boot would not be forgotten after it, or could not be chosen.
    pub(crate) fn unfit(&self, root: &Root) -> Option<String> {
        if !(self.text.contains("next_entry") && self.text.contains("save_env")) {
            return Some("its menu does not know entries that boot once".to_owned());
        }
        // GRUB overwrites the file's blocks in place, which it can do on plain partitions alone.
        let mounts = root.is_live().then(|| root.maybe("proc/self/mounts")).flatten()?;
        let (device, kind) = filesystem_of(&mounts, &format!("/{}", self.folder))?;
        let layered = ["/dev/mapper/", "/dev/dm-", "/dev/md"].iter().any(|one| device.starts_with(one));
        let foreign = ["btrfs", "zfs", "f2fs", "overlay", "squashfs"].contains(&kind.as_str());
        (layered || foreign).then(|| {
            format!("GRUB cannot write to /{} ({device}, {kind}), so that it would boot the entry again and again", self.folder)
        })
    }

    /// Entries that start kernels, in the order of the menu, without those for rescue.
    pub(crate) fn entries(&self) -> Vec<Entry> {
        let mut found = Vec::new();
        let mut lines = self.text.lines();
        while let Some(head) = lines.next() {
            if !head.trim_start().starts_with("menuentry ") || !head.trim_end().ends_with('{') {
                continue;
            }
            let mut block = vec![head.trim().to_owned()];
            for line in lines.by_ref() {
                block.push(line.to_owned());
                if line.trim() == "}" {
                    break;
                }
            }
            found.extend(entry(block));
        }
        found
    }
}

/// The device and the kind of the file system that holds a path.
fn filesystem_of(mounts: &str, path: &str) -> Option<(String, String)> {
    let mut best: Option<(&str, &str, &str)> = None;
    for line in mounts.lines() {
        let mut words = line.split(' ');
        let (Some(device), Some(at), Some(kind)) = (words.next(), words.next(), words.next()) else {
            continue;
        };
        let holds =
            at == "/" || path.strip_prefix(at).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        // Of two on one place the later one is seen.
        if holds && best.is_none_or(|(_, before, _)| at.len() >= before.len()) {
            best = Some((device, at, kind));
        }
    }
    best.map(|(device, _, kind)| (device.to_owned(), kind.to_owned()))
}

fn entry(block: Vec<String>) -> Option<Entry> {
    let (at, path, line) = block.iter().enumerate().find_map(|(at, text)| {
        let (word, rest) = text.trim().split_once([' ', '\t'])?;
        if !["linux", "linux16", "linuxefi"].contains(&word) {
            return None;
        }
        let rest = rest.trim_start();
        let (path, line) = rest.split_once([' ', '\t']).unwrap_or((rest, ""));
        Some((at, path.to_owned(), line.trim().to_owned()))
    })?;
    let name = path.rsplit('/').next().unwrap_or_default();
    let release =
        ["vmlinuz-", "vmlinux-", "linux-", "kernel-"].iter().find_map(|one| name.strip_prefix(one))?;
    let rescue = line.split(' ').any(|word| word == "single" || word == "recovery")
        || block[0].contains("recovery mode");
    let release = release.to_owned();
    (!rescue).then_some(Entry { block, at, release, line })
}

impl Entry {
    /// The same entry under our own name, with another line.
    pub(crate) fn with(&self, line: &str) -> String {
        let mut text = format!("{BEGIN}\n");
        for (at, old) in self.block.iter().enumerate() {
            if at == 0 {
                text.push_str(&head(old));
            } else if at == self.at {
                let before = old.find(&self.line).filter(|_| !self.line.is_empty()).unwrap_or(old.len());
                text.extend([old[..before].trim_end(), " ", line.trim_end()]);
            } else {
                text.push_str(old);
            }
            text.push('\n');
        }
        text.push_str(END);
        text.push('\n');
        text
    }
}

/// The head of the entry with our title and name; what stands there of access rights stays.
fn head(old: &str) -> String {
    let quoted = |from: usize| {
        let rest = &old[from..];
        let quote = rest.chars().next().filter(|c| *c == '\'' || *c == '"')?;
        let end = rest[1..].find(quote)? + from + 1;
        Some((from + 1, end))
    };
    let title = old.find(['\'', '"']).and_then(quoted);
    let Some((_, end)) = title else {
        return format!("menuentry 'Linux (stillcore, once)' --id {ID} {{");
    };
    let titled = format!("{} (stillcore, once){}", &old[..end], &old[end..]);
    let added = titled.len() - old.len();
    let id = ["$menuentry_id_option ", "--id "].iter().find_map(|option| {
        let at = titled[end + added..].find(option)? + end + added;
        let value = &titled[at + option.len()..];
        let length = match value.chars().next()? {
            quote @ ('\'' | '"') => value[1..].find(quote)? + 2,
            _ => value.find(' ')?,
        };
        Some((at, at + option.len() + length))
    });
    match id {
        Some((from, to)) => format!("{}--id {ID}{}", &titled[..from], &titled[to..]),
        None => format!("{}--id {ID} {{", titled.trim_end_matches('{')),
    }
}

/// `custom.cfg` with our entry at its end, and no other of ours.
pub(crate) fn custom_with(text: &str, entry: &str) -> String {
    let others = custom_without(text);
    let end = if others.is_empty() || others.ends_with('\n') { "" } else { "\n" };
    format!("{others}{end}{entry}")
}

/// `custom.cfg` without what is ours.
pub(crate) fn custom_without(text: &str) -> String {
    let mut ours = false;
    let kept = text.split_inclusive('\n').filter(|line| {
        let line = line.trim_end();
        ours |= line == BEGIN;
        let keep = !ours;
        ours &= line != END;
        keep
    });
    kept.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HEAD: &str = "menuentry 'Debian GNU/Linux, with Linux 6.1.0-44-amd64' --class debian --unrestricted $menuentry_id_option 'gnulinux-6.1.0-44-amd64-advanced-1' {";

    #[test]
    fn access_rights_of_an_entry_stay() {
        let ours = head(HEAD);
        assert_eq!(
            ours,
            "menuentry 'Debian GNU/Linux, with Linux 6.1.0-44-amd64 (stillcore, once)' --class debian --unrestricted --id stillcore-once {"
        );
        assert_eq!(head("menuentry \"a\" {"), "menuentry \"a (stillcore, once)\" --id stillcore-once {");
        assert_eq!(head("menuentry a --id b {"), "menuentry 'Linux (stillcore, once)' --id stillcore-once {");
    }

    #[test]
    fn the_file_system_that_is_seen_counts() {
        let mounts =
            "/dev/mapper/vg-root / ext4 rw 0 0\n/dev/sda1 /boot ext2 rw 0 0\ntmpfs /bootx tmpfs rw 0 0\n";
        let of = |path| filesystem_of(mounts, path).unwrap().0;
        assert_eq!([of("/boot/grub"), of("/var")], ["/dev/sda1", "/dev/mapper/vg-root"]);
    }

    proptest! {
        /// What others have written stays, byte for byte, however often ours comes and goes.
        #[test]
        fn others_entries_stay(others in "(menuentry a \\{\n|\\}\n|x y\n|\n){0,6}") {
            let entry = format!("{BEGIN}\nmenuentry b {{\n}}\n{END}\n");
            let once = custom_with(&others, &entry);
            prop_assert!(once.starts_with(&others));
            prop_assert_eq!(&custom_with(&once, &entry), &once);
            prop_assert_eq!(custom_without(&once), others);
        }

        #[test]
        fn no_menu_panics(text in "(menuentry |'|\"|--id | \\{|\n|linux |/vmlinuz-6|\\}|x){0,16}") {
            let menu = Menu { folder: "boot/grub", text };
            for entry in menu.entries() {
                let _ = entry.with("quiet");
            }
        }
    }
}
