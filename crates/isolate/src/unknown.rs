//! Isolation on a machine of which the journal knows nothing.

use crate::standing::Standing;
use audit::placement::groups_of_ours;
use machine::Root;
use model::plan::StepKind;

/// A group of an isolation in force that this journal does not know: it was made with another state
/// directory, or its journal was given up.
pub fn unknown_group(root: &Root, journal: &Standing) -> Option<String> {
    let known = |group: &String| {
        journal.settings().any(|(_, made)| made.kind == StepKind::Group && made.target == *group)
    };
    groups_of_ours(root).into_iter().find(|group| !known(group))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fixture::tree;
    use model::plan::Step;

    #[test]
    fn a_group_of_ours_that_the_journal_does_not_know_is_found() {
        let mount = ("proc/mounts", "none /cg cgroup2 rw 0 0\nnone /v1 cgroup rw,cpuset 0 0\n");
        let group = "cg/stillcore-isolated/cpuset.cpus";
        let (_dir, root) = tree(&[mount, (group, "2-3"), ("cg/stillcore-77/cpuset.cpus", "0")]);
        let state = tempfile::tempdir().unwrap();
        let mut journal = Standing::open(state.path()).unwrap();
        let isolated = Some("/cg/stillcore-isolated".to_owned());
        assert_eq!(unknown_group(&root, &journal), isolated);
        let made = Step {
            mechanism: "cpuset-partition".to_owned(),
            kind: StepKind::Group,
            target: "/cg/stillcore-isolated".to_owned(),
            old: Some("absent".to_owned()),
            new: "present".to_owned(),
            why: String::new(),
            cost: String::new(),
            risky: false,
            note: None,
        };
        journal.intend(&[(&made, Some("absent".to_owned()))]).unwrap();
        assert_eq!(unknown_group(&root, &journal), None);
        let (_dir, root) = tree(&[mount, ("v1/stillcore-house/cpuset.cpus", "0-1")]);
        assert_eq!(unknown_group(&root, &journal).as_deref(), Some("/v1/stillcore-house"));
        let (_dir, root) = tree(&[mount, ("cg/other/cpuset.cpus", "0-1")]);
        assert_eq!(unknown_group(&root, &journal), None);
    }
}
