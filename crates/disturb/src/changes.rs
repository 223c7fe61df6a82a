//! What disturbances put on a machine: control groups, and modules loaded and unloaded; swap files
//! have a file of their own.

use crate::swap_file::SwapFile;
use journal::earlier::{self, transient};
use journal::session::changes::{made_if, patiently};
use journal::settings::{Settings, reach};
use journal::{Change, Earlier, Form, Kind, Owner, Present, earlier_entry, trust};
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};
use sys::{Error, modules};

/// How these are read from a journal.
pub const OWNERS: &[Owner] = &[Owner::of::<Cgroup>(), Owner::of::<Module>(), Owner::of::<SwapFile>()];

/// Where kernel modules lie.
const MODULES: [&str; 2] = ["/lib/modules", "/usr/lib/modules"];
/// Where a guest of the lab has those it was given.
pub(crate) const LAB: &str = "/lab";

/// A control group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cgroup {
    /// Its directory.
    pub path: PathBuf,
}

impl Kind for Cgroup {
    const FORM: Form = Form { kind: "cgroup", version: 1 };

    fn of_earlier(entry: &earlier_entry::Entry) -> Earlier<Self> {
        Some(Ok(Self { path: earlier::path(entry, "cgroup")? }))
    }
}

impl Change for Cgroup {
    fn target(&self) -> String {
        self.path.display().to_string()
    }

    fn bounds(&self) -> Result<(), Error> {
        let may = reach::is_named(&self.path, reach::OWN) && reach::in_groups(&self.path);
        reach::allow(may, "a control group", &self.target())
    }

    fn check(&self, _: &mut dyn Settings) -> Result<Present, Error> {
        Ok(made_if(fs::symlink_metadata(&self.path).is_ok()))
    }

    fn undo(&self, _: &mut dyn Settings) -> Result<(), Error> {
        patiently(|| Ok(crate::cgroup::remove(&self.path)?))
    }
}

/// A kernel module that is loaded and unloaded meanwhile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Module {
    /// Its name, as in `/proc/modules`.
    pub name: String,
    /// The file it is loaded from.
    pub file: PathBuf,
    /// Whether it was loaded before.
    pub was_loaded: bool,
}

impl Module {
    /// The module as it is now.
    pub fn of(name: &str, file: &Path) -> Self {
        let was_loaded = modules::uses_here(name).is_some();
        Self { name: name.to_owned(), file: file.to_owned(), was_loaded }
    }
}

impl Kind for Module {
    const FORM: Form = Form { kind: "module", version: 1 };

    fn of_earlier(entry: &earlier_entry::Entry) -> Earlier<Self> {
        let read = || {
            let (name, file) =
                modules::of_target(&entry.target).ok_or_else(|| earlier::wrong("no name and file"))?;
            let was_loaded = match entry.old.as_deref() {
                Some("loaded") => true,
                Some("not loaded") => false,
                _ => return Err(earlier::wrong("whether it was loaded is not known")),
            };
            Ok(Self { name: name.to_owned(), file: file.to_owned(), was_loaded })
        };
        transient(entry, "module").then(read)
    }
}

impl Change for Module {
    fn target(&self) -> String {
        modules::target(&self.name, &self.file)
    }

    /// Of the kernel's own directory; in a guest of the lab they lie elsewhere, and nobody but root
    /// can have put them there.
    fn bounds(&self) -> Result<(), Error> {
        let lab = || {
            let file = self.file.starts_with(LAB).then(|| trust::open_file(&self.file, OFlags::RDONLY));
            matches!(file, Some(Ok(Some(_))))
        };
        let may = reach::is_plain(&self.file) && (reach::below(&self.file, &MODULES) || lab());
        reach::allow(may, "a module", &self.target())
    }

    fn check(&self, _: &mut dyn Settings) -> Result<Present, Error> {
        let as_before = modules::uses_here(&self.name).is_some() == self.was_loaded;
        Ok(if as_before { Present::Before } else { Present::Made })
    }

    fn undo(&self, _: &mut dyn Settings) -> Result<(), Error> {
        patiently(|| modules::give_back(&self.name, &self.file, self.was_loaded))
    }
}
