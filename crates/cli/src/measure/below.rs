//! Real-time threads of programs that may run on the measured CPUs below the probe's priority: it
//! takes the CPU from them, so that what waits for them is not measured.

use machine::{Root, UserThread};
use model::Cpus;
use model::foreign::in_a_line;
use model::sample::Policy;

/// Threads that are named.
const NAMED: usize = 3;

/// What a reader of the latencies has to know of such threads; `None` where there are none.
/// `online`: all CPUs.
pub(super) fn limit(policy: &Policy, measured: &Cpus, online: &Cpus) -> Option<String> {
    if !["SCHED_FIFO", "SCHED_RR"].contains(&policy.name.as_str()) {
        return None;
    }
    let root = Root::live();
    let threads = machine::user_threads(&root, &machine::processes(&root).user);
    sentence(&threads, policy.priority, measured, online)
}

fn sentence(threads: &[UserThread], probe: u32, measured: &Cpus, online: &Cpus) -> Option<String> {
    // One that may run anywhere is seldom here.
    let is_below = |thread: &&UserThread| {
        (2..probe).contains(&thread.priority)
            && !thread.allowed.and(measured).is_empty()
            && thread.allowed != *online
    };
    let mut below: Vec<&UserThread> = threads.iter().filter(is_below).collect();
    below.sort_by_key(|thread| (std::cmp::Reverse(thread.priority), thread.tid));
    let lowest = below.last()?.priority;
    let name = |thread: &&UserThread| {
        format!("{}[{}] (priority {})", in_a_line(&thread.name), thread.tid, thread.priority)
    };
    let named: Vec<String> = below.iter().take(NAMED).map(name).collect();
    let more = match below.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Some(format!(
        "{}{more} may run there below the probe's priority of {probe}, which takes the CPU from such threads: to measure \
         how long others wait for them, use -p {}",
        named.join(", "),
        lowest - 1
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use machine::Policy as Scheduled;

    #[test]
    fn threads_that_the_probe_preempts_are_named_with_the_priority_that_sees_them() {
        let thread = |tid: u32, name: &str, allowed: &str, priority: u32| UserThread {
            tid,
            pid: tid,
            name: name.to_owned(),
            start: 0,
            allowed: allowed.parse().unwrap(),
            last: 0,
            policy: if priority > 0 { Scheduled::Fifo } else { Scheduled::Other },
            priority,
        };
        let (measured, online): (Cpus, Cpus) = ("2".parse().unwrap(), "0-3".parse().unwrap());
        let threads = [
            thread(1, "visiond", "2", 90),
            thread(2, "anywhere", "0-3", 90),
            thread(3, "elsewhere", "0-1", 90),
            thread(4, "ordinary", "2", 0),
            thread(5, "above", "2", 99),
            thread(6, "slower", "2-3", 40),
        ];
        assert_eq!(
            sentence(&threads, 99, &measured, &online).unwrap(),
            "visiond[1] (priority 90), slower[6] (priority 40) may run there below the probe's priority of 99, which takes the CPU \
             from such threads: to measure how long others wait for them, use -p 39"
        );
        assert_eq!(sentence(&threads, 30, &measured, &online), None);
    }
}
