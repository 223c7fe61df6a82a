//! The stressors as data: what each does, needs, provokes and leaves.

use super::child::Account;
use super::job::Job;
use super::{Error, calc_pi, fault, sock, timer, u_fork, u_thread};

/// One stressor's entry.
#[derive(Debug, Clone, Copy)]
pub struct StressorSpec {
    /// Name on the command line and in records.
    pub name: &'static str,
    /// What it does, in one line.
    pub title: &'static str,
    /// Family: `ctl`, `sched`, `mm`, `net`.
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
    /// Operations per second where none are asked for; `None` is as fast as it goes.
    pub default_rate: Option<f64>,
    pub(super) work: fn(&mut Job<'_>) -> Result<Account, Error>,
}

/// All stressors, in the order in which reports list them.
pub fn catalogue() -> &'static [StressorSpec] {
    const { &[u_fork::SPEC, u_thread::SPEC, timer::SPEC, fault::SPEC, sock::SPEC, calc_pi::SPEC] }
}

/// The entry of one name.
pub fn find(name: &str) -> Result<&'static StressorSpec, Error> {
    let known = || catalogue().iter().map(|spec| spec.name).collect::<Vec<_>>().join(", ");
    let found = catalogue().iter().find(|spec| spec.name == name);
    found.ok_or_else(|| Error::UnknownStressor { name: name.to_owned(), known: known() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

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
            assert_eq!(find(spec.name).unwrap().name, spec.name);
        }
    }

    #[test]
    fn exactly_the_controls_claim_no_kernel_path() {
        let quiet: Vec<_> =
            catalogue().iter().filter(|spec| spec.kernel_paths.is_empty()).map(|spec| spec.name).collect();
        assert_eq!(quiet, ["calc_pi"]);
    }

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        let text = find("u_frok").unwrap_err().to_string();
        assert!(
            text.contains("u_frok") && text.contains("u_fork, u_thread, timer, fault, sock, calc_pi"),
            "{text}"
        );
    }
}
