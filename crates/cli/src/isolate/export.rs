//! `stillcore isolate export`: a desired state in the words of another tool.

use super::order::Order;
use anyhow::Context;
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use exchange::{Export, FORMATS, Format};
use model::foreign::in_a_line;
use model::new_file::NewFile;
use serde_json::json;
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Arguments of `isolate export`.
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// Tool to write for.
    #[arg(value_name = "TOOL", value_parser = formats())]
    pub(crate) tool: &'static Format,
    /// What to isolate, and where.
    #[command(flatten)]
    pub(crate) order: Order,
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
    let desired = args.order.desired(&args.order.root()?)?;
    Ok(args.tool.write(&desired, &args.name)?)
}

fn write(export: &Export, dir: &Path) -> anyhow::Result<()> {
    // One that is there may be another user's, who can put links into it, and a umask may let
    // others write to a new one.
    let mut make = std::fs::DirBuilder::new();
    make.mode(0o755).create(dir).with_context(|| {
        format!("--out {}: expected a new directory, in one that is there", dir.display())
    })?;
    make.recursive(true);
    for file in &export.files {
        let path = dir.join(&file.path);
        if let Some(parent) = path.parent() {
            make.create(parent).with_context(|| format!("cannot make {}", parent.display()))?;
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
