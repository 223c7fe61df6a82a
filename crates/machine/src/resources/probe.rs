//! Probes in code: whatever CPU runs the code takes an exception, or a jump, and runs what is
//! attached.
//!
//! Files: Linux `Documentation/trace/kprobetrace.rst` and `uprobetracer.rst` (`kprobe_profile`,
//! `uprobe_profile`: hits on all CPUs), `Documentation/trace/kprobes.rst` (debugfs `kprobes/list`:
//! those of others too, such as BPF programs).

use super::scene::{Scene, unknown};
use crate::mounted_at;
use model::resource::{Kind, Resource};
use std::collections::BTreeMap;

const REMOVE: &str = "it acts wherever that code runs; it goes when whoever set it removes it";

/// A row for each probe of tracefs, and for each place of the kernel that another one has.
pub(super) fn rows(scene: &Scene) -> Vec<Resource> {
    let mut rows = Vec::new();
    if let Some(top) = mounted_at(scene.root, "tracefs") {
        for (file, word) in [("kprobe_profile", "kprobe"), ("uprobe_profile", "uprobe")] {
            match scene.look(&format!("{top}/{file}")) {
                Ok(text) => rows.extend(text.unwrap_or_default().lines().filter_map(|line| hits(line, word))),
                Err(why) => rows.push(unknown(Kind::Probe, format!("{word}s"), why)),
            }
        }
    }
    if let Some(debugfs) = mounted_at(scene.root, "debugfs") {
        match scene.look(&format!("{debugfs}/kprobes/list")) {
            Ok(text) => rows.extend(places(&text.unwrap_or_default())),
            Err(why) => rows.push(unknown(Kind::Probe, "places of the kernel", why)),
        }
    }
    rows
}

/// `NAME HITS MISSES`, behind the path of the file for one in user space.
fn hits(line: &str, word: &str) -> Option<Resource> {
    let words: Vec<_> = line.split_whitespace().collect();
    let (name, count) = match (word, words.as_slice()) {
        ("kprobe", [name, hits, ..]) => ((*name).to_owned(), hits),
        ("uprobe", [path, name, hits, ..]) => (format!("{name} in {path}"), hits),
        _ => return None,
    };
    let count: u64 = count.parse().ok()?;
    Some(Resource {
        observed: Some(format!("hit {count} times on all CPUs")),
        owner: Some("tracing events".to_owned()),
        may_touch: Some(true),
        in_force: Some(true),
        movable: Some(true),
        reason: Some(REMOVE.to_owned()),
        ..Resource::new(Kind::Probe, format!("{word} {name}"))
    })
}

/// `ADDRESS KIND SYMBOL+OFFSET [MODULE] [FLAGS]`, once a place; the kind is k, r or j.
fn places(text: &str) -> Vec<Resource> {
    let mut places = BTreeMap::<&str, Vec<&str>>::new();
    for line in text.lines() {
        if let [_, kind, place, flags @ ..] = line.split_whitespace().collect::<Vec<_>>().as_slice()
            && matches!(*kind, "k" | "r" | "j")
        {
            places.entry(place).or_default().extend(flags.iter().filter(|flag| flag.starts_with('[')));
        }
    }
    let row = |(place, flags): (&str, Vec<&str>)| {
        let idle = flags.contains(&"[DISABLED]") || flags.contains(&"[GONE]");
        Resource {
            effective: Some(if flags.is_empty() { "armed".to_owned() } else { flags.join(" ") }),
            owner: Some("kprobes".to_owned()),
            may_touch: Some(!idle),
            in_force: Some(!idle),
            movable: Some(true),
            reason: Some(REMOVE.to_owned()),
            ..Resource::new(Kind::Probe, format!("place {place}"))
        }
    };
    places.into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tree;

    #[test]
    fn probes_are_listed_with_their_hits_and_places() {
        let (_dir, root) = tree(&[
            ("proc/mounts", "t /t tracefs rw 0 0\nd /d debugfs rw 0 0"),
            ("t/kprobe_profile", "  myprobe   12   0\n"),
            ("t/uprobe_profile", "  /bin/bash readline 3\n"),
            (
                "d/kprobes/list",
                "0 k vfs_read+0x0    [FTRACE]\n0 r do_exit+0x0\n0 k old+0x0 mod [DISABLED]\nrubbish\n",
            ),
        ]);
        let rows = rows(&Scene::new(&root, 0));
        let seen: Vec<_> = rows.iter().map(|row| (row.name.as_str(), row.may_touch)).collect();
        assert_eq!(
            seen,
            [
                ("kprobe myprobe", Some(true)),
                ("uprobe readline in /bin/bash", Some(true)),
                ("place do_exit+0x0", Some(true)),
                ("place old+0x0", Some(false)),
                ("place vfs_read+0x0", Some(true)),
            ]
        );
        assert_eq!(rows[0].observed.as_deref(), Some("hit 12 times on all CPUs"));
        assert_eq!(rows[4].effective.as_deref(), Some("[FTRACE]"));
    }
}
