//! A run read from its directory.

use crate::Error;
use crate::store::{RUN, read_json};
use std::fs;
use std::path::{Component, Path};

/// Reads `run.json` of a run directory and checks its schema, and that the files it names are files
/// of this run. To one that is incomplete it adds records of the windows that were cut off.
pub fn read_run(dir: &Path) -> Result<crate::Run, Error> {
    let path = dir.join(RUN);
    let mut run: crate::Run = read_json(&path)?;
    if run.schema != crate::run::SCHEMA {
        return Err(Error::invalid(path.display(), format!("schema {:?}", run.schema), crate::run::SCHEMA));
    }
    for name in run.files() {
        if let Err(what) = is_inside(dir, name) {
            let expected = "the name of a regular file below the run";
            return Err(Error::invalid(path.display(), format!("{name:?} {what}"), expected));
        }
    }
    if !run.complete {
        crate::run::cut_off::add_records(dir, &mut run);
    }
    Ok(run)
}

/// What keeps a name from being that of a file of a directory, where it is one of a file at all.
pub(crate) fn is_inside(dir: &Path, name: &str) -> Result<(), &'static str> {
    let name = Path::new(name);
    if !name.components().all(|part| matches!(part, Component::Normal(_))) {
        return Err("leads out of the run");
    }
    let path = dir.join(name);
    // A missing file is an error for whoever needs it.
    let Ok(there) = fs::canonicalize(&path) else { return Ok(()) };
    if !fs::canonicalize(dir).is_ok_and(|dir| there.starts_with(dir)) {
        return Err("is a link that leads out of the run");
    }
    if fs::metadata(&there).is_ok_and(|meta| !meta.is_file()) {
        return Err("is no regular file");
    }
    Ok(())
}
