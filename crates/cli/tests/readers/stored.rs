//! A campaign as one file of the repository, so that it goes on where no machine has its directory
//! of work: progress, and the inputs that have reached new edges.
//!
//! zlib over blocks, each with its length before it (four bytes, little-endian): `progress.json`,
//! then for each input its number and its bytes.

#![allow(dead_code, reason = "the fuzzer writes, the tests read")]

use std::path::{Path, PathBuf};

/// The largest content, bytes.
const MOST: usize = 256 << 20;

fn file(corpus: &Path, target: &str) -> PathBuf {
    corpus.join(format!("{target}.bin"))
}

/// Fills the directory of work of a target from the repository, where it has done nothing yet.
pub(crate) fn unpack(corpus: &Path, target: &str, work: &Path) {
    let dir = work.join(target);
    let file = file(corpus, target);
    if dir.join("progress.json").exists() || !file.exists() {
        return;
    }
    let content = content(&file);
    let mut blocks = blocks(&content).into_iter();
    std::fs::create_dir_all(&dir).unwrap();
    let progress = blocks.next().unwrap();
    while let (Some(number), Some(input)) = (blocks.next(), blocks.next()) {
        let number = u64::from_le_bytes(number.try_into().unwrap());
        std::fs::write(dir.join(name(number)), input).unwrap();
    }
    std::fs::write(dir.join("progress.json"), progress).unwrap();
}

/// The inputs that a campaign has kept; none where none is stored.
pub(crate) fn inputs(corpus: &Path, target: &str) -> Vec<Vec<u8>> {
    let file = file(corpus, target);
    if !file.exists() {
        return Vec::new();
    }
    blocks(&content(&file)).into_iter().skip(2).step_by(2).map(<[u8]>::to_vec).collect()
}

fn content(file: &Path) -> Vec<u8> {
    let packed = std::fs::read(file).unwrap();
    miniz_oxide::inflate::decompress_to_vec_zlib_with_limit(&packed, MOST)
        .unwrap_or_else(|why| panic!("{}: {why}", file.display()))
}

/// Stores what a target has done.
pub(crate) fn pack(corpus: &Path, target: &str, work: &Path) {
    let dir = work.join(target);
    let mut content = Vec::new();
    push(&mut content, &std::fs::read(dir.join("progress.json")).unwrap());
    let mut numbers: Vec<u64> = std::fs::read_dir(&dir)
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().to_str()?.strip_suffix(".input")?.parse().ok())
        .collect();
    numbers.sort_unstable();
    for number in numbers {
        push(&mut content, &number.to_le_bytes());
        push(&mut content, &std::fs::read(dir.join(name(number))).unwrap());
    }
    std::fs::create_dir_all(corpus).unwrap();
    std::fs::write(file(corpus, target), miniz_oxide::deflate::compress_to_vec_zlib(&content, 10)).unwrap();
}

/// The name of an input in the directory of work.
pub(crate) fn name(number: u64) -> String {
    format!("{number:012}.input")
}

fn push(content: &mut Vec<u8>, block: &[u8]) {
    content.extend(u32::try_from(block.len()).unwrap().to_le_bytes());
    content.extend(block);
}

fn blocks(mut content: &[u8]) -> Vec<&[u8]> {
    let mut all = Vec::new();
    while let Some((length, rest)) = content.split_first_chunk::<4>() {
        let (block, rest) = rest.split_at(u32::from_le_bytes(*length) as usize);
        all.push(block);
        content = rest;
    }
    all
}
