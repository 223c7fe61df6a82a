//! A stressor as the catalogue lists it.

use crate::Error;
use crate::account::Account;
use crate::job::Job;
use crate::leaving::{Leaving, Mark};
use crate::order::Order;

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
    /// Whether it may harm the machine beyond its own end, and is run only where its name and
    /// `--dangerous` were given.
    pub dangerous: bool,
    /// The stressor of stress-ng that does about the same, for comparing rates: its options.
    pub peer: Option<&'static str>,
    pub(crate) work: fn(&mut Job<'_>) -> Result<Account, Error>,
}

impl StressorSpec {
    /// What an entry has where it says nothing else: one small ordinary process that leaves nothing
    /// behind.
    pub(crate) const PLAIN: Self = Self {
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
