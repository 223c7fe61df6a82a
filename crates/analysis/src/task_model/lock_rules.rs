//! Which bound holds for which lock, and whose response times none bounds.
//!
//! A mutex that inherits priorities is bounded by priority inheritance (`sched --locks pip`). A
//! plain one has no bound under fixed priorities if a thread may run between a waiter and a holder:
//! it may do so as long as it likes (Sha, Rajkumar and Lehoczky, "Priority inheritance protocols",
//! IEEE Transactions on Computers 39, 1990, section 2). With nothing in between the holder runs
//! whenever the waiter waits, as if it inherited.
//!
//! Sections within sections, and sleeping with a lock, no bound here covers.

use super::lock_shape::{Lock, Served, User};
use super::shape::{TaskModel, ThreadModel};
use crate::words::time;
use attribution::jobs::lock_shape::LockProtocol;
use attribution::prio::Prio;
use model::Cpus;
use sched::locks::Protocol;
use std::collections::{BTreeMap, BTreeSet};

/// What holds of the locks of a model.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Ruling {
    /// How those are served that are counted; `None` where none is.
    pub(super) protocol: Option<Protocol>,
    /// The locks that are counted, by place in the model.
    pub(super) counted: BTreeSet<u32>,
    /// Whether one of them has users on several CPUs.
    pub(super) is_global: bool,
    /// Threads without a bound, by number, and why.
    pub(super) unbounded: BTreeMap<i32, String>,
}

/// Looks at all locks.
pub(super) fn rule(model: &TaskModel) -> Ruling {
    let mut ruling = Ruling::default();
    let assumed = model.locks.assumed.map(Served::protocol);
    if !model.locks.every {
        return ruling;
    }
    for (at, lock) in model.locks.all.iter().enumerate() {
        let thread = |user: &User| model.threads.iter().find(|one| one.pid == user.pid);
        // One that was removed from the model uses it no more.
        let uses = |user: &&User| user.taken > 0 && (!user.is_followed || thread(user).is_some());
        let users: Vec<&User> = lock.users.iter().filter(uses).collect();
        let known: Vec<(&User, &ThreadModel)> =
            users.iter().filter_map(|user| Some((*user, thread(user)?))).collect();
        let is_stranger = is_used_elsewhere(model, lock);
        let is_shared = users.len() > 1 || is_stranger;
        // A lock of threads alone that have no guarantee keeps none waiting that has.
        if !is_shared || !known.iter().any(|(_, thread)| thread.is_task()) {
            continue;
        }
        let refused = if is_stranger {
            Some("a thread of an unknown process uses its address as well".to_owned())
        } else if known.len() < users.len() {
            Some("a thread uses it that was not followed".to_owned())
        } else {
            unknown(model, at as u32, lock, &known).or_else(|| match assumed {
                Some(_) => None,
                None => beyond(model, lock, &known),
            })
        };
        if let Some(why) = refused {
            let why = format!("lock {}: {why}", lock.name());
            let ceiling = known.iter().filter_map(|(_, thread)| thread.prio).min().unwrap_or(i16::MAX);
            ruling.refuse(model, &cpus(&known), ceiling, &why);
            continue;
        }
        ruling.counted.insert(at as u32);
        ruling.is_global |= cpus(&known).len() > 1;
    }
    ruling.protocol = (!ruling.counted.is_empty()).then(|| assumed.unwrap_or(Protocol::Pip));
    ruling
}

/// Whether a thread uses a lock at the same address of which it is not known that it is another
/// one.
fn is_used_elsewhere(model: &TaskModel, lock: &Lock) -> bool {
    model.locks.all.iter().any(|other| {
        let is_same = other.address == lock.address && other.process != lock.process;
        let is_open = other.process.is_none() || lock.process.is_none();
        is_same && is_open && other.users.iter().any(|user| user.taken > 0)
    })
}

impl Ruling {
    /// No bound for threads on these CPUs that are at most as urgent: a holder may have that
    /// priority, and whoever waits for it comes late to those below.
    pub(super) fn refuse(&mut self, model: &TaskModel, cpus: &Cpus, ceiling: i16, why: &str) {
        let is_below = |thread: &&ThreadModel| {
            let here = thread.cpus.iter().any(|cpu| cpus.contains(cpu));
            here && thread.prio.is_none_or(|prio| prio >= ceiling)
        };
        for thread in model.threads.iter().filter(|one| one.is_task()).filter(is_below) {
            self.unbounded.entry(thread.pid).or_insert_with(|| why.to_owned());
        }
    }
}

/// The CPUs of the users of a lock.
pub(super) fn cpus(users: &[(&User, &ThreadModel)]) -> Cpus {
    users.iter().flat_map(|(_, thread)| thread.cpus.iter()).collect()
}

fn name(thread: &ThreadModel) -> String {
    format!("{}[{}]", thread.comm, thread.pid)
}

/// Why no protocol has a bound for a lock.
fn unknown(model: &TaskModel, at: u32, lock: &Lock, users: &[(&User, &ThreadModel)]) -> Option<String> {
    if lock.process.is_none() {
        return Some("the process of a thread that uses it is not known".to_owned());
    }
    if lock.is_shared {
        return Some("it is shared between processes, of which others may hold it".to_owned());
    }
    if let Some((_, thread)) = users.iter().find(|(user, _)| user.separates) {
        return Some(format!(
            "the jobs of {} begin when it gets it, so its waits are none of a job",
            name(thread)
        ));
    }
    if let Some((user, thread)) = users.iter().find(|(user, _)| user.slept_ns > 0) {
        let call = if user.slept_in.is_empty() { "the kernel" } else { &user.slept_in };
        return Some(format!(
            "{} slept in {call} for {} while it held it; no bound is implemented for that",
            name(thread),
            time(user.slept_ns as f64)
        ));
    }
    let other = |place: u32| model.locks.all.get(place as usize).map(Lock::name).unwrap_or_default();
    for (user, thread) in users {
        if let Some(outer) = user.within.first() {
            let outer = other(*outer);
            return Some(format!(
                "{} took it while it held {outer}; nested locks have no bound here",
                name(thread)
            ));
        }
        let inner =
            model.locks.all.iter().find(|one| {
                one.users.iter().any(|inner| inner.pid == user.pid && inner.within.contains(&at))
            });
        if let Some(inner) = inner {
            let inner = inner.name();
            return Some(format!(
                "{} took {inner} while it held it; nested locks have no bound here",
                name(thread)
            ));
        }
    }
    if let Some((_, thread)) = users.iter().find(|(user, _)| user.held_ns.is_none()) {
        return Some(format!("it is not known how long {} holds it", name(thread)));
    }
    let migrates = |(_, thread): &&(&User, &ThreadModel)| thread.cpus.len() > 1;
    if let Some((_, thread)) = users.iter().find(migrates) {
        return Some(format!("{} uses it, which ran on CPUs {}", name(thread), thread.cpus));
    }
    None
}

/// Why the lock as it is has no bound.
fn beyond(model: &TaskModel, lock: &Lock, users: &[(&User, &ThreadModel)]) -> Option<String> {
    match lock.protocol {
        LockProtocol::Inherits => return None,
        LockProtocol::Protects => {
            return Some(
                "it is of the protocol PTHREAD_PRIO_PROTECT, whose ceiling is not recorded".to_owned(),
            );
        }
        LockProtocol::Unknown => {
            return Some("its protocol is not known: no mutex of the GNU C library".to_owned());
        }
        LockProtocol::Plain => {}
    }
    let plain = "it does not inherit priorities";
    for (at, (_, waiter)) in users.iter().enumerate() {
        for (_, holder) in users.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, one)| one) {
            if waiter.cpus != holder.cpus {
                return Some(format!(
                    "{plain}, and {} on CPU {} may wait for {} on CPU {}, however long others keep that one from running",
                    name(waiter),
                    waiter.cpus,
                    name(holder),
                    holder.cpus
                ));
            }
            let Some([high, low]) = waiter.prio.zip(holder.prio).map(|(one, other)| [one, other]) else {
                return Some(format!("{plain}, and a priority of its users is not known"));
            };
            if high >= low {
                continue;
            }
            if let Some(between) = between(model, waiter, holder, [high, low]) {
                return Some(format!(
                    "{plain}, and {between} may run while {} waits for {}, as often and as long as it likes: priority inversion without a bound (give it PTHREAD_PRIO_INHERIT)",
                    name(waiter),
                    name(holder)
                ));
            }
        }
    }
    None
}

/// A thread that may run between a waiter and a holder of their CPU.
fn between(
    model: &TaskModel,
    waiter: &ThreadModel,
    holder: &ThreadModel,
    [high, low]: [i16; 2],
) -> Option<String> {
    let is_fair = |prio: i16| Prio::new(i64::from(prio)).is_fair();
    let found = model.threads.iter().find(|one| {
        let here = one.cpus.iter().any(|cpu| waiter.cpus.contains(cpu));
        let other = one.pid != waiter.pid && one.pid != holder.pid;
        // An equal of the holder may come before it, too.
        here && other
            && one.prio.is_some_and(|prio| prio > high && (prio <= low || is_fair(prio) && is_fair(low)))
    });
    let of_rest =
        || is_fair(low).then(|| "any task of the machine that is not under a real-time policy".to_owned());
    found.map(name).or_else(of_rest)
}
