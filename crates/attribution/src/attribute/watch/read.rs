//! From a run directory to its section: one pass of the trace through [`Watch`], then names for
//! the result.

use super::decode::Decoder;
use super::program::{Follow, Watch};
use super::shape::{Chain, Preemption, Release, ReleaseKind, ThreadSection, WatchSection};
use super::thread::{ReleaseKey, ReleaseSums, State, Thread, Waker};
use super::waker::By;
use crate::Error;
use crate::attribute::lint::program::{Lint, Recorded};
use crate::attribute::locks::waits::Locks;
use crate::attribute::paths::Keep;
use crate::attribute::wakeups;
use crate::decode;
use crate::names::Names;
use crate::prio::Prio;
use ftrace::{Item, TraceFile};
use model::events::{EventCatalogue, PAGE_FAULT, USER_STACK};
use model::run::{Run, SenderRecord, TraceRecord};
use model::syscalls::{SYSCALLS, Wait};
use model::watch::{FILE, SCHEMA, WatchRecord};
use model::{Cpus, locking, store};
use std::collections::BTreeMap;
use std::path::Path;

/// The wake-ups that are kept of each thread, the latest.
const KEEP: Keep = Keep { worst: 5, sample: None };

/// The most rows of releases and preemptions of a thread, and chains of a program.
const MOST_LISTED: usize = 100;

/// What a run has of the program that was watched; `None` where none was.
pub(crate) fn record(dir: &Path) -> Result<Option<WatchRecord>, Error> {
    let path = dir.join(FILE);
    if !path.exists() {
        return Ok(None);
    }
    let record: WatchRecord = store::read_json(&path)?;
    if record.schema != SCHEMA {
        let found = format!("schema {:?}", record.schema);
        return Err(model::Error::invalid(path.display(), found, SCHEMA).into());
    }
    Ok(Some(record))
}

/// The section of a watched program in a run; `None` where none was watched.
pub fn read(dir: &Path, run: &Run) -> Result<Option<WatchSection>, Error> {
    let (Some(trace), Some(record)) = (&run.trace, record(dir)?) else { return Ok(None) };
    let Some(phase) = run.phases.first() else { return Ok(None) };
    let file = TraceFile::open(&dir.join(&trace.file))?;
    let catalogue = EventCatalogue::embedded()?;
    let mut spans =
        decode::Decoder::of(&file, &catalogue)?.knowing(&run.idle_states, &run.frequency_change_ns);
    let mut decoder = Decoder::new(file.formats(), file.symbols()?, &mut spans.tasks_mut().labels);
    if let Some(frames) = decode::program_functions(&file)? {
        decoder = decoder.naming(file.formats(), frames);
    }
    let (before, later): (Vec<_>, Vec<_>) = record.tasks.iter().partition(|task| task.before);
    let tasks = before.into_iter().map(|task| (task.tid, task.syscall.map(Into::into)));
    let mut watch = Watch::new(&record.arch, phase.t0_ns, tasks).following(Follow::Made);
    watch.expect(later.into_iter().map(|task| task.tid));
    watch.recorded_on(&run.measured_cpus);
    let threads = record.tasks.iter().map(|task| (task.tid, task.tgid));
    let before = record.tasks.iter().filter(|task| task.before).map(|task| task.tid);
    let mut locks = Locks::new(&record.arch, threads, record.glibc.iter().copied()).were_there(before);
    let mut lint = record.lint.is_some().then(|| Lint::new(&record, recorded(trace)));
    let beside = [&trace.sender, &trace.watched].into_iter().flatten().map(|one| one.buffer.as_str());
    let names: Vec<&str> = std::iter::once("").chain(beside).collect();
    let mut stream = file.stream_buffers(&names)?;
    while let Some(item) = stream.next()? {
        match item {
            Item::Event(event) => {
                let event = decoder.decode(&event, spans.tasks_mut());
                watch.event(&event, spans.tasks());
                locks.event(&event);
                lint.iter_mut().for_each(|lint| lint.event(&event));
            }
            Item::Lost { cpu, before_ts_ns, .. } => {
                watch.lost(cpu);
                locks.lost(i64::try_from(before_ts_ns).unwrap_or(i64::MAX));
            }
        }
    }
    watch.finish(phase.t1_ns);
    record.lock_words.iter().for_each(|one| locks.at_the_end(one, phase.t0_ns));
    locks.finish(phase.t1_ns);
    lint.iter_mut().for_each(Lint::finish);
    let builder = SectionBuilder { watch: &watch, tasks: spans.tasks(), record: &record };
    let mut section = builder.section(phase.t0_ns, phase.t1_ns);
    let text = |label| spans.tasks().labels.text(label).to_owned();
    section.locks = locks.section(&|tid| builder.comm(tid), &text);
    section.lint = lint.map(|lint| lint.section(&|tid| builder.comm(tid), &text, section.locks.as_ref()));
    let wakeups = watch.wakeups.as_deref().unwrap_or_default();
    let chosen = wakeups::choose(wakeups, &run.measured_cpus, None, false);
    if chosen.has_threads() {
        let sender = trace.sender.as_ref().map(|sender| sender.buffer.as_str());
        let buffers: Vec<&str> = [Some(""), sender].into_iter().flatten().collect();
        let window = [phase.t0_ns, phase.t1_ns];
        let apart = wakeups::take_apart(&file, &mut spans, &buffers, window, &chosen, KEEP)?;
        section.paths = apart.paths;
        section.attribution = apart.attribution;
        section.statements.extend(chosen.statement());
    }
    section.statements.extend(elsewhere(&watch, &run.measured_cpus));
    if let Some(watched) = &trace.watched {
        section.statements.extend(call_losses(watched, &events_of(&file, &watched.buffer)?));
    }
    if trace.watched.as_ref().is_none_or(|watched| watched.events.is_empty()) {
        section.statements.push(
            "system calls were not recorded: what a thread waited for is known of timers and signals alone"
                .to_owned(),
        );
    }
    Ok(Some(section))
}

/// What mistakes can be looked for.
fn recorded(trace: &TraceRecord) -> Recorded {
    let probes = [locking::ASK, locking::WAIT, locking::RETURN, locking::RELEASE, locking::SIGNAL];
    let watched = trace.watched.iter().flat_map(|watched| &watched.events);
    let every_locking = probes.iter().all(|probe| watched.clone().any(|name| name == probe));
    let has = |event: &str| watched.clone().any(|name| name == event);
    let apart = has(PAGE_FAULT);
    let faults = apart || trace.events.iter().any(|name| name == PAGE_FAULT);
    Recorded { faults, fault_stacks: apart && has(USER_STACK), every_locking }
}

/// The events of one buffer, by CPU.
fn events_of(file: &TraceFile, buffer: &str) -> Result<BTreeMap<u32, u64>, Error> {
    let mut events = BTreeMap::new();
    let mut stream = file.stream_buffers(&[buffer])?;
    while let Some(item) = stream.next()? {
        if let Item::Event(event) = item {
            *events.entry(event.cpu).or_default() += 1;
        }
    }
    Ok(events)
}

/// The section of the watched threads in a trace that another tool recorded.
pub(crate) fn of_trace(
    watch: &Watch,
    tasks: &Names,
    asked: String,
    [t0_ns, t1_ns]: [i64; 2],
) -> WatchSection {
    let record = WatchRecord { arch: String::new(), ..WatchRecord::of(asked, Vec::new()) };
    SectionBuilder { watch, tasks, record: &record }.section(t0_ns, t1_ns)
}

/// The statement about threads that left the CPUs whose switches are recorded.
fn elsewhere(watch: &Watch, recorded: &Cpus) -> Option<String> {
    let away = |thread: &&Thread| thread.cpus.iter().any(|cpu| !recorded.contains(*cpu));
    let cpus: Cpus = watch.threads.iter().flat_map(|thread| thread.cpus.iter().copied()).collect();
    let threads = watch.threads.iter().filter(away).count();
    (threads > 0).then(|| {
        format!(
            "{} ran on CPUs {} too, which were not recorded in full: time there counts as unknown, and wake-ups there are missing \
             (--cpus names other CPUs to record)",
            if threads == 1 { "1 thread".to_owned() } else { format!("{threads} threads") },
            cpus.minus(recorded)
        )
    })
}

/// The statement about activations without a recorded switch.
fn missing_switches(missing: u64, threads: &[Thread]) -> String {
    let sum = |of: fn(&Thread) -> u64| threads.iter().map(of).sum::<u64>();
    let (all, left) = (sum(|thread| thread.unseen_switches), sum(|thread| thread.only_left));
    let left_out = match threads.iter().map(|thread| thread.only_left_most_ns).max() {
        Some(most_ns) if left > 0 => format!(
            "; of {left} that were seen only as they left the CPU again it is left out, and was at most {:.3} us",
            most_ns as f64 / 1e3
        ),
        _ => String::new(),
    };
    format!(
        "{missing} context switches are missing from the trace, though the kernel counts none as lost: who leaves a CPU is not who came. \
         {all} activations of the program are concerned, whose time until then counts as unknown: the latency of {} counts to the thread's \
         next event{left_out}",
        all - left
    )
}

/// The statement about lost events of the watched program.
fn call_losses(watched: &SenderRecord, events: &BTreeMap<u32, u64>) -> Option<String> {
    let recorded = |cpu: u32| events.get(&cpu).copied().unwrap_or(0);
    let missing: u64 = watched
        .cpus
        .iter()
        .map(|cpu| {
            cpu.left + cpu.overrun + cpu.commit_overrun + cpu.dropped + cpu.read.abs_diff(recorded(cpu.cpu))
        })
        .sum();
    (missing > 0).then(|| {
        format!(
            "{missing} events of the program's system calls are lost: what it waited for may be reported wrongly"
        )
    })
}

/// Builds the section, with names.
struct SectionBuilder<'a> {
    watch: &'a Watch,
    tasks: &'a Names,
    record: &'a WatchRecord,
}

/// Policy and priority, such as `SCHED_FIFO 60`. The scheduler's events show the class and the
/// priority; the policy was polled (`polled`) and counts where it agrees with them.
pub(crate) fn policy(polled: Option<&str>, prio: Prio) -> Option<String> {
    let first =
        |text: &&str| ["SCHED_FIFO", "SCHED_RR", "SCHED_DEADLINE"].iter().any(|one| text.starts_with(one));
    if let Some(priority) = prio.realtime() {
        let agrees = |text: &&str| first(text) && text.ends_with(&format!(" {priority}"));
        return Some(polled.filter(agrees).map_or_else(|| format!("FIFO or RR {priority}"), str::to_owned));
    }
    if prio == Prio::DEADLINE {
        return Some("SCHED_DEADLINE".to_owned());
    }
    if prio.is_fair() {
        return Some(polled.filter(|text| !first(text)).unwrap_or("fair").to_owned());
    }
    polled.map(str::to_owned)
}

impl SectionBuilder<'_> {
    fn section(&self, t0_ns: i64, t1_ns: i64) -> WatchSection {
        let mut threads: Vec<_> = self.watch.threads.iter().map(|thread| self.thread(thread)).collect();
        threads.sort_by_key(|thread| (std::cmp::Reverse(thread.activations), thread.tid));
        let mut chains: Vec<_> = self
            .watch
            .chains
            .iter()
            .map(|(tids, node)| Chain {
                comms: tids.iter().map(|tid| self.comm(*tid)).collect(),
                tids,
                n: node.n,
                latency: node.latency.summary(),
            })
            .collect();
        chains.sort_by_key(|chain| (std::cmp::Reverse(chain.n), chain.tids.len()));
        let unlisted = chains.len().saturating_sub(MOST_LISTED);
        chains.truncate(MOST_LISTED);
        let mut statements = Vec::new();
        if unlisted > 0 {
            statements.push(format!("{unlisted} rarer chains of wake-ups are not listed"));
        }
        if self.watch.missing > 0 {
            statements.push(missing_switches(self.watch.missing, &self.watch.threads));
        }
        let unseen = self.watch.threads.iter().filter(|thread| thread.state == State::Before).count();
        if unseen > 0 {
            statements.push(format!(
                "{unseen} threads neither ran nor were woken, or ran all the time: their time counts as unknown"
            ));
        }
        WatchSection {
            asked: self.record.asked.clone(),
            t0_ns,
            t1_ns,
            command: self.record.command.clone(),
            threads,
            paths: Vec::new(),
            locks: None,
            lint: None,
            attribution: Vec::new(),
            chains,
            chains_dropped: self.watch.chains.dropped,
            statements,
        }
    }

    fn comm(&self, tid: i32) -> String {
        let known = self.tasks.of(tid).map(|name| self.tasks.labels.text(name).to_owned());
        let stored = || self.record.tasks.iter().find(|task| task.tid == tid).map(|task| task.comm.clone());
        known.or_else(stored).unwrap_or_default()
    }

    fn thread(&self, thread: &Thread) -> ThreadSection {
        let task = self.record.tasks.iter().find(|task| task.tid == thread.tid);
        let comm = match thread.comm {
            Some(label) => self.tasks.labels.text(label).to_owned(),
            None => self.comm(thread.tid),
        };
        ThreadSection {
            tid: thread.tid,
            tgid: task.map(|task| task.tgid),
            comm,
            policy: policy(task.map(|task| task.policy.as_str()), thread.prio),
            prio: thread.prio.number(),
            times: thread.times,
            cpus: thread.ran_on(),
            activations: thread.activations,
            early_wakes: thread.early_wakes,
            unseen_switches: thread.unseen_switches,
            run_latency: thread.run_latency.summary(),
            releases: self.releases(thread, task.map(|task| task.tgid)),
            preemptions: self.preemptions(thread),
            migrations_waking: thread.migrations[0],
            migrations_runnable: thread.migrations[1],
        }
    }

    fn releases(&self, thread: &Thread, tgid: Option<i32>) -> Vec<Release> {
        let mut rows: Vec<_> =
            thread.releases.iter().map(|(key, sums)| self.release(key, sums, tgid)).collect();
        rows.sort_by(|a, b| b.n.cmp(&a.n).then_with(|| (a.kind, &a.by).cmp(&(b.kind, &b.by))));
        rows.truncate(MOST_LISTED);
        rows
    }

    fn release(&self, key: &ReleaseKey, sums: &ReleaseSums, tgid: Option<i32>) -> Release {
        let label = |label| self.tasks.labels.text(label).to_owned();
        let (by, by_tid) = match key.by {
            By::Timer { function } => (label(function), None),
            By::Interrupt(what) => (label(what), None),
            By::SomeInterrupt => ("an interrupt".to_owned(), None),
            By::Thread(tid) => (self.comm(tid), Some(tid)),
            By::Unknown => ("unknown".to_owned(), None),
        };
        Release {
            kind: self.kind(key, &by, tgid),
            call: key.call.map(|(name, _)| name.to_owned()),
            by,
            by_tid,
            signal: key.signal,
            from: sums.from.iter().copied().collect(),
            n: sums.n,
            lateness: sums.lateness.summary(),
            run_latency: sums.run_latency.summary(),
            total: sums.total.summary(),
        }
    }

    fn kind(&self, key: &ReleaseKey, by: &str, tgid: Option<i32>) -> ReleaseKind {
        // A timeout by jiffies: kernel/time/sleep_timeout.c, `schedule_timeout`.
        let timer = matches!(key.by, By::Timer { .. }) || key.by_interrupt() && by == "process_timeout";
        let call = key.call.and_then(|(name, fd)| Some((SYSCALLS.iter().find(|one| one.name == name)?, fd)));
        match call.map(|(call, fd)| (call.wait, fd)) {
            _ if key.start => ReleaseKind::Start,
            _ if timer => ReleaseKind::Timer,
            _ if key.signal.is_some() => ReleaseKind::Signal,
            Some((Wait::Futex, _)) => ReleaseKind::Futex,
            Some((Wait::MessageQueue, _)) => ReleaseKind::MessageQueue,
            Some((Wait::Descriptor, fd)) => self.descriptor(tgid, fd),
            Some((Wait::Poll, _)) => ReleaseKind::Poll,
            Some((Wait::Signal, _)) => ReleaseKind::Signal,
            Some((Wait::Child, _)) => ReleaseKind::Child,
            Some((Wait::SystemV, _)) => ReleaseKind::SystemV,
            Some((Wait::Sleep | Wait::Other, _)) | None => ReleaseKind::Other,
        }
    }

    fn descriptor(&self, tgid: Option<i32>, fd: u64) -> ReleaseKind {
        let found = self.record.descriptors.iter().find(|one| Some(one.tgid) == tgid && one.fd == fd);
        match found.map(|one| one.target.as_str()) {
            Some(target) if target.starts_with("pipe:") => ReleaseKind::Pipe,
            Some(target) if target.starts_with("socket:") => ReleaseKind::Socket,
            Some("anon_inode:[eventfd]") => ReleaseKind::Eventfd,
            _ => ReleaseKind::File,
        }
    }

    fn preemptions(&self, thread: &Thread) -> Vec<Preemption> {
        let text = |waker| match waker {
            Waker::Named(label) => self.tasks.labels.text(label).to_owned(),
            Waker::SomeInterrupt => "an interrupt".to_owned(),
        };
        let mut rows: Vec<_> = thread
            .preemptions
            .iter()
            .map(|(key, sums)| Preemption {
                by: self.tasks.labels.text(key.by).to_owned(),
                by_tid: sums.tid,
                woken_by: key.woken.map(text),
                n: sums.n,
                lost: sums.lost.summary(),
            })
            .collect();
        let lost = |row: &Preemption| row.lost.map_or(0.0, |lost| lost.mean_ns * lost.n as f64);
        rows.sort_by(|a, b| lost(b).total_cmp(&lost(a)).then_with(|| a.by.cmp(&b.by)));
        rows.truncate(MOST_LISTED);
        rows
    }
}

impl ReleaseKey {
    fn by_interrupt(&self) -> bool {
        matches!(self.by, By::Interrupt(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scheduler_s_events_decide_over_what_was_looked_up() {
        let of = |polled, number| policy(polled, Prio::new(number)).unwrap();
        assert_eq!(of(Some("SCHED_FIFO 60"), 39), "SCHED_FIFO 60");
        assert_eq!(of(Some("SCHED_OTHER"), 69), "FIFO or RR 30");
        assert_eq!(of(None, 79), "FIFO or RR 20");
        assert_eq!(of(Some("SCHED_FIFO 60"), 120), "fair");
        assert_eq!(of(None, 120), "fair");
        assert_eq!(of(Some("policy 7"), 120), "policy 7");
        assert_eq!(of(Some("SCHED_BATCH"), 120), "SCHED_BATCH");
        assert_eq!(of(Some("SCHED_OTHER"), -1), "SCHED_DEADLINE");
        assert_eq!(policy(None, Prio::UNKNOWN), None);
    }
}
