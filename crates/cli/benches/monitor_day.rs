//! A day of a monitor in a guest of one CPU whose clock runs ahead of ours: what it takes, what it
//! keeps, and what it says of both.
//! `cargo bench -p stillcore --bench monitor_day [-- --program FILE --seconds N --guest KERNEL]`.

mod common;

use common::growth::growth;
use common::{Failed, option, run};
use model::monitor::{Breach, Status};
use model::monitor_history::Interval;
use result::{Limit, Of, Row, Sink};
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};
use std::process::Command;

const SCRIPTS: [&str; 2] = ["monitor_day.sh", "notes.sh"];
/// So fast that the guest is idle for most of the time: a CPU that never is has a tick, and events
/// that come of it.
const ACCEL: &str = "icount:16";
/// What it may have at most, MiB.
const MEMORY_MIB: f64 = 16.0;
/// How many tasks take the CPU.
const PLANTED: u64 = 24;
/// The thread of such a task.
const HOG: &str = "busybox-hog";

fn main() {
    let program = option("--program", PathBuf::from(env!("CARGO_BIN_EXE_stillcore")));
    let seconds: u64 = option("--seconds", 86_400);
    let guest = option("--guest", "6.1".to_owned());
    run("monitor_day", |rows| {
        let place = tempfile::tempdir().map_err(Failed::because)?;
        let done = watch(&program, seconds, &guest, place.path()).and_then(|()| {
            rows.note(format!(
                "{seconds} s in a guest of {guest} with one CPU whose clock runs ahead, which also does everything \
                 else: a task under SCHED_FIFO that wakes once a second, and {PLANTED} times a task that takes the \
                 CPU for some 1.5 s; growth: Theil and Sen's slope and its 95 % interval, the first tenth left out"
            ))?;
            Day::read(&place.path().join("root"))?.rows(rows)
        });
        if done.is_err() {
            eprintln!("kept: {}", place.keep().display());
        }
        done
    });
}

fn watch(program: &Path, seconds: u64, kernel: &str, place: &Path) -> Result<(), Failed> {
    let mut command = Command::new(program);
    command.args(["lab", "run", "--kernel", kernel, "--accel", ACCEL, "--smp", "1"]);
    command.args(["--append", "isolcpus= nohz_full=", "--packages", "busybox-static,util-linux"]);
    command.args(["--timeout", "6h", "--out"]).arg(place);
    for script in SCRIPTS {
        let here = concat!(env!("CARGO_MANIFEST_DIR"), "/benches");
        command.arg("--add").arg(format!("{here}/{script}:/root/{script}"));
    }
    command.args(["--", "/bin/busybox", "sh", "/root/monitor_day.sh", "/usr/bin/stillcore", "/root"]);
    let numbers = [seconds, (seconds / 400).max(2), (seconds / PLANTED).max(1)];
    command.args(numbers.map(|number| number.to_string()));
    let output = command.output().map_err(Failed::because)?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(Failed(said.lines().last().unwrap_or("no reason given").to_owned()));
    }
    Ok(())
}

/// What the script has left.
struct Day {
    notes: String,
    planted: u64,
    /// `/proc/PID/stat` of the monitor, at the time of its status.
    stat: String,
    status: Status,
    breaches: Vec<Breach>,
    history: Vec<Interval>,
    state_kib: f64,
    left: String,
    code: String,
}

impl Day {
    fn read(root: &Path) -> Result<Self, Failed> {
        let text = |name: &str| {
            std::fs::read_to_string(root.join(name)).map_err(|error| Failed(format!("{name}: {error}")))
        };
        let number = |name: &str| text(name)?.trim().parse().map_err(Failed::because);
        let [status] = lines(&text("status")?)?.try_into().map_err(|_| Failed::because("no status"))?;
        Ok(Self {
            notes: text("notes")?,
            planted: number("planted")? as u64,
            stat: text("stat")?,
            status,
            breaches: lines(&text("breaches")?)?,
            history: lines(&text("history")?)?,
            state_kib: number("kib")?,
            left: text("left")?,
            code: text("code")?,
        })
    }

    fn rows(&self, rows: &mut Sink) -> Result<(), Failed> {
        growth(&self.notes, "monitor", rows)?;
        self.cost(rows)?;
        self.account(rows)?;
        // The listing names both directories; in the first are the second and the monitor's own.
        let known =
            |line: &&str| line.is_empty() || line.ends_with(':') || ["journal", "monitor"].contains(line);
        let left: Vec<&str> = self.left.lines().filter(|line| !known(line)).collect();
        rows.push(none("left behind", left.len() as f64).why(left.join(", ")))?;
        rows.push(none("ends that were not asked for", f64::from(self.code.trim() != "0")))?;
        Ok(())
    }

    fn cost(&self, rows: &mut Sink) -> Result<(), Failed> {
        let watched_s = self.status.watched_ns as f64 / 1e9;
        let resident = self.notes.lines().filter(|line| line.ends_with(" monitor"));
        let resident = resident.filter_map(|line| line.split(' ').nth(2)?.parse::<f64>().ok());
        let (count, most) = resident.fold((0, 0.0_f64), |(count, most), kib| (count + 1, most.max(kib)));
        let row = Row::new("memory of the monitor, the most", most / 1024.0, "MiB").n(count);
        rows.push(row.budget(Of::Value, Limit::AtMost(MEMORY_MIB)))?;
        let own = cpu_s(&self.stat).ok_or_else(|| Failed(format!("stat: {}", self.stat)))?;
        rows.push(Row::new(
            "CPU time of the monitor, of the guest's clock",
            100.0 * own / watched_s,
            "% of its CPU",
        ))?;
        let said = self.status.cost.process_ns as f64 / 1e9;
        for (name, limit) in
            [("what it says of its CPU time", Limit::AtLeast(0.8)), ("the same, at most", Limit::AtMost(1.2))]
        {
            rows.push(Row::new(name, said / own, "of the kernel's account").budget(Of::Value, limit))?;
        }
        let quota_kib = self.status.quota_bytes as f64 / 1024.0;
        let kept = Row::new("breaches kept", self.status.kept_bytes as f64 / 1024.0, "KiB");
        rows.push(kept.budget(Of::Value, Limit::AtMost(quota_kib)))?;
        rows.push(Row::new("its whole state directory", self.state_kib, "KiB"))?;
        Ok(())
    }

    /// Every interval of the day, event, wake-up and planted task.
    fn account(&self, rows: &mut Sink) -> Result<(), Failed> {
        let sum = |of: fn(&Interval) -> u64| self.history.iter().map(of).sum::<u64>();
        let (watched, stored) = (self.status.watched_ns as f64 / 1e9, sum(|one| one.watched_ns) as f64 / 1e9);
        let intervals = self.history.len() as u64;
        rows.push(Row::new("time watched", watched, "s"))?;
        // The last line is of the end, behind the status.
        let missing = Row::new("of that in no line of the history", (watched - stored).max(0.0), "s");
        rows.push(missing.n(intervals).budget(Of::Value, Limit::AtMost(1.0)))?;
        let events = self.status.cost.events;
        rows.push(Row::new("events recorded", events as f64 / watched, "per s").n(events))?;
        rows.push(none("events lost", self.status.lost_events as f64).n(events))?;
        let given_up = self.status.given_up as f64;
        rows.push(Row::new("kept breaches that gave way to newer ones", given_up, ""))?;
        rows.push(Row::new("tasks planted", self.planted as f64, ""))?;
        let by_hog = |breach: &&Breach| {
            let exact = breach.explained.as_ref().filter(|one| one.confidence == "exact");
            exact.is_some_and(|one| one.cause.contains(HOG))
        };
        let found = self.breaches.iter().filter(by_hog).count() as u64;
        let all = self.breaches.len() as u64;
        let row = Row::new("breaches that name one of them as their exact cause", found as f64, "").n(all);
        rows.push(row.budget(Of::Value, Limit::AtLeast(self.planted as f64)))?;
        Ok(())
    }
}

fn lines<T: DeserializeOwned>(text: &str) -> Result<Vec<T>, Failed> {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines.map(|line| serde_json::from_str(line).map_err(Failed::because)).collect()
}

/// User and system time of `/proc/PID/stat`, s (proc(5): fields 14 and 15, in hundredths).
fn cpu_s(stat: &str) -> Option<f64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<f64>().ok();
    Some((next()? + next()?) / 100.0)
}

fn none(what: &str, count: f64) -> Row {
    Row::new(what, count, "").budget(Of::Value, Limit::AtMost(0.0))
}
