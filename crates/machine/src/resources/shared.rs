//! What threads bound to this CPU alone share with threads elsewhere: where they wait for each
//! other, and where one makes the other's CPU flush or fetch, whatever the kernel keeps away. The
//! model of the RTSS 2024 paper rests on there being nothing of it (section 4).
//!
//! Files: proc(5): `/proc/PID/maps` (mappings by device and inode), `/proc/PID/fd` (pipes by
//! inode). The other end of a socket, and which futexes are used, no file shows. Read on the
//! machine itself: a capture holds neither.

use super::scene::{Scene, some_of, unknown};
use crate::UserThread;
use model::resource::{Kind, Resource};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

const HIDDEN: &str = "not all processes are to be seen from here";

/// Rows for each process with threads bound to this CPU, or one that says why there are none.
pub(super) fn rows(scene: &Scene) -> Vec<Resource> {
    let bound = |thread: &&UserThread| thread.allowed.len() == 1 && thread.allowed.contains(scene.cpu);
    let own: BTreeSet<u32> = scene.threads().iter().filter(bound).map(|thread| thread.pid).collect();
    if own.is_empty() && !scene.sees_all() {
        return vec![unknown(Kind::Shared, "bound threads", HIDDEN)];
    }
    if own.is_empty() {
        return vec![Resource {
            may_touch: Some(false),
            in_force: Some(false),
            reason: Some("no thread of user space is bound to this CPU alone".to_owned()),
            movable: Some(true),
            ..Resource::new(Kind::Shared, "no bound thread")
        }];
    }
    let mut rows: Vec<_> = own.iter().filter_map(|pid| memory(scene, *pid)).collect();
    if !scene.root.is_live() {
        let why = "a capture does not hold what processes map and have open";
        rows.push(unknown(Kind::Shared, "mappings, pipes and sockets", why));
        return rows;
    }
    let all: Vec<_> =
        scene.processes().user.iter().map(|process| (process.pid, Held::read(scene, process.pid))).collect();
    rows.extend(compare(scene, &own, &all));
    rows
}

/// Threads of the same process elsewhere.
fn memory(scene: &Scene, pid: u32) -> Option<Resource> {
    let elsewhere =
        |thread: &&UserThread| thread.pid == pid && thread.allowed.iter().any(|cpu| cpu != scene.cpu);
    let count = scene.threads().iter().filter(elsewhere).count();
    (count > 0).then(|| {
        shared(
            format!("memory of {}", called(scene, pid)),
            format!("{count} of its threads may run elsewhere"),
            "each change of its memory map may interrupt this CPU, and its locks are theirs, too",
        )
    })
}

fn shared(name: String, effective: String, reason: &str) -> Resource {
    Resource {
        effective: Some(effective),
        may_touch: Some(true),
        in_force: Some(true),
        movable: Some(true),
        reason: Some(reason.to_owned()),
        ..Resource::new(Kind::Shared, name)
    }
}

fn called(scene: &Scene, pid: u32) -> String {
    let name = scene.processes().user.iter().find(|process| process.pid == pid).map_or("?", |one| &one.name);
    format!("{name} ({pid})")
}

/// What a process has that others may have, too.
#[derive(Debug, Default, PartialEq, Eq)]
struct Held {
    /// Shared mappings: device and inode → path, and whether it may write there.
    mapped: BTreeMap<(String, String), (String, bool)>,
    /// Pipes, by inode.
    pipes: BTreeSet<String>,
    sockets: usize,
    /// Whether its files could be read.
    known: bool,
}

impl Held {
    fn read(scene: &Scene, pid: u32) -> Self {
        let mut held = Self::default();
        let Ok(Some(maps)) = scene.root.text(&format!("proc/{pid}/maps")) else { return held };
        held.map(&maps);
        if !scene.root.is_live() {
            // A captured tree holds no descriptors of processes.
            return held;
        }
        let at = scene.root.at(&format!("proc/{pid}/fd"));
        let Ok(entries) = fs::read_dir(at) else { return held };
        held.known = true;
        for target in entries.flatten().filter_map(|entry| fs::read_link(entry.path()).ok()) {
            held.open(&target.to_string_lossy());
        }
        held
    }

    /// `FROM-TO PERMISSIONS OFFSET DEVICE INODE PATH` a line; the fourth permission is `s` where it
    /// is shared.
    fn map(&mut self, maps: &str) {
        for line in maps.lines() {
            let words: Vec<_> = line.split_whitespace().collect();
            if let [_, permissions, _, device, inode, path @ ..] = words.as_slice()
                && permissions.as_bytes().get(3) == Some(&b's')
                && *inode != "0"
            {
                let key = ((*device).to_owned(), (*inode).to_owned());
                let entry = self.mapped.entry(key).or_insert_with(|| (path.join(" "), false));
                entry.1 |= permissions.as_bytes().get(1) == Some(&b'w');
            }
        }
    }

    fn open(&mut self, target: &str) {
        if let Some(inode) = target.strip_prefix("pipe:") {
            self.pipes.insert(inode.to_owned());
        }
        self.sockets += usize::from(target.starts_with("socket:"));
    }
}

fn compare(scene: &Scene, own: &BTreeSet<u32>, all: &[(u32, Held)]) -> Vec<Resource> {
    let others = || all.iter().filter(|(pid, _)| !own.contains(pid));
    let names =
        |found: Vec<u32>| some_of(&found.into_iter().map(|pid| called(scene, pid)).collect::<Vec<_>>());
    let mut rows = Vec::new();
    for (pid, held) in all.iter().filter(|(pid, _)| own.contains(pid)) {
        let whose = called(scene, *pid);
        if !held.known {
            let why = "what it maps and has open may be read by root alone";
            rows.push(unknown(Kind::Shared, format!("mappings of {whose}"), why));
        }
        for (key, (path, writes)) in &held.mapped {
            let with: Vec<u32> = others()
                .filter(|(_, other)| other.mapped.get(key).is_some_and(|(_, theirs)| *writes || *theirs))
                .map(|(pid, _)| *pid)
                .collect();
            if !with.is_empty() {
                let reason = "memory that another CPU writes has to be fetched again, and futexes in it are theirs, too";
                rows.push(shared(format!("{path} of {whose}"), format!("mapped by {}", names(with)), reason));
            }
        }
        for pipe in &held.pipes {
            let with: Vec<u32> =
                others().filter(|(_, other)| other.pipes.contains(pipe)).map(|(pid, _)| *pid).collect();
            if !with.is_empty() {
                let reason = "whoever reads or writes it wakes the other, and both take its lock";
                rows.push(shared(
                    format!("pipe {pipe} of {whose}"),
                    format!("open in {}", names(with)),
                    reason,
                ));
            }
        }
        if held.sockets > 0 {
            let name = format!("{} sockets of {whose}", held.sockets);
            rows.push(unknown(Kind::Shared, name, "no file shows who is at the other end"));
        }
    }
    let hidden = others().filter(|(_, held)| !held.known).count();
    if !scene.sees_all() {
        rows.push(unknown(Kind::Shared, "processes of others", HIDDEN));
    }
    if hidden > 0 {
        let why = format!("what {hidden} other processes map and have open may not be read");
        rows.push(unknown(Kind::Shared, "other processes", why));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::super::scene::tests::KTHREADD;
    use super::*;
    use crate::tree::tree;

    fn held(maps: &str, open: &[&str]) -> Held {
        let mut held = Held { known: true, ..Held::default() };
        held.map(maps);
        open.iter().for_each(|target| held.open(target));
        held
    }

    /// A thread of process 7 on CPU 3 alone, one that may run on 0-3, and process 9.
    fn machine() -> (tempfile::TempDir, crate::Root) {
        let stat = |tid: u32, name: &str| format!("{tid} ({name}) S 1 7 7 0 -1 64 {}3 0", "0 ".repeat(29));
        tree(&[
            KTHREADD[0],
            KTHREADD[1],
            ("proc/7/stat", &stat(7, "control")),
            ("proc/7/task/7/stat", &stat(7, "control")),
            ("proc/7/task/7/status", "Cpus_allowed_list:\t3"),
            ("proc/7/task/8/stat", &stat(8, "logger")),
            ("proc/7/task/8/status", "Cpus_allowed_list:\t0-3"),
            ("proc/9/stat", &stat(9, "viewer")),
            ("proc/9/task/9/stat", &stat(9, "viewer")),
            ("proc/9/task/9/status", "Cpus_allowed_list:\t0-2"),
        ])
    }

    #[test]
    fn what_bound_threads_share_is_named_with_whom() {
        let (_dir, root) = machine();
        let scene = Scene::new(&root, 3);
        let own = held(
            "7f00-7f10 rw-s 00000000 00:19 42 /dev/shm/ring buffer\n7f20-7f30 r--s 0 08:01 5 /etc/both-read\n7f40-7f50 rw-p 0 08:01 6 /lib/private\n",
            &["pipe:[11]", "pipe:[12]", "socket:[13]", "/dev/null"],
        );
        let other = held(
            "1000-2000 r--s 0 00:19 42 /dev/shm/ring buffer\n3000-4000 r--s 0 08:01 5 /etc/both-read\n5000-6000 rw-p 0 08:01 6 /lib/private",
            &["pipe:[12]"],
        );
        let rows = compare(&scene, &BTreeSet::from([7]), &[(7, own), (9, other), (11, Held::default())]);
        let seen: Vec<_> =
            rows.iter().map(|row| (row.name.as_str(), row.effective.as_deref(), row.may_touch)).collect();
        assert_eq!(
            seen,
            [
                ("/dev/shm/ring buffer of control (7)", Some("mapped by viewer (9)"), Some(true)),
                ("pipe [12] of control (7)", Some("open in viewer (9)"), Some(true)),
                ("1 sockets of control (7)", None, None),
                ("other processes", None, None),
            ]
        );
    }

    #[test]
    fn threads_of_one_process_share_its_memory() {
        let (_dir, root) = machine();
        let rows_of = |cpu| rows(&Scene::new(&root, cpu));
        let first = &rows_of(3)[0];
        assert_eq!(first.name, "memory of control (7)");
        assert_eq!(first.effective.as_deref(), Some("1 of its threads may run elsewhere"));
        assert_eq!(rows_of(2)[0].may_touch, Some(false));
    }

    #[test]
    fn nothing_is_acquitted_where_processes_are_hidden() {
        let (_dir, root) = tree(&[("proc/9/stat", "9 (own) S 1 9 9 0 -1 64 0")]);
        let rows = rows(&Scene::new(&root, 3));
        assert_eq!((rows.len(), rows[0].may_touch), (1, None));
    }

    #[test]
    fn a_pipe_of_this_program_is_found() {
        let root = crate::Root::live();
        let (reader, _writer) = std::io::pipe().unwrap();
        let scene = Scene::new(&root, 0);
        let held = Held::read(&scene, std::process::id());
        let link =
            fs::read_link(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&reader))).unwrap();
        assert!(held.pipes.contains(link.to_string_lossy().strip_prefix("pipe:").unwrap()), "{held:?}");
    }
}
