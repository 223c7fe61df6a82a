//! What was right when CPUs were isolated, written down so that verifying can report what is no
//! longer so: mechanisms that needed no change, and interrupts that had to stay. The journal has
//! each change that somebody undoes, but neither a daemon that is started later nor a good value
//! that is changed.

use super::standing::Standing;
use crate::head::Head;
use crate::watched::{Watched, handlers};
use audit::catalogue::{Catalogue, Mechanism, Probe};
use audit::stray::seen;
use audit::{Purpose, Requested, audit_requested};
use machine::{Irq, Root, irqs};
use model::{Cpus, Finding, FindingState, Machine};
use sys::Error;

/// Writes down what is right now; nothing where no CPU is isolated.
pub fn begin(root: &Root, catalogue: &Catalogue, head: &Head, standing: &mut Standing) -> Result<(), Error> {
    if head.isolated.is_empty() {
        return Ok(());
    }
    let machine = machine::read(root)?;
    let purpose = standing.purpose()?;
    let findings = findings(root, &machine, catalogue, head, &purpose, |_| true);
    let right = findings.into_iter().filter(|finding| finding.state == FindingState::Ok || finding.unproven);
    let meets = |cpus: &Cpus| !cpus.and(&head.isolated).is_empty();
    let (may, not): (Vec<_>, Vec<_>) = irqs(root).into_iter().partition(|irq| meets(&irq.allowed));
    let named = |irqs: Vec<Irq>| irqs.into_iter().map(|irq| (irq.number, handlers(&irq))).collect();
    let pinned = seen(root, &head.isolated, &head.housekeeping, &purpose).pinned;
    standing.watch(&Watched {
        right: right.map(|finding| finding.id).collect(),
        interrupts: named(may),
        late: named(not.into_iter().filter(|irq| meets(&irq.effective)).collect()),
        pinned: pinned.into_iter().map(|step| step.target).collect(),
    })
}

/// Findings of the requested mechanisms, except those about single tasks and interrupts, which are
/// reported one by one.
pub(super) fn findings(
    root: &Root,
    machine: &Machine,
    catalogue: &Catalogue,
    head: &Head,
    purpose: &Purpose,
    asked: impl Fn(&str) -> bool,
) -> Vec<Finding> {
    let Head { cpus, isolated, housekeeping, .. } = head;
    let mechanisms = catalogue.mechanisms.iter().filter(|one| asked(&one.id) && !one_by_one(one));
    audit_requested(root, machine, Requested { cpus, isolated, housekeeping, purpose }, mechanisms)
}

/// Interrupt threads follow their interrupt and workers their workqueue, so that they are no strays
/// and are judged as a whole.
fn one_by_one(mechanism: &Mechanism) -> bool {
    match &mechanism.probe {
        Probe::Tasks { .. } | Probe::IrqAffinity {} => true,
        Probe::KthreadAffinity { name } => !name.starts_with("irq/") && !name.starts_with("kworker/"),
        _ => false,
    }
}
