//! The draining side of a probe: start the measuring process, store what it measures, take its
//! report.

use super::hold::Hold;
use super::kind::{Drain, Drained, ProbeReport};
use super::live::Live;
use super::look::Looks;
use super::probe_record::{count, limits, meta, record};
use super::ring::{BYTES, Ring, State};
use super::spec::ProbeSpec;
use super::watch::{Watch, Watching};
use model::run::ProbeRecord;
use model::sample::Sample;
use model::samples_store::SampleStore;
use model::samples_tail::Opening;
use model::snapshots::SnapshotSample;
use model::store;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use sys::clock::{self, ClockId};
use sys::{Error, memory, signals, spawn};

/// A measuring process and its ring, set up and waiting.
pub struct ProbeHandle {
    spec: ProbeSpec,
    child: Child,
    /// What it says: what is known before the window, and its report.
    says: Option<BufReader<ChildStdout>>,
    ring: Ring,
}

/// Where the samples of a window are stored.
#[derive(Debug, Clone, Copy)]
pub struct StoreIn<'a> {
    /// The run directory.
    pub run: &'a Path,
    /// Name of the phase.
    pub phase: &'a str,
    /// Number of the window in the run: that of its files, or the next that is free.
    pub k: usize,
}

impl ProbeHandle {
    /// Starts the measuring process; it sets itself up and waits.
    pub fn spawn(program: &Path, spec: &ProbeSpec) -> Result<Self, Error> {
        let failed = |source| Error::os("start a measuring process from", program.display(), source);
        let file = memory::shared_file("stillcore-ring", BYTES).map_err(failed)?;
        let ring = Ring::map(&file).map_err(failed)?;
        let order = serde_json::to_string(spec).map_err(|error| failed(error.into()))?;
        let mut command = Command::new(spec.task.probe().program().unwrap_or(program));
        command.args(["internal", "probe", &order]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        spawn::die_with_parent(&mut command);
        spawn::share(&mut command, &file);
        let mut child = command.spawn().map_err(failed)?;
        let says = child.stdout.take().map(BufReader::new);
        Ok(Self { spec: spec.clone(), child, says, ring })
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

    /// Makes the files that its samples go to.
    pub fn store_in(mut self, place: StoreIn<'_>, watch: Option<Watch>) -> Result<StoredProbe, Error> {
        let StoreIn { run, phase, k } = place;
        let names = (k..).map(|k| store::samples_name(self.spec.kind().name(), self.spec.cpu(), k));
        let mut free = names.filter(|name| !run.join(name).exists());
        let file = free.next().unwrap_or_default();
        let watching = watch.map(|watch| Watching::create(run, &file, watch)).transpose()?;
        let known = self.said()?;
        let meta = meta(&self.spec, &known, phase);
        let record = record(&self.spec, &meta, &known, file.clone());
        let columns = self.spec.task.probe().columns();
        let opening = Opening { meta, record, columns, last: 0, rows: 0 };
        let store = SampleStore::create(&run.join(&file), opening)?;
        Ok(StoredProbe { handle: self, file, store, watching })
    }

    /// What it says next: before the window what it knows, behind it what became of that.
    fn said(&mut self) -> Result<ProbeReport, Error> {
        let mut line = String::new();
        if let Some(says) = &mut self.says {
            let _ = says.read_line(&mut line);
        }
        serde_json::from_str(&line).map_err(|_| self.died())
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

/// A measuring process that waits for its start, and the files that its samples go to.
pub struct StoredProbe {
    handle: ProbeHandle,
    file: String,
    store: SampleStore,
    watching: Option<Watching>,
}

impl StoredProbe {
    /// Sets the start of the measurement, and returns the drain that stores its samples. The first
    /// sample of `stop_over_ns` or more ends it.
    pub fn start(self, start_ns: i64, stop_over_ns: Option<i64>) -> ProbeDrain {
        let Self { handle, file, store, watching } = self;
        let drain = handle.spec.task.probe().drain(&handle.spec.policy, start_ns);
        stop_over_ns.into_iter().for_each(|limit_ns| handle.ring.stop_over(limit_ns));
        handle.ring.start_at(start_ns);
        ProbeDrain {
            handle,
            file,
            store,
            drain,
            drained: Drained::default(),
            live: Live::default(),
            hold: Hold::new(start_ns),
            watching,
            over_ns: None,
            over: Vec::new(),
            stop_over_ns,
            hit: None,
            woken: false,
        }
    }

    /// Process id of the probe, which has one thread.
    pub fn pid(&self) -> u32 {
        self.handle.pid()
    }
}

/// A sample that ends the measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hit {
    /// Its number among the samples of the probe, from 1.
    pub number: u64,
    /// Its time, as in the samples file.
    pub t_ns: i64,
    /// Its value.
    pub value_ns: i64,
}

impl Hit {
    /// When it ended.
    pub(super) fn end_ns(&self) -> i64 {
        self.t_ns.saturating_add(self.value_ns)
    }
}

/// A running probe whose samples are being stored.
pub struct ProbeDrain {
    handle: ProbeHandle,
    file: String,
    store: SampleStore,
    drain: Box<dyn Drain>,
    drained: Drained,
    live: Live,
    hold: Hold,
    watching: Option<Watching>,
    /// The recorder gets samples at or above this value, ns.
    over_ns: Option<i64>,
    /// Those that the recorder has not taken yet.
    over: Vec<SnapshotSample>,
    /// The first sample at or above this value ends the measurement, ns.
    stop_over_ns: Option<i64>,
    /// That sample.
    hit: Option<Hit>,
    /// Whether its sleep had to be ended.
    woken: bool,
}

impl ProbeDrain {
    /// Stores what the ring holds by now. A probe that the kernel has taken a CPU from is asked to
    /// end.
    pub fn poll(&mut self) -> Result<(), Error> {
        let Self { handle, drain, drained, hold, .. } = self;
        let now_ns = clock::now_ns();
        // Records that are in the ring now were made before the look at the affinity that follows.
        let filled = handle.ring.filled();
        let stays = handle.spec.task.probe().stays();
        if stays && !hold.look(handle.child.id() as i32, &handle.spec.cpus, now_ns) {
            handle.ring.stop();
        }
        for record in (0..filled).map_while(|_| handle.ring.pop()) {
            drain.convert(record, drained);
        }
        self.store_drained();
        Ok(self.store.keep()?)
    }

    fn store_drained(&mut self) {
        let Self { handle, store, drained, live, hold, watching, over_ns, over, stop_over_ns, hit, .. } =
            self;
        let Drained { samples, own, stretches, growths } = drained;
        let columns = own.len() / samples.len().max(1);
        for (row, sample) in samples.drain(..).enumerate() {
            let sample = hold.flagged(sample);
            live.add(&sample);
            if let Some(watching) = watching {
                watching.add(sample);
            }
            if sample.counts() && over_ns.is_some_and(|over_ns| sample.value_ns >= over_ns) {
                over.push(large(&handle.spec, sample));
            }
            let ends = sample.counts() && stop_over_ns.is_some_and(|limit_ns| sample.value_ns >= limit_ns);
            if hit.is_none() && ends {
                *hit = Some(Hit { number: live.stored, t_ns: sample.t_ns, value_ns: sample.value_ns });
            }
            store.push_with(sample, &own[row * columns..][..columns]);
        }
        own.clear();
        stretches.drain(..).for_each(|stretch| store.ran(stretch));
        if watching.is_none() {
            growths.clear();
        }
    }

    /// From now on, collects samples at or above this value, ns.
    pub fn collect_over(&mut self, over_ns: i64) {
        self.over_ns = Some(over_ns);
    }

    /// The samples of that value that came since the last call.
    pub fn take_over(&mut self) -> Vec<SnapshotSample> {
        std::mem::take(&mut self.over)
    }

    /// The first sample that reached the limit that ends the measurement.
    pub fn hit(&self) -> Option<Hit> {
        self.hit
    }

    /// Whether a look at the kernel's counters is wanted at once.
    pub fn wants_look(&self) -> bool {
        self.watching.as_ref().is_some_and(Watching::waits)
    }

    /// Stores how counters have grown until the last look, and the probe's own.
    pub fn looked(&mut self, looks: &Looks) -> Result<(), Error> {
        let Self { handle, drained, watching, .. } = self;
        let Some(watching) = watching else { return Ok(()) };
        drained.growths.drain(..).try_for_each(|growth| watching.store(growth))?;
        watching.looked(looks, &handle.spec.cpus, handle.child.id())
    }

    /// Until when the probe is sure to have run on its own CPUs, where the kernel has taken one
    /// from it.
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

    /// Ends the sleep of a probe whose clock was set back, and which would sleep on until that has
    /// caught up.
    pub fn wake(&mut self) {
        let by_another_clock = self.handle.spec.task.probe().clock() != ClockId::Monotonic;
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

    /// Stores the rest, waits for the probe's report and closes the samples file. Also gives what
    /// the probe could not do.
    pub fn finish(mut self, phase: &str) -> Result<(ProbeRecord, Vec<String>), Error> {
        let report = self.handle.said()?;
        self.poll()?;
        if report.taken {
            self.hold.lost();
        }
        self.drain.flush(&mut self.drained);
        self.store_drained();
        let meta = meta(&self.handle.spec, &report, phase);
        let mut record = record(&self.handle.spec, &meta, &report, self.file);
        record.ring_lost = self.handle.ring.lost();
        record.samples = self.store.finish(&meta)?;
        record.taken_ns = self.hold.taken_ns;
        count(&mut record, &report, &*self.drain);
        if let Some(watching) = self.watching {
            (record.counters_file, record.over_threshold) = watching.finish()?;
        }
        let postponed = self.drain.postponed();
        let set_back = self.woken.then(|| {
            format!(
                "the {} of the probe on CPU {} was set back: it still slept when its time was over, and the releases behind were not \
                 asked for",
                meta.clock, meta.cpu
            )
        });
        Ok((record, limits(&meta, &report, postponed).into_iter().chain(set_back).collect()))
    }
}

/// A sample as the recorder wants it.
fn large(spec: &ProbeSpec, sample: Sample) -> SnapshotSample {
    let Sample { t_ns, value_ns, .. } = sample;
    SnapshotSample { cpu: spec.cpu(), thread: spec.thread, t_ns, value_ns, whole: false }
}
