//! What the tests of isolation share: plans made by hand.

use linux::machine::Root;
use model::Cpus;
use model::plan::{Placement, Plan, SCHEMA, Step, StepKind};

/// A step that sets a value.
pub(crate) fn step(mechanism: &str, kind: StepKind, target: &str, new: &str) -> Step {
    Step {
        mechanism: mechanism.to_owned(),
        kind,
        target: target.to_owned(),
        old: None,
        new: new.to_owned(),
        why: String::new(),
        cost: String::new(),
        risky: false,
        note: None,
    }
}

/// A plan of these steps that places by affinity.
pub(crate) fn plan_of(steps: Vec<Step>) -> Plan {
    Plan {
        schema: SCHEMA.to_owned(),
        cpus: Cpus::default(),
        isolated: Cpus::default(),
        housekeeping: Cpus::one(0),
        placement: Placement::Affinity,
        placement_reason: String::new(),
        steps,
        boot: Vec::new(),
        left: Vec::new(),
        boot_line: model::boot::BootLine::default(),
        keep: Vec::new(),
        residents: Vec::new(),
    }
}

/// A machine of these files.
pub(crate) fn root_of(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
    let tree = tempfile::tempdir().unwrap();
    for (file, text) in files {
        let path = tree.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let root = Root::open(tree.path()).unwrap();
    (tree, root)
}
