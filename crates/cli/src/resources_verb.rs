//! `stillcore resources`: everything that may touch one CPU, of this machine or a captured one.

mod text;

use clap::Args;
use machine::Root;
use machine::resources::resources;
use model::resource::Kind;
use model::{Cpus, Error, Resource};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Schema of the JSON answer.
const SCHEMA: &str = "stillcore.resources/1";

/// Arguments of `resources`.
#[derive(Debug, Args)]
pub(crate) struct ResourcesArgs {
    /// CPUs to list, one after the other, such as 2 or 2,3; they must be online.
    #[arg(long, value_name = "LIST")]
    pub(crate) cpus: Cpus,
    /// Only these kinds, such as irq,task,timer: task is processes, kthread the kernel's own
    /// threads [default: all].
    #[arg(long, value_name = "KINDS", value_delimiter = ',')]
    pub(crate) kind: Vec<Kind>,
    /// Read a snapshot: directory or tar archive of `stillcore snapshot`.
    #[arg(long, value_name = "DIR|TAR")]
    pub(crate) root: Option<PathBuf>,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// How many rows of one kind answer each question with yes.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
struct Tally {
    rows: usize,
    may_touch: usize,
    in_force: usize,
    touched: usize,
    /// Rows that have evidence of whether they touched the CPU.
    evidence: usize,
    /// Rows that may touch the CPU and cannot be kept away.
    immovable: usize,
    /// Rows of which is not known whether they may.
    unknown: usize,
}

/// Lists. No finding: whether a row is wanted is for the audit to say.
pub(crate) fn run(args: &ResourcesArgs) -> anyhow::Result<u8> {
    let root = Root::open(args.root.as_deref().unwrap_or(Path::new("/")))?;
    let kinds = if args.kind.is_empty() { Kind::ALL } else { &args.kind };
    let mut all = Vec::new();
    for cpu in args.cpus.iter() {
        all.push((cpu, resources(&root, cpu, kinds)?));
    }
    if args.json {
        let [(cpu, rows)] = &all[..] else {
            let what = format!("{} CPUs in one JSON object", all.len());
            return Err(Error::invalid("--cpus", what, "one CPU, such as 2, with --json").into());
        };
        let answer = serde_json::json!({
            "schema": SCHEMA,
            "tool_version": env!("CARGO_PKG_VERSION"),
            "cpu": cpu,
            "summary": tallies(rows).into_iter().map(|(kind, tally)| (kind.name(), tally)).collect::<BTreeMap<_, _>>(),
            "rows": rows,
        });
        println!("{answer}");
    } else {
        let pages = all.iter().map(|(cpu, rows)| text::page(*cpu, kinds, rows));
        print!("{}", pages.collect::<Vec<_>>().join("\n"));
    }
    Ok(0)
}

fn tallies(rows: &[Resource]) -> BTreeMap<Kind, Tally> {
    let mut tallies = BTreeMap::<Kind, Tally>::new();
    for row in rows {
        let tally = tallies.entry(row.kind).or_default();
        let count = |yes: bool| usize::from(yes);
        tally.rows += 1;
        tally.may_touch += count(row.may_touch == Some(true));
        tally.in_force += count(row.in_force == Some(true));
        tally.touched += count(row.touched == Some(true));
        tally.evidence += count(row.touched.is_some());
        tally.immovable += count(row.may_touch == Some(true) && row.movable == Some(false));
        tally.unknown += count(row.may_touch.is_none());
    }
    tallies
}
