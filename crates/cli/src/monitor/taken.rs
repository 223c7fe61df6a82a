//! What took time from the watched CPUs without any event of the kernel: a hypervisor, and heat. As
//! the kernel counts it; reading that disturbs no CPU.

use machine::Root;
use model::Cpus;

/// A unit of `/proc/stat` ("USER_HZ"; proc_stat(5)).
const TICK_NS: u64 = 10_000_000;
/// How often a CPU was slowed: for its core's own heat, and for that of its package (kernel
/// `arch/x86/kernel/cpu/mce/therm_throt.c`).
const THROTTLED: [&str; 2] = ["core_throttle_count", "package_throttle_count"];

/// What there was when watching began.
pub(super) struct Taken {
    root: Root,
    cpus: Cpus,
    steal_ns: Vec<u64>,
    throttled: Option<Vec<u64>>,
}

impl Taken {
    /// Begins with what there is now.
    pub(super) fn begin(root: Root, cpus: &Cpus) -> Self {
        let (steal_ns, throttled) = (steal_ns(&root, cpus), throttled(&root, cpus));
        Self { root, cpus: cpus.clone(), steal_ns, throttled }
    }

    /// Steal time of each CPU since then, ns, in the order of the list.
    pub(super) fn steal_ns(&self) -> Vec<u64> {
        since(&self.steal_ns, &steal_ns(&self.root, &self.cpus))
    }

    /// How often heat slowed each since then; `None` where the kernel does not count it for all of
    /// them.
    pub(super) fn throttled(&self) -> Option<Vec<u64>> {
        Some(since(self.throttled.as_ref()?, &throttled(&self.root, &self.cpus)?))
    }
}

fn since(then: &[u64], now: &[u64]) -> Vec<u64> {
    now.iter().zip(then).map(|(now, then)| now.saturating_sub(*then)).collect()
}

fn steal_ns(root: &Root, cpus: &Cpus) -> Vec<u64> {
    let ticks = crate::top::counters::steal(root, cpus);
    cpus.iter().map(|cpu| ticks.get(&cpu).copied().unwrap_or(0) * TICK_NS).collect()
}

fn throttled(root: &Root, cpus: &Cpus) -> Option<Vec<u64>> {
    let of = |cpu| {
        let count =
            |name| root.number::<u64>(&format!("sys/devices/system/cpu/cpu{cpu}/thermal_throttle/{name}"));
        THROTTLED.into_iter().filter_map(count).reduce(u64::saturating_add)
    };
    cpus.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn counts_since_the_beginning_and_where_one_is_missing_nothing_is_known() {
        let dir = tempfile::tempdir().unwrap();
        let put = |file: &str, text: &str| {
            let path = dir.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let heat = |cpu: u32, name: &str| {
            format!("sys/devices/system/cpu/cpu{cpu}/thermal_throttle/{name}_throttle_count")
        };
        let cpus: Cpus = "2,3".parse().unwrap();
        let begin = || Taken::begin(Root::open(dir.path()).unwrap(), &cpus);
        put("proc/stat", "cpu2 1 2 3 4 5 6 7 8 0 0\ncpu3 1 2 3 4 5 6 7 0 0 0\n");
        put(&heat(2, "core"), "3\n");
        let unknown = begin();
        put(&heat(3, "core"), "1\n");
        assert_eq!(unknown.throttled(), None, "CPU 3 had none");
        let taken = begin();
        put("proc/stat", "cpu2 1 2 3 4 5 6 7 9 0 0\ncpu3 1 2 3 4 5 6 7 0 0 0\n");
        put(&heat(2, "core"), "5\n");
        put(&heat(2, "package"), "4\n");
        assert_eq!((taken.steal_ns(), taken.throttled()), (vec![TICK_NS, 0], Some(vec![6, 0])));
    }
}
