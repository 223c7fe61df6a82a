//! Distinguishes a static program from a dynamic one: a 64-bit little-endian ELF file is dynamic
//! when a program header of type PT_INTERP names its loader (System V gABI, chapter 5).

use anyhow::{Context, Result, ensure};

const PT_INTERP: u32 = 3;

/// Whether the program requires a dynamic loader.
pub(crate) fn has_interpreter(file: &[u8]) -> Result<bool> {
    ensure!(file.starts_with(b"\x7fELF\x02\x01"), "not a 64-bit little-endian ELF file");
    let table = u64::from_le_bytes(bytes(file, 0x20)?) as usize;
    let size = usize::from(u16::from_le_bytes(bytes(file, 0x36)?));
    let count = usize::from(u16::from_le_bytes(bytes(file, 0x38)?));
    for at in 0..count {
        let header = table.checked_add(at * size).context("program headers beyond the file")?;
        if u32::from_le_bytes(bytes(file, header)?) == PT_INTERP {
            return Ok(true);
        }
    }
    Ok(false)
}

fn bytes<const N: usize>(file: &[u8], at: usize) -> Result<[u8; N]> {
    let end = at.checked_add(N).context("offset beyond the file")?;
    let slice = file.get(at..end).with_context(|| format!("file ends before byte {end}"))?;
    slice.try_into().context("slice of the wrong length")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header with program headers of these types right behind it.
    fn program(types: &[u32]) -> Vec<u8> {
        let mut file = vec![0; 64];
        file[..6].copy_from_slice(b"\x7fELF\x02\x01");
        file[0x20] = 64;
        file[0x36] = 56;
        file[0x38] = types.len() as u8;
        for kind in types {
            let mut header = kind.to_le_bytes().to_vec();
            header.resize(56, 0);
            file.extend(header);
        }
        file
    }

    #[test]
    fn the_interpreter_is_found_wherever_it_stands() {
        assert!(!has_interpreter(&program(&[1, 2, 6])).unwrap());
        assert!(has_interpreter(&program(&[1, PT_INTERP])).unwrap());
    }

    #[test]
    fn broken_files_are_errors() {
        let whole = program(&[1, 1]);
        for length in 0..whole.len() - 52 {
            assert!(has_interpreter(&whole[..length]).is_err(), "{length}");
        }
        assert!(has_interpreter(b"#!/bin/sh\n").is_err());
    }
}
