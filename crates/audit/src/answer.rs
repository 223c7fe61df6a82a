//! The whole answer of an audit: what `stillcore audit --json` prints, and Python gets.

use crate::fixes::Fixes;
use crate::judge::audit_around;
use crate::keep::Keep;
use crate::profile::Profile;
use crate::purpose::Purpose;
use crate::{Audit, Catalogue, Count};
use machine::Root;
use model::boot::BootLine;
use model::fix::FixFinding;
use model::{Cpus, Error, Finding, Machine};
use serde::Serialize;
use std::collections::BTreeMap;

/// Schema of the answer.
pub const SCHEMA: &str = "stillcore.audit/1";

/// All that an audit found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Answer {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// The version that audited.
    pub tool_version: &'static str,
    /// The machine, as read.
    pub machine: Machine,
    /// The CPUs that are to be still.
    pub cpus: Cpus,
    /// Those for everything else.
    pub housekeeping: Cpus,
    /// One finding a mechanism, in the catalogue's order.
    pub findings: Vec<Finding>,
    /// The kernel command line that the default plan wants of the next boot.
    pub boot_line: BootLine,
    /// Findings by state.
    pub counts: BTreeMap<&'static str, usize>,
    /// Mechanisms of the catalogue.
    pub mechanisms: Count,
    /// Findings that fail.
    pub failed: usize,
    /// Which kernel fixes this kernel has.
    pub fixes: Vec<FixFinding>,
}

/// Audits the machine under a root for these CPUs: the isolated ones, else the highest, where none
/// are named. Errors: no machine there, or CPUs that it does not have.
pub fn answer(root: &Root, catalogue: &Catalogue, cpus: Option<Cpus>) -> Result<Answer, Error> {
    judged(root, catalogue, cpus, &Purpose::default())
}

/// Audits the machine under a root by a desired state: for its CPUs, with its choices made, and
/// without what it keeps.
pub fn answer_for(root: &Root, catalogue: &Catalogue, profile: &Profile) -> Result<Answer, Error> {
    let keep: Result<Vec<Keep>, Error> = profile.keep.iter().map(|what| what.parse()).collect();
    let purpose = Purpose { keep: keep?, ..Purpose::default() };
    let decided = profile.decide(catalogue);
    let audited = judged(root, &decided, Some(profile.cpus.clone()), &purpose)?;
    // How many there are is the catalogue's business.
    Ok(Answer { mechanisms: catalogue.count(), ..audited })
}

fn judged(
    root: &Root,
    catalogue: &Catalogue,
    cpus: Option<Cpus>,
    purpose: &Purpose,
) -> Result<Answer, Error> {
    let machine = machine::read(root)?;
    let cpus = match cpus {
        Some(cpus) => {
            machine::check_cpus(&machine, &cpus)?;
            cpus
        }
        None => machine::cpus_default(&machine, &machine.topology.online)?,
    };
    let housekeeping =
        machine::housekeeping(&machine, &cpus).unwrap_or_else(|_| machine.topology.online.minus(&cpus));
    let Audit { findings, boot_line } = audit_around(root, &machine, catalogue, &cpus, purpose);
    let mut counts = BTreeMap::new();
    for finding in &findings {
        *counts.entry(finding.state.name()).or_default() += 1;
    }
    Ok(Answer {
        schema: SCHEMA,
        tool_version: env!("CARGO_PKG_VERSION"),
        failed: findings.iter().filter(|finding| finding.failed()).count(),
        fixes: Fixes::embedded()?.judge(root, &machine),
        mechanisms: catalogue.count(),
        machine,
        cpus,
        housekeeping,
        findings,
        boot_line,
        counts,
    })
}
