//! What may be acted upon: files that nobody but their owner, root or who calls, can have written.
//!
//! A journal says what to write where, and root does so. Its checksums guard against accidents, not
//! against people: whoever can write a file can compute them. So the directory and the file are
//! opened without following links of others, and their owners and modes are looked at by what is
//! open, not by name.

use model::place::open_directory;
use rustix::fs::{FileType, Mode, OFlags, Stat, fchmod, fstat, mkdirat, openat};
use rustix::io::Errno;
use rustix::process::geteuid;
use std::fs::{DirBuilder, File};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use sys::Error;

/// That others may write. The group of an ordinary user is often his alone.
const OTHERS_WRITE: u32 = 0o002;
/// The same, where the owner is root.
const GROUP_WRITES: u32 = 0o020;

/// Makes a state directory that everybody may read, whatever the umask, and those above it.
pub fn make_state(state: &Path) -> Result<(), Error> {
    let made = DirBuilder::new().recursive(true).mode(0o755).create(state);
    made.map_err(|source| Error::os("create", state.display(), source))
}

/// Opens a directory in a state directory that is its owner's alone, whatever the umask; makes it
/// where it is not there.
pub fn make_directory(state: &Path, name: &str) -> Result<OwnedFd, Error> {
    make_state(state)?;
    let path = state.join(name);
    let failed = |source: std::io::Error| Error::os("create", path.display(), source);
    let above = open(state)?.ok_or_else(|| failed(Errno::NOENT.into()))?;
    match mkdirat(&above, name, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(failed(error.into())),
    }
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let made = openat(&above, name, flags, Mode::empty()).map_err(|error| failed(error.into()))?;
    let stat = fstat(&made).map_err(|error| failed(error.into()))?;
    check(&stat, &path)?;
    if stat.st_uid == geteuid().as_raw() && stat.st_mode & 0o777 != 0o700 {
        // As older versions made it.
        let _ = fchmod(&made, Mode::RWXU);
    }
    Ok(made)
}

/// Opens a directory that nobody else can have put files into; `None` where there is none.
fn open(path: &Path) -> Result<Option<OwnedFd>, Error> {
    let failed = |source: std::io::Error| Error::os("open", path.display(), source);
    let directory = match open_directory(path) {
        Ok(directory) => directory,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    check(&fstat(&directory).map_err(|error| failed(error.into()))?, path)?;
    Ok(Some(directory))
}

/// Whether there is a directory of files that may be acted upon; an error where others can have put
/// some there.
pub fn is_own(directory: &Path) -> Result<bool, Error> {
    Ok(open(directory)?.is_some())
}

/// The text of such a file, of which at most this many bytes are read; `None` where there is none.
pub fn read_text(path: &Path, most: u64) -> Result<Option<String>, Error> {
    let Some(file) = open_file(path, OFlags::RDONLY)? else { return Ok(None) };
    let mut text = String::new();
    let read = file.take(most + 1).read_to_string(&mut text);
    read.map_err(|source| Error::os("read", path.display(), source))?;
    if text.len() as u64 > most {
        let expected = format!("at most {most} bytes");
        return Err(model::Error::invalid(path.display(), "it is too long", expected).into());
    }
    Ok(Some(text))
}

/// Opens a file of a directory that nobody else can have put files into; `None` where one of both
/// is not there. A new file is its owner's to write.
pub fn open_file(path: &Path, flags: OFlags) -> Result<Option<File>, Error> {
    let failed = |error: Errno| Error::os("open", path.display(), error);
    let above = path.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let Some(directory) = open(above)? else { return Ok(None) };
    let name = path.file_name().unwrap_or_default();
    // A pipe in its place would be waited for, for ever.
    let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = match openat(&directory, name, flags, Mode::from_raw_mode(0o644)) {
        Ok(file) => file,
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP) => return Err(refused(path, "it is a link")),
        Err(error) => return Err(failed(error)),
    };
    let stat = fstat(&file).map_err(failed)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(refused(path, "it is no regular file"));
    }
    if stat.st_nlink != 1 {
        return Err(refused(path, "it has another name elsewhere"));
    }
    check(&stat, path)?;
    Ok(Some(File::from(file)))
}

fn check(stat: &Stat, path: &Path) -> Result<(), Error> {
    if stat.st_uid != 0 && stat.st_uid != geteuid().as_raw() {
        return Err(refused(path, &format!("it belongs to user {}", stat.st_uid)));
    }
    // Root's own group is root.
    let group = if stat.st_uid == 0 && stat.st_gid != 0 { GROUP_WRITES } else { 0 };
    let writers = OTHERS_WRITE | group;
    if stat.st_mode & writers != 0 {
        return Err(refused(path, &format!("others may write it (mode {:o})", stat.st_mode & 0o7777)));
    }
    Ok(())
}

fn refused(path: &Path, what: &str) -> Error {
    model::Error::invalid(path.display(), what, "what nobody but root and its user can have written").into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    fn why(path: &Path) -> String {
        open_file(path, OFlags::RDONLY).unwrap_err().to_string()
    }

    #[test]
    fn what_others_can_have_written_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("journal"), "").unwrap();
        assert!(open_file(&at("journal"), OFlags::RDONLY).unwrap().is_some());
        assert!(open_file(&at("gone"), OFlags::RDONLY).unwrap().is_none());
        assert!(open_file(&at("no/journal"), OFlags::RDONLY).unwrap().is_none());
        symlink("journal", at("link")).unwrap();
        assert!(why(&at("link")).contains("it is a link"));
        rustix::fs::mkfifoat(rustix::fs::CWD, at("pipe"), Mode::RWXU).unwrap();
        assert!(why(&at("pipe")).contains("no regular file"));
        fs::hard_link(at("journal"), at("other")).unwrap();
        assert!(why(&at("journal")).contains("another name"));
        fs::remove_file(at("other")).unwrap();
        fs::set_permissions(at("journal"), fs::Permissions::from_mode(0o646)).unwrap();
        assert!(why(&at("journal")).contains("others may write it (mode 646)"));
        if geteuid().is_root() {
            chown(at("journal"), None, Some(65_534)).unwrap();
            fs::set_permissions(at("journal"), fs::Permissions::from_mode(0o664)).unwrap();
            assert!(why(&at("journal")).contains("others may write it (mode 664)"));
            chown(at("journal"), None, Some(0)).unwrap();
        }
        fs::set_permissions(at("journal"), fs::Permissions::from_mode(0o644)).unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
        assert!(why(&at("journal")).contains("mode 777"));
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        if geteuid().is_root() {
            chown(at("journal"), Some(65_534), None).unwrap();
            assert!(why(&at("journal")).contains("belongs to user 65534"));
            chown(at("journal"), Some(0), None).unwrap();
            chown(dir.path(), Some(65_534), None).unwrap();
            assert!(why(&at("journal")).contains("belongs to user 65534"));
        }
    }

    #[test]
    fn a_directory_is_its_owners_alone() {
        let state = tempfile::tempdir().unwrap();
        let mode = || fs::metadata(state.path().join("journal")).unwrap().permissions().mode() & 0o7777;
        make_directory(state.path(), "journal").unwrap();
        assert_eq!(mode(), 0o700);
        fs::set_permissions(state.path().join("journal"), fs::Permissions::from_mode(0o755)).unwrap();
        make_directory(state.path(), "journal").unwrap();
        assert_eq!(mode(), 0o700, "as older versions made it");
        fs::set_permissions(state.path().join("journal"), fs::Permissions::from_mode(0o757)).unwrap();
        assert!(make_directory(state.path(), "journal").is_err());
    }
}
