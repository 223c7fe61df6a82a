//! A run that was cut off: samples that its file did not close are read from its tails.

use super::common::mutate::Rng;
use super::{Outcome, Reader, bundle, bytes, fixture, in_scratch, words};
use model::run::ProbeRecord;
use model::sample::{ProbeKind, Sample, SampleMeta};
use model::samples_store::SampleStore;
use model::samples_tail::Opening;
use model::usage::Stretch;
use model::{samples_file, store};
use std::fs;
use std::path::Path;

const NAME: &str = "samples/wakeup-cpu1-0.parquet";
/// How a tail begins, and the frames behind: length, CRC-32, bytes (`model::samples_tail`).
const BEGIN: usize = 16;

/// First byte of an input: which of the two tails it is; the rest is the tail.
pub(crate) fn reader() -> Reader {
    Reader { name: "tail", seeds: seeds(), damage, read, short: 500 }
}

fn opening(columns: &[&str]) -> Opening {
    let small = super::repository("fixtures/runs/small");
    let run: model::Run = store::read_json(&small.join(store::RUN)).unwrap();
    let old = run.probes.into_iter().find(|probe| probe.probe() == ProbeKind::Wakeup).unwrap();
    let (meta, _) = samples_file::read(&small.join(&old.file)).unwrap();
    let meta = SampleMeta { probe: ProbeKind::Noise, ..meta };
    let record = ProbeRecord { detail: ProbeKind::Noise.detail(), samples: 0, ring_lost: 0, ..old };
    let columns = columns.iter().map(|name| (*name).to_owned()).collect();
    Opening { meta, record, columns, last: 0, rows: 0 }
}

fn seeds() -> Vec<Vec<u8>> {
    [&[][..], &["start_ns"], &["start_ns", "end_ns"]].iter().map(|columns| seed(columns)).collect()
}

fn seed(columns: &[&str]) -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.parquet");
    let mut store = SampleStore::create(&path, opening(columns)).unwrap();
    for seq in 0..60u64 {
        let sample = Sample { t_ns: seq as i64 * 1000, value_ns: 5, seq, ..Sample::default() };
        store.push_with(sample, &[seq as i64, -(seq as i64)]);
        if seq % 20 == 0 {
            store.ran(Stretch { t0_ns: seq as i64, t1_ns: seq as i64 + 9 });
        }
    }
    drop(store);
    let tail = fs::read(dir.path().join("s.parquet.tail-0")).unwrap();
    [&[0], &tail[..]].concat()
}

/// The frames that are damaged get their length and checksum again in most cases; of the first,
/// which is JSON, words are damaged.
fn damage(seeds: &[Vec<u8>], rng: &mut Rng) -> Vec<u8> {
    let seed = &seeds[rng.below(seeds.len())];
    let whole = seed.get(1 + BEGIN..).and_then(frames).filter(|frames| !frames.is_empty());
    let Some(mut frames) = whole.filter(|_| rng.below(4) > 0) else { return bytes(seeds, rng) };
    let at = rng.below(frames.len());
    frames[at] =
        if at == 0 { words::mutate(&[frames[0].clone()], rng) } else { bytes(&[frames[at].clone()], rng) };
    if rng.below(4) == 0 {
        let again = frames[rng.below(frames.len())].clone();
        frames.push(again);
    }
    let mut made = seed[..=BEGIN].to_vec();
    made[0] = rng.below(2) as u8;
    for frame in frames {
        made.extend((frame.len() as u32).to_le_bytes());
        made.extend(crc32fast::hash(&frame).to_le_bytes());
        made.extend(frame);
    }
    made
}

/// The frames of a tail; `None` where one is cut short.
fn frames(mut bytes: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut all = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk::<4>() {
        let end = 4 + u32::from_le_bytes(*length) as usize;
        all.push(rest.get(4..end)?.to_vec());
        bytes = &rest[end..];
    }
    Some(all)
}

fn read(input: &[u8]) -> Outcome {
    let (which, tail) = input.split_first().map_or((0, input), |(first, tail)| (*first % 2, tail));
    in_scratch(|scratch| {
        // Others use the directory, too, and clear it.
        let dir = &scratch.at("cut-off");
        if !dir.join(store::RUN).exists() {
            fs::create_dir_all(dir.join(store::SAMPLES)).unwrap();
            let mut run: model::Run =
                serde_json::from_slice(&fixture("fixtures/runs/small/run.json")).unwrap();
            (run.complete, run.incomplete_reason) = (false, Some(model::run::CUT_OFF.to_owned()));
            (run.probes, run.phases) = (Vec::new(), Vec::new());
            store::write_json(&dir.join(store::RUN), &run).unwrap();
        }
        bundle::clear(&dir.join(store::SAMPLES));
        let samples = dir.join(NAME);
        // Nothing of the file itself had reached the disk but its beginning.
        fs::write(&samples, b"PAR1").unwrap();
        fs::write(format!("{}.tail-{which}", samples.display()), tail).unwrap();
        let outcome = read_run(dir, &samples);
        fs::remove_file(&samples).unwrap();
        outcome
    })
}

fn read_run(dir: &Path, samples: &Path) -> Outcome {
    let run = model::run::stored::read_run(dir).unwrap();
    let Some(record) = run.probes.first() else { return Outcome::Refused };
    assert!(record.cut_off && !run.has_ended() && record.file == NAME);
    assert!(record.counters_file.is_none() && record.over_threshold.is_none(), "a tail names other files");
    let (meta, rows) = samples_file::read(samples).expect("what has a record is readable");
    assert_eq!((meta.cpu, rows.len() as u64), (meta.cpu, record.samples));
    if let Ok(columns) = samples_file::read_all_columns(samples) {
        assert!(columns.more.iter().all(|own| own.values.len() == rows.len()));
    }
    Outcome::Whole
}
