//! The counts of trace-cmd for a trace: the lines of `trace-cmd report`, counted by CPU and event,
//! and the losses it prints.
//!
//! A line is "task-pid [cpu] time: name: fields"; a loss "CPU:n [m EVENTS DROPPED]" or, where the
//! page had no room for a number, "CPU:n [EVENTS DROPPED]".

use crate::common::Failed;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

/// Counts of a whole trace.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) per_cpu: BTreeMap<u32, BTreeMap<String, u64>>,
    /// By CPU: events that are lost, and places where their number is not known.
    pub(crate) lost: BTreeMap<u32, (u64, u64)>,
}

/// Runs it and counts.
pub(crate) fn counts(file: &Path) -> Result<Report, Failed> {
    let mut command = Command::new("trace-cmd");
    command
        .args(["report", "-i"])
        .arg(file)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| Failed(format!("cannot run trace-cmd: {error}")))?;
    let mut report = Report::default();
    let mut line = Vec::new();
    if let Some(output) = child.stdout.take() {
        let mut output = BufReader::with_capacity(1 << 20, output);
        while output.read_until(b'\n', &mut line).map_err(Failed::because)? > 0 {
            report.line(&line);
            line.clear();
        }
    }
    let status = child.wait().map_err(Failed::because)?;
    if status.success() { Ok(report) } else { Err(Failed(format!("trace-cmd: {status}"))) }
}

impl Report {
    fn line(&mut self, line: &[u8]) {
        let line = String::from_utf8_lossy(line);
        if let Some((cpu, count)) = loss(&line) {
            let lost = self.lost.entry(cpu).or_default();
            lost.0 += count.unwrap_or(0);
            lost.1 += u64::from(count.is_none());
        } else if let Some((cpu, name)) = event(&line) {
            let names = self.per_cpu.entry(cpu).or_default();
            match names.get_mut(name) {
                Some(count) => *count += 1,
                None => drop(names.insert(name.to_owned(), 1)),
            }
        }
    }
}

fn loss(line: &str) -> Option<(u32, Option<u64>)> {
    let (cpu, rest) = line.trim_start().strip_prefix("CPU:")?.split_once(" [")?;
    let count = rest.strip_suffix(" EVENTS DROPPED]\n");
    Some((cpu.parse().ok()?, count.and_then(|count| count.parse().ok())))
}

/// Names of tasks may hold anything, so the CPU is the first bracket with digits only.
fn event(line: &str) -> Option<(u32, &str)> {
    let mut rest = line;
    loop {
        let (_, behind) = rest.split_once('[')?;
        let (cpu, after) = behind.split_once(']')?;
        if let Ok(cpu) = cpu.parse() {
            let is_name =
                |word: &&str| word.ends_with(':') && !word.starts_with(|c: char| c.is_ascii_digit());
            let name = after.split_whitespace().find(is_name)?;
            return Some((cpu, name.trim_end_matches(':')));
        }
        rest = behind;
    }
}
