//! What a recorder puts on a machine: tracing instances and probes of kernel functions.

use super::{instance, kprobe};
use journal::earlier::{self, transient};
use journal::session::changes::{made_if, patiently};
use journal::settings::{Settings, reach};
use journal::{Change, Earlier, Form, Kind, Owner, Present, earlier_entry};
use model::events::EventSpec;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};
use sys::{Error, tracefs};

/// How these are read from a journal.
pub const OWNERS: &[Owner] = &[Owner::of::<TraceInstance>(), Owner::of::<Kprobe>()];

/// The groups of our own kernel probes.
const PROBES: [&str; 2] = ["stillcore/", "stillcore_stress/"];

/// A tracing instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceInstance {
    /// Its directory.
    pub path: PathBuf,
}

impl Kind for TraceInstance {
    const FORM: Form = Form { kind: "trace-instance", version: 1 };

    fn of_earlier(entry: &earlier_entry::Entry) -> Earlier<Self> {
        Some(Ok(Self { path: earlier::path(entry, "trace-instance")? }))
    }
}

impl Change for TraceInstance {
    fn target(&self) -> String {
        self.path.display().to_string()
    }

    fn bounds(&self) -> Result<(), Error> {
        let above = self.path.parent().and_then(Path::file_name);
        let among = above.is_some_and(|above| above == "instances");
        let own = among && reach::is_plain(&self.path) && reach::is_named(&self.path, reach::OWN);
        reach::allow(own && tracefs::is_of_tracefs(&self.path), "a tracing instance", &self.target())
    }

    fn check(&self, _: &mut dyn Settings) -> Result<Present, Error> {
        let is_there = |path: PathBuf| fs::symlink_metadata(path).is_ok();
        Ok(made_if(tracefs::seen(&self.path)?.is_none_or(is_there)))
    }

    fn undo(&self, _: &mut dyn Settings) -> Result<(), Error> {
        let path = tracefs::reached(&self.path)?;
        patiently(|| instance::remove(&path))
    }
}

/// A probe of a function of the kernel, or of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kprobe {
    /// The file `kprobe_events`, `uprobe_events` or `dynamic_events` in which it is defined.
    pub file: PathBuf,
    /// `group/name`.
    pub event: String,
}

impl Kind for Kprobe {
    const FORM: Form = Form { kind: "kprobe", version: 1 };

    fn of_earlier(entry: &earlier_entry::Entry) -> Earlier<Self> {
        let read = || {
            let (file, event) =
                kprobe::of_target(&entry.target).ok_or_else(|| earlier::wrong("no file and event"))?;
            Ok(Self { file: file.to_owned(), event: event.to_owned() })
        };
        transient(entry, "kprobe").then(read)
    }
}

impl Change for Kprobe {
    fn target(&self) -> String {
        kprobe::target_of(&self.file, &self.event)
    }

    fn bounds(&self) -> Result<(), Error> {
        let is_one = |name: &std::ffi::OsStr| {
            [kprobe::KERNEL, kprobe::USER, kprobe::ANY].iter().any(|one| name == *one)
        };
        let file_is_one = self.file.file_name().is_some_and(is_one);
        // A line end would begin another command to the same file.
        let own = PROBES.iter().any(|group| self.event.starts_with(group)) && !self.event.contains('\n');
        let may = reach::is_plain(&self.file) && file_is_one && own && tracefs::is_of_tracefs(&self.file);
        reach::allow(may, "a probe", &self.target())
    }

    fn check(&self, _: &mut dyn Settings) -> Result<Present, Error> {
        let seen = tracefs::seen(&self.file)?;
        Ok(made_if(seen.map_or(Ok(true), |file| kprobe::is_defined(&file, &self.event))?))
    }

    fn undo(&self, _: &mut dyn Settings) -> Result<(), Error> {
        let file = tracefs::reached(&self.file)?;
        patiently(|| kprobe::remove(&file, &self.event))
    }
}

/// The change that [`define`] makes.
pub fn kprobe_of(tracefs: &Path, spec: &EventSpec) -> Kprobe {
    Kprobe { file: tracefs.join(kprobe::file_of(spec)), event: spec.name.replace(':', "/") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use journal::recover::undo;
    use journal::settings::Live;

    /// A file of that name elsewhere would be written, and a directory removed.
    #[test]
    fn what_is_called_as_in_tracefs_and_is_not_there_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("kprobe_events");
        fs::write(&file, "p:stillcore/x native_send\n").unwrap();
        let instance = dir.path().join("instances/stillcore-1");
        fs::create_dir_all(&instance).unwrap();
        let probe = |file: &Path, event: &str| Kprobe { file: file.to_owned(), event: event.to_owned() };
        let mut live = Live::new(Path::new("/proc/self/exe"));
        assert!(undo(&probe(&file, "stillcore/x"), &mut live).is_err());
        assert!(undo(&TraceInstance { path: instance.clone() }, &mut live).is_err());
        assert!(instance.exists());
        assert_eq!(fs::read_to_string(&file).unwrap(), "p:stillcore/x native_send\n");
        let gone = Path::new("/proc/self/no/kprobe_events");
        assert!(probe(gone, "stillcore/x\n-:other/y").bounds().is_err());
        probe(gone, "stillcore/x").bounds().unwrap();
    }

    #[test]
    fn a_probe_that_cannot_be_looked_for_is_not_taken_for_gone() {
        let dir = tempfile::tempdir().unwrap();
        let probe = |file: &str| Kprobe { file: dir.path().join(file), event: "stillcore/x".to_owned() };
        let mut live = Live::new(Path::new("/proc/self/exe"));
        // A directory: reading it fails, for root as well.
        fs::create_dir(dir.path().join("kprobe_events")).unwrap();
        assert!(probe("kprobe_events").check(&mut live).is_err());
        assert!(probe("kprobe_events").undo(&mut live).is_err());
        assert_eq!(probe("gone/kprobe_events").check(&mut live).unwrap(), Present::Gone);
        fs::write(dir.path().join("other"), "p:stillcore/x native_send\n").unwrap();
        assert_eq!(probe("other").check(&mut live).unwrap(), Present::Made);
    }

    /// A container that was killed leaves its journal and the instance, and no mount.
    #[test]
    fn an_instance_behind_a_mount_that_is_gone_is_removed_all_the_same() {
        let state = tempfile::tempdir().unwrap();
        let mounts = fs::read_to_string("/proc/mounts").unwrap();
        let Some(tracing) = tracefs::mounted_at(&mounts) else {
            println!("skipped: no tracefs is mounted");
            return;
        };
        let name = format!("stillcore-test-{}", std::process::id());
        let made = tracing.join("instances").join(&name);
        if let Err(error) = fs::create_dir(&made) {
            println!("skipped: no trace instance can be made: {error}");
            return;
        }
        let instance = TraceInstance { path: state.path().join("tracefs-1/instances").join(&name) };
        let mut live = Live::new(Path::new("/proc/self/exe"));
        let before = instance.check(&mut live);
        let undone = instance.undo(&mut live);
        let left = made.exists();
        let _ = fs::remove_dir(&made);
        undone.unwrap();
        assert_eq!((before.unwrap(), left), (Present::Made, false));
        assert_eq!(instance.check(&mut live).unwrap(), Present::Gone);
    }
}
