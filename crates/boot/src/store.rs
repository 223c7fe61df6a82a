//! Files written whole or not at all, below a root that may be an image: never through a link that
//! leads out of it, nor one that its owner puts there meanwhile. Each is reached by its directory,
//! held open.

use cap_std::fs::{Dir, File, Metadata, MetadataExt, OpenOptions, OpenOptionsExt};
use machine::Root;
use model::Error;
use rustix::fs::{FlockOperation, flock};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::Permissions;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// What files are called until they are whole: this, and so many letters and digits.
const PREFIX: &str = ".stillcore-persist-";
const RANDOM: usize = 16;

/// The largest file that is read, in bytes: those of boot loaders and units have some thousands.
const MOST: u64 = 16 << 20;

/// A name in a directory.
struct Place {
    folder: Dir,
    name: OsString,
    /// For messages.
    path: PathBuf,
}

/// The bytes of a regular file; `None` where there is none. A link in its place is refused.
pub fn read(root: &Root, file: &str) -> Result<Option<Vec<u8>>, Error> {
    let Some((place, Some(found))) = regular(root, file)? else { return Ok(None) };
    if found.len() > MOST {
        let found = format!("it has {} bytes", found.len());
        return Err(Error::invalid(place.path.display(), found, format!("at most {MOST}")));
    }
    let mut bytes = Vec::new();
    let read = place.open().and_then(|mut file| file.read_to_end(&mut bytes));
    read.map(|_| Some(bytes)).map_err(|source| place.failed("read", source))
}

/// Puts the bytes there; the mode and owner of a file that was there stay, a new one gets `mode`.
pub fn write(root: &Root, file: &str, bytes: &[u8], mode: u32) -> Result<(), Error> {
    make_folders(root, file)?;
    let (place, found) = regular(root, file)?.ok_or_else(|| homeless(root, file))?;
    let temporary = temporary();
    let written = place.fill(&temporary, bytes, mode, found.as_ref());
    if written.is_err() {
        let _ = place.folder.remove_file(&temporary);
    }
    written.map_err(|source| place.failed("write", source))
}

/// Puts a link there, in the place of what it was.
pub fn link(root: &Root, file: &str, to: &str) -> Result<(), Error> {
    make_folders(root, file)?;
    let place = Place::find(root, file)?.ok_or_else(|| homeless(root, file))?;
    let _ = place.folder.remove_file(&place.name);
    place.folder.symlink_contents(to, &place.name).map_err(|source| place.failed("link", source))
}

/// Where a link leads, as it says it; `None` where there is no link.
pub fn link_target(root: &Root, file: &str) -> Option<PathBuf> {
    let place = Place::find(root, file).ok()??;
    place.folder.read_link_contents(&place.name).ok()
}

/// Takes what calls that were killed in the middle of a write have left beside these files; gives
/// what that was. A file is ours by its name, as long as it is regular, the caller's own, has no
/// second name, and nobody is writing it.
pub fn sweep<'f>(root: &Root, files: impl IntoIterator<Item = &'f str>) -> Vec<String> {
    let folders: BTreeSet<&str> = files.into_iter().map(|file| split(file).0).collect();
    let mut swept = Vec::new();
    for folder in folders {
        let Ok(Some(dir)) = root.folder(folder) else { continue };
        let names = dir.entries().into_iter().flatten().flatten().map(|entry| entry.file_name());
        for name in names.filter(|name| name.to_str().is_some_and(is_temporary)) {
            if is_left(&dir, &name) && dir.remove_file(&name).is_ok() {
                swept.push(format!("/{folder}/{}", name.to_string_lossy()));
            }
        }
    }
    swept
}

/// Takes the file or link away; one that is gone is no error.
pub fn remove(root: &Root, file: &str) -> Result<(), Error> {
    let Some(place) = Place::find(root, file)? else { return Ok(()) };
    match place.folder.remove_file(&place.name) {
        Err(source) if source.kind() != ErrorKind::NotFound => Err(place.failed("remove", source)),
        _ => Ok(()),
    }
}

/// The directories on the way to a file that are not there, the outermost first.
pub(crate) fn missing_folders(root: &Root, file: &str) -> Vec<String> {
    let missing = |folder: &&str| match Place::find(root, folder) {
        Ok(place) => place.is_none_or(|place| place.look().is_err()),
        Err(_) => false,
    };
    folders_above(file).filter(missing).map(str::to_owned).collect()
}

/// Takes directories away that were made, the innermost first; only empty ones go.
pub fn remove_folders<'f>(root: &Root, made: impl DoubleEndedIterator<Item = &'f str>) {
    for folder in made.rev() {
        if let Ok(Some(place)) = Place::find(root, folder) {
            let _ = place.folder.remove_dir(&place.name);
        }
    }
}

fn make_folders(root: &Root, file: &str) -> Result<(), Error> {
    for folder in folders_above(file) {
        let place = Place::find(root, folder)?.ok_or_else(|| homeless(root, folder))?;
        match place.folder.create_dir(&place.name) {
            Err(source) if source.kind() != ErrorKind::AlreadyExists => {
                return Err(place.failed("create", source));
            }
            _ => {}
        }
    }
    Ok(())
}

/// A regular file, or where one could be; `None` where not even its directory is.
fn regular(root: &Root, file: &str) -> Result<Option<(Place, Option<Metadata>)>, Error> {
    let Some(place) = Place::find(root, file)? else { return Ok(None) };
    match place.look() {
        Ok(found) if found.is_file() => Ok(Some((place, Some(found)))),
        Ok(_) => Err(Error::invalid(place.path.display(), "it is a link or no file", "a regular file")),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Some((place, None))),
        Err(error) => Err(place.failed("read", error)),
    }
}

fn homeless(root: &Root, file: &str) -> Error {
    Error::invalid(root.at(file).display(), "no directory holds it", "a place under the root")
}

/// The directory and the name.
fn split(file: &str) -> (&str, &str) {
    let file = file.trim_start_matches('/');
    file.rsplit_once('/').unwrap_or(("", file))
}

/// The directories on the way to a file, the outermost first.
fn folders_above(file: &str) -> impl Iterator<Item = &str> {
    let file = file.trim_start_matches('/');
    file.match_indices('/').map(|(at, _)| &file[..at])
}

fn temporary() -> String {
    format!("{PREFIX}{:0RANDOM$x}", RandomState::new().hash_one(PREFIX))
}

fn is_temporary(name: &str) -> bool {
    let random = name.strip_prefix(PREFIX);
    random.is_some_and(|random| {
        random.len() == RANDOM && random.bytes().all(|byte| byte.is_ascii_alphanumeric())
    })
}

fn is_left(folder: &Dir, name: &OsString) -> bool {
    let own = |found: &Metadata| {
        found.is_file() && found.nlink() == 1 && found.uid() == rustix::process::geteuid().as_raw()
    };
    folder.symlink_metadata(name).is_ok_and(|found| own(&found))
        && open(folder, name).is_ok_and(|file| flock(file, FlockOperation::NonBlockingLockExclusive).is_ok())
}

/// A link is never followed, nor a pipe waited for.
fn open(folder: &Dir, name: &OsString) -> io::Result<File> {
    let mut options = OpenOptions::new();
    folder.open_with(name, options.read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK))
}

impl Place {
    /// `None` where there is no such directory.
    fn find(root: &Root, file: &str) -> Result<Option<Self>, Error> {
        let (folder, name) = split(file);
        let found = root.folder(folder)?;
        Ok(found.map(|folder| Self { folder, name: name.into(), path: root.at(file) }))
    }

    fn look(&self) -> io::Result<Metadata> {
        self.folder.symlink_metadata(&self.name)
    }

    fn open(&self) -> io::Result<File> {
        open(&self.folder, &self.name)
    }

    fn failed(&self, action: &'static str, source: io::Error) -> Error {
        Error::io(action, &self.path, source)
    }

    /// Writes a file of this name beside it and renames it.
    fn fill(&self, temporary: &str, bytes: &[u8], mode: u32, old: Option<&Metadata>) -> io::Result<()> {
        let mut options = OpenOptions::new();
        let mut new = self.folder.open_with(temporary, options.write(true).create_new(true).mode(0o600))?;
        // Whoever sweeps leaves it alone as long as it is being written.
        let _ = flock(&new, FlockOperation::NonBlockingLockExclusive);
        new.write_all(bytes)?;
        let new = new.into_std();
        let mode = old.map_or(mode, |old| old.mode() & 0o7777);
        // A FAT file system has neither modes nor owners; there is nothing to keep then.
        let _ = new.set_permissions(Permissions::from_mode(mode));
        if let Some(old) = old {
            let _ = std::os::unix::fs::fchown(&new, Some(old.uid()), Some(old.gid()));
        }
        new.sync_all()?;
        self.folder.rename(temporary, &self.folder, &self.name)?;
        self.folder.open(Path::new("."))?.sync_all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fixture::tree;
    use std::fs;
    use std::os::unix::fs::symlink;

    /// As a call leaves it that is killed between the file's making and its rename.
    #[test]
    fn what_a_killed_call_has_left_goes_and_nothing_else() {
        let left = format!("etc/default/{PREFIX}aZ09aZ09aZ09aZ09");
        let theirs = [
            "etc/default/grub",
            "etc/default/.stillcore-notes",
            "etc/default/.stillcore-persist-notes",
            "etc/default/.stillcore-persist-aZ09aZ09aZ09aZ0-",
            "etc/default/.stillcore-persist-aZ09aZ09aZ09aZ0901",
            "etc/other/.stillcore-persist-aZ09aZ09aZ09aZ09",
        ];
        let files: Vec<_> = theirs.iter().copied().chain([left.as_str()]).map(|file| (file, "x")).collect();
        let (dir, root) = tree(&files);
        let link = dir.path().join(format!("etc/default/{PREFIX}link000000000000"));
        symlink("grub", &link).unwrap();
        let twice = dir.path().join(format!("etc/default/{PREFIX}twice00000000000"));
        fs::hard_link(dir.path().join("etc/default/grub"), &twice).unwrap();
        // One that is being written is its writer's.
        let busy = format!("etc/default/{PREFIX}busy000000000000");
        fs::write(dir.path().join(&busy), "x").unwrap();
        let writer = fs::File::open(dir.path().join(&busy)).unwrap();
        flock(&writer, FlockOperation::NonBlockingLockExclusive).unwrap();
        assert_eq!(sweep(&root, ["etc/default/grub"]), [format!("/{left}")]);
        assert!(theirs.iter().all(|file| root.has(file)) && root.has(&busy) && !root.has(&left));
        assert!(fs::symlink_metadata(link).is_ok() && twice.exists());
        drop(writer);
        assert_eq!(sweep(&root, ["/etc/default/grub", "no/such/place"]), [format!("/{busy}")]);
    }

    #[test]
    fn a_file_that_fills_the_memory_is_refused() {
        let (dir, root) = tree(&[("etc/x", "")]);
        fs::File::options().write(true).open(dir.path().join("etc/x")).unwrap().set_len(1 << 40).unwrap();
        let error = read(&root, "etc/x").unwrap_err().to_string();
        assert!(error.contains("at most 16777216"), "{error}");
    }

    #[test]
    fn what_is_written_is_named_so_until_it_is_whole() {
        let (_dir, root) = tree(&[("etc/x", "old")]);
        assert!(is_temporary(&temporary()) && temporary() != temporary());
        write(&root, "etc/x", b"new", 0o644).unwrap();
        assert_eq!(root.maybe("etc/x").as_deref(), Some("new"));
        assert_eq!(sweep(&root, ["etc/x"]), Vec::<String>::new());
    }
}
