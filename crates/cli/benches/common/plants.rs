//! The programs of `tests/plants`, compiled.

use super::Failed;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The source of a plant.
pub(crate) fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plants").join(name)
}

/// Runs a compiler.
pub(crate) fn compile(command: &mut Command) -> Result<(), Failed> {
    let output = command.output().map_err(Failed::because)?;
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.success() { Ok(()) } else { Err(Failed(format!("compiling the plants: {said}"))) }
}
