//! `stillcore audit`: every mechanism of the catalogue judged on this machine or a captured one.

mod baseline;
mod sarif;
mod text;

use anyhow::Context;
use audit::Count;
use audit::fixes::Fixes;
use audit::{Audit, Catalogue, audit_with_line};
use clap::Args;
use machine::Root;
use model::boot::BootLine;
use model::fix::FixFinding;
use model::{Cpus, Finding, Machine};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Schema of the JSON answer.
pub(crate) const SCHEMA: &str = "stillcore.audit/1";

/// Arguments of `audit`.
#[derive(Debug, Args)]
pub(crate) struct AuditArgs {
    /// CPUs to audit for isolation, as a list such as 2,3 [default: the isolated CPUs, else the
    /// highest one].
    #[arg(long, value_name = "LIST")]
    pub(crate) cpus: Option<Cpus>,
    /// Audit a snapshot: directory or tar archive of `stillcore snapshot`.
    #[arg(long, value_name = "DIR|TAR")]
    pub(crate) root: Option<PathBuf>,
    /// Fail only for regressions since this JSON output of an earlier audit.
    #[arg(long, value_name = "FILE")]
    pub(crate) baseline: Option<PathBuf>,
    /// Also list what is in order, not applicable, or a choice.
    #[arg(long)]
    pub(crate) all: bool,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
    /// Print a SARIF 2.1.0 log, for CI systems.
    #[arg(long, conflicts_with = "json")]
    pub(crate) sarif: bool,
    /// Directory of mechanisms to use instead of the built-in catalogue.
    #[arg(long, value_name = "DIR")]
    pub(crate) catalogue: Option<PathBuf>,
}

/// All that an audit found.
pub(crate) struct Audited {
    pub(crate) machine: Machine,
    pub(crate) cpus: Cpus,
    pub(crate) housekeeping: Cpus,
    pub(crate) findings: Vec<Finding>,
    pub(crate) boot_line: BootLine,
    pub(crate) fixes: Vec<FixFinding>,
    pub(crate) count: Count,
}

/// Audits; 2 when a finding fails.
pub(crate) fn run(args: &AuditArgs) -> anyhow::Result<u8> {
    let catalogue = match &args.catalogue {
        Some(directory) => Catalogue::load(directory)?,
        None => Catalogue::embedded()?,
    };
    let root = Root::open(args.root.as_deref().unwrap_or(Path::new("/")))?;
    let audited = audited(&root, &catalogue, args.cpus.clone())?;
    let changes = match &args.baseline {
        Some(file) => Some(baseline::compare(file, &audited).with_context(|| file.display().to_string())?),
        None => None,
    };
    if args.sarif {
        println!("{}", sarif::log(&catalogue, &audited));
    } else if args.json {
        println!("{}", answer(&audited, changes.as_ref())?);
    } else {
        print!("{}", text::page(&audited, args.all, changes.as_ref()));
    }
    let failed = match &changes {
        Some(changes) => !changes.worse.is_empty(),
        None => audited.findings.iter().any(Finding::failed),
    };
    Ok(if failed { 2 } else { 0 })
}

fn audited(root: &Root, catalogue: &Catalogue, cpus: Option<Cpus>) -> anyhow::Result<Audited> {
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
    let Audit { findings, boot_line } = audit_with_line(root, &machine, catalogue, &cpus);
    let fixes = Fixes::embedded()?.judge(root, &machine);
    let count = catalogue.count();
    Ok(Audited { machine, cpus, housekeeping, findings, boot_line, fixes, count })
}

/// Findings by state.
pub(crate) fn counts(findings: &[Finding]) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    for finding in findings {
        *counts.entry(finding.state.name()).or_default() += 1;
    }
    counts
}

fn answer(audited: &Audited, changes: Option<&baseline::Changes>) -> anyhow::Result<Value> {
    let mut value = json!({
        "schema": SCHEMA,
        "tool_version": env!("CARGO_PKG_VERSION"),
        "machine": serde_json::to_value(&audited.machine)?,
        "cpus": serde_json::to_value(&audited.cpus)?,
        "housekeeping": serde_json::to_value(&audited.housekeeping)?,
        "findings": serde_json::to_value(&audited.findings)?,
        "boot_line": serde_json::to_value(&audited.boot_line)?,
        "counts": counts(&audited.findings),
        "mechanisms": {
            "all": audited.count.all,
            "read": audited.count.read,
            "build": audited.count.build,
            "practices": audited.count.practices,
        },
        "failed": audited.findings.iter().filter(|finding| finding.failed()).count(),
        "fixes": serde_json::to_value(&audited.fixes)?,
    });
    if let Some(changes) = changes {
        value["baseline"] = serde_json::to_value(changes)?;
    }
    Ok(value)
}
