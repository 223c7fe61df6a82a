//! `stillcore graph show`: what a graph declares.

use super::load::load;
use crate::measure::table::table;
use crate::run::progress::Reporter;
use clap::Args;
use graph::topology::edges::{Counts, Edge, EdgeKind, counts, edges};
use graph::topology::{Graph, Node};
use report::format;
use serde_json::{Value, json};
use std::fmt::Write;

/// Arguments of `graph show`.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// JSON files of ros2-performance (each a process), a TOML file, or the name of a built-in
    /// graph.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<String>,
    /// Print one JSON object instead of tables.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Shows it.
pub(crate) fn run(args: &ShowArgs) -> anyhow::Result<u8> {
    let loaded = load(&args.files)?;
    let graph = &loaded.graph;
    let (edges, unmatched) = edges(graph);
    let counted = counts(graph, &edges);
    if args.json {
        println!("{}", answer(graph, &edges, &counted, &unmatched, &loaded.warnings));
        return Ok(0);
    }
    loaded.warnings.iter().for_each(|warning| Reporter::say(&format!("warning: {warning}")));
    print!("{}", text(graph, &edges, &counted, &unmatched));
    Ok(0)
}

fn answer(
    graph: &Graph,
    edges: &[Edge],
    counted: &Counts,
    unmatched: &[String],
    warnings: &[String],
) -> Value {
    let executors = graph.executors.iter().map(|one| {
        let process = &graph.processes[one.process].name;
        json!({"name": one.name, "process": process, "policy": one.policy, "cpus": one.cpus, "threads": one.threads})
    });
    let edges = edges.iter().enumerate().map(|(number, edge)| edge_answer(graph, number, edge));
    json!({
        "schema": "stillcore.graph-show/1",
        "name": graph.name,
        "about": graph.about,
        "counts": counted,
        "executors": executors.collect::<Vec<_>>(),
        "edges": edges.collect::<Vec<_>>(),
        "chains": graph.chains,
        "unmatched": unmatched,
        "warnings": warnings,
    })
}

/// An edge in JSON.
pub(super) fn edge_answer(graph: &Graph, number: usize, edge: &Edge) -> Value {
    json!({
        "edge": number,
        "kind": edge.kind,
        "topic": edge.topic,
        "from": graph.nodes[edge.from.node].full_name(),
        "to": graph.nodes[edge.to.node].full_name(),
        "bytes": edge.bytes,
        "period_ns": edge.period_ns,
        "qos": edge.qos,
    })
}

fn text(graph: &Graph, edges: &[Edge], counted: &Counts, unmatched: &[String]) -> String {
    let mut text = graph.name.clone();
    if !graph.about.is_empty() {
        let _ = write!(text, ": {}", graph.about);
    }
    let plural = |n: usize, noun: &str| format::plural(n as u64, noun);
    let _ = writeln!(
        text,
        "\n{}, {}, {}, {} of {}, {}, {}",
        match counted.processes {
            1 => "1 process".to_owned(),
            more => format!("{more} processes"),
        },
        plural(counted.executors, "executor"),
        plural(counted.nodes, "node"),
        plural(counted.publishers, "publisher"),
        plural(counted.topics, "topic"),
        plural(counted.subscribers, "subscriber"),
        plural(counted.edges, "edge"),
    );
    if counted.clients + counted.servers > 0 {
        let _ =
            writeln!(text, "{}, {}", plural(counted.clients, "client"), plural(counted.servers, "server"));
    }
    let _ = writeln!(
        text,
        "{:.0} publishes/s, {:.0} deliveries/s, {:.3} MB/s delivered, by timers of publishers\n",
        counted.publishes_hz,
        counted.deliveries_hz,
        counted.delivered_bytes_hz / 1e6
    );
    let rows = graph.nodes.iter().map(|node| node_row(graph, node)).collect();
    text += &table(&["node", "executor", "policy", "CPUs", "timers", "publishes", "receives"], rows);
    text.push('\n');
    let rows = edges.iter().enumerate().map(|(number, edge)| edge_row(graph, number, edge)).collect();
    text += &table(&["edge", "topic", "from", "to", "bytes", "every"], rows);
    for chain in &graph.chains {
        let _ = writeln!(text, "\nchain {}: {}", chain.name, chain.topics.join(" -> "));
    }
    for line in unmatched {
        let _ = writeln!(text, "note: {line}");
    }
    text
}

fn node_row(graph: &Graph, node: &Node) -> Vec<String> {
    let executor = &graph.executors[node.executor];
    let policy = executor.policy.as_ref().map_or_else(
        || "-".to_owned(),
        |policy| match policy.priority {
            0 => policy.name.clone(),
            priority => format!("{} {priority}", policy.name),
        },
    );
    let threads =
        if executor.threads > 1 { format!(" ({} threads)", executor.threads) } else { String::new() };
    vec![
        node.full_name(),
        format!("{}{threads}", executor.name),
        policy,
        executor.cpus.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string),
        node.timers.len().to_string(),
        (node.publishers.len() + node.clients.len()).to_string(),
        (node.subscribers.len() + node.servers.len()).to_string(),
    ]
}

fn edge_row(graph: &Graph, number: usize, edge: &Edge) -> Vec<String> {
    vec![
        number.to_string(),
        edge.topic.clone(),
        graph.nodes[edge.from.node].full_name(),
        graph.nodes[edge.to.node].full_name(),
        edge.bytes.to_string(),
        every(edge),
    ]
}

/// How often a message goes over an edge.
pub(super) fn every(edge: &Edge) -> String {
    match (edge.period_ns, edge.kind) {
        (_, EdgeKind::Response) => "response".to_owned(),
        (Some(period_ns), _) => model::quantity::spelled(period_ns),
        (None, _) => "reaction".to_owned(),
    }
}
