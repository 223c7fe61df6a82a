//! Keeping: waits for what the kernel announces and for the next check, compares, sets again.
//!
//! A check of the settings reads each of them and nothing else. A full check is that of `isolate
//! verify`; it follows when CPUs or devices come and go, and now and then. Values are written only
//! to settings that were found otherwise, with the journal locked, and never once it is gone: an
//! undo that begins meanwhile waits for the one that heals, and then nothing is set again.

use super::changer::Who;
use super::names::Names;
use super::report::{Counts, Report};
use super::stamp::Stamp;
use super::{HoldArgs, healers, wanted};
use crate::isolate::State;
use crate::isolate::look::{Look, Next};
use crate::isolate::target::{NextBoot, plan_of};
use audit::{Catalogue, placement};
use isolate::apply::{Change, Observer, apply};
use isolate::changers::Changers;
use isolate::heal::{Drift, Key, drifts, heal, key};
use isolate::pace::{Answer, Pace};
use isolate::setting::Setting;
use isolate::standing::{self, Found, Standing};
use journal::settings::{Live, Task};
use machine::Root;
use model::Cpus;
use model::plan::{Fate, Plan, Resident, ResidentKind, Step, StepKind};
use model::quantity::spelled;
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::AsFd;
use std::path::Path;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;
use sys::notify::Notify;
use sys::signals::EndSignals;
use sys::uevents::Uevents;

/// At most so often a write to a file is answered: a program that writes all the time is no reason
/// to run all the time.
const PAUSE: Duration = Duration::from_millis(10);

/// A device that comes is followed by others, and its interrupts are set up behind it.
const SETTLED: Duration = Duration::from_millis(300);

/// Between two full checks, however many devices come and go.
const AT_MOST: Duration = Duration::from_secs(3);

/// How long an undo, or another call, may be at work on the journal.
const PATIENCE: Duration = Duration::from_secs(5);

/// Why holding ended.
pub(super) enum End {
    /// A signal.
    Stopped(String),
    /// The time is over.
    Over,
    /// Nothing stands any more, or something else does.
    Undone(&'static str),
}

impl End {
    fn sentence(&self) -> String {
        match self {
            Self::Stopped(signal) => format!("stopped by {signal}"),
            Self::Over => "the time is over".to_owned(),
            Self::Undone(why) => (*why).to_owned(),
        }
    }
}

pub(super) struct Keeper<'a> {
    args: &'a HoldArgs,
    state: &'a Path,
    notify: &'a Notify,
    root: Root,
    catalogue: Catalogue,
    found: Found,
    stamp: Option<Stamp>,
    settings: Live,
    changers: Changers,
    uevents: Option<Uevents>,
    names: Names,
    pace: Pace,
    report: Report,
    /// When everything is checked next.
    full_at: Duration,
    /// When the last such check ended, and whether the next one follows upon what was done about
    /// it.
    full_ended: Duration,
    follows: bool,
    /// When the service manager hears next that this process is alive.
    alive_at: Duration,
    /// A full check that is under way, on a thread of its own: it takes longer than a write may
    /// wait for its answer.
    full: Option<JoinHandle<anyhow::Result<Next>>>,
    /// What a full check has found and something was done about.
    tried: BTreeSet<String>,
    /// What was found again then, and is reported.
    unhealed: BTreeSet<String>,
}

impl<'a> Keeper<'a> {
    pub(super) fn new(
        args: &'a HoldArgs,
        state: &'a Path,
        found: Found,
        notify: &'a Notify,
    ) -> anyhow::Result<Self> {
        let mut changers = Changers::new();
        changers.watch(found.in_force());
        let names = if args.no_trace {
            Names::none("--no-trace")
        } else {
            Names::begin(state, &found.head.housekeeping)
        };
        let keeper = Self {
            args,
            state,
            notify,
            root: Root::open(Path::new("/"))?,
            catalogue: args.target.catalogue()?,
            stamp: Stamp::of(state),
            settings: Live::new(&std::env::current_exe()?),
            changers,
            uevents: Uevents::new().ok(),
            names,
            pace: Pace::new(args.heals.into(), args.window),
            report: Report::new(args.json),
            full_at: Duration::ZERO,
            full_ended: Duration::ZERO,
            follows: false,
            alive_at: Duration::ZERO,
            full: None,
            tried: BTreeSet::new(),
            unhealed: BTreeSet::new(),
            found,
        };
        keeper.introduce();
        Ok(keeper)
    }

    /// What is held, and what of it is seen.
    fn introduce(&self) {
        let settings = self.found.in_force().len();
        let held = format!(
            "holding CPUs {}: {settings} settings, {} files watched",
            self.found.head.isolated,
            self.changers.watched()
        );
        self.report.note("holding", &held);
        for (what, why) in [
            ("writers of settings are not seen", self.changers.why_not()),
            ("names of processes that end at once are not seen", self.names.why_not()),
        ] {
            if let Some(why) = why {
                self.report.note("note", &format!("{what}: {why}"));
            }
        }
        if self.uevents.is_none() {
            let every = spelled(self.args.full_interval.as_nanos() as u64);
            self.report
                .note("note", &format!("CPUs and devices that come and go are seen every {every} only"));
        }
        if wanted(&self.found).is_none() {
            let what = "what comes anew, such as a new interrupt, is reported and not moved: what was asked is not in the journal";
            self.report.note("note", what);
        }
        let others = healers::running(&self.root);
        if !others.is_empty() {
            let what =
                format!("{} may set the same; whoever insists on a setting gets it", others.join(", "));
            self.report.note("note", &what);
        }
    }

    /// Holds until something ends it.
    pub(super) fn run(&mut self, signals: &EndSignals) -> anyhow::Result<End> {
        let mut ready = false;
        let mut check_at = Duration::ZERO;
        loop {
            if let Some(signal) = signals.arrived() {
                return Ok(End::Stopped(signal.to_owned()));
            }
            let now = self.report.now();
            if self.args.duration.is_some_and(|duration| now >= duration) {
                return Ok(End::Over);
            }
            if let Some(end) = self.refresh() {
                return Ok(end);
            }
            let touched = self.writers();
            self.announced(now);
            let all = now >= check_at;
            if (all || !touched.is_empty())
                && let Some(end) = self.check((!all).then_some(&touched))
            {
                return Ok(end);
            }
            if all {
                check_at = now + self.args.interval;
            }
            if let Some(most) = self.notify.watchdog().filter(|_| now >= self.alive_at) {
                self.alive_at = now + most / 3;
                self.notify.alive();
            }
            if let Some(end) = self.full_check(now)? {
                return Ok(end);
            }
            if !ready {
                self.notify.ready();
                ready = true;
            }
            if !touched.is_empty() {
                signals.wait_for(PAUSE)?;
            }
            self.wait(signals, check_at)?;
        }
    }

    /// Takes everything of its own away, and prints the end.
    pub(super) fn end(&mut self, end: &anyhow::Result<End>) -> Counts {
        let names = std::mem::replace(&mut self.names, Names::none("it has ended"));
        for left in names.end() {
            self.report.note("note", &format!("left behind: {left}"));
        }
        let why = end.as_ref().map_or_else(|error| format!("{error:#}"), End::sentence);
        self.report.end(&why);
        self.report.counts
    }

    fn wait(&self, signals: &EndSignals, check_at: Duration) -> anyhow::Result<()> {
        let now = self.report.now();
        let over = self.args.duration.unwrap_or(Duration::MAX);
        let alive = self.notify.watchdog().map_or(Duration::MAX, |_| self.alive_at);
        // One that is under way is looked at when it is time for the settings.
        let full_at = if self.full.is_some() { Duration::MAX } else { self.full_at };
        let until = check_at.min(full_at).min(over).min(alive);
        let mut others = Vec::new();
        others.extend(self.changers.descriptor().map(AsFd::as_fd));
        others.extend(self.uevents.as_ref().map(AsFd::as_fd));
        Ok(signals.wait_among(&others, until.saturating_sub(now))?)
    }

    /// What the kernel has announced: a full check when it has settled.
    fn announced(&mut self, now: Duration) {
        let Some(Ok(heard)) = self.uevents.as_ref().map(Uevents::read) else { return };
        if heard.lost || !heard.events.is_empty() {
            self.full_at = self.full_at.min((now + SETTLED).max(self.full_ended + AT_MOST));
        }
    }

    /// The journal as it is now; why holding ends where it is gone.
    fn refresh(&mut self) -> Option<End> {
        let stamp = Stamp::of(self.state);
        if stamp == self.stamp && stamp.is_some() {
            return None;
        }
        match standing::find(self.state) {
            Ok(Some(found)) if found.this_boot => {
                if let Some(end) = self.is_another(&found) {
                    return Some(end);
                }
                (self.found, self.stamp) = (found, stamp);
                self.changers.watch(self.found.in_force());
                None
            }
            Ok(_) => Some(End::Undone("the isolation was undone")),
            // Another call is writing it, or it cannot be read now.
            Err(_) => None,
        }
    }

    fn is_another(&self, found: &Found) -> Option<End> {
        let same = found.head == self.found.head;
        (!same).then_some(End::Undone("the isolation was undone, and another one was applied"))
    }

    /// Takes note of who has written, and of the names of those who have ended.
    fn writers(&mut self) -> BTreeSet<Key> {
        let touched = self.changers.read();
        if !touched.is_empty() {
            self.names.read();
        }
        touched
    }

    /// Compares settings, all or those that somebody has written, and heals.
    fn check(&mut self, touched: Option<&BTreeSet<Key>>) -> Option<End> {
        let asked = |setting: &&Setting| touched.is_none_or(|some| some.contains(&key(setting)));
        let drifted = drifts(self.found.in_force().into_iter().filter(asked), &mut self.settings);
        let otherwise: BTreeSet<_> = drifted.iter().map(|drift| key(&drift.setting)).collect();
        if let Some(some) = touched {
            some.difference(&otherwise).for_each(|key| self.changers.forget(key));
        } else {
            self.changers.forget_but(&otherwise);
            self.names.forget_affinities_but(&otherwise.iter().filter_map(tid).collect());
        }
        if drifted.iter().all(|drift| self.pace.left().contains(&name(drift))) {
            return None;
        }
        self.heal(drifted)
    }

    fn heal(&mut self, drifted: Vec<Drift>) -> Option<End> {
        let standing = match self.locked()? {
            Ok(standing) => standing,
            Err(end) => return Some(end),
        };
        let mut asked = BTreeSet::new();
        for drift in drifted {
            match self.pace.ask(&name(&drift), self.report.now()) {
                Answer::Heal => drop(asked.insert(key(&drift.setting))),
                Answer::GiveUp => {
                    let (most, window) = self.pace.bound();
                    let times = if most == 1 { "once".to_owned() } else { format!("{most} times") };
                    let how_often = format!("{times} in {}", spelled(window.as_nanos() as u64));
                    let who = Who::of(&drift.setting, &self.changers, &self.names);
                    self.report.given_up(&drift.setting, &drift.now, &how_often, &who);
                }
                Answer::Left => {}
            }
        }
        // Before they are set again: whoever writes later has not changed what was found.
        self.names.read();
        self.writers();
        let who_of = |keeper: &Self, setting: &Setting| Who::of(setting, &keeper.changers, &keeper.names);
        let seen: BTreeMap<Key, Who> =
            standing.in_force().into_iter().map(|one| (key(one), who_of(self, one))).collect();
        let all = heal(&standing, &asked, &mut self.settings);
        drop(standing);
        self.writers();
        for healed in all {
            let setting = &healed.drift.setting;
            let known = seen.get(&key(setting)).filter(|who| who.is_known());
            // The kernel tells of a write right after it: this one came between.
            let who = known.cloned().unwrap_or_else(|| who_of(self, setting));
            self.report.healed(&healed, &who);
            self.changers.forget(&key(setting));
        }
        None
    }

    /// The journal, locked and of the same isolation; nothing where another call is at work on it
    /// now; why holding ends where it is gone.
    fn locked(&mut self) -> Option<Result<Standing, End>> {
        if !standing::exists(self.state) {
            return Some(Err(End::Undone("the isolation was undone")));
        }
        let standing = Standing::open_within(self.state, PATIENCE).ok()?;
        match standing.found() {
            Ok(Some(found)) if found.this_boot => match self.is_another(&found) {
                Some(end) => Some(Err(end)),
                None => Some(Ok(standing)),
            },
            Ok(_) => {
                // It was undone since, and opening it has made an empty one.
                let _ = standing.end();
                Some(Err(End::Undone("the isolation was undone")))
            }
            Err(_) => None,
        }
    }

    /// Begins the check of `isolate verify` when it is time, and acts upon one that has ended.
    fn full_check(&mut self, now: Duration) -> anyhow::Result<Option<End>> {
        if let Some(full) = self.full.take_if(|full| full.is_finished()) {
            self.full_ended = now;
            let next = full.join().map_err(|_| anyhow::anyhow!("the full check ended by a panic"))??;
            let end = self.act_upon(next)?;
            self.notify.status(&self.report.counts.sentence());
            return Ok(end);
        }
        if now >= self.full_at && self.full.is_none() {
            self.full_at = now + self.args.full_interval;
            let state = State { dir: self.args.state.dir.clone() };
            let look = move || Ok(Look::at(&state)?.again());
            self.full = Some(Builder::new().name("verify".to_owned()).spawn(look)?);
        }
        Ok(None)
    }

    /// What is not as it was left is dealt with as applying would; what is found again by the next
    /// check, which follows at once, is reported.
    fn act_upon(&mut self, next: Next) -> anyhow::Result<Option<End>> {
        let seen = match next {
            Next::Undone => return Ok(self.refresh()),
            Next::Changing => return Ok(None),
            Next::Seen(seen) => seen,
        };
        let found: BTreeSet<String> = seen.drifted.into_iter().filter(|one| !self.is_left(one)).collect();
        self.unhealed.retain(|sentence| found.contains(sentence));
        for sentence in found.intersection(&self.tried) {
            if self.unhealed.insert(sentence.clone()) {
                self.report.unhealed(sentence);
            }
        }
        self.tried.clear();
        let follows = std::mem::take(&mut self.follows);
        if found.is_subset(&self.unhealed) {
            return Ok(None);
        }
        self.tried = found;
        if !follows {
            self.follows = true;
            self.full_at = self.report.now();
        }
        if let Some(end) = self.check(None) {
            return Ok(Some(end));
        }
        self.bring_in()
    }

    /// Whether a sentence is about a setting that is left to others.
    fn is_left(&self, sentence: &str) -> bool {
        let is_about = |setting: &&Setting| {
            let begin = format!("{} {} is ", setting.mechanism, setting.target);
            sentence.starts_with(&begin)
        };
        let of = self.found.in_force().into_iter().find(is_about);
        of.is_some_and(|setting| self.pace.left().contains(&named(&setting.mechanism, &setting.target)))
    }

    /// Does what applying would do about interrupts, tasks, daemons and values that have come since
    /// and no setting of the journal is about.
    fn bring_in(&mut self) -> anyhow::Result<Option<End>> {
        let Some(profile) = wanted(&self.found) else { return Ok(None) };
        let machine = machine::read(&self.root)?;
        let planned =
            plan_of(&self.root, &machine, &self.catalogue, &profile, &self.args.state, NextBoot::default());
        // A machine may be in a state, such as with a CPU offline, for which there is no plan.
        let Ok(plan) = planned else { return Ok(None) };
        let known: BTreeSet<Key> = self.found.in_force().into_iter().map(key).collect();
        let mut steps: Vec<Step> =
            plan.steps.iter().filter(|step| is_new(step, &plan, &known)).cloned().collect();
        let now = self.report.now();
        steps.retain(|step| self.pace.ask(&named(&step.mechanism, &step.target), now) == Answer::Heal);
        if steps.is_empty() {
            return Ok(None);
        }
        let mut standing = match self.locked() {
            None => return Ok(None),
            Some(Err(end)) => return Ok(Some(end)),
            Some(Ok(standing)) => standing,
        };
        // Nobody is looked for beyond these steps: who is on these CPUs on purpose stays.
        let plan = Plan { steps, isolated: Cpus::default(), keep: standing.keeps(), ..plan };
        let head = self.found.head.clone();
        // A batch is short; the signal is taken where the loop looks for it.
        let mut stop = || None;
        let report = &mut self.report;
        let mut on_change = |change: &Change| report.brought_in(change);
        let mut observer = Observer { stop: &mut stop, on_change: &mut on_change };
        apply(&plan, &head, &mut standing, &mut self.settings, &mut observer)?;
        drop(standing);
        Ok(self.refresh())
    }
}

/// Whether a step is about what has come since, and moves nobody who was put there on purpose.
fn is_new(step: &Step, plan: &Plan, known: &BTreeSet<Key>) -> bool {
    let of_placement = placement::IDS.contains(&step.mechanism.as_str());
    let thrown = |one: &&Resident| one.deliberate && one.fate == Fate::Moves && !plan.move_pinned;
    let deliberate = plan.residents.iter().filter(thrown).any(|one| is_about(step, one));
    let is_known = known.contains(&(step.kind, step.target.clone()));
    !step.kind.remembers() && !of_placement && !deliberate && !is_known
}

/// Whether a step moves this task or interrupt.
fn is_about(step: &Step, one: &Resident) -> bool {
    match one.kind {
        ResidentKind::Interrupt => step.target.starts_with(&format!("/proc/irq/{}/", one.id)),
        ResidentKind::Task | ResidentKind::KernelThread => {
            step.target.split('/').next().and_then(|id| id.parse().ok()) == Some(one.id)
        }
    }
}

/// The task whose affinity a setting is.
fn tid((kind, target): &Key) -> Option<u32> {
    let task = (*kind == StepKind::Task).then(|| Task::of(target))?;
    Some(task?.id)
}

fn name(drift: &Drift) -> String {
    named(&drift.setting.mechanism, &drift.setting.target)
}

fn named(mechanism: &str, target: &str) -> String {
    format!("{mechanism} {target}")
}
