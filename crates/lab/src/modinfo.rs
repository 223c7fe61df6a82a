//! The metadata of a kernel module: its `.modinfo` section, NUL-separated `key=value` strings.
//!
//! Written by modpost (scripts/mod/modpost.c, include/linux/module.h): `depends=a,b` is always
//! there; `softdep=pre: a b post: c` and `alias=…` may come several times. Modules may be
//! compressed (`.ko.xz` in Debian from 6.12 on, `.ko.zst` elsewhere).

use crate::error::{Error, Result};
use object::LittleEndian;
use object::elf::FileHeader64;
use object::read::elf::{FileHeader, SectionHeader};
use std::fmt::Display;
use std::io::Read;
use std::path::Path;

/// The parts of `.modinfo` that decide the loading order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Modinfo {
    /// Modules that must be loaded before.
    pub depends: Vec<String>,
    /// Modules that should be loaded before, if there are any.
    pub soft_pre: Vec<String>,
    /// Modules that should be loaded after, if there are any.
    pub soft_post: Vec<String>,
    /// Other names, with shell wildcards.
    pub aliases: Vec<String>,
}

/// Parses the section's bytes.
pub fn parse(section: &[u8]) -> Modinfo {
    let mut info = Modinfo::default();
    for entry in section.split(|byte| *byte == 0) {
        let Ok(text) = std::str::from_utf8(entry) else { continue };
        match text.split_once('=') {
            Some(("depends", list)) => {
                info.depends.extend(list.split(',').filter(|name| !name.is_empty()).map(str::to_owned));
            }
            Some(("alias", alias)) => info.aliases.push(alias.to_owned()),
            Some(("softdep", text)) => soft_dependencies(text, &mut info),
            _ => {}
        }
    }
    info
}

fn soft_dependencies(text: &str, info: &mut Modinfo) {
    let mut list = None;
    for word in text.split_whitespace() {
        match word {
            "pre:" => list = Some(&mut info.soft_pre),
            "post:" => list = Some(&mut info.soft_post),
            name => {
                if let Some(list) = list.as_mut() {
                    list.push(name.to_owned());
                }
            }
        }
    }
}

fn bad(path: &Path, reason: impl Display) -> Error {
    Error::Format { path: path.into(), format: "kernel module", reason: reason.to_string() }
}

/// Reads `.modinfo` of a decompressed module: a 64-bit little-endian ELF file, as both guest
/// architectures use.
pub fn of_module(path: &Path, elf: &[u8]) -> Result<Modinfo> {
    let section = || {
        let sections = FileHeader64::<LittleEndian>::parse(elf)?.sections(LittleEndian, elf)?;
        let found = sections.section_by_name(LittleEndian, b".modinfo");
        found.map(|(_, section)| section.data(LittleEndian, elf)).transpose()
    };
    let section = section().map_err(|error: object::read::Error| bad(path, error))?;
    section.map(parse).ok_or_else(|| bad(path, "no .modinfo section"))
}

/// The module's ELF bytes, decompressed. Only the compression is taken from `path`.
pub fn decompress(path: &Path, bytes: Vec<u8>) -> Result<Vec<u8>> {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("ko") => Ok(bytes),
        Some("xz") => {
            let mut elf = Vec::new();
            lzma_rust2::XzReader::new(&bytes[..], true)
                .read_to_end(&mut elf)
                .map_err(|error| bad(path, format_args!("xz: {error}")))?;
            Ok(elf)
        }
        Some("zst") => {
            let zstd = |error: &dyn Display| bad(path, format_args!("zstd: {error}"));
            let mut decoder =
                ruzstd::decoding::StreamingDecoder::new(&bytes[..]).map_err(|error| zstd(&error))?;
            let mut elf = Vec::new();
            decoder.read_to_end(&mut elf).map_err(|error| zstd(&error))?;
            Ok(elf)
        }
        other => {
            let other = other.unwrap_or_default();
            let expected = "expected .ko, .ko.xz or .ko.zst";
            Err(bad(path, format_args!("extension {other:?} is not supported, {expected}")))
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A relocatable file with one named section, as small as the format allows: header, contents,
    /// names, three section headers (null, the section, the name table).
    pub(crate) fn with_section(name: &str, contents: &[u8]) -> Vec<u8> {
        let mut names = vec![0];
        names.extend(name.as_bytes());
        names.push(0);
        let names_at = 64 + contents.len() as u64;
        let table = names_at + names.len() as u64;
        let mut elf = vec![0; 64];
        elf[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        elf[40..48].copy_from_slice(&table.to_le_bytes());
        elf[58..60].copy_from_slice(&64u16.to_le_bytes());
        elf[60..62].copy_from_slice(&3u16.to_le_bytes());
        elf[62..64].copy_from_slice(&2u16.to_le_bytes());
        elf.extend(contents);
        elf.extend(&names);
        elf.extend([0; 64]);
        for (name_at, offset, len) in
            [(1u32, 64u64, contents.len() as u64), (0, names_at, names.len() as u64)]
        {
            let mut header = [0; 64];
            header[..4].copy_from_slice(&name_at.to_le_bytes());
            header[24..32].copy_from_slice(&offset.to_le_bytes());
            header[32..40].copy_from_slice(&len.to_le_bytes());
            elf.extend(header);
        }
        elf
    }

    #[test]
    fn reads_the_loading_order() {
        let info = parse(b"license=GPL v2\0depends=virtio_ring,virtio\0softdep=pre: sha256 aes post: foo\0alias=virtio:d00000003v*\0depends=\0");
        assert_eq!(
            info,
            Modinfo {
                depends: vec!["virtio_ring".into(), "virtio".into()],
                soft_pre: vec!["sha256".into(), "aes".into()],
                soft_post: vec!["foo".into()],
                aliases: vec!["virtio:d00000003v*".into()],
            }
        );
    }

    #[test]
    fn a_file_without_the_section_is_an_error() {
        let read = |file: &[u8]| of_module(Path::new("a.ko"), file).map_err(|error| error.to_string());
        assert_eq!(
            read(&with_section(".text", b"")).unwrap_err(),
            "a.ko is not a usable kernel module: no .modinfo section"
        );
        assert_eq!(read(&with_section(".modinfo", b"depends=a\0")).unwrap().depends, ["a"]);
        assert!(read(b"#!/bin/sh\n").unwrap_err().contains("ELF"));
    }

    #[test]
    fn decompresses() {
        // "still\n" through `xz --check=crc32`, as the kernel build compresses modules.
        let xz = include_bytes!("../fixtures/still.xz");
        let read = |path: &str, bytes: &[u8]| {
            decompress(Path::new(path), bytes.to_vec()).map_err(|error| error.to_string())
        };
        assert_eq!(read("a.ko.xz", xz).unwrap(), b"still\n");
        assert!(read("a.ko.xz", b"not xz").unwrap_err().contains("module: xz:"));
        // The same text as a zstd frame (RFC 8878): magic, single segment of 6 bytes, one raw last
        // block.
        let zst = b"\x28\xb5\x2f\xfd\x20\x06\x31\x00\x00still\n";
        assert_eq!(read("a.ko.zst", zst).unwrap(), b"still\n");
        assert!(read("a.ko.zst", b"not zstd").unwrap_err().contains("module: zstd:"));
        assert!(read("a.ko.br", b"").is_err());
    }

    proptest! {
        #[test]
        fn mutated_files_never_panic(at in 0usize..400, byte in any::<u8>(), cut in 0usize..400) {
            let mut file = with_section(".modinfo", &[7; 120]);
            let len = file.len();
            file[at % len] = byte;
            file.truncate(len - cut % len);
            let _ = of_module(Path::new("a.ko"), &file);
        }
    }
}
