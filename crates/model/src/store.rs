//! The run directory: names of its files, and how JSON is written so that a reader never sees half a file.

use crate::Error;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Everything the run says about itself.
pub const RUN: &str = "run.json";
/// The machine before the run.
pub const MACHINE_BEFORE: &str = "machine-before.json";
/// The machine after the run.
pub const MACHINE_AFTER: &str = "machine-after.json";
/// The audit's findings.
pub const FINDINGS: &str = "findings.json";
/// The recorded trace.
pub const TRACE: &str = "trace.dat";
/// The directory of the samples files.
pub const SAMPLES: &str = "samples";
/// The directory of how counters grew.
pub const COUNTERS: &str = "counters";
/// The directory of what was around samples that reached a threshold.
pub const CONTEXTS: &str = "contexts";
/// Conclusions; derived, rebuildable.
pub const ANALYSIS: &str = "analysis.json";
/// The report; derived, rebuildable.
pub const REPORT: &str = "report.html";
/// Present from the first moment until the run is complete; says why a run is partial.
pub const PARTIAL: &str = "PARTIAL";

/// Path of a samples file relative to the run: `samples/<probe>-cpu<N>-<k>.parquet`, k counting the windows from 0.
pub fn samples_name(probe: &str, cpu: u32, k: usize) -> String {
    format!("{SAMPLES}/{probe}-cpu{cpu}-{k}.parquet")
}

/// Writes a value as pretty JSON through a temporary file, so that the name holds either the old or the whole new content.
pub fn write_json<T: Serialize>(path: &Path, value: &T) -> Result<(), Error> {
    let mut bytes = serde_json::to_vec_pretty(value)
        .map_err(|error| Error::invalid(path.display(), error, "a value that JSON can hold"))?;
    bytes.push(b'\n');
    write_whole(path, &bytes)
}

/// Writes bytes through a temporary file beside the target, synced before the rename. A link stays one; what is there and no regular file, a
/// device or a pipe, is written to as it is.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    if fs::metadata(path).is_ok_and(|there| !there.is_file()) {
        let write = || OpenOptions::new().write(true).open(path)?.write_all(bytes);
        return write().map_err(|source| Error::io("write", path, source));
    }
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let temporary = temporary_beside(&target);
    let write = || -> std::io::Result<()> {
        let mut file = File::create(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&temporary, &target)
    };
    write().map_err(|source| {
        let _ = fs::remove_file(&temporary);
        Error::io("write", path, source)
    })
}

fn temporary_beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".tmp");
    path.with_file_name(name)
}

/// Reads a JSON file.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, Error> {
    let bytes = fs::read(path).map_err(|source| Error::io("read", path, source))?;
    serde_json::from_slice(&bytes).map_err(|error| {
        let place = format!("{}:{}:{}", path.display(), error.line(), error.column());
        Error::invalid(place, error, "a file written by stillcore")
    })
}

/// Reads `run.json` of a run directory and checks its schema.
pub fn read_run(dir: &Path) -> Result<crate::Run, Error> {
    let path = dir.join(RUN);
    let run: crate::Run = read_json(&path)?;
    if run.schema == crate::run::SCHEMA {
        Ok(run)
    } else {
        Err(Error::invalid(path.display(), format!("schema {:?}", run.schema), crate::run::SCHEMA))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_replaced_whole_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.json");
        write_json(&path, &[1, 2]).unwrap();
        assert_eq!(read_json::<Vec<u32>>(&path).unwrap(), [1, 2]);
        assert!(write_json(&dir.path().join("no/x.json"), &1).is_err());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_link_stays_a_link_and_what_is_no_file_is_written_to() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("target"), "old").unwrap();
        std::os::unix::fs::symlink(at("target"), at("link")).unwrap();
        write_whole(&at("link"), b"new").unwrap();
        assert!(at("link").is_symlink());
        assert_eq!(fs::read(at("target")).unwrap(), b"new");
        // Nobody but root may replace these; whoever runs this must not either.
        std::os::unix::fs::symlink("/dev/full", at("device")).unwrap();
        let refused = write_whole(&at("device"), b"new").unwrap_err().to_string();
        assert!(refused.contains("No space left"), "{refused}");
        assert!(!fs::metadata("/dev/full").unwrap().is_file());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 3);
    }

    #[test]
    fn an_error_names_the_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.json");
        fs::write(&path, "[1,\n oops]").unwrap();
        let text = read_json::<Vec<u32>>(&path).unwrap_err().to_string();
        assert!(text.contains("x.json:2:"), "{text}");
    }
}
