//! `stillcore graph list`: the graphs that come with it.

use clap::Args;
use graph::topology::builtin;
use graph::topology::edges::{counts, edges};
use report::format;
use serde_json::{Value, json};

/// Arguments of `graph list`.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Print one JSON object instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Lists them.
pub(crate) fn run(args: &ListArgs) -> anyhow::Result<u8> {
    let mut graphs: Vec<Value> = Vec::new();
    for one in builtin::ALL {
        let graph = one.graph()?;
        let (edges, _) = edges(&graph);
        let counted = counts(&graph, &edges);
        if !args.json {
            let of = |n: usize, noun: &str| format::plural(n as u64, noun);
            let (executors, nodes) = (of(counted.executors, "executor"), of(counted.nodes, "node"));
            println!("{:13} {}", graph.name, graph.about);
            println!("{:13} {executors}, {nodes}, {}", "", of(counted.edges, "edge"));
        }
        graphs.push(json!({"name": graph.name, "about": graph.about, "counts": counted}));
    }
    if args.json {
        println!("{}", json!({"schema": "stillcore.graph-list/1", "graphs": graphs}));
    }
    Ok(0)
}
