//! Armed timers of the CPU, from `/proc/timer_list`.
//!
//! Format: Linux `kernel/time/timer_list.c`: per CPU and clock base a line
//! `#n: <address>, function, S:state`, before 4.15 with the function and the task that armed it,
//! then when it expires. It shows high-resolution timers alone; those of the timer wheel no file
//! shows. Only root may read it.

use super::id;
use super::scene::{Scene, unknown};
use model::resource::{Kind, Resource};
use std::collections::BTreeMap;

const FILE: &str = "proc/timer_list";
const HIGH_RESOLUTION: &str = "high-resolution timers";

/// A row for each function (and task, where the kernel says so) with the number of its timers; then
/// the wheel, which is not shown.
pub(super) fn rows(scene: &Scene) -> Vec<Resource> {
    let mut rows = match scene.look(FILE) {
        Ok(Some(text)) => shown(scene, &text),
        Ok(None) => vec![unknown(Kind::Timer, HIGH_RESOLUTION, format!("this kernel has no /{FILE}"))],
        Err(why) => vec![unknown(Kind::Timer, HIGH_RESOLUTION, why)],
    };
    let wheel = "no file shows the timers of the wheel: the softirq TIMER counts them, trace timer:timer_expire_entry to see them";
    let mechanism = Some(id::TIMER_MIGRATION.to_owned());
    rows.push(Resource { mechanism, ..unknown(Kind::Timer, "timer wheel", wheel) });
    rows
}

fn shown(scene: &Scene, text: &str) -> Vec<Resource> {
    let Some(section) = section(text, scene.cpu) else {
        let why = format!("/{FILE} has no section for CPU {}", scene.cpu);
        return vec![unknown(Kind::Timer, HIGH_RESOLUTION, why)];
    };
    let mut rows: Vec<_> = expiries(&section).into_iter().collect();
    let field = |name: &str| section.fields.get(name).copied();
    let stopped = field("tick_stopped")
        .map_or("", |stopped| if stopped == 1 { "; the tick is stopped now" } else { "; the tick runs now" });
    if let Some(events) = field("nr_events") {
        rows.push(Resource {
            observed: Some(format!("{events} since boot{stopped}")),
            count: Some(events),
            owner: Some(HIGH_RESOLUTION.to_owned()),
            may_touch: Some(true),
            in_force: Some(true),
            touched: Some(events > 0),
            reason: Some("one for each time a timer of this CPU was due".to_owned()),
            mechanism: Some(id::NOHZ_FULL.to_owned()),
            ..Resource::new(Kind::Timer, "timer interrupts")
        });
    }
    rows
}

/// What one CPU's part of the file says.
#[derive(Debug, Default, PartialEq, Eq)]
struct Section {
    timers: Vec<Armed>,
    fields: BTreeMap<String, u64>,
}

/// One armed timer.
#[derive(Debug, PartialEq, Eq)]
struct Armed {
    function: String,
    /// The task that armed it, on kernels before 4.15.
    task: Option<String>,
    /// From the moment of reading; negative when it was due already.
    in_ns: Option<i64>,
}

fn section(text: &str, cpu: u32) -> Option<Section> {
    let heading = format!("cpu: {cpu}");
    let mut lines = text.lines().skip_while(|line| line.trim_end() != heading);
    lines.next()?;
    let mut section = Section::default();
    for line in lines.take_while(|line| !line.starts_with("cpu: ") && !line.starts_with("Tick Device")) {
        let line = line.trim();
        if let Some(expiry) = line.strip_prefix("# expires at") {
            if let Some(timer) = section.timers.last_mut() {
                timer.in_ns = expires(expiry);
            }
        } else if line.starts_with('#') {
            section.timers.extend(armed(line));
        } else if let Some((name, value)) = line.strip_prefix('.').and_then(|field| field.split_once(':')) {
            let number = value.split_whitespace().next().and_then(|value| value.parse().ok());
            section.fields.extend(number.map(|number| (name.trim().to_owned(), number)));
        }
    }
    Some(section)
}

fn armed(line: &str) -> Option<Armed> {
    let mut parts = line.splitn(5, ", ");
    let (_address, function) = (parts.next()?, parts.next()?);
    let (_state, _by, task) = (parts.next(), parts.next(), parts.next());
    // The task is followed by its number.
    let task = task.map(|task| task.rsplit_once('/').map_or(task, |(name, _)| name).to_owned());
    Some(Armed { function: function.to_owned(), task, in_ns: None })
}

fn expires(text: &str) -> Option<i64> {
    text.split_once("[in ")?.1.split_whitespace().next()?.parse().ok()
}

fn expiries(section: &Section) -> Vec<Resource> {
    let mut groups: BTreeMap<(&str, Option<&str>), Vec<Option<i64>>> = BTreeMap::new();
    for timer in &section.timers {
        groups.entry((&timer.function, timer.task.as_deref())).or_default().push(timer.in_ns);
    }
    let row = |((function, task), due): ((&str, Option<&str>), Vec<Option<i64>>)| {
        let (owner, mechanism, movable, reason) = governed(function);
        let next = due.iter().flatten().min().map_or(String::new(), |ns| format!(", next in {}", span(*ns)));
        Resource {
            observed: Some(format!("{} armed{next}", due.len())),
            owner: Some(task.map_or_else(|| owner.to_owned(), |task| format!("{task} ({owner})"))),
            may_touch: Some(true),
            in_force: Some(true),
            movable,
            reason: Some(reason.to_owned()),
            mechanism: Some(mechanism.to_owned()),
            ..Resource::new(Kind::Timer, function)
        }
    };
    groups.into_iter().map(row).collect()
}

fn span(ns: i64) -> String {
    match ns {
        ..0 => "no time".to_owned(),
        0..10_000 => format!("{ns} ns"),
        10_000..10_000_000 => format!("{} us", ns / 1000),
        10_000_000..10_000_000_000 => format!("{} ms", ns / 1_000_000),
        _ => format!("{} s", ns / 1_000_000_000),
    }
}

/// Owner, mechanism, whether it can be kept away at run time, and why.
fn governed(function: &str) -> (&'static str, &'static str, Option<bool>, &'static str) {
    const PINNED: &str = "it is armed for this CPU by name";
    match function {
        "tick_sched_timer" | "tick_nohz_handler" => (
            "the tick",
            id::NOHZ_FULL,
            Some(false),
            "the tick stops only with nohz_full, and only while one task runs",
        ),
        "watchdog_timer_fn" => {
            ("soft-lockup detector", id::WATCHDOG, Some(true), "watchdog_cpumask takes it away")
        }
        "dl_task_timer" => (
            "deadline tasks and servers",
            id::FAIR_SERVER,
            Some(true),
            "the fair server's, unless a deadline task runs here",
        ),
        "sched_rt_period_timer" => {
            ("real-time throttling", id::RT_RUNTIME, Some(true), "sched_rt_runtime_us=-1 ends it")
        }
        "sched_cfs_period_timer" | "sched_cfs_slack_timer" => (
            "CPU bandwidth of control groups",
            id::TIMER_MIGRATION,
            Some(true),
            "it is pinned where a limited group was last busy",
        ),
        "perf_mux_hrtimer_handler" | "perf_swevent_hrtimer" => {
            ("perf", id::PERF, Some(true), "somebody counts or samples on this CPU")
        }
        "hrtimer_wakeup" => (
            "sleeping tasks",
            id::TIMER_MIGRATION,
            Some(true),
            "tasks that slept here armed it; it goes when they wake elsewhere",
        ),
        "posix_timer_fn" | "it_real_fn" | "timerfd_tmrproc" => (
            "tasks of user space",
            id::TIMER_MIGRATION,
            Some(true),
            "tasks that ran here armed it; it stays until it is armed anew elsewhere",
        ),
        name if name.starts_with("bc_handler") => {
            ("broadcast", id::BROADCAST, None, "this CPU wakes others from deep idle")
        }
        _ => ("kernel", id::TIMER_MIGRATION, None, PINNED),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tree;
    use proptest::prelude::*;

    const NEW: &str = "Timer List Version: v0.10
HRTIMER_MAX_CLOCK_BASES: 8
now at 170 nsecs

cpu: 1
active timers:
 #0: <00000000b3281664>, other_cpu, S:01
cpu: 10
 clock 0:
  .base:       00000000db16ebe8
active timers:
 #0: <00000000b3281664>, tick_nohz_handler, S:01
 # expires at 17046916000000-17046916000000 nsecs [in 1324700 to 1324700 nsecs]
 #1: <000000004a3a3186>, hrtimer_wakeup, S:01
 # expires at 17046931906636-17046931956636 nsecs [in 17231336 to 17281336 nsecs]
 #2: <0000000068b060e6>, hrtimer_wakeup, S:01
 # expires at 1-2 nsecs [in -500 to 37788852 nsecs]
  .nr_events      : 5560739
  .tick_stopped   : 0
jiffies: 4299211512

Tick Device: mode:     1
Per CPU device: 10
 #0: <0>, no_timer, S:01
";

    #[test]
    fn timers_of_the_cpu_are_grouped_by_function() {
        let (_dir, root) = tree(&[("proc/timer_list", NEW)]);
        let rows = rows(&Scene::new(&root, 10));
        let seen: Vec<_> = rows
            .iter()
            .map(|row| {
                (row.name.as_str(), row.observed.as_deref().unwrap_or("-"), row.mechanism.as_deref().unwrap())
            })
            .collect();
        assert_eq!(
            seen,
            [
                ("hrtimer_wakeup", "2 armed, next in no time", "timer_migration"),
                ("tick_nohz_handler", "1 armed, next in 1324 us", "nohz_full"),
                ("timer interrupts", "5560739 since boot; the tick runs now", "nohz_full"),
                ("timer wheel", "-", "timer_migration"),
            ]
        );
    }

    #[test]
    fn older_kernels_say_who_armed_it() {
        let line = "#3: <ffff88>, it_real_fn, S:01, hrtimer_start_range_ns, a, b/c/815";
        let timer = armed(line).unwrap();
        assert_eq!((timer.function.as_str(), timer.task.as_deref()), ("it_real_fn", Some("a, b/c")));
    }

    #[test]
    fn what_is_missing_is_said() {
        let reason = |files: &[(&str, &str)]| {
            let (_dir, root) = tree(files);
            rows(&Scene::new(&root, 2))[0].reason.clone().unwrap()
        };
        assert!(reason(&[("proc/x", "")]).contains("no /proc/timer_list"));
        assert!(reason(&[("proc/timer_list", NEW)]).contains("no section for CPU 2"));
    }

    proptest! {
        #[test]
        fn no_text_panics(body in "(cpu: 2\n|#[0-9]: <x>, |# expires at \\[in |[.a-z_ ]{1,5}|: ?-?[0-9]{1,22}|, |\n|/){0,60}") {
            let _ = section(&format!("cpu: 2\n{body}"), 2).map(|section| expiries(&section));
        }
    }
}
