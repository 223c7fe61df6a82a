//! A load that is run once: a call of ours or of the program that it stands for, how its operations
//! are counted, and what reaches the other core meanwhile.

use crate::common::Failed;
use crate::victim::{Effect, Victim};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a load gets to begin before the window opens.
pub(crate) const BEGIN: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(10);
/// The longest that any load may take.
const LONGEST: Duration = Duration::from_secs(120);

/// How operations are counted.
#[derive(Debug, Clone)]
pub(crate) enum Count {
    /// By the record of the first stressor.
    Record,
    /// hackbench prints how long it took for so many messages.
    Messages(f64),
    /// Requests that the disk has completed.
    Requests(PathBuf),
    /// Several stressors: operations of different kinds.
    Nothing,
}

/// A program with its arguments.
#[derive(Debug, Clone)]
pub(crate) struct Load {
    pub(crate) name: String,
    pub(crate) words: Vec<String>,
    pub(crate) count: Count,
    /// The part of it that is looked at; all of it for a program whose parts differ.
    pub(crate) window: Option<Duration>,
}

/// What a load did.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ran {
    /// Operations per second; none where they are not counted.
    pub(crate) ops_per_s: Option<f64>,
    pub(crate) effect: Effect,
}

/// One run. The inner error: why this machine cannot run it.
pub(crate) fn run(load: &Load, victim: &Victim) -> Result<Result<Ran, String>, Failed> {
    let mut out = tempfile::tempfile()?;
    let mut command = Command::new(&load.words[0]);
    command.args(&load.words[1..]).stdin(Stdio::null()).stdout(out.try_clone()?).stderr(Stdio::null());
    sys::spawn::die_with_parent(&mut command);
    let mut child = match command.spawn() {
        Ok(child) => Running(child),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Ok(Err(format!("{} is not installed", load.words[0])));
        }
        Err(error) => return Err(Failed(format!("cannot run {}: {error}", load.words[0]))),
    };
    if load.window.is_some() {
        child.until(Instant::now() + BEGIN)?;
    }
    let (begun, before, requests) = (Instant::now(), victim.counts()?, requests_so_far(&load.count)?);
    child.until(begun + load.window.unwrap_or(LONGEST))?;
    let (seconds, after) = (begun.elapsed().as_secs_f64(), victim.counts()?);
    let requests = requests_so_far(&load.count)?.zip(requests).map(|(after, before)| after - before);
    child.until(Instant::now() + LONGEST)?;
    let text = {
        use std::io::{Read, Seek};
        let mut text = String::new();
        out.rewind()?;
        out.read_to_string(&mut text)?;
        text
    };
    let ops_per_s = match &load.count {
        Count::Record => match record(&text) {
            Ok(rate) => Some(rate),
            Err(why) => return Ok(Err(why)),
        },
        Count::Messages(messages) => match seconds_of_hackbench(&text) {
            Some(seconds) => Some(messages / seconds),
            None => return Ok(Err("hackbench printed no time".to_owned())),
        },
        Count::Requests(_) => requests.map(|requests| requests as f64 / seconds),
        Count::Nothing => None,
    };
    Ok(Ok(Ran { ops_per_s, effect: before.until(&after) }))
}

/// Nothing, for as long: the background.
pub(crate) fn idle(window: Duration, victim: &Victim) -> Result<Effect, Failed> {
    let before = victim.counts()?;
    std::thread::sleep(window);
    Ok(before.until(&victim.counts()?))
}

/// A child that is killed with this value.
struct Running(Child);

impl Running {
    /// Waits until it has ended, or until then.
    fn until(&mut self, then: Instant) -> Result<(), Failed> {
        while Instant::now() < then {
            if self.0.try_wait()?.is_some() {
                return Ok(());
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Operations per second of the first stressor, or why it has none.
fn record(text: &str) -> Result<f64, String> {
    let answer: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let record = &answer["stressors"][0];
    let rate = record["ops_per_s"].as_f64().filter(|_| record["state"] == "ok" || record["state"] == "weak");
    rate.ok_or_else(|| record["reason"].as_str().unwrap_or("it gave no rate").to_owned())
}

/// `Time: 1.234`.
pub(crate) fn seconds_of_hackbench(text: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix("Time:")?.trim().parse().ok())
}

/// Where the kernel counts the requests to the disk of this directory; none where it is on none
/// (`Documentation/block/stat.rst`).
pub(crate) fn disk_of(dir: &Path) -> Option<PathBuf> {
    let device = fs::metadata(dir).ok()?.dev();
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let path = PathBuf::from(format!("/sys/dev/block/{major}:{minor}/stat"));
    path.exists().then_some(path)
}

fn requests_so_far(count: &Count) -> Result<Option<u64>, Failed> {
    let Count::Requests(path) = count else { return Ok(None) };
    let text = fs::read_to_string(path)?;
    let field = |at: usize| text.split_whitespace().nth(at)?.parse::<u64>().ok();
    let (reads, writes) = (field(0), field(4));
    reads
        .zip(writes)
        .map(|(reads, writes)| Some(reads + writes))
        .ok_or_else(|| Failed(format!("{}: expected counts of requests", path.display())))
}
