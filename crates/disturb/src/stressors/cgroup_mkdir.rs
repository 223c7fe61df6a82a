//! `cgroup_mkdir`: control groups made inside each other and removed, with the controllers that are
//! to be had.
//!
//! The first group with cpuset or memory control switches static keys (`cpusets_enabled_key`,
//! `memcg_kmem_online_key`), which every CPU takes part in; each group costs per-CPU memory, and
//! its removal work items and grace periods (kernel/cgroup/cgroup.c: `css_release_work_fn`). All is
//! done in groups of its own; no controller is enabled outside of them, and no partition made.

use crate::account::Account;
use crate::changes::Cgroup;
use crate::job::Job;
use crate::leaving::{Leaving, Mark};
use crate::spec::StressorSpec;
use crate::{Error, confine};
use model::stressor::Witness;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "cgroup_mkdir",
    title: "control groups made inside each other and removed, with the controllers to be had",
    class: "poke",
    operation: "a group made and one inside it, in each hierarchy, then both removed",
    privilege: "root, or a hierarchy that was delegated",
    needs: "a cgroup hierarchy that may be written",
    kernel_paths: &[
        "cgroup_mkdir",
        "css_create",
        "cpuset_css_online",
        "mem_cgroup_css_online",
        "percpu allocator",
        "css_release_work_fn",
    ],
    witness: "growth of the inode numbers of the groups: two an operation at least",
    cleanup: "the groups are removed",
    danger: "removed groups take a grace period to go; bounded by the rate",
    default_rate: Some(20.0),
    leaves: groups,
    work,
    ..StressorSpec::PLAIN
};

/// One group of this mark in each hierarchy.
fn groups(mark: &Mark<'_>) -> Vec<Leaving> {
    let parents = confine::parents(Path::new("/")).into_iter();
    let group = |parent: PathBuf| Cgroup { path: parent.join(format!("stillcore-{}", mark.id)) };
    parents.map(|parent| Leaving::Cgroup(group(parent))).collect()
}

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    if job.leaves.is_empty() {
        return Err(Error::absent("there is no cgroup hierarchy that may be written"));
    }
    let dirs: Vec<PathBuf> = job.leaves.iter().map(PathBuf::from).collect();
    let numbers = || dirs.iter().map(|dir| nest(dir)).sum::<io::Result<u64>>();
    let before = numbers().map_err(Error::refused("make a control group"))?;
    job.begin()?;
    let mut last = before;
    let done = job.repeat(|| {
        last = numbers()?;
        Ok(())
    });
    let (expected, seen) = (2 * done.tally.ok, last.saturating_sub(before));
    let witness = Witness { name: "inode numbers of the groups".to_owned(), expected, seen };
    Ok(done.account(job, witness))
}

/// Makes a group and one inside, removes both, and returns the inode number of the inner one.
fn nest(dir: &Path) -> io::Result<u64> {
    fs::create_dir(dir)?;
    let inner = dir.join("inner");
    let made = enable(dir).and_then(|()| fs::create_dir(&inner)).and_then(|()| fs::metadata(&inner));
    if made.is_ok() {
        fs::remove_dir(&inner)?;
    }
    fs::remove_dir(dir)?;
    made.map(|inner| inner.ino())
}

/// Version 2: gives the group inside what the group itself has got.
fn enable(dir: &Path) -> io::Result<()> {
    let Ok(controllers) = fs::read_to_string(dir.join("cgroup.controllers")) else { return Ok(()) };
    let words: Vec<String> = controllers.split_whitespace().map(|name| format!("+{name}")).collect();
    if words.is_empty() { Ok(()) } else { fs::write(dir.join("cgroup.subtree_control"), words.join(" ")) }
}
