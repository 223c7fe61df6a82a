//! Graphs as the command line names them: files of either kind, or one that comes with stillcore.

use crate::failure::Hinted;
use crate::failure::nearest::did_you_mean;
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
            if !path.exists() {
                return Err(no_graph(name));
            }
            let text = std::fs::read_to_string(path).map_err(|error| Error::io("read", path, error))?;
            texts.push((path, text));
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
        (false, None) => return Err(no_graph(name)),
        _ => std::fs::read_to_string(path).map_err(|error| Error::io("read", path, error))?,
    };
    let graph = file::read(path, &text).context("the graph cannot be run")?;
    Ok(Loaded { graph, warnings: Vec::new() })
}

/// Nothing is called so; the nearest built-in graph, whatever the ending of the name.
fn no_graph(name: &str) -> anyhow::Error {
    let stem = Path::new(name).file_stem().map_or_else(Default::default, |stem| stem.to_string_lossy());
    let meant = did_you_mean(&stem, builtin::ALL.iter().map(|one| one.name));
    let list = "built-in graphs: stillcore graph list";
    let hint = meant.map_or_else(|| list.to_owned(), |meant| format!("{meant} {list}"));
    Hinted::new(format!("no graph '{name}': not a file here, not built in"), hint).into()
}
