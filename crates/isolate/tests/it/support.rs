//! What the tests of isolation share: plans made by hand.

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
        move_pinned: false,
    }
}
