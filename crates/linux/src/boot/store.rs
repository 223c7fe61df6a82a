//! Files written whole or not at all, below a root that may be an image: never through a link that
//! leads out of it.

use crate::error::Error;
use crate::machine::Root;
use std::fs::{self, Metadata};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The bytes of a regular file; `None` where there is none. A link in its place is refused.
pub(crate) fn read(root: &Root, file: &str) -> Result<Option<Vec<u8>>, Error> {
    let Some((path, found)) = place(root, file)? else { return Ok(None) };
    match found {
        None => Ok(None),
        Some(_) => fs::read(&path).map(Some).map_err(|source| Error::os("read", path.display(), source)),
    }
}

/// Puts the bytes there; the mode and owner of a file that was there stay, a new one gets `mode`.
pub(crate) fn write(root: &Root, file: &str, bytes: &[u8], mode: u32) -> Result<(), Error> {
    make_folder(root, file)?;
    let Some((path, found)) = place(root, file)? else {
        return Err(model::Error::invalid(
            root.at(file).display(),
            "no directory holds it",
            "a place under the root",
        )
        .into());
    };
    let folder = path.parent().unwrap_or(Path::new("/"));
    let failed = |source| Error::os("write", path.display(), source);
    let mut new = tempfile::Builder::new().prefix(".stillcore-").tempfile_in(folder).map_err(failed)?;
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

/// Takes the file away; one that is gone is no error.
pub(crate) fn remove(root: &Root, file: &str) -> Result<(), Error> {
    let Some((path, Some(_))) = place(root, file)? else { return Ok(()) };
    fs::remove_file(&path).map_err(|source| Error::os("remove", path.display(), source))
}

fn make_folder(root: &Root, file: &str) -> Result<(), Error> {
    let folders: Vec<_> =
        Path::new(file.trim_start_matches('/')).parent().into_iter().flat_map(Path::ancestors).collect();
    for folder in folders.iter().rev().filter(|folder| !folder.as_os_str().is_empty()) {
        let path = root.at(&folder.to_string_lossy());
        if fs::symlink_metadata(&path).is_err() {
            fs::create_dir(&path).map_err(|source| Error::os("create", path.display(), source))?;
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
        Ok(_) => {
            Err(model::Error::invalid(path.display(), "it is a link or no file", "a regular file").into())
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Some((path, None))),
        Err(error) => Err(Error::os("read", path.display(), error)),
    }
}

/// The directory with its links followed, where that stays under the root.
fn inside(root: &Root, folder: &Path) -> Result<Option<PathBuf>, Error> {
    let failed = |path: &Path, source| Error::os("open", path.display(), source);
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
    Err(model::Error::invalid(
        folder.display(),
        format!("it leads to {}", real.display()),
        "a directory under the root",
    )
    .into())
}
