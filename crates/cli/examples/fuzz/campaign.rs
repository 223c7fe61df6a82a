//! One reader's executions: damaged inputs until there have been enough, or until an hour of CPU
//! time has brought no new edge. An input that reaches a new edge is damaged further.

use super::Target;
use super::common::mutate::Rng;
use super::edges::Seen;
use super::readers::stored;
use super::watch::{self, Slot};
use model::events::EventCatalogue;
use result::{Limit, Of, Row};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, RwLock};
use std::time::{Duration, Instant};

/// Findings after which a reader is left: more are more of the same.
const MOST_FINDINGS: u64 = 20;
/// Memory for inputs that have reached new edges.
const MOST_KEPT: usize = 128 << 20;

/// When a campaign is over.
#[derive(Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) executions: u64,
    /// CPU time without a new edge.
    pub(crate) still: Duration,
}

/// What has been done so far; stored, so that hours of work can be interrupted.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Progress {
    /// The next execution.
    next: u64,
    /// Refused, read in part, read whole.
    outcomes: [u64; 3],
    failures: u64,
    /// Files of those inputs, in the folder of regressions.
    #[serde(default)]
    failed: Vec<String>,
    slowest_ns: u64,
    /// CPU time of all executions.
    cpu_ns: u64,
    /// That time at the last new edge.
    new_edge_ns: u64,
}

pub(crate) struct Campaign<'a> {
    target: &'a Target,
    catalogue: &'a EventCatalogue,
    number: u64,
    bounds: Bounds,
    progress: Mutex<Progress>,
    is_over: AtomicBool,
    next: AtomicU64,
    /// Seeds, and what reached a new edge.
    inputs: RwLock<Vec<Vec<u8>>>,
    seen: Seen,
    found: PathBuf,
    /// Where progress and inputs are stored.
    work: Option<PathBuf>,
    started: Instant,
}

impl<'a> Campaign<'a> {
    /// Begins, or goes on where `work` has what was done before.
    pub(crate) fn new(
        (target, catalogue): (&'a Target, &'a EventCatalogue),
        number: u64,
        bounds: Bounds,
        found: PathBuf,
        work: Option<&Path>,
    ) -> Self {
        let work = work.map(|dir| dir.join(target.name));
        let (mut inputs, mut progress) = (target.seeds().to_vec(), Progress::default());
        if let Some(dir) = &work {
            std::fs::create_dir_all(dir).unwrap();
            if let Ok(text) = std::fs::read(dir.join("progress.json")) {
                progress = serde_json::from_slice(&text).unwrap();
                progress.judge_anew(|name| {
                    let input = std::fs::read(found.join(name)).ok()?;
                    let done = std::panic::catch_unwind(|| target.execute(catalogue, input));
                    done.ok().map(|outcome| outcome as usize)
                });
            }
            let mut kept: Vec<PathBuf> = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()).collect();
            kept.retain(|path| path.extension().is_some_and(|ending| ending == "input"));
            kept.sort();
            inputs.extend(kept.iter().map(|path| std::fs::read(path).unwrap()));
        }
        let seen = Seen::none();
        for input in &inputs {
            let _ = std::panic::catch_unwind(|| target.execute(catalogue, input.clone()));
        }
        seen.look();
        Self {
            target,
            catalogue,
            number,
            bounds,
            is_over: AtomicBool::new(is_over(&progress, bounds)),
            next: AtomicU64::new(progress.next),
            progress: Mutex::new(progress),
            inputs: RwLock::new(inputs),
            seen,
            found,
            work,
            started: Instant::now(),
        }
    }

    /// Runs on so many threads until it is over.
    pub(crate) fn run(&self, threads: usize) {
        let slots: Vec<Slot> = (0..threads).map(|_| Slot::default()).collect();
        std::thread::scope(|scope| {
            for slot in &slots {
                scope.spawn(|| {
                    // Also after a panic of the fuzzer itself, which then ends the process.
                    let _rests = watch::Rests(slot);
                    self.work(slot);
                });
            }
            watch::until_all_rest(self, &slots);
        });
        self.keep();
    }

    fn work(&self, slot: &Slot) {
        let mut cpu = watch::thread_cpu();
        while !self.is_over.load(Ordering::Relaxed) {
            let execution = self.next.fetch_add(1, Ordering::Relaxed);
            let input = {
                let inputs = self.inputs.read().unwrap();
                self.target.damaged(&inputs, &mut Rng::new(self.number, execution))
            };
            slot.begin(&input);
            let done = std::panic::catch_unwind(|| self.target.execute(self.catalogue, input.clone())).ok();
            let is_new = self.seen.look();
            let (before, now) = (cpu, watch::thread_cpu());
            cpu = now;
            if done.is_none() {
                self.failed(&input, "panic");
            } else if is_new {
                self.add(execution, input);
            }
            self.count(done.map(|outcome| outcome as usize), now.saturating_sub(before), is_new);
        }
    }

    fn count(&self, outcome: Option<usize>, took: Duration, is_new: bool) {
        let took_ns = took.as_nanos() as u64;
        let mut progress = self.progress.lock().unwrap();
        if let Some(outcome) = outcome {
            progress.outcomes[outcome] += 1;
        }
        progress.cpu_ns += took_ns;
        progress.slowest_ns = progress.slowest_ns.max(took_ns);
        if is_new {
            progress.new_edge_ns = progress.cpu_ns;
        }
        if is_over(&progress, self.bounds) {
            self.is_over.store(true, Ordering::Relaxed);
        }
    }

    /// An input that has reached a new edge.
    fn add(&self, execution: u64, input: Vec<u8>) {
        let mut inputs = self.inputs.write().unwrap();
        if inputs.iter().map(Vec::len).sum::<usize>() > MOST_KEPT {
            return;
        }
        if let Some(dir) = &self.work {
            std::fs::write(dir.join(stored::name(execution)), &input).unwrap();
        }
        inputs.push(input);
    }

    /// Keeps an input for the tests.
    pub(crate) fn failed(&self, input: &[u8], what: &str) {
        let mut progress = self.progress.lock().unwrap();
        progress.failures += 1;
        // Not over one that is there already: it may be of another campaign.
        let name = |nth: u64| format!("{}-{}-{nth}.bin", self.target.name, self.number);
        let is_free = |nth: &u64| !self.found.join(name(*nth)).exists();
        let free = (1..u64::MAX).find(is_free).unwrap_or(u64::MAX);
        let path = self.found.join(name(free));
        let stored = std::fs::write(&path, input);
        progress.failed.push(name(free));
        println!("{}: {what}: {} {stored:?}", self.target.name, path.display());
    }

    /// Stores what has been done.
    pub(crate) fn keep(&self) {
        let Some(dir) = &self.work else { return };
        let mut progress = self.progress.lock().unwrap().clone();
        progress.next = self.next.load(Ordering::Relaxed);
        let new = dir.join("progress.new");
        std::fs::write(&new, serde_json::to_vec(&progress).unwrap()).unwrap();
        std::fs::rename(new, dir.join("progress.json")).unwrap();
    }

    pub(crate) fn failures(&self) -> u64 {
        self.progress.lock().unwrap().failures
    }

    pub(crate) fn executions(&self) -> u64 {
        executions(&self.progress.lock().unwrap())
    }

    pub(crate) fn rows(&self) -> Vec<Row> {
        let progress = self.progress.lock().unwrap();
        let n = executions(&progress);
        let row = |what: &str, value: f64, unit| {
            Row::new(format!("{}: {what}", self.target.name), value, unit).n(n)
        };
        let still = row("CPU time since the last new edge", progress.still().as_secs_f64(), "s");
        let [refused, partial, whole] = progress.outcomes;
        vec![
            row("executions", n as f64, ""),
            row("refused", refused as f64, ""),
            row("read in part", partial as f64, ""),
            row("read whole", whole as f64, ""),
            row("failed", progress.failures as f64, "").budget(Of::Value, Limit::AtMost(0.0)),
            row("edges", self.seen.count() as f64, ""),
            if n >= self.bounds.executions {
                still
            } else {
                still.budget(Of::Value, Limit::AtLeast(self.bounds.still.as_secs_f64()))
            },
            row("rate", n as f64 / (progress.cpu_ns as f64 / 1e9), "per s of CPU time"),
            row("slowest", progress.slowest_ns as f64 / 1e6, "ms of CPU time"),
            row("peak memory", watch::memory_kib("VmHWM:") as f64 / 1024.0, "MiB"),
        ]
    }

    /// How far it is.
    pub(crate) fn line(&self) -> String {
        let progress = self.progress.lock().unwrap();
        let [refused, partial, whole] = progress.outcomes;
        let n = executions(&progress);
        format!(
            "{:<10} {n:>9} executions: {refused} refused, {partial} partial, {whole} whole, {} failed; {} of {} edges, {} inputs, no new edge for {:.0} s of CPU; {:.0} s, {:.0}/s of CPU, slowest {} ms of CPU, peak {} MB",
            self.target.name,
            progress.failures,
            self.seen.count(),
            Seen::total(),
            self.inputs.read().unwrap().len(),
            progress.still().as_secs_f64(),
            self.started.elapsed().as_secs_f64(),
            n as f64 / (progress.cpu_ns as f64 / 1e9),
            progress.slowest_ns / 1_000_000,
            watch::memory_kib("VmHWM:") / 1024,
        )
    }
}

impl Progress {
    /// Inputs that failed and no longer do, now that the cause is mended, are what they are read as.
    fn judge_anew(&mut self, read: impl Fn(&str) -> Option<usize>) {
        let Self { outcomes, failures, failed, .. } = self;
        failed.retain(|name| match read(name) {
            Some(outcome) => {
                outcomes[outcome] += 1;
                *failures -= 1;
                false
            }
            None => true,
        });
    }

    fn still(&self) -> Duration {
        Duration::from_nanos(self.cpu_ns - self.new_edge_ns)
    }
}

fn executions(progress: &Progress) -> u64 {
    progress.outcomes.iter().sum::<u64>() + progress.failures
}

fn is_over(progress: &Progress, bounds: Bounds) -> bool {
    executions(progress) >= bounds.executions
        || progress.still() >= bounds.still
        || progress.failures >= MOST_FINDINGS
}
