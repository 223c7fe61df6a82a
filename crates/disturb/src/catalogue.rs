//! The stressors as data: what each does, needs, provokes and leaves.

use super::Error;
use super::child::Account;
use super::job::Job;
use super::leaving::{Leaving, Mark};
use super::order::Order;
use super::stressors;

/// One stressor's entry.
#[derive(Debug, Clone, Copy)]
pub struct StressorSpec {
    /// Name on the command line and in records.
    pub name: &'static str,
    /// What it does, in one line.
    pub title: &'static str,
    /// Family: `ctl`, `sched`, `mm`, `net`, `wq`, `poke`, `broadcast`, `io`, `mem`, `machine`.
    pub class: &'static str,
    /// What counts as one operation.
    pub operation: &'static str,
    /// Privilege it needs; `none` for all that an ordinary user can run.
    pub privilege: &'static str,
    /// Kernel options and resources it needs.
    pub needs: &'static str,
    /// Kernel paths it exercises, through which it may reach other CPUs.
    pub kernel_paths: &'static [&'static str],
    /// The counter, not of its own loop, that must agree.
    pub witness: &'static str,
    /// What is left to clean when it is killed.
    pub cleanup: &'static str,
    /// What could go wrong for the machine, and what bounds it.
    pub danger: &'static str,
    /// Operations per second where no rate is given; `None` is as fast as it goes.
    pub default_rate: Option<f64>,
    /// Memory that it may use, bytes.
    pub memory_bytes: u64,
    /// Memory that an order of it fills, bytes: working sets of all its workers together.
    pub fills: fn(&Order) -> u64,
    /// Processes and threads that it may have at a time.
    pub processes: u64,
    /// Kernel modules that a guest has to load for it, where a kernel has them as modules.
    pub modules: &'static [&'static str],
    /// Files of the kernel that it writes; their values are saved before it begins and restored at
    /// the end.
    pub writes: &'static [&'static str],
    /// What else it makes or changes that would outlive it: undone at the end, whatever happens to
    /// it.
    pub leaves: fn(&Mark<'_>) -> Vec<Leaving>,
    /// Whether it switches tracing, and so needs the path of tracefs.
    pub tracing: bool,
    /// Whether it has to have a thread on each measured CPU: then it is a neighbour there, too.
    pub colocated: bool,
    /// Whether it is aimed at the measured CPUs from its own, and has to know which they are.
    pub aimed: bool,
    /// Whether it may harm the machine beyond its own end, and is run only where its name and `--dangerous` were given.
    pub dangerous: bool,
    /// The stressor of stress-ng that does about the same, for comparing rates: its options.
    pub peer: Option<&'static str>,
    pub(super) work: fn(&mut Job<'_>) -> Result<Account, Error>,
}

impl StressorSpec {
    /// What an entry has where it says nothing else: one small ordinary process that leaves nothing behind.
    pub(super) const PLAIN: Self = Self {
        name: "",
        title: "",
        class: "",
        operation: "",
        privilege: "none",
        needs: "",
        kernel_paths: &[],
        witness: "",
        cleanup: "none",
        danger: "",
        default_rate: None,
        memory_bytes: 64 << 20,
        fills: |_| 8 << 20,
        processes: 40,
        modules: &[],
        writes: &[],
        leaves: |_| Vec::new(),
        tracing: false,
        colocated: false,
        aimed: false,
        dangerous: false,
        peer: None,
        work: |_| Err(Error::NoCpu { what: String::new() }),
    };
}

/// All stressors, in the order in which reports list them.
pub fn catalogue() -> &'static [StressorSpec] {
    stressors::ALL
}

/// The entry of one name: in the [catalogue], or `stress-ng:` and a name there.
pub fn find(name: &str) -> Result<&'static StressorSpec, Error> {
    if let Some(external) = stressors::stress_ng::find(name) {
        return Ok(external);
    }
    let known = || catalogue().iter().map(|spec| spec.name).collect::<Vec<_>>().join(", ");
    let found = catalogue().iter().find(|spec| spec.name == name);
    found.ok_or_else(|| Error::UnknownStressor { name: name.to_owned(), known: known() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const CLASSES: [&str; 10] =
        ["ctl", "sched", "mm", "net", "wq", "poke", "broadcast", "io", "mem", "machine"];

    #[test]
    fn names_are_unique_and_every_field_says_something() {
        let names: BTreeSet<_> = catalogue().iter().map(|spec| spec.name).collect();
        assert_eq!(names.len(), catalogue().len());
        for spec in catalogue() {
            let fields = [spec.title, spec.class, spec.operation, spec.privilege, spec.needs];
            let more = [spec.witness, spec.cleanup, spec.danger];
            assert!(fields.iter().chain(&more).all(|text| !text.is_empty()), "{}", spec.name);
            assert!(spec.default_rate.is_none_or(|rate| rate > 0.0), "{}", spec.name);
            assert!(spec.class == "ctl" || !spec.kernel_paths.is_empty(), "{}", spec.name);
            assert!(CLASSES.contains(&spec.class), "{}", spec.name);
            assert!(spec.memory_bytes > 0 && spec.processes > 0, "{}", spec.name);
            assert!(spec.writes.iter().all(|path| path.starts_with('/')), "{}", spec.name);
            assert_eq!(find(spec.name).unwrap().name, spec.name);
        }
    }

    #[test]
    fn exactly_the_controls_claim_no_kernel_path() {
        let quiet: Vec<_> =
            catalogue().iter().filter(|spec| spec.kernel_paths.is_empty()).map(|spec| spec.name).collect();
        assert_eq!(quiet, ["calc_pi", "cpu_methods"]);
    }

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        let text = find("u_frok").unwrap_err().to_string();
        assert!(text.contains("u_frok") && text.contains("u_fork, u_thread, "), "{text}");
    }
}
