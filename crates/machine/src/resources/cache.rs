//! Caches of the CPU, and who shares each.
//!
//! Files: Linux `Documentation/ABI/testing/sysfs-devices-system-cpu` (`cache/index*`).

use super::id;
use super::scene::Scene;
use model::resource::{Kind, Resource};

/// A row for each cache.
pub(super) fn rows(scene: &Scene) -> Vec<Resource> {
    let caches = scene.root.glob(&scene.own("cache/index*"));
    caches.iter().filter_map(|cache| row(scene, cache)).collect()
}

fn row(scene: &Scene, cache: &str) -> Option<Resource> {
    let read = |name: &str| scene.root.maybe(&format!("{cache}/{name}"));
    let level: u32 = read("level")?.parse().ok()?;
    let shared = scene.root.cpus(&format!("{cache}/shared_cpu_list"))?;
    let holds = match read("type").as_deref() {
        Some("Data") => " data",
        Some("Instruction") => " instructions",
        _ => "",
    };
    let alone = shared.len() <= 1;
    let reason = if alone {
        "no other CPU shares it"
    } else {
        "the hardware shares it; resctrl can divide it where the processor can"
    };
    Some(Resource {
        effective: Some(if alone { "its own".to_owned() } else { format!("shared by CPUs {shared}") }),
        owner: Some(read("size").map_or_else(|| "processor".to_owned(), |size| format!("processor, {size}"))),
        may_touch: Some(!alone),
        in_force: Some(!alone),
        movable: Some(alone),
        reason: Some(reason.to_owned()),
        mechanism: Some(id::RESCTRL.to_owned()),
        ..Resource::new(Kind::Cache, format!("L{level}{holds}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tree;

    #[test]
    fn each_level_says_who_shares_it() {
        const AT: &str = "sys/devices/system/cpu/cpu3/cache";
        let files = [
            ("index0/level", "1"),
            ("index0/type", "Data"),
            ("index0/shared_cpu_list", "3"),
            ("index3/level", "3"),
            ("index3/type", "Unified"),
            ("index3/size", "8192K"),
            ("index3/shared_cpu_list", "0-3"),
            ("index4/level", "x"),
            ("index4/shared_cpu_list", "0-3"),
            ("index5/level", "4"),
        ];
        let files: Vec<_> = files.iter().map(|(file, text)| (format!("{AT}/{file}"), *text)).collect();
        let files: Vec<_> = files.iter().map(|(file, text)| (file.as_str(), *text)).collect();
        let (_dir, root) = tree(&files);
        let rows = super::rows(&Scene::new(&root, 3));
        let seen: Vec<_> = rows
            .iter()
            .map(|row| (row.name.as_str(), row.effective.as_deref().unwrap(), row.movable))
            .collect();
        assert_eq!(seen, [("L1 data", "its own", Some(true)), ("L3", "shared by CPUs 0-3", Some(false))]);
        assert_eq!(rows[1].owner.as_deref(), Some("processor, 8192K"));
    }
}
