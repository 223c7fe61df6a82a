//! Workqueues: unbound ones, which follow masks, and the pools of workers that belong to the CPU,
//! which follow nothing.
//!
//! Files: Linux `Documentation/core-api/workqueue.rst`. Each workqueue shown in sysfs has a mask of
//! its own; in force is what it shares with the global mask, and the global mask where that is
//! nothing. `cpumask_requested` and `cpumask_isolated` are new in 6.8.

use super::scene::{Scene, some_of};
use super::{id, kthread};
use crate::KernelThread;
use model::Cpus;
use model::resource::{Kind, Resource};

const DIRECTORY: &str = "sys/devices/virtual/workqueue";

/// The global mask, each workqueue that sysfs shows, and the CPU's own pools.
pub(super) fn rows(scene: &Scene) -> Vec<Resource> {
    let global = scene.root.mask(&format!("{DIRECTORY}/cpumask"));
    let queues = scene.root.names(DIRECTORY);
    let each = queues.iter().filter_map(|queue| one(scene, queue, global.as_ref()));
    all(scene, global.as_ref()).into_iter().chain(each).chain([pools(scene)]).collect()
}

fn all(scene: &Scene, global: Option<&Cpus>) -> Option<Resource> {
    let row = Resource::new(Kind::Workqueue, "all unbound workqueues");
    let Some(global) = global else {
        let why = match scene.look(&format!("{DIRECTORY}/cpumask")) {
            Ok(Some(text)) => format!("its mask {text:?} cannot be understood"),
            Ok(None) => return None,
            Err(why) => why.to_string(),
        };
        return Some(Resource { reason: Some(why), ..row });
    };
    let requested = scene.root.mask(&format!("{DIRECTORY}/cpumask_requested"));
    let isolated = scene.root.mask(&format!("{DIRECTORY}/cpumask_isolated")).filter(|cpus| !cpus.is_empty());
    let here = global.contains(scene.cpu);
    let workers = workers(scene, |name| name.starts_with("kworker/u"));
    let seen = workers.iter().filter(|worker| worker.last == Some(scene.cpu)).count();
    let last_known = workers.iter().any(|worker| worker.last.is_some());
    let reason = isolated.map_or_else(
        || "its mask can be set".to_owned(),
        |isolated| format!("its mask can be set; isolated partitions take {isolated} out of it"),
    );
    Some(Resource {
        asked: Some(requested.as_ref().unwrap_or(global).to_string()),
        effective: Some(global.to_string()),
        observed: last_known.then(|| format!("{seen} of {} unbound workers last ran here", workers.len())),
        owner: Some("workqueue".to_owned()),
        may_touch: Some(here),
        in_force: Some(here),
        touched: last_known.then_some(seen > 0),
        movable: Some(true),
        reason: Some(reason),
        mechanism: Some(id::WQ_MASK.to_owned()),
        ..row
    })
}

fn one(scene: &Scene, queue: &str, global: Option<&Cpus>) -> Option<Resource> {
    let asked = scene.root.mask(&format!("{DIRECTORY}/{queue}/cpumask"))?;
    let shared = global.map_or_else(|| asked.clone(), |global| asked.and(global));
    let effective = if shared.is_empty() { global.cloned().unwrap_or(shared) } else { shared };
    let may = effective.contains(scene.cpu);
    (may || asked.contains(scene.cpu)).then(|| Resource {
        asked: Some(asked.to_string()),
        effective: Some(effective.to_string()),
        owner: Some("workqueue".to_owned()),
        may_touch: Some(may),
        in_force: Some(may),
        movable: Some(true),
        reason: Some("it runs where its own mask and the global one agree".to_owned()),
        mechanism: Some(id::WQ_EACH.to_owned()),
        ..Resource::new(Kind::Workqueue, queue)
    })
}

/// Work queued for this CPU in particular, by timers and by calls for every CPU.
fn pools(scene: &Scene) -> Resource {
    let bound = format!("kworker/{}:", scene.cpu);
    let workers = workers(scene, |name| name.starts_with(&bound));
    let runs: Vec<u64> = workers.iter().filter_map(|worker| kthread::runs(scene, worker.pid)).collect();
    let names: Vec<_> = workers.iter().map(|worker| worker.name.clone()).collect();
    let count = (!runs.is_empty()).then(|| runs.iter().fold(0, |sum: u64, runs| sum.saturating_add(*runs)));
    let ran = count.map_or(String::new(), |count| format!(", ran {count} times"));
    Resource {
        effective: Some(scene.cpu.to_string()),
        observed: (!names.is_empty()).then(|| format!("{}{ran}", some_of(&names))),
        count,
        owner: Some("whoever queues work for a CPU".to_owned()),
        may_touch: Some(true),
        in_force: Some(true),
        touched: count.map(|count| count > 0),
        movable: Some(false),
        reason: Some(
            "no mask governs them: trace workqueue:workqueue_queue_work to see who queues".to_owned(),
        ),
        mechanism: Some(id::WQ_PERCPU.to_owned()),
        ..Resource::new(Kind::Workqueue, format!("pools of CPU {}", scene.cpu))
    }
}

fn workers<'a>(scene: &'a Scene, wanted: impl Fn(&str) -> bool) -> Vec<&'a KernelThread> {
    scene.processes().kernel.iter().filter(|thread| wanted(&thread.name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tree;

    const KTHREAD: &str = "S 2 0 0 0 -1 69238880";

    #[test]
    fn the_mask_in_force_is_what_both_share() {
        let stat =
            |pid: u32, name: &str, last: u32| format!("{pid} ({name}) {KTHREAD} {}{last} 0", "0 ".repeat(29));
        let files = [
            ("sys/devices/virtual/workqueue/cpumask".to_owned(), "3".to_owned()),
            ("sys/devices/virtual/workqueue/cpumask_requested".into(), "f".into()),
            ("sys/devices/virtual/workqueue/cpumask_isolated".into(), "c".into()),
            ("sys/devices/virtual/workqueue/writeback/cpumask".into(), "ff".into()),
            ("sys/devices/virtual/workqueue/lost/cpumask".into(), "c".into()),
            ("sys/devices/virtual/workqueue/other/cpumask".into(), "1".into()),
            ("sys/devices/virtual/workqueue/power/control".into(), "auto".into()),
            ("proc/5/stat".into(), stat(5, "kworker/3:0-events", 3)),
            ("proc/5/status".into(), "Cpus_allowed_list:\t3".into()),
            ("proc/5/schedstat".into(), "10 20 30".into()),
            ("proc/6/stat".into(), stat(6, "kworker/u8:1", 3)),
            ("proc/6/status".into(), "Cpus_allowed_list:\t0-1".into()),
        ];
        let files: Vec<_> = files.iter().map(|(file, text)| (file.as_str(), text.as_str())).collect();
        let (_dir, root) = tree(&files);
        let rows = rows(&Scene::new(&root, 3));
        let seen: Vec<_> = rows
            .iter()
            .map(|row| (row.name.as_str(), row.asked.as_deref(), row.effective.as_deref(), row.may_touch))
            .collect();
        assert_eq!(
            seen,
            [
                ("all unbound workqueues", Some("0-3"), Some("0,1"), Some(false)),
                ("lost", Some("2,3"), Some("0,1"), Some(false)),
                ("writeback", Some("0-7"), Some("0,1"), Some(false)),
                ("pools of CPU 3", None, Some("3"), Some(true)),
            ]
        );
        assert_eq!(rows[0].observed.as_deref(), Some("1 of 1 unbound workers last ran here"));
        assert_eq!(rows[3].observed.as_deref(), Some("kworker/3:0-events, ran 30 times"));
        assert_eq!((rows[3].movable, rows[3].count), (Some(false), Some(30)));
    }

    #[test]
    fn a_mask_that_is_none_is_unknown() {
        let (_dir, root) = tree(&[("sys/devices/virtual/workqueue/cpumask", "0x3")]);
        let rows = rows(&Scene::new(&root, 3));
        assert_eq!((rows.len(), rows[0].may_touch), (2, None));
        assert!(rows[0].reason.as_deref().unwrap().contains("0x3"));
        let (_dir, root) = tree(&[("proc/x", "")]);
        assert_eq!(super::rows(&Scene::new(&root, 3)).len(), 1, "only the residual row");
    }
}
