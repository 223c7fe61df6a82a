//! Execution time that is used up, and not only waited for.

use sys::clock;

/// The longest time until it is looked whether to stop, ns.
const LONGEST_NS: i64 = 10_000_000;

/// Executes until the calling thread's CPU-time clock reaches `target_ns`; false where `stopped`
/// says so before. That clock is a system call, so it is read again only when the rest could have
/// been used up: each time that was not so, somebody else had the CPU.
pub fn until_cpu_time(target_ns: i64, stopped: impl Fn() -> bool) -> bool {
    loop {
        let rest_ns = target_ns - clock::thread_cpu_ns();
        if rest_ns <= 0 || stopped() {
            return rest_ns <= 0;
        }
        until(clock::now_ns() + rest_ns.min(LONGEST_NS));
    }
}

/// Executes until CLOCK_MONOTONIC reaches `t_ns`, preempted or not.
pub fn until(t_ns: i64) {
    while clock::now_ns() < t_ns {}
}
