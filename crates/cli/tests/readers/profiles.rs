//! `isolation.toml`, which others write and root plans by.

use super::{Outcome, Reader, text, whole};
use audit::{Catalogue, Profile, Purpose};
use std::sync::LazyLock;

static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(|| Catalogue::embedded().unwrap());

const SEEDS: [&str; 2] = [
    "schema = \"stillcore.isolation/1\"\ncpus = \"2-3,5\"\nforce = true\nallow_split = true\nmove_pinned = true\n\
     placement = \"partition\"\nkeep = [\"rtapp\", \"irq:eth0*\", \"/rt.slice\", \"policy:fifo\"]\n\
     [roles]\ncontrol = \"2\"\nio = \"3\"\n[mechanisms]\nsched_rt_runtime = true\nnohz_full = false\n",
    "schema = \"stillcore.isolation/1\"\n[roles]\na = \"2\"\nb-2 = \"4-5\"\n",
];

pub(crate) fn reader() -> Reader {
    let seeds = SEEDS.iter().map(|seed| seed.as_bytes().to_vec()).collect();
    Reader { name: "profile", seeds, damage: text, read, short: 500 }
}

/// Whatever is read has a CPU, is asked as options are, and is written so that it reads the same.
fn read(bytes: &[u8]) -> Outcome {
    let text = String::from_utf8_lossy(bytes);
    let profile = Profile::parse(&text, "isolation.toml", &CATALOGUE);
    match &profile {
        Ok(profile) => {
            let again = Profile::parse(&profile.to_toml(), "isolation.toml", &CATALOGUE).unwrap();
            assert_eq!(again, *profile);
            let request = profile.request(Purpose::default());
            assert!(!request.cpus.is_empty());
            assert_eq!(request.with.len() + request.without.len(), profile.mechanisms.len());
        }
        Err(error) => {
            let sentence = error.to_string();
            assert!(sentence.starts_with("isolation.toml: line "), "{sentence}");
        }
    }
    whole(profile.is_ok())
}
