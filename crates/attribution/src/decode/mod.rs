//! The one place where the bytes of a trace become [`KernelEvent`]s: fields by name, functions by
//! symbol, classes by catalogue.
//!
//! Names, order and types of fields differ between kernels, so each event gets a plan once, when
//! the trace is opened. An event without its fields is counted and reported as unreadable, and its
//! class does not count as observed.
//! `TRACE_FLAG_*`: Linux include/linux/trace_events.h. Softirq numbers: include/linux/interrupt.h.

mod known_stacks;
mod namer;
mod plan;
mod users;

use crate::Error;
use crate::attribute::coverage::has_interrupts;
use crate::labels::{CpuSets, LabelId, Labels};
use crate::names::Names;
use crate::prio::Prio;
use crate::records::{Record, Records, TaskField};
use crate::spans::Known;
use crate::view::{self, At, KernelEvent, Level, Switch, Task, Wake, What};
use ftrace::{Constants, Endian, Event, EventFormat, Formats, Symbols, TraceFile};
use known_stacks::KnownStacks;
use model::cpu_states::{FrequencyChanges, IdleState, IdleStates};
use model::events::{EventCatalogue, Helpers};
use model::user_frames::{self, UserFrames};
use model::{EventClass, store};
use namer::Namer;
use plan::{Naming, Pick, Plan};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use users::Users;

/// `TRACE_FLAG_IRQS_OFF`.
const IRQS_OFF: u8 = 0x01;
/// `TRACE_FLAG_HARDIRQ | TRACE_FLAG_NMI`.
const HARD: u8 = 0x08 | 0x40;
/// `TRACE_FLAG_SOFTIRQ`.
const SOFT: u8 = 0x10;

#[inline(always)]
fn level(flags: u8) -> Level {
    match flags & (HARD | SOFT) {
        0 => Level::Task,
        SOFT => Level::Softirq,
        _ => Level::Hard,
    }
}

/// The softirqs by number, as `/proc/softirqs` names them.
pub const SOFTIRQS: [&str; 10] =
    ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];

/// The function of timers that end a sleep (kernel/time/hrtimer.c).
const SLEEPER: &str = "hrtimer_wakeup";

/// A function that only PREEMPT_RT has (kernel/locking/spinlock_rt.c; in 5.10-rt
/// kernel/locking/rtmutex.c).
const RT_ONLY: &str = "rt_spin_lock";

/// The most frequent events.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Says {
    Switch(Switch),
    Wake(Wake),
}

/// Turns the events of one trace into [`KernelEvent`]s.
pub struct Decoder {
    endian: Endian,
    /// By event number of the traced kernel.
    plans: Vec<Option<Plan>>,
    names: Vec<String>,
    symbols: Symbols,
    helpers: Helpers,
    /// Functions already named, and constant texts.
    functions: FxHashMap<u64, LabelId>,
    stacks: KnownStacks,
    idle_states: FxHashMap<(u32, u64), view::IdleState>,
    changes_ns: FrequencyChanges,
    users: Users,
    has_constants: bool,
    tasks: Names,
    sets: CpuSets,
    known: Known,
    unreadable: Vec<String>,
}

/// The program functions that the recorder of a trace file stored beside it.
pub(crate) fn program_functions(file: &TraceFile) -> Result<Option<UserFrames>, Error> {
    let beside = file.path().with_file_name(user_frames::FILE);
    if !beside.exists() {
        return Ok(None);
    }
    let frames: UserFrames = store::read_json(&beside)?;
    if frames.schema != user_frames::SCHEMA {
        let what = format!("schema {:?}", frames.schema);
        return Err(model::Error::invalid(beside.display(), what, user_frames::SCHEMA).into());
    }
    Ok(Some(frames))
}

impl Decoder {
    /// A plan for every event of the trace. Events that the catalogue lacks are counted under
    /// their own names.
    pub fn new(
        catalogue: &EventCatalogue,
        formats: &Formats,
        symbols: Symbols,
        constants: &Constants,
    ) -> Self {
        let mut tasks = Names::default();
        let labels = &mut tasks.labels;
        // Addresses of functions and of texts are distinct, so one table names both.
        let functions = constants.iter().map(|(address, text)| (address, labels.id(text))).collect();
        let known = Known {
            sleeper: (!symbols.is_empty()).then(|| labels.id(SLEEPER)),
            unnamed: labels.id("(running when recording began)"),
            remote_wake: labels.id("sched_ttwu_pending"),
            unseen: labels.id("(came without a recorded switch)"),
            system_call: labels.id("system call"),
            outside: labels.id("firmware or hypervisor"),
            interrupts: has_interrupts(&|name| formats.by_name(name).is_some()),
            out_of_budget: labels.id("out of budget"),
            rt: symbols.find(RT_ONLY).is_some(),
        };
        let names = catalogue.events.iter().map(|spec| spec.name.clone()).collect();
        let (plans, unreadable, has_constants) = (Vec::new(), Vec::new(), !constants.is_empty());
        let endian = formats.endian();
        let sets = CpuSets::default();
        let mut decoder = Self {
            endian,
            plans,
            names,
            symbols,
            helpers: catalogue.helpers.clone(),
            functions,
            stacks: KnownStacks::default(),
            idle_states: FxHashMap::default(),
            changes_ns: FrequencyChanges::default(),
            users: Users::default(),
            has_constants,
            tasks,
            sets,
            known,
            unreadable,
        };
        for format in formats.iter() {
            decoder.plan(catalogue, formats, format);
        }
        decoder
    }

    /// Adds what the CPUs' drivers report: exit latencies of the idle states, which events name by
    /// number, where they are not zero, and the duration of a frequency change.
    #[must_use]
    pub fn knowing(mut self, states: &IdleStates, changes_ns: &FrequencyChanges) -> Self {
        self.changes_ns.clone_from(changes_ns);
        for (&cpu, states) in states {
            for (&number, state) in states.iter().filter(|(_, state)| state.exit_latency_us > 0) {
                let IdleState { name, exit_latency_us } = state;
                let label = self.tasks.labels.id(&format!("{name}, at most {exit_latency_us} us to leave"));
                let exit_ns = i64::try_from(exit_latency_us.saturating_mul(1000)).unwrap_or(i64::MAX);
                self.idle_states.insert((cpu, u64::from(number)), view::IdleState { label, exit_ns });
            }
        }
        self
    }

    /// The decoder of a trace file, with the program functions that its recorder stored beside it.
    pub fn of(file: &TraceFile, catalogue: &EventCatalogue) -> Result<Self, Error> {
        let mut decoder = Self::new(catalogue, file.formats(), file.symbols()?, &file.constants()?);
        if let Some(frames) = program_functions(file)? {
            decoder.users.knows(frames);
        }
        Ok(decoder)
    }

    /// Prepares to read the trace again, from its beginning; names stay.
    pub(crate) fn begin(&mut self) {
        self.users.begin();
    }

    /// Decodes an event. `None` for a number that no format of the trace has.
    pub fn decode(&mut self, event: &Event<'_>) -> Option<KernelEvent> {
        let mut decoded = KernelEvent::NOTHING;
        self.decode_into(event, &mut decoded).then_some(decoded)
    }

    /// The same in place: events are large, and copying what was just written in pieces stalls
    /// the CPU. Returns whether there is such an event.
    #[inline]
    pub fn decode_into(&mut self, event: &Event<'_>, decoded: &mut KernelEvent) -> bool {
        let Self {
            plans,
            symbols,
            helpers,
            functions,
            stacks,
            tasks,
            sets,
            endian,
            idle_states,
            changes_ns,
            users,
            ..
        } = self;
        let Names { labels, comms, .. } = tasks;
        let Some(Some(plan)) = plans.get(usize::from(event.id)) else { return false };
        decoded.ts_ns = event.ts_ns.min(i64::MAX as u64) as i64;
        decoded.cpu = event.cpu;
        decoded.pid = event.pid;
        decoded.level = level(event.flags);
        decoded.irqs_off = event.flags & IRQS_OFF != 0;
        decoded.event = plan.event;
        let mut namer = Namer {
            symbols,
            helpers,
            functions,
            comms,
            stacks,
            idle_states,
            changes_ns,
            labels,
            sets,
            endian: *endian,
            data: event.data,
            cpu: event.cpu,
        };
        let matters = plan.only.as_ref().is_none_or(|(field, value)| namer.number(field) == *value);
        if matters {
            decoded.what = namer.what(&plan.pick);
        } else {
            decoded.what = What::Other;
        }
        if let Pick::UserStack(layout) = &plan.pick {
            users.found((event.cpu, event.pid), layout, event.data, labels);
        }
        users.event(decoded, labels);
        true
    }

    /// The records of a trace with these formats that mean the same as [`Decoder::decode`].
    pub(crate) fn records(&self, formats: &Formats) -> Records {
        let plan = |format: &EventFormat| self.plans.get(usize::from(format.id))?.as_ref();
        Records::of(formats, |format| plan(format).is_some_and(|plan| plan.only.is_none()))
    }

    /// Decodes a record of [`Decoder::records`]; `None` for any other event, and where more than
    /// its own fields matter. `names`: those of its tasks ([`Names::of_record`]).
    #[inline(always)]
    pub(crate) fn of_record(
        &self,
        event: &Event<'_>,
        record: &Record<'_>,
        names: [LabelId; 2],
    ) -> Option<(At, Says)> {
        if !self.users.is_empty() {
            return None;
        }
        let at = At {
            ts_ns: event.ts_ns.min(i64::MAX as u64) as i64,
            cpu: event.cpu,
            pid: event.pid,
            level: level(event.flags),
            irqs_off: event.flags & IRQS_OFF != 0,
        };
        match record {
            Record::Switch { prev, state, next } => {
                let (prev, next) = (task(prev, names[0]), task(next, names[1]));
                let runnable = state & namer::TASK_STATES == 0;
                Some((at, Says::Switch(Switch { prev, runnable, next })))
            }
            Record::Wake { task, target, done } => {
                Some((at, Says::Wake(Wake { pid: task.pid, target: *target, done: *done })))
            }
            Record::Other => None,
        }
    }

    /// Names of the events by [`KernelEvent::event`].
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The name of a task by the last event so far that named it: the names stored in the trace
    /// are those at its end, of few tasks.
    pub fn comm(&self, pid: i32) -> Option<&str> {
        self.tasks.comms.of(pid).map(|name| self.tasks.labels.text(name))
    }

    /// The names of all tasks that events have named.
    pub fn comms(&self) -> impl Iterator<Item = (i32, &str)> {
        self.tasks.comms.iter().map(|(pid, name)| (pid, self.tasks.labels.text(name)))
    }

    /// The texts of the labels.
    pub fn labels(&self) -> &Labels {
        &self.tasks.labels
    }

    /// The same, and the names of tasks.
    pub(crate) fn tasks(&self) -> &Names {
        &self.tasks
    }

    /// The same, for other readers of the trace.
    pub(crate) fn tasks_mut(&mut self) -> &mut Names {
        &mut self.tasks
    }

    /// The CPU sets of the sends.
    pub fn sets(&self) -> &CpuSets {
        &self.sets
    }

    /// What the span rules need.
    pub fn known(&self) -> Known {
        self.known
    }

    /// Whether functions can be named.
    pub fn has_symbols(&self) -> bool {
        !self.symbols.is_empty()
    }

    /// Events that this kernel writes in a form the analysis cannot use, one sentence each.
    pub fn unreadable(&self) -> &[String] {
        &self.unreadable
    }

    /// The classes whose events were recorded, so that zero means zero.
    pub fn observable(&self, catalogue: &EventCatalogue, recorded: &[String]) -> BTreeSet<EventClass> {
        let mut classes = BTreeSet::new();
        for (index, spec) in
            catalogue.events.iter().enumerate().filter(|(_, spec)| recorded.contains(&spec.name))
        {
            let plan = self.plans.iter().flatten().find(|plan| usize::from(plan.event) == index);
            match plan.map(|plan| &plan.pick) {
                None | Some(Pick::Other) => {}
                Some(Pick::Switch(_)) => classes.extend([EventClass::Switch, EventClass::SelfCaused]),
                Some(Pick::Enter { class, label, when, .. }) => {
                    classes.insert(*class);
                    // A class that depends on a resolved address is not observable without names.
                    let has_name = match label {
                        Naming::Function(_) => self.has_symbols(),
                        Naming::Constant(_) => self.has_constants,
                        _ => true,
                    };
                    if has_name {
                        classes.extend(when.values());
                    }
                }
                Some(_) => classes.extend(spec.class),
            }
        }
        classes
    }
}

#[inline(always)]
fn task(field: &TaskField<'_>, name: LabelId) -> Task {
    let TaskField { comm, pid, prio } = *field;
    let prio = Prio::of(Some(i64::from(prio)), comm);
    Task { pid, prio, comm: name, softirqd: namer::is_softirqd(comm) }
}

#[cfg(test)]
mod tests;
