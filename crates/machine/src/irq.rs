//! Interrupts: who handles them, where they may go and where they do.
//!
//! Files: Linux `Documentation/core-api/irq/irq-affinity.rst`, `Documentation/filesystems/proc.rst`
//! (`/proc/irq`). What was asked (`smp_affinity_list`) and what is in force
//! (`effective_affinity_list`) differ: an x86 vector has one target CPU, and a change may wait for
//! the next interrupt.

use super::{Root, mounts};
use model::Cpus;

/// One interrupt that has a handler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Irq {
    /// Its number.
    pub number: u32,
    /// The handlers' names.
    pub names: Vec<String>,
    /// Where it may be handled.
    pub allowed: Cpus,
    /// Where it is handled; equal to `allowed` on kernels that do not report it.
    pub effective: Cpus,
    /// Whether a user may move it; `None` where this kernel says so only by refusing the write.
    pub movable: Option<bool>,
}

/// The interrupts that have handlers and are no CPU's own, in order; empty where there is no
/// `/proc/irq`.
pub fn irqs(root: &Root) -> Vec<Irq> {
    let debugfs = mounts::debugfs(root);
    let numbers = root.names("proc/irq").into_iter().filter_map(|name| name.parse().ok());
    numbers.filter_map(|number| read(root, number, debugfs.as_deref())).collect()
}

fn read(root: &Root, number: u32, debugfs: Option<&str>) -> Option<Irq> {
    let own = format!("proc/irq/{number}");
    let allowed = root.cpus(&format!("{own}/smp_affinity_list"))?;
    let names = names(root, &own, number);
    if names.is_empty() || private(root, number) {
        return None;
    }
    let effective = root.cpus(&format!("{own}/effective_affinity_list")).filter(|cpus| !cpus.is_empty());
    let movable =
        if is_first_timer(number, &names) { Some(false) } else { movable(root, &own, number, debugfs) };
    Some(Irq { number, names, effective: effective.unwrap_or_else(|| allowed.clone()), allowed, movable })
}

/// A PC's timer before those of the CPUs: the kernel requests it as an interrupt that nobody may
/// move (Linux arch/x86/kernel/time.c, `setup_default_timer_irq`: `IRQF_NOBALANCING`). No file
/// shows that before 6.12.
fn is_first_timer(number: u32, names: &[String]) -> bool {
    number == 0 && names.len() == 1 && names[0] == "timer"
}

/// Interrupts that each arm CPU has for itself (timer, performance counters) have a mask all the
/// same, which nobody may write: below 32 at an interrupt controller of the GIC family (Arm IHI
/// 0048, §2.2.1).
fn private(root: &Root, number: u32) -> bool {
    let of = |name: &str| root.maybe(&format!("sys/kernel/irq/{number}/{name}")).unwrap_or_default();
    of("chip_name").starts_with("GIC") && of("hwirq").parse::<u32>().is_ok_and(|line| line < 32)
}

/// Each handler is a directory in `/proc/irq/N`; a slash in its name keeps it from having one, so
/// sysfs is asked first.
fn names(root: &Root, own: &str, number: u32) -> Vec<String> {
    let actions = root.maybe(&format!("sys/kernel/irq/{number}/actions")).unwrap_or_default();
    let listed: Vec<_> = actions.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
    if !listed.is_empty() {
        return listed;
    }
    let directories = root.names(own).into_iter().filter(|name| root.is_directory(&format!("{own}/{name}")));
    directories.collect()
}

/// What debugfs, where it is mounted at this place, says of an interrupt.
pub(super) fn detail(root: &Root, debugfs: Option<&str>, number: u32) -> Option<String> {
    root.maybe(&format!("{}/irq/irqs/{number}", debugfs?))
}

/// Since 6.12 the file of an interrupt that users cannot move has no write bit; before, debugfs may
/// name the flag.
fn movable(root: &Root, own: &str, number: u32, debugfs: Option<&str>) -> Option<bool> {
    if root.writable(&format!("{own}/smp_affinity_list")) == Some(false) {
        return Some(false);
    }
    let detail = detail(root, debugfs, number)?;
    Some(
        !["IRQD_AFFINITY_MANAGED", "IRQD_NO_BALANCING", "IRQD_PER_CPU"]
            .iter()
            .any(|flag| detail.contains(flag)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn tree() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (file, text) in [
            ("proc/irq/4/smp_affinity_list", "0-3"),
            ("proc/irq/4/effective_affinity_list", "2"),
            ("proc/irq/4/ttyS0/keep", ""),
            ("proc/irq/27/smp_affinity_list", "3"),
            ("sys/kernel/irq/27/actions", "nvme0q3,nvme1q3"),
            ("proc/irq/5/smp_affinity_list", "0-3"),
            ("proc/irq/default_smp_affinity", "f"),
        ] {
            fs::create_dir_all(dir.path().join(file).parent().unwrap()).unwrap();
            fs::write(dir.path().join(file), text).unwrap();
        }
        dir
    }

    #[test]
    fn a_cpus_own_interrupts_are_left_out() {
        let dir = tree();
        let write = |file: &str, text: &str| {
            let path = dir.path().join("sys/kernel/irq/4").join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let numbers = || {
            let root = Root::open(dir.path()).unwrap();
            irqs(&root).iter().map(|irq| irq.number).collect::<Vec<_>>()
        };
        write("chip_name", "GICv3\n");
        write("hwirq", "34\n");
        assert_eq!(numbers(), [4, 27]);
        write("hwirq", "27\n");
        assert_eq!(numbers(), [27], "the timer of each CPU");
    }

    #[test]
    fn handlers_are_named_and_interrupts_without_one_left_out() {
        let dir = tree();
        let found = irqs(&Root::open(dir.path()).unwrap());
        assert_eq!(found.iter().map(|irq| irq.number).collect::<Vec<_>>(), [4, 27]);
        assert_eq!((found[0].names.join(" "), found[0].effective.to_string()), ("ttyS0".into(), "2".into()));
        assert_eq!(
            (found[1].names.join(" "), found[1].effective.to_string()),
            ("nvme0q3 nvme1q3".into(), "3".into())
        );
        assert_eq!(found[1].movable, None);
    }

    #[test]
    fn a_missing_write_bit_or_a_flag_in_debugfs_says_unmovable() {
        let dir = tree();
        fs::write(dir.path().join("stillcore-modes"), "444 proc/irq/4/smp_affinity_list\n").unwrap();
        fs::write(dir.path().join("proc/mounts"), "none /dbg debugfs rw 0 0\n").unwrap();
        fs::create_dir_all(dir.path().join("dbg/irq/irqs")).unwrap();
        fs::write(dir.path().join("dbg/irq/irqs/27"), "dstate: 0x1\n   IRQD_AFFINITY_MANAGED\n").unwrap();
        let found = irqs(&Root::open(dir.path()).unwrap());
        assert_eq!(found.iter().map(|irq| irq.movable).collect::<Vec<_>>(), [Some(false), Some(false)]);
    }
}
