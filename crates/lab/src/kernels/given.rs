//! A kernel image given by path, its release, and the modules that belong to it.
//!
//! The release of an x86 image stands in its setup header: the 16-bit field at 0x20e plus 0x200 is
//! the offset of a string (Documentation/arch/x86/boot.rst, `kernel_version`). Other images only
//! have their file name.

use super::names::KernelName;
use super::store::Kernel;
use crate::error::{Error, IoContext, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// Opens a kernel image; `root` is where to find the machine's own `lib/modules` (`/`).
pub fn given(path: &Path, root: &Path) -> Result<Kernel> {
    if !path.exists() {
        return Err(Error::UnknownKernel { name: path.display().to_string(), known: KernelName::known() });
    }
    let bytes = fs::read(path).context("read", path)?;
    let release = release_in_header(&bytes).or_else(|| release_in_name(path)).unwrap_or_default();
    let modules = candidates(path, root, &release).into_iter().find(|dir| dir.join("kernel").is_dir());
    Ok(Kernel { release, image: path.into(), modules, stored: None })
}

fn release_in_header(bytes: &[u8]) -> Option<String> {
    (bytes.get(0x202..0x206)? == b"HdrS").then_some(())?;
    let field = bytes.get(0x20e..0x210)?;
    let start = usize::from(u16::from_le_bytes([field[0], field[1]])) + 0x200;
    let text = bytes.get(start..)?.split(|byte| *byte == 0 || *byte == b' ').next()?;
    std::str::from_utf8(text)
        .ok()
        .filter(|text| text.starts_with(|c: char| c.is_ascii_digit()))
        .map(str::to_owned)
}

fn release_in_name(path: &Path) -> Option<String> {
    path.file_name()?.to_str()?.split_once('-').map(|(_, release)| release.to_owned())
}

/// Beside the image, in the tree it was unpacked with, then on this machine.
fn candidates(image: &Path, root: &Path, release: &str) -> Vec<PathBuf> {
    let beside = image.parent().unwrap_or(Path::new("."));
    let above = beside.parent().unwrap_or(Path::new(".")).to_path_buf();
    let trees = [beside.to_path_buf(), above, root.to_path_buf()];
    let in_tree = trees.iter().flat_map(|tree| [tree.join("lib/modules"), tree.join("usr/lib/modules")]);
    let named = in_tree.map(|dir| dir.join(release)).filter(|_| !release.is_empty());
    [beside.join("modules")].into_iter().chain(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(release: &str) -> Vec<u8> {
        let mut bytes = vec![0; 0x400];
        bytes[0x202..0x206].copy_from_slice(b"HdrS");
        bytes[0x20e..0x210].copy_from_slice(&0x100u16.to_le_bytes());
        bytes.splice(0x300.., format!("{release} (build@host) #1\0").into_bytes());
        bytes
    }

    #[test]
    fn release_and_modules_of_an_unpacked_tree() {
        let dir = tempfile::tempdir().unwrap();
        let modules = dir.path().join("lib/modules/6.1.7-test");
        fs::create_dir_all(modules.join("kernel")).unwrap();
        fs::create_dir_all(dir.path().join("boot")).unwrap();
        let path = dir.path().join("boot/bzImage");
        fs::write(&path, image("6.1.7-test")).unwrap();
        let kernel = given(&path, Path::new("/nonexistent")).unwrap();
        assert_eq!((kernel.release.as_str(), kernel.modules), ("6.1.7-test", Some(modules)));
    }

    #[test]
    fn release_from_the_name_where_the_header_has_none() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("vmlinuz-6.1.0-50-arm64");
        fs::write(&path, "MZ").unwrap();
        let kernel = given(&path, Path::new("/nonexistent")).unwrap();
        assert_eq!((kernel.release.as_str(), kernel.modules), ("6.1.0-50-arm64", None));
    }

    #[test]
    fn a_missing_file_is_an_unknown_kernel() {
        let error = given(Path::new("6.7-rc"), Path::new("/")).unwrap_err().to_string();
        assert!(error.starts_with("no kernel \"6.7-rc\": expected one of 5.10"), "{error}");
    }
}
