//! The kernel that is going to read the line: what of it bears on its parameters.

use machine::{Root, build_options};
use model::{Cpus, Machine};
use std::collections::BTreeMap;

/// A kernel on a machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Kernel {
    /// `uname -r`, or as much of it as is known, such as `6.12`.
    pub release: String,
    /// `uname -m`.
    pub arch: String,
    /// The CPUs that the kernel counts when it reads lists.
    pub possible: Cpus,
    /// Those that are there at boot.
    pub present: Cpus,
    /// Build options that are set; `None` where they could not be read.
    pub config: Option<BTreeMap<String, String>>,
    /// What the running kernel says of the line at hand; `None` for a kernel that does not run.
    pub reported: Option<Reported>,
}

/// What a running kernel made of its command line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reported {
    /// `/sys/devices/system/cpu/isolated`: of `isolcpus=` or of partitions made since.
    pub isolated: Cpus,
    /// `/sys/devices/system/cpu/nohz_full`.
    pub nohz_full: Cpus,
    /// From the boot log; `None` where it does not say.
    pub offloaded: Option<Cpus>,
}

impl Kernel {
    /// The kernel that runs on the machine under `root`.
    pub fn running(root: &Root, machine: &Machine) -> Self {
        let topology = &machine.topology;
        let kernel = &machine.kernel;
        let reported = Reported {
            isolated: topology.isolated.clone(),
            nohz_full: topology.nohz_full.clone(),
            offloaded: machine::rcu_offloaded(root),
        };
        Self {
            release: kernel.release.clone(),
            config: kernel.config_source.as_ref().map(|_| kernel.config.clone()),
            reported: Some(reported),
            ..Self::on(root, machine)
        }
    }

    /// Another kernel for the same machine: a whole release, or its first numbers. Its options are
    /// read where exactly one kernel under `installed` has that release. Without a release it is
    /// the only kernel that is installed under `installed`, or an unknown one.
    pub fn other(root: &Root, machine: &Machine, installed: &Root, release: Option<&str>) -> Self {
        let mut releases: Vec<_> = ["boot/config-*", "lib/modules/*/config", "usr/lib/modules/*/config"]
            .iter()
            .flat_map(|pattern| installed.glob(pattern))
            .filter_map(|path| release_of(&path))
            .filter(|found| release.is_none_or(|release| found.strip_prefix(release).is_some_and(is_rest)))
            .collect();
        releases.sort();
        releases.dedup();
        let release = match releases.as_slice() {
            [one] => one.clone(),
            _ => release.unwrap_or_default().to_owned(),
        };
        let config = build_options(installed, &release);
        Self { release, config, ..Self::on(root, machine) }
    }

    fn on(root: &Root, machine: &Machine) -> Self {
        let topology = &machine.topology;
        let present = topology.present.or(&topology.online);
        Self {
            arch: machine.kernel.arch.clone(),
            possible: root.cpus("sys/devices/system/cpu/possible").unwrap_or_else(|| present.clone()),
            present,
            ..Self::default()
        }
    }

    /// Whether the kernel is built with an option; `None` where that is not known.
    pub(crate) fn has(&self, option: &str) -> Option<bool> {
        Some(self.config.as_ref()?.get(option).is_some_and(|value| value != "n"))
    }

    /// Whether the kernel is of this version or a later one; a release that cannot be read is taken
    /// for a new one.
    pub(crate) fn since(&self, major: u32, minor: u32) -> bool {
        let mut numbers = self.release.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
        match (numbers.next(), numbers.next()) {
            (Some(Ok(first)), Some(Ok(second))) => (first, second) >= (major, minor),
            (Some(Ok(first)), _) => (first, 0) >= (major, minor),
            _ => true,
        }
    }
}

fn release_of(path: &str) -> Option<String> {
    let name = path.strip_prefix("boot/config-").map(str::to_owned);
    name.or_else(|| Some(path.strip_suffix("/config")?.rsplit('/').next()?.to_owned()))
}

/// What may follow the first numbers of a release: 6.1 is none of 6.12.
fn is_rest(rest: &str) -> bool {
    !rest.starts_with(|c: char| c.is_ascii_digit())
}
