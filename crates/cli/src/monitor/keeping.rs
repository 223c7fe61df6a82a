//! A breach that is to be kept: the monitor writes the kernel's pages of it, and a process of its
//! own makes the run of them and finds what took the time, at the lowest priority. The page is left
//! to whoever wants to see it. That takes the memory of the kernel's whole table of symbols, which
//! the monitor then does not need, and it goes on watching meanwhile.

use super::changed::since_the_beginning;
use crate::run::facts::snapshot_to;
use crate::run::output::{self, RunOutput};
use crate::trace_verb::explain_text::who;
use anyhow::Context;
use attribution::any_trace::shape::AnyTrace;
use attribution::any_trace::{Threads, Wanted, any_trace};
use attribution::attribute::Confidence;
use attribution::attribute::path_section::SamplePath;
use attribution::attribute::paths::Keep;
use attribution::attribute::watch::shape::{ThreadSection, Times};
use attribution::passed_over::{Had, had_the_cpu};
use ftrace::TraceFile;
use model::groups::{TaskGroup, by_tid};
use model::machine::Snapshot;
use model::monitor::{Breach, BreachKind, Explained, FILE};
use model::run::Run;
use model::sample::ProbeKind;
use model::{Cpus, EventClass, Finding, store};
use record::unwritten::Unwritten;
use report::{Facts, Place, format, of_sample};
use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The hidden verb.
pub(crate) const VERB: &str = "keep-breach";
/// The kernel's pages, a file a CPU.
pub(super) const PAGES: &str = "trace-pages";
/// What a trace of them needs.
pub(super) const UNWRITTEN: &str = "trace-pages.json";
/// How long it may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// The most of its complaint that is read, bytes.
const MOST_SAID: u64 = 4096;
/// The buffer of what other CPUs did.
const SENDER: &str = "sender";

/// The process that keeps one breach.
pub(super) struct Keeping {
    child: Child,
    begun: Instant,
}

impl Keeping {
    /// Begins with the breach in this directory.
    pub(super) fn begin(dir: &Path) -> std::io::Result<Self> {
        // This program, also where another one was installed in its place meanwhile.
        let child = Command::new("/proc/self/exe")
            .args(["internal", VERB])
            .arg(dir)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        Ok(Self { child, begun: Instant::now() })
    }

    /// Whether it has ended: well, or why not.
    pub(super) fn ended(&mut self) -> Option<Result<(), String>> {
        match self.child.try_wait() {
            Ok(None) if self.begun.elapsed() < PATIENCE => None,
            Ok(None) => Some(Err(self.stop())),
            Ok(Some(status)) if status.success() => Some(Ok(())),
            Ok(Some(status)) => {
                let mut said = String::new();
                let stderr = self.child.stderr.take();
                stderr.map(|stderr| stderr.take(MOST_SAID).read_to_string(&mut said));
                let said = said.trim().trim_start_matches("error: ").to_owned();
                Some(Err(if said.is_empty() { status.to_string() } else { said }))
            }
            Err(error) => Some(Err(error.to_string())),
        }
    }

    /// Ends it; why.
    pub(super) fn stop(&mut self) -> String {
        let _ = self.child.kill();
        let _ = self.child.wait();
        "writing it took too long".to_owned()
    }
}

/// The hidden verb: makes a run of what the monitor has left in a directory.
pub(crate) fn run(words: &[OsString]) -> anyhow::Result<()> {
    let dir = words.first().map(PathBuf::from).context("a directory is needed")?;
    sys::process::yield_to_others();
    let unwritten: Unwritten = store::read_json(&dir.join(UNWRITTEN))?;
    let mut output = RunOutput::reopen(&dir)?;
    let trace = unwritten.write(&dir)?.record;
    for left in [dir.join(PAGES), dir.join(UNWRITTEN)] {
        let removed =
            if left.is_dir() { std::fs::remove_dir_all(&left) } else { std::fs::remove_file(&left) };
        removed.with_context(|| format!("cannot remove {}", left.display()))?;
    }
    if let (Some(phase), Some(from_ns)) = (output.run.phases.first_mut(), trace.from_ns) {
        phase.t0_ns = phase.t0_ns.max(from_ns);
    }
    output.run.trace = Some(trace);
    snapshot_to(&dir, store::MACHINE_AFTER)?;
    output.run.machine_after = Some(store::MACHINE_AFTER.to_owned());
    output.close(None)?;
    // From here on it is kept, whatever comes of the rest.
    conclude(&dir).or_else(|error| {
        let why = format!("it cannot be explained: {error:#}");
        eprintln!("note: {why}");
        let mut breach: Breach = store::read_json(&dir.join(FILE))?;
        breach.explained.get_or_insert(unknown(&why));
        Ok(store::write_json(&dir.join(FILE), &breach)?)
    })
}

fn conclude(dir: &Path) -> anyhow::Result<()> {
    let mut breach: Breach = store::read_json(&dir.join(FILE))?;
    let run = model::run::stored::read_run(dir)?;
    breach.group = breach.worst.tid.and_then(|tid| by_tid(groups(&run)).get(&tid).map(|group| group.words()));
    breach.changed = since_the_beginning(dir, &run, &breach.watched_since)?;
    breach.explained = Some(explained(dir, &breach)?);
    store::write_json(&dir.join(FILE), &breach)?;
    let analysis = analysis::analyse(dir)?;
    if analysis.complete {
        output::mark_complete(dir)?;
    }
    Ok(())
}

fn unknown(cause: &str) -> Explained {
    Explained { cause: cause.to_owned(), confidence: "unknown".to_owned(), share: None, against: Vec::new() }
}

/// What took the time.
pub(super) fn explained(dir: &Path, breach: &Breach) -> anyhow::Result<Explained> {
    let worst = &breach.worst;
    let Some(tid) = worst.tid else { return Ok(unknown("whose it was is not known")) };
    let file = TraceFile::open(&dir.join(store::TRACE))?;
    let buffers: Vec<&str> =
        [Some(""), file.buffer(SENDER).map(|buffer| buffer.name.as_str())].into_iter().flatten().collect();
    let keep = Keep { sample: Some(worst.t_ns), ..Keep::default() };
    // Wake-ups have begun before the wait for the CPU that is late.
    let whole = worst.kind == BreachKind::Wakeup;
    let window = if whole { [i64::MIN, i64::MAX] } else { [worst.t_ns, worst.end_ns()] };
    // What interrupts a CPU is the same whatever runs there.
    let cpus = worst.cpu.filter(|_| worst.kind == BreachKind::Interference).map(|cpu| Cpus::from_iter([cpu]));
    let wanted = Wanted { threads: Threads::Numbers(vec![tid]), cpus, window, keep };
    let mut found = any_trace(&file, &buffers, &wanted)?;
    let run = model::run::stored::read_run(dir)?;
    found.find_groups(groups(&run));
    match worst.kind {
        BreachKind::Wakeup => of_wakeup(dir, &run, breach, &found),
        BreachKind::Reported => Ok(of_report(tid, breach, &found)),
        BreachKind::Interference => Ok(of_rows(breach, &found)),
        BreachKind::Preempted => {
            let had = worst.cpu.map(|cpu| had_the_cpu(&file, &buffers, cpu, tid, window)).transpose()?;
            Ok(of_preempted(breach, &found, had.unwrap_or(Had::unknown(window))))
        }
    }
}

/// The control groups of threads that were there when the breach was over.
fn groups(run: &Run) -> &[TaskGroup] {
    run.trace.as_ref().map_or(&[], |trace| &trace.groups)
}

fn of_wakeup(dir: &Path, run: &Run, breach: &Breach, found: &AnyTrace) -> anyhow::Result<Explained> {
    let Some((cpu, sample)) = the_sample(&found.threads.paths, breach) else {
        return Ok(unknown("its wake-up is not in the trace as a whole"));
    };
    let machine = store::read_json::<Snapshot>(&dir.join(store::MACHINE_BEFORE))?.machine;
    let findings: Vec<Finding> = store::read_json(&dir.join(store::FINDINGS))?;
    let facts = Facts { run, machine: &machine, findings: &findings, blocking: &found.blocking };
    let phase = run.phases.first().map(|phase| phase.name.clone()).unwrap_or_default();
    let verdict = of_sample(&facts, Place { probe: ProbeKind::Wakeup, phase: &phase, cpu }, sample);
    Ok(Explained {
        cause: verdict.cause_words(),
        confidence: name(verdict.confidence)?,
        share: verdict.share,
        against: verdict.against,
    })
}

/// Where the time of the thread that reported went. Who ran while it slept is not to blame for
/// that, so nobody is named.
fn of_report(tid: i32, breach: &Breach, found: &AnyTrace) -> Explained {
    if breach.worst.value_ns.is_none() {
        return unknown("the program did not say since when; its trace has what ran");
    }
    let thread = found.threads.threads.iter().find(|thread| thread.tid == tid && !thread.cpus.is_empty());
    let Some(thread) = thread else {
        return unknown("its main thread did not run on a watched CPU in that time");
    };
    let Times { on_cpu_ns, waiting_ns, preempted_ns, asleep_ns, unknown_ns, .. } = thread.times;
    let parts = [
        ("ran", on_cpu_ns),
        ("waited for a CPU", waiting_ns + preempted_ns),
        ("waited for something else", asleep_ns),
        ("is not known", unknown_ns),
    ];
    let parts = parts.iter().filter(|(_, ns)| *ns > 0);
    let parts: Vec<String> = parts.map(|(what, ns)| format!("{what} {}", format::ns(*ns as i64))).collect();
    unknown(&format!("in that time its main thread {}; see its trace", parts.join(", ")))
}

/// Who had the CPU while a thread could run. Where most of it was not for those that have
/// precedence over it, who ran is not to blame.
fn of_preempted(breach: &Breach, found: &AnyTrace, had: Had) -> Explained {
    let worst = &breach.worst;
    let moved = |thread: &ThreadSection| Some(thread.tid) == worst.tid && thread.migrations_runnable > 0;
    if found.threads.threads.iter().any(moved) {
        return unknown("it moved between CPUs meanwhile; its trace has what ran on each");
    }
    let value_ns = worst.value_ns.unwrap_or(0).max(1);
    let share = had.below_ns as f64 / value_ns as f64;
    if share > 0.5 {
        let took = format::ns(had.below_ns as i64);
        let cause = format!(
            "{took} ({:.1} %): real-time throttling or another budget that was used up: less urgent tasks had the CPU",
            100.0 * share.min(1.0)
        );
        let (confidence, share) = ("exact".to_owned(), Some(share.min(1.0)));
        return Explained { cause, confidence, share, against: Vec::new() };
    }
    if 2 * had.unknown_ns > value_ns {
        return unknown("who had the CPU meanwhile, or with which priority, is not in the trace");
    }
    of_rows(breach, found)
}

/// What ran on the CPU in that time: the row with most of it, if that is more than half.
fn of_rows(breach: &Breach, found: &AnyTrace) -> Explained {
    let worst = &breach.worst;
    let value_ns = worst.value_ns.unwrap_or(0).max(1);
    let here = found.attribution.iter().filter(|one| Some(one.cpu) == worst.cpu);
    let rows = here.flat_map(|one| &one.rows);
    let foreign = rows.filter(|row| row.class != EventClass::SelfCaused);
    let Some(row) = foreign.max_by_key(|row| row.net_ns) else {
        return unknown("no event of that time shows what took it");
    };
    let share = row.net_ns as f64 / value_ns as f64;
    if share <= 0.5 {
        return unknown("nothing that the events show took most of it");
    }
    let by = row.source.as_ref().map(|source| format!(", by {}", who(source))).unwrap_or_default();
    let took = format::ns(row.net_ns as i64);
    let cause = format!("{took} ({:.1} %): {} {}{by}", 100.0 * share.min(1.0), row.class.name(), row.label);
    let confidence = match (&row.source, row.confidence) {
        (Some(_), Some(Confidence::Order)) => "by-order",
        _ => "exact",
    };
    Explained { cause, confidence: confidence.to_owned(), share: Some(share.min(1.0)), against: Vec::new() }
}

/// As it is stored.
fn name(confidence: report::Known) -> anyhow::Result<String> {
    Ok(serde_json::from_value(serde_json::to_value(confidence)?)?)
}

/// The wake-up of the breach among those that were taken apart.
fn the_sample<'a>(
    paths: &'a [attribution::attribute::thread_paths::ThreadPaths],
    breach: &Breach,
) -> Option<(u32, &'a SamplePath)> {
    let all = paths.iter().flat_map(|one| one.path.worst.iter().map(|sample| (one.path.cpu, sample)));
    // A timer that is in the trace puts the begin of a wake-up before the request for it; both end
    // with the same switch.
    let end_ns = breach.worst.end_ns();
    all.min_by_key(|(_, sample)| (sample.t_ns + sample.value_ns).abs_diff(end_ns))
        .filter(|(_, sample)| (sample.t_ns + sample.value_ns).abs_diff(end_ns) < 1_000)
}
