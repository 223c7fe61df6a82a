//! The run directory: names of its files, and how JSON is written so that a reader never sees half
//! a file.

use crate::Error;
use crate::new_file::NewFile;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// `O_NONBLOCK`.
const NONBLOCK: i32 = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();

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

/// Path of a samples file relative to the run: `samples/<probe>-cpu<N>-<k>.parquet`, k counting the
/// windows from 0.
pub fn samples_name(probe: &str, cpu: u32, k: usize) -> String {
    format!("{SAMPLES}/{probe}-cpu{cpu}-{k}.parquet")
}

/// Writes a value as pretty JSON through a temporary file, so that the name holds either the old or
/// the whole new content.
pub fn write_json<T: Serialize>(path: &Path, value: &T) -> Result<(), Error> {
    let mut bytes = serde_json::to_vec_pretty(value)
        .map_err(|error| Error::invalid(path.display(), error, "a value that JSON can hold"))?;
    bytes.push(b'\n');
    write_whole(path, &bytes)
}

/// Writes bytes to a file that appears whole ([`NewFile`]).
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let mut file = NewFile::create(path)?;
    file.write_all(bytes).map_err(|source| Error::io("write", path, source))?;
    file.keep().map(drop)
}

/// Waits until every file below a directory, and every name in it, is on the disk.
pub fn sync_tree(dir: &Path) -> Result<(), Error> {
    for entry in fs::read_dir(dir).map_err(|source| Error::io("read", dir, source))? {
        let path = entry.map_err(|source| Error::io("read", dir, source))?.path();
        let kind = fs::symlink_metadata(&path).map_err(|source| Error::io("read", &path, source))?;
        if kind.is_dir() {
            sync_tree(&path)?;
        } else if kind.is_file() {
            let synced = File::open(&path).and_then(|file| file.sync_all());
            synced.map_err(|source| Error::io("sync", &path, source))?;
        }
    }
    sync_directory(dir)
}

/// Waits until the names in a directory are on the disk, where the file system can do that.
pub fn sync_directory(dir: &Path) -> Result<(), Error> {
    let synced = File::open(dir).and_then(|open| open.sync_all());
    where_possible(synced).map_err(|source| Error::io("sync", dir, source))
}

/// Waits until the bytes of a file are on the disk, where the file system can do that.
pub(crate) fn sync_data(file: &File, path: &Path) -> Result<(), Error> {
    where_possible(file.sync_data()).map_err(|source| Error::io("sync", path, source))
}

/// Some file systems sync nothing, or no directories, and say that it makes no sense (`EINVAL`).
fn where_possible(synced: std::io::Result<()>) -> std::io::Result<()> {
    synced.or_else(|error| if error.kind() == ErrorKind::InvalidInput { Ok(()) } else { Err(error) })
}

/// The largest JSON file that is read, bytes: a day's run of 256 CPUs has some tens of MB.
const MOST_BYTES: u64 = 1 << 30;

/// Reads a JSON file: a regular one, of at most 1 GiB.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, Error> {
    let bytes = read_whole(path, MOST_BYTES)?;
    serde_json::from_slice(&bytes).map_err(|error| {
        let place = format!("{}:{}:{}", path.display(), error.line(), error.column());
        Error::invalid(place, error, "a file written by stillcore")
    })
}

/// Reads a file that may come from anybody: no device, no pipe, and no more than `most` bytes.
pub fn read_whole(path: &Path, most: u64) -> Result<Vec<u8>, Error> {
    let failed = |source| Error::io("read", path, source);
    // Opening a pipe would wait for somebody who writes.
    let mut options = OpenOptions::new();
    let file = options.read(true).custom_flags(NONBLOCK).open(path).map_err(failed)?;
    let meta = file.metadata().map_err(failed)?;
    if !meta.is_file() {
        return Err(Error::invalid(path.display(), "it is no regular file", "a regular file"));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(meta.len().min(most)).unwrap_or(0));
    file.take(most + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > most {
        return Err(Error::invalid(path.display(), format!("it has more than {most} bytes"), "fewer"));
    }
    Ok(bytes)
}
#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::stored::read_run;

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
    fn an_error_names_the_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.json");
        fs::write(&path, "[1,\n oops]").unwrap();
        let text = read_json::<Vec<u32>>(&path).unwrap_err().to_string();
        assert!(text.contains("x.json:2:"), "{text}");
    }

    /// A run directory whose run.json names a file as its snapshot.
    fn run_naming(name: &str) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/runs/small/run.json");
        let mut run: serde_json::Value = read_json(&from).unwrap();
        run["machine_before"] = name.into();
        write_json(&dir.path().join(RUN), &run).unwrap();
        dir
    }

    #[test]
    fn a_run_names_files_of_its_own_alone() {
        assert!(read_run(run_naming("machine-before.json").path()).is_ok());
        for name in ["/dev/zero", "../machine.json", "a/../../b", "/etc/shadow"] {
            let why = read_run(run_naming(name).path()).unwrap_err().to_string();
            assert!(why.contains("leads out of the run"), "{name}: {why}");
        }
        let dir = run_naming("link");
        std::os::unix::fs::symlink("/dev/zero", dir.path().join("link")).unwrap();
        assert!(read_run(dir.path()).unwrap_err().to_string().contains("leads out"));
        let dir = run_naming("pipe");
        let pipe = dir.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
        assert!(read_run(dir.path()).unwrap_err().to_string().contains("no regular file"));
        assert!(read_json::<u32>(&pipe).is_err() && read_json::<u32>(Path::new("/dev/zero")).is_err());
        std::fs::write(dir.path().join("large"), "1234").unwrap();
        assert!(read_whole(&dir.path().join("large"), 3).is_err());
    }
}
