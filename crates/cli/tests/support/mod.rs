//! What several tests of the command need: the binary, a scratch place, and a check for leftovers.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

pub(crate) mod graph;
pub(crate) mod pages;
pub(crate) mod shares;

use model::{Sample, samples_file};
use serde_json::Value;
use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A scratch place with a state directory for the journal.
pub(crate) struct Place {
    pub(crate) dir: tempfile::TempDir,
    migrated: u64,
    _turn: Turn,
}

impl Place {
    /// Beside other tests: windows that measure accounts and structure may overlap.
    pub(crate) fn new() -> Self {
        Self::at(Turn::shared())
    }

    /// With no other place in use: the results depend on what else runs here.
    pub(crate) fn alone() -> Self {
        Self::at(Turn::alone())
    }

    fn at(turn: Turn) -> Self {
        Self { dir: tempfile::tempdir().unwrap(), migrated: pages_migrated(), _turn: turn }
    }

    /// Whether the kernel has moved pages since this place was made. Under memory pressure it
    /// compacts, locked pages too (`vm.compact_unevictable_allowed`), and touching one meanwhile
    /// causes a minor fault.
    pub(crate) fn pages_were_moved(&self) -> bool {
        pages_migrated() > self.migrated
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

    /// Leftovers of a finished stillcore on the machine: mounts, tracing instances, control groups,
    /// processes, journals.
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

/// The right to use the machine, beside others or alone. A test that wants it alone waits until no
/// other has a place. `cargo xtask test` gives the harness a thread for each of those, so that they
/// keep no other waiting.
struct Turn {
    alone: bool,
}

/// As many share the machine at most.
const AT_ONCE: usize = 6;

/// Number of tests that share the machine; `None` while one has it alone.
static SHARING: Mutex<Option<usize>> = Mutex::new(Some(0));
static TURN_ENDED: Condvar = Condvar::new();

thread_local! {
    /// Shared places of this thread's test.
    static PLACES: Cell<usize> = const { Cell::new(0) };
}

impl Turn {
    fn shared() -> Self {
        let sharing = SHARING.lock().unwrap_or_else(PoisonError::into_inner);
        // A test that has a place waits for no other test.
        let at_once = if PLACES.get() == 0 { AT_ONCE } else { usize::MAX };
        let is_full = |it: &mut Option<usize>| it.is_none_or(|count| count >= at_once);
        let mut sharing = TURN_ENDED.wait_while(sharing, is_full).unwrap_or_else(PoisonError::into_inner);
        PLACES.set(PLACES.get() + 1);
        *sharing = sharing.map(|count| count + 1);
        Self { alone: false }
    }

    fn alone() -> Self {
        let sharing = SHARING.lock().unwrap_or_else(PoisonError::into_inner);
        let mut sharing =
            TURN_ENDED.wait_while(sharing, |it| *it != Some(0)).unwrap_or_else(PoisonError::into_inner);
        *sharing = None;
        Self { alone: true }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut sharing = SHARING.lock().unwrap_or_else(PoisonError::into_inner);
        PLACES.set(PLACES.get().saturating_sub(usize::from(!self.alone)));
        *sharing = if self.alone { Some(0) } else { sharing.map(|count| count - 1) };
        TURN_ENDED.notify_all();
    }
}

/// Pages that the kernel has moved since it was booted.
fn pages_migrated() -> u64 {
    let text = fs::read_to_string("/proc/vmstat").unwrap();
    text.lines()
        .find_map(|line| line.strip_prefix("pgmigrate_success "))
        .map_or(0, |count| count.parse().unwrap())
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

/// Whether this machine records events for this user. Nothing needs to be mounted: the command does
/// that itself.
#[allow(dead_code, reason = "not every test program records")]
pub(crate) fn records_events() -> bool {
    let can = is_root() && Path::new("/sys/kernel/tracing").exists();
    if !can {
        println!("skipped: recording takes root and tracefs");
    }
    can
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
    let sentences: Vec<_> = err.lines().filter(|line| line.starts_with("error: ")).collect();
    assert_eq!(sentences.len(), 1, "{err}");
    assert!(!err.contains("panicked") && !err.contains("RUST_BACKTRACE"), "{err}");
    for word in expected {
        assert!(err.contains(word), "{word:?} is not in {err}");
    }
}

/// Prints a row of a result; `cargo xtask lab` picks it out of what the tests print.
pub(crate) fn print_row(row: &result::Row) {
    println!("{}", result::sink::line(row).unwrap());
}

pub(crate) fn read_json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// `stillcore measure VERB --json` with the state directory and run directory in this place.
pub(crate) fn measure(place: &Place, verb: &str, arguments: &[&str]) -> Command {
    ordered(place, &["measure", verb, "--json"], arguments)
}

/// The same without `--json`.
pub(crate) fn measure_in_words(place: &Place, verb: &str, arguments: &[&str]) -> Command {
    ordered(place, &["measure", verb], arguments)
}

/// Arguments come last, so that a caller may add the value of the last.
fn ordered(place: &Place, verb: &[&str], arguments: &[&str]) -> Command {
    let mut command = stillcore(verb);
    command
        .arg("--quiet")
        .arg("--state")
        .arg(place.state())
        .arg("--out")
        .arg(place.path("run"))
        .args(arguments);
    command
}

/// The object that a command prints, which has to end with this code.
pub(crate) fn answer(command: &mut Command, code: i32) -> Value {
    answer_of(&command.output().unwrap(), code)
}

/// The object in the output of a command that has ended with this code.
pub(crate) fn answer_of(output: &Output, code: i32) -> Value {
    assert_eq!(output.status.code(), Some(code), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A run in the background whose output is wanted at its end.
pub(crate) fn start(command: &mut Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// In every record, served, missed and lost releases add up to the requested ones, and the file has
/// the recorded number of rows.
pub(crate) fn releases_balance(run: &Path, record: &Value) -> Vec<Sample> {
    let number = |name: &str| record[name].as_u64().unwrap();
    assert_eq!(number("released"), number("samples") + number("missed") + number("ring_lost"), "{record}");
    let (_, samples) = samples_file::read(&run.join(record["file"].as_str().unwrap())).unwrap();
    assert_eq!(samples.len() as u64, number("samples"));
    let missed: u64 = samples.iter().map(|sample| u64::from(sample.missed)).sum();
    assert!(missed <= number("missed"), "those behind the last sample are in no sample: {record}");
    // The first releases are the warm-up, those that passed unserved among them.
    if let Some(warm_up) = record["warm_up"].as_u64().filter(|_| number("ring_lost") == 0) {
        let mut next = 0;
        for sample in &samples {
            let release = next + u64::from(sample.missed);
            let is_warm_up = sample.flags & model::sample::flag::WARM_UP != 0;
            assert_eq!(is_warm_up, release < warm_up, "release {release} of {record}");
            next = release + 1;
        }
    }
    samples
}

/// Waits until there is a value. The duration is not tested.
pub(crate) fn eventually<T>(what: &str, mut there: impl FnMut() -> Option<T>) -> T {
    let give_up = Instant::now() + Duration::from_secs(60);
    loop {
        assert!(Instant::now() < give_up, "never: {what}");
        if let Some(found) = there() {
            return found;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Waits until the window of a run has opened: its samples file is made when the start has been
/// set, 30 ms ahead.
pub(crate) fn window_open(place: &Place) {
    eventually("samples", || {
        let mut files = fs::read_dir(place.path("run").join(model::store::SAMPLES)).ok()?;
        files.find_map(Result::ok).map(|_| ())
    });
    std::thread::sleep(Duration::from_millis(100));
}

/// The measuring process of a run.
pub(crate) fn probe_of(parent: u32) -> u32 {
    eventually("a measuring process", || {
        let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).ok()?;
        let is_probe = |pid: &u32| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains("\0probe\0")
        };
        children.split_whitespace().filter_map(|word| word.parse().ok()).find(|pid| is_probe(pid))
    })
}

/// Sends a signal by its name.
pub(crate) fn signal(pid: u32, name: &str) {
    assert!(Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status().unwrap().success());
}
