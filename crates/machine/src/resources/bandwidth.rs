//! The CPU bandwidth of control groups. When it is used up, the kernel throttles their tasks, even
//! on a CPU that nobody else wants.
//!
//! Files: Linux `Documentation/admin-guide/cgroup-v2.rst` (`cpu.max`, `cpu.stat`, `cpu.uclamp.*`),
//! `Documentation/scheduler/sched-bwc.rst` (`cpu.cfs_quota_us`),
//! `Documentation/scheduler/sched-rt-group.rst` (`cpu.rt_runtime_us`, with CONFIG_RT_GROUP_SCHED
//! alone). The first counts ordinary tasks, the last real-time ones.

use super::groups::{GROUPS, members, walk};
use super::scene::{Scene, unknown};
use crate::UserThread;
use model::resource::{Kind, Resource};
use std::collections::BTreeSet;

/// A row for each limit of a group.
pub(super) fn rows(scene: &Scene) -> Vec<Resource> {
    let mut rows = Vec::new();
    let mut seen = BTreeSet::new();
    for mount in scene.mounts() {
        let is_version_1 = mount.kind == "cgroup" && mount.options.split(',').any(|option| option == "cpu");
        if (is_version_1 || mount.kind == "cgroup2") && seen.insert(mount.target.clone()) {
            hierarchy(scene, &mount.target, &mut rows);
        }
    }
    rows
}

fn hierarchy(scene: &Scene, top: &str, rows: &mut Vec<Resource>) {
    let complete = walk(scene, top, |at, group| {
        let name = if group.is_empty() { top } else { group };
        let limits = limits(scene, at, group.is_empty());
        rows.extend(limits.into_iter().map(|limit| row(scene, at, name, limit)));
        true
    });
    if !complete {
        let why = format!("only the first {GROUPS} groups under {top} were read");
        rows.push(unknown(Kind::Bandwidth, format!("{top} ..."), why));
    }
}

/// One limit.
struct Limit {
    file: &'static str,
    asked: String,
    /// Share of a CPU, where it is one.
    effective: Option<String>,
    reason: &'static str,
}

const ORDINARY: &str = "ordinary tasks of the group stand still when it is used up, until the next period";
const REAL_TIME: &str = "real-time tasks of the group stand still when it is used up, until the next period";
const CLAMP: &str = "the frequency of the CPU follows it while tasks of the group run";

fn limits(scene: &Scene, at: &str, top: bool) -> Vec<Limit> {
    let read = |file: &str| scene.root.maybe(&format!("{at}/{file}"));
    let number = |file: &str| scene.root.number::<i64>(&format!("{at}/{file}"));
    let share = |runtime: i64, period: i64| {
        (period > 0).then(|| format!("{} % of a CPU", runtime.saturating_mul(100) / period))
    };
    let mut limits = Vec::new();
    if let Some(text) = read("cpu.max").filter(|text| !text.starts_with("max")) {
        let numbers: Vec<i64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let effective = if let [runtime, period] = numbers[..] { share(runtime, period) } else { None };
        limits.push(Limit { file: "cpu.max", asked: text, effective, reason: ORDINARY });
    }
    if let (Some(quota @ 0..), Some(period)) = (number("cpu.cfs_quota_us"), number("cpu.cfs_period_us")) {
        let (asked, effective) = (format!("{quota} us of {period} us"), share(quota, period));
        limits.push(Limit { file: "cpu.cfs_quota_us", asked, effective, reason: ORDINARY });
    }
    // The top group's is that of the machine, which is a row of its own.
    if let (Some(runtime @ 0..), Some(period), false) =
        (number("cpu.rt_runtime_us"), number("cpu.rt_period_us"), top)
    {
        let (asked, effective) = (format!("{runtime} us of {period} us"), share(runtime, period));
        limits.push(Limit { file: "cpu.rt_runtime_us", asked, effective, reason: REAL_TIME });
    }
    for (file, usual) in [("cpu.uclamp.min", "0.00"), ("cpu.uclamp.max", "max")] {
        if let Some(asked) = read(file).filter(|text| text != usual) {
            limits.push(Limit { file, asked, effective: None, reason: CLAMP });
        }
    }
    limits
}

fn row(scene: &Scene, at: &str, group: &str, limit: Limit) -> Resource {
    let members = members(scene, at);
    let any = |wanted: &dyn Fn(&UserThread) -> bool| {
        let own = |members: &BTreeSet<u32>| {
            scene.threads().iter().any(|thread| members.contains(&thread.pid) && wanted(thread))
        };
        members.as_ref().filter(|_| scene.sees_all()).map(own)
    };
    let may = any(&|thread| thread.allowed.contains(scene.cpu));
    let here = any(&|thread| thread.last == scene.cpu);
    let reason = match may {
        Some(_) => limit.reason.to_owned(),
        None => format!("which tasks it has cannot be read from here; {}", limit.reason),
    };
    let throttled = scene.root.maybe(&format!("{at}/cpu.stat")).and_then(|text| {
        text.lines().find_map(|line| line.strip_prefix("nr_throttled ")?.trim().parse::<u64>().ok())
    });
    let is_quota = matches!(limit.file, "cpu.max" | "cpu.cfs_quota_us");
    let throttled = throttled.filter(|_| is_quota).map(|times| format!("used up {times} times on all CPUs"));
    Resource {
        asked: Some(limit.asked),
        effective: limit.effective,
        observed: throttled,
        owner: Some(format!("cgroup {group}")),
        may_touch: may,
        in_force: here,
        movable: Some(true),
        reason: Some(reason),
        ..Resource::new(Kind::Bandwidth, format!("{} of {group}", limit.file))
    }
}

#[cfg(test)]
mod tests {
    use super::super::scene::tests::KTHREADD;
    use super::*;
    use crate::tree::tree;

    #[test]
    fn limits_of_both_versions_concern_cpus_where_their_tasks_may_run() {
        let stat = format!("7 (a) S 1 7 7 0 -1 64 {}3 0", "0 ".repeat(29));
        let (_dir, root) = tree(&[
            ("proc/mounts", "none /cg cgroup2 rw 0 0\nnone /v1 cgroup rw,cpu,cpuacct 0 0"),
            ("cg/cgroup.procs", "1"),
            ("cg/app/cpu.max", "50000 100000"),
            ("cg/app/cpu.stat", "usage_usec 7\nnr_periods 9\nnr_throttled 4\n"),
            ("cg/app/cpu.uclamp.max", "max"),
            ("cg/app/cpu.uclamp.min", "20.00"),
            ("cg/app/cgroup.procs", "7"),
            ("cg/free/cpu.max", "max 100000"),
            ("v1/cpu.rt_runtime_us", "950000"),
            ("v1/cpu.rt_period_us", "1000000"),
            ("v1/cpu.cfs_quota_us", "-1"),
            ("v1/rt/cpu.rt_runtime_us", "100000"),
            ("v1/rt/cpu.rt_period_us", "1000000"),
            ("proc/7/stat", &stat),
            ("proc/7/task/7/stat", &stat),
            ("proc/7/task/7/status", "Cpus_allowed_list:\t3"),
            KTHREADD[0],
            KTHREADD[1],
            ("cg/hidden/cpu.max", "50000 100000"),
        ]);
        let seen = |cpu| {
            rows(&Scene::new(&root, cpu))
                .into_iter()
                .map(|row| (row.name, row.effective.unwrap_or_default(), row.may_touch, row.in_force))
                .collect::<Vec<_>>()
        };
        let row = |name: &str, share: &str, may| (name.to_owned(), share.to_owned(), Some(may), Some(may));
        // Whose members cannot be read may have tasks here.
        let unknown = |name: &str, share: &str| (name.to_owned(), share.to_owned(), None, None);
        assert_eq!(
            seen(3),
            [
                row("cpu.max of /app", "50 % of a CPU", true),
                row("cpu.uclamp.min of /app", "", true),
                unknown("cpu.max of /hidden", "50 % of a CPU"),
                unknown("cpu.rt_runtime_us of /rt", "10 % of a CPU"),
            ]
        );
        assert_eq!(seen(2)[0], row("cpu.max of /app", "50 % of a CPU", false));
        let first = &rows(&Scene::new(&root, 3))[0];
        assert_eq!(first.observed.as_deref(), Some("used up 4 times on all CPUs"));
    }
}
