//! The run directory while it is being written. It is marked as incomplete from its first moment
//! until the very last step.

use super::place::Place;
use anyhow::Context;
use measure::latency_limit::LatencyLimit;
use model::run::{CUT_OFF, Losses, ObserverCost, Run, SCHEMA, StoppedAt, TraceCpu};
use model::{Error, samples_tail, store};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// A run in the making.
pub(crate) struct RunOutput {
    /// The directory.
    pub(crate) dir: PathBuf,
    /// What `run.json` will say.
    pub(crate) run: Run,
    /// Held while it is here.
    limit: Option<LatencyLimit>,
}

impl RunOutput {
    /// Makes the directory with its mark and a first `run.json`. Leaves nothing behind when that
    /// fails.
    pub(crate) fn create(dir: &Path, place: &Place) -> anyhow::Result<Self> {
        let made = make_directory(dir)?;
        claim(dir, made)?;
        let output = Self { dir: dir.to_owned(), run: first_record(place), limit: None };
        if let Err(error) = output.begin() {
            remove_beginnings(&output.dir, made);
            return Err(error)
                .with_context(|| format!("the run cannot be written to {}", output.dir.display()));
        }
        Ok(output)
    }

    /// One that another process of this program has begun: its facts so far.
    pub(crate) fn reopen(dir: &Path) -> Result<Self, Error> {
        Ok(Self { dir: dir.to_owned(), run: model::run::stored::read_run(dir)?, limit: None })
    }

    fn begin(&self) -> Result<(), Error> {
        let samples = self.dir.join(store::SAMPLES);
        fs::create_dir(&samples).map_err(|source| Error::io("create", &samples, source))?;
        self.save()?;
        // What is put into a directory survives a power cut if the directory does.
        let dir = fs::canonicalize(&self.dir).map_err(|source| Error::io("find", &self.dir, source))?;
        dir.parent().map_or(Ok(()), store::sync_directory)
    }

    /// Writes `run.json` as it stands. Samples that it names need no tails any more.
    pub(crate) fn save(&self) -> Result<(), Error> {
        store::write_json(&self.dir.join(store::RUN), &self.run)?;
        self.run.probes.iter().try_for_each(|probe| samples_tail::remove(&self.dir.join(&probe.file)))
    }

    /// Keeps CPUs out of idle states that take longer than this to leave; nothing for none. The run
    /// records a refusal. Call it after the machine was read, so that it is described as it is
    /// without us.
    pub(crate) fn hold_latency(&mut self, us: Option<i32>) {
        let Some(us) = us else { return };
        match LatencyLimit::hold(us) {
            Ok(limit) => (self.limit, self.run.dma_latency_us) = (Some(limit), Some(us)),
            Err(error) => self.run.limits.push(format!(
                "{error}: the time to leave idle states is in the figures (see --no-dma-latency)"
            )),
        }
    }

    /// Leaves idle states to the machine again.
    pub(crate) fn release_latency(&mut self) {
        self.limit = None;
    }

    /// Records the sample that ended the measurement before its time, where one did.
    pub(crate) fn stopped_at(&mut self, stopped_at: Option<StoppedAt>) {
        let Some(at) = stopped_at else { return };
        self.run.limits.push(report::stopped::limit(&at));
        self.run.stopped_at = Some(at);
    }

    /// Ends the writing of facts. Without a reason the run is complete, but its mark stays until
    /// the report is written.
    pub(crate) fn close(mut self, reason: Option<String>) -> anyhow::Result<()> {
        self.run.complete = reason.is_none();
        self.run.incomplete_reason.clone_from(&reason);
        self.run.losses = losses(&self.run);
        match reason {
            Some(reason) => {
                store::write_whole(&self.dir.join(store::PARTIAL), format!("{reason}\n").as_bytes())?;
            }
            // Else a power cut could leave a run that calls itself complete, with a trace that
            // never came to the disk.
            None => store::sync_tree(&self.dir)?,
        }
        self.save()?;
        Ok(())
    }
}

/// Takes the mark away: the run and its report are whole.
pub(crate) fn mark_complete(dir: &Path) -> Result<(), Error> {
    // The same for what was concluded since.
    store::sync_tree(dir)?;
    let mark = dir.join(store::PARTIAL);
    fs::remove_file(&mark).map_err(|source| Error::io("remove", &mark, source))?;
    // All that the mark stood for is on the disk: a power cut could bring back the mark alone.
    let _ = store::sync_directory(dir);
    Ok(())
}

/// Makes a directory for several runs, which may be there and empty.
pub(crate) fn new_directory(dir: &Path) -> Result<(), Error> {
    fs::create_dir_all(dir).map_err(|source| Error::io("create", dir, source))?;
    check_empty(dir)
}

/// Whether the directory was made, or was there and empty.
fn make_directory(dir: &Path) -> Result<bool, Error> {
    match fs::create_dir_all(dir.parent().unwrap_or(Path::new(""))).and_then(|()| fs::create_dir(dir)) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => check_empty(dir).map(|()| false),
        Err(source) => Err(Error::io("create", dir, source)),
    }
}

/// Writes the mark. Whoever creates the file owns the directory: of two runs that found it empty,
/// the second is refused here.
fn claim(dir: &Path, made: bool) -> anyhow::Result<()> {
    let mark = dir.join(store::PARTIAL);
    let mut file = match File::create_new(&mark) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let what = "another run is being written there";
            return Err(Error::invalid(dir.display(), what, "a new or empty directory").into());
        }
        Err(source) => {
            if made {
                let _ = fs::remove_dir(dir);
            }
            return Err(Error::io("create", &mark, source).into());
        }
    };
    let written = file.write_all(b"this run is incomplete\n").and_then(|()| file.sync_all());
    written.map_err(|source| {
        remove_beginnings(dir, made);
        anyhow::Error::from(Error::io("write", &mark, source))
    })
}

fn check_empty(dir: &Path) -> Result<(), Error> {
    let mut entries = fs::read_dir(dir).map_err(|source| Error::io("read", dir, source))?;
    match entries.next() {
        None => Ok(()),
        Some(_) => {
            Err(Error::invalid(dir.display(), "the directory is not empty", "a new or empty directory"))
        }
    }
}

fn remove_beginnings(dir: &Path, made: bool) {
    for name in [store::PARTIAL, store::RUN] {
        let _ = fs::remove_file(dir.join(name));
    }
    let _ = fs::remove_dir(dir.join(store::SAMPLES));
    if made {
        let _ = fs::remove_dir(dir);
    }
}

fn first_record(place: &Place) -> Run {
    Run {
        schema: SCHEMA.to_owned(),
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        command: std::env::args().collect(),
        started_at: jiff::Timestamp::now().to_string(),
        complete: false,
        incomplete_reason: Some(CUT_OFF.to_owned()),
        stopped_at: None,
        machine_before: store::MACHINE_BEFORE.to_owned(),
        machine_after: None,
        measured_cpus: place.measured.clone(),
        housekeeping_cpus: place.housekeeping.clone(),
        dma_latency_us: None,
        idle_states: BTreeMap::default(),
        frequency_change_ns: BTreeMap::default(),
        plan: Vec::new(),
        phases: Vec::new(),
        windows: Vec::new(),
        probes: Vec::new(),
        stressors: Vec::new(),
        trace: None,
        losses: Losses::default(),
        observer: ObserverCost::default(),
        seeds: BTreeMap::from([("analysis".to_owned(), 1)]),
        limits: place.limits.clone(),
    }
}

fn losses(run: &Run) -> Losses {
    let trace = run.trace.iter().flat_map(|trace| &trace.cpus);
    // A ring that is read for snapshots only is there to be overwritten.
    let ring = run.trace.as_ref().is_some_and(|trace| trace.snapshots.is_some());
    let unread = |cpu: &TraceCpu| if ring { 0 } else { cpu.left + cpu.overrun };
    Losses {
        missed_releases: run.probes.iter().map(model::run::ProbeRecord::missed).sum(),
        ring_samples: run.probes.iter().map(|probe| probe.ring_lost).sum(),
        trace_events: trace.map(|cpu| unread(cpu) + cpu.commit_overrun + cpu.dropped).sum(),
        failed_operations: run.stressors.iter().flat_map(|stressor| stressor.ops_failed.values()).sum(),
    }
}
