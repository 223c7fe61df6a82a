//! Confirmed remedies: something is seen on an isolated core, stillcore proposes a setting against
//! it, the setting is applied by the command that was proposed, and the next run on the same boot
//! is checked for the same thing. `docs/remedies.md` describes them.
//! `cargo bench -p stillcore --bench remedies [-- --story NAME --seconds N]`; needs QEMU and the
//! binary for guests.
//!
//! The runner names no mechanism: it applies the command that `trace explain` printed. It ends with
//! 1 where a story's subject was not seen or nothing was proposed against it; where it did not go,
//! the budget of the row is missed. Counts in guests are exact; times mean nothing there and are
//! not printed.

mod common;

use common::{Failed, option, run};
use result::{Limit, Of, Row, Sink};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// The subject of a story.
enum Subject {
    /// A step of wake-ups that another CPU than the task's kept waiting.
    Elsewhere(&'static str),
    /// Events of a class that ran this.
    Ran(&'static str, &'static str),
}

struct Story {
    name: &'static str,
    kernel: &'static str,
    subject: Subject,
    /// Words of the proposal that is looked for.
    against: &'static str,
    /// Arguments of `assess`.
    assess: &'static str,
}

/// A timer is handed to a housekeeping CPU only where that one has an earlier one
/// (hrtimer_check_target, kernel/time/hrtimer.c): releases are farther apart than its ticks.
const STORIES: [Story; 2] = [
    Story {
        name: "timer-migration",
        kernel: "6.1",
        subject: Subject::Elsewhere("timer-late"),
        against: "until the timer expired",
        assess: "--period 10ms",
    },
    Story {
        name: "throttling",
        kernel: "6.1",
        subject: Subject::Ran("timer.hrtimer", "sched_rt_period_timer"),
        against: "sched_rt_period_timer",
        assess: "",
    },
];

fn main() {
    let program = option("--program", env!("CARGO_BIN_EXE_stillcore").to_owned());
    let (wanted, seconds) = (option("--story", "all".to_owned()), option("--seconds", 20));
    run("remedies", |rows| {
        let stories: Vec<_> = STORIES.iter().filter(|s| wanted == "all" || s.name == wanted).collect();
        if stories.is_empty() {
            return Err(Failed(format!("there is no story {wanted:?}")));
        }
        stories.into_iter().try_for_each(|story| confirm(story, &program, seconds, rows))
    });
}

/// Boots once; rows of what was seen before and after. The remedy is confirmed where both budgets
/// are met.
fn confirm(story: &Story, program: &str, seconds: u64, rows: &mut Sink) -> Result<(), Failed> {
    rows.note(format!("{}: kernel {}, {seconds} s a phase, one boot", story.name, story.kernel))?;
    let place = tempfile::tempdir().map_err(Failed::because)?;
    let out = place.path().join("lab");
    boot(story, program, seconds, &out)?;
    let root = out.join("root");
    let [before, after] = ["before", "after"].map(|name| seen(&root, name, &story.subject));
    let (before, after) = (before?, after?);
    show(&root, "proposed.txt", "proposed", |_| true)?;
    show(&root, "applied.txt", "applied", |line| line.contains(" -> ") || line.contains("changes made"))?;
    show(&root, "undone.txt", "undone", |line| line.contains(" -> ") || line.contains("given back"))?;
    for (when, seen, limit) in
        [("before", &before, Limit::AtLeast(1.0)), ("after", &after, Limit::AtMost(0.0))]
    {
        let what = format!("{}, {when}: {}", story.name, seen.what);
        if seen.of == 0 {
            return Err(Failed(format!("{what}: nothing was looked at")));
        }
        let row = Row::new(what, seen.count as f64, "").n(seen.of).budget(Of::Value, limit);
        rows.push(row.why(format!("n in {}; {}", seen.unit, seen.rows.join(", "))))?;
        let what = format!("{}, {when}: local timer interrupts in the noise windows", story.name);
        rows.push(Row::new(what, seen.local_timer as f64, "").why("by /proc/interrupts"))?;
    }
    Ok(())
}

fn boot(story: &Story, program: &str, seconds: u64, out: &Path) -> Result<(), Failed> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/remedies.sh");
    let mut command = Command::new(program);
    command.args(["lab", "run", "--kernel", story.kernel, "--packages", "busybox-static"]);
    command.args(["--memory", "2000", "--timeout", &format!("{}s", 240 + 16 * seconds)]);
    command.arg("--add").arg(format!("{}:/root/story.sh", script.display())).arg("--out").arg(out);
    command.args(["--", "/bin/busybox", "sh", "/root/story.sh", story.against]);
    command.args(["--duration", &format!("{seconds}s")]).args(story.assess.split_whitespace());
    let output = command.output().map_err(Failed::because)?;
    let why = match output.status.code() {
        Some(0) => return Ok(()),
        Some(3) => "the isolation was refused",
        Some(5) => "nothing was proposed against it, or it was not seen",
        Some(6) => "what was proposed was refused",
        Some(7) => "undo failed",
        _ => "the guest or a measurement failed",
    };
    let said = String::from_utf8_lossy(&output.stderr);
    Err(Failed(format!("{}: {why}: {}", story.name, said.lines().last().unwrap_or_default())))
}

/// How often the subject was seen in a run.
struct Seen {
    what: String,
    count: u64,
    /// Of how many wake-ups; of a class the seconds looked at.
    of: u64,
    unit: &'static str,
    /// By window.
    rows: Vec<String>,
    /// Interrupts of the local timer on the measured CPU while it was busy, by the kernel's own
    /// count; no event is needed for it.
    local_timer: u64,
}

fn seen(root: &Path, name: &str, subject: &Subject) -> Result<Seen, Failed> {
    let text = std::fs::read_to_string(root.join(format!("{name}.json"))).map_err(Failed::because)?;
    let explained: Value = serde_json::from_str(&text).map_err(Failed::because)?;
    let text = std::fs::read_to_string(root.join(name).join("run.json")).map_err(Failed::because)?;
    let run: Value = serde_json::from_str(&text).map_err(Failed::because)?;
    // If events were lost, seeing none proves nothing.
    if run["losses"]["trace_events"] != 0 || run["complete"] != true {
        return Err(Failed(format!("{name}: events were lost, or the run is partial")));
    }
    // Nor does it where nothing was recorded at all: the probe's own sleep always is.
    let mut own = list(&explained, "attribution").flat_map(|window| list(window, "rows"));
    if !own.any(|row| row["class"] == "self") {
        return Err(Failed(format!("{name}: the trace does not even hold the probe's own events")));
    }
    let mut seen = match subject {
        Subject::Elsewhere(step) => elsewhere(&explained, step),
        Subject::Ran(class, label) => ran(&explained, &run, class, label),
    };
    let noise = list(&run, "windows").filter(|window| window["probe"] == "noise");
    let counted = noise.filter_map(|window| window["interrupts"]["LOC"]["2"].as_u64());
    seen.local_timer = counted.sum();
    Ok(seen)
}

fn list<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    value[key].as_array().into_iter().flatten()
}

fn elsewhere(explained: &Value, step: &str) -> Seen {
    let what = format!("{step} on another CPU");
    let mut seen = Seen { what, count: 0, of: 0, unit: "wake-ups", rows: Vec::new(), local_timer: 0 };
    for path in list(explained, "paths") {
        let away = list(path, "boxes").filter(|one| one["step"] == step && one["class"].is_null());
        let away = away.filter(|one| one["cpu"] != path["cpu"]);
        let count = away.filter_map(|one| one["count"].as_u64()).sum::<u64>();
        let of = path["samples"].as_u64().unwrap_or(0);
        (seen.count, seen.of) = (seen.count + count, seen.of + of);
        seen.rows.push(format!("{}: {count} of {of}", path["phase"].as_str().unwrap_or_default()));
    }
    seen
}

fn ran(explained: &Value, run: &Value, class: &str, label: &str) -> Seen {
    let windows = list(run, "windows");
    let length_ns =
        windows.map(|one| one["t1_ns"].as_u64().unwrap_or(0) - one["t0_ns"].as_u64().unwrap_or(0));
    let of = length_ns.sum::<u64>() / 1_000_000_000;
    let what = format!("{class} {label}");
    let mut seen = Seen { what, count: 0, of, unit: "s", rows: Vec::new(), local_timer: 0 };
    for window in list(explained, "attribution") {
        let rows = list(window, "rows").filter(|row| row["class"] == class && row["label"] == label);
        let count = rows.filter_map(|row| row["count"].as_u64()).sum::<u64>();
        let of = ["phase", "probe"].map(|key| window[key].as_str().unwrap_or_default());
        seen.count += count;
        seen.rows.push(format!("{} {}: {count}", of[0], of[1]));
    }
    seen
}

/// Lines of the output of the guest.
fn show(root: &Path, file: &str, what: &str, wanted: impl Fn(&str) -> bool) -> Result<(), Failed> {
    let text = std::fs::read_to_string(root.join(file)).map_err(Failed::because)?;
    text.lines().filter(|line| wanted(line)).for_each(|line| eprintln!("{what}: {line}"));
    Ok(())
}
