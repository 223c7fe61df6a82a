//! What may take a CPU from a real-time busy loop by design: RT throttling, and since 6.12 the fair
//! server in its place.
//!
//! Linux `Documentation/scheduler/sched-rt-group.rst`; `kernel/sched/deadline.c` and `debug.c`
//! (`fair_server`). A kernel with a fair server throttles real-time threads only where it was built
//! with CONFIG_RT_GROUP_SCHED, and then by control groups.

use machine::{Root, mounted_at};
use model::run::Budget;

/// The fair server's defaults (`fair_server_init()`, 6.12).
const FAIR_DEFAULT: Budget = Budget { runtime_ns: 50_000_000, period_ns: 1_000_000_000, assumed: true };

/// Throttling's budget for real-time threads of this CPU, and the fair server's for the others;
/// `None` where they take nothing.
pub fn budgets(root: &Root, cpu: u32) -> (Option<Budget>, Option<Budget>) {
    let Some(server) = fair_server(root, cpu) else { return (throttling(root), None) };
    // With CONFIG_RT_GROUP_SCHED groups of real-time tasks are throttled as before.
    let throttling = if has_symbol(root, "sched_group_set_rt_runtime") { throttling(root) } else { None };
    (throttling, Some(server).filter(|server| server.runtime_ns > 0))
}

/// `sched_rt_runtime_us` of −1 allows all of it.
fn throttling(root: &Root) -> Option<Budget> {
    let micros = |name: &str| root.number::<i64>(&format!("proc/sys/kernel/sched_rt_{name}_us"));
    let (runtime, period) = (micros("runtime")?, micros("period")?);
    let ns = |micros: i64| micros as u64 * 1000;
    (0 <= runtime && runtime < period).then(|| Budget {
        runtime_ns: ns(runtime),
        period_ns: ns(period),
        assumed: false,
    })
}

/// The fair server that takes the largest share of its CPU; `None` where the kernel has none.
pub fn largest_fair_server(root: &Root) -> Option<Budget> {
    let share = |one: &Budget| one.runtime_ns as f64 / one.period_ns.max(1) as f64;
    let cpus = root.cpus("sys/devices/system/cpu/online")?;
    cpus.iter()
        .filter_map(|cpu| fair_server(root, cpu))
        .max_by(|one, other| share(one).total_cmp(&share(other)))
}

/// The server as debugfs shows it; where debugfs is not available, the kernel's symbols still show
/// whether there is one.
fn fair_server(root: &Root, cpu: u32) -> Option<Budget> {
    let debugfs = mounted_at(root, "debugfs").unwrap_or_else(|| "/sys/kernel/debug".to_owned());
    let file = |name: &str| format!("{debugfs}/sched/fair_server/cpu{cpu}/{name}");
    match (root.number(&file("runtime")), root.number(&file("period"))) {
        (Some(runtime_ns), Some(period_ns)) => Some(Budget { runtime_ns, period_ns, assumed: false }),
        _ if has_symbol(root, "fair_server_init") => Some(FAIR_DEFAULT),
        _ => None,
    }
}

fn has_symbol(root: &Root, name: &str) -> bool {
    let symbols = root.maybe("proc/kallsyms").unwrap_or_default();
    symbols.lines().any(|line| line.split_ascii_whitespace().nth(2) == Some(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn machine(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        dir
    }

    fn read(files: &[(&str, &str)]) -> (Option<Budget>, Option<Budget>) {
        budgets(&Root::open(machine(files).path()).unwrap(), 2)
    }

    const PERIOD: (&str, &str) = ("proc/sys/kernel/sched_rt_period_us", "1000000\n");
    const RUNTIME: (&str, &str) = ("proc/sys/kernel/sched_rt_runtime_us", "950000\n");

    #[test]
    fn throttling_is_off_where_all_of_the_period_is_allowed() {
        let allowed = Budget { runtime_ns: 950_000_000, period_ns: 1_000_000_000, assumed: false };
        assert_eq!(read(&[PERIOD, RUNTIME]), (Some(allowed), None));
        assert_eq!(read(&[PERIOD, ("proc/sys/kernel/sched_rt_runtime_us", "-1")]), (None, None));
        assert_eq!(read(&[PERIOD, ("proc/sys/kernel/sched_rt_runtime_us", "1000000")]), (None, None));
        assert_eq!(read(&[]), (None, None));
    }

    #[test]
    fn a_fair_server_takes_the_place_of_throttling() {
        let server = [
            ("d/sched/fair_server/cpu2/runtime", "30000000\n"),
            ("d/sched/fair_server/cpu2/period", "500000000\n"),
            ("proc/mounts", "none /d debugfs rw 0 0\n"),
        ];
        let shown = Budget { runtime_ns: 30_000_000, period_ns: 500_000_000, assumed: false };
        assert_eq!(read(&[PERIOD, RUNTIME, server[0], server[1], server[2]]), (None, Some(shown)));
        let off = ("d/sched/fair_server/cpu2/runtime", "0\n");
        assert_eq!(read(&[PERIOD, RUNTIME, off, server[1], server[2]]), (None, None));
        let symbols = ("proc/kallsyms", "0000000000000000 T fair_server_init\n");
        assert_eq!(read(&[PERIOD, RUNTIME, symbols]), (None, Some(FAIR_DEFAULT)));
    }

    #[test]
    fn groups_of_real_time_tasks_are_throttled_beside_a_fair_server() {
        let symbols = "0000000000000000 T fair_server_init\n0000000000000000 T sched_group_set_rt_runtime\n";
        let allowed = Budget { runtime_ns: 950_000_000, period_ns: 1_000_000_000, assumed: false };
        assert_eq!(read(&[PERIOD, RUNTIME, ("proc/kallsyms", symbols)]), (Some(allowed), Some(FAIR_DEFAULT)));
    }
}
