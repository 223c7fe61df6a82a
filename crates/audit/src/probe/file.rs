//! Files under `/proc` and `/sys` that hold one value: a word, a number, a CPU list or a hex mask.

use super::super::catalogue::{Effective, Mechanism, Probe, Want};
use super::effective::server;
use super::remedy::{Off, propose};
use super::unread::Unread;
use super::{Outcome, Scene, always, named};
use machine::bracketed;
use model::Cpus;

/// One file and what it holds, in the value's own spelling.
struct Held {
    file: String,
    text: String,
}

pub(super) fn judge(scene: &Scene, mechanism: &Mechanism, paths: &[String]) -> Outcome {
    let held = match read(scene, mechanism, paths) {
        Ok(held) if held.is_empty() => return unmounted(scene, mechanism, paths),
        Ok(held) => held,
        Err(reason) => return Outcome::unknown(reason),
    };
    let have = shown(&held);
    match verdicts(scene, mechanism, &held) {
        Err(reason) => Outcome::unknown(reason),
        Ok(wrong) if wrong.is_empty() => in_effect(scene, mechanism, good(mechanism, &have)),
        Ok(_) if let Some(outcome) = superseded(scene, mechanism) => outcome,
        Ok(wrong) => {
            let harm = whole_period(scene, mechanism).unwrap_or_else(|| mechanism.harm.clone());
            let reason = format!("{}: {harm}", wrong[0].1);
            let off: Vec<_> = wrong.into_iter().map(|(held, _)| Off::file(&held.file, &held.text)).collect();
            propose(scene, mechanism, &off, reason)
        }
    }
    .having(have)
}

/// Nothing was found: the file system may not be mounted, or look empty to this user, which says
/// nothing about the kernel.
pub(super) fn unmounted(scene: &Scene, mechanism: &Mechanism, paths: &[String]) -> Outcome {
    let kind = |path: &String| Some(path.strip_prefix('{')?.split_once('}')?.0.to_owned());
    for kind in paths.iter().filter_map(kind).filter(|kind| kind != "cpu" && kind != "cgroup2") {
        match machine::mounted_at(scene.root, &kind) {
            None => return Outcome::unknown(format!("{kind} is not mounted")),
            // The kernel always keeps something there.
            Some(place) if scene.root.names(&place).is_empty() => {
                return Outcome::unknown(format!("{place} shows nothing: without root it cannot be entered"));
            }
            Some(_) => {}
        }
    }
    Outcome::absent(mechanism)
}

pub(super) fn value(scene: &Scene, mechanism: &Mechanism, paths: &[String]) -> Option<String> {
    let held = read(scene, mechanism, paths).ok()?;
    (!held.is_empty()).then(|| shown(&held))
}

fn shown(held: &[Held]) -> String {
    match held {
        [first, rest @ ..] if rest.iter().all(|other| other.text == first.text) => first.text.clone(),
        _ => held.iter().map(|held| held.text.as_str()).collect::<Vec<_>>().join(" "),
    }
}

fn read(scene: &Scene, mechanism: &Mechanism, paths: &[String]) -> Result<Vec<Held>, Unread> {
    let mut all = Vec::new();
    for file in paths.iter().flat_map(|path| scene.expand(path)) {
        let Some(text) = scene.root.text(&file)? else { continue };
        match mechanism.probe {
            Probe::FileBracketedWord { .. } => match bracketed(&text).map(str::to_owned) {
                Some(text) => all.push(Held { file, text }),
                None => return Err(Unread::NoChoice { file, text }),
            },
            _ => all.push(Held { file, text }),
        }
    }
    Ok(all)
}

/// The files that do not hold what is wanted, each with a clause that says so.
fn verdicts<'a>(
    scene: &Scene,
    mechanism: &Mechanism,
    held: &'a [Held],
) -> Result<Vec<(&'a Held, String)>, Unread> {
    let mut wrong = Vec::new();
    for one in held {
        if let Some(clause) = miss(scene, mechanism, one)? {
            wrong.push((one, clause));
        }
    }
    Ok(wrong)
}

/// How a value misses what is wanted.
fn miss(scene: &Scene, mechanism: &Mechanism, held: &Held) -> Result<Option<String>, Unread> {
    let text = held.text.as_str();
    let other = |wanted: &str| Some(format!("{text} is set, isolation wants {wanted}"));
    Ok(match &mechanism.want {
        Want::Any { .. } | Want::None {} | Want::Unset {} => None,
        Want::Literal { value } if same(mechanism, text, value)? => None,
        Want::Literal { value } => other(value),
        Want::OneOf { values } | Want::Contested { values, .. }
            if values.iter().any(|value| value == text) =>
        {
            None
        }
        Want::OneOf { values } | Want::Contested { values, .. } => other(&values.join(" or ")),
        Want::NotOneOf { values } if !values.iter().any(|value| value == text) => None,
        Want::NotOneOf { values } => other(&format!("anything but {}", values.join(" or "))),
        Want::AtLeast { value, or } if number(text)? >= *value || or.contains(&number(text)?) => None,
        Want::AtLeast { value, .. } => other(&format!("{value} or more")),
        Want::AtMost { value } if number(text)? <= *value => None,
        Want::AtMost { value } => other(&format!("{value} or less")),
        Want::Avoids {} => {
            let hit = set(mechanism, held)?.and(&within(scene, mechanism)).and(scene.cpus);
            (!hit.is_empty()).then(|| format!("{text} includes {}", named(&hit)))
        }
        Want::Covers {} => {
            let missing = scene.cpus.minus(&set(mechanism, held)?);
            (!missing.is_empty()).then(|| format!("{text} leaves out {}", named(&missing)))
        }
    })
}

/// Numbers are compared as numbers: some files pad them.
fn same(mechanism: &Mechanism, text: &str, wanted: &str) -> Result<bool, Unread> {
    if !matches!(mechanism.probe, Probe::FileInteger { .. }) {
        return Ok(text == wanted);
    }
    Ok(wanted.parse() == Ok(number(text)?))
}

fn number(text: &str) -> Result<i64, Unread> {
    text.parse().map_err(|_| Unread::NoNumber(text.to_owned()))
}

/// The CPUs within which masks are in force.
fn within(scene: &Scene, mechanism: &Mechanism) -> Cpus {
    let all = || scene.machine.topology.online.or(&scene.machine.topology.present);
    let Some(Effective::Within { path }) = &mechanism.effective else { return all() };
    scene.root.mask(path).unwrap_or_else(all)
}

fn set(mechanism: &Mechanism, held: &Held) -> Result<Cpus, Unread> {
    let parse = match mechanism.probe {
        Probe::HexmaskFile { .. } => Cpus::parse_hex,
        _ => Cpus::parse_list,
    };
    parse(&held.text).map_err(|error| Unread::NoCpus { file: held.file.clone(), error })
}

fn good(mechanism: &Mechanism, have: &str) -> String {
    match &mechanism.want {
        Want::Contested { note, .. } => note.clone(),
        Want::Avoids {} => format!("{have} leaves them out"),
        Want::Covers {} => format!("{have} covers them"),
        _ => always(mechanism).map_or_else(|| format!("{have}, as isolation wants"), str::to_owned),
    }
}

/// The first version with a fair server (557a6bfc662c).
const FAIR_SERVER: (u32, u32) = (6, 12);

fn is_older_than(scene: &Scene, version: (u32, u32)) -> bool {
    let release = &scene.machine.kernel.release;
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) < version,
        _ => false,
    }
}

/// Throttling that is off still leaves the fair server, which takes the same share on kernels from
/// 6.12 on.
fn in_effect(scene: &Scene, mechanism: &Mechanism, reason: String) -> Outcome {
    if mechanism.effective != Some(Effective::FairServer {}) {
        return Outcome::ok(reason);
    }
    // Nothing is read where nothing can be: kernels before have none.
    if let Some(why) = unread_server(scene).filter(|_| !is_older_than(scene, FAIR_SERVER)) {
        return Outcome::unknown(format!(
            "throttling is off, but whether a fair server (6.12) takes time instead could not be read: {why}"
        ));
    }
    let served: Cpus = scene.cpus.iter().filter(|cpu| server(scene, *cpu)).collect();
    if served.is_empty() {
        return Outcome::ok(reason);
    }
    let command = |cpu| format!("echo 0 > /sys/kernel/debug/sched/fair_server/cpu{cpu}/runtime");
    let commands: Vec<_> = served.iter().map(command).collect();
    Outcome::new(
        model::FindingState::Fixable,
        format!(
            "throttling is off, but the fair server still takes time from real-time tasks on {}",
            named(&served)
        ),
    )
    .in_effect(format!("fair server on {}", named(&served)))
    .cured_by(commands.join(" && "))
}

/// What real-time tasks suffer that may use the whole of each period: not that they are stopped
/// (Linux `kernel/sched/rt.c`, `sched_rt_runtime_exceeded`, and `start_rt_bandwidth`, which only -1
/// keeps from starting the timer).
fn whole_period(scene: &Scene, mechanism: &Mechanism) -> Option<String> {
    let limits = &scene.machine.limits;
    let (runtime, period) = (limits.rt_runtime_us?, limits.rt_period_us?);
    let whole = mechanism.effective == Some(Effective::FairServer {}) && runtime >= period;
    whole.then(|| {
        format!("this is all of the period of {period}, so no real-time task is stopped, but the kernel keeps its timer for it")
    })
}

/// A kernel with fair servers has no limit besides, unless it is built with limits for groups
/// (6.12, commit 5f6bd380c7bd): where no server takes time on the CPUs, the number stops nobody.
fn superseded(scene: &Scene, mechanism: &Mechanism) -> Option<Outcome> {
    let servers = &scene.machine.limits.fair_server_runtime_ns;
    let off = |cpu: u32| servers.get(&cpu) == Some(&0);
    if mechanism.effective != Some(Effective::FairServer {}) || !scene.cpus.iter().all(off) {
        return None;
    }
    let kernel = &scene.machine.kernel;
    let without = format!("no fair server takes time on {}", named(scene.cpus));
    match (&kernel.config_source, kernel.config.contains_key("CONFIG_RT_GROUP_SCHED")) {
        (Some(_), true) => None,
        (Some(_), false) => Some(Outcome::ok(format!("{without}, and this kernel has no other limit"))),
        (None, _) => Some(Outcome::unknown(format!(
            "{without}; whether this kernel has another limit (CONFIG_RT_GROUP_SCHED) it does not show"
        ))),
    }
}

/// Why the fair server cannot be seen, where it cannot; a debugfs that can be read and has none is
/// that of an older kernel.
fn unread_server(scene: &Scene) -> Option<String> {
    let Some(debugfs) = machine::debugfs(scene.root) else {
        return Some("debugfs is not mounted".to_owned());
    };
    // Without the right to enter debugfs it looks empty, and the kernel always keeps something
    // there.
    if scene.root.names(&debugfs).is_empty() {
        return Some(format!("{debugfs} shows nothing"));
    }
    let runtime = |cpu| format!("{debugfs}/sched/fair_server/cpu{cpu}/runtime");
    let known = &scene.machine.limits.fair_server_runtime_ns;
    let unread = scene.cpus.iter().find(|cpu| scene.root.has(&runtime(*cpu)) && !known.contains_key(cpu));
    unread.map(|cpu| format!("{} holds no number that can be read", runtime(cpu)))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{judged, with_cpus};

    const PERIOD: (&str, &str) = ("proc/sys/kernel/sched_rt_runtime_us", "-1");

    #[test]
    fn numbers_are_compared_as_numbers_and_words_as_words() {
        assert_eq!(judged("rcu_normal", &with_cpus(&[("sys/kernel/rcu_normal", "01")])).0, "ok");
        let thp = |text| {
            judged(
                "transparent_hugepage",
                &with_cpus(&[("sys/kernel/mm/transparent_hugepage/enabled", text)]),
            )
        };
        assert_eq!(thp("always madvise [never]").0, "ok");
        assert_eq!(thp("[always] madvise never").0, "fixable");
    }

    #[test]
    fn what_cannot_be_understood_is_unknown_and_quoted() {
        for (id, file, text) in [
            ("rcu_normal", "sys/kernel/rcu_normal", "yes"),
            ("transparent_hugepage", "sys/kernel/mm/transparent_hugepage/enabled", "never"),
            ("workqueue-cpumask", "sys/devices/virtual/workqueue/cpumask", "0-1"),
        ] {
            let (state, reason, _) = judged(id, &with_cpus(&[(file, text)]));
            assert!(state == "unknown" && reason.contains(text), "{id}: {state}: {reason}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_unknown_with_the_reason() {
        // A directory in its place cannot be read by anybody, root included.
        let (state, reason, _) = judged("rcu_normal", &with_cpus(&[("sys/kernel/rcu_normal/x", "")]));
        assert!(state == "unknown" && reason.starts_with("cannot read "), "{state}: {reason}");
    }

    #[test]
    fn a_file_without_a_write_bit_leaves_the_boot_parameter_or_nothing() {
        let workqueue = ("sys/devices/virtual/workqueue/cpumask", "f");
        let fixed = (
            "stillcore-modes",
            "444 sys/devices/virtual/workqueue/cpumask\n444 proc/sys/kernel/numa_balancing\n",
        );
        let (state, _, remedy) = judged("workqueue-cpumask", &with_cpus(&[workqueue, fixed]));
        assert_eq!(state, "boot");
        assert!(remedy.contains("workqueue.unbound_cpus=0,1"), "{remedy}");
        let numa = ("proc/sys/kernel/numa_balancing", "1");
        assert_eq!(judged("numa_balancing", &with_cpus(&[numa, fixed])).0, "immovable");
    }

    /// Without debugfs nothing is known of a fair server, unless the kernel is older than it.
    #[test]
    fn an_older_kernel_has_no_fair_server_to_look_for() {
        let state = |release| {
            judged("sched_rt_runtime", &with_cpus(&[PERIOD, ("proc/sys/kernel/osrelease", release)])).0
        };
        assert_eq!(["6.1.0-50-amd64", "5.10.0", "6.11.4"].map(state), ["ok"; 3]);
        assert_eq!(["6.12.1", "7.0.0", "next"].map(state), ["unknown"; 3]);
    }

    /// Values past the one that everybody writes.
    #[test]
    fn what_never_comes_is_rare_enough() {
        let writeback = |text| {
            judged("dirty_writeback", &with_cpus(&[("proc/sys/vm/dirty_writeback_centisecs", text)])).0
        };
        assert_eq!([writeback("0"), writeback("1500")], ["ok", "ok"]);
        assert_eq!(writeback("500"), "fixable");
        let merging = |run| {
            let files = [("sys/kernel/mm/ksm/run", run), ("sys/kernel/mm/ksm/merge_across_nodes", "1")];
            ["ksm-run", "ksm-merge_across_nodes"].map(|id| judged(id, &with_cpus(&files)).0)
        };
        // 2 stops it and takes apart what it has merged.
        assert_eq!(merging("2"), ["ok", "ok"]);
        assert_eq!(merging("1"), ["fixable", "fixable"]);
    }

    #[test]
    fn wide_masks_are_read_word_by_word() {
        let mask = |text| {
            judged("workqueue-cpumask", &with_cpus(&[("sys/devices/virtual/workqueue/cpumask", text)])).0
        };
        assert_eq!(mask("ffffffff,fffffff3"), "ok");
        assert_eq!(mask("00000000,00000004"), "fixable");
    }

    #[test]
    fn a_fair_server_is_named_where_it_can_be_seen() {
        let debugfs = ("proc/mounts", "none /sys/kernel/debug debugfs rw 0 0");
        let server = |runtime| ("sys/kernel/debug/sched/fair_server/cpu2/runtime", runtime);
        let judge = |files: &[_]| judged("sched_rt_runtime", &with_cpus(files));
        let older = ("sys/kernel/debug/sched/preempt", "full");
        assert_eq!(judge(&[PERIOD, debugfs, older]).1, "-1, as isolation wants");
        let (state, _, remedy) = judge(&[PERIOD, debugfs, server("50000000")]);
        assert_eq!((state.as_str(), remedy.contains("cpu2/runtime")), ("fixable", true));
        assert_eq!(judge(&[PERIOD, debugfs, server("0")]).0, "ok");
    }

    /// 6.12: the audit was red for a limit that stops nobody.
    #[test]
    fn where_fair_servers_stand_for_it_the_limit_stops_nobody() {
        let state = |runtime, config| {
            let release = ("proc/sys/kernel/osrelease", "6.12.0");
            let files = [
                release,
                ("boot/config-6.12.0", config),
                ("proc/sys/kernel/sched_rt_runtime_us", "950000"),
                ("proc/mounts", "none /sys/kernel/debug debugfs rw 0 0"),
                ("sys/kernel/debug/sched/fair_server/cpu2/runtime", runtime),
                ("sys/kernel/debug/sched/fair_server/cpu3/runtime", "0"),
            ];
            let files: Vec<_> = files.into_iter().filter(|(_, text)| !text.is_empty()).collect();
            judged("sched_rt_runtime", &with_cpus(&files)).0
        };
        assert_eq!(state("0", "CONFIG_SMP=y"), "ok");
        assert_eq!(state("50000000", "CONFIG_SMP=y"), "fixable");
        assert_eq!(state("0", "CONFIG_RT_GROUP_SCHED=y"), "fixable");
        assert_eq!(state("0", ""), "unknown");
    }

    #[test]
    fn a_runtime_of_the_whole_period_stops_nobody() {
        let judge = |runtime| {
            let period = ("proc/sys/kernel/sched_rt_period_us", "1000000");
            judged(
                "sched_rt_runtime",
                &with_cpus(&[period, ("proc/sys/kernel/sched_rt_runtime_us", runtime)]),
            )
            .1
        };
        assert!(judge("1000000").contains("no real-time task is stopped"), "{}", judge("1000000"));
        assert!(judge("950000").contains("is stopped for what is left"), "{}", judge("950000"));
    }

    #[test]
    fn a_fair_server_that_cannot_be_seen_leaves_the_verdict_open() {
        let debugfs = ("proc/mounts", "none /sys/kernel/debug debugfs rw 0 0");
        let garbled = ("sys/kernel/debug/sched/fair_server/cpu2/runtime", "?");
        let judge = |files: &[_]| judged("sched_rt_runtime", &with_cpus(files));
        for (files, why) in [
            (vec![PERIOD], "debugfs is not mounted"),
            (vec![PERIOD, debugfs], "shows nothing"),
            (vec![PERIOD, debugfs, garbled], "cpu2/runtime"),
        ] {
            let (state, reason, remedy) = judge(&files);
            assert_eq!((state.as_str(), remedy.as_str()), ("unknown", ""), "{reason}");
            assert!(reason.contains("fair server") && reason.contains(why), "{reason}");
        }
        let throttled = [("proc/sys/kernel/sched_rt_runtime_us", "950000")];
        assert_eq!(judge(&throttled).0, "fixable", "other values stay what they are");
    }
}
