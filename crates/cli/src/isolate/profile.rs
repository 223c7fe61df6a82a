//! `stillcore isolate profile`: `isolation.toml` written from options, or from what is applied.

use super::State;
use super::desired::Reading;
use super::target::Target;
use anyhow::Context;
use audit::Profile;
use audit::keep::Keep;
use clap::Args;
use isolate::standing::Found;
use machine::Root;
use model::new_file::NewFile;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Arguments of `isolate profile`.
#[derive(Debug, Args)]
pub(crate) struct ProfileArgs {
    /// What to isolate [default: what is applied].
    #[command(flatten)]
    pub(crate) target: Target,
    /// Location of the journal of applied changes.
    #[command(flatten)]
    pub(crate) state: State,
    /// New file to write [default: standard output].
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Print one JSON object instead of the file's text.
    #[arg(long, conflicts_with = "out")]
    pub(crate) json: bool,
}

/// A desired state, and what of the standing one it lacks.
struct Written {
    profile: Profile,
    lacking: Vec<String>,
}

/// Writes the file.
pub(crate) fn run(args: &ProfileArgs) -> anyhow::Result<u8> {
    let Written { profile, lacking } = written(args)?;
    if args.json {
        let value = serde_json::json!({
            "schema": "stillcore.isolate-profile/1", "profile": profile, "lacking": lacking,
        });
        println!("{value}");
        return Ok(0);
    }
    let comments = lacking.iter().fold(String::new(), |all, what| all + "# " + what + "\n");
    let text = format!(
        "# Which CPUs are to be still, and how. Check with stillcore isolate plan --profile FILE,\n\
         # carry out with stillcore isolate apply --profile FILE.\n{comments}{}",
        profile.to_toml()
    );
    match &args.out {
        Some(path) => {
            let mut file = NewFile::create(path)?;
            file.write_all(text.as_bytes()).with_context(|| format!("cannot write {}", path.display()))?;
            file.keep()?;
            println!("written: {}", path.display());
        }
        None => print!("{text}"),
    }
    Ok(0)
}

fn written(args: &ProfileArgs) -> anyhow::Result<Written> {
    let Target { cpus, with, without, keep, profile, placement, .. } = &args.target;
    let named = cpus.is_some() || profile.is_some() || placement.is_some();
    let asked = named || [with, without].iter().any(|ids| !ids.is_empty()) || !keep.is_empty();
    if !asked && let Some((_, found)) = args.state.standing()? {
        return of_standing(&found);
    }
    let catalogue = args.target.catalogue()?;
    let machine = machine::read(&Root::open(Path::new("/"))?)?;
    let mut profile = args.target.desired(&machine, Reading::AsData)?;
    let lacking = without_numbers(&mut profile)?;
    // It is read as it will be, so that no file is written that is refused later.
    let profile = Profile::parse(&profile.to_toml(), "these options", &catalogue)?;
    Ok(Written { profile, lacking })
}

fn of_standing(found: &Found) -> anyhow::Result<Written> {
    if let Some(name) = &found.head.deployment {
        anyhow::bail!("deployment {name} is applied, which is known by its name and has no file");
    }
    let Some(profile) = &found.desired else {
        anyhow::bail!(
            "an earlier version applied what stands, and did not write down what was asked: name the options"
        );
    };
    let kept = found.purpose.keep.iter().map(ToString::to_string).collect();
    let mut profile = Profile { keep: kept, ..profile.clone() };
    let lacking = without_numbers(&mut profile)?;
    Ok(Written { profile, lacking })
}

/// Takes out what does not outlive a process, and says so.
fn without_numbers(profile: &mut Profile) -> anyhow::Result<Vec<String>> {
    let mut lacking = Vec::new();
    let mut kept = Vec::new();
    for what in std::mem::take(&mut profile.keep) {
        if what.parse::<Keep>()?.is_lasting() {
            kept.push(what);
        } else {
            lacking
                .push(format!("not in this file, since a number does not outlive its process: keep {what}"));
        }
    }
    profile.keep = kept;
    Ok(lacking)
}
