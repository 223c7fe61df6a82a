//! The program that ships: its cargo profile, its build, its path, its hash. The one place that
//! names the profile.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use object::LittleEndian;
use object::elf::{FileHeader64, PT_INTERP};
use object::read::elf::{FileHeader, ProgramHeader};
use sha2::{Digest, Sha256};

use crate::output::Output;
use crate::repo;

/// The cargo profile of what `make dist` and `make assess` build, and of every program that a bench
/// measures.
pub(crate) const PROFILE: &str = "release";

/// The static target of this machine.
pub(crate) fn target() -> String {
    format!("{}-unknown-linux-musl", std::env::consts::ARCH)
}

/// Builds the program for one target; its path.
pub(crate) fn build(root: &Path, target: &str, output: &mut Output) -> Result<PathBuf> {
    let args = ["build", "--locked", "--profile", PROFILE, "--package", "stillcore", "--target", target];
    output.run(root, "cargo", &args)?;
    // Cargo calls the folder of the profile `dev` by another name; no other profile has one.
    let folder = if PROFILE == "dev" { "debug" } else { PROFILE };
    let path = repo::target_dir(root)?.join(target).join(folder).join("stillcore");
    read_static(&path)?;
    Ok(path)
}

/// The bytes of a program, which must not require a dynamic loader.
pub(crate) fn read_static(path: &Path) -> Result<Vec<u8>> {
    let bytes = fs::read(path).with_context(|| format!("read {}", path.display()))?;
    ensure!(
        !has_interpreter(&bytes).with_context(|| path.display().to_string())?,
        "{} is linked dynamically; expected a static program",
        path.display()
    );
    Ok(bytes)
}

/// Whether a program header names a loader (System V gABI, chapter 5).
fn has_interpreter(file: &[u8]) -> Result<bool> {
    let header = FileHeader64::<LittleEndian>::parse(file)?;
    let mut segments = header.program_headers(LittleEndian, file)?.iter();
    Ok(segments.any(|segment| segment.p_type(LittleEndian) == PT_INTERP))
}

/// SHA-256 of a file, in hexadecimal.
pub(crate) fn sha256(path: &Path) -> Result<String> {
    let bytes = fs::read(path).with_context(|| format!("read {}", path.display()))?;
    let mut text = String::new();
    for byte in Sha256::digest(&bytes) {
        let _ = write!(text, "{byte:02x}");
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::elf::{PT_DYNAMIC, PT_LOAD, ProgramType};

    /// A header with program headers of these types right behind it.
    fn program(types: &[ProgramType]) -> Vec<u8> {
        let mut file = vec![0; 64];
        file[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        file[0x20] = 64;
        file[0x36] = 56;
        file[0x38] = types.len() as u8;
        for kind in types {
            let mut header = kind.0.to_le_bytes().to_vec();
            header.resize(56, 0);
            file.extend(header);
        }
        file
    }

    #[test]
    fn the_interpreter_is_found_wherever_it_stands() {
        assert!(!has_interpreter(&program(&[PT_LOAD, PT_DYNAMIC])).unwrap());
        assert!(has_interpreter(&program(&[PT_LOAD, PT_INTERP])).unwrap());
    }

    #[test]
    fn broken_files_are_errors() {
        let whole = program(&[PT_LOAD; 2]);
        for length in 0..whole.len() {
            assert!(has_interpreter(&whole[..length]).is_err(), "{length}");
        }
        assert!(has_interpreter(b"#!/bin/sh\n").is_err());
    }
}
