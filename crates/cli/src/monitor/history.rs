//! The history of a monitor: a line some minutes, a file a day (UTC), so many days; beside each file
//! the packages of that day.

use super::packages;
use super::store::append;
use anyhow::Context;
use journal::trust;
use machine::Root;
use model::monitor::Status;
use model::monitor_history::Interval;
use model::{Error, store};
use monitor::interval::{Host, between};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The subdirectory.
pub(super) const HISTORY: &str = "history";
/// How long a line is about.
const INTERVAL: Duration = Duration::from_secs(600);
/// The longest file that is read, bytes: ten times a day of many rows.
const MOST: u64 = 64 << 20;
/// What a file is called: `2026-01-02.jsonl`.
const ENDING: &str = ".jsonl";

/// Writes it.
pub(super) struct History {
    dir: PathBuf,
    days: u32,
    host: Host,
    before: Option<Status>,
    due: Instant,
}

impl History {
    /// In this directory of a monitor, so many days of it; none for 0. `name`: the machine's, if not
    /// its own.
    pub(super) fn open(dir: &Path, days: u32, name: Option<String>) -> anyhow::Result<Self> {
        trust::make_directory(dir, HISTORY)?;
        let dir = dir.join(HISTORY);
        let root = Root::live();
        let word = |file: &str| root.maybe(file).unwrap_or_default().trim().to_owned();
        let name = name.unwrap_or_else(|| word("proc/sys/kernel/hostname"));
        let host = Host { name, kernel: word("proc/sys/kernel/osrelease") };
        let history = Self { dir, days, host, before: None, due: Instant::now() + INTERVAL };
        history.give_up()?;
        Ok(history)
    }

    /// Whether a line is due.
    pub(super) fn is_due(&self) -> bool {
        self.days > 0 && Instant::now() >= self.due
    }

    /// Adds a line, on the disk when this returns.
    pub(super) fn add(&mut self, status: &Status) -> anyhow::Result<()> {
        if self.days == 0 {
            return Ok(());
        }
        self.due = Instant::now() + INTERVAL;
        let interval = between(self.before.as_ref(), status, &self.host);
        self.before = Some(status.clone());
        let day: String = interval.at.chars().take(10).collect();
        let path = self.dir.join(format!("{day}{ENDING}"));
        let is_new = !path.exists();
        append(&path, &serde_json::to_string(&interval)?)?;
        if !is_new {
            return Ok(());
        }
        packages::write(&self.dir, &day, &self.host.name, &interval.at)?;
        self.give_up()
    }

    /// Removes days that are too many, the oldest first.
    fn give_up(&self) -> anyhow::Result<()> {
        let all = files(&self.dir)?;
        let many = all.len().saturating_sub(self.days.max(1) as usize);
        for path in all.iter().take(many).filter(|_| self.days > 0) {
            // The list first: a day without one is a day all the same.
            let list = path.with_extension("").display().to_string() + packages::ENDING;
            for path in [Path::new(&list), path] {
                match fs::remove_file(path) {
                    Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                        return Err(Error::io("remove", path, error).into());
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }
}

/// Its files, oldest first.
pub(super) fn files(dir: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(Error::io("read", dir, source).into()),
    };
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    let all: Vec<PathBuf> =
        paths.collect::<Result<_, _>>().map_err(|source| Error::io("read", dir, source))?;
    let is_day = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.and_then(|name| name.strip_suffix(ENDING))
            .is_some_and(|day| day.parse::<jiff::civil::Date>().is_ok())
    };
    let mut days: Vec<PathBuf> = all.into_iter().filter(is_day).collect();
    days.sort();
    Ok(days)
}

/// All that a monitor's directory has, by time. A last line that was being written when the power
/// went is left out.
pub(super) fn read(dir: &Path) -> anyhow::Result<Vec<Interval>> {
    read_files(&files(&dir.join(HISTORY))?)
}

/// The same of these files alone.
pub(super) fn read_files(files: &[PathBuf]) -> anyhow::Result<Vec<Interval>> {
    let mut all = Vec::new();
    for path in files {
        let text = String::from_utf8_lossy(&store::read_whole(path, MOST)?).into_owned();
        for (number, line) in (1..).zip(text.split_inclusive('\n')) {
            match serde_json::from_str::<Interval>(line) {
                Ok(interval) => all.push(interval),
                Err(_) if !line.ends_with('\n') => {}
                Err(error) => {
                    let what = format!("{}, line {number}", path.display());
                    return Err(Error::invalid(what, error, "an interval of a history").into());
                }
            }
        }
    }
    all.sort_by(|a: &Interval, b| a.at.cmp(&b.at));
    Ok(all)
}

/// When an interval ended.
pub(super) fn ended(interval: &Interval) -> anyhow::Result<jiff::Timestamp> {
    interval.at.parse().with_context(|| format!("a history has the time {:?}", interval.at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Cpus;
    use model::monitor::{Cost, STATUS};
    use std::os::unix::fs::PermissionsExt;

    fn status(at: &str, watched_ns: u64) -> Status {
        Status {
            schema: STATUS.to_owned(),
            version: "1".to_owned(),
            pid: 7,
            began: at.to_owned(),
            at: at.to_owned(),
            watched_ns,
            cpus: Cpus::one(2),
            threads_watched: String::new(),
            limit_ns: 1,
            interference_limit_ns: None,
            threads: Vec::new(),
            interference: Vec::new(),
            offences: Vec::new(),
            offence_sums: Vec::new(),
            offences_unnamed: 0,
            callers_shown: false,
            breaches: Vec::new(),
            last: None,
            kept_bytes: 0,
            quota_bytes: 0,
            given_up: 0,
            lost_events: 0,
            unjudged: 0,
            drifted: None,
            steal_ns: Vec::new(),
            throttled: None,
            actions: None,
            cost: Cost::default(),
            limits: Vec::new(),
        }
    }

    fn place() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o700)).unwrap();
        dir
    }

    #[test]
    fn a_line_a_while_and_a_file_a_day_of_which_the_oldest_give_way() {
        let dir = place();
        let mut history = History::open(dir.path(), 2, Some("rt-7".to_owned())).unwrap();
        assert!(!history.is_due(), "not yet");
        for (at, ns) in
            [("2026-01-01T23:50:00Z", 5), ("2026-01-02T00:00:00Z", 8), ("2026-01-02T00:10:00Z", 9)]
        {
            history.add(&status(at, ns)).unwrap();
        }
        let all = read(dir.path()).unwrap();
        assert_eq!(all.iter().map(|one| one.watched_ns).collect::<Vec<_>>(), [5, 3, 1]);
        assert!(!all[0].kernel.is_empty() && all[0].host == "rt-7");
        history.add(&status("2026-01-03T00:00:00Z", 10)).unwrap();
        assert_eq!(read(dir.path()).unwrap().len(), 3, "the first day has given way");
        // With its packages; those of the others are there where the machine says what it has.
        let lists = || ["01", "02", "03"].map(|day| format!("2026-01-{day}.packages.json"));
        let are_there = lists().map(|list| dir.path().join(HISTORY).join(list).exists());
        let known = Path::new("/var/lib/dpkg/status").exists();
        assert_eq!(are_there, [false, known, known]);
        // Another monitor begins anew, and a third one wants none.
        let mut next = History::open(dir.path(), 2, None).unwrap();
        next.add(&status("2026-01-03T01:00:00Z", 4)).unwrap();
        assert_eq!(read(dir.path()).unwrap().last().unwrap().watched_ns, 4);
        let mut none = History::open(dir.path(), 0, None).unwrap();
        none.add(&status("2026-01-04T01:00:00Z", 4)).unwrap();
        assert!(!none.is_due());
        assert_eq!(read(dir.path()).unwrap().len(), 4);
    }

    #[test]
    fn a_torn_end_is_left_out_and_other_damage_is_named() {
        let dir = place();
        let mut history = History::open(dir.path(), 9, None).unwrap();
        history.add(&status("2026-01-01T23:50:00Z", 5)).unwrap();
        let path = dir.path().join(HISTORY).join("2026-01-01.jsonl");
        let whole = fs::read_to_string(&path).unwrap();
        fs::write(&path, format!("{whole}{}", &whole[..40])).unwrap();
        fs::write(path.with_file_name("notes.jsonl"), "theirs").unwrap();
        assert_eq!(read(dir.path()).unwrap().len(), 1);
        // The next line is not joined to it.
        history.add(&status("2026-01-01T23:59:00Z", 6)).unwrap();
        let all = read(dir.path()).unwrap();
        assert_eq!(all.iter().map(|one| one.watched_ns).collect::<Vec<_>>(), [5, 1]);
        fs::write(&path, format!("{}\n{whole}", &whole[..40])).unwrap();
        let said = read(dir.path()).unwrap_err().to_string();
        assert!(said.contains("2026-01-01.jsonl, line 1"), "{said}");
        assert!(read(Path::new("/nowhere")).unwrap().is_empty());
    }
}
