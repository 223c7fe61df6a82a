//! Control groups below a mount, each once.

use super::scene::Scene;
use std::collections::BTreeSet;

/// Deeper groups, and more of them, are not walked: a reading must end.
const DEPTH: usize = 16;
pub(super) const GROUPS: usize = 2000;

/// Calls `each` with the directory and the name below `top` of every group, parents first; where it
/// returns false the groups below are left out. Whether all were walked.
pub(super) fn walk(scene: &Scene, top: &str, mut each: impl FnMut(&str, &str) -> bool) -> bool {
    let mut waiting = vec![(String::new(), 0usize)];
    let mut walked = 0;
    while let Some((group, depth)) = waiting.pop() {
        walked += 1;
        if walked > GROUPS {
            return false;
        }
        let at = format!("{top}{group}");
        if each(&at, &group) && depth < DEPTH {
            let below = scene.root.names(&at).into_iter().rev();
            let below = below.filter(|name| scene.root.is_directory_itself(&format!("{at}/{name}")));
            waiting.extend(below.map(|name| (format!("{group}/{name}"), depth + 1)));
        }
    }
    true
}

/// The processes in the group; none are known for threaded groups, or to users without the right.
pub(super) fn members(scene: &Scene, at: &str) -> Option<BTreeSet<u32>> {
    let text = scene.root.maybe(&format!("{at}/cgroup.procs"))?;
    Some(text.lines().filter_map(|line| line.trim().parse().ok()).collect())
}
