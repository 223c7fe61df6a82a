//! The CPUs of the same core: they share its pipelines, so what runs on one slows the other.

use super::id;
use super::scene::{Scene, unknown};
use crate::topology::{SMT_CONTROL, siblings};
use model::resource::{Kind, Resource};

/// A row for each sibling.
pub(super) fn rows(scene: &Scene) -> Vec<Resource> {
    let Some(siblings) = siblings(scene.root, scene.cpu) else {
        return vec![unknown(Kind::Sibling, "siblings", "this kernel does not show who shares the core")];
    };
    let control = scene.root.maybe(SMT_CONTROL);
    let others = siblings.iter().filter(|cpu| *cpu != scene.cpu);
    let row = |cpu: u32| Resource {
        asked: control.clone().map(|control| format!("SMT {control}")),
        effective: Some(format!("core of CPUs {siblings}")),
        owner: Some("processor".to_owned()),
        may_touch: Some(true),
        in_force: Some(true),
        // No counter shows what one hardware thread took from the other.
        touched: None,
        movable: Some(true),
        reason: Some("it can be taken offline, or left idle".to_owned()),
        mechanism: Some(id::SMT_SIBLINGS.to_owned()),
        ..Resource::new(Kind::Sibling, format!("CPU {cpu}"))
    };
    others.map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tree;

    #[test]
    fn siblings_are_read_and_not_computed() {
        let (_dir, root) = tree(&[
            ("sys/devices/system/cpu/cpu3/topology/thread_siblings_list", "3,7"),
            ("sys/devices/system/cpu/cpu2/topology/thread_siblings_list", "2"),
        ]);
        let rows = super::rows(&Scene::new(&root, 3));
        assert_eq!(rows.iter().map(|row| row.name.as_str()).collect::<Vec<_>>(), ["CPU 7"]);
        assert!(super::rows(&Scene::new(&root, 2)).is_empty());
        assert_eq!(super::rows(&Scene::new(&root, 1))[0].may_touch, None);
    }
}
