//! Who sets a setting otherwise, where the kernel shows it: a setting that is a file has a writer,
//! whose number fanotify reports ([`sys::writers`]).
//!
//! A write that changes nothing is no drift, so writers are forgotten each time a setting was
//! found right. Where several processes have written since, each of them is named.

use crate::heal::{Key, key};
use crate::setting::Setting;
use model::plan::StepKind;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use sys::writers::Writers;

/// Writers of one setting that are kept at most.
const MOST: usize = 8;

/// A process that has written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Writer {
    /// Its number; 0 where it is outside of this PID namespace.
    pub pid: u32,
    /// Its name; `None` where it had ended before it could be asked.
    pub name: Option<String>,
}

impl Writer {
    /// The process with this number, and its name if it runs still.
    pub fn of(pid: u32) -> Self {
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok().filter(|_| pid != 0);
        Self { pid, name: name.map(|name| name.trim_end_matches('\n').to_owned()) }
    }
}

/// Who has changed a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Changer {
    /// The last writer, and others that have written since it was last right.
    Writers(Vec<Writer>),
    /// Why it is not known, a clause.
    Unknown(String),
}

/// Watches the files of settings.
#[derive(Debug)]
pub struct Changers {
    /// Or why there are none.
    writers: Result<Writers, String>,
    /// Files as the kernel names them, and the settings that they are.
    files: BTreeMap<PathBuf, BTreeSet<Key>>,
    seen: BTreeMap<Key, Vec<Writer>>,
    /// Whether the kernel has dropped events since all settings were right.
    lost: bool,
}

impl Changers {
    /// Watches nothing yet.
    pub fn new() -> Self {
        let writers = Writers::new().map_err(|error| error.to_string());
        Self { writers, files: BTreeMap::new(), seen: BTreeMap::new(), lost: false }
    }

    /// What can be waited for, unless the kernel has no such thing.
    pub fn descriptor(&self) -> Option<&Writers> {
        self.writers.as_ref().ok()
    }

    /// Why no writer is seen, if so.
    pub fn why_not(&self) -> Option<&str> {
        self.writers.as_ref().err().map(String::as_str)
    }

    /// How many files are watched.
    pub fn watched(&self) -> usize {
        self.files.len()
    }

    /// Watches these settings, and files of watched ones that have come anew.
    pub fn watch<'a>(&mut self, settings: impl IntoIterator<Item = &'a Setting>) {
        let Ok(writers) = &self.writers else { return };
        for setting in settings {
            for file in files_of(setting) {
                let Ok(file) = fs::canonicalize(&file) else { continue };
                // A mark is of the inode, which a device or a group that comes anew has another of.
                if writers.watch(&file).is_ok() {
                    self.files.entry(file).or_default().insert(key(setting));
                }
            }
        }
    }

    /// Takes note of writers since the last call, other than this process; the settings that they
    /// have written.
    pub fn read(&mut self) -> BTreeSet<Key> {
        let mut touched = BTreeSet::new();
        let Ok(writers) = &self.writers else { return touched };
        let Ok(all) = writers.read() else { return touched };
        if all.lost {
            // Any of them may have been written.
            self.lost = true;
            touched.extend(self.files.values().flatten().cloned());
        }
        let own = std::process::id();
        for write in all.writes.into_iter().filter(|write| write.pid != own) {
            let writer = Writer::of(write.pid);
            for key in self.files.get(&write.path).into_iter().flatten() {
                touched.insert(key.clone());
                let seen = self.seen.entry(key.clone()).or_default();
                seen.retain(|writer| writer.pid != write.pid);
                seen.insert(0, writer.clone());
                seen.truncate(MOST);
            }
        }
        touched
    }

    /// Who has changed a setting that was found otherwise.
    pub fn of(&self, setting: &Setting) -> Changer {
        if let Some(seen) = self.seen.get(&key(setting)) {
            return Changer::Writers(seen.clone());
        }
        Changer::Unknown(match (&self.writers, setting.kind) {
            (_, StepKind::Task) => "the kernel shows nobody who sets the affinity of a task".to_owned(),
            (Err(why), _) => why.clone(),
            (Ok(_), _) if self.lost => "the kernel has dropped events of writers".to_owned(),
            (Ok(_), kind) if has_file(kind) => {
                "nobody has written its file: the kernel or a driver has set it, or the file was not watched"
                    .to_owned()
            }
            (Ok(_), kind) => format!("a setting of the kind {kind:?} has no file that somebody writes"),
        })
    }

    /// The setting is right: whoever has written it did no harm.
    pub fn forget(&mut self, key: &Key) {
        self.seen.remove(key);
    }

    /// All settings but these are right.
    pub fn forget_but(&mut self, otherwise: &BTreeSet<Key>) {
        self.seen.retain(|key, _| otherwise.contains(key));
        self.lost &= !otherwise.is_empty();
    }
}

impl Default for Changers {
    fn default() -> Self {
        Self::new()
    }
}

fn has_file(kind: StepKind) -> bool {
    matches!(kind, StepKind::File | StepKind::Flag | StepKind::Controller)
}

/// The files by which a setting can be written.
fn files_of(setting: &Setting) -> Vec<PathBuf> {
    let target = setting.target.as_str();
    let before = |mark| target.rsplit_once(mark).map_or(target, |(path, _)| path);
    match setting.kind {
        // As a list and as a mask (Linux kernel/irq/proc.c).
        StepKind::File if target.starts_with("/proc/irq/") => {
            let mask = target.strip_suffix("_list").unwrap_or(target);
            vec![PathBuf::from(target), PathBuf::from(mask)]
        }
        // One switch sets all detectors (Linux kernel/watchdog.c).
        StepKind::File if target.ends_with("/kernel/soft_watchdog") || target.ends_with("/nmi_watchdog") => {
            vec![PathBuf::from(target), Path::new(target).with_file_name("watchdog")]
        }
        StepKind::File => vec![PathBuf::from(target)],
        StepKind::Flag => vec![PathBuf::from(before('#'))],
        StepKind::Controller => vec![Path::new(before('#')).join("cgroup.subtree_control")],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn setting(kind: StepKind, target: &str) -> Setting {
        let [mechanism, target, new] = ["m", target, "1"].map(str::to_owned);
        Setting { mechanism, kind, target, old: None, new, read_back: None }
    }

    #[test]
    fn an_interrupt_has_two_files_and_a_task_none() {
        let files = |kind, target| files_of(&setting(kind, target));
        let both = ["/proc/irq/7/smp_affinity_list", "/proc/irq/7/smp_affinity"].map(PathBuf::from);
        assert_eq!(files(StepKind::File, "/proc/irq/7/smp_affinity_list"), both);
        assert_eq!(files(StepKind::File, "/proc/irq/default_smp_affinity").len(), 2);
        assert_eq!(files(StepKind::Flag, "/sys/x/features#TTWU"), [PathBuf::from("/sys/x/features")]);
        assert!(files(StepKind::Task, "7/9/x").is_empty());
    }

    #[test]
    fn the_writer_of_a_setting_is_named_until_it_is_right_again() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("setting");
        fs::write(&file, "1").unwrap();
        let setting = setting(StepKind::File, file.to_str().unwrap());
        let mut changers = Changers::new();
        changers.watch([&setting]);
        assert!(matches!(changers.of(&setting), Changer::Unknown(_)));
        if let Some(why) = changers.why_not() {
            return eprintln!("{why}: skipped");
        }
        // This process heals, which is no drift.
        fs::write(&file, "1").unwrap();
        assert!(changers.read().is_empty());
        let script = format!("echo 2 > {}; echo done; read _", file.display());
        let mut command = Command::new("sh");
        command
            .args(["-c", &script])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        let mut out = std::io::BufReader::new(child.stdout.take().unwrap());
        std::io::BufRead::read_line(&mut out, &mut line).unwrap();
        assert_eq!(changers.read(), BTreeSet::from([key(&setting)]));
        let expected = Writer { pid: child.id(), name: Some("sh".to_owned()) };
        assert_eq!(changers.of(&setting), Changer::Writers(vec![expected]));
        drop(child.stdin.take());
        child.wait().unwrap();
        changers.forget(&key(&setting));
        assert!(matches!(changers.of(&setting), Changer::Unknown(_)));
    }
}
