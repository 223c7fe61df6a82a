//! `cpuset_partition`: one of its own CPUs made a partition of its own, and returned.
//!
//! Each change rebuilds the scheduling domains of the machine (kernel/cgroup/cpuset.c:
//! `update_partition_sd_lb`, `rebuild_sched_domains_locked`) and moves every task that may no
//! longer be where it is. On 5.10 it moved tasks onto an isolated CPU, and its end lets the
//! kernel's bound workers (`kworker/1:0`) run on every CPU, where nobody can bind them again before
//! their CPU has been off line; on 6.1-rt and 6.12-rt it left `rcu_preempt` on an isolated CPU
//! until the next boot. Hence dangerous.

use crate::account::Account;
use crate::changes::Cgroup;
use crate::job::Job;
use crate::leaving::{Leaving, Mark};
use crate::spec::StressorSpec;
use crate::{Error, confine};
use model::Cpus;
use model::stressor::Witness;
use std::path::{Path, PathBuf};
use std::{fs, io};

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "cpuset_partition",
    title: "one of its own CPUs made a cpuset partition, and given back",
    class: "machine",
    operation: "a partition made valid, then ended",
    privilege: "root",
    needs: "control groups of version 2 with cpuset, its parent a partition; two CPUs of its own",
    kernel_paths: &[
        "update_prstate",
        "rebuild_sched_domains_locked",
        "cpuset_attach_task",
        "set_cpus_allowed_ptr",
    ],
    witness: "how often the CPU was gone from the effective CPUs of the group above: one an operation",
    cleanup: "the group is removed, which gives the CPU back; affinities that the kernel changes then are given back",
    danger: "tasks and kernel threads that are moved onto isolated CPUs, and stay there; bound workers that stay unbound (5.10)",
    default_rate: Some(1.0),
    leaves: |mark| {
        group(mark).into_iter().flat_map(|group| [Leaving::Affinities(mark.cpus.clone()), group]).collect()
    },
    dangerous: true,
    work,
    ..StressorSpec::PLAIN
};

fn group(mark: &Mark<'_>) -> Option<Leaving> {
    let has = |dir: &PathBuf| {
        let enabled = fs::read_to_string(dir.join("cgroup.subtree_control")).unwrap_or_default();
        enabled.split_whitespace().any(|name| name == "cpuset")
    };
    let parent = confine::parents(Path::new("/")).into_iter().find(has)?;
    let path = parent.join(format!("stillcore-{}", mark.id));
    Some(Leaving::Cgroup(Cgroup { path }))
}

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    let Some(dir) = job.leaves.last().map(PathBuf::from) else {
        return Err(Error::absent("there are no control groups of version 2 with cpuset"));
    };
    let Some(cpu) = job.cpus.iter().skip(1).last() else {
        return Err(Error::absent("it has no CPU to give away"));
    };
    let rest = job.cpus.minus(&Cpus::one(cpu));
    let _narrowed = Narrowed::by(&dir.with_file_name(format!("stillcore-{}", job.supervisor)), &rest)?;
    let group = Partition::create(dir, cpu)?;
    if let Err(error) = group.set("root").and_then(|()| group.set("member")) {
        return Err(Error::absent(format!("no partition can be made here: {error}")));
    }
    job.begin()?;
    let mut seen = 0;
    let done = job.repeat(|| {
        group.set("root")?;
        seen += u64::from(!group.left_to_parent()?.contains(cpu));
        group.set("member")
    });
    let witness = Witness { name: "CPU gone from the group above".to_owned(), expected: done.tally.ok, seen };
    Ok(done.account(job, witness))
}

/// The group of the stressors, without the CPU meanwhile: a partition's CPU must be in no group
/// beside it.
struct Narrowed(Option<(PathBuf, String)>);

impl Narrowed {
    fn by(group: &Path, rest: &Cpus) -> Result<Self, Error> {
        let file = group.join("cpuset.cpus");
        // Without cpuset there is nothing to be in the way.
        let Ok(before) = fs::read_to_string(&file) else { return Ok(Self(None)) };
        fs::write(&file, rest.to_string()).map_err(|error| Error::io("write", &file, error))?;
        Ok(Self(Some((file, before))))
    }
}

impl Drop for Narrowed {
    fn drop(&mut self) {
        // The group is the supervisor's own, and removed by it.
        let _ = self.0.take().map(|(file, before)| fs::write(file, before.trim()));
    }
}

/// A group that goes with its owner.
struct Partition(PathBuf);

impl Partition {
    fn create(dir: PathBuf, cpu: u32) -> Result<Self, Error> {
        fs::create_dir(&dir).map_err(|error| Error::io("create", &dir, error))?;
        let group = Self(dir);
        let file = group.0.join("cpuset.cpus");
        fs::write(&file, cpu.to_string()).map_err(|error| Error::io("write", &file, error))?;
        Ok(group)
    }

    /// A partition that the kernel calls `root invalid` is none.
    fn set(&self, state: &str) -> io::Result<()> {
        let file = self.0.join("cpuset.cpus.partition");
        fs::write(&file, state)?;
        let now = fs::read_to_string(&file)?;
        if now.trim() == state { Ok(()) } else { Err(io::Error::other(format!("it is {:?}", now.trim()))) }
    }

    fn left_to_parent(&self) -> io::Result<Cpus> {
        let parent = self.0.parent().unwrap_or(Path::new("/"));
        let text = fs::read_to_string(parent.join("cpuset.cpus.effective"))?;
        Cpus::parse_list(text.trim()).map_err(|_| io::ErrorKind::InvalidData.into())
    }
}

impl Drop for Partition {
    fn drop(&mut self) {
        // The supervisor removes what is left.
        let _ = fs::remove_dir(&self.0);
    }
}
