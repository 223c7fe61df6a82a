//! The edges of a graph of nodes and executors, as its run's `graph.json` states them: accounts and
//! latencies.
//!
//! The counts of a message's link outlive sender and receiver and are in no samples file, so this
//! section is read and not computed (`docs/graph.md`).

use attribution::Error;
use model::run::Run;
use model::sample::ProbeKind;
use model::store;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The file, and the schema that it must name.
const FILE: &str = "graph.json";
const SCHEMA: &str = "stillcore.graph-run/1";

/// Results of a graph.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct GraphSection {
    /// Its name.
    pub graph: String,
    /// Its edges: what each publisher sends to each subscriber.
    pub edges: Vec<GraphEdge>,
    /// Ways through several edges.
    pub chains: Vec<GraphChain>,
    /// Processes that did not complete.
    pub died: Vec<String>,
}

/// One edge.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct GraphEdge {
    /// Its number in the samples.
    pub edge: u32,
    /// The topic.
    pub topic: String,
    /// The node that sends.
    pub from: String,
    /// The node that receives.
    pub to: String,
    /// How messages get there.
    pub transport: String,
    /// Payload, bytes.
    pub bytes: u64,
    /// Interval between the releases that its messages come from, ns.
    pub period_ns: Option<u64>,
    /// Account of all sent messages.
    pub account: EdgeAccount,
    /// From the intended release to the receipt, and from the send.
    pub latency: EdgeLatency,
    /// Late and too late by the formulas of ros2-performance.
    pub irobot: EdgeLate,
}

/// Sent = received + lost, by place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct EdgeAccount {
    /// Calls of send.
    pub sent: u64,
    /// Messages received and stored.
    pub received: u64,
    /// Not taken by a full link.
    pub refused: u64,
    /// Replaced by newer ones.
    pub replaced: u64,
    /// In the link when both ends had ended.
    pub left: u64,
    /// In the hands of a killed process, or dropped by the kernel.
    pub vanished: u64,
    /// Received, and not stored.
    pub unstored: u64,
}

impl EdgeAccount {
    /// Messages that were sent and are not among the received ones.
    pub fn lost(&self) -> u64 {
        self.refused + self.replaced + self.left + self.vanished + self.unstored
    }
}

/// Both latencies of an edge.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct EdgeLatency {
    /// From the intended release to the receipt.
    pub from_release: EdgeSpread,
    /// From just before the send to the receipt.
    pub hop: EdgeSpread,
}

/// Statistics of latencies, ns.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct EdgeSpread {
    /// How many.
    pub n: u64,
    /// Smallest.
    pub min_ns: i64,
    /// Half do not exceed it; to three digits.
    pub p50_ns: i64,
    /// 99 in 100 do not exceed it; to three digits.
    pub p99_ns: i64,
    /// The observed maximum.
    pub max_ns: i64,
}

/// Messages that must lie above the 99th percentile; with fewer it adds nothing to the maximum.
const ABOVE: u64 = 10;

impl EdgeSpread {
    /// The 99th percentile, if at least ten messages lie above it.
    pub fn reportable_p99_ns(&self) -> Option<i64> {
        (self.n / 100 >= ABOVE).then_some(self.p99_ns)
    }
}

/// Messages above the bounds of ros2-performance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct EdgeLate {
    /// Late, and not too late.
    pub late: u64,
    /// Too late.
    pub too_late: u64,
}

/// A way through several topics.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct GraphChain {
    /// Its name.
    pub name: String,
    /// The topics, in order.
    pub topics: Vec<String>,
    /// Where it ends.
    pub ends: Vec<ChainEnd>,
}

/// One end of a chain.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ChainEnd {
    /// The node that receives last.
    pub to: String,
    /// From the intended release of the first message to the receipt of the last.
    pub latency: EdgeSpread,
}

/// The file: the section and its other fields.
#[derive(Debug, Deserialize)]
struct File {
    schema: String,
    #[serde(flatten)]
    section: GraphSection,
}

/// Reads the graph section of a run; `None` if it has none, or was cut off before writing it.
pub(crate) fn read(dir: &Path, run: &Run) -> Result<Option<GraphSection>, Error> {
    let path = dir.join(FILE);
    let measured = run.probes.iter().any(|record| record.probe() == ProbeKind::Graph);
    if !measured || !run.complete && !path.exists() {
        return Ok(None);
    }
    let file: File = store::read_json(&path)?;
    if file.schema != SCHEMA {
        let found = format!("schema {:?}", file.schema);
        return Err(model::Error::invalid(path.display(), found, SCHEMA).into());
    }
    Ok(Some(file.section))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::record;

    const TEXT: &str = r#"{"schema": "stillcore.graph-run/1", "graph": "g", "died": [], "copies": 1,
        "edges": [{"edge": 0, "kind": "topic", "topic": "pose", "from": "a", "to": "b", "transport": "queue", "bytes": 8,
            "period_ns": null, "lost": 3, "balances": true,
            "account": {"sent": 10, "received": 7, "refused": 1, "replaced": 2, "left": 0, "vanished": 0, "unstored": 0},
            "latency": {"from_release": {"n": 7, "min_ns": 1, "p50_ns": 2, "p99_ns": 3, "mean_ns": 2.5, "max_ns": 4},
                        "hop": {"n": 7, "min_ns": 1, "p50_ns": 1, "p99_ns": 2, "mean_ns": 1.5, "max_ns": 2}},
            "irobot": {"late": 1, "too_late": 0, "received": 7}}],
        "chains": [{"name": "way", "topics": ["pose"], "ends": [{"to": "b", "latency": {"n": 7, "min_ns": 1, "p50_ns": 2, "p99_ns": 3, "max_ns": 4}}]}]}"#;

    fn run(dir: &Path, text: Option<&str>, complete: bool) -> Result<Option<GraphSection>, Error> {
        if let Some(text) = text {
            std::fs::write(dir.join(FILE), text).unwrap();
        }
        let probes = vec![record(ProbeKind::Graph)];
        read(dir, &Run { complete, probes, ..crate::testing::run() })
    }

    #[test]
    fn edges_are_read_from_the_run() {
        let dir = tempfile::tempdir().unwrap();
        let section = run(dir.path(), Some(TEXT), true).unwrap().unwrap();
        let edge = &section.edges[0];
        assert_eq!((edge.account.lost(), edge.account.sent), (3, edge.account.received + 3));
        assert_eq!((edge.latency.from_release.max_ns, edge.latency.hop.max_ns, edge.irobot.late), (4, 2, 1));
        assert_eq!(edge.latency.hop.reportable_p99_ns(), None);
        assert_eq!(EdgeSpread { n: 1_000, p99_ns: 5, ..EdgeSpread::default() }.reportable_p99_ns(), Some(5));
        assert_eq!((section.chains[0].ends[0].to.as_str(), edge.period_ns), ("b", None));
    }

    #[test]
    fn a_run_that_was_cut_off_has_none_and_a_whole_one_must() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(run(dir.path(), None, false).unwrap(), None);
        assert!(run(dir.path(), None, true).is_err());
        let other = TEXT.replace("graph-run/1", "graph-run/9");
        assert!(run(dir.path(), Some(&other), true).unwrap_err().to_string().contains("graph-run/9"));
    }
}
