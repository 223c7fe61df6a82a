//! Graphs that come with the program: `graphs/*.toml`.

use super::{Graph, file};
use model::Error;
use std::path::Path;

/// A graph by its name: the text of its file.
#[derive(Debug, Clone, Copy)]
pub struct Builtin {
    /// Its name.
    pub name: &'static str,
    /// Its file.
    pub text: &'static str,
}

macro_rules! builtins {
    ($($name:literal),+ $(,)?) => {
        /// All of them.
        pub const ALL: &[Builtin] =
            &[$(Builtin { name: $name, text: include_str!(concat!("../../../../graphs/", $name, ".toml")) }),+];
    };
}

builtins!["small-single", "small-multi", "large-single", "large-multi", "cfs-hk", "aocs"];

/// The one with this name.
pub fn find(name: &str) -> Option<&'static Builtin> {
    ALL.iter().find(|one| one.name == name)
}

impl Builtin {
    /// Reads it.
    pub fn graph(&self) -> Result<Graph, Error> {
        file::read(Path::new(&format!("{}.toml", self.name)), self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::super::copies::copies;
    use super::super::edges::{counts, edges};
    use super::*;

    #[test]
    fn every_one_is_a_graph_in_which_everybody_is_heard() {
        for one in ALL {
            let graph = one.graph().unwrap();
            assert_eq!(graph.name, one.name);
            let (edges, unmatched) = edges(&graph);
            assert!(unmatched.is_empty(), "{}: {unmatched:?}", one.name);
            for (node, publisher) in graph.publishers() {
                let heard = edges.iter().any(|edge| edge.topic == node.resolve(&publisher.topic));
                assert!(
                    heard
                        || publisher.topic == "landmarks"
                        || node.name == "operator"
                        || node.name == "logger",
                    "{}: {}",
                    one.name,
                    publisher.topic
                );
            }
            assert_eq!(file::read(Path::new("again.toml"), &file::write(&graph).unwrap()).unwrap(), graph);
        }
    }

    #[test]
    fn the_four_scenarios_are_as_large_as_they_say() {
        let counted = |name: &str| {
            let graph = find(name).unwrap().graph().unwrap();
            let (edges, _) = edges(&graph);
            counts(&graph, &edges)
        };
        let [small, many, large, most] =
            ["small-single", "small-multi", "large-single", "large-multi"].map(counted);
        assert_eq!((small.nodes, small.executors, many.nodes, many.executors), (10, 1, 9, 9));
        assert_eq!((large.nodes, large.executors, most.nodes, most.executors), (20, 1, 20, 20));
        assert!(large.delivered_bytes_hz > 20.0 * small.delivered_bytes_hz);
    }

    #[test]
    fn thirty_control_loops_are_ninety_processes() {
        let graph = copies(&find("aocs").unwrap().graph().unwrap(), 30);
        assert_eq!((graph.processes.len(), edges(&graph).0.len()), (90, 60));
    }
}
