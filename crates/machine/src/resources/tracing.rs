//! Tracing and profiling that records on this CPU.
//!
//! Files: Linux `Documentation/trace/ftrace.rst` (`tracing_cpumask`, `tracing_on`,
//! `current_tracer`, `set_event`, `per_cpu/cpuN/stats`). Which performance counters are open on a
//! CPU no file shows. Nothing of the ring buffer is read: that would wake it.

use super::id;
use super::scene::{Scene, unknown};
use crate::mounted_at;
use model::resource::{Kind, Resource};

/// The top buffer and each instance, then perf.
pub(super) fn rows(scene: &Scene) -> Vec<Resource> {
    let mut rows = match mounted_at(scene.root, "tracefs") {
        Some(top) => buffers(scene, &top),
        None => Vec::new(),
    };
    if let Some(paranoid) = scene.root.maybe("proc/sys/kernel/perf_event_paranoid") {
        rows.push(Resource {
            asked: Some(format!("perf_event_paranoid {paranoid}")),
            owner: Some("perf".to_owned()),
            movable: Some(true),
            reason: Some(
                "no file shows which counters are open here; the vectors PMI and NMI count their interrupts"
                    .to_owned(),
            ),
            mechanism: Some(id::PERF.to_owned()),
            ..Resource::new(Kind::Tracing, "performance counters")
        });
    }
    rows
}

fn buffers(scene: &Scene, top: &str) -> Vec<Resource> {
    if let Err(why) = scene.look(&format!("{top}/tracing_on")) {
        return vec![unknown(Kind::Tracing, "tracing buffers", why)];
    }
    let instances = scene.root.names(&format!("{top}/instances")).into_iter();
    let instances = instances.map(|name| (format!("instance {name}"), format!("{top}/instances/{name}")));
    let places = std::iter::once(("top buffer".to_owned(), top.to_owned())).chain(instances);
    places.filter_map(|(name, at)| buffer(scene, name, &at)).collect()
}

fn buffer(scene: &Scene, name: String, at: &str) -> Option<Resource> {
    let read = |file: &str| scene.root.maybe(&format!("{at}/{file}"));
    let on = read("tracing_on")? != "0";
    let tracer = read("current_tracer").filter(|tracer| tracer != "nop");
    let events =
        read("set_event").map_or(0, |text| text.lines().filter(|line| !line.trim().is_empty()).count());
    let cpus = scene.root.mask(&format!("{at}/tracing_cpumask"));
    let busy = on && (tracer.is_some() || events > 0);
    let here = cpus.as_ref().map(|cpus| busy && cpus.contains(scene.cpu));
    let entries = read(&format!("per_cpu/cpu{}/stats", scene.cpu)).as_deref().and_then(entries);
    let tracer = tracer.map_or(String::new(), |tracer| format!("{tracer}, "));
    Some(Resource {
        asked: cpus.map(|cpus| format!("CPUs {cpus}")),
        effective: Some(if busy { format!("{tracer}{events} events") } else { "records nothing".to_owned() }),
        observed: entries.map(|entries| format!("{entries} entries of this CPU in the buffer")),
        count: entries,
        owner: Some("ftrace".to_owned()),
        may_touch: here,
        in_force: here,
        touched: entries.map(|entries| entries > 0),
        movable: Some(true),
        reason: Some(
            "tracing_cpumask takes this CPU out; switching events on or off interrupts every CPU".to_owned(),
        ),
        mechanism: Some(id::TRACING.to_owned()),
        ..Resource::new(Kind::Tracing, name)
    })
}

/// Entries in the buffer and those overwritten since.
fn entries(stats: &str) -> Option<u64> {
    let field = |name: &str| {
        stats.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')?.trim().parse::<u64>().ok())
    };
    Some(field("entries")?.saturating_add(field("overrun").unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tree;

    #[test]
    fn a_buffer_touches_the_cpu_when_it_records_there() {
        let (_dir, root) = tree(&[
            ("proc/mounts", "t /t tracefs rw 0 0"),
            ("t/tracing_on", "1"),
            ("t/tracing_cpumask", "f"),
            ("t/current_tracer", "nop"),
            ("t/set_event", ""),
            ("t/instances/a/tracing_on", "1"),
            ("t/instances/a/tracing_cpumask", "8"),
            ("t/instances/a/current_tracer", "nop"),
            ("t/instances/a/set_event", "sched:sched_switch\nirq:irq_handler_entry\n"),
            ("t/instances/a/per_cpu/cpu3/stats", "entries: 5\noverrun: 7\ncommit overrun: 0\n"),
            ("t/instances/b/tracing_on", "1"),
            ("t/instances/b/tracing_cpumask", "7"),
            ("t/instances/b/current_tracer", "function"),
            ("proc/sys/kernel/perf_event_paranoid", "2"),
        ]);
        let rows = super::rows(&Scene::new(&root, 3));
        let seen: Vec<_> = rows
            .iter()
            .map(|row| (row.name.as_str(), row.effective.as_deref(), row.may_touch, row.count))
            .collect();
        assert_eq!(
            seen,
            [
                ("top buffer", Some("records nothing"), Some(false), None),
                ("instance a", Some("2 events"), Some(true), Some(12)),
                ("instance b", Some("function, 0 events"), Some(false), None),
                ("performance counters", None, None, None),
            ]
        );
    }
}
