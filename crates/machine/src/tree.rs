//! Small file trees for tests of readers and probes.

use super::Root;
use std::fs;

/// A captured machine of these files; it lives as long as the directory returned with it.
pub(crate) fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
    let dir = tempfile::tempdir().unwrap();
    for (file, text) in files {
        let path = dir.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let root = Root::open(dir.path()).unwrap();
    (dir, root)
}
