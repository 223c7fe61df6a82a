//! The options a kernel was built with, from the running kernel (`/proc/config.gz`) or from what
//! its package left on disk.
//!
//! Format: Linux `Documentation/kbuild/kconfig-language.rst` (`.config`), RFC 1952 (gzip).

use super::Root;
use std::collections::BTreeMap;

/// No kernel's configuration comes near this; a damaged file may claim to.
const MAX_BYTES: usize = 16 << 20;

/// Where the options came from, and those that are set, name (with `CONFIG_`) → value without
/// quotes.
pub(super) fn read(root: &Root, release: &str) -> Option<(String, BTreeMap<String, String>)> {
    if let Ok(Some(packed)) = root.bytes("proc/config.gz")
        && let Some(text) = gunzip(&packed)
    {
        return Some(("/proc/config.gz".to_owned(), parse(&text)));
    }
    of_release(root, release)
}

/// The options of a kernel that is installed, whether it runs or not.
pub(super) fn of_release(root: &Root, release: &str) -> Option<(String, BTreeMap<String, String>)> {
    // A release is a path component here: one that could lead elsewhere is no release.
    if release.is_empty() || release.contains('/') {
        return None;
    }
    let places = [
        format!("boot/config-{release}"),
        format!("lib/modules/{release}/config"),
        format!("lib/modules/{release}/build/.config"),
        format!("usr/lib/modules/{release}/config"),
    ];
    places.into_iter().find_map(|place| Some((format!("/{place}"), parse(&root.maybe(&place)?))))
}

fn parse(text: &str) -> BTreeMap<String, String> {
    let options =
        text.lines().filter(|line| line.starts_with("CONFIG_")).filter_map(|line| line.split_once('='));
    options.map(|(name, value)| (name.to_owned(), value.trim().trim_matches('"').to_owned())).collect()
}

/// Unpacks one gzip member; `None` where it is damaged.
fn gunzip(packed: &[u8]) -> Option<String> {
    let body = gzip_body(packed)?;
    let bytes = miniz_oxide::inflate::decompress_to_vec_with_limit(body, MAX_BYTES).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The deflate stream of a gzip file: all after the header of RFC 1952 §2.3. Inflating stops by
/// itself before the trailer.
pub(super) fn gzip_body(packed: &[u8]) -> Option<&[u8]> {
    const EXTRA: u8 = 4;
    const NAME: u8 = 8;
    const COMMENT: u8 = 16;
    const HEADER_CRC: u8 = 2;
    let (header, mut rest) = packed.split_at_checked(10)?;
    if header[..3] != [0x1f, 0x8b, 8] {
        return None;
    }
    let flags = header[3];
    if flags & EXTRA != 0 {
        let (length, after) = rest.split_first_chunk::<2>()?;
        rest = after.get(usize::from(u16::from_le_bytes(*length))..)?;
    }
    for flag in [NAME, COMMENT] {
        if flags & flag != 0 {
            let end = rest.iter().position(|&byte| byte == 0)?;
            rest = &rest[end + 1..];
        }
    }
    if flags & HEADER_CRC != 0 { rest.get(2..) } else { Some(rest) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn gzip(flags: u8, extra: &[u8], text: &str) -> Vec<u8> {
        let mut packed = vec![0x1f, 0x8b, 8, flags, 0, 0, 0, 0, 0, 3];
        packed.extend(extra);
        packed.extend(miniz_oxide::deflate::compress_to_vec(text.as_bytes(), 6));
        packed.extend([0; 8]);
        packed
    }

    #[test]
    fn options_are_read_plain_and_packed() {
        let text = "# CONFIG_KSM is not set\nCONFIG_NO_HZ_FULL=y\nCONFIG_CC=\"gcc (x) 1=2\"\n\n";
        let options = parse(text);
        assert_eq!(options.len(), 2);
        assert_eq!(options["CONFIG_CC"], "gcc (x) 1=2");
        assert_eq!(gunzip(&gzip(0, &[], text)).unwrap(), text);
        assert_eq!(gunzip(&gzip(8, b"config\0", text)).unwrap(), text);
        assert_eq!(gunzip(&gzip(4 | 2, &[2, 0, 9, 9, 1, 1], text)).unwrap(), text);
    }

    #[test]
    fn damage_reads_as_no_configuration() {
        let whole = gzip(8, b"config\0", "CONFIG_A=y\n");
        assert_eq!(gunzip(&whole[..20]), None);
        assert_eq!(gunzip(b"CONFIG_A=y\n"), None);
    }

    proptest! {
        #[test]
        fn no_bytes_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _ = gunzip(&bytes);
            bytes.splice(0..bytes.len().min(3), [0x1f, 0x8b, 8]);
            let _ = gunzip(&bytes);
        }
    }
}
