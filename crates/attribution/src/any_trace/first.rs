//! What is in the trace, which threads are the wanted ones, and when each was to run and ran.

use super::events::arch;
use super::{Threads, Wanted};
use crate::Error;
use crate::attribute::watch::WatchSection;
use crate::attribute::watch::decode::{Decoder, head};
use crate::attribute::watch::program::{Follow, Wakeup, Watch};
use crate::attribute::watch::read::of_trace;
use crate::holes::Hole;
use crate::labels::LabelId;
use crate::names::Names;
use crate::records::Record;
use ftrace::{Event, TraceFile};
use model::Cpus;

/// What was found.
#[derive(Debug)]
pub(super) struct Found {
    /// First and last event.
    pub(super) t0_ns: i64,
    pub(super) t1_ns: i64,
    pub(super) cpus: Cpus,
    pub(super) events: u64,
    pub(super) holes: u64,
    /// Names of the events of which there are some.
    pub(super) seen: Vec<String>,
    pub(super) section: WatchSection,
    pub(super) wakeups: Vec<Wakeup>,
}

/// Where an event lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Before,
    Inside,
    Behind,
    /// It ends the reading.
    End,
}

/// The threads while the trace streams by.
pub(super) struct First<'t> {
    file: &'t TraceFile,
    wanted: &'t Wanted,
    decoder: Decoder,
    pub(super) watch: Watch,
    /// By event number, and by CPU number: whether there is one.
    kinds: Vec<bool>,
    cpus: Vec<bool>,
    /// By number: the events that end the reading.
    end: &'t [bool],
    events: u64,
    holes: u64,
    /// Of the first event and of the last.
    extent: Option<[i64; 2]>,
}

impl<'t> First<'t> {
    /// `mono`: its clock is CLOCK_MONOTONIC.
    pub(super) fn new(
        file: &'t TraceFile,
        wanted: &'t Wanted,
        mono: bool,
        tasks: &mut Names,
    ) -> Result<Self, Error> {
        let decoder = Decoder::new(file.formats(), file.symbols()?, &mut tasks.labels);
        let watch = watch(file, tasks, wanted, mono);
        let (kinds, cpus) = (vec![false; usize::from(u16::MAX) + 1], Vec::new());
        Ok(Self { file, wanted, decoder, watch, kinds, cpus, end: &[], events: 0, holes: 0, extent: None })
    }

    /// Up to the first of some events, by number.
    pub(super) fn until(mut self, end: &'t [bool]) -> Self {
        self.end = end;
        self
    }

    /// The next event, its record, and the names of that one's tasks.
    #[inline(always)]
    pub(super) fn event(
        &mut self,
        event: &Event<'_>,
        record: &Record<'_>,
        names: [LabelId; 2],
        tasks: &mut Names,
    ) -> Place {
        let ts_ns = i64::try_from(event.ts_ns).unwrap_or(i64::MAX);
        let [from_ns, until_ns] = self.wanted.window;
        if ts_ns < from_ns {
            return Place::Before;
        }
        if ts_ns > until_ns {
            return Place::Behind;
        }
        if let Some([_, last]) = &mut self.extent {
            *last = ts_ns;
        } else {
            self.begin(ts_ns);
        }
        self.events += 1;
        if !self.kinds[usize::from(event.id)] && self.is_end(event.id) {
            return Place::End;
        }
        match self.cpus.get_mut(event.cpu as usize) {
            Some(seen) => *seen = true,
            None => self.new_cpu(event.cpu),
        }
        let says = || self.decoder.knows(event.id);
        if !self.watch.passes(&head(event), record, names, says) {
            self.take(*event, *record, names, tasks);
        }
        Place::Inside
    }

    /// The first event with this number: whether it is one that ends the reading.
    #[cold]
    fn is_end(&mut self, id: u16) -> bool {
        self.kinds[usize::from(id)] = true;
        self.end.get(usize::from(id)).copied().unwrap_or(false)
    }

    #[cold]
    fn begin(&mut self, t0_ns: i64) {
        self.watch.begin(t0_ns);
        self.extent = Some([t0_ns; 2]);
    }

    #[cold]
    fn new_cpu(&mut self, cpu: u32) {
        self.cpus.resize(cpu as usize + 1, false);
        self.cpus[cpu as usize] = true;
    }

    /// Events and records are passed as copies: without a pointer to them they stay in registers.
    #[inline(never)]
    fn take(&mut self, event: Event<'_>, record: Record<'_>, names: [LabelId; 2], tasks: &mut Names) {
        let said = self.decoder.of_record(&event, &record, names, tasks);
        self.watch.event(&said, tasks);
    }

    /// Events are missing.
    pub(super) fn lost(&mut self, hole: Hole) {
        if hole.touches(self.wanted.window) {
            self.holes += 1;
            self.watch.lost(hole.cpu);
        }
    }

    /// The trace, or its window, ends.
    pub(super) fn finish(mut self, tasks: &Names) -> Result<Found, Error> {
        let [t0_ns, t1_ns] = self.extent.ok_or_else(|| nothing(self.file))?;
        self.watch.finish(t1_ns);
        let seen = self.file.formats().iter().filter(|format| self.kinds[usize::from(format.id)]);
        let section = of_trace(&self.watch, tasks, asked(self.wanted), [t0_ns, t1_ns]);
        Ok(Found {
            t0_ns,
            t1_ns,
            cpus: (0..).zip(&self.cpus).filter(|(_, seen)| **seen).map(|(cpu, _)| cpu).collect(),
            events: self.events,
            holes: self.holes,
            seen: seen.map(ftrace::EventFormat::full_name).collect(),
            section,
            wakeups: self.watch.wakeups.take().unwrap_or_default(),
        })
    }
}

fn watch(file: &TraceFile, tasks: &mut Names, wanted: &Wanted, mono: bool) -> Watch {
    let numbers: &[i32] = if let Threads::Numbers(numbers) = &wanted.threads { numbers } else { &[] };
    let follow = match &wanted.threads {
        Threads::RealTime => Follow::RealTime,
        Threads::Named(name) => Follow::Named(tasks.labels.id(name)),
        Threads::Numbers(_) => Follow::Nobody,
    };
    let mut watch = Watch::new(arch(file), 0, numbers.iter().map(|tid| (*tid, None))).following(follow);
    if !mono {
        watch.by_another_clock();
    }
    watch
}

fn asked(wanted: &Wanted) -> String {
    let threads = match &wanted.threads {
        Threads::RealTime => "threads under real-time policies and with deadlines".to_owned(),
        Threads::Named(name) => format!("threads named {name}"),
        Threads::Numbers(numbers) => {
            let numbers: Vec<String> = numbers.iter().map(i32::to_string).collect();
            format!("threads {}", numbers.join(", "))
        }
    };
    let on = wanted.cpus.as_ref().map(|cpus| format!(" on CPUs {cpus}")).unwrap_or_default();
    threads + &on
}

fn nothing(file: &TraceFile) -> Error {
    let what = "no event of it is in the time that is asked for";
    model::Error::invalid(file.path().display(), what, "a window in which something was recorded").into()
}

impl Found {
    /// What is missing or not known, one sentence each.
    pub(super) fn statements(&self, wanted: &Wanted, clock: &str) -> Vec<String> {
        let mut statements = self.section.statements.clone();
        let has = |name: &str| self.seen.iter().any(|one| one == name);
        if clock != "mono" {
            statements.push(format!(
                "the clock is {clock}: times of different CPUs may lie apart by microseconds, and the lateness of timers is known only from \
                 the interrupt's own look at the clock on (record with -C mono)"
            ));
        }
        if !has("sched:sched_switch") {
            statements.push(
                "there is no sched:sched_switch in it: who ran when is not known, and no wake-up can be taken apart".to_owned(),
            );
        } else if !has("sched:sched_waking") && !has("sched:sched_wakeup") {
            statements.push(
                "there are no wake-ups in it (sched:sched_waking): nobody's latency is known".to_owned(),
            );
        } else if self.wakeups.is_empty() {
            statements.push(format!(
                "none of the {} was seen to be woken and to run (others by --comm NAME or --pid N)",
                asked(wanted)
            ));
        }
        let unasked = self.wakeups.iter().filter(|one| one.unasked).count();
        if unasked > 0 {
            statements.push(format!(
                "of {} wake-ups {unasked} count only from when the thread was queued: who asked for them, and how late that was, is not in \
                 the trace (sched:sched_waking, on the CPUs from which they came)",
                self.wakeups.len()
            ));
        }
        let counted: u64 = self.section.threads.iter().filter_map(|thread| Some(thread.run_latency?.n)).sum();
        let untaken = counted.saturating_sub(self.wakeups.len() as u64);
        if untaken > 0 {
            statements.push(format!(
                "of {counted} run latencies {untaken} end with the thread's first event: the switch to it is not in the trace, and \
                 these wake-ups are not taken apart"
            ));
        }
        if !has("timer:hrtimer_start") || !has("timer:hrtimer_expire_entry") {
            statements.push(
                "timers were not recorded (timer:hrtimer_start, timer:hrtimer_expire_entry): a wake-up counts from the moment that somebody \
                 asked for it, and how late its timer was is not in it"
                    .to_owned(),
            );
        }
        let elsewhere = |cpus: &Cpus| {
            self.section.threads.iter().any(|thread| thread.cpus.iter().any(|cpu| !cpus.contains(cpu)))
        };
        if wanted.cpus.as_ref().is_some_and(elsewhere) {
            statements.push(
                "some of these threads ran on other CPUs, too: run latencies count their wake-ups on all CPUs, and only those on the \
                 CPUs that are asked for are taken apart"
                    .to_owned(),
            );
        }
        if self.holes > 0 {
            statements.push(format!(
                "events are missing in {} places: wake-ups on whose way some are missing are not taken apart",
                self.holes
            ));
        }
        statements
    }
}
