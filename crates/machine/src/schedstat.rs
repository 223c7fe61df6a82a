//! The scheduling domains of each CPU: `/proc/schedstat`.
//!
//! Format: Linux `Documentation/scheduler/sched-stats.rst`: each CPU's line is followed by those of
//! its domains, with a name before the mask from version 17 on. debugfs shows them too, from 6.4 on
//! only where `sched/verbose` was set (commit 34320745dfc9); before 5.13 they were in
//! `/proc/sys/kernel/sched_domain`.

use super::Root;
use model::Cpus;
use std::collections::BTreeMap;

/// The file.
pub const SCHEDSTAT: &str = "proc/schedstat";

/// CPUs among which the scheduler balances.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Domain {
    /// Its name, such as `MC`, where the kernel reports it.
    pub name: Option<String>,
    /// The CPUs.
    pub cpus: Cpus,
}

/// CPU → its domains, the innermost first; CPUs without any are left out. `None` where this kernel
/// does not report them.
pub fn domains(root: &Root) -> Option<BTreeMap<u32, Vec<Domain>>> {
    let text = root.maybe(SCHEDSTAT)?;
    let mut domains = BTreeMap::<u32, Vec<Domain>>::new();
    let mut cpu = None;
    for line in text.lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        match words.as_slice() {
            [first, ..] if first.starts_with("cpu") => cpu = first[3..].parse().ok(),
            [first, rest @ ..] if first.starts_with("domain") => {
                if let (Some(cpu), Some(domain)) = (cpu, domain(rest)) {
                    domains.entry(cpu).or_default().push(domain);
                }
            }
            _ => {}
        }
    }
    cpu.map(|_: u32| domains)
}

fn domain(words: &[&str]) -> Option<Domain> {
    let span = |mask: &str| Cpus::parse_hex(mask).ok();
    let is_mask = |word: &str| word.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b',');
    match words {
        [name, mask, ..] if !is_mask(name) => {
            Some(Domain { name: Some((*name).to_owned()), cpus: span(mask)? })
        }
        [mask, ..] => Some(Domain { name: None, cpus: span(mask)? }),
        [] => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tree;

    #[test]
    fn both_versions_are_read() {
        let old = "version 15\ncpu0 0 0\ndomain0 3 1 2\ndomain1 00000000,0000000f 1 2\ncpu1 0\n";
        let new = "version 17\ncpu0 0 0\ndomain0 SMT 3 1\ndomain1 MC f 1\ncpu1 0\n";
        let of = |text: &str| {
            let (_dir, root) = tree(&[(SCHEDSTAT, text)]);
            let domains = domains(&root).unwrap();
            assert_eq!(domains.keys().copied().collect::<Vec<_>>(), [0]);
            domains[&0].iter().map(|one| (one.name.clone(), one.cpus.to_string())).collect::<Vec<_>>()
        };
        assert_eq!(of(old), [(None, "0,1".to_owned()), (None, "0-3".to_owned())]);
        let named = |name: &str| Some(name.to_owned());
        assert_eq!(of(new), [(named("SMT"), "0,1".to_owned()), (named("MC"), "0-3".to_owned())]);
    }

    #[test]
    fn a_kernel_without_statistics_reports_no_domains() {
        let (_dir, root) = tree(&[("proc/x", "")]);
        assert_eq!(domains(&root), None);
    }
}
