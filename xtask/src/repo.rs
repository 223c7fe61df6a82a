//! Where the workspace is and what is in it: every file git knows or would add, and what
//! `cargo metadata` says of the packages. The rules of `tidy` are pure functions over this, so that
//! they are tested on small fake trees.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

/// The input of the rules.
#[derive(Debug, Default, Clone)]
pub(crate) struct Repo {
    /// Path from the workspace root, with `/`, to the text; `None` for a file that is not UTF-8.
    pub files: BTreeMap<String, Option<String>>,
    /// The packages of the workspace.
    pub packages: Vec<Package>,
}

/// One workspace member, as `cargo metadata` prints it.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Package {
    pub name: String,
    pub dependencies: Vec<Dependency>,
}

/// One line of a `[dependencies]` table.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Dependency {
    pub name: String,
    /// `None` for a normal dependency, else `dev` or `build`.
    pub kind: Option<String>,
}

/// The workspace root: the parent of this package.
pub(crate) fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package).to_path_buf()
}

impl Repo {
    /// Reads the whole repository at `root`.
    pub(crate) fn read(root: &Path) -> Result<Self> {
        let mut files = BTreeMap::new();
        for path in list(root)? {
            let bytes = match std::fs::read(root.join(&path)) {
                Ok(bytes) => bytes,
                // Deleted but not yet committed, or moved while we read.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error).with_context(|| format!("read {path}")),
            };
            files.insert(path, String::from_utf8(bytes).ok());
        }
        Ok(Self { files, packages: metadata(root)?.packages })
    }

    /// The text files whose path satisfies `wanted`.
    pub(crate) fn texts<'a>(
        &'a self,
        wanted: impl Fn(&str) -> bool + 'a,
    ) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.files.iter().filter_map(move |(path, text)| {
            Some((path.as_str(), text.as_deref()?)).filter(|(p, _)| wanted(p))
        })
    }

    /// The Rust sources.
    pub(crate) fn rust(&self) -> impl Iterator<Item = (&str, &str)> {
        self.texts(|path| has_extension(path, "rs"))
    }
}

/// Whether `path` ends in `.extension`.
pub(crate) fn has_extension(path: &str, extension: &str) -> bool {
    Path::new(path).extension().is_some_and(|e| e == extension)
}

/// Tracked files and those that would be added: what a commit of this tree would hold. A source
/// archive without `.git` is walked instead.
fn list(root: &Path) -> Result<Vec<String>> {
    if !root.join(".git").exists() {
        let mut found = Vec::new();
        walk(root, "", &mut found)?;
        return Ok(found);
    }
    // Submitted by another user's CI, the tree may belong to somebody else; git refuses that
    // without `safe.directory`.
    let safe = format!("safe.directory={}", root.display());
    let out = Command::new("git")
        .args(["-c", &safe, "ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .context("run git ls-files")?;
    ensure!(out.status.success(), "git ls-files: {}", String::from_utf8_lossy(&out.stderr).trim());
    let mut paths: Vec<String> = String::from_utf8(out.stdout)
        .context("git ls-files printed a path that is not UTF-8")?
        .split('\0')
        .filter(|p| !p.is_empty())
        .map(str::to_owned)
        .collect();
    paths.sort();
    paths.dedup();
    Ok(paths)
}

/// All files below `root/prefix`, without build output.
fn walk(root: &Path, prefix: &str, found: &mut Vec<String>) -> Result<()> {
    let folder = root.join(prefix);
    for entry in std::fs::read_dir(&folder).with_context(|| format!("list {}", folder.display()))? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}/{name}") };
        if entry.file_type()?.is_dir() {
            if !matches!(name.as_str(), "target" | "dist" | "runs") {
                walk(root, &path, found)?;
            }
        } else {
            found.push(path);
        }
    }
    found.sort();
    Ok(())
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    target_directory: PathBuf,
}

/// Where cargo builds.
pub(crate) fn target_dir(root: &Path) -> Result<PathBuf> {
    Ok(metadata(root)?.target_directory)
}

fn metadata(root: &Path) -> Result<Metadata> {
    let out = Command::new("cargo")
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(root)
        .output()
        .context("run cargo metadata")?;
    ensure!(out.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&out.stderr).trim());
    serde_json::from_slice(&out.stdout).context("parse cargo metadata")
}

#[cfg(test)]
impl Repo {
    /// A fake tree for the tests of the rules.
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let files = files.iter().map(|(p, t)| ((*p).to_owned(), Some((*t).to_owned()))).collect();
        Self { files, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repository_reads_itself() {
        let repo = Repo::read(&root()).unwrap();
        assert!(repo.files.contains_key("xtask/src/repo.rs"), "{:?}", repo.files.keys());
        assert!(repo.packages.iter().any(|p| p.name == "xtask"));
        assert!(!repo.files.keys().any(|p| p.starts_with("target/")));
    }

    #[test]
    fn a_tree_without_git_is_walked_without_build_output() {
        let folder = std::env::temp_dir().join(format!("xtask-walk-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("target/debug")).unwrap();
        std::fs::create_dir_all(folder.join("src")).unwrap();
        std::fs::write(folder.join("src/lib.rs"), "").unwrap();
        std::fs::write(folder.join("target/debug/x"), "").unwrap();
        let found = list(&folder);
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(found.unwrap(), ["src/lib.rs"]);
    }
}
