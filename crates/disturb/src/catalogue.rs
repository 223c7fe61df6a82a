//! The stressors as data: what each does, needs, provokes and leaves.

use super::{Error, stressors};
use crate::spec::StressorSpec;

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
    use snapbox::{assert_data_eq, file};
    use std::collections::BTreeSet;
    use std::fmt::Write;

    /// Families, and what the page calls them.
    const CLASSES: [(&str, &str); 10] = [
        ("sched", "Processes, threads and timers"),
        ("mm", "Memory management"),
        ("net", "Network"),
        ("wq", "Workqueues and mounts"),
        ("poke", "Static keys, probes and counters: these patch kernel text"),
        ("broadcast", "Broadcasts: these call every CPU"),
        ("io", "Files, queues and logs"),
        ("mem", "Caches and memory bandwidth"),
        ("ctl", "Controls: these cause no interference by themselves"),
        ("machine", "The machine itself"),
    ];

    const HEAD: &str = "# Stressors

For those who choose a disturbance: every stressor that stillcore has, by family.
[Disturbances](disturb.md) says how to run them, and what else to know of some.

A test writes this page: `SNAPSHOTS=overwrite cargo test -p stillcore-disturb --lib page`.
";

    fn row(spec: &StressorSpec) -> String {
        let rate = spec.default_rate.map_or("its own".to_owned(), |rate| format!("{rate}/s"));
        let dangerous = if spec.dangerous { "; `--dangerous`" } else { "" };
        let StressorSpec { name, operation, privilege, witness, .. } = spec;
        let paths = if spec.kernel_paths.is_empty() { "none".into() } else { spec.kernel_paths.join(", ") };
        format!("| `{name}` | {operation} | {rate} | {privilege}{dangerous} | {witness} | {paths} |\n")
    }

    #[test]
    fn the_page_of_stressors_is_of_this_catalogue() {
        let mut page = HEAD.to_owned();
        for (class, title) in CLASSES {
            let _ = write!(
                page,
                "\n## {title}\n\n\
                 | stressor | one operation | default rate | privilege | witness | kernel paths |\n\
                 |---|---|---|---|---|---|\n"
            );
            page.extend(catalogue().iter().filter(|spec| spec.class == class).map(row));
        }
        assert_data_eq!(page, file!["../../../docs/stressors.md"].raw());
    }

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
            assert!(CLASSES.iter().any(|(class, _)| *class == spec.class), "{}", spec.name);
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
