//! What if: the model with something of a thread changed.
//!
//! The rest stays as it was observed: a thread that is released by another keeps its jitter, and
//! caches are taken to behave as before, and locks to be held as long.

use super::lock_shape::Served;
use super::shape::{TaskModel, ThreadModel};
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
        }
    }
}

/// A time as a whole number of the largest unit that it is one of.
fn whole(ns: u64) -> String {
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

const EXPECTED: &str = "expected NAME.KEY=VALUE with KEY one of priority, cpu, period, cost, jitter, asleep, such as control.priority=80; or locks=PROTOCOL";
/// Before the protocol of all locks.
const LOCKS: &str = "locks=";

impl Change {
    /// Reads `NAME.KEY=VALUE` or `locks=PROTOCOL`.
    pub fn parse(text: &str) -> Result<Self, NoChange> {
        if let Some(name) = text.strip_prefix(LOCKS) {
            return Ok(Self { thread: String::new(), value: Value::Locks(served(name)?) });
        }
        let parts = text.rsplit_once('=').and_then(|(before, value)| Some((before.rsplit_once('.')?, value)));
        let Some(((thread, key), value)) = parts else { return Err(NoChange(EXPECTED.to_owned())) };
        let time = || {
            let ns = duration(value).map_err(|error| NoChange(format!("{key}: {error}")))?.as_nanos();
            u64::try_from(ns).map_err(|_| NoChange(format!("{key}: {value} is too long")))
        };
        let number = |least: u32, most: u32| {
            let range = least..=most;
            let number = value.parse().ok().filter(|number| range.contains(number));
            number.ok_or_else(|| NoChange(format!("{key}: {value}, expected {least} to {most}")))
        };
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

    fn apply(&self, thread: &mut ThreadModel) {
        match self.value {
            // Of the whole model.
            Value::Locks(_) => {}
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
    there.map(|one| one.dispatch_ns).max().unwrap_or(0).max(thread.dispatch_ns)
}

/// The model with these changes. Refuses threads that have no model, and CPUs that were not
/// recorded: what competes there is not known.
pub fn changed(model: &TaskModel, changes: &[Change]) -> Result<TaskModel, NoChange> {
    let mut result = model.clone();
    for change in changes {
        if let Value::Locks(served) = change.value {
            serve(&mut result, served)?;
            continue;
        }
        let is_named =
            |thread: &ThreadModel| thread.comm == change.thread || with_number(thread) == change.thread;
        let mut count = 0;
        for thread in result.threads.iter_mut().filter(|one| is_named(one) && one.is_task()) {
            if let Value::Cpu(cpu) = change.value {
                thread.dispatch_ns = dispatch_on(model, thread, cpu);
            }
            change.apply(thread);
            count += 1;
        }
        if count == 0 {
            let names: Vec<&str> = model
                .threads
                .iter()
                .filter(|thread| thread.is_task())
                .map(|thread| thread.comm.as_str())
                .collect();
            return Err(NoChange(format!(
                "no thread with a model is named {}, expected one of {}",
                change.thread,
                if names.is_empty() { "none".to_owned() } else { names.join(", ") }
            )));
        }
        if let Value::Cpu(cpu) = change.value
            && !model.knows(cpu)
        {
            return Err(NoChange::unrecorded(cpu));
        }
    }
    result.threads.sort_by_key(|thread| (thread.prio.unwrap_or(i16::MAX), thread.pid));
    Ok(result)
}
