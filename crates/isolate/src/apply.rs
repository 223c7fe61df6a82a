//! Applying a plan: each change read, written down, made, read back. A change that the kernel
//! refuses is undone and reported; the rest continues.
//!
//! Moving tasks is repeated until none is left that could be moved: a task that forks while it is
//! moved leaves children behind on the CPUs it is taken from (RTSS 2024, interference-free
//! operating system, §III-A: spawned tasks are left).

use super::setting::Setting;
use super::standing::{End, Standing};
use crate::head::Head;
use audit::placement;
use audit::purpose::Purpose;
use audit::stray::seen;
use journal::settings::{Settings, value};
use journal::{Phase, affinities};
use machine::Root;
use model::Cpus;
use model::plan::{Plan, Step, StepKind};
use serde::Serialize;
use sys::Error;

/// How often stray tasks are looked for at most: a fork bomb is not waited for.
const ROUNDS: usize = 50;

/// What the kernel's control groups can do, and a word that is there since 6.0 (6a010a49b63a), one
/// release before isolated partitions.
const FEATURES: &str = "/sys/kernel/cgroup/features";
const SINCE_6_0: &str = "favordynmods";

/// One change as it went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// The mechanism.
    pub mechanism: String,
    /// What was changed.
    pub target: String,
    /// The value before.
    pub old: Option<String>,
    /// The requested value.
    pub new: String,
    /// Why it was refused; none where it was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The result of applying.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Applied {
    /// Changes made.
    pub applied: Vec<Change>,
    /// Changes that were not needed: mechanism and target.
    pub already: Vec<Change>,
    /// Interrupts that the kernel lets nobody move: those of one CPU, and those that their driver
    /// manages.
    pub immovable: Vec<Change>,
    /// What the kernel refused of the placement: affinities alone then keep tasks away.
    pub fallback: Vec<Change>,
    /// Changes that the kernel refused.
    pub refused: Vec<Change>,
    /// Rounds of looking for stray tasks.
    pub rounds: usize,
    /// Tasks that still may run on the isolated CPUs after the last round, `PID/STARTTIME/NAME`.
    pub stray: Vec<String>,
}

/// Decides between batches whether to continue, and receives each change.
pub struct Observer<'a> {
    /// The name of what asks to stop, if anything does.
    pub stop: &'a mut dyn FnMut() -> Option<String>,
    /// Called for each change, made or refused.
    pub on_change: &'a mut dyn FnMut(&Change),
}

/// Carries the plan out over a journal that may already hold a part of it. On an error nothing is
/// undone: the caller does that.
pub fn apply(
    plan: &Plan,
    head: &Head,
    standing: &mut Standing,
    settings: &mut dyn Settings,
    observer: &mut Observer<'_>,
) -> Result<Applied, Error> {
    let begins = standing.found()?.is_none();
    if begins {
        standing.begin(head)?;
    }
    if standing.keeps() != plan.keep {
        standing.keep(&plan.keep)?;
    }
    let purpose = standing.purpose()?;
    let mut work = Work { standing, settings, observer, purpose, done: Applied::default() };
    let mut occupied = None;
    // CPUs that are placed already have work that must not be disturbed.
    let of_placement = |id: &str| placement::IDS.contains(&id);
    let made = |setting: &Setting| !setting.kind.remembers() && of_placement(&setting.mechanism);
    let stands = work.standing.settings().any(|(_, setting)| made(setting));
    for batch in batches(&plan.steps) {
        let placing = !stands && batch.iter().any(|step| of_placement(&step.mechanism));
        occupied = placing.then(|| occupied.unwrap_or_else(|| work.settings.occupy(&plan.isolated)));
        if work.done.fallback.iter().any(|change| change.mechanism == batch[0].mechanism) {
            continue;
        }
        let group = placement::becomes_partition(&batch[0]);
        if let (Some(occupied), Some(group)) = (&occupied, group) {
            occupied.join(group);
        }
        work.batch(batch)?;
        if placing && batch[0].kind == StepKind::Group {
            work.try_partition(&batch[0].target, &plan.steps);
        }
        if group.is_some() {
            // A partition that was refused cannot be removed while somebody is in it.
            occupied = None;
        }
        if placing {
            work.whole_or_not(&batch[0].mechanism);
        }
        if placing && group.is_some() && work.done.fallback.is_empty() {
            work.narrow_again();
        }
    }
    drop(occupied);
    if !plan.isolated.is_empty() {
        work.strays(plan)?;
        // Later calls find work there that must not be disturbed.
        if begins && !work.done.applied.is_empty() {
            drop(work.settings.occupy(&plan.isolated));
        }
    }
    work.note_kept()?;
    Ok(work.done)
}

/// Steps of one mechanism that do not build on one another share a batch.
fn batches(steps: &[Step]) -> Vec<&[Step]> {
    let together = |one: &Step, next: &Step| {
        let plain = |step: &Step| matches!(step.kind, StepKind::File | StepKind::Task);
        let stacked = placement::IDS.contains(&one.mechanism.as_str());
        one.mechanism == next.mechanism && plain(one) && plain(next) && !stacked
    };
    steps.chunk_by(together).collect()
}

struct Work<'a, 'b> {
    standing: &'a mut Standing,
    settings: &'a mut dyn Settings,
    observer: &'a mut Observer<'b>,
    purpose: Purpose,
    done: Applied,
}

impl Work<'_, '_> {
    fn batch(&mut self, steps: &[Step]) -> Result<(), Error> {
        if let Some(who) = (self.observer.stop)() {
            return Err(Error::failed("isolating", format!("stopped by {who}")));
        }
        let mut pending = Vec::new();
        for step in steps {
            if step.kind.remembers() {
                self.remember(step)?;
                continue;
            }
            if step.kind == StepKind::Task && self.purpose.has_task(&Root::live(), &step.target) {
                continue;
            }
            match self.settings.read(step.kind, &step.target) {
                Ok(Some(now)) if value::same(&now, &step.new) => {
                    self.done.already.push(change(step, Some(now)));
                }
                Ok(Some(now)) => pending.push((step, Some(now))),
                // A task that has ended, an interrupt that was freed: nothing is left to change.
                Ok(None) if matches!(step.kind, StepKind::Task | StepKind::Process | StepKind::Member) => {}
                Ok(None) if step.target.starts_with("/proc/irq/") => {}
                Ok(None) => self.refuse(step, None, "it is not there (any more)".to_owned()),
                Err(error) => self.refuse(step, None, error.to_string()),
            }
        }
        if pending.is_empty() {
            return Ok(());
        }
        let numbers = self.standing.intend(&pending)?;
        let mut ends = Vec::new();
        for ((step, old), seq) in pending.into_iter().zip(numbers) {
            ends.push(self.one(step, old, seq));
        }
        // The changes are made and their intents are on disk: a journal that cannot be written now
        // still undoes them.
        let _ = self.standing.settle(&ends);
        Ok(())
    }

    /// Makes one change and says what became of it.
    fn one(&mut self, step: &Step, old: Option<String>, seq: u64) -> End {
        let undone = End { seq, phase: Phase::Undone, read_back: None };
        let written = self.settings.write(step.kind, &step.target, &step.new);
        let now = self.settings.read(step.kind, &step.target).ok().flatten();
        let reason = match (&written, &now) {
            (Err(error), _) => Some(error.to_string()),
            (Ok(()), None) => None,
            (Ok(()), Some(now)) if reached(step, now) => None,
            (Ok(()), Some(now)) => Some(format!("it reads back {now:?}")),
        };
        if let Err(error) = &written
            && lets_nobody(step, error)
        {
            self.immovable(step, old);
            return undone;
        }
        let Some(reason) = reason else {
            let made = change(step, old);
            (self.observer.on_change)(&made);
            self.done.applied.push(made);
            let read_back = now.filter(|now| !value::same(now, &step.new));
            return End { phase: Phase::Done, read_back, ..undone };
        };
        if let (Some(old), Some(now)) = (&old, &now)
            && !value::same(old, now)
            && self.settings.write(step.kind, &step.target, old).is_err()
        {
            // It stays in the journal as made, so that undoing tries again.
            self.refuse(step, Some(old.clone()), reason);
            return End { phase: Phase::Done, read_back: Some(now.clone()), ..undone };
        }
        self.refuse(step, old, reason);
        undone
    }

    /// Whether an old kernel knows isolated partitions is found on the empty group (before 6.1 none
    /// does; Linux `kernel/cgroup/cpuset.c`, `sched_partition_write`): who is kept would have
    /// joined it for nothing, and for a moment had all its CPUs. A kernel that may know them is not
    /// tried: taking the word it gives all CPUs to every task of the group above (before 6.2,
    /// `update_prstate`).
    fn try_partition(&mut self, group: &str, steps: &[Step]) {
        let joins = |step: &Step| step.kind == StepKind::Member && step.new == group;
        let partition = steps.iter().find(|step| placement::becomes_partition(step) == Some(group));
        let Some(step) = partition.filter(|_| steps.iter().any(joins)) else { return };
        let features = self.settings.read(StepKind::File, FEATURES).ok().flatten();
        if features.is_none_or(|features| features.contains(SINCE_6_0)) {
            return;
        }
        let old = self.settings.read(step.kind, &step.target).ok().flatten();
        match self.settings.write(step.kind, &step.target, &step.new) {
            Ok(()) => {
                let _ = self.settings.write(step.kind, &step.target, old.as_deref().unwrap_or("member"));
                self.narrow_again();
            }
            Err(error) => self.refuse(step, old, error.to_string()),
        }
    }

    fn remember(&mut self, step: &Step) -> Result<(), Error> {
        if step.kind == StepKind::Affinities {
            let remembered = self.standing.affinities().any(|kept| kept.mechanism == step.mechanism);
            return if remembered {
                Ok(())
            } else {
                self.standing.remember(&step.mechanism, affinities::affinities())
            };
        }
        let same = |setting: &Setting| {
            (setting.kind, &setting.target, &setting.mechanism) == (step.kind, &step.target, &step.mechanism)
        };
        if self.standing.settings().any(|(_, setting)| same(setting)) {
            return Ok(());
        }
        let value = self.settings.read(step.kind, &step.target).ok().flatten();
        let Some(value) = value else { return Ok(()) };
        let numbers = self.standing.intend(&[(step, Some(value))])?;
        let done = |seq: &u64| End { seq: *seq, phase: Phase::Done, read_back: None };
        self.standing.settle(&numbers.iter().map(done).collect::<Vec<_>>())
    }

    /// What has been remembered has come to this: what is so when undoing begins, nobody else has
    /// set. What an earlier call has noted stays: others may have set it since.
    fn note_kept(&mut self) -> Result<(), Error> {
        if self.standing.affinities().any(|kept| kept.after.is_none()) {
            self.standing.note_affinities(&affinities::affinities())?;
        }
        let kept = |(_, setting): &(u64, &Setting)| setting.kind.remembers() && setting.read_back.is_none();
        let kept = self.standing.settings().filter(kept);
        let kept: Vec<_> = kept.map(|(seq, setting)| (seq, setting.target.clone())).collect();
        let mut ends = Vec::new();
        for (seq, target) in kept {
            let read_back = self.settings.read(StepKind::Kept, &target).ok().flatten();
            ends.push(End { seq, phase: Phase::Done, read_back });
        }
        if ends.is_empty() { Ok(()) } else { self.standing.settle(&ends) }
    }

    /// A partition that is made gives everybody outside of it all CPUs that are left (before 6.2;
    /// Linux `kernel/cgroup/cpuset.c`, `update_tasks_cpumask`), those that were isolated at boot
    /// included. Who had fewer of them gets these back.
    fn narrow_again(&mut self) {
        if let Some(kept) = self.standing.affinities().next() {
            affinities::narrow(&kept.before, self.settings);
        }
    }

    /// A placement is of use only as a whole: when one of its steps is refused, those made before
    /// are undone.
    fn whole_or_not(&mut self, mechanism: &str) {
        if !self.done.refused.iter().any(|change| change.mechanism == mechanism) {
            return;
        }
        let made = self.standing.settings().filter(|(_, setting)| setting.mechanism == mechanism);
        let made: Vec<_> = made.map(|(seq, setting)| (seq, setting.clone())).collect();
        for (seq, Setting { kind, target, old, .. }) in made.iter().rev() {
            if let Some(old) = old
                && !kind.remembers()
                && self.settings.user(*kind, target).is_none()
                && self.settings.write(*kind, target, old).is_ok()
            {
                let undone = End { seq: *seq, phase: Phase::Undone, read_back: None };
                let _ = self.standing.settle(&[undone]);
            }
        }
        self.done.applied.retain(|change| change.mechanism != mechanism);
        let (of_placement, others) = std::mem::take(&mut self.done.refused)
            .into_iter()
            .partition(|change| change.mechanism == mechanism);
        self.done.fallback.extend::<Vec<_>>(of_placement);
        self.done.refused = others;
    }

    fn strays(&mut self, plan: &Plan) -> Result<(), Error> {
        let mut refused = Vec::new();
        while self.done.rounds < ROUNDS {
            self.done.rounds += 1;
            let mut found = self.look(plan);
            found.retain(|step| !refused.contains(&step.target));
            if found.is_empty() {
                break;
            }
            let before = self.done.refused.len();
            self.batch(&found)?;
            refused.extend(self.done.refused[before..].iter().map(|change| change.target.clone()));
        }
        self.done.stray = self.look(plan).into_iter().map(|step| step.target).collect();
        Ok(())
    }

    /// Who could be elsewhere; children of a pinned task are born pinned.
    fn look(&self, plan: &Plan) -> Vec<Step> {
        let seen = seen(&Root::live(), &plan.isolated, &plan.housekeeping, &self.purpose);
        let pinned = seen.pinned.into_iter().filter(|_| plan.move_pinned);
        seen.strays.into_iter().chain(pinned).collect()
    }

    fn immovable(&mut self, step: &Step, old: Option<String>) {
        let reason =
            "the kernel lets nobody move it: it belongs to one CPU, or its driver manages it".to_owned();
        let stays = Change { reason: Some(reason), ..change(step, old) };
        (self.observer.on_change)(&stays);
        // Verifying later must not take it for a newcomer.
        let _ = self.standing.note(&step.target);
        self.done.immovable.push(stays);
    }

    fn refuse(&mut self, step: &Step, old: Option<String>, reason: String) {
        let refused = Change { reason: Some(reason), ..change(step, old) };
        (self.observer.on_change)(&refused);
        self.done.refused.push(refused);
    }
}

/// EIO up to 6.11, EPERM from 6.12 on (`kernel/irq/proc.c`).
fn lets_nobody(step: &Step, error: &Error) -> bool {
    let refused = [rustix::io::Errno::IO, rustix::io::Errno::PERM].map(rustix::io::Errno::raw_os_error);
    let code = match error {
        Error::Os { source, .. } => source.raw_os_error(),
        _ => None,
    };
    step.target.starts_with("/proc/irq/") && code.is_some_and(|code| refused.contains(&code))
}

fn change(step: &Step, old: Option<String>) -> Change {
    Change {
        mechanism: step.mechanism.clone(),
        target: step.target.clone(),
        old,
        new: step.new.clone(),
        reason: None,
    }
}

/// Whether what reads back will do. A control group may narrow where a task may run; narrower is as
/// good.
fn reached(step: &Step, now: &str) -> bool {
    if value::same(now, &step.new) {
        return true;
    }
    let parse = |text: &str| Cpus::parse_list(text).ok();
    step.kind == StepKind::Task
        && matches!((parse(now), parse(&step.new)), (Some(now), Some(new)) if now.is_subset(&new))
}
