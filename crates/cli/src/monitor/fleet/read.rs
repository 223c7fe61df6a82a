//! Histories of many machines on the disk, read one at a time.

use super::super::{DIRECTORY, history, packages};
use super::ABSENT;
use anyhow::Context;
use model::Error;
use model::foreign::in_a_line;
use model::monitor_history::Interval;
use monitor::fleet::{Common, Member};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The history of one machine on the disk.
pub(super) struct Source {
    dir: PathBuf,
    files: Vec<PathBuf>,
}

/// What a machine was in each hour; `None` where it was several things.
pub(super) type Labels = BTreeMap<String, Option<String>>;

/// One machine, in memory.
pub(super) struct Machine {
    pub(super) dir: PathBuf,
    pub(super) member: Member,
    /// Kernels, and versions of stillcore.
    pub(super) kernels: Labels,
    /// As above.
    pub(super) versions: Labels,
    /// Versions of packages by the day.
    pub(super) packages: BTreeMap<String, BTreeMap<String, String>>,
}

/// The histories under these directories, each with the files of the last days of all of them; the
/// first and the last of these days.
pub(super) fn sources(given: &[PathBuf], days: u32) -> anyhow::Result<(Vec<Source>, [String; 2])> {
    let mut all = Vec::new();
    for dir in given {
        let found = histories(dir)?;
        anyhow::ensure!(
            !found.is_empty(),
            "{}: no history of a monitor there: no files such as 2026-01-02.jsonl",
            dir.display()
        );
        all.extend(found);
    }
    let last = all.iter().flat_map(|source| &source.files).filter_map(|path| day_of(path)).max();
    let last = last.context("the histories are empty")?;
    let date: jiff::civil::Date = last.parse()?;
    let earliest = date.checked_sub(jiff::Span::new().days(i64::from(days) - 1))?.to_string();
    let mut first = last.clone();
    for source in &mut all {
        source.files.retain(|path| day_of(path).is_some_and(|day| day >= earliest));
        first = source
            .files
            .iter()
            .filter_map(|path| day_of(path))
            .min()
            .map_or(first.clone(), |day| day.min(first));
    }
    all.retain(|source| !source.files.is_empty());
    Ok((all, [first, last]))
}

/// The day that a file of a history is of.
fn day_of(path: &Path) -> Option<String> {
    path.file_stem().map(|stem| stem.to_string_lossy().into_owned())
}

/// Those in a directory: its own, or those of its subdirectories.
fn histories(dir: &Path) -> anyhow::Result<Vec<Source>> {
    if let Some(source) = history_of(dir)? {
        return Ok(vec![source]);
    }
    let entries = fs::read_dir(dir).map_err(|source| Error::io("read", dir, source))?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    let mut paths: Vec<PathBuf> =
        paths.collect::<Result<_, _>>().map_err(|source| Error::io("read", dir, source))?;
    paths.sort();
    let found = paths.iter().filter(|path| path.is_dir()).map(|path| history_of(path));
    Ok(found.collect::<anyhow::Result<Vec<_>>>()?.into_iter().flatten().collect())
}

/// The history of a state directory, of a monitor's directory in one, or that directory itself.
fn history_of(dir: &Path) -> anyhow::Result<Option<Source>> {
    for place in [dir.join(DIRECTORY).join(history::HISTORY), dir.join(history::HISTORY), dir.to_owned()] {
        let files = history::files(&place)?;
        if !files.is_empty() {
            return Ok(Some(Source { dir: place, files }));
        }
    }
    Ok(None)
}

/// Reads all of them, one at a time: twice, since what one of them has counts as none of the others.
/// And whether late threads are the same question in all.
pub(super) fn read(sources: &[Source]) -> anyhow::Result<(Vec<Machine>, bool)> {
    let (mut common, mut names) = (Common::default(), BTreeMap::<String, usize>::new());
    for source in sources {
        let history = history::read_files(&source.files)?;
        common.add(&history);
        *names.entry(name_of(source, &history)).or_default() += 1;
    }
    let figures = common.figures();
    let machine = |source: &Source| -> anyhow::Result<Machine> {
        let history = history::read_files(&source.files)?;
        let name = match name_of(source, &history) {
            name if names.get(&name) == Some(&1) => name,
            name => format!("{name} ({})", source.dir.display()),
        };
        let by_hour = |of: fn(&Interval) -> &String| {
            let mut labels = Labels::new();
            for one in &history {
                let hour: String = one.at.chars().take(13).collect();
                let label = labels.entry(hour).or_insert_with(|| Some(in_a_line(of(one))));
                *label = label.take().filter(|label| *label == in_a_line(of(one)));
            }
            labels
        };
        Ok(Machine {
            dir: source.dir.clone(),
            kernels: by_hour(|one| &one.kernel),
            versions: by_hour(|one| &one.version),
            packages: packages_of(source)?,
            member: Member::new(name, &history, &figures),
        })
    };
    Ok((sources.iter().map(machine).collect::<Result<_, _>>()?, common.is_same_question()))
}

/// What the machine calls itself; of one without a line yet where its history is.
fn name_of(source: &Source, history: &[Interval]) -> String {
    let name = history.last().map(|one| one.host.clone());
    in_a_line(&name.unwrap_or_else(|| source.dir.display().to_string()))
}

/// Lists of packages by the day.
fn packages_of(source: &Source) -> anyhow::Result<BTreeMap<String, BTreeMap<String, String>>> {
    let mut found = BTreeMap::new();
    for path in &source.files {
        let Some(day) = day_of(path) else { continue };
        if let Some(list) = packages::read(&source.dir, &day)? {
            found.insert(day, list.packages);
        }
    }
    Ok(found)
}

impl Machine {
    /// The version of a package in an hour: that of the list of its day, unless the next day has
    /// another one. One that is not installed has the version [`ABSENT`].
    pub(super) fn version_of(&self, package: &str, hour: &str) -> Option<String> {
        let day = hour.get(..10)?;
        let of =
            |list: &BTreeMap<String, String>| list.get(package).cloned().unwrap_or_else(|| ABSENT.to_owned());
        let version = of(self.packages.get(day)?);
        let next = self.packages.range(day.to_owned()..).nth(1).map(|(_, list)| of(list));
        next.is_none_or(|next| next == version).then_some(version)
    }
}
