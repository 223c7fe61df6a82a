//! User threads that may run, or last ran, on the measured CPUs, by process.
//!
//! Source: proc(5): `Cpus_allowed_list` of `/proc/PID/task/TID/status`, field 39 of `stat`.

use super::super::catalogue::Mechanism;
use super::remedy::{Off, elsewhere, propose};
use super::{Outcome, Scene, named, some_of};
use machine::UserThread;
use model::plan::StepKind;
use std::collections::BTreeMap;

pub(super) fn judge(scene: &Scene, mechanism: &Mechanism, name: Option<&str>) -> Outcome {
    let all = scene.user_threads();
    if all.is_empty() {
        return Outcome::unknown("no user threads could be read");
    }
    let leaders: BTreeMap<u32, &str> =
        scene.processes().user.iter().map(|process| (process.pid, process.name.as_str())).collect();
    let of_name = |thread: &&UserThread| name.is_none_or(|name| leaders.get(&thread.pid) == Some(&name));
    let ours: Vec<_> = all.iter().filter(of_name).collect();
    if ours.is_empty() {
        return Outcome::absent(mechanism);
    }
    let here: Vec<_> =
        ours.iter().copied().filter(|thread| !thread.allowed.and(scene.cpus).is_empty()).collect();
    // CPUs outside the scheduling domains get only tasks that are pinned to them: those are there
    // on purpose, unless the user says that they are not.
    let apart = !scene.evicts && scene.cpus.is_subset(&scene.machine.topology.isolated);
    let at_home = |thread: &&UserThread| apart && thread.allowed.is_subset(&scene.isolated);
    let (home, here): (Vec<_>, Vec<_>) = here.into_iter().partition(at_home);
    // A container or hidepid= shows own processes only, and kernel threads are everywhere.
    if here.is_empty() && scene.processes().kernel.is_empty() {
        let reason =
            format!("not all processes are to be seen from here, others may run on {}", named(scene.cpus));
        return Outcome::unknown(reason);
    }
    // A thread that may not come back says nothing by where it last ran.
    let seen = here.iter().filter(|thread| scene.cpus.contains(thread.last)).count();
    if here.is_empty() && !home.is_empty() {
        let reason = format!(
            "the scheduler moves no thread to {}, but these are pinned there: {}",
            named(scene.cpus),
            pinned(&home, &leaders)
        );
        let otherwise = command(scene, all, &home);
        return Outcome { otherwise: Some(otherwise), ..Outcome::ok(reason) }.having(pinned(&home, &leaders));
    }
    if here.is_empty() {
        return Outcome::ok(format!("no user thread may run on {}", named(scene.cpus)));
    }
    let reason = format!(
        "{} of {} user threads may run on {} and {seen} last ran there ({}){}: {}",
        here.len(),
        ours.len(),
        named(scene.cpus),
        by_process(&here, &leaders),
        if apart {
            format!("; the scheduler moves none there, {} more are pinned there", home.len())
        } else {
            String::new()
        },
        mechanism.harm
    );
    let off = |thread: &&UserThread| Off {
        kind: StepKind::Task,
        target: format!("{}/{}/{}", thread.tid, thread.start, thread.name),
        old: thread.allowed.to_string(),
    };
    let outcome = propose(scene, mechanism, &here.iter().map(off).collect::<Vec<_>>(), reason);
    Outcome { remedy: outcome.remedy.map(|_| command(scene, all, &here)), ..outcome }
        .having(format!("{} threads", here.len()))
}

/// Whole processes are moved, unless one affinity for all their threads would give one of them CPUs
/// that it had not.
fn command(scene: &Scene, all: &[UserThread], here: &[&UserThread]) -> String {
    let narrowed = |thread: &UserThread| elsewhere(scene, &thread.allowed.to_string()).text;
    let mut pids: Vec<_> = here.iter().map(|thread| thread.pid).collect();
    pids.dedup();
    let mut moves = BTreeMap::<String, Vec<String>>::new();
    for pid in pids {
        let threads: Vec<_> = all.iter().filter(|thread| thread.pid == pid).collect();
        let cpus = narrowed(threads[0]);
        if threads.iter().all(|thread| narrowed(thread) == cpus) {
            moves.entry(format!("-apc {cpus}")).or_default().push(pid.to_string());
            continue;
        }
        for thread in here.iter().filter(|thread| thread.pid == pid) {
            moves.entry(format!("-pc {}", narrowed(thread))).or_default().push(thread.tid.to_string());
        }
    }
    if moves.values().map(Vec::len).sum::<usize>() > 8 {
        return format!("stillcore isolate apply --cpus {}", scene.cpus);
    }
    let command = |(how, numbers): (&String, &Vec<String>)| match numbers.as_slice() {
        [one] => format!("taskset {how} {one}"),
        some => format!("for n in {}; do taskset {how} $n; done", some.join(" ")),
    };
    moves.iter().map(command).collect::<Vec<_>>().join(" && ")
}

/// The processes of threads that are pinned, each with its number: `web (7)`.
fn pinned(home: &[&UserThread], leaders: &BTreeMap<u32, &str>) -> String {
    let mut counts = BTreeMap::<u32, (&str, u64)>::new();
    for thread in home {
        let name = leaders.get(&thread.pid).copied().unwrap_or(&thread.name);
        counts.entry(thread.pid).or_insert((name, 0)).1 += 1;
    }
    let one = |(pid, (name, threads)): (u32, (&str, u64))| match threads {
        1 => format!("{name} ({pid})"),
        more => format!("{name} ({pid}, {more} threads)"),
    };
    some_of(&counts.into_iter().map(one).collect::<Vec<_>>())
}

fn by_process(here: &[&UserThread], leaders: &BTreeMap<u32, &str>) -> String {
    let mut counts = BTreeMap::<&str, usize>::new();
    for thread in here {
        *counts.entry(leaders.get(&thread.pid).copied().unwrap_or(&thread.name)).or_default() += 1;
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    some_of(&counts.iter().map(|(name, count)| format!("{name} {count}")).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{found, judged, with_cpus};

    fn with_threads(allowed: &str) -> (String, String, String) {
        let stat =
            |cpu: u32| format!("7 (web) S 1 7 7 0 -1 64 {}90 {}{cpu} 0", "0 ".repeat(12), "0 ".repeat(16));
        let status = format!("Name:\tweb\nCpus_allowed_list:\t{allowed}");
        judged(
            "user-tasks",
            &with_cpus(&[
                ("proc/7/stat", &stat(2)),
                ("proc/7/task/7/stat", &stat(2)),
                ("proc/7/task/7/status", &status),
                ("proc/2/stat", "2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0"),
                ("proc/2/status", "Cpus_allowed_list:\t0-3"),
                ("proc/7/task/8/stat", &stat(0)),
                ("proc/7/task/8/status", "Cpus_allowed_list:\t0-1"),
            ]),
        )
    }

    #[test]
    fn tasks_are_reported_by_process_and_moved_with_all_their_threads() {
        let (state, reason, remedy) = with_threads("0-3");
        assert_eq!((state.as_str(), remedy.as_str()), ("fixable", "taskset -apc 0,1 7"));
        assert!(
            reason.starts_with("1 of 2 user threads may run on CPUs 2,3 and 1 last ran there (web 1)"),
            "{reason}"
        );
        assert_eq!(with_threads("0-1").0, "ok");
        // Under hidepid=2, and in a PID namespace, there are no kernel threads to be seen, nor
        // others' processes.
        let (state, reason, _) = judged(
            "user-tasks",
            &with_cpus(&[
                ("proc/7/stat", "7 (web) S 1 7 7 0 -1 64 0 0 0 0"),
                ("proc/7/task/7/stat", "7 (web) S 1 7 7 0 -1 64 0 0 0 0"),
                ("proc/7/task/7/status", "Cpus_allowed_list:\t0-1"),
            ]),
        );
        assert_eq!(state, "unknown", "{reason}");
        assert_eq!(judged("user-tasks", &with_cpus(&[])).0, "unknown");
    }

    /// They may be what the CPU was isolated for, or have been forgotten there: only the user
    /// knows.
    #[test]
    fn tasks_pinned_to_an_isolated_cpu_are_named_with_what_moves_them() {
        let task = |allowed| {
            let files = [
                ("sys/devices/system/cpu/isolated", "2-3"),
                ("proc/7/stat", "7 (web) S 1 7 7 0 -1 64 0 0 0 0"),
                ("proc/7/task/7/stat", "7 (web) S 1 7 7 0 -1 64 0 0 0 0"),
                ("proc/7/task/7/status", allowed),
                ("proc/2/stat", "2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0"),
                ("proc/2/status", "Cpus_allowed_list:\t0-3"),
            ];
            found("user-tasks", &[&[("sys/devices/system/cpu/online", "0-3")], &files[..]].concat())
        };
        let pinned = task("Name:\tweb\nCpus_allowed_list:\t2");
        assert_eq!((pinned.state.name(), pinned.have.as_deref()), ("ok", Some("web (7)")));
        assert_eq!(pinned.otherwise.as_deref(), Some("taskset -apc 0,1 7"));
        assert!(pinned.reason.ends_with("these are pinned there: web (7)"), "{}", pinned.reason);
        assert_eq!(task("Name:\tweb\nCpus_allowed_list:\t0-1").otherwise, None);
    }
}
