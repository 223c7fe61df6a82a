//! Files written whole or not at all, below a root that may be an image: never through a link that
//! leads out of it.

use machine::Root;
use model::Error;
use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use std::collections::BTreeSet;
use std::fs::{self, Metadata};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// What files are called until they are whole: this, and so many letters and digits.
const PREFIX: &str = ".stillcore-persist-";
const RANDOM: usize = 16;

/// The bytes of a regular file; `None` where there is none. A link in its place is refused.
pub(crate) fn read(root: &Root, file: &str) -> Result<Option<Vec<u8>>, Error> {
    let Some((path, found)) = place(root, file)? else { return Ok(None) };
    match found {
        None => Ok(None),
        Some(_) => fs::read(&path).map(Some).map_err(|source| Error::io("read", &path, source)),
    }
}

/// Puts the bytes there; the mode and owner of a file that was there stay, a new one gets `mode`.
pub fn write(root: &Root, file: &str, bytes: &[u8], mode: u32) -> Result<(), Error> {
    make_folder(root, file)?;
    let Some((path, found)) = place(root, file)? else {
        return Err(Error::invalid(
            root.at(file).display(),
            "no directory holds it",
            "a place under the root",
        ));
    };
    let folder = path.parent().unwrap_or(Path::new("/"));
    let failed = |source| Error::io("write", &path, source);
    let mut new = tempfile::Builder::new();
    let mut new = new.prefix(PREFIX).rand_bytes(RANDOM).tempfile_in(folder).map_err(failed)?;
    // Whoever sweeps leaves it alone as long as it is being written.
    let _ = flock(&new, FlockOperation::NonBlockingLockExclusive);
    new.write_all(bytes).map_err(failed)?;
    let mode = found.as_ref().map_or(mode, |old| old.mode() & 0o7777);
    // A FAT file system has neither modes nor owners; there is nothing to keep then.
    let _ = new.as_file().set_permissions(fs::Permissions::from_mode(mode));
    if let Some(old) = found {
        let _ = std::os::unix::fs::fchown(new.as_file(), Some(old.uid()), Some(old.gid()));
    }
    new.as_file().sync_all().map_err(failed)?;
    new.persist(&path).map_err(|error| failed(error.error))?;
    fs::File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed)
}

/// Takes away what calls that were killed in the middle of a write have left beside these files;
/// gives what that was. A file is ours by its name, as long as it is regular, the caller's own, has
/// no second name, and nobody is writing it.
pub fn sweep<'f>(root: &Root, files: impl IntoIterator<Item = &'f str>) -> Vec<String> {
    let folder =
        |file: &'f str| file.trim_start_matches('/').rsplit_once('/').map_or("", |(folder, _)| folder);
    let folders: BTreeSet<&str> = files.into_iter().map(folder).collect();
    let mut swept = Vec::new();
    for folder in folders {
        let Ok(Some(real)) = inside(root, &root.at(folder)) else { continue };
        for entry in fs::read_dir(&real).into_iter().flatten().flatten() {
            let name = entry.file_name();
            if name.to_str().is_some_and(is_temporary) && is_left(&entry.path()) {
                let removed = fs::remove_file(entry.path()).is_ok();
                swept.extend(removed.then(|| format!("/{folder}/{}", name.to_string_lossy())));
            }
        }
    }
    swept
}

fn is_temporary(name: &str) -> bool {
    let random = name.strip_prefix(PREFIX);
    random.is_some_and(|random| {
        random.len() == RANDOM && random.bytes().all(|byte| byte.is_ascii_alphanumeric())
    })
}

fn is_left(path: &Path) -> bool {
    let own = |found: &Metadata| {
        found.is_file() && found.nlink() == 1 && found.uid() == rustix::process::geteuid().as_raw()
    };
    // A link is never followed, nor a pipe waited for.
    if !fs::symlink_metadata(path).is_ok_and(|found| own(&found)) {
        return false;
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty());
    file.is_ok_and(|file| flock(file, FlockOperation::NonBlockingLockExclusive).is_ok())
}

/// Takes the file away; one that is gone is no error.
pub(crate) fn remove(root: &Root, file: &str) -> Result<(), Error> {
    let Some((path, Some(_))) = place(root, file)? else { return Ok(()) };
    fs::remove_file(&path).map_err(|source| Error::io("remove", &path, source))
}

/// The directories on the way to a file that are not there, the outermost first.
pub(crate) fn missing_folders(root: &Root, file: &str) -> Vec<String> {
    let folders = Path::new(file.trim_start_matches('/')).ancestors().skip(1);
    let folders = folders.filter(|folder| !folder.as_os_str().is_empty());
    let missing =
        folders.take_while(|folder| fs::symlink_metadata(root.at(&folder.to_string_lossy())).is_err());
    let mut missing: Vec<_> = missing.map(|folder| folder.display().to_string()).collect();
    missing.reverse();
    missing
}

/// Takes directories away that were made, the innermost first; only empty ones go.
pub fn remove_folders<'f>(root: &Root, made: impl DoubleEndedIterator<Item = &'f str>) {
    for folder in made.rev() {
        if let Ok(Some(real)) = inside(root, &root.at(folder)) {
            let _ = fs::remove_dir(real);
        }
    }
}

fn make_folder(root: &Root, file: &str) -> Result<(), Error> {
    let folders: Vec<_> =
        Path::new(file.trim_start_matches('/')).parent().into_iter().flat_map(Path::ancestors).collect();
    for folder in folders.iter().rev().filter(|folder| !folder.as_os_str().is_empty()) {
        let path = root.at(&folder.to_string_lossy());
        if fs::symlink_metadata(&path).is_err() {
            fs::create_dir(&path).map_err(|source| Error::io("create", &path, source))?;
        }
        inside(root, &path)?;
    }
    Ok(())
}

/// The real path, and what is there; `None` where not even its directory is.
fn place(root: &Root, file: &str) -> Result<Option<(PathBuf, Option<Metadata>)>, Error> {
    let path = root.at(file);
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return Ok(None) };
    let Some(folder) = inside(root, folder)? else { return Ok(None) };
    let path = folder.join(name);
    match fs::symlink_metadata(&path) {
        Ok(found) if found.is_file() => Ok(Some((path, Some(found)))),
        Ok(_) => Err(Error::invalid(path.display(), "it is a link or no file", "a regular file")),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Some((path, None))),
        Err(error) => Err(Error::io("read", &path, error)),
    }
}

/// The directory with its links followed, where that stays under the root.
fn inside(root: &Root, folder: &Path) -> Result<Option<PathBuf>, Error> {
    let failed = |path: &Path, source| Error::io("open", path, source);
    let real = match folder.canonicalize() {
        Ok(real) => real,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(folder, error)),
    };
    let top = root.at("");
    let top = top.canonicalize().map_err(|error| failed(&top, error))?;
    if real.starts_with(&top) {
        return Ok(Some(real));
    }
    Err(Error::invalid(
        folder.display(),
        format!("it leads to {}", real.display()),
        "a directory under the root",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fixture::tree;
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
    fn what_is_written_is_named_so_until_it_is_whole() {
        let (dir, root) = tree(&[("etc/x", "old")]);
        let mut new = tempfile::Builder::new();
        let new = new.prefix(PREFIX).rand_bytes(RANDOM).tempfile_in(dir.path()).unwrap();
        assert!(is_temporary(new.path().file_name().unwrap().to_str().unwrap()));
        write(&root, "etc/x", b"new", 0o644).unwrap();
        assert_eq!(root.maybe("etc/x").as_deref(), Some("new"));
        assert_eq!(sweep(&root, ["etc/x"]), Vec::<String>::new());
    }
}
