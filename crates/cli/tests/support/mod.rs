//! What several tests of the command need: the binary, a scratch place, and a look at what it may have left behind.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(dead_code, reason = "each test file uses its own part")]

pub(crate) mod guest;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A scratch place with a state directory for the journal.
pub(crate) struct Place {
    pub(crate) dir: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.path("state")
    }

    /// `stillcore assess` with the state directory and run directory in this place.
    pub(crate) fn assess(&self, arguments: &[&str]) -> Command {
        let mut command = stillcore(&["assess"]);
        command.arg("--state").arg(self.state()).arg("--out").arg(self.path("run")).args(arguments);
        command
    }

    /// What a finished stillcore has left on the machine: mounts, tracing instances, control groups, processes, journals.
    pub(crate) fn leftovers(&self) -> Vec<String> {
        let here = self.dir.path().to_string_lossy().into_owned();
        let mounts = fs::read_to_string("/proc/mounts").unwrap();
        let mut left: Vec<String> =
            mounts.lines().filter(|line| line.contains(&here)).map(|line| format!("mount {line}")).collect();
        let journals = fs::read_dir(self.state().join("journal")).into_iter().flatten();
        left.extend(journals.map(|entry| format!("journal {}", entry.unwrap().path().display())));
        left.extend(processes_mentioning(&here));
        left
    }
}

/// Tracing instances and control groups named after a process.
pub(crate) fn traces_of(pid: u32) -> Vec<PathBuf> {
    let mounts = fs::read_to_string("/proc/mounts").unwrap();
    let places = mounts.lines().filter_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        let target = PathBuf::from(words.next()?);
        match words.next()? {
            "tracefs" => Some(target.join("instances")),
            "cgroup" | "cgroup2" => Some(target),
            _ => None,
        }
    });
    let name = format!("stillcore-{pid}");
    places
        .filter_map(|place| fs::read_dir(place).ok())
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.ends_with(&name))
        .collect()
}

fn processes_mentioning(text: &str) -> Vec<String> {
    let entries = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let lines = entries.filter_map(|entry| {
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        let words = fs::read(entry.path().join("cmdline")).ok()?;
        let line = String::from_utf8_lossy(&words).replace('\0', " ");
        (pid != std::process::id() && line.contains("stillcore") && line.contains(text))
            .then(|| format!("process {pid} {line}"))
    });
    lines.collect()
}

pub(crate) fn stillcore(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stillcore"));
    command.args(arguments).stdin(std::process::Stdio::null());
    command
}

pub(crate) fn is_root() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    status.lines().any(|line| line.starts_with("Uid:") && line.split_whitespace().nth(2) == Some("0"))
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// One sentence on stderr, nothing on stdout, exit 1.
pub(crate) fn assert_refused(output: &Output, expected: &[&str]) {
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "stdout: {out}\nstderr: {err}");
    assert_eq!(out, "");
    let told: Vec<_> = err.lines().filter(|line| line.starts_with("stillcore: ")).collect();
    assert_eq!(told.len(), 1, "{err}");
    assert!(!err.contains("panicked") && !err.contains("RUST_BACKTRACE"), "{err}");
    for word in expected {
        assert!(err.contains(word), "{word:?} is not in {err}");
    }
}

pub(crate) fn read_json(path: &Path) -> serde_json::Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}
