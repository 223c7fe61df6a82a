//! What a monitor does again and again: takes in what the kernel has recorded, finds what is late,
//! keeps the recording of breaches, and sums the rest.

use super::DIRECTORY;
use super::action::Action;
use super::entry;
use super::history::History;
use super::keeping::{Keeping, PAGES, UNWRITTEN};
use super::offences;
use super::options::StartArgs;
use super::outlets::Outlets;
use super::reports::Reports;
use super::standing::{Sums, cost};
use super::store::{Store, begin_run};
use super::taken::Taken;
use crate::run::facts::{own_cost, write_findings, write_snapshot};
use crate::run::output::RunOutput;
use crate::run::place::Place;
use crate::run::recording::{self, Wanted};
use crate::stdout;
use crate::top::drift::Drift;
use crate::top::engine::{Engine, Feed};
use anyhow::Context;
use attribution::live::long::LongEvent;
use attribution::live::wakeups::{LateThread, Wanted as Threads};
use journal::session::Session;
use machine::Root;
use model::events::Stacks;
use model::monitor::{Breach, BreachKind, Dropped, Fate, Late, NotRecorded, STATUS, Status};
use model::run::Phase;
use model::watch::{FILE, WatchRecord};
use model::{monitor as shapes, store};
use monitor::ledger::{Events, Ledger, Limits, Open};
use record::accounts::Accounts;
use record::held::Held;
use record::live::Keep;
use record::recorder::Recorder;
use report::{breach, format};
use std::collections::VecDeque;
use std::fmt::Write;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use sys::journald::Journald;
use sys::{clock, given_back, sched};

/// Name of the only phase of a breach's run.
const PHASE: &str = "watched";
/// How much of the time behind a breach is kept with it, ns: what touched it has ended by then.
const AFTER_NS: i64 = 20_000_000;
/// Nothing may be late for so long before a breach is over, ns.
const QUIET_NS: i64 = 100_000_000;
/// A breach lasts at most so long, ns.
const LONGEST_NS: i64 = 1_000_000_000;
/// The most bytes of the kernel's pages that are held for breaches to come.
const MOST_HELD: usize = 6 << 20;
/// Tasks that are known at once: when there were more, those that are gone are forgotten, and so
/// are wake-ups that go on in that moment, which are not judged then.
const MOST_TASKS: usize = 1 << 14;
/// A second.
const SECOND_NS: i64 = 1_000_000_000;
/// Seconds between two times that who asks for metrics gets newer ones.
const PUBLISH_S: u64 = 5;
/// Seconds between two times that the status is written, and names may get rows of their own.
const SELDOM_S: u64 = 10;
/// Seconds between two times that memory which was only needed for a moment is given back: of what
/// began, what looked at the isolation, what answered somebody.
const GIVE_BACK_S: u64 = 10;
/// Between two looks whether the isolation still holds.
const DRIFT_INTERVAL: Duration = Duration::from_secs(60);
/// How long the kernel's pages may take until they are read.
const ON_ITS_WAY: Duration = Duration::from_millis(300);
/// How long breaches are still written at the end.
const AT_THE_END: Duration = Duration::from_secs(10);

/// The monitor at work.
pub(super) struct Watcher<'a> {
    args: &'a StartArgs,
    place: &'a Place,
    session: Session,
    recorder: Recorder,
    /// A run that is never kept: what each breach's run begins with.
    template: RunOutput,
    engine: Engine,
    held: Held,
    ledger: Ledger,
    store: Store,
    history: History,
    /// Breaches whose pages are on disk: the first is being made a run.
    pending: VecDeque<(Open, Breach)>,
    keeping: Option<Keeping>,
    last: Option<Breach>,
    action: Action,
    /// Where what is printed goes, as that of a service does.
    journal: Option<Journald>,
    sums: Sums,
    reports: Reports,
    /// The kernel's accounts of the last seconds, and when.
    accounts: VecDeque<(i64, Accounts)>,
    drift: Drift,
    began: jiff::Timestamp,
    began_ns: i64,
    taken: Taken,
    second_ns: i64,
    seconds: u64,
    program: given_back::Program,
}

impl<'a> Watcher<'a> {
    /// Sets up, and begins to record.
    pub(super) fn begin(args: &'a StartArgs, place: &'a Place) -> anyhow::Result<Self> {
        given_back::at_once();
        let store = Store::open(&place.state, DIRECTORY, args.quota)?;
        let mut session = Session::open(&place.program, &place.state)?;
        let mut template = RunOutput::create(&store.template(), place)?;
        sched::pin(&place.housekeeping)?;
        write_findings(place, &template.dir)?;
        template.run.observer = own_cost();
        let events = recording::events(Stacks { own: args.stacks, users: false })?;
        let wanted = Wanted { keep: Keep::Live, ..Wanted::default() };
        let mut recorder = recording::prepare_for(&mut session, &mut template, &events, place, &wanted)?;
        // With the kernel's tracing directory in it, which may only be there since now.
        write_snapshot(place, &template.dir, store::MACHINE_BEFORE)?;
        // What has begun so far is not needed again.
        let program = given_back::Program::own();
        program.give_back();
        template.run.limits.extend(offences::limit(recorder.formats()));
        let before_ns = i64::try_from(args.before.as_nanos())?;
        let held = Held::new(recorder.formats(), MOST_HELD, before_ns + 2 * LONGEST_NS + 3 * SECOND_NS);
        let feed = Feed::of_functions(&recorder, events, &template.run);
        let cpus: Vec<u32> = place.measured.iter().collect();
        let mut engine = Engine::begin(feed, &cpus, Vec::new());
        let over_ns = u64::try_from(args.over.as_nanos())?;
        let real_time = args.comm.is_empty();
        engine.live().measure(Threads { names: args.comm.clone(), real_time, ..Threads::default() }, over_ns);
        engine.live().hold_at_most(MOST_TASKS);
        if let Some(over) = args.interference_over {
            engine.live().remember_longer(u64::try_from(over.as_nanos())?);
        }
        let limits = Limits {
            quiet_ns: QUIET_NS,
            longest_ns: LONGEST_NS,
            per_hour: args.per_hour,
            at_once: args.per_hour,
        };
        let accounts = VecDeque::from([(clock::now_ns(), recorder.accounts()?)]);
        recorder.record(true)?;
        let now_ns = clock::now_ns();
        Ok(Self {
            args,
            place,
            session,
            recorder,
            template,
            engine,
            held,
            ledger: Ledger::new(limits),
            history: History::open(&place.state.join(DIRECTORY), args.history, args.host.clone())?,
            store,
            pending: VecDeque::new(),
            keeping: None,
            last: None,
            journal: stdout::journal().filter(|_| !args.json),
            action: Action::new(args.on_breach.as_deref(), args.on_breach_user),
            sums: Sums::new(),
            reports: Reports::open(&place.state, &args.reporter)?,
            accounts,
            drift: Drift::begin(args.state.clone(), DRIFT_INTERVAL)?,
            began: jiff::Timestamp::now(),
            began_ns: now_ns,
            taken: Taken::begin(Root::live(), &place.measured),
            second_ns: now_ns + SECOND_NS,
            seconds: 0,
            program,
        })
    }

    /// What is watched, in a few lines.
    pub(super) fn introduction(&self, address: Option<SocketAddr>) -> String {
        let metrics =
            address.map_or_else(String::new, |address| format!("; metrics at http://{address}/metrics"));
        let over = format::ns(self.args.over.as_nanos() as i64);
        let mut text = format!(
            "watching CPUs {}: wake-ups of {} that take more than {over}{metrics}\n",
            self.place.measured,
            self.threads()
        );
        for limit in &self.template.run.limits {
            let _ = writeln!(text, "note: {limit}");
        }
        text
    }

    /// Which threads, in words.
    fn threads(&self) -> String {
        match self.args.comm.as_slice() {
            [] => "real-time threads".to_owned(),
            names => format!("threads named {}", names.join(", ")),
        }
    }

    /// Takes in what has come, and does what is due.
    pub(super) fn tick(&mut self, outlets: &mut Outlets) -> anyhow::Result<()> {
        anyhow::ensure!(
            !self.recorder.failed(),
            "the trace cannot be read any more, so monitoring has ended"
        );
        let held = &mut self.held;
        let until_ns = self.engine.feed_seen(|chunk| held.push(chunk))?;
        for late in self.engine.live().take_late() {
            self.ledger.late(late_thread(late));
        }
        for long in self.engine.live().take_long() {
            self.ledger.late(long_event(long));
        }
        for report in self.reports.next(until_ns) {
            self.ledger.late(report);
        }
        for breach in self.ledger.over(until_ns - AFTER_NS) {
            self.breach(breach);
        }
        self.go_on_keeping();
        self.action.go_on();
        if until_ns >= self.second_ns {
            self.second(outlets)?;
            // One that comes late is not made up for.
            self.second_ns = (self.second_ns + SECOND_NS).max(until_ns);
        }
        // Some dozens of page faults bring back what the next look needs.
        self.program.give_back();
        Ok(())
    }

    /// A second has ended.
    fn second(&mut self, outlets: &mut Outlets) -> anyhow::Result<()> {
        self.seconds += 1;
        let woken = self.engine.live().take_latencies();
        self.sums.woken(&woken);
        let sums = &mut self.sums;
        self.engine.end_second_by_row(&mut |ran| sums.ran(&ran));
        self.accounts.push_back((clock::now_ns(), self.recorder.accounts()?));
        if self.accounts.len() > 10 {
            self.accounts.pop_front();
        }
        if self.seconds % GIVE_BACK_S == 2 {
            given_back::free();
        }
        let seldom = self.seconds % SELDOM_S == 1;
        if seldom {
            self.sums.settle();
        }
        if !seldom && self.seconds % PUBLISH_S != 1 {
            return Ok(());
        }
        let status = self.status();
        if seldom {
            // A full disk is no reason to stop watching.
            let _ = self.store.write_status(&status);
            if self.history.is_due()
                && let Err(error) = self.history.add(&status)
            {
                eprintln!("note: {error:#}");
            }
        }
        outlets.publish(status)?;
        if seldom && let Err(error) = outlets.write() {
            eprintln!("note: {error:#}");
        }
        Ok(())
    }

    fn status(&mut self) -> Status {
        let now = jiff::Timestamp::now();
        let limit_ns = |time: Duration| time.as_nanos() as u64;
        let accounts = self.accounts.back().map(|(_, accounts)| accounts);
        let events = accounts.map_or(0, Accounts::events);
        Status {
            schema: STATUS.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            began: self.began.to_string(),
            at: now.to_string(),
            watched_ns: (clock::now_ns() - self.began_ns).unsigned_abs(),
            cpus: self.place.measured.clone(),
            threads_watched: self.threads(),
            limit_ns: limit_ns(self.args.over),
            interference_limit_ns: self.args.interference_over.map(limit_ns),
            threads: self.sums.threads(),
            interference: self.sums.interference(),
            offences: self.sums.offences(),
            offence_sums: self.sums.offence_sums(),
            offences_unnamed: self.sums.offences_unnamed(),
            callers_shown: offences::limit(self.recorder.formats()).is_none(),
            breaches: self.ledger.fates(),
            last: self.last.clone(),
            kept_bytes: self.store.bytes(),
            quota_bytes: self.store.quota(),
            given_up: self.store.given_up(),
            lost_events: self.engine.lost(),
            unjudged: self.engine.live().unjudged(),
            drifted: self.drift.seen(),
            steal_ns: self.taken.steal_ns(),
            throttled: self.taken.throttled(),
            actions: self.action.counts(),
            cost: cost(events, self.template.run.observer.trace_event_ns),
            limits: self.template.run.limits.clone(),
        }
    }

    /// A breach is over: its pages are written, if it is to be kept.
    fn breach(&mut self, open: Open) {
        let now_ns = clock::now_ns();
        let fate = self.ledger.fate(self.events(&open), now_ns);
        let at = jiff::Timestamp::now()
            .checked_sub(jiff::SignedDuration::from_nanos(now_ns - open.from_ns))
            .unwrap_or(self.began);
        let breach = Breach {
            schema: shapes::BREACH.to_owned(),
            id: self.store.name(at),
            at: at.to_string(),
            watched_since: self.began.to_string(),
            limit_ns: limit_ns(self.args, open.worst.kind),
            times: open.times,
            worst: open.worst.clone(),
            lasted_ns: (open.to_ns - open.from_ns).unsigned_abs(),
            fate,
            explained: None,
            group: None,
            changed: Vec::new(),
        };
        if fate != Fate::Kept {
            self.end_breach(&open, breach, fate);
            return;
        }
        match self.write_pages(&open, &breach) {
            Ok(()) => self.pending.push_back((open, breach)),
            Err(error) => self.cannot_keep(&open, breach, &format!("{error:#}")),
        }
        self.go_on_keeping();
    }

    /// It has its fate, which is entered.
    fn end_breach(&mut self, open: &Open, breach: Breach, fate: Fate) {
        let breach = Breach { fate, ..breach };
        self.ledger.end(open, fate);
        if let Err(error) = self.store.enter(&breach) {
            eprintln!("note: breach {} is not in the list: {error:#}", breach.id);
        }
        self.say(&breach);
        if fate == Fate::Kept {
            self.action.kept(&breach, &self.store.path(&breach.id));
            self.last = Some(breach);
        }
    }

    fn cannot_keep(&mut self, open: &Open, breach: Breach, why: &str) {
        eprintln!("note: breach {} cannot be kept: {why}", breach.id);
        self.store.abandon(&breach.id);
        self.end_breach(open, breach, Fate::Dropped(Dropped::Disk));
    }

    /// Whether all that the kernel recorded around a breach is there.
    fn events(&self, open: &Open) -> Events {
        if self.held.reaches_to_ns().is_some_and(|held_ns| held_ns > open.from_ns) {
            return Events::Missing(NotRecorded::TooLong);
        }
        if self.held.is_torn([open.from_ns, open.to_ns]) {
            return Events::Missing(NotRecorded::Lost);
        }
        Events::Whole
    }

    /// Writes all that is needed for the run of a breach.
    fn write_pages(&mut self, open: &Open, breach: &Breach) -> anyhow::Result<()> {
        let before_ns = i64::try_from(self.args.before.as_nanos()).unwrap_or(i64::MAX);
        let span = [open.from_ns.saturating_sub(before_ns), open.to_ns + AFTER_NS];
        let dir = self.store.path(&breach.id);
        let mut output = begin_run(&dir, self.place, &self.template)?;
        let before = self.accounts.iter().rev().find(|(at_ns, _)| *at_ns < open.from_ns - SECOND_NS);
        let before = before.or(self.accounts.front()).map(|(_, accounts)| accounts.clone());
        let pages = dir.join(PAGES);
        std::fs::create_dir(&pages).with_context(|| format!("cannot create {}", pages.display()))?;
        let unwritten = self.recorder.cut(&self.held, span, &before.unwrap_or_default(), &pages)?;
        store::write_json(&dir.join(UNWRITTEN), &unwritten)?;
        let [t0_ns, t1_ns] = span;
        output.run.phases.push(Phase { name: PHASE.to_owned(), t0_ns, t1_ns, disturbed: false });
        let facts = WatchRecord::of(format!("CPUs {}", self.place.measured), Vec::new());
        store::write_json(&dir.join(FILE), &facts)?;
        store::write_json(&dir.join(shapes::FILE), breach)?;
        Ok(output.save()?)
    }

    /// Takes note of a breach that has become a run, and begins with the next one.
    fn go_on_keeping(&mut self) {
        if let Some(ended) = self.keeping.as_mut().and_then(Keeping::ended) {
            self.keeping = None;
            if let Some((open, breach)) = self.pending.pop_front() {
                self.kept(&open, breach, ended);
            }
        }
        while self.keeping.is_none()
            && let Some((_, breach)) = self.pending.front()
        {
            match Keeping::begin(&self.store.path(&breach.id)) {
                Ok(keeping) => self.keeping = Some(keeping),
                Err(error) => {
                    if let Some((open, breach)) = self.pending.pop_front() {
                        self.cannot_keep(&open, breach, &error.to_string());
                    }
                }
            }
        }
    }

    fn kept(&mut self, open: &Open, breach: Breach, ended: Result<(), String>) {
        let path = self.store.path(&breach.id).join(shapes::FILE);
        let entered = ended.map_err(anyhow::Error::msg).and_then(|()| {
            let explained = store::read_json::<Breach>(&path)?;
            Ok((explained, self.store.keep(&breach.id)?))
        });
        match entered {
            Ok((explained, why_not)) => {
                self.end_breach(open, explained, why_not.map_or(Fate::Kept, Fate::Dropped));
            }
            Err(error) => self.cannot_keep(open, breach, &format!("{error:#}")),
        }
    }

    /// Prints a breach.
    fn say(&self, breach: &Breach) {
        if let Some(journal) = &self.journal
            && journal.send(&entry::fields(breach)).is_ok()
        {
            return;
        }
        let text = if self.args.json {
            serde_json::to_string(breach).unwrap_or_default()
        } else {
            breach::line(breach)
        };
        stdout::progress(format_args!("{text}\n"));
    }

    /// Ends: what goes on is entered as such, and everything of its own is taken away.
    pub(super) fn end(mut self, outlets: &mut Outlets) -> anyhow::Result<()> {
        self.recorder.record(false)?;
        // What has happened until now is on its way.
        std::thread::sleep(ON_ITS_WAY);
        let ticked = self.tick(outlets);
        for breach in self.ledger.rest() {
            self.breach(breach);
        }
        let begun = Instant::now();
        while !self.pending.is_empty() && begun.elapsed() < AT_THE_END {
            self.go_on_keeping();
            std::thread::sleep(Duration::from_millis(50));
        }
        self.keeping.take().iter_mut().for_each(|keeping| drop(keeping.stop()));
        for (open, breach) in std::mem::take(&mut self.pending) {
            self.store.abandon(&breach.id);
            self.end_breach(&open, breach, Fate::NotRecorded(NotRecorded::Ended));
        }
        let status = self.status();
        self.store.write_status(&status)?;
        if let Err(error) = self.history.add(&status) {
            eprintln!("note: {error:#}");
        }
        let Self { recorder, mut session, store, .. } = self;
        recorder.discard(&mut session)?;
        store.remove_template()?;
        let failed = session.close();
        anyhow::ensure!(failed.is_empty(), "not restored: {}", failed.join(", "));
        ticked
    }
}

fn late_thread(late: LateThread) -> Late {
    let LateThread { preempted, tid, comm, cpu, t_ns, ns } = late;
    let kind = if preempted { BreachKind::Preempted } else { BreachKind::Wakeup };
    Late { kind, cpu: Some(cpu), tid: Some(tid), comm, t_ns, value_ns: Some(ns) }
}

fn long_event(long: LongEvent) -> Late {
    let LongEvent { cpu, class, label, tid, t_ns, ns } = long;
    let comm = format!("{} {label}", class.name());
    let kind = BreachKind::Interference;
    Late { kind, cpu: Some(cpu), tid: Some(tid), comm, t_ns, value_ns: Some(ns) }
}

/// The limit that applies to a kind, ns.
fn limit_ns(args: &StartArgs, kind: BreachKind) -> Option<u64> {
    let time = match kind {
        BreachKind::Wakeup | BreachKind::Preempted => Some(args.over),
        BreachKind::Interference => args.interference_over,
        BreachKind::Reported => None,
    };
    time.map(|time| time.as_nanos() as u64)
}
