//! What if: a thread that is not there yet, and one that is there no more.
//!
//! A thread is added with what its author knows of it. What only the machine knows, how late the
//! kernel dispatches it, is that of the CPU; where no real-time thread was woken there, it is not
//! known, and the thread is refused.

use super::super::shape::{Release, ReleaseKind, Suspension, TaskModel, ThreadModel};
use super::super::system::Assumed;
use super::{Change, NoChange, Value, is_named, number, time, whole};
use infer::cost::CostCurve;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Share of a thread's jobs, in percent, that another releases, from which on it cannot be without
/// that one.
const FOLLOWED: u64 = 90;

/// A thread that is added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Added {
    /// Its real-time priority, 1 to 99.
    pub priority: i16,
    /// Its CPU.
    pub cpu: u32,
    /// Its period, ns.
    pub period_ns: u64,
    /// The longest execution of a job, ns.
    pub cost_ns: u64,
    /// Its relative deadline, ns; `None`: the period.
    #[serde(default)]
    pub deadline_ns: Option<u64>,
    /// Its release jitter, ns.
    #[serde(default)]
    pub jitter_ns: u64,
    /// The longest suspension of a job, ns.
    #[serde(default)]
    pub asleep_ns: u64,
}

const EXPECTED: &str = "expected add=NAME,period=TIME,cost=TIME,priority=1-99,cpu=N, with or without deadline=TIME, jitter=TIME and asleep=TIME";

impl Added {
    /// Reads `NAME,KEY=VALUE,...`; the name is everything before the first key.
    pub(super) fn parse(text: &str) -> Result<(String, Self), NoChange> {
        let no = |what: String| NoChange::new(format!("{what}: {EXPECTED}"));
        let mut pieces: Vec<&str> = text.split(',').collect();
        let keys = pieces.iter().position(|piece| piece.contains('=')).unwrap_or(pieces.len());
        let values = pieces.split_off(keys);
        let name = pieces.join(",");
        if name.is_empty() {
            return Err(no("a thread without a name".to_owned()));
        }
        let (mut period_ns, mut cost_ns, mut priority, mut cpu) = (None, None, None, None);
        let (mut deadline_ns, mut jitter_ns, mut asleep_ns) = (None, None, None);
        for piece in values {
            let (key, value) = piece.split_once('=').ok_or_else(|| no(format!("{piece:?}")))?;
            let of_time = || time(key, value).map(Some);
            match key {
                "period" => period_ns = of_time()?,
                "cost" => cost_ns = of_time()?,
                "deadline" => deadline_ns = of_time()?,
                "jitter" => jitter_ns = of_time()?,
                "asleep" => asleep_ns = of_time()?,
                "priority" => priority = Some(number(key, value, 1, 99)? as i16),
                "cpu" => cpu = Some(number(key, value, 0, model::cpus::MAX_CPU)?),
                _ => return Err(no(format!("unknown key {key:?}"))),
            }
        }
        let missing = |key: &str| no(format!("{name} without {key}"));
        let above_0 = |ns: &u64| *ns > 0;
        let added = Self {
            priority: priority.ok_or_else(|| missing("priority"))?,
            cpu: cpu.ok_or_else(|| missing("cpu"))?,
            period_ns: period_ns.filter(above_0).ok_or_else(|| missing("a period above 0"))?,
            cost_ns: cost_ns.filter(above_0).ok_or_else(|| missing("a cost above 0"))?,
            deadline_ns: match deadline_ns {
                Some(0) => return Err(missing("a deadline above 0")),
                other => other,
            },
            jitter_ns: jitter_ns.unwrap_or(0),
            asleep_ns: asleep_ns.unwrap_or(0),
        };
        Ok((name, added))
    }

    fn thread(&self, model: &TaskModel, name: &str, dispatch_ns: u64) -> ThreadModel {
        let suspends = u64::from(self.asleep_ns > 0);
        // Numbers below 1 are of no thread that there is.
        let pid = model.threads.iter().map(|one| one.pid).min().unwrap_or(0).min(0) - 1;
        ThreadModel {
            pid,
            comm: name.to_owned(),
            policy: Some(format!("SCHED_FIFO {}", self.priority)),
            prio: Some(99 - self.priority),
            cpus: [self.cpu].into_iter().collect(),
            of_program: true,
            waits_in: None,
            confidence: None,
            release: Release {
                kind: ReleaseKind::Periodic,
                period_ns: self.period_ns,
                jitter_ns: self.jitter_ns,
                own_jitter_ns: Some(self.jitter_ns),
                from_ns: model.from_ns,
                to_ns: model.to_ns,
                n: 1,
                ..Release::NONE
            },
            cost: CostCurve { curve_ns: vec![self.cost_ns], n: 1, total_ns: self.cost_ns },
            suspension: Suspension {
                total_ns: self.asleep_ns,
                most: suspends,
                jobs: suspends,
                n: suspends,
                sum_ns: self.asleep_ns,
            },
            dispatch_ns,
            kept: None,
            response_ns: 0,
            demand: None,
            why: None,
            requests: Vec::new(),
        }
    }
}

impl fmt::Display for Added {
    /// The keys as they are read.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { priority, cpu, period_ns, cost_ns, deadline_ns, jitter_ns, asleep_ns } = *self;
        write!(f, "period={},cost={},priority={priority},cpu={cpu}", whole(period_ns), whole(cost_ns))?;
        let more =
            [("jitter", jitter_ns), ("asleep", asleep_ns)].map(|(key, ns)| (key, (ns > 0).then_some(ns)));
        for (key, ns) in std::iter::once(("deadline", deadline_ns)).chain(more) {
            if let Some(ns) = ns {
                write!(f, ",{key}={}", whole(ns))?;
            }
        }
        Ok(())
    }
}

/// Adds a thread to a model.
pub(super) fn add(model: &mut TaskModel, name: &str, added: &Added) -> Result<(), NoChange> {
    if model.threads.iter().any(|thread| thread.comm == name) {
        let expected = "expected a name that no thread has, so that its deadline is its own";
        return Err(NoChange::new(format!("add={name}: there is a thread of this name; {expected}")));
    }
    if !model.knows(added.cpu) {
        return Err(NoChange::unrecorded(added.cpu));
    }
    let dispatch_ns = dispatch_of(model, added.cpu).ok_or_else(|| {
        NoChange::new(format!(
            "add={name}: how late the kernel dispatches a thread on CPU {} is not known: no real-time thread was woken there",
            added.cpu
        ))
    })?;
    let thread = added.thread(model, name, dispatch_ns);
    model.threads.push(thread);
    Ok(())
}

/// The longest dispatch that was seen on a CPU, ns; `None` where none was.
fn dispatch_of(model: &TaskModel, cpu: u32) -> Option<u64> {
    let of_cpu = model.dispatches.iter().filter(|one| one.cpu == cpu && one.n > 0).map(|one| one.longest_ns);
    let here = model.threads.iter().filter(|one| one.is_task() && one.pid > 0 && one.cpus.contains(cpu));
    of_cpu.chain(here.map(|thread| thread.dispatch_ns)).max()
}

/// Takes the threads of a name out of a model.
pub(super) fn remove(model: &mut TaskModel, name: &str) -> Result<(), NoChange> {
    let before = model.threads.len();
    model.threads.retain(|thread| !(thread.is_task() && is_named(thread, name)));
    if model.threads.len() == before { Err(NoChange::nobody(model, name)) } else { Ok(()) }
}

/// Takes out the links of threads that were removed. A thread whose releases went with them would
/// have none: that is refused.
pub(super) fn unlink(before: &TaskModel, after: &mut TaskModel) -> Result<(), NoChange> {
    let is_there = |model: &TaskModel, pid: i32| model.threads.iter().any(|thread| thread.pid == pid);
    for link in &before.chains {
        let is_needed = link.n * 100 >= link.of * FOLLOWED;
        if is_needed && !is_there(after, link.from) && is_there(after, link.to) {
            return Err(NoChange::new(format!(
                "{}.remove: it releases {}, which would have no releases; expected --what-if {}.remove as well",
                link.from_comm, link.to_comm, link.to_comm
            )));
        }
    }
    let mut chains = std::mem::take(&mut after.chains);
    chains.retain(|link| is_there(after, link.from) && is_there(after, link.to));
    after.chains = chains;
    Ok(())
}

/// The assumptions, with the deadlines of the threads that are added.
pub fn assumed_with(assumed: &Assumed, changes: &[Change]) -> Assumed {
    let mut all = assumed.clone();
    for change in changes {
        if let Value::Add(Added { deadline_ns: Some(ns), .. }) = change.value {
            all.deadlines_ns.insert(change.thread.clone(), ns);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::super::shape::Link;
    use super::super::super::tests::{MS, assumed, program, thread};
    use super::super::super::verdict::{Guarantee, guarantee};
    use super::super::changed;
    use super::*;
    use attribution::jobs::shape::Dispatches;

    fn what_if(model: &TaskModel, texts: &[&str]) -> Result<Guarantee, NoChange> {
        let changes: Vec<Change> = texts.iter().map(|text| Change::parse(text).unwrap()).collect();
        let changed = changed(model, &changes)?;
        Ok(guarantee(&changed, &assumed_with(&assumed(0), &changes)).unwrap())
    }

    fn bounds(guarantee: &Guarantee) -> Vec<(&str, Option<u64>)> {
        guarantee.bounds.iter().map(|one| (one.comm.as_str(), one.bound_ns)).collect()
    }

    fn two() -> TaskModel {
        program(vec![thread(1, 20, 10 * MS, 3 * MS), thread(2, 30, 20 * MS, 5 * MS)], Vec::new())
    }

    #[test]
    fn an_added_thread_competes_with_the_others() {
        let model = two();
        let found = what_if(&model, &["add=new,period=5ms,cost=1ms,priority=90,cpu=1"]).unwrap();
        // 5 + 3 + 2 × 1 at 10 ms, when t1 and the new one come again: 5 + 2 × 3 + 3 × 1 = 14.
        assert_eq!(bounds(&found), [("new", Some(MS)), ("t1", Some(4 * MS)), ("t2", Some(10 * MS))]);
        assert_eq!((found.bounds[0].deadline_ns, found.bounds[0].is_assumed), (Some(5 * MS), true));
        assert!(found.bounds[0].pid < 0);
        // Below the others, with a deadline of its own that it misses, its jitter and suspension.
        let low = "add=low,period=50ms,cost=1ms,priority=10,cpu=1,deadline=8ms,jitter=1ms,asleep=2ms";
        let found = what_if(&model, &[low]).unwrap();
        let last = found.bounds.last().unwrap();
        assert_eq!(
            (last.comm.as_str(), last.deadline_ns, last.in_time()),
            ("low", Some(8 * MS), Some(false))
        );
        assert_eq!(found.schedulable, Some(false));
        // A change of the added thread is one of the same language.
        let found = what_if(&model, &[low, "low.priority=90"]).unwrap();
        assert_eq!(found.bounds[0].comm, "low");
    }

    #[test]
    fn it_is_dispatched_as_late_as_the_others_there_and_not_where_nobody_was() {
        let mut model = two();
        model.threads[0].dispatch_ns = 100_000;
        let new = |cpu: u32| format!("add=new,period=5ms,cost=1ms,priority=90,cpu={cpu}");
        assert_eq!(bounds(&what_if(&model, &[&new(1)]).unwrap())[0], ("new", Some(1_100_000)));
        let refused = what_if(&model, &[&new(3)]).unwrap_err().to_string();
        assert!(refused.contains("CPU 3 was not recorded"), "{refused}");
        model.cpus = [3].into_iter().collect();
        let refused = what_if(&model, &[&new(3)]).unwrap_err().to_string();
        assert!(refused.contains("no real-time thread was woken there"), "{refused}");
        let seen = Dispatches { cpu: 3, n: 50, longest_ns: 300_000, kept: None, timers: 0, late_ns: 0 };
        model.dispatches = vec![seen];
        assert_eq!(bounds(&what_if(&model, &[&new(3)]).unwrap())[0], ("new", Some(1_300_000)));
    }

    #[test]
    fn a_removed_thread_competes_no_more_and_takes_what_it_releases_with_it() {
        let mut model = two();
        assert_eq!(bounds(&what_if(&model, &["t1.remove"]).unwrap()), [("t2", Some(5 * MS))]);
        let link = Link { from: 1, from_comm: "t1".into(), to: 2, to_comm: "t2".into(), n: 99, of: 100 };
        model.chains = vec![link];
        let refused = what_if(&model, &["t1.remove"]).unwrap_err().to_string();
        assert!(refused.contains("it releases t2") && refused.contains("t2.remove"), "{refused}");
        assert_eq!(bounds(&what_if(&model, &["t2.remove"]).unwrap()), [("t1", Some(3 * MS))]);
        let removed = changed(&model, &[Change::parse("t2.remove").unwrap()]).unwrap();
        assert_eq!(removed.chains, []);
        let nobody = what_if(&model, &["t9.remove"]).unwrap_err().to_string();
        assert!(nobody.contains("t9") && nobody.contains("t1, t2"), "{nobody}");
    }

    #[test]
    fn it_is_written_as_it_is_read_and_what_is_missing_is_named() {
        let text = "add=a.b=c,period=5ms,cost=1us,priority=70,cpu=2";
        assert!(Change::parse(text).is_err());
        for text in [
            "add=a.b,c,period=5ms,cost=1us,priority=70,cpu=2",
            "add=new,period=5ms,cost=1500ns,priority=70,cpu=2,deadline=4ms,jitter=1us,asleep=2us",
            "t1.remove",
            "a.b[7].remove",
        ] {
            assert_eq!(Change::parse(text).unwrap().to_string(), text);
        }
        for (text, what) in [
            ("add=new", "new without priority"),
            ("add=,period=5ms", "without a name"),
            ("add=new,period=5ms,cost=1ms,priority=70", "new without cpu"),
            ("add=new,period=0s,cost=1ms,priority=70,cpu=2", "a period above 0"),
            ("add=new,period=5ms,cost=1ms,priority=100,cpu=2", "priority: 100, expected 1 to 99"),
            ("add=new,period=5,cost=1ms,priority=70,cpu=2", "period"),
            ("add=new,speed=5ms", "unknown key \"speed\""),
        ] {
            let refused = Change::parse(text).unwrap_err().to_string();
            assert!(refused.contains(what), "{text}: {refused}");
        }
        let twice = what_if(&two(), &["add=t1,period=5ms,cost=1ms,priority=90,cpu=1"]).unwrap_err();
        assert!(twice.to_string().contains("there is a thread of this name"));
    }
}
