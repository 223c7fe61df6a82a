//! Where tracefs is, and how its small files are read and written.

use crate::error::Error;
use rustix::fs::{Mode, OFlags, statfs};
use rustix::io::Errno;
use rustix::mount::{MountFlags, mount};
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// The source that stillcore's own mounts bear.
pub const OWN_SOURCE: &str = "stillcore";

/// Where tracefs is mounted, by the text of `/proc/mounts`. Mounts of other stillcore processes do
/// not count, because they end with those.
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

/// `TRACEFS_MAGIC` of Linux `include/uapi/linux/magic.h`.
pub const TRACEFS_MAGIC: u64 = 0x7472_6163;

/// What our own mount points are called.
pub const OWN_POINT: &str = "tracefs-";

/// Mounts one of our own.
pub fn mount_at(point: &Path) -> Result<(), Error> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount(OWN_SOURCE, point, "tracefs", flags, None)
        .map_err(|error| Error::os("mount tracefs at", point.display(), error))
}

/// Where a file is that was reached through a mount of our own. That mount went with its mount
/// namespace where a container was killed; the kernel has one tracefs, so that what was made is
/// still there and is found through another mount. `None` where there is no mount to look through.
pub fn seen(path: &Path) -> Result<Option<PathBuf>, Error> {
    let Some((point, below)) = own_point(path) else { return Ok(Some(path.to_owned())) };
    if point.join("instances").is_dir() {
        return Ok(Some(path.to_owned()));
    }
    let mounts = fs::read_to_string("/proc/mounts").map_err(|e| Error::os("read", "/proc/mounts", e))?;
    Ok(mounted_at(&mounts).map(|place| place.join(below)))
}

/// The same, for what is to be undone: through our own mount, made anew, where there is no other.
/// Undoing that mount comes behind what was made through it.
pub fn reached(path: &Path) -> Result<PathBuf, Error> {
    if let Some(seen) = seen(path)? {
        return Ok(seen);
    }
    if let Some((point, _)) = own_point(path) {
        if !point.is_dir() {
            fs::create_dir(point).map_err(|source| Error::os("create", point.display(), source))?;
        }
        mount_at(point)?;
    }
    Ok(path.to_owned())
}

/// Our own mount point that a path leads through, and what is below it.
fn own_point(path: &Path) -> Option<(&Path, &Path)> {
    let is_point = |above: &&Path| {
        above.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(OWN_POINT))
    };
    let point = path.ancestors().skip(1).find(is_point)?;
    Some((point, path.strip_prefix(point).ok()?))
}

/// Whether a path leads to a file of tracefs and of no other file system, whatever it is called;
/// one that leads to none does too, as nothing can be done there.
pub fn is_of_tracefs(path: &Path) -> bool {
    let Ok(Some(seen)) = seen(path) else { return own_point(path).is_some() };
    match statfs(&seen) {
        Ok(found) => found.f_type as u64 == TRACEFS_MAGIC,
        Err(error) => matches!(error, Errno::NOENT | Errno::NOTDIR),
    }
}

/// Whether the kernel knows the file system at all.
pub fn supported() -> bool {
    let types = fs::read_to_string("/proc/filesystems").unwrap_or_default();
    types.lines().any(|line| line.split_whitespace().last() == Some("tracefs"))
}

/// Opens a file of tracefs whose reads do not wait for events.
pub fn open_without_waiting(path: &Path) -> Result<File, Error> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty());
    file.map(File::from).map_err(|error| Error::os("open", path.display(), error))
}

/// Reads a file of tracefs as text.
pub fn read(path: &Path) -> Result<String, Error> {
    Ok(String::from_utf8_lossy(&read_bytes(path)?).into_owned())
}

/// Reads a file of tracefs. `header_page` and `header_event` give what fits into the first read and
/// nothing after it (`kernel/trace/trace_events.c`, `show_header`), so the buffer is larger than
/// any of them.
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

    #[test]
    fn a_path_through_a_mount_of_our_own_is_taken_apart() {
        let own = |path| own_point(Path::new(path));
        let parts = (Path::new("/var/lib/stillcore/tracefs-7"), Path::new("instances/stillcore-7"));
        assert_eq!(own("/var/lib/stillcore/tracefs-7/instances/stillcore-7"), Some(parts));
        assert_eq!(own("/sys/kernel/tracing/instances/stillcore-7"), None);
        assert_eq!(own("/var/lib/stillcore/tracefs-7"), None, "the point itself");
        let place = Path::new("/sys/kernel/tracing/instances/x");
        assert_eq!(reached(place).unwrap(), place);
    }
}
