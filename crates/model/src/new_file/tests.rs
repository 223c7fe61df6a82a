//! What is put under a name, and through what it never goes.

use super::*;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::process::{Command, Stdio};

fn write(path: &Path, bytes: &[u8]) -> Result<u64, Error> {
    let mut file = NewFile::create(path)?;
    file.write_all(bytes).unwrap();
    file.keep()
}

#[test]
fn a_file_appears_whole_or_not_at_all() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    let mut file = NewFile::create(&path).unwrap();
    file.write_all(b"half").unwrap();
    assert!(!path.exists());
    // Whoever is killed now leaves nothing: there is no name yet, where the file system can do
    // that.
    let names = std::fs::read_dir(dir.path()).unwrap().count();
    assert_eq!(names, usize::from(!matches!(file.until, Until::Nameless)));
    drop(file);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    assert_eq!(write(&path, b"whole").unwrap(), 5);
    assert_eq!(std::fs::read(&path).unwrap(), b"whole");
    assert!(NewFile::create(&dir.path().join("no/x")).is_err());
    assert!(NewFile::create(dir.path()).is_err());
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn mode_and_owner_of_what_is_replaced_are_kept_but_nobody_gains_rights_of_its_owner() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    std::fs::write(&path, "old").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o4640)).unwrap();
    let root = rustix::process::geteuid().is_root();
    if root {
        std::os::unix::fs::chown(&path, Some(65_534), Some(65_534)).unwrap();
    }
    write(&path, b"new").unwrap();
    let meta = std::fs::metadata(&path).unwrap();
    assert_eq!(meta.mode() & 0o7777, 0o640);
    assert!(!root || (meta.uid(), meta.gid()) == (65_534, 65_534));
}

#[test]
fn our_own_links_are_followed_and_stay() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    std::fs::create_dir(at("deep")).unwrap();
    std::fs::write(at("deep/target"), "old").unwrap();
    symlink("deep", at("folder")).unwrap();
    symlink(at("folder/target"), at("link")).unwrap();
    symlink("../gone", at("deep/dangling")).unwrap();
    write(&at("link"), b"new").unwrap();
    assert!(at("link").is_symlink() && at("folder").is_symlink());
    assert_eq!(std::fs::read(at("deep/target")).unwrap(), b"new");
    write(&at("folder/dangling"), b"made").unwrap();
    assert_eq!(std::fs::read(at("gone")).unwrap(), b"made");
    symlink("loop", at("loop")).unwrap();
    assert!(write(&at("loop"), b"").is_err());
}

#[test]
fn devices_and_pipes_are_written_to_as_they_are_and_none_is_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    symlink("/dev/full", at("device")).unwrap();
    let mut full = NewFile::create(&at("device")).unwrap();
    assert_eq!(full.write_all(b"new").unwrap_err().kind(), io::ErrorKind::StorageFull);
    drop(full);
    assert!(!std::fs::metadata("/dev/full").unwrap().is_file());
    rustix::fs::mkfifoat(rustix::fs::CWD, at("pipe"), Mode::from_raw_mode(0o600)).unwrap();
    assert!(write(&at("pipe"), b"new").is_err(), "nobody reads");
    let reader = Command::new("cat").arg(at("pipe")).stdout(Stdio::piped()).spawn().unwrap();
    let mut tries = 0;
    while write(&at("pipe"), b"new").is_err() && tries < 1_000 {
        std::thread::sleep(std::time::Duration::from_millis(5));
        tries += 1;
    }
    assert_eq!(reader.wait_with_output().unwrap().stdout, b"new");
    // As the shell gives a pipe its name.
    let (reader, writer) = io::pipe().unwrap();
    let name = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&writer));
    write(Path::new(&name), b"named").unwrap();
    drop(writer);
    assert_eq!(io::read_to_string(reader).unwrap(), "named");
}

#[test]
fn a_file_without_a_name_replaces_and_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    let mut first = NewFile::create(&path).unwrap();
    let mut second = NewFile::create(&path).unwrap();
    first.write_all(b"first").unwrap();
    second.write_all(b"second").unwrap();
    // When the second was made nothing was there.
    assert_eq!(first.keep().unwrap(), 5);
    assert_eq!(second.keep().unwrap(), 6);
    assert_eq!(std::fs::read(&path).unwrap(), b"second");
    assert_eq!(std::fs::metadata(&path).unwrap().nlink(), 1);
    assert_eq!(write(&path, b"third").unwrap(), 5);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
}
