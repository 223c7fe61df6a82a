//! `stillcore snapshot`: takes what an audit reads, so that the machine can be audited elsewhere.

use audit::Catalogue;
use audit::fixes::Fixes;
use clap::Args;
use machine::{Root, Selection};
use model::Error;
use std::path::{Path, PathBuf};

/// Arguments of `snapshot`.
#[derive(Debug, Args)]
pub(crate) struct SnapshotArgs {
    /// New file ending in .tar, or new or empty directory [default: stillcore-snapshot-TIME.tar].
    #[arg(long, value_name = "FILE.tar|DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Only list the files to archive.
    #[arg(long)]
    pub(crate) list: bool,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

const TAKEN: &str = "taken: settings of /proc and /sys, the kernel command line and build options; of tasks the name, parent, start, \
where they may run and where they last ran; of daemons that the catalogue names the control groups; the kubelet's shared CPUs; counts \
of interrupts and softirqs, timer functions, device queues; which units start by themselves; of the boot log the line about RCU \
callbacks; of the kernel's code whether it has the symbols and calls that show fixes. No other environment, command lines, file names, addresses or host name.";

/// Takes one.
pub(crate) fn run(args: &SnapshotArgs) -> anyhow::Result<u8> {
    let root = Root::open(Path::new("/"))?;
    let mut selection = Catalogue::embedded()?.selection();
    let fixes = Fixes::embedded()?.selection();
    selection.names.extend(fixes.names);
    selection.files.extend(fixes.files);
    selection.functions.extend(fixes.functions);
    selection.code = fixes.code;
    if args.list {
        for file in machine::planned(&root, &selection) {
            println!("/{}", file.trim_start_matches('/'));
        }
        return Ok(0);
    }
    let out = args.out.clone().unwrap_or_else(default_out);
    take(&root, &out, &selection)?;
    if args.json {
        println!("{}", serde_json::json!({ "schema": "stillcore.snapshot/1", "out": out }));
    } else {
        println!("{}\n{TAKEN}\naudit it anywhere: stillcore audit --root {}", out.display(), out.display());
    }
    Ok(0)
}

fn default_out() -> PathBuf {
    format!("stillcore-snapshot-{}.tar", jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ")).into()
}

/// Leaves nothing behind when it fails.
fn take(root: &Root, out: &Path, selection: &Selection) -> Result<(), Error> {
    if out.extension().is_none_or(|end| end != "tar") {
        let was_there = out.is_dir();
        return machine::capture(root, out, selection).inspect_err(|error| {
            // A directory that was in use before is not ours to remove.
            if !matches!(error, Error::Invalid { .. }) && !was_there {
                let _ = std::fs::remove_dir_all(out);
            }
        });
    }
    if out.exists() {
        return Err(Error::invalid(out.display(), "it exists", "a new file"));
    }
    machine::capture_into_archive(root, out, selection)
}
