//! What the kernel counts of one task: where it last ran, and how often it ran at all.
//!
//! Files: proc(5), field 39 of `stat`; Linux `Documentation/scheduler/sched-stats.rst`
//! (`/proc/pid/schedstat`, third number).

use super::scene::Scene;

/// The CPU the task ran on last. A captured `stat` may end before the field.
pub(super) fn last_cpu(scene: &Scene, own: &str) -> Option<u32> {
    let stat = scene.root.maybe(&format!("{own}/stat"))?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(36)?.parse().ok()
}

/// How often the task was put on a CPU, any CPU.
pub(super) fn runs(scene: &Scene, own: &str) -> Option<u64> {
    scene.root.maybe(&format!("{own}/schedstat"))?.split_whitespace().nth(2)?.parse().ok()
}
