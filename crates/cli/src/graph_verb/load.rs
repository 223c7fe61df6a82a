//! Graphs as the command line names them: files of either kind, or one that comes with stillcore.

use anyhow::Context;
use graph::topology::{Graph, builtin, file, irobot};
use model::Error;
use std::path::Path;

/// A graph, and what in its files has no effect.
pub(super) struct Loaded {
    /// The graph.
    pub(super) graph: Graph,
    /// One sentence each.
    pub(super) warnings: Vec<String>,
}

/// Reads one TOML file, one built-in graph, or JSON files, each of which is a process.
pub(super) fn load(names: &[String]) -> anyhow::Result<Loaded> {
    let json = |name: &String| Path::new(name).extension().is_some_and(|ending| ending == "json");
    if names.iter().all(json) {
        let mut texts = Vec::new();
        for name in names {
            let path = Path::new(name);
            texts
                .push((path, std::fs::read_to_string(path).map_err(|error| Error::io("read", path, error))?));
        }
        let (graph, warnings) = irobot::read(&texts)?;
        return Ok(Loaded { graph, warnings });
    }
    let [name] = names else {
        let what = format!("{} files, not all of them JSON", names.len());
        return Err(
            Error::invalid("FILE", what, "one TOML file, or JSON files, each of them a process").into()
        );
    };
    let path = Path::new(name);
    let text = match (path.exists(), builtin::find(name)) {
        (false, Some(builtin)) => return Ok(Loaded { graph: builtin.graph()?, warnings: Vec::new() }),
        (false, None) if path.extension().is_none() => {
            let known: Vec<_> = builtin::ALL.iter().map(|one| one.name).collect();
            let expected = format!("a file, or one of {}", known.join(", "));
            return Err(Error::invalid("FILE", format!("{name:?}"), expected).into());
        }
        _ => std::fs::read_to_string(path).map_err(|error| Error::io("read", path, error))?,
    };
    let graph = file::read(path, &text).context("the graph cannot be run")?;
    Ok(Loaded { graph, warnings: Vec::new() })
}
