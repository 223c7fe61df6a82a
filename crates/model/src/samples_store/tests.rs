//! What a reader finds at every moment of a file that is being written.

use super::*;
use crate::run::ProbeRecord;
use crate::sample::{Policy, ProbeKind};
use crate::samples_file::{read, read_all_columns};

fn opening() -> Opening {
    let policy = Policy::fifo(80);
    let record = ProbeRecord::of(ProbeKind::Wakeup, 3, policy.clone());
    let meta = SampleMeta {
        probe: ProbeKind::Wakeup,
        cpu: 3,
        thread: 0,
        phase: "measured".into(),
        unit: "ns".into(),
        clock: "CLOCK_MONOTONIC".into(),
        counter: "CLOCK_MONOTONIC".into(),
        policy_asked: policy.clone(),
        policy_effective: policy,
        period_ns: Some(1_000_000),
        threshold_ns: None,
    };
    Opening { meta, record, columns: vec!["start_ns".to_owned()], last: 0, rows: 0 }
}

fn row(seq: u64) -> Sample {
    Sample { t_ns: seq as i64 * 10, value_ns: (seq * 7919 % 1000) as i64, seq, missed: 1, flags: 2 }
}

/// Copies what is on disk as a killed writer would have left it; once more where the writer, which
/// goes on meanwhile, has renamed a file on the way.
fn frozen(dir: &Path) -> tempfile::TempDir {
    loop {
        let copy = tempfile::tempdir().unwrap();
        let mut copied = fs::read_dir(dir).unwrap().map(|entry| {
            let entry = entry.unwrap();
            fs::copy(entry.path(), copy.path().join(entry.file_name()))
        });
        match copied.find_map(Result::err) {
            None => return copy,
            Some(error) => assert_eq!(error.kind(), std::io::ErrorKind::NotFound, "{error}"),
        }
    }
}

#[test]
fn whatever_was_handed_over_is_read_before_the_file_has_its_end() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.parquet");
    let mut store = SampleStore::create(&path, opening()).unwrap();
    let mut written = 0;
    // Row groups close at 32,768 rows: before the first, in the middle, behind one, behind three.
    for upto in [1, 900, 32_768, 40_000, 110_000] {
        (written..upto).for_each(|seq| store.push_with(row(seq), &[seq as i64]));
        written = upto;
        store.hand_over().unwrap();
        // The bound of waiting hand-overs makes sure that the thread has come to this one.
        let copy = loop {
            let copy = frozen(dir.path());
            match read(&copy.path().join("s.parquet")) {
                Ok((_, found)) if found.len() as u64 == upto => break copy,
                _ => std::thread::sleep(Duration::from_millis(1)),
            }
        };
        let columns = read_all_columns(&copy.path().join("s.parquet")).unwrap();
        assert_eq!((columns.meta, columns.more.len()), (opening().meta, 1));
        assert_eq!(columns.seq, (0..upto).collect::<Vec<_>>());
        assert_eq!(columns.more[0].values, (0..upto as i64).collect::<Vec<_>>());
        assert_eq!(columns.value_ns, (0..upto).map(|seq| row(seq).value_ns).collect::<Vec<_>>());
    }
    assert_eq!(store.finish(&opening().meta).unwrap(), written);
    assert_eq!(read(&path).unwrap().1, (0..written).map(row).collect::<Vec<_>>());
    samples_tail::remove(&path).unwrap();
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    assert_eq!(read(&path).unwrap().1.len() as u64, written);
}

#[test]
fn a_store_that_is_given_up_has_kept_all() {
    let record = ProbeRecord::of(ProbeKind::Noise, 3, Policy::fifo(80));
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.parquet");
    let mut store = SampleStore::create(&path, Opening { record, ..opening() }).unwrap();
    (0..40_000).for_each(|seq| store.push_with(row(seq), &[]));
    store.ran(Stretch { t0_ns: 5, t1_ns: 9 });
    drop(store);
    assert_eq!(read(&path).unwrap().1, (0..40_000).map(row).collect::<Vec<_>>());
    let tail = samples_tail::read(&path).unwrap();
    assert_eq!(tail.opening.record.slices(), [[5, 9]]);
    // Cut anywhere in the file itself, less is read or an error is: never a wrong row.
    let bytes = fs::read(&path).unwrap();
    for length in (0..bytes.len()).step_by(bytes.len() / 97) {
        fs::write(&path, &bytes[..length]).unwrap();
        assert!(read(&path).is_err(), "{length} bytes of {}", bytes.len());
    }
}
