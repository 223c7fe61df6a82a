//! `stillcore audit`: every mechanism of the catalogue judged on this machine or a captured one.

mod baseline;
mod sarif;
mod text;

use crate::isolate::desired::{self, Reading};
use anyhow::Context;
use audit::{Answer, Catalogue};
use clap::Args;
use machine::Root;
use model::{Cpus, Finding};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Arguments of `audit`.
#[derive(Debug, Args)]
pub(crate) struct AuditArgs {
    /// CPUs to audit for isolation, as a list such as 2,3 [default: the isolated CPUs, else the
    /// highest one].
    #[arg(long, value_name = "LIST")]
    pub(crate) cpus: Option<Cpus>,
    /// Desired state to audit for: its CPUs, its choices, without what it keeps.
    #[arg(long, value_name = "FILE", conflicts_with = "cpus")]
    pub(crate) profile: Option<PathBuf>,
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

/// Audits; 2 when a finding fails.
pub(crate) fn run(args: &AuditArgs) -> anyhow::Result<u8> {
    let catalogue = match &args.catalogue {
        Some(directory) => Catalogue::load(directory)?,
        None => Catalogue::embedded()?,
    };
    let root = Root::open(args.root.as_deref().unwrap_or(Path::new("/")))?;
    let audited = match &args.profile {
        Some(file) => {
            audit::answer_for(&root, &catalogue, &desired::read(file, Reading::AsData, &catalogue)?)?
        }
        None => audit::answer(&root, &catalogue, args.cpus.clone())?,
    };
    let changes = match &args.baseline {
        Some(file) => Some(baseline::compare(file, &audited).with_context(|| file.display().to_string())?),
        None => None,
    };
    if args.sarif {
        println!("{}", sarif::log(&catalogue, &audited));
    } else if args.json {
        println!("{}", json(&audited, changes.as_ref())?);
    } else {
        print!("{}", text::page(&audited, args.all, changes.as_ref()));
    }
    let failed = match &changes {
        Some(changes) => !changes.worse.is_empty(),
        None => audited.findings.iter().any(Finding::failed),
    };
    Ok(if failed { 2 } else { 0 })
}

fn json(answer: &Answer, changes: Option<&baseline::Changes>) -> anyhow::Result<Value> {
    let mut value = serde_json::to_value(answer)?;
    if let Some(changes) = changes {
        value["baseline"] = serde_json::to_value(changes)?;
    }
    Ok(value)
}
