//! The program that a unit of root's starts at each boot: only root may be able to change it.

use machine::Root;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Where people and programs keep what is theirs, or what goes with the boot.
const NOT_UNDER: [&str; 9] =
    ["/home", "/root", "/tmp", "/var/tmp", "/run", "/dev/shm", "/mnt", "/media", "/var/run"];

/// Where an image has its programs, and what the file is called.
const INSTALLED: [&str; 5] = [
    "/usr/local/sbin/stillcore",
    "/usr/local/bin/stillcore",
    "/usr/sbin/stillcore",
    "/usr/bin/stillcore",
    "/opt/stillcore/stillcore",
];

/// Why a unit of root's may not start a program: a clause.
#[derive(Debug, thiserror::Error)]
pub enum Untrusted {
    /// Nothing says where it is.
    #[error("it is no absolute path")]
    Relative,
    /// Its path lies where users keep what is theirs.
    #[error("what lies under {0} belongs to users or goes with the boot")]
    Under(&'static str),
    /// A link leads there.
    #[error("it leads to {0}")]
    LeadsTo(&'static str),
    /// A link leads out of the root.
    #[error("it leads out of {}", .0.display())]
    Outside(PathBuf),
    /// A directory, or a device.
    #[error("it is no file")]
    NoFile,
    /// It, or a directory on the way, belongs to a user.
    #[error("{} is not root's", .0.display())]
    Owner(PathBuf),
    /// It, or a directory on the way, may be changed.
    #[error("others may write {}", .0.display())]
    Writable(PathBuf),
    /// A part of its path cannot be looked at.
    #[error("{}: {source}", path.display())]
    Part {
        /// The part.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// It cannot be found.
    #[error(transparent)]
    Absent(#[from] std::io::Error),
}

/// The program as installed under `root`, if it is.
pub fn installed(root: &Root) -> Option<PathBuf> {
    INSTALLED.iter().find(|path| trusted(root, Path::new(path)).is_ok()).map(PathBuf::from)
}

/// Whether a unit of root's may start the program. On the machine that runs, it and its directories
/// must be root's; the owners of an image are set when it is installed, so there only the modes
/// count.
pub fn trusted(root: &Root, program: &Path) -> Result<(), Untrusted> {
    if !program.is_absolute() {
        return Err(Untrusted::Relative);
    }
    if let Some(place) = NOT_UNDER.iter().find(|place| program.starts_with(place)) {
        return Err(Untrusted::Under(place));
    }
    let top = root.at("").canonicalize()?;
    let real = root.at(&program.to_string_lossy()).canonicalize()?;
    let Ok(below) = real.strip_prefix(&top) else { return Err(Untrusted::Outside(top)) };
    if let Some(place) = NOT_UNDER.iter().find(|place| Path::new("/").join(below).starts_with(place)) {
        return Err(Untrusted::LeadsTo(place));
    }
    if !real.is_file() {
        return Err(Untrusted::NoFile);
    }
    for part in real.ancestors().take_while(|part| part.starts_with(&top)) {
        let shown = Path::new("/").join(part.strip_prefix(&top).unwrap_or(part));
        let found = fs::metadata(part).map_err(|source| Untrusted::Part { path: shown.clone(), source })?;
        if root.is_live() && found.uid() != 0 {
            return Err(Untrusted::Owner(shown));
        }
        // A directory of an image that is not yet installed lies where its builder keeps it.
        let by_group = found.mode() & 0o020 != 0 && found.gid() != 0;
        let counts = root.is_live() || part != top;
        if counts && (found.mode() & 0o002 != 0 || by_group) {
            return Err(Untrusted::Writable(shown));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use fixture::tree;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn what_others_may_write_is_no_program_of_root_s() {
        let (dir, root) =
            tree(&[("usr/sbin/stillcore", "x"), ("mnt/me/stillcore", "x"), ("opt/open/stillcore", "x")]);
        let mode = |file: &str, mode| {
            fs::set_permissions(dir.path().join(file), fs::Permissions::from_mode(mode)).unwrap();
        };
        for file in ["usr", "usr/sbin", "usr/sbin/stillcore", "opt", "opt/open/stillcore"] {
            mode(file, 0o755);
        }
        mode("opt/open", 0o1777);
        let check = |path: &str| trusted(&root, Path::new(path)).map_err(|error| error.to_string());
        assert_eq!(check("/usr/sbin/stillcore"), Ok(()));
        assert_eq!(installed(&root).as_deref(), Some(Path::new("/usr/sbin/stillcore")));
        assert!(check("/mnt/me/stillcore").unwrap_err().contains("/mnt"));
        assert!(check("/opt/open/stillcore").unwrap_err().contains("others may write /opt/open"));
        assert!(check("usr/sbin/stillcore").is_err() && check("/usr/sbin/none").is_err());
        assert!(check("/usr/sbin").unwrap_err().contains("no file"));
        mode("usr/sbin/stillcore", 0o757);
        assert!(check("/usr/sbin/stillcore").unwrap_err().contains("others may write"));
        // Links count by where they lead.
        symlink(dir.path().join("mnt/me/stillcore"), dir.path().join("usr/sbin/link")).unwrap();
        assert!(check("/usr/sbin/link").unwrap_err().contains("/mnt"));
        symlink("/etc/passwd", dir.path().join("usr/sbin/out")).unwrap();
        assert!(check("/usr/sbin/out").unwrap_err().contains("leads out"));
        assert_eq!(installed(&root), None);
    }

    #[test]
    fn homes_and_temporary_places_of_the_machine_that_runs_are_refused() {
        for place in NOT_UNDER {
            let path = format!("{place}/stillcore");
            let error = trusted(&Root::live(), Path::new(&path)).unwrap_err().to_string();
            assert!(error.contains("belongs to users"), "{path}: {error}");
        }
    }
}
