//! What a machine sends back is untrusted. Only the results of cells are kept and, below `runs`,
//! plain files of the kinds that a run has. All else is removed before anything of it is read.

use model::Error;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;

/// How the names of files of a run end; the mark of a partial one has no ending.
const KINDS: [&str; 9] = ["json", "jsonl", "parquet", "dat", "html", "csv", "txt", "toml", "svg"];
const MARK: &str = model::store::PARTIAL;
/// How deep the files of a run lie below the directory of its cell, at most.
const DEPTH: usize = 4;

/// Removes what is neither `cells/ID.json` nor a file of `runs/ID`; returns how much that was.
pub(super) fn sift(results: &Path) -> Result<usize, Error> {
    let mut removed = 0;
    for (name, path) in entries(results)? {
        let kept = match name.as_str() {
            "cells" if is_directory(&path) => keep_only(&path, &|name, path| {
                is_plain(path) && name.strip_suffix(".json").is_some_and(is_id)
            }),
            "runs" if is_directory(&path) => runs(&path),
            _ => remove(&path),
        };
        removed += kept?;
    }
    Ok(removed)
}

fn runs(path: &Path) -> Result<usize, Error> {
    let mut removed = 0;
    for (name, run) in entries(path)? {
        removed += if is_id(&name) && is_directory(&run) { tree(&run, DEPTH)? } else { remove(&run)? };
    }
    Ok(removed)
}

fn tree(path: &Path, depth: usize) -> Result<usize, Error> {
    let mut removed = 0;
    for (name, path) in entries(path)? {
        let kind = Path::new(&name).extension().and_then(OsStr::to_str);
        removed += if is_directory(&path) && depth > 1 {
            tree(&path, depth - 1)?
        } else if is_plain(&path) && (name == MARK || kind.is_some_and(|kind| KINDS.contains(&kind))) {
            0
        } else {
            remove(&path)?
        };
    }
    Ok(removed)
}

fn keep_only(path: &Path, wanted: &dyn Fn(&str, &Path) -> bool) -> Result<usize, Error> {
    let unwanted = entries(path)?.into_iter().filter(|(name, path)| !wanted(name, path));
    unwanted.map(|(_, path)| remove(&path)).sum()
}

/// The id of a cell is the digest of what it is.
fn is_id(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn is_directory(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir())
}

fn is_plain(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file())
}

/// Names and paths; those that are no text have no place here and are removed at once.
fn entries(directory: &Path) -> Result<Vec<(String, std::path::PathBuf)>, Error> {
    let failed = |source| Error::io("read", directory, source);
    let mut all = Vec::new();
    let found = match fs::read_dir(directory) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(all),
        found => found.map_err(failed)?,
    };
    for entry in found {
        let path = entry.map_err(failed)?.path();
        match path.file_name().and_then(OsStr::to_str) {
            Some(name) => all.push((name.to_owned(), path)),
            None => _ = remove(&path)?,
        }
    }
    Ok(all)
}

fn remove(path: &Path) -> Result<usize, Error> {
    let gone = if is_directory(path) { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    gone.map(|()| 1).map_err(|source| Error::io("remove", path, source))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn nothing_but_results_and_files_of_runs_is_left() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        for dir in ["cells", "runs/ab12/samples", "runs/evil", "runs/ab12/a/b/c/d", "more"] {
            fs::create_dir_all(at(dir)).unwrap();
        }
        let good =
            ["cells/ab12.json", "runs/ab12/run.json", "runs/ab12/PARTIAL", "runs/ab12/samples/w.parquet"];
        let bad =
            ["cells/x.json", "cells/ab12.sh", "runs/evil/run.json", "runs/ab12/after.sh", "more/x.json"];
        for name in good.iter().chain(&bad) {
            fs::write(at(name), "x").unwrap();
        }
        symlink("/etc/shadow", at("cells/ff.json")).unwrap();
        symlink("/etc", at("runs/ff")).unwrap();
        symlink("/etc/shadow", at("runs/ab12/machine-before.json")).unwrap();
        fs::write(at("runs/ab12/a/b/c/d/deep.json"), "x").unwrap();
        assert_eq!(sift(place.path()).unwrap(), 9);
        assert!(good.iter().all(|name| at(name).is_file()));
        for name in bad.iter().copied().chain(["cells/ff.json", "runs/ff", "runs/ab12/machine-before.json"]) {
            assert!(fs::symlink_metadata(at(name)).is_err(), "{name}");
        }
        assert!(Path::new("/etc/passwd").exists());
        assert_eq!(sift(&at("gone")).unwrap(), 0);
    }

    /// Names and kinds by chance: whatever comes back, nothing is left but what its place may hold,
    /// and nothing outside of it is touched.
    #[test]
    fn whatever_comes_back_is_sifted() {
        const NAMES: [&str; 16] = [
            "cells",
            "runs",
            "ab12",
            "ff",
            "zz",
            "0",
            "run.json",
            "a.json",
            "ab12.json",
            ".json",
            "PARTIAL",
            "x.sh",
            "stillcore",
            "samples",
            "w.parquet",
            "undo-due",
        ];
        let mut state = 24u64;
        let mut below = |end: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % end
        };
        for _ in 0..60 {
            let place = tempfile::tempdir().unwrap();
            let outside = place.path().join("outside");
            fs::create_dir(&outside).unwrap();
            fs::write(outside.join("a.json"), "precious").unwrap();
            let results = place.path().join("results");
            fs::create_dir(&results).unwrap();
            for _ in 0..below(24) {
                let depth = 1 + below(6);
                let path = (0..depth).fold(results.clone(), |path, _| path.join(NAMES[below(NAMES.len())]));
                let above = path.parent().unwrap();
                let through = above.ancestors().any(Path::is_symlink);
                if through || fs::create_dir_all(above).is_err() {
                    continue;
                }
                let _ = match below(5) {
                    0 => symlink(&outside, &path),
                    1 => symlink("../../outside/a.json", &path),
                    2 => fs::create_dir(&path),
                    _ => fs::write(&path, "x"),
                };
            }
            sift(&results).unwrap();
            assert_eq!(fs::read_to_string(outside.join("a.json")).unwrap(), "precious");
            let mut folders = vec![results.clone()];
            while let Some(folder) = folders.pop() {
                for (name, path) in entries(&folder).unwrap() {
                    let parts: Vec<_> = path.strip_prefix(&results).unwrap().iter().collect();
                    assert!(!path.is_symlink() && parts.len() <= 2 + DEPTH, "{}", path.display());
                    assert!(parts[0] == "cells" || parts[0] == "runs", "{}", path.display());
                    if is_directory(&path) {
                        folders.push(path);
                    } else {
                        assert!(!["x.sh", "stillcore", "undo-due"].contains(&name.as_str()), "{name}");
                    }
                }
            }
        }
    }
}
