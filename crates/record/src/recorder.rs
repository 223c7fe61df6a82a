//! The recorder of a run: private instances set up before the first window, switched around each
//! window, turned into one `trace.dat` at the end.
//!
//! The *victim* instance is the top buffer of the file: what runs on the measured CPUs. The
//! *sender* instance, a buffer named `sender`, holds what other CPUs aim at them, kept small by
//! in-kernel filters. Two buffers, so that a storm on one side loses nothing of the other. Where a
//! program is watched, a third, `watched`, holds what only its tasks do, on any CPU.

use super::accounts::Accounts;
use super::buffer::{Buffer, Drained, Order};
use super::groups::Groups;
use super::held::{CutPages, Held};
use super::live::{Keep, LivePages, LostEvents, Tap};
use super::programs::Programs;
use super::ring::Pages;
use super::snapshots::{SnapshotOrder, Snapshots, timed};
use super::unwritten::{RawBuffer, SENDER, Unwritten, WATCHED, Written, formats};
use ftrace::{Constants, Formats};
use journal::session::Session;
use model::events::{EventCatalogue, Side, USER_STACK};
use model::run::{SenderRecord, TraceRecord};
use model::snapshots::{SnapshotSample, SnapshotsRecord};
use model::user_frames::{self, UserFrames};
use model::{Cpus, store};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use sys::process::in_first_pid_namespace;
use sys::{Error, clock, tracefs};

/// Buffer per measured CPU. Polled every 200 ms, as while it is calm, it holds some 500,000 events
/// a second.
const VICTIM_KIB: u64 = 8192;
/// Buffer per other CPU.
const SENDER_KIB: u64 = 4096;
/// Time for the IPIs and RCU work that enabling causes to be over before the first window.
const SETTLE_NS: i64 = 300_000_000;

/// Why nothing is recorded from inside a container with processes of its own: the probe's events
/// would be taken for somebody else's.
const OTHER_NUMBERS: &str = "this process is in a PID namespace of its own, and the kernel's events number processes as the \
    first one does; run it in the host's (--pid=host, hostPID: true)";

/// Private instances that are recording, or ready to.
pub struct Recorder {
    tracefs: PathBuf,
    victim: Buffer,
    /// None where every CPU is measured.
    sender: Option<Buffer>,
    /// None where no program is watched.
    watched: Option<Buffer>,
    /// None where everything is recorded.
    snapshots: Option<Snapshots>,
    scratch: PathBuf,
    formats: Formats,
    groups: Groups,
    /// Where stacks of user space are recorded.
    programs: Option<Programs>,
    /// For who looks on; none where nobody does.
    live: LivePages,
}

/// Where a recorder records.
pub struct Place<'a> {
    /// Name of the victim instance; the sender's has `-sender` behind it.
    pub name: &'a str,
    /// The measured CPUs.
    pub measured: &'a Cpus,
    /// The other CPUs that are online.
    pub others: &'a Cpus,
    /// An empty directory for raw pages.
    pub scratch: &'a Path,
    /// Whether the kernel may be probed for senders that it has no events for.
    pub kprobes: bool,
    /// Threads of a watched program, whose own events are recorded in a third instance; empty where
    /// there is none.
    pub tids: &'a [i32],
    /// Where only what is around large samples is kept: which.
    pub snapshots: Option<SnapshotOrder>,
    /// What becomes of the pages; snapshots have no others than [`Keep::File`].
    pub keep: Keep,
}

impl Recorder {
    /// Makes the instances, enables every event of the catalogue that this kernel has, and waits
    /// until that has settled.
    pub fn prepare(
        session: &mut Session,
        catalogue: &EventCatalogue,
        place: &Place<'_>,
    ) -> Result<Self, Error> {
        if !in_first_pid_namespace() {
            return Err(Error::failed("recording events", OTHER_NUMBERS));
        }
        let tracefs = session.tracefs()?;
        let (name, measured) = (place.name, place.measured);
        let order = Order {
            name,
            side: Side::Victim,
            cpus: measured,
            measured,
            buffer_kib: VICTIM_KIB,
            // Those that a catalogue has for these CPUs were asked for one by one.
            kprobes: true,
            tids: &[],
        };
        let mut victim = Buffer::create(session, &tracefs, catalogue, &order, &place.scratch.join("victim"))?;
        let mut sender = None;
        if !place.others.is_empty() {
            let (name, cpus) = (format!("{name}-sender"), place.others);
            let (side, kprobes) = (Side::Sender, place.kprobes);
            let order =
                Order { name: &name, side, cpus, measured, buffer_kib: SENDER_KIB, kprobes, tids: &[] };
            sender =
                Some(Buffer::create(session, &tracefs, catalogue, &order, &place.scratch.join("sender"))?);
        }
        let mut watched = None;
        if !place.tids.is_empty() {
            let name = format!("{name}-watched");
            let cpus: Cpus = measured.iter().chain(place.others.iter()).collect();
            // A program is watched as it is: what its locks hold has no event, so it is probed unasked.
            let (side, kprobes, tids) = (Side::Watched, true, place.tids);
            let order =
                Order { name: &name, side, cpus: &cpus, measured, buffer_kib: SENDER_KIB, kprobes, tids };
            watched =
                Some(Buffer::create(session, &tracefs, catalogue, &order, &place.scratch.join("watched"))?);
        }
        let all = [Some(&victim), sender.as_ref(), watched.as_ref()].into_iter().flatten();
        let formats =
            formats(&tracefs, all.flat_map(|buffer| &buffer.events).map(|event| event.name.as_str()))?;
        let mut snapshots = None;
        let mut live = LivePages { taps: Vec::new(), watched: None };
        let pages = Pages::of(&formats);
        if let Some(order) = place.snapshots {
            let buffers: Vec<&Buffer> = std::iter::once(&victim).chain(&sender).chain(&watched).collect();
            snapshots = Some(Snapshots::new(order, pages, &buffers)?);
        } else {
            let tap = |cpus: usize| {
                let new = || Arc::new(Tap::new(pages.layout, pages.endian, place.keep.most_waiting(cpus)));
                place.keep.is_live().then(new)
            };
            for buffer in std::iter::once(&mut victim).chain(&mut sender) {
                let tap = tap(buffer.cpus.len());
                live.taps.extend(tap.clone());
                buffer.start_reader(pages, place.keep, tap)?;
            }
            // Apart: who looks on at CPUs alone would see a program's own events twice.
            if let Some(buffer) = &mut watched {
                let tap = tap(buffer.cpus.len());
                live.watched.clone_from(&tap);
                buffer.start_reader(pages, place.keep, tap)?;
            }
        }
        let mut groups = Groups::default();
        groups.look();
        let has_users = |buffer: &Buffer| buffer.events.iter().any(|event| event.name == USER_STACK);
        let has_users = sender.iter().chain(&watched).any(has_users);
        let mut programs = has_users.then(Programs::default);
        programs.iter_mut().for_each(Programs::look);
        clock::sleep_until(clock::now_ns() + SETTLE_NS);
        let scratch = place.scratch.to_owned();
        Ok(Self { tracefs, victim, sender, watched, snapshots, scratch, formats, groups, programs, live })
    }

    /// Starts or stops recording: the only change inside a window.
    pub fn record(&mut self, on: bool) -> Result<(), Error> {
        let [before_ns, after_ns] = timed(|| self.switch(on))?;
        if let Some(snapshots) = &mut self.snapshots {
            snapshots.switched(on, if on { after_ns } else { before_ns });
            if !on {
                snapshots.closed(before_ns);
            }
        }
        Ok(())
    }

    /// Looks which control groups threads are in, and which programs they run where that is wanted.
    /// That takes milliseconds: between windows, when the kernel's counters have been read.
    pub fn look(&mut self) {
        self.groups.look();
        self.programs.iter_mut().for_each(Programs::look);
    }

    /// Looks which programs these processes run, where that is wanted: some tens of microseconds
    /// each. One that has ended by the last look would have no names.
    pub fn look_at(&mut self, tgids: impl IntoIterator<Item = u32>) {
        if let Some(programs) = &mut self.programs {
            programs.look_at(tgids);
        }
    }

    /// Senders are recorded for as long as victims and a little longer, so that causes at the edges
    /// are there.
    fn switch(&self, on: bool) -> Result<(), Error> {
        if on {
            self.beside().try_for_each(|buffer| buffer.record(true))?;
        }
        self.victim.record(on)?;
        if !on {
            self.beside().try_for_each(|buffer| buffer.record(false))?;
        }
        Ok(())
    }

    /// It wants samples at or above this value, ns.
    pub fn over_ns(&self) -> Option<i64> {
        self.snapshots.as_ref().map(Snapshots::over_ns)
    }

    /// Takes note of samples that have reached that value while recording was on, with a snapshot
    /// where they are worth one. What goes wrong ends the run ([`Recorder::failed`]).
    pub fn seen(&mut self, over: Vec<SnapshotSample>) {
        let Some(mut snapshots) = self.snapshots.take() else { return };
        let wanted = snapshots.wanted(over);
        if !wanted.is_empty() && !snapshots.failed() {
            self.snapshot(&mut snapshots, wanted).unwrap_or_else(|error| snapshots.broke(error));
        }
        self.snapshots = Some(snapshots);
    }

    fn snapshot(&self, snapshots: &mut Snapshots, wanted: Vec<SnapshotSample>) -> Result<(), Error> {
        let [off_ns, _] = timed(|| self.switch(false))?;
        snapshots.switched(false, off_ns);
        let last = snapshots.ends_with(&wanted);
        snapshots.take(wanted, off_ns)?;
        if last {
            snapshots.end(off_ns);
            return Ok(());
        }
        let [_, on_ns] = timed(|| self.switch(true))?;
        snapshots.switched(true, on_ns);
        snapshots.resumed(off_ns, on_ns);
        Ok(())
    }

    /// The instances beside the victim's.
    fn beside(&self) -> impl Iterator<Item = &Buffer> {
        self.sender.iter().chain(&self.watched)
    }

    /// Whether a reader has died, so that going on is pointless.
    pub fn failed(&self) -> bool {
        self.snapshots.as_ref().is_some_and(Snapshots::failed)
            || self.victim.failed()
            || self.beside().any(Buffer::failed)
    }

    /// The pages for who looks on.
    pub fn live(&self) -> LivePages {
        self.live.clone()
    }

    /// Counts lost events while the recorder is in other hands.
    pub fn losses(&self) -> LostEvents {
        let all = std::iter::once(&self.victim).chain(self.beside());
        LostEvents { buffers: all.map(|buffer| (buffer.instance.clone(), buffer.cpus.clone())).collect() }
    }

    /// The formats of its events.
    pub fn formats(&self) -> &Formats {
        &self.formats
    }

    /// The kernel's texts that events point to.
    pub fn constants(&self) -> Constants {
        Constants::parse(&tracefs::read(&self.tracefs.join("printk_formats")).unwrap_or_default())
    }

    /// Removes the instances, with all that was recorded.
    pub fn discard(mut self, session: &mut Session) -> Result<(), Error> {
        self.record(false)?;
        drop(self.drain()?);
        self.remove(session)
    }

    /// Drains the buffers, takes the kernel's accounts, writes `trace.dat` into the run and removes
    /// the instances.
    pub fn finish(mut self, session: &mut Session, run: &Path) -> Result<TraceRecord, Error> {
        self.record(false)?;
        self.look();
        let (drained, snapshots) = self.drain()?;
        let unwritten = self.unwritten(drained, snapshots)?;
        let Written { record, users } = unwritten.write(run)?;
        if let Some(programs) = &self.programs {
            let (schema, frames) = (user_frames::SCHEMA.to_owned(), programs.name(&users));
            store::write_json(&run.join(user_frames::FILE), &UserFrames { schema, frames })?;
        }
        self.remove(session)?;
        Ok(record)
    }

    /// Writes the pages of a stretch of what is held into a directory, for a `trace.dat` that
    /// somebody else may write, while recording goes on. `before`: the kernel's accounts from
    /// before that time; what was lost before is not of this trace.
    pub fn cut(
        &mut self,
        held: &Held,
        span: [i64; 2],
        before: &Accounts,
        dir: &Path,
    ) -> Result<Unwritten, Error> {
        self.groups.look_anew();
        let pages = held.cut(span, dir)?;
        let accounts = self.accounts()?.since(before);
        let reaches_to_ns = held.reaches_to_ns().map_or(span[0], |held_ns| held_ns.max(span[0]));
        let of = |buffer: &Buffer| {
            let ours: Vec<&CutPages> = pages.iter().filter(|cut| buffer.cpus.contains(&cut.cpu)).collect();
            Drained {
                files: ours.iter().map(|cut| (cut.cpu, cut.path.clone())).collect(),
                accounts: ours.iter().map(|cut| accounts.of_cut(cut)).collect(),
                reaches_to_ns: Some(reaches_to_ns),
            }
        };
        self.unwritten([Some(of(&self.victim)), self.sender.as_ref().map(of), None], None)
    }

    /// The kernel's accounts of the CPUs' buffers, without a watched program's own.
    pub fn accounts(&self) -> Result<Accounts, Error> {
        let buffers = std::iter::once(&self.victim).chain(&self.sender);
        let cpus = buffers.flat_map(|buffer| buffer.cpus.iter().map(|cpu| buffer.instance.account(*cpu)));
        Ok(Accounts::of(cpus.collect::<Result<_, _>>()?))
    }

    /// What goes into the file.
    fn unwritten(
        &self,
        [victim, sender, watched]: [Option<Drained>; 3],
        snapshots: Option<SnapshotsRecord>,
    ) -> Result<Unwritten, Error> {
        let victim = victim.unwrap_or_default();
        let names = |buffer: &Buffer| buffer.events.iter().map(|event| event.name.clone()).collect();
        let from_ns = [Some(&victim), sender.as_ref(), watched.as_ref()];
        let from_ns = from_ns.into_iter().flatten().filter_map(|one| one.reaches_to_ns).max();
        let mut buffers = vec![RawBuffer { files: victim.files, stats: self.victim.stats()? }];
        let mut beside = |name: &str, buffer: &Option<Buffer>, drained: Option<Drained>| {
            let Some((buffer, drained)) = buffer.as_ref().zip(drained) else { return Ok(None) };
            buffers.push(RawBuffer { files: drained.files, stats: buffer.stats()? });
            Ok::<_, Error>(Some(SenderRecord {
                buffer: name.to_owned(),
                instance: buffer.target.clone(),
                buffer_kib: SENDER_KIB,
                events: names(buffer),
                absent: buffer.absent.clone(),
                cpus: drained.accounts,
            }))
        };
        let record = TraceRecord {
            from_ns,
            file: store::TRACE.to_owned(),
            clock: "mono".to_owned(),
            instance: self.victim.target.clone(),
            buffer_kib: VICTIM_KIB,
            events: names(&self.victim),
            absent: self.victim.absent.clone(),
            cpus: victim.accounts,
            sender: beside(SENDER, &self.sender, sender)?,
            watched: beside(WATCHED, &self.watched, watched)?,
            snapshots,
            groups: self.groups.by_path(),
        };
        Ok(Unwritten { tracefs: self.tracefs.clone(), record, buffers })
    }

    fn remove(self, session: &mut Session) -> Result<(), Error> {
        self.victim.remove(session)?;
        let mut beside = self.sender.into_iter().chain(self.watched);
        beside.try_for_each(|buffer| buffer.remove(session))?;
        fs::remove_dir(&self.scratch).map_err(|source| Error::os("remove", self.scratch.display(), source))
    }

    /// Takes out what is left: victim, sender, watched; and how that was cut down to snapshots,
    /// where it was.
    fn drain(&mut self) -> Result<([Option<Drained>; 3], Option<SnapshotsRecord>), Error> {
        if let Some(snapshots) = self.snapshots.take() {
            let (drained, record) = snapshots.finish()?;
            let mut drained = drained.into_iter();
            let mut next = |there: bool| if there { drained.next() } else { None };
            let all = [next(true), next(self.sender.is_some()), next(self.watched.is_some())];
            return Ok((all, Some(record)));
        }
        let rest = |buffer: &mut Option<Buffer>| buffer.as_mut().map(Buffer::drain).transpose();
        let all = [Some(self.victim.drain()?), rest(&mut self.sender)?, rest(&mut self.watched)?];
        Ok((all, None))
    }
}
