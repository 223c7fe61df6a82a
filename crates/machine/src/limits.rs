//! What real-time work may do here: resource limits of the user who asks, throttling, the fair
//! server.
//!
//! Sources: setrlimit(2), Linux `Documentation/scheduler/sched-rt-group.rst`,
//! `kernel/sched/debug.c` (`fair_server`, 6.12).

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
    of_user(kernel)
}

#[cfg(target_os = "linux")]
fn of_user(kernel: Limits) -> Limits {
    use rustix::process::{Resource, geteuid, getrlimit};
    Limits {
        euid: geteuid().as_raw(),
        rtprio: getrlimit(Resource::Rtprio).current,
        memlock_bytes: getrlimit(Resource::Memlock).current,
        ..kernel
    }
}

/// Other systems have no such limits, and no machine to measure.
#[cfg(not(target_os = "linux"))]
fn of_user(kernel: Limits) -> Limits {
    kernel
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
