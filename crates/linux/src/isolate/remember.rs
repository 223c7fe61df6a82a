//! Every task's and interrupt's affinity, kept as text: undoing a cpuset partition or an offline CPU resets affinities that others had
//! set (seen on Linux 6.1: all kernel threads go back to all CPUs).

use super::change::{Settings, value};
use crate::machine::{Root, irqs, processes, user_threads};
use model::plan::StepKind;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// One affinity.
#[derive(Debug, Serialize, Deserialize)]
struct Kept(StepKind, String, String);

/// All affinities, as JSON.
pub(super) fn affinities() -> String {
    let root = Root::live();
    let all = processes(&root);
    let mut kept = Vec::new();
    for irq in irqs(&root).into_iter().filter(|irq| irq.movable != Some(false)) {
        let file = format!("/proc/irq/{}/smp_affinity_list", irq.number);
        kept.push(Kept(StepKind::File, file, irq.allowed.to_string()));
    }
    for thread in all.kernel.iter().filter(|thread| thread.movable && !thread.name.starts_with("kworker/")) {
        let target = format!("{}/{}/{}", thread.pid, thread.start, thread.name);
        kept.push(Kept(StepKind::Task, target, thread.allowed.to_string()));
    }
    for thread in user_threads(&root, &all.user) {
        let target = format!("{}/{}/{}", thread.tid, thread.start, thread.name);
        kept.push(Kept(StepKind::Task, target, thread.allowed.to_string()));
    }
    serde_json::to_string(&kept).unwrap_or_default()
}

/// Gives them back where they differ, but for those that somebody else has set meanwhile. What cannot be set is left: the kernel
/// would not have let it be set before either.
pub(super) fn restore(text: &str, settings: &mut dyn Settings, others: &BTreeSet<String>) {
    let kept: Vec<Kept> = serde_json::from_str(text).unwrap_or_default();
    for Kept(kind, target, old) in kept.into_iter().filter(|kept| !others.contains(&kept.1)) {
        let now = settings.read(kind, &target).ok().flatten();
        if now.is_some_and(|now| !value::same(&now, &old)) {
            let _ = settings.write(kind, &target, &old);
        }
    }
}
