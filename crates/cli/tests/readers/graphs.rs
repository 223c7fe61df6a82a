//! Topologies: the JSON of ros2-performance, and our TOML.

use super::{Outcome, Reader, fixture, fixtures, text, whole};
use graph::topology::{edges, file, irobot};
use std::path::Path;

pub(crate) fn reader() -> Reader {
    let mut seeds = fixtures("graphs", "toml");
    seeds.retain(|seed| seed.len() < 6_000);
    for name in ["every-key.json", "listener.json"] {
        seeds.push(fixture(&format!("crates/graph/fixtures/{name}")));
    }
    Reader { name: "topology", seeds, damage: text, read, short: 500 }
}

fn read(bytes: &[u8]) -> Outcome {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let toml = file::read(Path::new("robot.toml"), &text);
    let json = irobot::read(&[(Path::new("robot.json"), text)]).map(|(graph, _)| graph);
    for graph in [&toml, &json].into_iter().flatten() {
        let (edges, _) = edges::edges(graph);
        let _ = edges::counts(graph, &edges);
        // The written form is read again.
        if let Ok(written) = file::write(graph) {
            let again = file::read(Path::new("robot.toml"), &written);
            assert!(again.is_ok(), "its own file is refused: {:?}\n{written}", again.err());
        }
    }
    whole(toml.is_ok() || json.is_ok())
}
