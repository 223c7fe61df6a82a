//! The control group of each thread, as `/proc` shows it before and after recording.
//!
//! Threads come and go: what is gone is left out, and so is a number that was seen in two groups,
//! of a thread that was moved or of two threads one after the other.

mod containers;

use containers::Runtimes;
use model::foreign::in_a_line;
use model::groups::TaskGroup;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Of version 1, where every controller has groups of its own, the first of these that has the
/// thread in one; systemd's own comes first, since it names services and sessions.
const HIERARCHIES: [&str; 4] = ["name=systemd", "cpu", "cpuset", "pids"];
/// The most threads that are looked at: a look must end.
const MOST: usize = 65_536;

/// The top of a hierarchy, where kernel threads are: no group.
const TOP: &str = "/";

/// Name and group of one thread that is there now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thread {
    /// Its name.
    pub comm: String,
    /// Its container, service or path, in words; none at the top, as kernel threads are.
    pub group: Option<String>,
}

impl Thread {
    /// The one with this number; none where it has ended.
    pub fn look(tid: i32) -> Option<Self> {
        Self::look_below(Path::new("/"), tid)
    }

    fn look_below(root: &Path, tid: i32) -> Option<Self> {
        let thread = root.join(format!("proc/{tid}"));
        let text = fs::read_to_string(thread.join("cgroup")).ok()?;
        let comm = fs::read(thread.join("comm")).ok()?;
        let comm = String::from_utf8_lossy(&comm).trim_end_matches('\n').to_owned();
        let path = path_in(&text);
        let container = Runtimes::new(root).container(path);
        let group =
            (path != TOP).then(|| TaskGroup { path: in_a_line(path), container, tids: vec![tid] }.words());
        Some(Self { comm, group })
    }
}

/// The groups of the threads seen so far.
#[derive(Debug, Default)]
pub(super) struct Groups {
    /// By number of the thread; `None` where it was in two.
    of: BTreeMap<i32, Option<String>>,
}

impl Groups {
    /// Looks at all threads there are.
    pub(super) fn look(&mut self) {
        self.look_below(Path::new("/proc"));
    }

    /// The same, and forgets who was seen before: of a recording that goes on for weeks, in which
    /// numbers come again.
    pub(super) fn look_anew(&mut self) {
        self.look_anew_below(Path::new("/proc"));
    }

    fn look_anew_below(&mut self, proc: &Path) {
        self.of.clear();
        self.look_below(proc);
    }

    fn look_below(&mut self, proc: &Path) {
        for (_, process) in numbered(proc) {
            for (tid, thread) in numbered(&process.join("task")) {
                let Ok(text) = fs::read_to_string(thread.join("cgroup")) else { continue };
                let path = path_in(&text);
                if self.of.len() >= MOST && !self.of.contains_key(&tid) {
                    return;
                }
                let known = self.of.entry(tid).or_insert_with(|| Some(path.to_owned()));
                if known.as_deref() != Some(path) {
                    *known = None;
                }
            }
        }
    }

    /// The groups with their threads, by path.
    pub(super) fn by_path(&self) -> Vec<TaskGroup> {
        let mut groups: BTreeMap<&str, Vec<i32>> = BTreeMap::new();
        for (tid, path) in &self.of {
            if let Some(path) = path.as_deref().filter(|path| *path != TOP) {
                groups.entry(path).or_default().push(*tid);
            }
        }
        let runtimes = Runtimes::new(Path::new("/"));
        let group = |(path, tids): (&str, Vec<i32>)| TaskGroup {
            // A user may name a group of his own as he likes.
            path: in_a_line(path),
            container: runtimes.container(path),
            tids,
        };
        groups.into_iter().map(group).collect()
    }
}

/// The entries of a directory that are numbers; none where it is gone.
fn numbered(dir: &Path) -> Vec<(i32, PathBuf)> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path()))).collect()
}

/// The group in a thread's `cgroup` file: of version 2, else of version 1, else [`TOP`].
fn path_in(text: &str) -> &str {
    let lines = text.lines().filter_map(|line| {
        let (_, rest) = line.split_once(':')?;
        rest.split_once(':').filter(|(_, path)| *path != TOP)
    });
    let all: Vec<(&str, &str)> = lines.collect();
    let of = |wanted: &str| {
        let has = |controllers: &str| match wanted {
            "" => controllers.is_empty(),
            wanted => controllers.split(',').any(|one| one == wanted),
        };
        all.iter().find(|(controllers, _)| has(controllers)).map(|(_, path)| *path)
    };
    of("").or_else(|| HIERARCHIES.into_iter().find_map(of)).unwrap_or(TOP)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_is_that_of_version_2_else_that_which_names_services() {
        assert_eq!(path_in("0::/system.slice/cron.service\n"), "/system.slice/cron.service");
        assert_eq!(path_in("0::/\n"), TOP);
        let hybrid = "4:cpu,cpuacct:/batch\n3:cpuset:/isolated\n1:name=systemd:/user.slice/x.scope\n0::/\n";
        assert_eq!(path_in(hybrid), "/user.slice/x.scope");
        assert_eq!(path_in("4:cpu,cpuacct:/batch\n3:cpuset:/isolated\n"), "/batch");
        assert_eq!(path_in("3:cpuset:/a:b\n"), "/a:b", "a path may hold colons");
        assert_eq!(path_in("nothing of the kind"), TOP);
    }

    #[test]
    fn one_thread_is_looked_at() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("proc/7");
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("cgroup"), "0::/system.slice/cron.service\n").unwrap();
        assert_eq!(Thread::look_below(root.path(), 7), None, "it has no name: it has ended");
        fs::write(dir.join("comm"), "a b\n").unwrap();
        let (comm, group) = ("a b".to_owned(), Some("cron.service".to_owned()));
        assert_eq!(Thread::look_below(root.path(), 7), Some(Thread { comm: comm.clone(), group }));
        fs::write(dir.join("cgroup"), "0::/\n").unwrap();
        assert_eq!(Thread::look_below(root.path(), 7), Some(Thread { comm, group: None }));
    }

    #[test]
    fn a_thread_that_was_moved_has_no_group() {
        let proc = tempfile::tempdir().unwrap();
        let put = |tid: i32, path: &str| {
            let dir = proc.path().join(format!("7/task/{tid}"));
            fs::create_dir_all(&dir).unwrap();
            fs::write(dir.join("cgroup"), format!("0::{path}\n")).unwrap();
        };
        put(7, "/a");
        put(8, "/a");
        put(6, "/a");
        put(5, "/\u{1b}[2Jc");
        let mut groups = Groups::default();
        groups.look_below(proc.path());
        put(8, "/b");
        // Its number is a kernel thread's now, or it was moved to the top.
        put(6, "/");
        put(9, "/b");
        groups.look_below(proc.path());
        let found: Vec<_> = groups.by_path().into_iter().map(|group| (group.path, group.tids)).collect();
        let expected = [("/?[2Jc", vec![5]), ("/a", vec![7]), ("/b", vec![9])];
        assert_eq!(found, expected.map(|(path, tids)| (path.to_owned(), tids)));
    }

    /// A thread may get the number of one that has ended, and end before anybody looks.
    #[test]
    fn looking_anew_forgets_who_has_ended() {
        let proc = tempfile::tempdir().unwrap();
        let put = |tid: i32| {
            let dir = proc.path().join(format!("{tid}/task/{tid}"));
            fs::create_dir_all(&dir).unwrap();
            fs::write(dir.join("cgroup"), "0::/cron.service\n").unwrap();
        };
        put(7);
        put(8);
        let mut groups = Groups::default();
        groups.look_below(proc.path());
        fs::remove_dir_all(proc.path().join("7")).unwrap();
        groups.look_anew_below(proc.path());
        assert_eq!(groups.by_path().into_iter().flat_map(|group| group.tids).collect::<Vec<_>>(), [8]);
    }
}
