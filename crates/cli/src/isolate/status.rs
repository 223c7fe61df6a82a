//! `stillcore isolate status`: the isolation in force.

use super::State;
use clap::Args;
use isolate::standing::Found;
use journal::alone;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Arguments of `isolate status`.
#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// Location of the journal.
    #[command(flatten)]
    pub(crate) state: State,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Prints the status.
pub(crate) fn run(args: &StatusArgs) -> anyhow::Result<u8> {
    let standing = args.state.standing()?;
    match &standing {
        _ if args.json => println!("{}", answer(standing.as_ref())?),
        Some((journal, found)) => {
            let held = holder(journal).map(|pid| format!("held: process {pid} sets again what is changed\n"));
            println!("{}{}journal: {}", text(found), held.unwrap_or_default(), journal.display());
        }
        None => println!("{}", args.state.nothing()),
    }
    Ok(0)
}

/// The process that holds it, if one does.
fn holder(journal: &Path) -> Option<u32> {
    alone::holder(journal.parent()?, alone::Role::Hold)
}

fn counts(found: &Found) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for setting in found.settings.iter().filter(|setting| !setting.kind.remembers()) {
        *counts.entry(setting.mechanism.as_str()).or_default() += 1;
    }
    counts
}

/// Values that no change has set, kept since a change makes the kernel compute them anew.
fn remembered(found: &Found) -> usize {
    let settings = found.settings.iter().filter(|setting| setting.kind.remembers());
    settings.count() + found.affinities.len()
}

fn text(found: &Found) -> String {
    let head = &found.head;
    let what = match &head.deployment {
        Some(name) => format!("deployment {name}"),
        None => format!("CPUs {} isolated, {} keep house", head.isolated, head.housekeeping),
    };
    if !found.this_boot {
        return format!(
            "{what}, in an earlier boot: nothing of it is left; stillcore isolate undo ends the record\n"
        );
    }
    let mut text = format!(
        "{what}; {} changes stand, {} remembered for the undo\n",
        counts(found).values().sum::<usize>(),
        remembered(found)
    );
    for keep in &found.purpose.keep {
        let _ = writeln!(text, "kept: {keep}");
    }
    for (mechanism, count) in counts(found) {
        let _ = writeln!(text, "{count:>6}  {mechanism}");
    }
    for line in &found.refused {
        let _ = writeln!(text, "not known: {line} of the journal cannot be trusted");
    }
    text
}

fn answer(standing: Option<&(PathBuf, Found)>) -> anyhow::Result<serde_json::Value> {
    let mut value =
        serde_json::json!({ "schema": "stillcore.isolate-status/1", "isolated": null, "journal": null });
    if let Some((journal, found)) = standing {
        value = serde_json::to_value(&found.head)?;
        value["schema"] = "stillcore.isolate-status/1".into();
        value["placement"] = serde_json::to_value(found.placement())?;
        let keep: Vec<_> = found.purpose.keep.iter().map(ToString::to_string).collect();
        value["keep"] = keep.into();
        value["this_boot"] = found.this_boot.into();
        value["held_by"] = serde_json::to_value(holder(journal))?;
        value["journal"] = journal.display().to_string().into();
        value["changes"] = serde_json::to_value(counts(found))?;
        value["remembered"] = remembered(found).into();
        value["refused"] = serde_json::to_value(&found.refused)?;
    }
    Ok(value)
}
