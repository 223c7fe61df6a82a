//! Memory that can be given without swapping anything out and without the out-of-memory killer: the
//! machine's, and what the limits of the caller's control groups leave of it.
//!
//! `MemAvailable` of /proc/meminfo (since 3.14) is the kernel's own estimate for a new program;
//! under a limit it is what is not charged yet, and pages of files, which can be dropped. Linux
//! `Documentation/filesystems/proc.rst`; `admin-guide/cgroup-v2.rst`, `memory.max`, `memory.high`,
//! `memory.stat`; `admin-guide/cgroup-v1/memory.rst`, `memory.limit_in_bytes`.

use super::confine::{Mount, own_directory, parse_mount};
use super::{Error, Order, catalogue};
use std::fs;
use std::path::{Path, PathBuf};

/// How much there is, and what says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Available {
    /// Bytes.
    pub bytes: u64,
    /// The file by which there is no more.
    pub by: PathBuf,
}

/// What these orders fill of memory together, bytes.
pub fn filled(orders: &[Order]) -> Result<u64, Error> {
    let of = |order: &Order| Ok((catalogue::find(&order.name)?.fills)(order));
    orders.iter().map(of).try_fold(0, |all: u64, one| Ok(all.saturating_add(one?)))
}

/// Refuses orders that fill more memory than there is; gives what there is, `None` where that
/// cannot be read.
pub fn check(root: &Path, orders: &[Order]) -> Result<Option<Available>, Error> {
    let wanted = filled(orders)?;
    match available(root) {
        Some(Available { bytes, by }) if wanted > bytes => {
            Err(Error::Memory { wanted, available: bytes, by })
        }
        available => Ok(available),
    }
}

/// The least of what the machine and each limit leave; `None` where the machine does not say.
pub fn available(root: &Path) -> Option<Available> {
    let by = PathBuf::from("proc/meminfo");
    let meminfo = fs::read_to_string(root.join(&by)).ok()?;
    let kib: u64 = meminfo.lines().find_map(|line| {
        line.strip_prefix("MemAvailable:")?.trim().strip_suffix("kB")?.trim().parse().ok()
    })?;
    let machine = Available { bytes: kib.saturating_mul(1024), by: Path::new("/").join(by) };
    let text = |path: &str| fs::read_to_string(root.join(path)).unwrap_or_default();
    let (mounts, own) = (text("proc/self/mountinfo"), text("proc/self/cgroup"));
    let limits = mounts.lines().filter_map(parse_mount).flat_map(|mount| limits(root, &mount, &own));
    Some(limits.fold(machine, |least, limit| if limit.bytes < least.bytes { limit } else { least }))
}

/// What each limit on the way from the caller's group up to where the hierarchy is mounted leaves.
fn limits(root: &Path, mount: &Mount, own: &str) -> Vec<Available> {
    let Some(group) = own_directory(root, mount, own) else { return Vec::new() };
    let top = root.join(mount.target.trim_start_matches('/'));
    let (files, usage, of_files): (&[&str], _, _) = if mount.version == 2 {
        (&["memory.max", "memory.high"], "memory.current", ["inactive_file", "active_file"])
    } else {
        let of_files = ["total_inactive_file", "total_active_file"];
        (&["memory.limit_in_bytes"], "memory.usage_in_bytes", of_files)
    };
    let groups = group.ancestors().take_while(|group| group.starts_with(&top));
    let groups: Vec<_> = groups.map(Path::to_owned).collect();
    let mut found = Vec::new();
    for group in groups {
        let read = |name: &str| fs::read_to_string(group.join(name)).ok();
        // `max` where there is no limit; no file where the controller is not enabled.
        let number = |name: &str| read(name)?.trim().parse::<u64>().ok();
        let stat = read("memory.stat").unwrap_or_default();
        let field = |name: &str| {
            let line = stat.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            line.and_then(|value| value.trim().parse::<u64>().ok()).unwrap_or(0)
        };
        let dropped = of_files.iter().map(|name| field(name)).fold(0, u64::saturating_add);
        let charged = number(usage).unwrap_or(0).saturating_sub(dropped);
        found.extend(files.iter().filter_map(|file| {
            let bytes = number(file)?.saturating_sub(charged);
            Some(Available { bytes, by: group.join(file) })
        }));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Cpus;

    const MIB: u64 = 1 << 20;
    const V2: &str = "30 22 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
    const V1: &str = "34 22 0:30 / /cg/memory rw - cgroup cgroup rw,memory\n";

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            fs::create_dir_all(root.path().join(path).parent().unwrap()).unwrap();
            fs::write(root.path().join(path), text).unwrap();
        }
        root
    }

    fn order(name: &str, bytes: Option<u64>, workers: Option<u32>) -> Order {
        Order { bytes, workers, ..Order::plain(name, &"0-3".parse::<Cpus>().unwrap()) }
    }

    const MACHINE: (&str, &str) = ("proc/meminfo", "MemTotal: 4096000 kB\nMemAvailable:    1048576 kB\n");

    #[test]
    fn more_than_the_machine_has_is_refused_with_both_numbers() {
        let root = tree(&[MACHINE]);
        let check = |bytes| check(root.path(), &[order("vm_fill", Some(bytes), None)]);
        assert_eq!(check(1024 * MIB).unwrap().unwrap().bytes, 1024 * MIB);
        let refused = check(1025 * MIB).unwrap_err().to_string();
        assert!(refused.contains("1.00 GiB") && refused.contains("/proc/meminfo"), "{refused}");
        assert_eq!(refused.lines().count(), 1);
        let unknown = super::check(Path::new("/nowhere"), &[order("vm_fill", Some(1 << 40), None)]);
        assert_eq!(unknown.unwrap(), None);
    }

    #[test]
    fn the_nearest_limit_counts_and_pages_of_files_are_given_up() {
        let v2 = [
            MACHINE,
            ("proc/self/mountinfo", V2),
            ("proc/self/cgroup", "0::/box/inner\n"),
            ("sys/fs/cgroup/box/memory.max", "314572800\n"),
            ("sys/fs/cgroup/box/memory.high", "max\n"),
            ("sys/fs/cgroup/box/memory.current", "209715200\n"),
            ("sys/fs/cgroup/box/memory.stat", "anon 1\ninactive_file 52428800\nactive_file 52428800\n"),
            ("sys/fs/cgroup/box/inner/memory.max", "max\n"),
        ];
        let root = tree(&v2);
        let found = available(root.path()).unwrap();
        assert_eq!(found.bytes, 200 * MIB);
        assert!(found.by.ends_with("box/memory.max"), "{found:?}");
        let v1 = [
            MACHINE,
            ("proc/self/mountinfo", V1),
            ("proc/self/cgroup", "5:memory:/box\n"),
            ("cg/memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("cg/memory/box/memory.limit_in_bytes", "104857600\n"),
            ("cg/memory/box/memory.usage_in_bytes", "20971520\n"),
            ("cg/memory/box/memory.stat", "total_inactive_file 10485760\n"),
        ];
        assert_eq!(available(tree(&v1).path()).unwrap().bytes, 90 * MIB);
        assert_eq!(available(tree(&[MACHINE]).path()).unwrap().bytes, 1024 * MIB);
    }

    /// A working set for each worker is as many working sets; what goes to a disk fills no memory.
    #[test]
    fn what_is_filled_is_that_of_all_workers_of_all_orders() {
        let of = |name, bytes, workers| filled(&[order(name, bytes, workers)]).unwrap();
        assert_eq!(of("vm_fill", Some(100 * MIB), Some(5)), 100 * MIB, "all together");
        assert_eq!(of("llc_thrash", Some(100 * MIB), None), 400 * MIB, "one a CPU");
        assert_eq!(of("llc_thrash", None, Some(2)), 40 * MIB);
        assert_eq!(of("mem_bandwidth", None, None), 256 * MIB);
        assert_eq!(of("mem_bandwidth", Some(100 * MIB), Some(3)), 300 * MIB);
        let small = of("calc_pi", None, None);
        assert_eq!(of("direct_io", Some(1 << 40), None), small);
        assert_eq!(of("download", Some(1 << 40), None), small);
        let both = [order("vm_fill", Some(MIB << 10), None), order("llc_thrash", Some(MIB), None)];
        assert_eq!(filled(&both).unwrap(), (MIB << 10) + 4 * MIB);
        assert_eq!(of("llc_thrash", Some(1 << 40), Some(u32::MAX)), u64::MAX);
    }
}
