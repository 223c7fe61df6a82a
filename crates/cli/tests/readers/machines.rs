//! Captured machines as trees: every surface of a kernel damaged, then audited and listed; and the
//! files of a catalogue.

use super::common::mutate::Rng;
use super::{Outcome, Reader, bundle, fixtures, in_scratch, text, whole};
use audit::{Catalogue, audit_with_line};
use machine::{Root, resources};
use model::resource::Kind;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(|| Catalogue::embedded().unwrap());

/// The smallest of the captured machines.
const MACHINES: [&str; 3] = ["unplugged-6.1", "cgroup-v1-5.10", "isolcpus-dropped-6.1"];

pub(crate) fn reader() -> Reader {
    let seeds = MACHINES.iter().map(|name| tree(&super::repository("fixtures/machines").join(name)));
    Reader { name: "machine", seeds: seeds.collect(), damage, read, short: 20 }
}

fn tree(root: &Path) -> Vec<u8> {
    let (mut files, mut folders) = (Vec::new(), vec![root.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let meta = fs::symlink_metadata(&path).unwrap();
            let name = path.strip_prefix(root).unwrap().display().to_string();
            if meta.is_dir() {
                folders.push(path);
            } else if meta.is_file() && meta.len() < 3_000 {
                files.push((name, fs::read(&path).unwrap()));
            }
        }
    }
    files.sort();
    bundle::of(files.iter().map(|(name, bytes)| (name.as_str(), &bytes[..])))
}

/// With so many files, several are damaged at a time.
fn damage(seeds: &[Vec<u8>], rng: &mut Rng) -> Vec<u8> {
    let mut bytes = text(seeds, rng);
    for _ in 0..rng.below(6) {
        bytes = text(&[bytes], rng);
    }
    if rng.below(8) == 0 {
        let targets = ["/etc", "/dev/zero", "/proc/self/mem", "..", "loop", "/dev/shm"];
        let link = bundle::link(
            ["proc/cmdline", "sys/kernel", "loop", "sys/devices"][rng.below(4)],
            targets[rng.below(6)],
        );
        bytes = [link, bytes].concat();
    }
    bytes
}

fn read(bytes: &[u8]) -> Outcome {
    in_scratch(|scratch| {
        bundle::clear(scratch.path());
        bundle::lay(bytes, scratch.path());
        let Ok(root) = Root::open(scratch.path()) else { return Outcome::Refused };
        let Ok(found) = machine::read(&root) else { return Outcome::Refused };
        let cpus = "1".parse().unwrap();
        let audited = audit_with_line(&root, &found, &CATALOGUE, &cpus);
        assert_eq!(audited.findings.len(), CATALOGUE.mechanisms.len(), "one finding a mechanism");
        let listed = resources::resources(&root, 1, Kind::ALL);
        let _ = machine::domains(&root);
        match listed {
            Ok(_) => Outcome::Whole,
            Err(_) => Outcome::Partial,
        }
    })
}

/// A mechanism of a foreign catalogue.
pub(crate) fn mechanisms() -> Reader {
    let mut seeds = fixtures("catalogue/mechanisms", "toml");
    // Some name others, which are not there.
    seeds.retain(|seed| read_mechanism(seed) == Outcome::Whole);
    assert!(seeds.len() > 20, "{} mechanisms stand by themselves", seeds.len());
    Reader { name: "mechanism", seeds, damage: text, read: read_mechanism, short: 1_000 }
}

fn read_mechanism(bytes: &[u8]) -> Outcome {
    in_scratch(|scratch| {
        bundle::clear(scratch.path());
        let text = String::from_utf8_lossy(bytes);
        let id = text.lines().find_map(|line| line.strip_prefix("id = \"")?.strip_suffix('"'));
        let id = id.filter(|id| !id.contains('/') && !id.contains('\0') && id.len() < 100).unwrap_or("x");
        fs::write(scratch.at(&format!("{id}.toml")), bytes).unwrap();
        whole(Catalogue::load(scratch.path()).is_ok())
    })
}
