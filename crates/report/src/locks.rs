//! Waits for locks in words that text and page share: who waited, who held the lock and what that
//! one did meanwhile, whether it was priority inversion, and what helps.

use crate::format;
use crate::svg::LaneSpan;
use attribution::attribute::locks::shape::{
    Activity, Evidence, Lock, LockKind, LockSection, LockWait, Part, ThreadName, WaitEnd,
};
use attribution::prio::Prio;
use model::foreign::in_a_line;

/// Parts of a wait below this share are not part of the sentence.
const SMALL: f64 = 0.05;

/// A thread with its number and priority.
pub fn thread(thread: &ThreadName) -> String {
    let prio = thread.prio.and_then(|prio| Prio::new(i64::from(prio)).words());
    let prio = prio.map(|prio| format!(" ({prio})")).unwrap_or_default();
    format!("{}[{}]{prio}", in_a_line(&thread.comm), thread.tid)
}

/// A lock by its name or, where it has none, its address.
pub fn which(name: Option<&str>, word: u64) -> String {
    name.map_or_else(|| format!("{word:#x}"), in_a_line)
}

/// What a thread waited for: a lock of the kernel with the system call in which that was.
fn lock(wait: &LockWait) -> String {
    let call = wait.call.as_ref().map(|call| format!(" in {call}")).unwrap_or_default();
    format!("{} {}{call}", wait.kind.words(), which(wait.name.as_deref(), wait.word))
}

/// One wait in a sentence, without its full stop.
pub fn sentence(wait: &LockWait) -> String {
    let waited_ns = wait.t1_ns.saturating_sub(wait.t0_ns);
    let waited = match wait.end {
        WaitEnd::Lasts => format!("still waited when recording ended, after {}, for", format::ns(waited_ns)),
        WaitEnd::TimedOut => format!("waited {} in vain for", format::ns(waited_ns)),
        WaitEnd::Interrupted => format!("waited {}, until a signal came, for", format::ns(waited_ns)),
        WaitEnd::Released => format!("waited {} for", format::ns(waited_ns)),
    };
    let start = format!("{} {waited} {}", thread(&wait.waiter), lock(wait));
    if wait.circle.len() == 1 {
        return format!("{start}, which it holds itself: deadlock");
    }
    if !wait.circle.is_empty() {
        let names: Vec<String> = wait.circle.iter().map(thread).collect();
        return format!("{start}: deadlock, {} wait for one another", names.join(", "));
    }
    if let Some(why) = &wait.unknown {
        return format!("{start}; owner unknown: {why}");
    }
    let is_one = wait.holders.iter().all(|holder| holder.thread.tid == wait.holders[0].thread.tid);
    let turns = match (wait.kind, is_one) {
        // Whoever woke the waiter did release it, be it a lock or not.
        (LockKind::ByValue, true) => "released by",
        (LockKind::ByValue, false) => "released in turn by",
        (_, true) => "held by",
        (_, false) => "held in turn by",
    };
    let names = first_of(wait.holders.iter().map(|holder| thread(&holder.thread)));
    let did = main_part(wait).map(|part| doing(wait, part)).unwrap_or_default();
    format!("{start}, {turns} {names}{did}{}", verdict(wait))
}

/// Where in the program the lock was asked for, where that was recorded.
pub fn callers(wait: &LockWait) -> Option<String> {
    wait.callers.as_ref().map(|callers| format!("asked for in {}", in_a_line(callers)))
}

/// What is said of it first: inversion if there was any, else the longest.
fn main_part(wait: &LockWait) -> Option<&Part> {
    wait.parts.iter().find(|part| part.inversion).or_else(|| wait.parts.first())
}

fn doing(wait: &LockWait, part: &Part) -> String {
    let all_ns = wait.t1_ns.saturating_sub(wait.t0_ns).max(1);
    if !part.inversion && (part.ns as f64) < SMALL * all_ns as f64 {
        return String::new();
    }
    let who = if part.through.is_empty() && wait.holders.len() == 1 {
        ", which".to_owned()
    } else if part.through.is_empty() {
        format!("; {}", thread(&part.holder))
    } else {
        let way: Vec<String> = part.through.iter().map(|word| format!("{word:#x}")).collect();
        format!(", which waited for {}, held by {}, which", way.join(", then "), thread(&part.holder))
    };
    format!("{who} {}", activity(part, wait.waiter.tid))
}

/// What a holder did, and for how long.
fn activity(part: &Part, waiter: i32) -> String {
    let time = format::ns(i64::try_from(part.ns).unwrap_or(i64::MAX));
    match &part.doing {
        Activity::Ran => format!("ran for {time} of it"),
        Activity::Preempted { by: None } => format!("waited {time} for a CPU"),
        Activity::Preempted { by: Some(by) } if by.tid == 0 => {
            format!("waited {time} until its CPU, which idled, switched to it")
        }
        Activity::Preempted { by: Some(by) } if by.tid == waiter => {
            format!("waited {time} until the waiter had left the CPU")
        }
        Activity::Preempted { by: Some(by) } => format!("was kept off its CPU for {time} by {}", thread(by)),
        Activity::Slept { call: Some(call) } => format!("slept for {time} in {call}"),
        Activity::Slept { call: None } => format!("slept for {time}"),
        Activity::Unknown => format!("did for {time} what was not recorded"),
    }
}

fn verdict(wait: &LockWait) -> &'static str {
    if wait.inversion_ns > 0 && wait.kind == LockKind::ByValue {
        return ": priority inversion if it is a lock";
    }
    match (wait.inversion_ns > 0, wait.inherited) {
        (true, false) => ": priority inversion, not inherited",
        (true, true) => ": priority inversion in spite of inheritance",
        (false, true) => "; its priority was raised for that",
        (false, false) => "",
    }
}

/// The wait that says more than any latency: for ever, or with priority inversion.
pub(crate) fn first(section: &LockSection) -> Option<&LockWait> {
    section.worst.iter().find(|wait| wait.inversion_ns > 0 || !wait.circle.is_empty())
}

/// What helps; `None` where nothing is known to.
pub fn advice(wait: &LockWait) -> Option<String> {
    if !wait.circle.is_empty() {
        return Some("take locks in the same order everywhere".to_owned());
    }
    let inverted: Vec<&Part> = wait.parts.iter().filter(|part| part.inversion).collect();
    if !inverted.is_empty() {
        let mut locks = vec![wait.word];
        // Nobody can make the kernel's own inherit, which have the upper half of all addresses.
        let through = inverted.iter().flat_map(|part| part.through.iter().copied());
        locks.extend(through.filter(|word| word.cast_signed() > 0));
        locks.dedup();
        let names: Vec<String> = locks.iter().map(|word| format!("{word:#x}")).collect();
        return Some(match wait.kind {
            kind if kind.is_of_kernel() => format!(
                "the kernel's own locks inherit with PREEMPT_RT alone, and its semaphores only from one writer: \
                 leave {} out of the loop",
                wait.call.as_deref().unwrap_or("what takes this lock")
            ),
            // Read-write locks of POSIX have no protocol.
            LockKind::ReadWrite => {
                "read-write locks do not inherit: use a mutex with the protocol PTHREAD_PRIO_INHERIT"
                    .to_owned()
            }
            LockKind::Inheriting => {
                format!("every lock on the way must inherit (PTHREAD_PRIO_INHERIT): {}", names.join(", "))
            }
            _ => format!(
                "{}give {} the protocol PTHREAD_PRIO_INHERIT (pthread_mutexattr_setprotocol)",
                if wait.kind == LockKind::ByValue { "if it is a mutex, " } else { "" },
                names.join(" and ")
            ),
        });
    }
    // Asleep in a futex it waits for somebody else.
    let slept = wait.parts.first().filter(|part| {
        let waits = matches!(&part.doing, Activity::Slept { call: Some(call) } if call.starts_with("futex"));
        let is_a_programs = wait.kind != LockKind::ByValue && !wait.kind.is_of_kernel();
        matches!(part.doing, Activity::Slept { .. }) && !waits && is_a_programs
    });
    slept.map(|part| format!("{} must not sleep while it holds the lock", part.holder.comm))
}

/// What shows the holders of a wait.
pub fn evidence(wait: &LockWait) -> String {
    let mut all: Vec<Evidence> =
        wait.holders.iter().flat_map(|holder| holder.evidence.iter().copied()).collect();
    all.sort_unstable();
    all.dedup();
    let words: Vec<&str> = all.into_iter().map(Evidence::words).collect();
    words.join(" and ")
}

/// Who waited for a lock and who held it, by name.
pub fn names<'a>(threads: impl Iterator<Item = &'a ThreadName>) -> String {
    first_of(threads.map(|thread| in_a_line(&thread.comm)))
}

/// The first few of these, each once.
fn first_of(all: impl Iterator<Item = String>) -> String {
    const NAMED: usize = 3;
    let mut names: Vec<String> = Vec::new();
    for name in all {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let more = names.len().saturating_sub(NAMED);
    names.truncate(NAMED);
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    names.join(", ") + &rest
}

/// Waits with priority inversion, and those with it if what they were for is a lock.
pub(crate) fn inversions(section: &LockSection) -> (u64, u64) {
    let perhaps = |lock: &&Lock| lock.kind == LockKind::ByValue;
    let perhaps = section.locks.iter().filter(perhaps).flat_map(|lock| &lock.waiters);
    let perhaps: u64 = perhaps.map(|waiter| waiter.inversions).sum();
    (section.inversions.saturating_sub(perhaps), perhaps)
}

/// What was found, in one line.
pub fn account(section: &LockSection) -> String {
    let sum = |of: fn(&Lock) -> u64| section.locks.iter().map(of).sum::<u64>();
    let (waits, known) = (sum(|lock| lock.n) + section.unlisted, sum(|lock| lock.known));
    let by_value: u64 =
        section.locks.iter().filter(|lock| lock.kind == LockKind::ByValue).map(|lock| lock.known).sum();
    let inversions = match inversions(section) {
        (0, 0) => String::new(),
        (0, n) => format!(", {} with priority inversion if these are locks", format::count(n)),
        (n, 0) => format!(", {} with priority inversion", format::count(n)),
        (n, more) => {
            let (n, more) = (format::count(n), format::count(more));
            format!(", {n} with priority inversion, {more} more if these are locks")
        }
    };
    // Whoever released the others may not have held a lock.
    let others = match by_value {
        0 => String::new(),
        n => format!(", who released it in {} more", format::count(n)),
    };
    let owners = format!("the holder is known in {}{others}", format::count(known.saturating_sub(by_value)));
    let of_kernel = section.locks.iter().filter(|lock| lock.kind.is_of_kernel()).count() as u64;
    let of_kernel = match (of_kernel, section.locks.len()) {
        (0, _) => String::new(),
        (n, all) if n == all as u64 => " of the kernel".to_owned(),
        (n, _) => format!(", {} of the kernel", format::count(n)),
    };
    format!(
        "{} for {}{of_kernel}: {owners}{inversions}",
        format::plural(waits, "wait"),
        format::plural(section.locks.len() as u64, "lock")
    )
}

/// What is not known of it, a sentence each.
pub fn unknown(section: &LockSection) -> Vec<String> {
    let mut all = Vec::new();
    if section.withheld > 0 {
        all.push(format!(
            "{} began or ended where events are missing (lost, or on a CPU that is not recorded): nothing is concluded from them",
            format::plural(section.withheld, "wait")
        ));
    }
    let has = |of_kernel: bool| section.locks.iter().any(|lock| lock.kind.is_of_kernel() == of_kernel);
    if has(true) && !section.kernel_owners {
        all.push(
            "the owners of the kernel's locks were not recorded (--no-syscalls, or a kernel without event probes or type information): whoever \
             woke the waiter is taken for the holder of a mutex, and of other locks none is named"
                .to_owned(),
        );
    }
    if !section.memory && (has(false) || section.withheld > 0) {
        all.push(
            "the memory of locks was not recorded (this kernel takes no kprobe events): whoever woke the waiter is taken for the holder, \
             which is right of a mutex, and a futex of the program's own that has the same value cannot be distinguished from one"
                .to_owned(),
        );
    }
    all
}

/// The wait as it passed, a lane a thread: the waiter, each holder, and whoever had the CPU of a
/// holder; labels are what a lane did.
pub(crate) fn spans(wait: &LockWait) -> Vec<LaneSpan> {
    let span = |lane: &ThreadName, label: &str, t0_ns: i64, t1_ns: i64| LaneSpan {
        lane: thread(lane),
        label: label.to_owned(),
        from_ns: t0_ns as f64,
        ns: t1_ns.saturating_sub(t0_ns) as f64,
    };
    let mut spans = vec![span(&wait.waiter, "waits for the lock", wait.t0_ns, wait.t1_ns)];
    for step in &wait.course {
        let label = match &step.doing {
            Activity::Ran => "holds it and runs",
            Activity::Preempted { .. } => "holds it and waits for the CPU",
            Activity::Slept { .. } => "holds it and sleeps",
            Activity::Unknown => "not recorded",
        };
        spans.push(span(&step.holder, label, step.t0_ns, step.t1_ns));
        if let Activity::Preempted { by: Some(by) } = &step.doing
            && by.tid != 0
            && by.tid != wait.waiter.tid
        {
            let label = if step.inversion { "has its CPU: inversion" } else { "has its CPU" };
            spans.push(span(by, label, step.t0_ns, step.t1_ns));
        }
    }
    spans
}
