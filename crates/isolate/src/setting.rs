//! A changed setting in force, and its form in the journal: one row per kind, each with a version
//! and with its own types for the target and the values.

use journal::settings::{Settings, Task, reach, value};
use journal::{Change, Form, Owner, Present, Stored, earlier, earlier_entry};
use model::Cpus;
use model::plan::{Step, StepKind};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize, ser};
use serde_json::Value as Json;
use std::sync::Arc;
use sys::Error;

/// One change in force, target and values as [`Settings`] takes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// The mechanism it belongs to.
    pub mechanism: String,
    /// How it is made.
    pub kind: StepKind,
    /// What is changed.
    pub target: String,
    /// The value before; `None` where it could not be read.
    pub old: Option<String>,
    /// The value after.
    pub new: String,
    /// What read back after the change, where the kernel made something else of the value.
    pub read_back: Option<String>,
}

/// A setting in force beside the machine.
#[derive(Debug)]
pub enum Compared {
    /// It is as the change left it.
    Holds,
    /// It is not there (any more): a task that ended, an interrupt that was freed.
    Gone,
    /// It is this now.
    Drifted(String),
    /// It cannot be read.
    Unread(Error),
}

impl Setting {
    /// The change that a step is about to make.
    pub(super) fn of(step: &Step, old: Option<&str>) -> Self {
        Self {
            mechanism: step.mechanism.clone(),
            kind: step.kind,
            target: step.target.clone(),
            old: old.map(str::to_owned),
            new: step.new.clone(),
            read_back: None,
        }
    }

    /// Whether a value is as it was. Which priority below zero a swap area has, the kernel says, by
    /// what else is switched on.
    pub(crate) fn is_back(kind: StepKind, now: &str, old: &str) -> bool {
        let kernels_own = |text: &str| text.starts_with("on -");
        let swap = kind == StepKind::Swap && kernels_own(now) && kernels_own(old);
        value::same(now, old) || swap
    }

    /// The setting beside what is there now.
    pub fn compare(&self, settings: &mut dyn Settings) -> Compared {
        match settings.read(self.kind, &self.target) {
            Err(error) => Compared::Unread(error),
            Ok(None) => Compared::Gone,
            Ok(Some(now)) => {
                let as_left = value::same(&now, &self.new) || self.read_back.as_deref() == Some(&now);
                if as_left { Compared::Holds } else { Compared::Drifted(now) }
            }
        }
    }

    /// Whether a value is what the change has made of it. A partition that has become invalid
    /// meanwhile is still ours.
    fn is_ours(&self, now: &str) -> bool {
        let partition = self.kind == StepKind::File && self.target.ends_with("/cpuset.cpus.partition");
        let read_back = self.read_back.as_deref().is_some_and(|text| value::same(now, text));
        value::same(now, &self.new) || read_back || (partition && now.starts_with(&self.new))
    }
}

impl Stored for Setting {
    fn form(&self) -> Form {
        row(self.kind).map_or(Form { kind: "none", version: 0 }, |row| row.form)
    }

    /// An error for a kind that has no row: it is no setting, and no plan has it as one.
    fn fields(&self) -> Result<Json, serde_json::Error> {
        let none = || ser::Error::custom(format!("{:?} is no kind of setting", self.kind));
        (row(self.kind).ok_or_else(none)?.write)(self)
    }
}

impl Change for Setting {
    fn target(&self) -> String {
        self.target.clone()
    }

    fn describe(&self) -> String {
        format!("{} {}", self.mechanism, self.target)
    }

    fn in_full(&self) -> String {
        let Self { mechanism, target, new, .. } = self;
        let old = self.old.as_ref().map_or("nothing".to_owned(), |old| format!("{old:?}"));
        format!("{mechanism} {target:?}, from {old} to {new:?}")
    }

    fn bounds(&self) -> Result<(), Error> {
        reach::check(self.kind, &self.target)?;
        self.old.iter().try_for_each(|old| reach::check_value(self.kind, old))
    }

    fn check(&self, settings: &mut dyn Settings) -> Result<Present, Error> {
        let Some(now) = settings.read(self.kind, &self.target)? else { return Ok(Present::Gone) };
        let Some(old) = &self.old else { return Ok(Present::Before) };
        Ok(match self.kind {
            _ if Self::is_back(self.kind, &now, old) => Present::Before,
            // Whatever the kernel has computed since, unless what it had come to is known.
            StepKind::Kept if self.read_back.is_none() => Present::Made,
            StepKind::Kept if !self.read_back.as_deref().is_some_and(|text| value::same(&now, text)) => {
                Present::Other(now)
            }
            StepKind::Kept => Present::Made,
            _ if self.is_ours(&now) => Present::Made,
            _ => Present::Other(now),
        })
    }

    fn undo(&self, settings: &mut dyn Settings) -> Result<(), Error> {
        let Some(old) = &self.old else { return Ok(()) };
        settings.write(self.kind, &self.target, old)?;
        // A group may be gone, with the last of its tasks.
        let loose = matches!(self.kind, StepKind::Task | StepKind::Member);
        match settings.read(self.kind, &self.target).ok().flatten() {
            Some(now) if !loose && !Self::is_back(self.kind, &now, old) => {
                Err(Error::failed(self.describe(), format!("{old} was written and {now} reads back")))
            }
            _ => Ok(()),
        }
    }
}

/// A kind of setting in the journal.
struct Row {
    pub kind: StepKind,
    form: Form,
    write: fn(&Setting) -> Result<Json, serde_json::Error>,
}

/// What a line of a setting holds, with the types of its kind: what is set, and its values.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record<T, V> {
    pub mechanism: String,
    target: T,
    /// Absent where the value before could not be read.
    #[serde(default = "Option::default", skip_serializing_if = "Option::is_none")]
    old: Option<V>,
    new: V,
    #[serde(default = "Option::default", skip_serializing_if = "Option::is_none")]
    read_back: Option<V>,
}

/// A type that [`Settings`] takes as text; its JSON is that text unless it says otherwise.
trait Spelled: Serialize + DeserializeOwned {
    fn spell(&self) -> String {
        match serde_json::to_value(self) {
            Ok(Json::String(text)) => text,
            other => format!("{other:?}"),
        }
    }

    fn read(text: &str) -> Option<Self> {
        serde_json::from_value(Json::String(text.to_owned())).ok()
    }
}

/// Paths, names of units, texts of files.
impl Spelled for String {}
/// Where a task may run.
impl Spelled for Cpus {}

/// A flag, a controller.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Switch {
    On,
    Off,
}
impl Spelled for Switch {}

/// A unit of systemd.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Activity {
    Active,
    Inactive,
}
impl Spelled for Activity {}

/// A process and its SIGSTOP.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Motion {
    Running,
    Stopped,
}
impl Spelled for Motion {}

/// A control group.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Presence {
    Present,
    Absent,
}
impl Spelled for Presence {}

/// A file that is kept open.
#[derive(Debug, Serialize, Deserialize)]
enum Hold {
    #[serde(rename = "held")]
    Held,
    #[serde(rename = "not held")]
    NotHeld,
}
impl Spelled for Hold {}

/// A swap area.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Swap {
    /// With this priority.
    On(i32),
    Off,
}

impl Spelled for Swap {
    fn spell(&self) -> String {
        match self {
            Self::On(priority) => format!("on {priority}"),
            Self::Off => "off".to_owned(),
        }
    }

    fn read(text: &str) -> Option<Self> {
        match text.strip_prefix("on ") {
            Some(priority) => Some(Self::On(priority.parse().ok()?)),
            None => (text == "off").then_some(Self::Off),
        }
    }
}

impl Spelled for Task {
    fn spell(&self) -> String {
        self.target()
    }

    fn read(text: &str) -> Option<Self> {
        Self::of(text)
    }
}

/// A word among those of a file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Flag {
    file: String,
    flag: String,
}

impl Spelled for Flag {
    fn spell(&self) -> String {
        format!("{}#{}", self.file, self.flag)
    }

    fn read(text: &str) -> Option<Self> {
        let (file, flag) = text.rsplit_once('#')?;
        Some(Self { file: file.to_owned(), flag: flag.to_owned() })
    }
}

/// What a control group hands to those below it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Controller {
    group: String,
    controller: String,
}

impl Spelled for Controller {
    fn spell(&self) -> String {
        format!("{}#{}", self.group, self.controller)
    }

    fn read(text: &str) -> Option<Self> {
        let (group, controller) = text.rsplit_once('#')?;
        Some(Self { group: group.to_owned(), controller: controller.to_owned() })
    }
}

/// A file that is kept open with a value written to it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Open {
    file: String,
    value: String,
}

impl Spelled for Open {
    fn spell(&self) -> String {
        format!("{}={}", self.file, self.value)
    }

    fn read(text: &str) -> Option<Self> {
        let (file, value) = text.split_once('=')?;
        Some(Self { file: file.to_owned(), value: value.to_owned() })
    }
}

/// One row a kind: its name and version in the journal, the types of what is set and of its values.
macro_rules! kinds {
    ($($kind:ident $name:literal $version:literal: $target:ty => $value:ty,)*) => {
        const ROWS: &[Row] = &[$(Row {
            kind: StepKind::$kind,
            form: Form { kind: $name, version: $version },
            write: write::<$target, $value>,
        }),*];

        /// How each kind of setting is read.
        pub const OWNERS: &[Owner] = &[$(Owner {
            form: Form { kind: $name, version: $version },
            read: |fields| read::<$target, $value>(StepKind::$kind, fields),
            earlier: |entry| {
                let same = entry.kind == Some(earlier::Kind::$kind);
                same.then(|| from_earlier::<$target, $value>(StepKind::$kind, entry))
            },
        }),*];
    };
}

kinds! {
    File "file" 1: String => String,
    Flag "flag" 1: Flag => Switch,
    Task "task" 1: Task => Cpus,
    Service "service" 1: String => Activity,
    Process "stopped-process" 1: Task => Motion,
    Swap "swap" 1: String => Swap,
    Group "group" 1: String => Presence,
    Member "member" 1: Task => String,
    Controller "controller" 1: Controller => Switch,
    Held "held" 1: Open => Hold,
    Kept "kept" 1: String => String,
}

fn row(kind: StepKind) -> Option<&'static Row> {
    ROWS.iter().find(|row| row.kind == kind)
}

fn record<T: Spelled, V: Spelled>(setting: &Setting) -> Option<Record<T, V>> {
    let value = |text: &Option<String>| text.as_deref().map(|text| V::read(text).ok_or(())).transpose();
    Some(Record {
        mechanism: setting.mechanism.clone(),
        target: T::read(&setting.target)?,
        old: value(&setting.old).ok()?,
        new: V::read(&setting.new)?,
        read_back: value(&setting.read_back).ok()?,
    })
}

fn write<T: Spelled, V: Spelled>(setting: &Setting) -> Result<Json, serde_json::Error> {
    let odd = || ser::Error::custom(format!("{} is not spelled as its kind is: {setting:?}", setting.target));
    serde_json::to_value(record::<T, V>(setting).ok_or_else(odd)?)
}

fn read<T: Spelled, V: Spelled>(kind: StepKind, fields: Json) -> Result<Arc<dyn Change>, serde_json::Error> {
    Ok(of_record(kind, &serde_json::from_value::<Record<T, V>>(fields)?))
}

/// Target and values as their kinds spell them.
fn of_record<T: Spelled, V: Spelled>(kind: StepKind, record: &Record<T, V>) -> Arc<dyn Change> {
    Arc::new(Setting {
        mechanism: record.mechanism.clone(),
        kind,
        target: record.target.spell(),
        old: record.old.as_ref().map(V::spell),
        new: record.new.spell(),
        read_back: record.read_back.as_ref().map(V::spell),
    })
}

fn from_earlier<T: Spelled, V: Spelled>(
    kind: StepKind,
    entry: &earlier_entry::Entry,
) -> Result<Arc<dyn Change>, serde_json::Error> {
    let setting = Setting {
        mechanism: entry.id.clone(),
        kind,
        target: entry.target.clone(),
        old: entry.old.clone(),
        new: entry.new.clone().ok_or_else(|| earlier::wrong("it has no value after"))?,
        read_back: entry.read_back.clone(),
    };
    let wrong = || earlier::wrong("its values are not spelled as those of its kind");
    let record = record::<T, V>(&setting).ok_or_else(wrong)?;
    Ok(of_record(kind, &record))
}
