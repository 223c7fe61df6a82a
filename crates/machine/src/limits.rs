//! What real-time work may do here: resource limits of the user who asks, throttling, the fair server.
//!
//! Sources: setrlimit(2), Linux `Documentation/scheduler/sched-rt-group.rst`, `kernel/sched/debug.c` (`fair_server`, 6.12).

use super::{Root, mounts};
use model::machine::Limits;
use std::collections::BTreeMap;

/// A captured tree has no user: there only the kernel's settings are known. Whether SCHED_FIFO is
/// granted is reported by the probe that requests it.
pub(super) fn read(root: &Root) -> Limits {
    let kernel = Limits {
        rt_runtime_us: root.number("proc/sys/kernel/sched_rt_runtime_us"),
        rt_period_us: root.number("proc/sys/kernel/sched_rt_period_us"),
        fair_server_runtime_ns: fair_server(root),
        ..Limits::default()
    };
    if !root.is_live() {
        return kernel;
    }
    let limits = root.maybe("proc/self/limits").unwrap_or_default();
    let status = root.maybe("proc/self/status").unwrap_or_default();
    let users = status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap_or_default();
    Limits {
        euid: users.split_whitespace().nth(1).and_then(|user| user.parse().ok()).unwrap_or_default(),
        rtprio: soft_limit(&limits, "Max realtime priority"),
        memlock_bytes: soft_limit(&limits, "Max locked memory"),
        ..kernel
    }
}

/// The soft limit of this name in a text of `/proc/PID/limits` (proc(5)); `None`: unlimited.
fn soft_limit(text: &str, name: &str) -> Option<u64> {
    let values = text.lines().find_map(|line| line.strip_prefix(name))?;
    values.split_whitespace().next()?.parse().ok()
}

fn fair_server(root: &Root) -> BTreeMap<u32, u64> {
    let Some(debugfs) = mounts::debugfs(root) else { return BTreeMap::new() };
    let files = root.glob(&format!("{debugfs}/sched/fair_server/cpu*/runtime"));
    let cpu = |file: &str| file.rsplit('/').nth(1)?.strip_prefix("cpu")?.parse().ok();
    files.iter().filter_map(|file| Some((cpu(file)?, root.number(file)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn soft_limits_are_read_by_name() {
        let text = "Limit  Soft Limit  Hard Limit  Units\nMax locked memory         65536   \
                    unlimited   bytes\nMax realtime priority     unlimited            99\n";
        let soft = |name| soft_limit(text, name);
        assert_eq!(soft("Max locked memory"), Some(65536));
        assert_eq!((soft("Max realtime priority"), soft("Max nice")), (None, None));
    }

    #[test]
    fn the_fair_server_is_read_per_cpu_and_only_where_debugfs_is_mounted() {
        let dir = tempfile::tempdir().unwrap();
        let server = dir.path().join("d/sched/fair_server/cpu2");
        std::fs::create_dir_all(&server).unwrap();
        std::fs::write(server.join("runtime"), "50000000\n").unwrap();
        let root = Root::open(dir.path()).unwrap();
        assert!(read(&root).fair_server_runtime_ns.is_empty());
        std::fs::create_dir(dir.path().join("proc")).unwrap();
        std::fs::write(dir.path().join("proc/mounts"), "none /d debugfs rw 0 0\n").unwrap();
        assert_eq!(read(&root).fair_server_runtime_ns, BTreeMap::from([(2, 50_000_000)]));
    }
}
