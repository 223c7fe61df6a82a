//! Shares of cache and memory bandwidth: the group that holds the CPU, and the groups whose share
//! overlaps with its own.

use super::id;
use super::scene::Scene;
use crate::{Resctrl, ResctrlGroup, resctrl};
use model::resource::{Kind, Resource};
use std::collections::BTreeMap;

/// A row for the CPU's group and for each group that shares cache with it.
pub(super) fn rows(scene: &Scene) -> Vec<Resource> {
    let groups = match resctrl(scene.root) {
        Resctrl::Absent => return Vec::new(),
        Resctrl::Unmounted => return vec![unmounted()],
        Resctrl::Groups(groups) => groups,
    };
    let domains = domains(scene);
    let parts = groups.iter().map(|group| Part { group, shares: shares(&group.schemata, &domains) });
    let parts: Vec<_> = parts.collect();
    // A CPU that no group names belongs to the default group.
    let here = |part: &&Part| !part.group.name.is_empty() && part.group.cpus.contains(scene.cpu);
    let Some(own) = parts.iter().find(here).or(parts.first()) else { return Vec::new() };
    parts
        .iter()
        .filter(|part| part.group.name == own.group.name || overlap(own, part))
        .map(|group| row(own, group))
        .collect()
}

fn unmounted() -> Resource {
    Resource {
        effective: Some("not mounted".to_owned()),
        owner: Some("resctrl".to_owned()),
        may_touch: Some(true),
        in_force: Some(true),
        movable: Some(true),
        reason: Some(
            "no share is set aside for anybody: every CPU of the cache may fill all of it".to_owned(),
        ),
        mechanism: Some(id::RESCTRL.to_owned()),
        ..Resource::new(Kind::Resctrl, "cache and memory bandwidth")
    }
}

/// What a group has of this CPU's caches and bandwidth.
struct Part<'a> {
    group: &'a ResctrlGroup,
    /// The parts of the schemata about this CPU's domains: resource, domain → value.
    shares: BTreeMap<(String, u32), String>,
}

/// The ids of the CPU's caches by level: `L3` → 0.
fn domains(scene: &Scene) -> BTreeMap<u32, u32> {
    let caches = scene.root.glob(&scene.own("cache/index*"));
    let id = |cache: &String| {
        Some((scene.root.number(&format!("{cache}/level"))?, scene.root.number(&format!("{cache}/id"))?))
    };
    caches.iter().filter_map(id).collect()
}

/// `L3:0=ff0;1=fff` and `MB:0=100`: bandwidth is divided in the domains of the last level.
fn shares(schemata: &str, domains: &BTreeMap<u32, u32>) -> BTreeMap<(String, u32), String> {
    let mut shares = BTreeMap::new();
    for line in schemata.lines() {
        let Some((resource, values)) = line.trim().split_once(':') else { continue };
        let level = resource.strip_prefix('L').and_then(|rest| rest.chars().next()?.to_digit(10));
        let own = level
            .map_or_else(|| domains.last_key_value(), |level| domains.get_key_value(&level))
            .map(|(_, id)| *id);
        for (domain, value) in values.split(';').filter_map(|part| part.trim().split_once('=')) {
            if let Ok(domain) = domain.trim().parse() {
                // Where the kernel shows no ids of caches, every domain may be the CPU's.
                if own.is_none_or(|own| own == domain) {
                    shares.insert((resource.to_owned(), domain), value.trim().to_owned());
                }
            }
        }
    }
    shares
}

/// Whether both may fill the same part of a cache.
fn overlap(one: &Part, other: &Part) -> bool {
    let mask = |text: &String| u64::from_str_radix(text, 16).ok();
    one.shares.iter().filter(|((resource, _), _)| resource.starts_with('L')).any(|(key, value)| {
        mask(value).zip(other.shares.get(key).and_then(mask)).is_some_and(|(one, other)| one & other != 0)
    })
}

fn row(own: &Part, part: &Part) -> Resource {
    let group = part.group;
    let ours = own.group.name == group.name;
    let name = match group.name.as_str() {
        "" => "default group".to_owned(),
        name => format!("group {name}"),
    };
    let shares: Vec<_> = part
        .shares
        .iter()
        .map(|((resource, domain), value)| format!("{resource}:{domain}={value}"))
        .collect();
    let mode = if group.mode.is_empty() { String::new() } else { format!(" {}", group.mode) };
    let reason = if ours {
        "what this CPU's tasks may fill, unless a task has a group of its own"
    } else {
        "it may fill the part of the cache that this CPU uses"
    };
    Resource {
        asked: Some(if group.cpus.is_empty() {
            "no CPUs".to_owned()
        } else {
            format!("CPUs {}", group.cpus)
        }),
        effective: Some(format!("{}{mode}", shares.join(" "))),
        owner: Some("resctrl".to_owned()),
        may_touch: Some(true),
        in_force: Some(ours || overlap(own, part)),
        movable: Some(true),
        reason: Some(reason.to_owned()),
        mechanism: Some(id::RESCTRL.to_owned()),
        ..Resource::new(Kind::Resctrl, name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tree;

    #[test]
    fn groups_that_share_cache_with_the_cpu_are_listed() {
        let (_dir, root) = tree(&[
            ("proc/mounts", "resctrl /r resctrl rw 0 0"),
            ("sys/devices/system/cpu/cpu3/cache/index3/level", "3"),
            ("sys/devices/system/cpu/cpu3/cache/index3/id", "1"),
            ("r/schemata", "    L3:0=fff;1=00f\n    MB:0=100;1=50"),
            ("r/cpus_list", "0-2"),
            ("r/rt/schemata", "L3:0=fff;1=ff0\nMB:0=100;1=100"),
            ("r/rt/cpus_list", "3"),
            ("r/rt/mode", "exclusive"),
            ("r/greedy/schemata", "L3:0=001;1=800\nMB:1=10"),
            ("r/greedy/cpus_list", ""),
            ("r/info/schemata", "L3:1=fff"),
            ("r/broken/schemata", "L3:1\nL3:x=1;1=zz\n:::;=;"),
        ]);
        let rows = super::rows(&Scene::new(&root, 3));
        let seen: Vec<_> = rows
            .iter()
            .map(|row| (row.name.as_str(), row.asked.as_deref().unwrap(), row.effective.as_deref().unwrap()))
            .collect();
        assert_eq!(
            seen,
            [
                ("group greedy", "no CPUs", "L3:1=800 MB:1=10"),
                ("group rt", "CPUs 3", "L3:1=ff0 MB:1=100 exclusive"),
            ],
            "the default group has another part of the cache"
        );
    }

    #[test]
    fn not_mounted_is_not_divided_and_not_known_is_no_row() {
        let (_dir, root) = tree(&[("proc/filesystems", "nodev\tresctrl\n")]);
        assert_eq!(super::rows(&Scene::new(&root, 3))[0].effective.as_deref(), Some("not mounted"));
        let (_dir, root) = tree(&[("proc/filesystems", "nodev\tproc\n")]);
        assert!(super::rows(&Scene::new(&root, 3)).is_empty());
    }
}
