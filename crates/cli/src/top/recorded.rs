//! With root: kernel events of the CPUs, in private instances, decoded while they come.

use super::counters::tasks;
use super::engine::{Engine, Feed};
use super::shot::Seen;
use super::view::Source;
use crate::run::facts::{own_cost, write_findings, write_snapshot};
use crate::run::output::RunOutput;
use crate::run::place::Place;
use crate::run::recording::{self, Wanted};
use attribution::live::{Follow, Followed};
use journal::session::Session;
use machine::Root;
use model::events::Stacks;
use model::run::Phase;
use model::watch::{FILE, WatchRecord};
use model::{Cpus, store};
use record::live::Keep;
use record::recorder::Recorder;
use record::tasks::Tasks;
use std::path::PathBuf;
use sys::{clock, sched};

/// Name of the only phase of a stored run.
const PHASE: &str = "watched";
/// Seconds between two looks for the threads of a name.
const LOOK_S: u64 = 5;

/// What is to be left of a recording.
pub(crate) struct Kept {
    /// New directory of the run.
    pub(crate) dir: PathBuf,
    /// The most bytes of events; the oldest give way.
    pub(crate) bytes: u64,
}

/// What is left of a recording.
pub(crate) struct Recording {
    /// Directory of the run.
    pub(crate) dir: PathBuf,
    /// How long it went on, s.
    pub(crate) of_s: f64,
    /// How much of its end was kept, s, where not all was.
    pub(crate) last_s: Option<f64>,
}

/// A recording that goes on.
pub(crate) struct Recorded {
    session: Session,
    recorder: Recorder,
    output: RunOutput,
    /// Where nothing is to be kept.
    scratch: Option<tempfile::TempDir>,
    engine: Engine,
    cpus: Cpus,
    comm: String,
    seconds: u64,
    t0_ns: i64,
}

impl Recorded {
    /// Begins; `kept`: what is to be left of it.
    pub(crate) fn begin(
        place: &Place,
        kept: Option<&Kept>,
        stacks: Stacks,
        comm: &str,
    ) -> anyhow::Result<Self> {
        let scratch = kept.is_none().then(tempfile::tempdir).transpose()?;
        let dir = match (kept, &scratch) {
            (Some(kept), _) => kept.dir.clone(),
            (None, scratch) => scratch.iter().map(|dir| dir.path().join("run")).collect(),
        };
        let mut session = Session::open(&place.program, &place.state)?;
        let mut output = RunOutput::create(&dir, place)?;
        sched::pin(&place.housekeeping)?;
        if kept.is_some() {
            write_snapshot(place, &output.dir, store::MACHINE_BEFORE)?;
            write_findings(place, &output.dir)?;
            output.run.observer = own_cost();
        }
        let events = recording::events(stacks)?;
        // Two instances: the measured CPUs and the others.
        let keep = kept.map_or(Keep::Live, |kept| Keep::LastAndLive(kept.bytes / 2));
        let wanted = Wanted { keep, ..Wanted::default() };
        let mut recorder = recording::prepare_for(&mut session, &mut output, &events, place, &wanted)?;
        let feed = Feed::of(&recorder, events, &output.run);
        let cpus = place.measured.clone();
        let numbers: Vec<u32> = cpus.iter().collect();
        let t0_ns = clock::now_ns();
        let engine = Engine::begin(feed, &numbers, followed(comm, &cpus));
        recorder.record(true)?;
        let comm = comm.to_owned();
        Ok(Self { session, recorder, output, scratch, engine, cpus, comm, seconds: 0, t0_ns })
    }

    /// Ends recording; what is left of it.
    pub(crate) fn end(self, place: &Place, asked: &str) -> anyhow::Result<Option<Recording>> {
        let Self { mut session, mut recorder, mut output, scratch, comm, t0_ns, .. } = self;
        if scratch.is_some() {
            recorder.discard(&mut session)?;
            let failed = session.close();
            anyhow::ensure!(failed.is_empty(), "not restored: {}", failed.join(", "));
            return Ok(None);
        }
        recorder.record(false)?;
        let t1_ns = clock::now_ns();
        let mut tasks = Tasks::of_name(&comm).ok();
        tasks.iter_mut().for_each(Tasks::look);
        let tasks = tasks.map(|tasks| tasks.tasks.values().cloned().collect()).unwrap_or_default();
        let facts = WatchRecord::of(asked.to_owned(), tasks);
        store::write_json(&output.dir.join(FILE), &facts)?;
        recording::finish(recorder, &mut session, &mut output)?;
        let from_ns =
            output.run.trace.as_ref().and_then(|trace| trace.from_ns).filter(|from_ns| *from_ns > t0_ns);
        let phase =
            Phase { name: PHASE.to_owned(), t0_ns: from_ns.unwrap_or(t0_ns), t1_ns, disturbed: false };
        output.run.phases.push(phase);
        write_snapshot(place, &output.dir, store::MACHINE_AFTER)?;
        output.run.machine_after = Some(store::MACHINE_AFTER.to_owned());
        output.run.observer.drain_rss_kib = Some(clock::peak_rss_kib());
        output.run.limits.extend(session.close().into_iter().map(|what| format!("not restored: {what}")));
        let dir = output.dir.clone();
        output.close(None)?;
        let seconds = |since_ns: i64| (t1_ns - since_ns) as f64 / 1e9;
        Ok(Some(Recording { dir, of_s: seconds(t0_ns), last_s: from_ns.map(seconds) }))
    }
}

impl Source for Recorded {
    fn feed(&mut self) -> anyhow::Result<()> {
        anyhow::ensure!(!self.recorder.failed(), "the trace cannot be read any more, so recording has ended");
        self.engine.feed()
    }

    fn second(&mut self) -> anyhow::Result<Seen> {
        self.feed()?;
        self.seconds += 1;
        if !self.comm.is_empty() && self.seconds.is_multiple_of(LOOK_S) {
            self.engine.follow(followed(&self.comm, &self.cpus));
        }
        Ok(Seen { view: self.engine.second()?, lost: Some(self.engine.lost()), note: None })
    }

    fn reset(&mut self) {
        self.engine.reset();
    }

    fn follow(&mut self, comm: &str) {
        comm.clone_into(&mut self.comm);
        self.engine.follow(followed(comm, &self.cpus));
    }
}

/// Of each CPU one thread of this name that ran there last: the most urgent, then the oldest.
fn followed(comm: &str, cpus: &Cpus) -> Vec<Followed> {
    if comm.is_empty() {
        return Vec::new();
    }
    let root = Root::live();
    let mut named: Vec<_> =
        tasks(&root).filter(|task| task.comm == comm && cpus.contains(task.cpu)).collect();
    named.sort_by_key(|task| (task.cpu, std::cmp::Reverse(task.rt_priority), task.tid));
    named.dedup_by_key(|task| task.cpu);
    let follow = Follow::Requests;
    named.into_iter().map(|task| Followed { cpu: task.cpu, tid: task.tid, follow }).collect()
}
