//! Checks of every run of a graph: a balanced account, and as many rows as recorded.

use super::read_json;
use model::samples_file;
use serde_json::Value;
use std::path::Path;

/// A number of an answer.
pub(crate) fn count(value: &Value, key: &str) -> u64 {
    value[key].as_u64().unwrap_or_else(|| panic!("{key} of {value}"))
}

/// Sent = received + lost on every edge, and the rows of the samples files are the received ones.
pub(crate) fn assert_balanced(run: &Path, answer: &Value) {
    let edges = answer["edges"].as_array().unwrap();
    let mut rows = vec![0u64; edges.len()];
    let recorded = read_json(&run.join("run.json"));
    for probe in recorded["probes"].as_array().unwrap() {
        let file = run.join(probe["file"].as_str().unwrap());
        let samples = samples_file::read(&file).unwrap().1;
        let columns = samples_file::read_columns(&file).unwrap();
        let names: Vec<_> = columns.iter().map(|column| column.name.as_str()).collect();
        assert_eq!(names, ["edge", "size", "number", "sent_ns"]);
        for (row, sample) in samples.iter().enumerate() {
            let [edge, size, number, sent_ns] = [0, 1, 2, 3].map(|column: usize| columns[column].values[row]);
            let declared = &edges[edge as usize];
            assert_eq!(size as u64, count(declared, "bytes"));
            assert!((number as u64) < count(&declared["account"], "sent"));
            assert!(sample.t_ns <= sent_ns && sent_ns <= sample.t_ns + sample.value_ns);
            rows[edge as usize] += 1;
        }
        assert_eq!(
            count(probe, "released"),
            count(probe, "samples") + count(probe, "missed") + count(probe, "ring_lost")
        );
    }
    for (edge, rows) in edges.iter().zip(rows) {
        let account = &edge["account"];
        let lost: u64 = ["refused", "replaced", "left", "vanished", "unstored"]
            .iter()
            .map(|key| count(account, key))
            .sum();
        assert_eq!(count(account, "sent"), count(account, "received") + lost, "{edge}");
        assert_eq!(rows, count(account, "received"), "{edge}");
        assert_eq!(edge["balances"], true);
    }
}
