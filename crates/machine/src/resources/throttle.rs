//! What the scheduler takes from real-time tasks on this CPU: throttling, the fair server, the
//! server of BPF schedulers.
//!
//! Sources: Linux `Documentation/scheduler/sched-rt-group.rst`; `kernel/sched/debug.c`
//! (`fair_server` since 6.12, which replaces throttling for that purpose; `ext_server` later). The
//! servers' files are in debugfs, which only root may read.

use super::id;
use super::scene::Scene;
use crate::debugfs;
use model::resource::{Kind, Resource};

/// Throttling, and each server that the kernel has.
pub(super) fn rows(scene: &Scene) -> Vec<Resource> {
    let servers = [("fair", id::FAIR_SERVER), ("ext", id::EXT_SERVER)];
    let servers = servers.into_iter().filter_map(|(name, mechanism)| server(scene, name, mechanism));
    throttling(scene).into_iter().chain(servers).collect()
}

fn throttling(scene: &Scene) -> Option<Resource> {
    let runtime = scene.root.maybe("proc/sys/kernel/sched_rt_runtime_us")?;
    let period = scene.root.number::<i64>("proc/sys/kernel/sched_rt_period_us");
    let limited = runtime
        .parse::<i64>()
        .ok()
        .map(|runtime| runtime >= 0 && period.is_none_or(|period| runtime < period));
    Some(Resource {
        asked: Some(runtime.clone()),
        effective: Some(match (limited, period) {
            (Some(false), _) => "never throttled".to_owned(),
            (_, Some(period)) => format!("{runtime} of each {period} us"),
            _ => format!("{runtime} us a period"),
        }),
        owner: Some("scheduler".to_owned()),
        may_touch: limited,
        in_force: limited,
        movable: Some(true),
        reason: Some(
            "it holds for all CPUs; where the kernel has a fair server, that takes the time in its place"
                .to_owned(),
        ),
        mechanism: Some(id::RT_RUNTIME.to_owned()),
        ..Resource::new(Kind::Throttle, "real-time throttling")
    })
}

fn server(scene: &Scene, name: &str, mechanism: &str) -> Option<Resource> {
    let row = Resource {
        mechanism: Some(mechanism.to_owned()),
        ..Resource::new(Kind::Throttle, format!("{name} server"))
    };
    let debugfs = debugfs(scene.root)?;
    let at = format!("{debugfs}/sched/{name}_server/cpu{}", scene.cpu);
    let runtime = match scene.look(&format!("{at}/runtime")) {
        Ok(Some(text)) => text,
        Ok(None) => return None,
        // Then it is also unknown whether the kernel has one.
        Err(why) => return Some(Resource { reason: Some(why.to_string()), ..row }),
    };
    let on = runtime.parse::<u64>().ok().map(|ns| ns > 0);
    let period = scene.root.number::<u64>(&format!("{at}/period"));
    let period = period.map_or_else(|| "a period".to_owned(), |ns| format!("of each {} us", ns / 1000));
    let spelled = runtime
        .parse::<u64>()
        .map_or_else(|_| "not understood".to_owned(), |ns| format!("{} us {period}", ns / 1000));
    Some(Resource {
        asked: Some(format!("{runtime} ns")),
        effective: Some(if on == Some(false) { "off".to_owned() } else { spelled }),
        owner: Some("scheduler".to_owned()),
        may_touch: on,
        in_force: on,
        movable: Some(true),
        reason: Some(
            "it can be set for this CPU; 6.12 refuses 0 while real-time tasks are throttled".to_owned(),
        ),
        ..row
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tree;

    #[test]
    fn throttling_and_servers_are_distinguished() {
        let (_dir, root) = tree(&[
            ("proc/sys/kernel/sched_rt_runtime_us", "-1"),
            ("proc/sys/kernel/sched_rt_period_us", "1000000"),
            ("proc/mounts", "d /d debugfs rw 0 0"),
            ("d/sched/fair_server/cpu3/runtime", "50000000"),
            ("d/sched/fair_server/cpu3/period", "1000000000"),
            ("d/sched/ext_server/cpu3/runtime", "0"),
        ]);
        let rows = super::rows(&Scene::new(&root, 3));
        let seen: Vec<_> = rows
            .iter()
            .map(|row| (row.name.as_str(), row.effective.as_deref().unwrap(), row.may_touch))
            .collect();
        assert_eq!(
            seen,
            [
                ("real-time throttling", "never throttled", Some(false)),
                ("fair server", "50000 us of each 1000000 us", Some(true)),
                ("ext server", "off", Some(false)),
            ]
        );
    }

    #[test]
    fn strange_values_are_unknown() {
        let (_dir, root) = tree(&[("proc/sys/kernel/sched_rt_runtime_us", "lots")]);
        let rows = super::rows(&Scene::new(&root, 3));
        assert_eq!((rows.len(), rows[0].may_touch), (1, None));
    }
}
