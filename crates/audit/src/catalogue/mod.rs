//! The catalogue: one TOML file a mechanism, in `catalogue/mechanisms/`, embedded in the program or
//! read from a directory.
//!
//! A mechanism says where its value is read (`probe`), what isolation wants of it (`want`), where
//! the truth can differ from the setting (`effective`), and how to change it (`change`). CPU sets
//! are never spelled: `{isolated}` and `{housekeeping}` are lists, `{isolated:hex}` and
//! `{housekeeping:hex}` masks.

mod check;
mod count;
mod docs;
mod kinds;
mod shown;
mod sources;

pub use count::Count;
pub use docs::{mechanism_section, mechanisms_page};
pub use kinds::{Change, Daemon, Effective, Probe, ValueType, Want, When};
pub use shown::{By, Shown};

use check::check;
use model::{Error, EventClass};
use serde::Deserialize;
use std::fs;
use std::path::Path;

/// The files that ship with stillcore, name and text.
const EMBEDDED: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/mechanisms.rs"));

/// Where in the system a mechanism lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layer {
    /// The kernel's build options.
    Build,
    /// The kernel command line.
    Boot,
    /// A file under `/sys`.
    Sysfs,
    /// A file under `/proc`.
    Procfs,
    /// Interrupts.
    Irq,
    /// Control groups.
    Cgroup,
    /// Tasks and kernel threads.
    Process,
    /// A daemon.
    Service,
    /// Firmware.
    Firmware,
}

impl Layer {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Build => "the kernel's build options",
            Self::Boot => "the kernel command line",
            Self::Sysfs => "files under /sys",
            Self::Procfs => "files under /proc",
            Self::Irq => "interrupts",
            Self::Cgroup => "control groups",
            Self::Process => "tasks and kernel threads",
            Self::Service => "daemons",
            Self::Firmware => "firmware",
        }
    }
}

/// A state in which the value does not matter.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Moot {
    /// A file…
    pub path: Option<String>,
    /// …that holds this value,
    pub value: Option<String>,
    /// or one of these that mean the same;
    #[serde(default)]
    pub or: Vec<String>,
    /// or a list of CPUs without the measured ones;
    #[serde(default)]
    pub avoids: bool,
    /// or a real-time kernel, whatever shows that.
    #[serde(default)]
    pub realtime: bool,
    /// Only where the kernel does not offer the setting; a value that can be read decides.
    #[serde(default)]
    pub absent: bool,
    /// Why the mechanism then does not matter, as a sentence.
    pub note: String,
}

/// The mechanism's row in Table III of the RTSS 2024 paper.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableRow {
    /// Its place in the table, from 1.
    pub row: u32,
    /// What the row advises, in our words.
    pub advice: String,
    /// Whether it is right, and what is wrong with it.
    pub verdict: String,
}

/// One way in which Linux isolates a core.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mechanism {
    /// The name of its file.
    pub id: String,
    /// A line for lists.
    pub title: String,
    /// Where it lives.
    pub layer: Layer,
    /// How its value is spelled.
    pub value: ValueType,
    /// First kernel that has it, for the reader; never judged by.
    pub since: Option<String>,
    /// Event classes it removes.
    pub removes: Vec<EventClass>,
    /// What an isolated CPU suffers without it: a clause that ends a sentence.
    pub harm: String,
    /// How it works and what to know, one paragraph.
    pub why: String,
    /// What it costs, one sentence.
    pub cost: String,
    /// Whether a mistake in what runs under it can take the machine away: proposed after harmless
    /// mechanisms.
    #[serde(default)]
    pub risky: bool,
    /// Whether it is a choice: the audit reports its state without failing for it, and a plan
    /// includes it only on request.
    #[serde(default)]
    pub optional: bool,
    /// Files whose value the kernel computes anew on its change, and that undoing the change does
    /// not restore.
    #[serde(default)]
    pub disturbs: Vec<String>,
    /// Its place among the changes of a plan, lowest first; [`Mechanism::order`] has the default.
    pub order: Option<u32>,
    /// Why a machine may not have it: a sentence.
    pub absent: String,
    /// Kernel documents and sources with the version that was read, commits, papers, manuals.
    pub sources: Vec<String>,
    /// What shows that it is at work.
    pub shown: Shown,
    /// Mechanisms without which it does nothing.
    #[serde(default)]
    pub requires: Vec<String>,
    /// Mechanisms it fights with.
    #[serde(default)]
    pub conflicts: Vec<String>,
    /// Where the value is read.
    pub probe: Probe,
    /// What isolation wants of it.
    pub want: Want,
    /// Where the truth is read.
    pub effective: Option<Effective>,
    /// When it does not matter.
    pub moot: Option<Moot>,
    /// How to change it, best first; none where nothing is to be changed.
    #[serde(default)]
    pub change: Vec<Change>,
    /// Its row in Table III.
    pub table3: Option<TableRow>,
}

impl Mechanism {
    /// Its place in a plan: what undoes others' work goes first (daemons), what others undo goes
    /// last (affinities).
    pub fn order(&self) -> u32 {
        self.order.unwrap_or(match self.layer {
            Layer::Build | Layer::Boot | Layer::Firmware => 0,
            Layer::Service => 10,
            Layer::Procfs | Layer::Sysfs => 20,
            Layer::Cgroup => 40,
            Layer::Process => 50,
            Layer::Irq => 60,
        })
    }

    /// A contested mechanism as somebody wants it who has seen a reason: as its change leaves it.
    pub fn decided(&self) -> Option<Self> {
        let written = |change: &Change| match change {
            Change::Write { path: None, value, .. } => Some(value.clone()),
            _ => None,
        };
        let contested = matches!(self.want, Want::Contested { .. });
        let value = self.change.iter().find_map(written).filter(|_| contested)?;
        Some(Self { want: Want::Literal { value }, ..self.clone() })
    }
}

/// All mechanisms, by id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Catalogue {
    /// In the order of their ids.
    pub mechanisms: Vec<Mechanism>,
}

impl Catalogue {
    /// The catalogue that ships with stillcore.
    pub fn embedded() -> Result<Self, Error> {
        let files =
            EMBEDDED.iter().map(|(name, text)| (format!("catalogue/mechanisms/{name}"), (*text).to_owned()));
        Self::from_files(files)
    }

    /// The `.toml` files of a directory.
    pub fn load(directory: &Path) -> Result<Self, Error> {
        let entries = fs::read_dir(directory).map_err(|source| Error::io("read", directory, source))?;
        let mut files = Vec::new();
        for entry in entries {
            let path = entry.map_err(|source| Error::io("read", directory, source))?.path();
            if path.extension().is_some_and(|extension| extension == "toml") {
                let text = fs::read_to_string(&path).map_err(|source| Error::io("read", &path, source))?;
                files.push((path.display().to_string(), text));
            }
        }
        if files.is_empty() {
            return Err(Error::invalid(
                directory.display(),
                "no .toml file in it",
                "a catalogue, one file a mechanism",
            ));
        }
        files.sort();
        Self::from_files(files.into_iter())
    }

    fn from_files(files: impl Iterator<Item = (String, String)>) -> Result<Self, Error> {
        let mut mechanisms = Vec::new();
        let mut texts = Vec::new();
        for (place, text) in files {
            mechanisms.push(parse(&place, &text)?);
            texts.push((place, text));
        }
        check(&mechanisms, &texts)?;
        mechanisms.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(Self { mechanisms })
    }

    /// A mechanism by its id.
    pub fn get(&self, id: &str) -> Option<&Mechanism> {
        self.mechanisms.iter().find(|mechanism| mechanism.id == id)
    }
}

fn parse(place: &str, text: &str) -> Result<Mechanism, Error> {
    toml::from_str(text).map_err(|error| {
        let line =
            error.span().map_or(1, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
        let what = error.message().lines().collect::<Vec<_>>().join(" ");
        Error::invalid(format!("{place}:{line}"), what, "a mechanism of the catalogue")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A catalogue of one changed copy of `swap`.
    fn with(change: impl Fn(&str) -> String) -> Result<Catalogue, Error> {
        let swap = EMBEDDED.iter().find(|(name, _)| *name == "swap.toml").unwrap().1;
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("swap.toml"), change(swap)).unwrap();
        fs::write(dir.path().join("README.md"), "not a mechanism").unwrap();
        Catalogue::load(dir.path())
    }

    #[test]
    fn the_shipped_catalogue_is_sound_and_reads_the_same_from_a_directory() {
        let embedded = Catalogue::embedded().unwrap();
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../catalogue/mechanisms");
        assert_eq!(Catalogue::load(&folder).unwrap(), embedded);
        assert!(embedded.get("nohz_full").is_some() && embedded.get("nohz-full").is_none());
    }

    #[test]
    fn remedies_by_label_are_mechanisms() {
        let catalogue = Catalogue::embedded().unwrap();
        let events = model::events::EventCatalogue::embedded().unwrap();
        let labels = events
            .classes
            .iter()
            .flat_map(|(class, remedy)| remedy.by_label.iter().map(move |(label, ids)| (class, label, ids)));
        assert!(labels.clone().count() > 20);
        for (class, label, ids) in labels {
            for id in ids {
                assert!(catalogue.get(id).is_some(), "{class} by {label}: no mechanism {id}");
            }
        }
        for (of, ids) in events.steps.iter().chain(&events.blockings) {
            assert!(ids.iter().all(|id| catalogue.get(id).is_some()), "{of}: {ids:?}");
        }
    }

    #[test]
    fn what_a_change_does_not_do_and_what_is_risky_are_shown() {
        let catalogue = Catalogue::embedded().unwrap();
        let of = |id| catalogue.get(id).unwrap();
        let caveats: Vec<_> = of("irqaffinity").change.iter().map(Change::caveat).collect();
        assert_eq!(caveats, [Some("only interrupts requested from now on"), None]);
        let risky: Vec<_> = catalogue.mechanisms.iter().filter(|m| m.risky).map(|m| m.id.as_str()).collect();
        assert_eq!(risky, ["ext_server", "fair_server", "sched_rt_runtime"]);
    }

    #[test]
    fn a_corrupt_entry_is_named_with_file_and_line() {
        assert!(with(str::to_owned).is_ok());
        for (from, to, at, what) in [
            ("layer = ", "layers = ", "layer", "unknown field `layers`"),
            ("\"swaps\"", "\"swabs\"", "kind = \"swaps\"", "unknown variant `swabs`"),
            ("\"swaps\"", "\"swaps\"\npath = \"x\"", "[probe]", "unknown field `path`"),
            ("removes = [", "removes = [\"ticks\", ", "removes", "unknown variant `ticks`"),
            ("id = \"swap\"", "id = \"swop\"", "id", "id \"swop\""),
            ("title = \"", "title = \"\" # ", "title", "title is empty"),
            ("[want]", "[want", "[want]", "unclosed table"),
        ] {
            let error = with(|text| text.replacen(from, to, 1)).unwrap_err().to_string();
            let swap = EMBEDDED.iter().find(|(name, _)| *name == "swap.toml").unwrap().1;
            let line = swap.lines().position(|line| line.starts_with(at)).unwrap() + 1;
            assert!(
                error.contains(&format!("swap.toml:{line}: ")) && error.contains(what),
                "{from}: {error}"
            );
            assert_eq!(error.lines().count(), 1, "{error}");
        }
    }

    #[test]
    fn a_folder_without_mechanisms_is_no_catalogue() {
        let dir = tempfile::tempdir().unwrap();
        assert!(Catalogue::load(dir.path()).unwrap_err().to_string().contains("no .toml file"));
        assert!(Catalogue::load(&dir.path().join("none")).is_err());
    }
}
