//! Tails written, cut at every byte, and with every bit changed.

use super::*;
use crate::sample::{Policy, ProbeKind};

fn opening() -> Opening {
    let policy = Policy::fifo(80);
    Opening {
        meta: SampleMeta {
            probe: ProbeKind::Wakeup,
            cpu: 3,
            thread: 0,
            phase: "measured".into(),
            unit: "ns".into(),
            clock: "CLOCK_MONOTONIC".into(),
            counter: "CLOCK_MONOTONIC".into(),
            policy_asked: policy.clone(),
            policy_effective: policy.clone(),
            period_ns: Some(1_000_000),
            threshold_ns: None,
        },
        record: ProbeRecord::of(ProbeKind::Wakeup, 3, policy),
        columns: vec!["start_ns".to_owned()],
        last: 0,
        rows: 0,
    }
}

fn rows(from: u64, to: u64) -> Handover {
    let row = |seq| Sample { t_ns: seq as i64 * 10, value_ns: -(seq as i64), seq, missed: 1, flags: 2 };
    let slices = vec![Stretch { t0_ns: from as i64, t1_ns: to as i64 }];
    Handover { rows: (from..to).map(row).collect(), more: (from..to).map(|seq| seq as i64).collect(), slices }
}

/// A tail of three frames of rows, its bytes, and where each frame ends.
fn tail() -> (Vec<u8>, Vec<usize>) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t");
    let mut file = begin(&path, &opening(), &rows(0, 3)).unwrap();
    let mut ends = vec![fs::metadata(&path).unwrap().len() as usize];
    for (from, to) in [(3, 8), (8, 9)] {
        add(&mut file, &rows(from, to)).unwrap();
        ends.push(fs::metadata(&path).unwrap().len() as usize);
    }
    (fs::read(&path).unwrap(), ends)
}

#[cfg(unix)]
#[test]
fn nothing_is_written_through_a_link_that_lies_in_the_place_of_a_tail() {
    let dir = tempfile::tempdir().unwrap();
    let victim = dir.path().join("victim");
    fs::write(&victim, "precious").unwrap();
    let [name, _] = names(&dir.path().join("x.parquet"));
    std::os::unix::fs::symlink(&victim, &name).unwrap();
    assert!(begin(&name, &opening(), &rows(0, 3)).is_err());
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
}

#[test]
fn a_tail_is_read_up_to_the_last_frame_that_is_whole() {
    let (bytes, ends) = tail();
    for length in 0..=bytes.len() {
        let found = parse(&bytes[..length]).map(|tail| tail.rows);
        let wanted =
            ends.iter().zip([3, 8, 9]).filter(|(end, _)| **end <= length).map(|(_, rows)| rows).next_back();
        assert_eq!(found.as_ref().map_or(0, |rows| rows.rows.len()), wanted.unwrap_or(0), "{length} bytes");
        if let Some(found) = found {
            assert_eq!(found.rows, rows(0, wanted.unwrap_or(0) as u64).rows, "{length} bytes");
            assert_eq!(found.more.len(), found.rows.len());
        }
    }
    let whole = parse(&bytes).unwrap();
    let slices: Vec<[i64; 2]> = whole.rows.slices.into_iter().map(Into::into).collect();
    assert_eq!((whole.opening, slices), (opening(), vec![[0, 3], [3, 8], [8, 9]]));
}

#[test]
fn no_changed_bit_is_believed() {
    let (bytes, _) = tail();
    let all = rows(0, 9).rows;
    for bit in 0..bytes.len() * 8 {
        let mut changed = bytes.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        let Some(tail) = parse(&changed) else { continue };
        assert_eq!(tail.opening, opening(), "bit {bit}");
        assert!(all.starts_with(&tail.rows.rows) && tail.rows.rows.len() < all.len(), "bit {bit}");
    }
}
