//! `stillcore graph convert`: any graph as TOML.

use super::load::load;
use crate::run::progress::Reporter;
use clap::Args;
use graph::topology::file;
use model::store;
use std::path::PathBuf;

/// Arguments of `graph convert`.
#[derive(Debug, Args)]
pub(crate) struct ConvertArgs {
    /// JSON files of ros2-performance (each a process), a TOML file, or the name of a built-in
    /// graph.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<String>,
    /// Output file [default: standard output].
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

/// Writes it.
pub(crate) fn run(args: &ConvertArgs) -> anyhow::Result<u8> {
    let loaded = load(&args.files)?;
    loaded.warnings.iter().for_each(|warning| Reporter::say(&format!("warning: {warning}")));
    let text = file::write(&loaded.graph)?;
    match &args.out {
        Some(path) => store::write_whole(path, text.as_bytes())?,
        None => print!("{text}"),
    }
    Ok(0)
}
