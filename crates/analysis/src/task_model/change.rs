//! What if: the model with something of a thread changed.
//!
//! The rest stays as it was observed: a thread that is released by another keeps its jitter, and
//! caches are taken to behave as before, and locks to be held as long.

mod added;

use super::lock_shape::Served;
use super::shape::{TaskModel, ThreadModel};
pub use added::{Added, assumed_with};
use model::quantity::duration;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What of a thread changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Value {
    /// Its real-time priority, 1 to 99.
    Priority(i16),
    /// Its CPU.
    Cpu(u32),
    /// Its period, ns; the deadline, if that is the period, too.
    Period(u64),
    /// The longest execution of a job, ns.
    Cost(u64),
    /// Its release jitter, ns.
    Jitter(u64),
    /// The longest suspension of a job, ns.
    Asleep(u64),
    /// All locks are served so; of no thread.
    Locks(Served),
    /// There is such a thread, too.
    Add(Added),
    /// It is not there.
    Remove,
}

/// A change of one thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The name of the thread, or of several; `NAME[NUMBER]` of one.
    pub thread: String,
    /// What becomes of it.
    pub value: Value,
}

impl fmt::Display for Change {
    /// As [`Change::parse`] reads it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.thread;
        match self.value {
            Value::Priority(priority) => write!(f, "{name}.priority={priority}"),
            Value::Cpu(cpu) => write!(f, "{name}.cpu={cpu}"),
            Value::Period(ns) => write!(f, "{name}.period={}", whole(ns)),
            Value::Cost(ns) => write!(f, "{name}.cost={}", whole(ns)),
            Value::Jitter(ns) => write!(f, "{name}.jitter={}", whole(ns)),
            Value::Asleep(ns) => write!(f, "{name}.asleep={}", whole(ns)),
            Value::Locks(served) => write!(f, "{LOCKS}{}", served.protocol().name()),
            Value::Add(added) => write!(f, "{ADD}{name},{added}"),
            Value::Remove => write!(f, "{name}{REMOVE}"),
        }
    }
}

/// A time as a whole number of the largest unit that it is one of.
pub(super) fn whole(ns: u64) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    let unit = units.into_iter().find(|(length, _)| ns > 0 && ns.is_multiple_of(*length));
    unit.map_or_else(|| format!("{ns}ns"), |(length, name)| format!("{}{name}", ns / length))
}

/// Why a text is no change, or a change cannot be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoChange(String);

impl NoChange {
    pub(super) fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }

    /// A name that no thread with a model has.
    pub(super) fn nobody(model: &TaskModel, name: &str) -> Self {
        let tasks = model.threads.iter().filter(|thread| thread.is_task());
        let names: Vec<&str> = tasks.map(|thread| thread.comm.as_str()).collect();
        Self(format!(
            "no thread with a model is named {name}, expected one of {}",
            if names.is_empty() { "none".to_owned() } else { names.join(", ") }
        ))
    }

    /// A CPU of which nothing is known.
    pub(super) fn unrecorded(cpu: u32) -> Self {
        Self(format!(
            "CPU {cpu} was not recorded, and what competes there is not known (record it with --cpus)"
        ))
    }
}

impl fmt::Display for NoChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NoChange {}

const EXPECTED: &str = "expected NAME.KEY=VALUE with KEY one of priority, cpu, period, cost, jitter, asleep, such as control.priority=80; or NAME.remove, or add=NAME,period=TIME,cost=TIME,priority=N,cpu=N, or locks=PROTOCOL";
/// Before the protocol of all locks.
const LOCKS: &str = "locks=";
/// Before the name of a thread that is added.
const ADD: &str = "add=";
/// Behind the name of one that is removed.
const REMOVE: &str = ".remove";

/// A time, by the name of its key.
pub(super) fn time(key: &str, value: &str) -> Result<u64, NoChange> {
    let ns = duration(value).map_err(|error| NoChange(format!("{key}: {error}")))?.as_nanos();
    u64::try_from(ns).map_err(|_| NoChange(format!("{key}: {value} is too long")))
}

/// A whole number, by the name of its key.
pub(super) fn number(key: &str, value: &str, least: u32, most: u32) -> Result<u32, NoChange> {
    let range = least..=most;
    let number = value.parse().ok().filter(|number| range.contains(number));
    number.ok_or_else(|| NoChange(format!("{key}: {value}, expected {least} to {most}")))
}

impl Change {
    /// Reads `NAME.KEY=VALUE`, `NAME.remove`, `add=NAME,KEY=VALUE,...` or `locks=PROTOCOL`.
    pub fn parse(text: &str) -> Result<Self, NoChange> {
        if let Some(name) = text.strip_prefix(LOCKS) {
            return Ok(Self { thread: String::new(), value: Value::Locks(served(name)?) });
        }
        if let Some(text) = text.strip_prefix(ADD) {
            let (thread, added) = Added::parse(text)?;
            return Ok(Self { thread, value: Value::Add(added) });
        }
        if let Some(thread) = text.strip_suffix(REMOVE).filter(|name| !name.is_empty()) {
            return Ok(Self { thread: thread.to_owned(), value: Value::Remove });
        }
        let parts = text.rsplit_once('=').and_then(|(before, value)| Some((before.rsplit_once('.')?, value)));
        let Some(((thread, key), value)) = parts else { return Err(NoChange(EXPECTED.to_owned())) };
        let time = || time(key, value);
        let number = |least: u32, most: u32| number(key, value, least, most);
        let value = match key {
            "priority" => Value::Priority(number(1, 99)? as i16),
            "cpu" => Value::Cpu(number(0, model::cpus::MAX_CPU)?),
            "period" => Value::Period(time()?.max(1)),
            "cost" => Value::Cost(time()?),
            "jitter" => Value::Jitter(time()?),
            "asleep" => Value::Asleep(time()?),
            _ => return Err(NoChange(EXPECTED.to_owned())),
        };
        Ok(Self { thread: thread.to_owned(), value })
    }

    /// The CPU that a thread is to have.
    pub fn cpu(&self) -> Option<u32> {
        match self.value {
            Value::Cpu(cpu) | Value::Add(Added { cpu, .. }) => Some(cpu),
            _ => None,
        }
    }

    fn apply(&self, thread: &mut ThreadModel) {
        match self.value {
            // Of the whole model, not of a thread.
            Value::Add(_) | Value::Remove | Value::Locks(_) => {}
            // `task_struct.prio` of a real-time priority (include/linux/sched/prio.h).
            Value::Priority(priority) => (thread.prio, thread.policy) = (Some(99 - priority), None),
            Value::Cpu(cpu) => thread.cpus = [cpu].into_iter().collect(),
            Value::Period(ns) => {
                thread.release.period_ns = ns;
                thread.release.curve.clear();
            }
            Value::Cost(ns) => thread.cost.curve_ns = vec![ns],
            Value::Jitter(ns) => {
                thread.release.jitter_ns = ns;
                thread.release.curve.clear();
            }
            Value::Asleep(ns) => {
                thread.suspension.total_ns = ns;
                thread.suspension.most = if ns == 0 { 0 } else { thread.suspension.most.max(1) };
            }
        }
    }
}

/// How locks are served, by the name of the protocol.
fn served(name: &str) -> Result<Served, NoChange> {
    let expected = "expected pip, mpcp, fmlp+, dpcp or omlp";
    Served::by_name(name).ok_or_else(|| NoChange(format!("locks: {name}, {expected}")))
}

/// Serves all locks so. Refuses a model of which requests are not known.
fn serve(model: &mut TaskModel, served: Served) -> Result<(), NoChange> {
    if !model.locks.every {
        let expected = "expected a recording of every locking (model --locks=every)";
        return Err(NoChange(format!("locks: requests are not known, {expected}")));
    }
    model.locks.assumed = Some(served);
    Ok(())
}

/// Whether a name, with or without the number, is that of the thread.
pub(super) fn is_named(thread: &ThreadModel, name: &str) -> bool {
    thread.comm == name || with_number(thread) == name
}

fn with_number(thread: &ThreadModel) -> String {
    format!("{}[{}]", thread.comm, thread.pid)
}

/// What a change of this thread alone is made by: its name, and its number where others have the
/// same.
pub fn name_for(model: &TaskModel, thread: &ThreadModel) -> String {
    let alone = model.threads.iter().filter(|one| one.comm == thread.comm).count() == 1;
    if alone { thread.comm.clone() } else { with_number(thread) }
}

/// How late the kernel dispatches a thread on a CPU, ns: as it did so far; on another, no later
/// than the threads there either.
pub(super) fn dispatch_on(model: &TaskModel, thread: &ThreadModel, cpu: u32) -> u64 {
    if thread.cpus.contains(cpu) {
        return thread.dispatch_ns;
    }
    let there = model.threads.iter().filter(|one| one.is_task() && one.cpus.contains(cpu));
    let of_cpu = model.dispatches.iter().filter(|one| one.cpu == cpu).map(|one| one.longest_ns);
    there.map(|one| one.dispatch_ns).chain(of_cpu).max().unwrap_or(0).max(thread.dispatch_ns)
}

/// The model with these changes. Refuses threads that have no model, and CPUs that were not
/// recorded: what competes there is not known.
pub fn changed(model: &TaskModel, changes: &[Change]) -> Result<TaskModel, NoChange> {
    let mut result = model.clone();
    for change in changes {
        match change.value {
            Value::Locks(served) => serve(&mut result, served)?,
            Value::Add(added) => added::add(&mut result, &change.thread, &added)?,
            Value::Remove => added::remove(&mut result, &change.thread)?,
            _ => apply_to_named(model, &mut result, change)?,
        }
    }
    added::unlink(model, &mut result)?;
    result.threads.sort_by_key(|thread| (thread.prio.unwrap_or(i16::MAX), thread.pid));
    Ok(result)
}

/// Changes the threads of a name. `model`: as it was.
fn apply_to_named(model: &TaskModel, result: &mut TaskModel, change: &Change) -> Result<(), NoChange> {
    let mut count = 0;
    let named = |one: &&mut ThreadModel| is_named(one, &change.thread) && one.is_task();
    for thread in result.threads.iter_mut().filter(named) {
        if let Value::Cpu(cpu) = change.value {
            thread.dispatch_ns = dispatch_on(model, thread, cpu);
        }
        change.apply(thread);
        count += 1;
    }
    if count == 0 {
        return Err(NoChange::nobody(result, &change.thread));
    }
    match change.value {
        Value::Cpu(cpu) if !model.knows(cpu) => Err(NoChange::unrecorded(cpu)),
        _ => Ok(()),
    }
}
