//! What the kernel wrote to its log as it booted, as far as that is still there and may be read:
//! root always may, others where `kernel.dmesg_restrict` lets them.

use super::{Root, kmsg};
use model::Cpus;

/// Where a captured tree keeps the lines that are read here.
pub(super) const BOOT_LOG: &str = "stillcore-boot-log";

/// What begins the list of CPUs whose callbacks are offloaded (Linux kernel/rcu/tree_nocb.h, before
/// 5.15 tree_plugin.h: `rcu_init_nohz`).
const OFFLOADED: &str = "Offload RCU callbacks from CPUs: ";

/// The lines that are read, of this machine or as captured.
pub(super) fn lines(root: &Root) -> Vec<String> {
    let log = if root.is_live() { kmsg::kernel_log() } else { root.maybe(BOOT_LOG).unwrap_or_default() };
    log.lines().filter(|line| line.contains(OFFLOADED)).map(str::to_owned).collect()
}

/// The CPUs from which the kernel said that it offloads RCU callbacks; `None` where the log does
/// not say.
pub fn rcu_offloaded(root: &Root) -> Option<Cpus> {
    lines(root).iter().find_map(|line| offloaded(line))
}

fn offloaded(line: &str) -> Option<Cpus> {
    let (_, list) = line.split_once(OFFLOADED)?;
    match list.trim().trim_end_matches('.') {
        // `%*pbl` of nothing, and what kernels before 4.17 write.
        "" | "(none)" => Some(Cpus::default()),
        list => Cpus::parse_list(list).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tree::tree;
    use super::*;

    #[test]
    fn the_list_is_the_kernel_s_own() {
        let of = |line: &str| offloaded(line).map(|cpus| cpus.to_string());
        assert_eq!(of("[    0.000000] rcu: \tOffload RCU callbacks from CPUs: 0-1.").as_deref(), Some("0,1"));
        assert_eq!(of("rcu: \tOffload RCU callbacks from CPUs: 2,5-7.").as_deref(), Some("2,5-7"));
        assert_eq!(of("rcu: \tOffload RCU callbacks from CPUs: (none).").as_deref(), Some(""));
        assert_eq!(of("rcu: \tOffload RCU callbacks from CPUs: nonsense."), None);
        assert_eq!(of("rcu: Hierarchical RCU implementation."), None);
    }

    #[test]
    fn a_captured_log_reads_as_a_live_one() {
        let (_dir, root) = tree(&[(BOOT_LOG, "[    0.1] rcu: \tOffload RCU callbacks from CPUs: 3.")]);
        assert_eq!(rcu_offloaded(&root), Some(Cpus::one(3)));
        assert_eq!(rcu_offloaded(&tree(&[("proc/cmdline", "")]).1), None);
    }
}
