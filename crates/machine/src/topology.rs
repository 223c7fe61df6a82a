//! The CPUs: which are online, how they share cores and caches, which the kernel holds isolated.
//!
//! Files: Linux `Documentation/admin-guide/cputopology.rst`,
//! `Documentation/ABI/testing/sysfs-devices-system-cpu`, `Documentation/admin-guide/cgroup-v2.rst`
//! (`cpuset.cpus.isolated`). Siblings are read, never computed: firmware numbers them 0-1, 2-3 on
//! one machine and 0-4, 1-5 on the next.

use super::frequency::cpufreq_file;
use super::partitions::{Partition, partitions};
use super::{Root, mounts, nodes, owners};
use model::machine::{CpuTopology, Topology};
use model::{Cpus, Error};

const CPU: &str = "sys/devices/system/cpu";

pub(super) fn read(root: &Root) -> Result<Topology, Error> {
    let online = online(root)?;
    let present = present(root).unwrap_or_else(|| online.clone());
    Ok(Topology {
        isolated: isolated(root),
        nohz_full: root.maybe(&format!("{CPU}/nohz_full")).map(|text| nohz_full(&text)).unwrap_or_default(),
        smt_active: root.number::<u8>(&format!("{CPU}/smt/active")).map(|active| active == 1),
        cpus: present.or(&online).iter().map(|cpu| read_cpu(root, cpu)).collect(),
        owned: owners::owned(root, &online),
        online,
        present,
    })
}

/// The CPUs that are online. Error: the kernel does not list them, so the root is no machine.
pub(super) fn online(root: &Root) -> Result<Cpus, Error> {
    let file = format!("{CPU}/online");
    let text = root.text(&file)?;
    let cpus = text.as_deref().map(Cpus::parse_list).transpose()?.filter(|cpus| !cpus.is_empty());
    let found = || text.clone().map_or("no such file".to_owned(), |text| format!("{text:?}"));
    cpus.ok_or_else(|| Error::invalid(root.at(&file).display(), found(), "the list of online CPUs"))
}

/// The CPUs that the machine has, online or not, where the kernel lists them.
pub(super) fn present(root: &Root) -> Option<Cpus> {
    root.cpus(&format!("{CPU}/present"))
}

/// What the kernel lists as isolated at boot (`isolcpus=domain`); empty where it lists none.
pub fn isolated_at_boot(root: &Root) -> Cpus {
    root.cpus(&format!("{CPU}/isolated")).unwrap_or_default()
}

/// The CPUs of a CPU's core, itself among them; `None` where the kernel does not show them, as of
/// a CPU that is offline.
pub(super) fn siblings(root: &Root, cpu: u32) -> Option<Cpus> {
    root.cpus(&format!("{CPU}/cpu{cpu}/topology/thread_siblings_list"))
}

/// The switch of SMT (`on`, `off`, `forceoff`, …), a file below the root.
pub const SMT_CONTROL: &str = "sys/devices/system/cpu/smt/control";

/// `isolcpus=domain` in sysfs, and isolated partitions: until 7.0 the former does not know of the
/// latter. The root control group lists them from 6.7 on; before, each partition is asked.
fn isolated(root: &Root) -> Cpus {
    let boot = isolated_at_boot(root);
    let Some(cgroup) = mounts::mounted_at(root, "cgroup2") else { return boot };
    let listed = root.cpus(&format!("{cgroup}/cpuset.cpus.isolated"));
    boot.or(&listed.unwrap_or_else(|| {
        let held = partitions(root).into_iter().filter(Partition::is_isolated);
        held.fold(Cpus::default(), |all, one| all.or(&one.cpus))
    }))
}

/// Kernels without the parameter print `(null)`, or nothing.
fn nohz_full(text: &str) -> Cpus {
    if text.contains("null") { Cpus::default() } else { Cpus::parse_list(text).unwrap_or_default() }
}

fn read_cpu(root: &Root, cpu: u32) -> CpuTopology {
    let own = format!("{CPU}/cpu{cpu}");
    CpuTopology {
        cpu,
        // An offline CPU has no topology directory.
        siblings: siblings(root, cpu).filter(|cpus| cpus.contains(cpu)).unwrap_or_else(|| Cpus::one(cpu)),
        core: root.number(&format!("{own}/topology/core_id")),
        package: root.number(&format!("{own}/topology/physical_package_id")),
        node: nodes::of_cpu(root, cpu),
        llc: last_level(root, &own).unwrap_or_else(|| Cpus::one(cpu)),
        max_khz: root.number(&cpufreq_file(cpu, "cpuinfo_max_freq")),
        governor: root.maybe(&cpufreq_file(cpu, "scaling_governor")),
    }
}

/// The CPUs that share the cache of the highest level that holds data.
fn last_level(root: &Root, own: &str) -> Option<Cpus> {
    let caches = root.glob(&format!("{own}/cache/index*"));
    let data =
        caches.iter().filter(|cache| root.maybe(&format!("{cache}/type")).as_deref() != Some("Instruction"));
    let last = data.max_by_key(|cache| root.number::<u32>(&format!("{cache}/level")))?;
    root.cpus(&format!("{last}/shared_cpu_list"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unset_nohz_full_is_empty_in_every_spelling() {
        for text in ["  (null)", "", "(null)"] {
            assert!(nohz_full(text).is_empty(), "{text:?}");
        }
        assert_eq!(nohz_full("2-3").to_string(), "2,3");
    }

    #[test]
    fn a_tree_without_cpus_is_no_machine() {
        let dir = tempfile::tempdir().unwrap();
        let error = read(&Root::open(dir.path()).unwrap()).unwrap_err().to_string();
        assert!(error.contains("no such file; expected the list of online CPUs"), "{error}");
    }

    #[test]
    fn the_last_level_is_the_highest_that_holds_data() {
        let dir = tempfile::tempdir().unwrap();
        let files = [
            ("online", "0-3"),
            ("cpu0/cache/index0/level", "1"),
            ("cpu0/cache/index0/type", "Data"),
            ("cpu0/cache/index0/shared_cpu_list", "0"),
            ("cpu0/cache/index3/level", "3"),
            ("cpu0/cache/index3/type", "Unified"),
            ("cpu0/cache/index3/shared_cpu_list", "0-1"),
            ("cpu0/node1/x", ""),
            ("cpu0/topology/thread_siblings_list", "0,2"),
        ];
        for (file, text) in files {
            let path = dir.path().join(CPU).join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let topology = read(&Root::open(dir.path()).unwrap()).unwrap();
        let cpu = &topology.cpus[0];
        assert_eq!(
            (cpu.llc.to_string(), cpu.node, cpu.siblings.to_string()),
            ("0,1".into(), Some(1), "0,2".into())
        );
        assert_eq!((topology.cpus.len(), topology.cpus[3].siblings.to_string()), (4, "3".into()));
    }
}
