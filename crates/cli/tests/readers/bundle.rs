//! Several files as one text, so that damage can fall on any of them, on their names, and on which
//! there are: `=== NAME` before each, `==> NAME TARGET` for a link.

use std::collections::HashSet;
use std::fs;
use std::io::{BufWriter, Write};
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};

const FILE: &str = "=== ";
const LINK: &str = "==> ";

/// The text of these files.
pub(crate) fn of<'a>(files: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Vec<u8> {
    let mut text = Vec::new();
    for (name, bytes) in files {
        text.extend_from_slice(format!("{FILE}{name}\n").as_bytes());
        text.extend_from_slice(bytes);
        if !bytes.ends_with(b"\n") {
            text.push(b'\n');
        }
    }
    text
}

/// The same with a link.
pub(crate) fn link(name: &str, target: &str) -> Vec<u8> {
    format!("{LINK}{name} {target}\n").into_bytes()
}

/// Makes the files in an empty directory. Names that lead outside are skipped: they belong to this
/// harness, not to a reader.
pub(crate) fn lay(bundle: &[u8], dir: &Path) {
    let mut file: Option<BufWriter<fs::File>> = None;
    let mut made = HashSet::new();
    // Dropped, it would keep an error to itself.
    let end = |file: Option<BufWriter<fs::File>>| file.map(|mut file| file.flush().unwrap());
    for line in bundle.split_inclusive(|byte| *byte == b'\n') {
        let text = String::from_utf8_lossy(line);
        let text = text.trim_end_matches('\n');
        if let Some(name) = text.strip_prefix(FILE) {
            end(file.take());
            let new = place(dir, name, &mut made).and_then(|path| fs::File::create_new(path).ok());
            file = new.map(BufWriter::new);
        } else if let Some((name, target)) = text.strip_prefix(LINK).and_then(|rest| rest.split_once(' ')) {
            end(file.take());
            if let Some(path) = place(dir, name, &mut made) {
                let _ = symlink(target, path);
            }
        } else if let Some(file) = &mut file {
            file.write_all(line).unwrap();
        }
    }
    end(file);
}

/// Where a file of this name goes. `made`: directories that are there; what is one stays one.
fn place(dir: &Path, name: &str, made: &mut HashSet<PathBuf>) -> Option<PathBuf> {
    let name = Path::new(name);
    let plain = name.components().all(|part| matches!(part, Component::Normal(_)));
    if !plain || name.components().count() > 12 || name.as_os_str().len() > 300 {
        return None;
    }
    let path = dir.join(name);
    let above = path.parent()?;
    if made.contains(above) {
        return Some(path);
    }
    // Not through a link that this bundle has made.
    let is_link = |path: &Path| fs::symlink_metadata(path).is_ok_and(|meta| meta.is_symlink());
    if above.ancestors().take_while(|above| *above != dir).any(is_link) {
        return None;
    }
    fs::create_dir_all(above).ok()?;
    made.insert(above.to_owned());
    Some(path)
}

/// Empties a directory.
pub(crate) fn clear(dir: &Path) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let is_directory = fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_dir());
        let gone = if is_directory { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        gone.unwrap();
    }
}
