//! `stillcore isolate export`: a desired state in the words of another tool.

use super::State;
use super::desired::Reading;
use super::target::{NextBoot, Target, is_release, request_of};
use crate::run::output::new_directory;
use anyhow::Context;
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use exchange::{Export, FORMATS, Format};
use machine::Root;
use model::foreign::in_a_line;
use model::new_file::NewFile;
use serde_json::json;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Arguments of `isolate export`.
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// Tool to write for.
    #[arg(value_name = "TOOL", value_parser = formats())]
    pub(crate) tool: &'static Format,
    /// What to isolate.
    #[command(flatten)]
    pub(crate) target: Target,
    /// Location of the journal of applied changes.
    #[command(flatten)]
    pub(crate) state: State,
    /// Export for a snapshot: directory or tar archive of `stillcore snapshot`.
    #[arg(long, value_name = "DIR|TAR")]
    pub(crate) root: Option<PathBuf>,
    /// Kernel release to compute the boot line for, such as 6.12 [default: the running one].
    #[arg(long, value_name = "RELEASE")]
    pub(crate) for_kernel: Option<String>,
    /// Name of the profile and of its files.
    #[arg(long, value_name = "NAME", default_value = "stillcore")]
    pub(crate) name: String,
    /// New directory to write the files to [default: standard output].
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Print one JSON object instead of the files.
    #[arg(long, conflicts_with = "out")]
    pub(crate) json: bool,
}

fn formats() -> impl TypedValueParser<Value = &'static Format> {
    let values = FORMATS.iter().map(|format| PossibleValue::new(format.name).help(format.about));
    PossibleValuesParser::new(values)
        .try_map(|name| FORMATS.iter().find(|format| format.name == name).ok_or("no such tool"))
}

/// Writes the files.
pub(crate) fn run(args: &ExportArgs) -> anyhow::Result<u8> {
    let export = exported(args)?;
    if args.json {
        let files: Vec<_> =
            export.files.iter().map(|file| json!({ "path": file.path, "text": file.text })).collect();
        let value = json!({
            "schema": "stillcore.isolate-export/1", "tool": args.tool.name, "files": files, "left": export.left,
        });
        println!("{value}");
        return Ok(0);
    }
    match &args.out {
        Some(dir) => write(&export, dir)?,
        None => print(&export),
    }
    Ok(0)
}

fn exported(args: &ExportArgs) -> anyhow::Result<Export> {
    if let Some(release) = args.for_kernel.as_deref().filter(|release| !is_release(release)) {
        anyhow::bail!("--for-kernel {release:?}: expected a release such as 6.12 or 6.1.0-30-amd64");
    }
    let root = Root::open(args.root.as_deref().unwrap_or(Path::new("/")))?;
    let catalogue = args.target.catalogue()?;
    let machine = machine::read(&root)?;
    let profile = args.target.desired(&machine, Reading::AsData)?;
    let next = NextBoot { kernel: args.for_kernel.clone(), image: None };
    let request = request_of(&root, &profile, &args.state, next)?;
    let desired = audit::desired(&root, &machine, &catalogue, &request)?;
    args.tool.write(&desired, &args.name).context("--name")
}

fn write(export: &Export, dir: &Path) -> anyhow::Result<()> {
    new_directory(dir)?;
    for file in &export.files {
        let path = dir.join(&file.path);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
        }
        let mut new = NewFile::create(&path)?;
        new.write_all(file.text.as_bytes()).with_context(|| format!("cannot write {}", path.display()))?;
        new.keep()?;
        println!("written: {}", path.display());
    }
    for line in &export.left {
        println!("left: {}", in_a_line(line));
    }
    Ok(())
}

/// One file is printed as it is, several each after a comment with its path.
fn print(export: &Export) {
    for (index, file) in export.files.iter().enumerate() {
        if export.files.len() > 1 {
            println!("{}# File: {}", if index == 0 { "" } else { "\n" }, file.path);
        }
        print!("{}", file.text);
    }
}
