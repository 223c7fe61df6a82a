//! `SHA256SUMS` of a directory, in the format that `sha256sum -c` reads. It also says which files
//! are ours to replace.

use std::fmt::Write as _;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

const FILE: &str = "SHA256SUMS";

/// SHA-256 in hexadecimal.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in Sha256::digest(bytes) {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Writes the sums of all files of a directory; returns the text.
pub(crate) fn write(folder: &Path) -> Result<String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("list {}", folder.display()))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type()?.is_file() && name != FILE {
            names.push(name);
        }
    }
    names.sort();
    let mut text = String::new();
    for name in names {
        let bytes = fs::read(folder.join(&name)).with_context(|| format!("read {name}"))?;
        let _ = writeln!(text, "{}  {name}", hexadecimal(&bytes));
    }
    fs::write(folder.join(FILE), &text).with_context(|| format!("write {FILE}"))?;
    Ok(text)
}

/// Removes the files that an earlier call has listed, and no others.
pub(crate) fn remove_listed(folder: &Path) -> Result<()> {
    let text = match fs::read_to_string(folder.join(FILE)) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error).with_context(|| format!("read {FILE}")),
    };
    let names = text.lines().filter_map(|line| line.split_once("  ")).map(|(_, name)| name);
    for name in names.filter(|name| name.starts_with("stillcore") && !name.contains('/')) {
        match fs::remove_file(folder.join(name)) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(error).with_context(|| format!("remove {name}"));
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_earlier_call_has_listed_goes_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("stillcore-1.tar.gz"), "old").unwrap();
        write(folder.path()).unwrap();
        fs::write(at("notes"), "mine").unwrap();
        remove_listed(folder.path()).unwrap();
        assert!(!at("stillcore-1.tar.gz").exists() && at("notes").exists());
        let sum = "3fd30542fe3f61b14bd4a4b2dc0b6fb30fa6f63ebce52dd1778aaa8c4dc02cff";
        assert_eq!(write(folder.path()).unwrap(), format!("{sum}  notes\n"));
    }
}
