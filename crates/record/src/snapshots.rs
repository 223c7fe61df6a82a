//! Snapshot on threshold: what happened around the largest samples of a measurement that may go on
//! for days, on a constant amount of disk.
//!
//! The instances record in overwrite mode and nobody reads them. When a sample reaches the limit,
//! recording stops for a moment, the rings are emptied on a housekeeping CPU, and what lies around
//! the sample is kept; measured CPUs take no part in that. Of many snapshots those of the largest
//! samples stay. While one is written nothing is recorded: a sample of that time has no snapshot,
//! and is counted as such. The idea of a flight recorder is old (Documentation/trace/ftrace.rst,
//! "Snapshot", of the whole buffer and one at a time).

use super::buffer::{Buffer, Drained};
use super::ring::{Pages, Ring, Taken};
use model::run::TraceCpu;
use model::snapshots::{SnapshotRecord, SnapshotSample, SnapshotsRecord};
use model::usage::Stretch;
use std::cmp::Reverse;
use std::fs::{self, File};
use std::path::PathBuf;
use sys::{Error, clock};

/// How much is kept after a sample: the activity that touched it has ended by then.
const AFTER_NS: i64 = 20_000_000;
/// Samples that a snapshot names.
const NAMED: usize = 20;

/// When to take snapshots, and of what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnapshotOrder {
    /// Take a snapshot for samples at or above this value, ns.
    pub over_ns: i64,
    /// How much is kept before a sample, ns.
    pub before_ns: i64,
    /// The most that are kept.
    pub keep: u64,
    /// A sample of this value or more, ns, gets the last one: recording stays off after it.
    pub last_over_ns: Option<i64>,
}

/// The snapshots of a run.
pub(super) struct Snapshots {
    pages: Pages,
    sides: Vec<Side>,
    kept: Vec<Kept>,
    /// Since when recording is on, or was before it went off.
    on_ns: i64,
    on: bool,
    /// Times inside the window without recording.
    pauses: Vec<Stretch>,
    record: SnapshotsRecord,
    last_over_ns: Option<i64>,
    /// Whether recording is off for good.
    ended: bool,
    /// Since when, until the window is closed.
    rest_ns: Option<i64>,
    /// Why they ended early.
    broken: Option<Error>,
}

/// The rings of one instance.
struct Side {
    rings: Vec<Ring>,
    dir: PathBuf,
    /// Events that were read and not kept, one count a ring.
    discarded: Vec<u64>,
}

impl Side {
    fn part(&self, ring: usize, number: u64) -> PathBuf {
        self.dir.join(format!("cpu{}-{number}.part", self.rings[ring].cpu))
    }
}

/// A snapshot on disk: for each side, what each ring gave.
struct Kept {
    number: u64,
    record: SnapshotRecord,
    parts: Vec<Vec<Taken>>,
}

impl Kept {
    /// What it is worth.
    fn value_ns(&self) -> i64 {
        self.record.samples.first().map_or(i64::MIN, |sample| sample.value_ns)
    }
}

impl Snapshots {
    /// For instances that are set up and record nothing yet.
    pub(super) fn new(order: SnapshotOrder, pages: Pages, buffers: &[&Buffer]) -> Result<Self, Error> {
        let side = |buffer: &&Buffer| {
            let rings = buffer.rings()?;
            Ok(Side { discarded: vec![0; rings.len()], rings, dir: buffer.scratch().to_owned() })
        };
        let record = SnapshotsRecord {
            over_ns: order.over_ns,
            before_ns: order.before_ns,
            after_ns: AFTER_NS,
            keep: order.keep,
            ..SnapshotsRecord::default()
        };
        Ok(Self {
            pages,
            sides: buffers.iter().map(side).collect::<Result<_, Error>>()?,
            kept: Vec::new(),
            on_ns: 0,
            on: false,
            pauses: Vec::new(),
            record,
            last_over_ns: order.last_over_ns,
            ended: false,
            rest_ns: None,
            broken: None,
        })
    }

    /// Samples at or above this value are of interest, ns.
    pub(super) fn over_ns(&self) -> i64 {
        self.record.over_ns
    }

    /// Whether they ended early; [`Snapshots::finish`] returns the reason.
    pub(super) fn failed(&self) -> bool {
        self.broken.is_some()
    }

    /// Notes that recording was switched.
    pub(super) fn switched(&mut self, on: bool, now_ns: i64) {
        if on {
            self.on_ns = now_ns;
        } else if self.on {
            self.record.recorded_ns += (now_ns - self.on_ns).max(0) as u64;
        }
        self.on = on;
    }

    /// Counts samples that have reached the limit; gives those that a snapshot is to be taken for
    /// now.
    pub(super) fn wanted(&mut self, over: Vec<SnapshotSample>) -> Vec<SnapshotSample> {
        self.record.over += over.len() as u64;
        let ended = self.ended;
        let (lost, mut wanted): (Vec<_>, Vec<_>) =
            over.into_iter().partition(|sample| ended || self.paused(sample));
        self.record.unrecorded += lost.len() as u64;
        wanted.sort_by_key(|sample| Reverse(sample.value_ns));
        let least_ns = self.kept.iter().map(Kept::value_ns).min().unwrap_or(i64::MIN);
        let full = self.kept.len() as u64 >= self.record.keep;
        if full && wanted.first().is_some_and(|largest| largest.value_ns <= least_ns) {
            self.record.smaller += wanted.len() as u64;
            wanted.clear();
        }
        wanted
    }

    /// Whether a part of a sample's time was not recorded.
    fn paused(&self, sample: &SnapshotSample) -> bool {
        let [from_ns, to_ns] = span(sample);
        self.pauses.iter().rev().any(|pause| from_ns < pause.t1_ns && pause.t0_ns < to_ns)
    }

    /// Takes one for these samples, largest first, recording being off since `off_ns`.
    pub(super) fn take(&mut self, samples: Vec<SnapshotSample>, off_ns: i64) -> Result<(), Error> {
        let number = self.record.taken;
        self.record.taken += 1;
        let from_ns = samples.iter().map(|sample| span(sample)[0]).min().unwrap_or(off_ns);
        let to_ns = samples.iter().map(|sample| span(sample)[1]).max().unwrap_or(off_ns);
        let wanted =
            [from_ns.saturating_sub(self.record.before_ns), to_ns.saturating_add(AFTER_NS).min(off_ns)];
        let mut parts = Vec::with_capacity(self.sides.len());
        for side in &mut self.sides {
            let mut given = Vec::with_capacity(side.rings.len());
            for at in 0..side.rings.len() {
                let path = side.part(at, number);
                given.push(side.rings[at].take(self.pages, wanted, &path)?);
            }
            parts.push(given);
        }
        let reached = parts.iter().flatten().filter_map(|taken| taken.reaches_to_ns);
        let t0_ns = reached.fold(wanted[0].max(self.on_ns), i64::max);
        for (side, given) in self.sides.iter_mut().zip(&parts) {
            side.discarded.iter_mut().zip(given).for_each(|(sum, taken)| *sum += taken.discarded);
        }
        let (seen, unseen): (Vec<_>, Vec<_>) =
            samples.into_iter().partition(|sample| span(sample)[1] > t0_ns);
        self.record.unrecorded += unseen.len() as u64;
        let named = seen.iter().take(NAMED);
        let samples =
            named.map(|sample| SnapshotSample { whole: t0_ns <= span(sample)[0], ..*sample }).collect();
        let (t1_ns, samples_over) = (wanted[1], seen.len() as u64);
        let record = SnapshotRecord {
            t0_ns,
            t1_ns,
            pause: Stretch { t0_ns: off_ns, t1_ns: off_ns },
            samples_over,
            samples,
        };
        self.kept.push(Kept { number, record, parts });
        self.give_up()
    }

    /// Gives up what holds no sample, and the smallest of more than are to be kept.
    fn give_up(&mut self) -> Result<(), Error> {
        let smallest = |kept: &[Kept]| {
            let all = kept.iter().enumerate();
            all.min_by_key(|(_, one)| (one.value_ns(), Reverse(one.number)))
                .map(|(at, one)| (at, one.value_ns()))
        };
        while let Some((at, value_ns)) = smallest(&self.kept)
            && (value_ns == i64::MIN || self.kept.len() as u64 > self.record.keep)
        {
            let gone = self.kept.remove(at);
            self.record.given_up += gone.record.samples_over;
            for (side, given) in self.sides.iter_mut().zip(&gone.parts) {
                for (ring, taken) in given.iter().enumerate() {
                    side.discarded[ring] += taken.events;
                    remove(&side.part(ring, gone.number))?;
                }
            }
        }
        Ok(())
    }

    /// Whether one of these samples gets the last snapshot.
    pub(super) fn ends_with(&self, samples: &[SnapshotSample]) -> bool {
        self.last_over_ns.is_some_and(|last_ns| samples.iter().any(|one| one.value_ns >= last_ns))
    }

    /// Recording stays off since `off_ns`.
    pub(super) fn end(&mut self, off_ns: i64) {
        (self.ended, self.rest_ns) = (true, Some(off_ns));
    }

    /// The window is over: what of it lies behind the last snapshot was not recorded.
    pub(super) fn closed(&mut self, now_ns: i64) {
        if let Some(off_ns) = self.rest_ns.take() {
            self.resumed(off_ns, now_ns);
        }
    }

    /// Recording is on again since `on_ns`, after a snapshot for which it was off since `off_ns`.
    pub(super) fn resumed(&mut self, off_ns: i64, on_ns: i64) {
        self.record.paused_ns += (on_ns - off_ns).max(0) as u64;
        self.pauses.push(Stretch { t0_ns: off_ns, t1_ns: on_ns });
        let open = Stretch { t0_ns: off_ns, t1_ns: off_ns };
        let last = self.kept.iter_mut().filter(|kept| kept.record.pause == open);
        last.for_each(|kept| kept.record.pause.t1_ns = on_ns);
    }

    /// Notes why there can be no more.
    pub(super) fn broke(&mut self, error: Error) {
        self.broken.get_or_insert(error);
    }

    /// Puts what was kept together, one [`Drained`] an instance; the rings are closed.
    pub(super) fn finish(mut self) -> Result<(Vec<Drained>, SnapshotsRecord), Error> {
        if let Some(error) = self.broken {
            return Err(error);
        }
        self.kept.sort_by_key(|kept| kept.number);
        let mut drained = Vec::with_capacity(self.sides.len());
        for (at, side) in self.sides.iter().enumerate() {
            let mut one = Drained::default();
            for (ring, discarded) in side.discarded.iter().enumerate() {
                let cpu = side.rings[ring].cpu;
                let path = side.dir.join(format!("cpu{cpu}.raw"));
                let mut to = File::create(&path).map_err(|e| Error::os("create", path.display(), e))?;
                let mut pages = 0;
                for kept in &self.kept {
                    let (part, taken) = (side.part(ring, kept.number), kept.parts[at][ring]);
                    // Before any but the first there was a pause.
                    self.pages.append(&part, kept.number > 0 || taken.cut, &mut to)?;
                    remove(&part)?;
                    pages += taken.pages;
                }
                let account = side.rings[ring].account()?;
                one.accounts.push(TraceCpu { pages, discarded: *discarded, ..account });
                one.files.push((cpu, path));
            }
            drained.push(one);
        }
        self.record.kept = self.kept.into_iter().map(|kept| kept.record).collect();
        Ok((drained, self.record))
    }
}

/// The time of a sample. An early wake-up ends before its release.
fn span(sample: &SnapshotSample) -> [i64; 2] {
    let end_ns = sample.t_ns.saturating_add(sample.value_ns);
    [sample.t_ns.min(end_ns), sample.t_ns.max(end_ns)]
}

fn remove(path: &std::path::Path) -> Result<(), Error> {
    fs::remove_file(path).map_err(|source| Error::os("remove", path.display(), source))
}

/// When something was switched: just before, and just behind.
pub(super) fn timed(switch: impl FnOnce() -> Result<(), Error>) -> Result<[i64; 2], Error> {
    let before_ns = clock::now_ns();
    switch()?;
    Ok([before_ns, clock::now_ns()])
}
