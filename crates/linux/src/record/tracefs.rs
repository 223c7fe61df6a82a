//! Where tracefs is, and how its small files are read and written.

use crate::error::Error;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// The source that stillcore's own mounts bear.
pub const OWN_SOURCE: &str = "stillcore";

/// Where tracefs is mounted, by the text of `/proc/mounts`. Mounts of other stillcore processes do not
/// count, because they end with those.
///
/// Nobody looks into a debugfs for it: its directory `tracing` mounts a tracefs as soon as anybody
/// does, and keeps it (kernel/trace/trace.c, `trace_automount`).
pub fn mounted_at(mounts: &str) -> Option<PathBuf> {
    let place = |line: &str| {
        let mut words = line.split_whitespace();
        let (source, target, kind) = (words.next()?, words.next()?, words.next()?);
        (kind == "tracefs" && source != OWN_SOURCE).then(|| PathBuf::from(unescape(target)))
    };
    mounts.lines().filter_map(place).find(|path| path.join("instances").is_dir())
}

/// `/proc/mounts` writes blanks and backslashes as octal escapes.
fn unescape(target: &str) -> String {
    [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
        .iter()
        .fold(target.to_owned(), |text, (escape, plain)| text.replace(escape, plain))
}

/// Whether the kernel knows the file system at all.
pub fn supported() -> bool {
    let types = fs::read_to_string("/proc/filesystems").unwrap_or_default();
    types.lines().any(|line| line.split_whitespace().last() == Some("tracefs"))
}

/// Reads a file of tracefs as text.
pub fn read(path: &Path) -> Result<String, Error> {
    Ok(String::from_utf8_lossy(&read_bytes(path)?).into_owned())
}

/// Reads a file of tracefs. `header_page` and `header_event` give what fits into the first read and nothing after it
/// (`kernel/trace/trace_events.c`, `show_header`), so the buffer is larger than any of them.
pub fn read_bytes(path: &Path) -> Result<Vec<u8>, Error> {
    read_in_large_steps(path).map_err(|source| Error::os("read", path.display(), source))
}

fn read_in_large_steps(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let (mut bytes, mut buffer) = (Vec::new(), vec![0u8; 64 * 1024]);
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(bytes),
            count => bytes.extend_from_slice(&buffer[..count]),
        }
    }
}

/// Writes a value in one write, as tracefs wants it.
pub fn write(path: &Path, value: &str) -> Result<(), Error> {
    let action =
        || -> std::io::Result<()> { OpenOptions::new().write(true).open(path)?.write_all(value.as_bytes()) };
    action().map_err(|source| Error::os("write", format!("{value:?} to {}", path.display()), source))
}

/// Adds to the values of a file; opening it for plain writing would clear it.
pub fn append(path: &Path, value: &str) -> Result<(), Error> {
    let action =
        || -> std::io::Result<()> { OpenOptions::new().append(true).open(path)?.write_all(value.as_bytes()) };
    action().map_err(|source| Error::os("add to", path.display(), source))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_without_instances_is_not_taken_and_a_debugfs_not_looked_into() {
        let dir = tempfile::tempdir().unwrap();
        let (empty, good) = (dir.path().join("a b"), dir.path().join("good"));
        let debugfs = dir.path().join("debug");
        fs::create_dir_all(&empty).unwrap();
        fs::create_dir_all(good.join("instances")).unwrap();
        fs::create_dir_all(debugfs.join("tracing/instances")).unwrap();
        let mounts = format!(
            "none {} debugfs rw 0 0\nnodev {} tracefs rw 0 0\nnodev {} tracefs rw 0 0\n",
            debugfs.display(),
            empty.display().to_string().replace(' ', "\\040"),
            good.display()
        );
        assert_eq!(mounted_at(&mounts), Some(good));
        fs::create_dir_all(empty.join("instances")).unwrap();
        assert_eq!(mounted_at(&mounts), Some(empty));
        assert_eq!(mounted_at(&mounts.replace("nodev", OWN_SOURCE)), None);
    }
}
