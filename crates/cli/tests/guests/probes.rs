//! Each probe once on a real kernel: every release accounted for, every file with the rows that its
//! record states.

use crate::counts::ended;
use crate::machine::Guest;
use crate::support::{read_json, text};
use model::samples_file;
use std::fs;
use std::path::Path;

/// QEMU runs its CPUs in turns, so that on a crowded host two that wait for one another may not be
/// done in the time that a probe is given; the probe says so.
pub(crate) fn done_in_time(root: &Path) -> bool {
    ["ipi", "overheads"].iter().all(|name| {
        let log = fs::read_to_string(root.join(format!("{name}.log")));
        log.is_ok_and(|log| !log.contains("did not end within"))
    })
}

/// Every release of every probe of the run is accounted for, and every file has the rows that its
/// record says.
fn balanced(dir: &Path) -> u64 {
    let run = model::run::stored::read_run(dir).unwrap();
    assert!(run.complete, "{}: {:?}", dir.display(), run.incomplete_reason);
    let mut samples = 0;
    for probe in &run.probes {
        let (_, rows) = samples_file::read(&dir.join(&probe.file)).unwrap();
        assert_eq!(rows.len() as u64, probe.samples, "{probe:?}");
        if probe.detail.releases().is_some() {
            assert_eq!(probe.released(), probe.samples + probe.missed() + probe.ring_lost, "{probe:?}");
        }
        samples += probe.samples;
    }
    samples
}

pub(crate) fn every_release_is_accounted_for(guest: &Guest) {
    let root = &guest.root;
    for name in ["wakeup", "spin", "periodic", "taskset", "clocks", "ipi", "overheads"] {
        // A missed deadline of a task set is a finding.
        ended(root, name, if name == "taskset" { &["0", "2"] } else { &["0"] });
        let log = fs::read(root.join(format!("{name}.log"))).unwrap();
        assert!(!text(&log).contains("panicked"), "{name}: {}", text(&log));
        let answer = read_json(&root.join(format!("{name}.json")));
        assert!(
            answer["schema"].as_str().is_some_and(|schema| schema.starts_with("stillcore.measure-")),
            "{name}: {answer}"
        );
        let samples = balanced(&root.join(name));
        assert!(samples > 0, "{name}: nothing was measured");
        println!("{} measure {name}: {samples} samples, accounts balance", guest.machine.name);
    }
}
