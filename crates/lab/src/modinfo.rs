//! The metadata of a kernel module: its `.modinfo` section, NUL-separated `key=value` strings.
//!
//! Written by modpost (scripts/mod/modpost.c, include/linux/module.h): `depends=a,b` is always there; `softdep=pre: a b
//! post: c` and `alias=…` may come several times. Modules may be compressed (`.ko.xz` in Debian from 6.12 on, `.ko.zst`
//! elsewhere).

use crate::elf::Elf;
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

/// Reads `.modinfo` of a decompressed module.
pub fn of_module(elf: &[u8]) -> Result<Modinfo, String> {
    let section = Elf::parse(elf)?.section(".modinfo")?.ok_or("no .modinfo section")?;
    Ok(parse(section))
}

/// The module's ELF bytes, decompressed. Only the compression is taken from `path`.
pub fn decompress(path: &Path, bytes: Vec<u8>) -> Result<Vec<u8>, String> {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("ko") => Ok(bytes),
        Some("xz") => {
            let mut elf = Vec::new();
            lzma_rust2::XzReader::new(&bytes[..], true)
                .read_to_end(&mut elf)
                .map_err(|error| format!("xz: {error}"))?;
            Ok(elf)
        }
        Some("zst") => {
            let zstd = |error: &dyn std::fmt::Display| format!("zstd: {error}");
            let mut decoder =
                ruzstd::decoding::StreamingDecoder::new(&bytes[..]).map_err(|error| zstd(&error))?;
            let mut elf = Vec::new();
            decoder.read_to_end(&mut elf).map_err(|error| zstd(&error))?;
            Ok(elf)
        }
        other => Err(format!(
            "extension {:?} is not supported, expected .ko, .ko.xz or .ko.zst",
            other.unwrap_or_default()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elf::tests::with_section;

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
        assert_eq!(of_module(&with_section(".text", b"")), Err("no .modinfo section".into()));
        assert_eq!(of_module(&with_section(".modinfo", b"depends=a\0")).unwrap().depends, ["a"]);
    }

    #[test]
    fn decompresses() {
        // "still\n" through `xz --check=crc32`, as the kernel build compresses modules.
        let xz = include_bytes!("../fixtures/still.xz");
        assert_eq!(decompress(Path::new("a.ko.xz"), xz.to_vec()).unwrap(), b"still\n");
        assert!(decompress(Path::new("a.ko.xz"), b"not xz".to_vec()).unwrap_err().starts_with("xz:"));
        // The same text as a zstd frame (RFC 8878): magic, single segment of 6 bytes, one raw last block.
        let zst = b"\x28\xb5\x2f\xfd\x20\x06\x31\x00\x00still\n";
        assert_eq!(decompress(Path::new("a.ko.zst"), zst.to_vec()).unwrap(), b"still\n");
        assert!(decompress(Path::new("a.ko.zst"), b"not zstd".to_vec()).unwrap_err().starts_with("zstd:"));
        assert!(decompress(Path::new("a.ko.br"), vec![]).is_err());
    }
}
