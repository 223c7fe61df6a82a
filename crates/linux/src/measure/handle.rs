//! The draining side of a probe: start the measuring process, store what it measures, take its report.

use super::batch::BatchDrain;
use super::budgets::budgets;
use super::drain::{NoiseDrain, Tally, WakeupDrain};
use super::drain_deadline::DeadlineDrain;
use super::hold::Hold;
use super::live::Live;
use super::look::Looks;
use super::periodic::{self, PeriodicDrain};
use super::ring::{BYTES, Ring, State};
use super::spec::{Burn, ProbeReport, ProbeSpec, Task, Wake};
use super::taskset::{self, TasksetDrain};
use super::watch::{Watch, Watching};
use super::{ipi, overheads};
use crate::error::Error;
use crate::machine::Root;
use crate::sys::clock::{self, ClockId};
use crate::sys::{memory, signals, spawn};
use model::run::{NoiseRecord, ProbeRecord, TaskRecord, WakeUpsRecord};
use model::sample::{ProbeKind, Sample, SampleMeta};
use model::samples_file::SampleWriter;
use model::snapshots::SnapshotSample;
use model::store;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A measuring process and its ring, set up and waiting.
pub struct ProbeHandle {
    spec: ProbeSpec,
    child: Child,
    ring: Ring,
}

impl ProbeHandle {
    /// Starts the measuring process; it sets itself up and waits.
    pub fn spawn(program: &Path, spec: &ProbeSpec) -> Result<Self, Error> {
        let failed = |source| Error::os("start a measuring process from", program.display(), source);
        let file = memory::shared_file("stillcore-ring", BYTES).map_err(failed)?;
        let ring = Ring::map(&file).map_err(failed)?;
        let order = serde_json::to_string(spec).map_err(|error| failed(error.into()))?;
        let mut command = Command::new(spec.program().unwrap_or(program));
        command.args(["internal", "probe", &order]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        spawn::die_with_parent(&mut command);
        spawn::share(&mut command, &file);
        let child = command.spawn().map_err(failed)?;
        Ok(Self { spec: spec.clone(), child, ring })
    }

    /// Process id, for the journal.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether the probe has set itself up; an error when it has died instead.
    pub fn ready(&mut self) -> Result<bool, Error> {
        if self.ring.reached(State::Ready) {
            return Ok(true);
        }
        match self.child.try_wait() {
            Ok(None) => Ok(false),
            _ => Err(self.died()),
        }
    }

    /// Sets the start of the measurement, and gives back the drain that stores its samples in the run, as number `k` of
    /// its CPU or the next that is free.
    pub fn start(
        self,
        start_ns: i64,
        run: &Path,
        k: usize,
        watch: Option<Watch>,
    ) -> Result<ProbeDrain, Error> {
        let names = (k..).map(|k| store::samples_name(self.spec.kind().name(), self.spec.cpu(), k));
        let mut free = names.filter(|name| !run.join(name).exists());
        let file = free.next().unwrap_or_default();
        let watching = watch.map(|watch| Watching::create(run, &file, watch)).transpose()?;
        let columns: &[&str] = match &self.spec.task {
            Task::Taskset(_) => &taskset::COLUMNS,
            Task::Ipi(_) => &ipi::COLUMNS,
            Task::Overheads(_) => &overheads::COLUMNS,
            Task::Wakeup(_) | Task::Noise(_) | Task::Periodic(_) => &[],
        };
        let columns: Vec<String> = match &self.spec.task {
            Task::Periodic(task) => periodic::columns(task),
            _ => columns.iter().map(|&name| name.to_owned()).collect(),
        };
        let writer = SampleWriter::with_columns(&run.join(&file), &columns)?;
        let converter = match &self.spec.task {
            Task::Wakeup(task) => {
                let plain = WakeupDrain::new(start_ns + task.offset_ns, task.period_ns);
                if self.spec.policy.is_deadline() {
                    Converter::Deadline(DeadlineDrain::new(plain, task.period_ns))
                } else {
                    Converter::Wakeup(plain)
                }
            }
            Task::Noise(task) => Converter::Noise(NoiseDrain::new(start_ns + task.preheat_ns as i64)),
            Task::Ipi(_) | Task::Overheads(_) => Converter::Batch(BatchDrain::default()),
            Task::Periodic(task) => Converter::Periodic(PeriodicDrain::new(task.counters.len())),
            Task::Taskset(task) => {
                Converter::Taskset(TasksetDrain::new(start_ns + task.offset_ns, task.period_ns))
            }
        };
        self.ring.start_at(start_ns);
        let hold = Hold::new(start_ns);
        Ok(ProbeDrain {
            handle: self,
            file,
            writer,
            converter,
            live: Live::default(),
            hold,
            watching,
            over_ns: None,
            over: Vec::new(),
            woken: false,
        })
    }

    /// What a probe said before it died.
    fn died(&mut self) -> Error {
        let mut said = String::new();
        if let Some(mut stderr) = self.child.stderr.take() {
            let _ = stderr.read_to_string(&mut said);
        }
        let status = self.child.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
        let what = if said.trim().is_empty() { status } else { format!("{} ({status})", said.trim()) };
        Error::failed(format!("the {} probe on CPU {}", self.spec.kind().name(), self.spec.cpu()), what)
    }
}

impl Drop for ProbeHandle {
    fn drop(&mut self) {
        // A probe that is still there has nothing to undo, and its parent is giving up.
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

enum Converter {
    Wakeup(WakeupDrain),
    Deadline(DeadlineDrain),
    Noise(NoiseDrain),
    Batch(BatchDrain),
    Periodic(PeriodicDrain),
    Taskset(TasksetDrain),
}

/// A running probe whose samples are being stored.
pub struct ProbeDrain {
    handle: ProbeHandle,
    file: String,
    writer: SampleWriter,
    converter: Converter,
    live: Live,
    hold: Hold,
    watching: Option<Watching>,
    /// Value from which on samples are told to the recorder, ns.
    over_ns: Option<i64>,
    /// Those that were not told yet.
    over: Vec<SnapshotSample>,
    /// Whether its sleep had to be ended.
    woken: bool,
}

impl ProbeDrain {
    /// Stores what the ring holds by now. A probe that the kernel has taken a CPU from is asked to end.
    pub fn poll(&mut self) -> Result<(), Error> {
        let Self { handle, writer, converter, live, hold, watching, over_ns, over, .. } = self;
        let now_ns = clock::now_ns();
        // Records that are in the ring now were made before the look at the affinity that follows.
        let filled = handle.ring.filled();
        // The last two move about by themselves, and say at their end whether they could go back.
        let stays = !matches!(handle.spec.kind(), ProbeKind::Ipi | ProbeKind::Overheads);
        if stays && !hold.look(handle.child.id() as i32, &handle.spec.cpus, now_ns) {
            handle.ring.stop();
        }
        let mut push_with = |sample: Sample, own: &[i64]| {
            let sample = hold.flagged(sample);
            live.add(&sample);
            if let Some(watching) = watching {
                watching.add(sample);
            }
            if sample.counts() && over_ns.is_some_and(|over_ns| sample.value_ns >= over_ns) {
                over.push(large(&handle.spec, sample));
            }
            writer.push_with(sample, own)
        };
        for record in (0..filled).map_while(|_| handle.ring.pop()) {
            match converter {
                Converter::Wakeup(drain) => {
                    drain.convert(record).map_or(Ok(()), |sample| push_with(sample, &[]))?;
                }
                Converter::Deadline(drain) => drain.convert(record, |sample| push_with(sample, &[]))?,
                Converter::Noise(drain) => drain.convert(record, |sample| push_with(sample, &[]))?,
                Converter::Batch(drain) => {
                    drain.convert(record).map_or(Ok(()), |(sample, own)| push_with(sample, own))?;
                }
                Converter::Periodic(drain) => {
                    drain.convert(record).map_or(Ok(()), |(sample, own)| push_with(sample, &own))?;
                }
                Converter::Taskset(drain) => {
                    drain.convert(record).map_or(Ok(()), |(sample, own)| push_with(sample, &own))?;
                }
            }
        }
        Ok(())
    }

    /// From now on, samples of at least this value are to be asked for, ns.
    pub fn tell_over(&mut self, over_ns: i64) {
        self.over_ns = Some(over_ns);
    }

    /// The samples of that value that came since the last call.
    pub fn take_over(&mut self) -> Vec<SnapshotSample> {
        std::mem::take(&mut self.over)
    }

    /// Whether a look at the kernel's counters is wanted at once.
    pub fn wants_look(&self) -> bool {
        self.watching.as_ref().is_some_and(Watching::waits)
    }

    /// Stores how counters have grown until the last look, and the probe's own.
    pub fn looked(&mut self, looks: &Looks) -> Result<(), Error> {
        let Self { handle, converter, watching, .. } = self;
        let Some(watching) = watching else { return Ok(()) };
        if let Converter::Noise(drain) = converter {
            drain.growths.drain(..).try_for_each(|growth| watching.store(growth))?;
        }
        watching.looked(looks, &handle.spec.cpus, handle.child.id())
    }

    /// Until when the probe is sure to have run on its own CPUs, where the kernel has taken one from it.
    pub fn taken_ns(&self) -> Option<i64> {
        self.hold.taken_ns
    }

    /// Whether the probe has stored its last sample, or has died.
    pub fn done(&mut self) -> bool {
        self.handle.ring.reached(State::Done) || !matches!(self.handle.child.try_wait(), Ok(None))
    }

    /// Asks the probe to end early.
    pub fn stop(&self) {
        self.handle.ring.stop();
    }

    /// Process id of the probe, which has one thread.
    pub fn pid(&self) -> u32 {
        self.handle.pid()
    }

    /// Ends the sleep of a probe whose clock was set back, and which would sleep on until that has caught up.
    pub fn wake(&mut self) {
        let by_another_clock =
            matches!(&self.handle.spec.task, Task::Wakeup(task) if task.clock != ClockId::Monotonic);
        if by_another_clock && !self.done() {
            self.stop();
            signals::send_wake(self.handle.child.id());
            self.woken = true;
        }
    }

    /// What was stored so far.
    pub fn live(&self) -> &Live {
        &self.live
    }

    /// The order it carries out.
    pub fn spec(&self) -> &ProbeSpec {
        &self.handle.spec
    }

    /// Stores the rest, waits for the probe's report and closes the samples file. Also gives what the probe could not do.
    pub fn finish(mut self, phase: &str) -> Result<(ProbeRecord, Vec<String>), Error> {
        let report = self.report()?;
        self.poll()?;
        if report.taken {
            self.hold.lost();
        }
        let Self { writer, live, converter, hold, .. } = &mut self;
        if let Converter::Deadline(drain) = converter {
            drain.flush(|sample| {
                let sample = hold.flagged(sample);
                live.add(&sample);
                writer.push(sample)
            })?;
        }
        let postponed = match converter {
            Converter::Deadline(drain) => drain.postponed,
            Converter::Periodic(drain) => drain.postponed,
            _ => 0,
        };
        let ring_lost = self.handle.ring.lost();
        let meta = meta(&self.handle.spec, &report, phase);
        let samples = self.writer.finish(&meta)?;
        let (taken_ns, woken) = (self.hold.taken_ns, self.woken);
        let (mut tally, mut slices) = match self.converter {
            Converter::Wakeup(drain) => (drain.tally, Vec::new()),
            Converter::Deadline(drain) => (drain.tally, Vec::new()),
            Converter::Noise(drain) => (drain.tally, drain.slices),
            Converter::Periodic(drain) => {
                (Tally { clock_error_ns: drain.error_ns, ..Tally::default() }, Vec::new())
            }
            Converter::Batch(_) | Converter::Taskset(_) => (Tally::default(), Vec::new()),
        };
        if let Some(taken_ns) = taken_ns {
            slices.iter_mut().for_each(|slice| *slice = slice.map(|ns| ns.min(taken_ns)));
            slices.retain(|slice| slice[0] < slice[1]);
            tally.spin_ns = slices.iter().map(|slice| (slice[1] - slice[0]) as u64).sum();
        }
        let mut record =
            record(&self.handle.spec, &meta, &report, self.file, samples, ring_lost, tally, slices);
        record.taken_ns = taken_ns;
        if let Some(watching) = self.watching {
            (record.counters_file, record.over_threshold) = watching.finish()?;
        }
        let set_back = woken.then(|| {
            format!(
                "the {} of the probe on CPU {} was set back: it still slept when its time was over, and the releases behind were not \
                 asked for",
                meta.clock, meta.cpu
            )
        });
        Ok((record, limits(&meta, &report, postponed).into_iter().chain(set_back).collect()))
    }

    fn report(&mut self) -> Result<ProbeReport, Error> {
        let mut text = String::new();
        if let Some(mut stdout) = self.handle.child.stdout.take() {
            let _ = stdout.read_to_string(&mut text);
        }
        serde_json::from_str(&text).map_err(|_| self.handle.died())
    }
}

/// A sample as the recorder wants it.
fn large(spec: &ProbeSpec, sample: Sample) -> SnapshotSample {
    let Sample { t_ns, value_ns, .. } = sample;
    SnapshotSample { cpu: spec.cpu(), thread: spec.thread, t_ns, value_ns, whole: false }
}

fn meta(spec: &ProbeSpec, report: &ProbeReport, phase: &str) -> SampleMeta {
    let (period_ns, clock) = match &spec.task {
        Task::Wakeup(task) => (Some(task.period_ns as u64), task.clock),
        Task::Noise(_) | Task::Ipi(_) | Task::Overheads(_) => (None, ClockId::Monotonic),
        Task::Periodic(task) => (Some(task.period_ns as u64), ClockId::Monotonic),
        Task::Taskset(task) => (Some(task.period_ns as u64), ClockId::Monotonic),
    };
    let yields = match &spec.task {
        Task::Wakeup(_) => true,
        Task::Periodic(task) => task.wake == Wake::Scheduler,
        _ => false,
    };
    let by_kernel = yields && report.policy_effective.reservation.is_some();
    SampleMeta {
        probe: spec.kind(),
        cpu: spec.cpu(),
        thread: spec.thread,
        phase: phase.to_owned(),
        unit: "ns".to_owned(),
        clock: if by_kernel { SCHEDULER_CLOCK.to_owned() } else { clock.name().to_owned() },
        counter: report.counter.name().to_owned(),
        policy_asked: spec.policy.clone(),
        policy_effective: report.policy_effective.clone(),
        period_ns,
        threshold_ns: (spec.kind() == ProbeKind::Noise).then_some(report.threshold_ns),
    }
}

#[expect(clippy::too_many_arguments, reason = "it puts together what comes from as many places")]
fn record(
    spec: &ProbeSpec,
    meta: &SampleMeta,
    report: &ProbeReport,
    file: String,
    samples: u64,
    ring_lost: u64,
    tally: Tally,
    slices: Vec<[i64; 2]>,
) -> ProbeRecord {
    let releases = meta.probe.has_releases() || meta.probe == ProbeKind::Ipi;
    ProbeRecord {
        phase: meta.phase.clone(),
        thread: meta.thread,
        cpus: (spec.cpus.len() > 1).then(|| spec.cpus.clone()),
        pid: report.pid,
        tid: report.tid,
        file,
        t0_ns: report.t0_ns + report.noise.as_ref().map_or(0, |noise| noise.preheat_ns as i64),
        t1_ns: report.result.t1_ns,
        counter: meta.counter.clone(),
        release_clock: (meta.clock != ClockId::Monotonic.name()).then(|| meta.clock.clone()),
        timer_slack_ns: report.timer_slack_ns,
        policy_effective: meta.policy_effective.clone(),
        period_ns: meta.period_ns,
        threshold_ns: meta.threshold_ns,
        samples,
        released: report.result.released,
        // Releases that passed after the last sample are in no sample's `missed`, but they were asked for.
        missed: if releases { report.result.released.saturating_sub(samples + ring_lost) } else { 0 },
        ring_lost,
        iterations: report.result.iterations,
        spin_ns: tally.spin_ns,
        slices,
        faults: report.faults,
        switches: report.switches,
        cpu_time_ns: report.cpu_time_ns,
        rss_kib: report.rss_kib,
        clock_error_ns: (meta.probe == ProbeKind::Noise
            || meta.clock == SCHEDULER_CLOCK && report.deadline_unread.is_none())
        .then_some(tally.clock_error_ns),
        jobs: report.jobs.clone(),
        task: task_of(&spec.task),
        wake_ups: wake_ups_of(&spec.task),
        noise: report.noise.clone().map(|noise| with_budgets(noise, meta.cpu)),
        ..ProbeRecord::of(meta.probe, meta.cpu, meta.policy_asked.clone())
    }
}

/// Which task of a set it was.
fn task_of(task: &Task) -> Option<TaskRecord> {
    let Task::Taskset(task) = task else { return None };
    let slot_ns = match task.burn {
        Burn::Slots { slot_ns } => Some(slot_ns as u64),
        Burn::CpuTime => None,
    };
    Some(TaskRecord {
        name: task.name.clone(),
        deadline_ns: task.deadline_ns as u64,
        cost_ns: task.cost_ns as u64,
        offset_ns: task.offset_ns as u64,
        slot_ns,
    })
}

/// How it was woken from other CPUs.
fn wake_ups_of(task: &Task) -> Option<WakeUpsRecord> {
    let Task::Ipi(task) = task else { return None };
    Some(WakeUpsRecord { interval_ns: task.interval_ns as u64, busy: task.busy })
}

/// What else may take the CPU is read on this side: the probe has no memory to spare.
fn with_budgets(noise: NoiseRecord, cpu: u32) -> NoiseRecord {
    let (throttling, fair_server) = budgets(&Root::live(), cpu);
    NoiseRecord { throttling, fair_server, ..noise }
}

/// Name of the clock that the kernel releases SCHED_DEADLINE jobs in.
const SCHEDULER_CLOCK: &str = "scheduler";

/// What the probe could not do, one sentence each.
fn limits(meta: &SampleMeta, report: &ProbeReport, postponed: u64) -> Vec<String> {
    let cpu = meta.cpu;
    let policy = report.policy_refused.as_ref().map(|why| {
        format!(
            "measured under {} instead of {} on CPU {cpu} ({why}): latencies include waiting for ordinary tasks and a timer slack \
             of {} ns, and are not comparable with real-time figures",
            report.policy_effective.name, meta.policy_asked.name, report.timer_slack_ns
        )
    });
    let memory = report.memory_unlocked.as_ref().map(|why| {
        format!("the memory of the probe on CPU {cpu} could not be locked ({why}): page faults may show as latency")
    });
    let releases = report.deadline_unread.as_ref().map(|why| {
        format!(
            "the deadlines of the probe on CPU {cpu} could not be read ({why}): its releases are taken to be the earliest wake-ups, a \
             period apart, so that lateness is against their lower envelope and drifts with the scheduler's clock"
        )
    });
    let postponed = (postponed > 0).then(|| {
        format!(
            "{postponed} jobs of the probe on CPU {cpu} ran out of the runtime reserved for them, and the kernel held them back until the \
             next period: a longer --runtime gives them room"
        )
    });
    let said = report.limits.iter().cloned();
    policy.into_iter().chain(memory).chain(said).chain(releases).chain(postponed).collect()
}
