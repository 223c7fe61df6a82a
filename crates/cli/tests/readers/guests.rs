//! The results of a guest of the lab, and the files of kernel packages.

use super::common::mutate::Rng;
use super::{Outcome, Reader, archives, bundle, bytes, in_scratch, whole};
use lab::{frame, modinfo, results};
use std::fs;
use std::path::Path;

pub(crate) fn reader() -> Reader {
    Reader { name: "guest-result", seeds: vec![packed()], damage, read, short: 400 }
}

/// As a guest packs its results.
fn packed() -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir_all(dir.path().join("out/samples")).unwrap();
    fs::write(dir.path().join("out/run.json"), "{}").unwrap();
    fs::write(dir.path().join("out/samples").join("x".repeat(120)), [7; 700]).unwrap();
    let mut listing = results::Listing::default();
    listing.add_tree(dir.path(), Path::new("root"));
    let mut tar = Vec::new();
    listing.pack(&[("guest.json", b"{}"), ("stdout", b"said\n")], &mut tar).unwrap();
    tar
}

/// Damages the archive and frames it as a lying guest would, or damages the frame.
fn damage(seeds: &[Vec<u8>], rng: &mut Rng) -> Vec<u8> {
    let tar = (archives::reader().damage)(seeds, rng);
    let framed = [b"noise\n".to_vec(), frame::encode(&tar)].concat();
    if rng.below(4) == 0 { bytes(&[framed], rng) } else { framed }
}

fn read(bytes: &[u8]) -> Outcome {
    // A seed comes without its frame.
    let framed = frame::encode(bytes);
    let payload = frame::decode(bytes).or_else(|_| frame::decode(&framed));
    let Ok(payload) = payload else { return Outcome::Refused };
    let read = in_scratch(|scratch| {
        bundle::clear(scratch.path());
        let dir = scratch.at("out");
        results::prepare_dir(&dir).unwrap();
        let unpacked = results::unpack(payload, &dir);
        archives::only_files(&dir, payload.len());
        assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 1, "something was written beside it");
        unpacked.is_ok()
    });
    archives::nothing_outside();
    whole(read)
}

/// A module of nothing but its `.modinfo`, plain and compressed.
pub(crate) fn programs() -> Reader {
    let plain = module();
    Reader { name: "module", seeds: vec![plain], damage: bytes, read: read_program, short: 5_000 }
}

/// An ELF file with the sections `.modinfo` and `.shstrtab` (System V ABI, gABI 4.1, "Sections").
fn module() -> Vec<u8> {
    let info = b"depends=a,b\0softdep=pre: c post: d\0alias=pci:v*\0license=GPL\0";
    let names = b"\0.modinfo\0.shstrtab\0";
    let table = 64 + info.len() + names.len();
    let mut elf = vec![0u8; 64];
    elf[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    elf[16..20].copy_from_slice(&[1, 0, 62, 0]);
    elf[40..48].copy_from_slice(&(table as u64).to_le_bytes());
    elf[52..64].copy_from_slice(&[64, 0, 0, 0, 0, 0, 64, 0, 3, 0, 2, 0]);
    elf.extend_from_slice(info);
    elf.extend_from_slice(names);
    let sections = [(0u32, 0, 0), (1, 64, info.len()), (10, 64 + info.len(), names.len())];
    for (name, offset, size) in sections {
        let mut header = [0u8; 64];
        header[..4].copy_from_slice(&name.to_le_bytes());
        header[24..32].copy_from_slice(&(offset as u64).to_le_bytes());
        header[32..40].copy_from_slice(&(size as u64).to_le_bytes());
        elf.extend(header);
    }
    elf
}

fn read_program(bytes: &[u8]) -> Outcome {
    let info = modinfo::of_module(Path::new("x.ko"), bytes);
    for ending in ["x.ko", "x.ko.xz", "x.ko.zst"] {
        let _ = modinfo::decompress(Path::new(ending), bytes.to_vec());
    }
    whole(info.is_ok_and(|info| !info.depends.is_empty()))
}
