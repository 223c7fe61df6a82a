//! A machine's file tree under a root directory: `/` for this machine, any other directory for a
//! captured one.
//!
//! Absent is not an error: a kernel without a feature lacks its files (ENOENT, ENODEV, ENOTSUP…),
//! and that reads as `None`. In a captured tree no link may lead out of the tree, or the audit of
//! one machine would quietly read another. Its owner may put such a link there while it is read, so
//! each path is resolved below an open directory, not checked first and opened then.

use super::unpack;
use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt};
use model::{Cpus, Error};
use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};
use tempfile::TempDir;

/// Where a captured tree notes the modes of files that cannot be written: archives and version
/// control lose them. One line a file: octal mode, blank, path under the root.
pub(super) const MODES: &str = "stillcore-modes";

/// The largest file that is read; the largest of interest is a kernel's configuration of some 300
/// KB.
const MAX_BYTES: u64 = 16 << 20;

/// A machine's file tree.
#[derive(Debug, Clone)]
pub struct Root {
    path: PathBuf,
    /// The top directory of a captured tree.
    captured: Option<Arc<Dir>>,
    modes: BTreeMap<String, u32>,
    /// Where an archive was unpacked; removed with the last copy of the root.
    _unpacked: Option<Arc<TempDir>>,
}

impl Root {
    /// The machine that runs this program.
    pub fn live() -> Self {
        Self { path: PathBuf::from("/"), captured: None, modes: BTreeMap::new(), _unpacked: None }
    }

    /// The machine whose files are under `path`, a directory or an archive of one; `/` is this
    /// machine.
    pub fn open(path: &Path) -> Result<Self, Error> {
        if path.is_file() {
            let unpacked = unpack::unpack(path)?;
            let root = Self::open(unpacked.path())?;
            return Ok(Self { _unpacked: Some(Arc::new(unpacked)), ..root });
        }
        let path = path.canonicalize().map_err(|source| Error::io("open", path, source))?;
        if path == Path::new("/") {
            return Ok(Self::live());
        }
        if !path.is_dir() {
            return Err(Error::invalid(path.display(), "not a directory", "the root of a captured machine"));
        }
        let top = Dir::open_ambient_dir(&path, ambient_authority())
            .map_err(|source| Error::io("open", &path, source))?;
        let mut root = Self { path, captured: Some(Arc::new(top)), modes: BTreeMap::new(), _unpacked: None };
        let modes = root.text(MODES)?.unwrap_or_default();
        for (at, line) in modes.lines().enumerate() {
            let parsed = line
                .split_once(' ')
                .and_then(|(mode, file)| Some((u32::from_str_radix(mode, 8).ok()?, file)));
            let (mode, file) = parsed.ok_or_else(|| {
                let place = format!("{}:{}", root.at(MODES).display(), at + 1);
                Error::invalid(place, format!("{line:?}"), "an octal mode, a blank and a path")
            })?;
            root.modes.insert(file.to_owned(), mode);
        }
        Ok(root)
    }

    /// Whether this is the machine that runs the program, so that system calls may be asked as well
    /// as files.
    pub fn is_live(&self) -> bool {
        self.captured.is_none()
    }

    /// The real path of a file of the machine; a leading slash is the machine's root.
    pub fn at(&self, file: &str) -> PathBuf {
        self.path.join(file.trim_start_matches('/'))
    }

    /// A directory of the machine, held open: what is done below it is done there, wherever its name
    /// leads meanwhile. `None` where there is no such directory.
    pub fn folder(&self, directory: &str) -> Result<Option<Dir>, Error> {
        let result = match &self.captured {
            None => Dir::open_ambient_dir(self.at(directory), ambient_authority()),
            Some(top) => top.open_dir(below(directory)).map_err(outside),
        };
        match result {
            Ok(dir) => Ok(Some(dir)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(Error::io("open", &self.at(directory), source)),
        }
    }

    /// A file's bytes, `None` where the machine has no such file.
    pub fn bytes(&self, file: &str) -> Result<Option<Vec<u8>>, Error> {
        let result = match &self.captured {
            None => fs::File::open(self.at(file)).and_then(all),
            Some(top) => regular(top, below(file)).and_then(all),
        };
        present(result).map_err(|source| Error::io("read", &self.at(file), source))
    }

    /// A file's text without the white space around it, `None` where the machine has no such file.
    /// Bytes that are not UTF-8 (process names may hold any) are replaced.
    pub fn text(&self, file: &str) -> Result<Option<String>, Error> {
        Ok(self.bytes(file)?.map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned()))
    }

    /// As [`Root::text`], and `None` as well where this user may not read the file.
    pub fn maybe(&self, file: &str) -> Option<String> {
        self.text(file).ok().flatten()
    }

    /// As [`Root::maybe`], for a file that holds one number.
    pub fn number<T: std::str::FromStr>(&self, file: &str) -> Option<T> {
        self.maybe(file)?.parse().ok()
    }

    /// As [`Root::maybe`], for a file that holds a CPU list.
    pub fn cpus(&self, file: &str) -> Option<Cpus> {
        Cpus::parse_list(&self.maybe(file)?).ok()
    }

    /// As [`Root::maybe`], for a file that holds a CPU mask in hex.
    pub fn mask(&self, file: &str) -> Option<Cpus> {
        Cpus::parse_hex(&self.maybe(file)?).ok()
    }

    /// The names in a directory, sorted; none where there is no such directory or it may not be
    /// read.
    pub fn names(&self, directory: &str) -> Vec<String> {
        let mut names: Vec<_> = match &self.captured {
            None => {
                let entries = fs::read_dir(self.at(directory)).into_iter().flatten().flatten();
                entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
            }
            Some(top) => {
                let entries = top.read_dir(below(directory)).into_iter().flatten().flatten();
                entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
            }
        };
        names.sort_by_key(|name| {
            (name.bytes().all(|byte| byte.is_ascii_digit()).then_some(name.len()), name.clone())
        });
        names
    }

    /// Whether the machine has the file or directory.
    pub fn has(&self, file: &str) -> bool {
        match &self.captured {
            None => self.at(file).exists(),
            Some(top) => top.exists(below(file)),
        }
    }

    /// Whether it is a directory, or a link to one.
    pub fn is_directory(&self, file: &str) -> bool {
        match &self.captured {
            None => self.at(file).is_dir(),
            Some(top) => top.is_dir(below(file)),
        }
    }

    /// Whether it is a directory itself: links to directories could go round in circles.
    pub fn is_directory_itself(&self, file: &str) -> bool {
        match &self.captured {
            None => fs::symlink_metadata(self.at(file)).is_ok_and(|meta| meta.is_dir()),
            Some(top) => top.symlink_metadata(below(file)).is_ok_and(|meta| meta.is_dir()),
        }
    }

    /// The files that match a pattern, in which `*` stands for any part of one name.
    pub fn glob(&self, pattern: &str) -> Vec<String> {
        let mut found = vec![String::new()];
        for part in pattern.trim_matches('/').split('/') {
            found = found.iter().flat_map(|directory| self.matches(directory, part)).collect();
        }
        found
    }

    fn matches(&self, directory: &str, part: &str) -> Vec<String> {
        let join =
            |name: &str| if directory.is_empty() { name.to_owned() } else { format!("{directory}/{name}") };
        if part.contains('*') {
            self.names(directory).iter().filter(|name| wildcard(part, name)).map(|name| join(name)).collect()
        } else {
            Some(join(part)).filter(|file| self.has(file)).into_iter().collect()
        }
    }

    /// Whether the file's mode lets anybody write it; the kernel takes the bit away where writing
    /// cannot succeed. `None` where there is no such file.
    pub fn writable(&self, file: &str) -> Option<bool> {
        let file = file.trim_start_matches('/');
        let mode = match self.modes.get(file) {
            Some(mode) => *mode,
            None if self.is_live() => fs::metadata(self.at(file)).ok()?.permissions().mode(),
            None => return self.has(file).then_some(true),
        };
        Some(mode & 0o222 != 0)
    }
}

/// A path as it is under the top directory.
fn below(file: &str) -> &str {
    match file.trim_start_matches('/') {
        "" => ".",
        file => file,
    }
}

/// Opens a regular file of a captured tree. A pipe that somebody has put there would be waited for,
/// for ever.
fn regular(top: &Dir, file: &str) -> io::Result<fs::File> {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
    let file = top.open_with(file, &options).map_err(outside)?.into_std();
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no regular file, and the tree is a captured one"));
    }
    Ok(file)
}

/// Says it where a path leads out of the tree: the system has no word of its own for that.
fn outside(error: io::Error) -> io::Error {
    let leads_out = error.kind() == io::ErrorKind::PermissionDenied && error.raw_os_error().is_none();
    if leads_out { io::Error::other("it is a link that leads out of the tree") } else { error }
}

/// What a file holds. Kernel files have no length to go by, and most fit: one read, and one that
/// finds the end.
fn all(file: fs::File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(4096);
    file.take(MAX_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// `None` for the errors by which a kernel says that it has no such thing.
fn present<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    use rustix::io::Errno;
    const ABSENT: [Errno; 7] = [
        Errno::NOENT,
        Errno::NOTDIR,
        Errno::NODEV,
        Errno::NXIO,
        Errno::OPNOTSUPP,
        // A process that ended between the listing and the reading.
        Errno::SRCH,
        // A governor's or queue's file whose owner has no value now.
        Errno::INVAL,
    ];
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error)
            if error.raw_os_error().is_some_and(|code| ABSENT.iter().any(|e| e.raw_os_error() == code)) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Whether `name` matches `pattern`, in which `*` stands for any text.
pub fn wildcard(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((head, tail)) => name.strip_prefix(head).is_some_and(|rest| {
            (0..=rest.len()).any(|at| rest.is_char_boundary(at) && wildcard(tail, &rest[at..]))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    use std::time::{Duration, Instant};

    fn tree() -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        for (file, text) in [("proc/a", " 1 \n"), ("sys/b2/x", "0-1\n"), ("sys/b10/x", "all\n")] {
            fs::create_dir_all(dir.path().join(file).parent().unwrap()).unwrap();
            fs::write(dir.path().join(file), text).unwrap();
        }
        let root = Root::open(dir.path()).unwrap();
        (dir, root)
    }

    #[test]
    fn absent_is_none_and_present_is_trimmed() {
        let (_dir, root) = tree();
        assert_eq!(root.text("proc/a").unwrap().as_deref(), Some("1"));
        assert_eq!(root.number::<i64>("/proc/a"), Some(1));
        assert_eq!(root.text("proc/none").unwrap(), None);
        assert_eq!(root.text("proc/a/below").unwrap(), None);
        assert_eq!(root.cpus("sys/b2/x"), Some(Cpus::from_iter([0, 1])));
        assert_eq!(root.cpus("sys/b10/x"), None);
    }

    #[test]
    fn patterns_find_files_in_order() {
        let (_dir, root) = tree();
        assert_eq!(root.glob("sys/b*/x"), ["sys/b10/x", "sys/b2/x"]);
        assert_eq!(root.glob("/proc/a"), ["proc/a"]);
        assert!(root.glob("sys/*/y").is_empty());
        assert!(
            wildcard("irq/*-nvme*", "irq/27-nvme0q1") && !wildcard("ksm*", "kswapd0") && wildcard("*", "")
        );
    }

    #[test]
    fn links_out_of_a_captured_tree_are_refused() {
        let (dir, root) = tree();
        std::os::unix::fs::symlink("/proc/version", dir.path().join("proc/out")).unwrap();
        std::os::unix::fs::symlink("a", dir.path().join("proc/in")).unwrap();
        let error = root.text("proc/out").unwrap_err().to_string();
        assert!(error.ends_with("leads out of the tree"), "{error}");
        assert_eq!(root.maybe("proc/in").as_deref(), Some("1"));
        assert!(!root.has("proc/out"));
    }

    #[test]
    fn a_link_that_appears_while_the_tree_is_read_leads_nowhere() {
        // Of either, so that both were met, however the threads take turns.
        const MET: usize = 2_000;
        let (dir, root) = tree();
        let place = |name: &str| dir.path().join(name);
        let secret = tempfile::NamedTempFile::new().unwrap();
        fs::write(secret.path(), "secret").unwrap();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Relaxed) {
                    std::os::unix::fs::symlink(secret.path(), place("link")).unwrap();
                    fs::rename(place("link"), place("proc/a")).unwrap();
                    fs::write(place("file"), "1").unwrap();
                    fs::rename(place("file"), place("proc/a")).unwrap();
                }
            });
            let (mut files, mut links) = (0, 0);
            let began = Instant::now();
            let met = loop {
                match root.maybe("proc/a").as_deref() {
                    Some("1") => files += 1,
                    None => links += 1,
                    Some(other) => break Err(other.to_owned()),
                }
                if files >= MET && links >= MET || began.elapsed() > Duration::from_secs(120) {
                    break Ok((files, links));
                }
            };
            done.store(true, Relaxed);
            let (files, links) = met.expect("a link was followed");
            assert!(files > 0 && links > 0, "{files} files, {links} links");
        });
    }

    #[test]
    fn noted_modes_outlive_the_archive() {
        let (dir, _) = tree();
        fs::write(dir.path().join(MODES), "444 proc/a\n").unwrap();
        let root = Root::open(dir.path()).unwrap();
        assert_eq!(root.writable("proc/a"), Some(false));
        assert_eq!(root.writable("sys/b2/x"), Some(true));
        assert_eq!(root.writable("sys/none"), None);
        fs::write(dir.path().join(MODES), "444\n").unwrap();
        assert!(Root::open(dir.path()).unwrap_err().to_string().contains("stillcore-modes:1"));
    }

    #[test]
    fn a_file_or_nothing_is_no_root() {
        let (dir, _) = tree();
        let error = Root::open(&dir.path().join("proc/a")).unwrap_err().to_string();
        assert!(error.contains("a directory, or a tar archive"), "{error}");
        assert!(Root::open(&dir.path().join("nowhere")).is_err());
        assert!(Root::open(Path::new("/")).unwrap().is_live());
    }
}
