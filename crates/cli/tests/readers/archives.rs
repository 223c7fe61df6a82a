//! Captured machines as archives.

use super::common::mutate::Rng;
use super::{Outcome, Reader, bytes, in_scratch};
use machine::Root;
use std::fs;
use std::path::{Path, PathBuf};

/// No unpacked file may have these names of the corpus: they lead outside.
const OUTSIDE: &str = "stillcore-fuzz-outside";
const BLOCK: usize = 512;

pub(crate) fn reader() -> Reader {
    Reader { name: "archive", seeds: seeds(), damage, read, short: 1_500 }
}

fn seeds() -> Vec<Vec<u8>> {
    let long = format!("sys/{}x", "devices/".repeat(20));
    let files: [(&str, &[u8]); 5] = [
        ("proc/cmdline", b"quiet isolcpus=2-3\n"),
        ("sys/devices/system/cpu/online", b"0-3\n"),
        ("sys/devices/system/cpu/possible", b"0-7\n"),
        ("proc/sys/kernel/watchdog", b"1\n"),
        (&long, b"x\n"),
    ];
    let mut tar = tar::Builder::new(Vec::new());
    for (name, bytes) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, name, bytes).unwrap();
    }
    let plain = tar.into_inner().unwrap();
    let mut zipped = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
    zipped.extend(miniz_oxide::deflate::compress_to_vec(&plain, 6));
    zipped.extend([0; 8]);
    vec![plain, zipped]
}

/// Names that lead outside and other kinds of entries, with the checksum that a header must have;
/// else nearly everything fails at the checksum.
fn damage(seeds: &[Vec<u8>], rng: &mut Rng) -> Vec<u8> {
    let mut tar = bytes(seeds, rng);
    if rng.below(4) == 0 || tar.starts_with(&[0x1f, 0x8b]) {
        return tar;
    }
    for at in (0..tar.len().saturating_sub(BLOCK - 1)).step_by(BLOCK) {
        let header = &mut tar[at..at + BLOCK];
        if &header[257..262] != b"ustar" {
            continue;
        }
        if rng.below(6) == 0 {
            let name = outside(rng);
            header[..100].fill(0);
            header[..name.len()].copy_from_slice(name.as_bytes());
        }
        if rng.below(6) == 0 {
            header[156] = b"0123456789LKxgSVM"[rng.below(17)];
        }
        sum(header);
    }
    tar
}

fn outside(rng: &mut Rng) -> String {
    let before = ["../", "/", "../../", "a/../../", "./../", "/dev/shm/", "/tmp/", "a/b/../../../"];
    format!("{}{OUTSIDE}", before[rng.below(before.len())])
}

/// Header field "chksum" of POSIX.1-2017, pax(1): the sum of all bytes, the field as blanks.
fn sum(header: &mut [u8]) {
    header[148..156].fill(b' ');
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
}

fn read(bytes: &[u8]) -> Outcome {
    let place = in_scratch(|scratch| {
        let path = scratch.at("machine.tar");
        fs::write(&path, bytes).unwrap();
        match Root::open(&path) {
            Ok(root) => {
                let place = root.at("");
                only_files(&place, bytes.len());
                Some(place)
            }
            Err(_) => None,
        }
    });
    nothing_outside();
    match place {
        Some(place) => {
            assert!(!place.exists(), "{} is left", place.display());
            Outcome::Whole
        }
        None => Outcome::Refused,
    }
}

/// No name of the corpus has led outside.
pub(crate) fn nothing_outside() {
    for above in ["/", "/dev/shm", "/tmp"] {
        let outside = Path::new(above).join(OUTSIDE);
        assert!(fs::symlink_metadata(&outside).is_err(), "{} was written", outside.display());
    }
}

/// Directories and regular files alone, of no more bytes than an archive of this size can unpack
/// to.
pub(crate) fn only_files(place: &Path, archive: usize) {
    let mut folders: Vec<PathBuf> = vec![place.to_owned()];
    let (mut names, mut size) = (0u64, 0);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let meta = fs::symlink_metadata(&path).unwrap();
            names += 1;
            assert!(meta.is_dir() || meta.is_file(), "{}", path.display());
            if meta.is_dir() {
                folders.push(path);
            } else {
                size += meta.len();
            }
        }
    }
    assert!(names <= 250_100 && size <= (256 << 20), "{names} names and {size} bytes of {archive}");
}
