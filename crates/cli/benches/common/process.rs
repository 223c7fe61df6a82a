//! Runs a tool and measures its cost: CPU time and peak memory of its process.

use super::{Failed, option};
use serde_json::Value;
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// A tool that has ended.
pub(crate) struct Ran {
    /// Its standard output.
    pub(crate) text: String,
    /// CPU time of its process, ns; in ticks of 10 ms.
    pub(crate) cpu_ns: u64,
    /// Peak resident memory, KiB, as last seen while it ran.
    pub(crate) rss_kib: u64,
}

/// Runs a tool of the package rt-tests.
pub(crate) fn rt_tests(tool: &str, arguments: &str) -> Result<Ran, Failed> {
    // A file, because a pipe would not be read while the tool runs.
    let mut out = tempfile::tempfile().map_err(Failed::because)?;
    let mut command = Command::new(tool);
    command.args(arguments.split_whitespace()).stdout(out.try_clone().map_err(Failed::because)?);
    command.stdin(Stdio::null()).stderr(Stdio::piped());
    let before = children_cpu_ns();
    let mut child = command.spawn().map_err(|error| Failed(format!("{tool}: {error} (package rt-tests)")))?;
    let mut rss_kib = 0;
    let status = loop {
        rss_kib = peak_rss_kib(child.id()).unwrap_or(rss_kib);
        match child.try_wait().map_err(Failed::because)? {
            Some(status) => break status,
            None => std::thread::sleep(Duration::from_millis(50)),
        }
    };
    let cpu_ns = children_cpu_ns() - before;
    let (mut text, mut said) = (String::new(), String::new());
    out.rewind().and_then(|()| out.read_to_string(&mut text)).map_err(Failed::because)?;
    if let Some(mut stderr) = child.stderr.take() {
        let _ = stderr.read_to_string(&mut said);
    }
    if !status.success() {
        return Err(Failed(format!("{tool} {arguments}: {}", said.trim())));
    }
    Ok(Ran { text, cpu_ns, rss_kib })
}

/// The program that is measured: the one that ships, where its path is given.
pub(crate) fn program() -> PathBuf {
    option("--program", PathBuf::from(env!("CARGO_BIN_EXE_stillcore")))
}

/// Runs this program's own command and returns its JSON; the run directory is `place`/run.
pub(crate) fn stillcore(place: &Path, arguments: &str) -> Result<Value, Failed> {
    let mut command = Command::new(program());
    command.args(arguments.split_whitespace()).args(["--json", "--quiet", "--out"]).arg(place.join("run"));
    let output = command.arg("--state").arg(place.join("state")).output().map_err(Failed::because)?;
    if !output.status.success() {
        return Err(Failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
    }
    serde_json::from_slice(&output.stdout).map_err(Failed::because)
}

/// CPU time of all children that have ended, ns, in ticks of 10 ms.
pub(crate) fn children_cpu_ns() -> u64 {
    cpu_ns([13, 14])
}

/// CPU time of this process with all its threads, ns.
pub(crate) fn own_cpu_ns() -> u64 {
    sys::clock::process_cpu_ns().unsigned_abs()
}

/// Fields of `/proc/self/stat` behind the name, counted from nought, in ticks of 10 ms (proc(5)).
fn cpu_ns(fields: [usize; 2]) -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let words: Vec<_> =
        stat.rsplit_once(") ").map_or(Vec::new(), |(_, rest)| rest.split_whitespace().collect());
    let ticks = fields.map(|at| words.get(at).and_then(|word| word.parse::<u64>().ok()).unwrap_or(0));
    ticks.iter().sum::<u64>() * 10_000_000
}

fn peak_rss_kib(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?.split_whitespace().next()?.parse().ok()
}
