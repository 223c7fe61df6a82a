//! Graphs in our own TOML, and any graph written as such.
//!
//! It says what the JSON of ros2-performance says, and besides: policies and CPUs of executors,
//! what callbacks do (take, read, compute, compare, publish), transports of topics, chains. Unknown
//! keys are errors, with their line.

use super::check;
use super::{
    Chain, Client, Executor, Files, Graph, Node, Process, Publisher, Server, Subscriber, Timer, Topic,
};
use super::{irobot, messages, spelling};
use model::quantity::{duration, spelled};
use model::sample::{Policy, Reservation};
use model::{Cpus, Error};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The schema that a file names.
pub const SCHEMA: &str = "stillcore.graph/1";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    schema: String,
    name: Option<String>,
    #[serde(default, skip_serializing_if = "spelling::is_default")]
    about: String,
    #[serde(default, skip_serializing_if = "spelling::is_default")]
    files: Files,
    #[serde(default, skip_serializing_if = "spelling::is_default")]
    process: Vec<Process>,
    #[serde(default, skip_serializing_if = "spelling::is_default")]
    executor: Vec<ExecutorRow>,
    #[serde(default)]
    node: Vec<NodeRow>,
    #[serde(default, skip_serializing_if = "spelling::is_default")]
    topic: Vec<Topic>,
    #[serde(default, skip_serializing_if = "spelling::is_default")]
    chain: Vec<Chain>,
}

#[derive(Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExecutorRow {
    name: String,
    process: Option<String>,
    policy: Option<String>,
    priority: Option<u32>,
    runtime: Option<String>,
    deadline: Option<String>,
    period: Option<String>,
    cpus: Option<Cpus>,
    threads: Option<u32>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct NodeRow {
    name: String,
    namespace: Option<String>,
    executor: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    timer: Vec<Timer>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    publisher: Vec<Publisher>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    subscriber: Vec<Subscriber>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    client: Vec<Client>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    server: Vec<Server>,
}

/// Reads a text that came from `path`.
pub fn read(path: &Path, text: &str) -> Result<Graph, Error> {
    let file: File = toml::from_str(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start.min(text.len()));
        let line = text.get(..at).unwrap_or_default().matches('\n').count() + 1;
        let what = error.message().trim().replace('\n', ", ");
        Error::invalid(
            format!("{}: line {line}", path.display()),
            what,
            "a graph of schema stillcore.graph/1",
        )
    })?;
    let place = path.display().to_string();
    if file.schema != SCHEMA {
        return Err(Error::invalid(format!("{place}: schema"), format!("{:?}", file.schema), SCHEMA));
    }
    let name = file.name.clone().unwrap_or_else(|| irobot::stem(path));
    let graph = graph(&place, name, file)?;
    check::check(&place, &graph)?;
    Ok(graph)
}

/// Turns rows into a graph: names become positions.
fn graph(place: &str, name: String, file: File) -> Result<Graph, Error> {
    let mut graph = Graph {
        name: name.clone(),
        about: file.about,
        files: file.files,
        processes: file.process,
        executors: Vec::new(),
        nodes: Vec::new(),
        topics: file.topic,
        chains: file.chain,
    };
    if graph.processes.is_empty() {
        graph.processes.push(Process { name: name.clone() });
    }
    let mut rows = file.executor;
    if rows.is_empty() {
        rows.push(ExecutorRow { name, ..ExecutorRow::default() });
    }
    for row in rows {
        let at = format!("{place}: executor {:?}", row.name);
        let process = position(&at, "process", row.process.as_deref(), &graph.processes, |one| &one.name)?;
        let policy = policy(&at, &row)?;
        let threads = row.threads.unwrap_or(1);
        graph.executors.push(Executor { name: row.name, process, policy, cpus: row.cpus, threads });
    }
    for row in file.node {
        let node = node(place, &graph, row)?;
        graph.nodes.push(node);
    }
    Ok(graph)
}

/// Where a named one stands; the first where none is named.
fn position<T>(
    at: &str,
    what: &str,
    name: Option<&str>,
    among: &[T],
    name_of: impl Fn(&T) -> &str,
) -> Result<usize, Error> {
    let Some(name) = name else { return Ok(0) };
    among.iter().position(|one| name_of(one) == name).ok_or_else(|| {
        Error::invalid(at, format!("{what} {name:?}"), format!("the name of an entry [[{what}]]"))
    })
}

fn policy(at: &str, row: &ExecutorRow) -> Result<Option<Policy>, Error> {
    let wrong = |what: String, expected: &str| Err(Error::invalid(at, what, expected));
    let reserves = row.runtime.is_some() || row.deadline.is_some() || row.period.is_some();
    let name = row.policy.as_deref();
    if reserves && name != Some("deadline") {
        return wrong("runtime, deadline or period".to_owned(), "policy = \"deadline\" beside them");
    }
    if row.priority.is_some() != matches!(name, Some("fifo" | "rr")) {
        return wrong(
            format!("policy {name:?} with priority {:?}", row.priority),
            "fifo and rr with a priority, others without",
        );
    }
    let priority = row.priority.unwrap_or(0);
    if row.priority.is_some() && !(1..=99).contains(&priority) {
        return wrong(format!("priority {priority}"), "1 to 99");
    }
    let needed = |key: &str, text: Option<&String>| {
        let time = text.and_then(|text| duration(text).ok()).map(|time| time.as_nanos() as u64);
        time.ok_or_else(|| Error::invalid(at, format!("{key} {text:?}"), "a length of time, such as 10ms"))
    };
    match name {
        None => Ok(None),
        Some("other") => Ok(Some(Policy::other())),
        Some("fifo") => Ok(Some(Policy::fifo(priority))),
        Some("rr") => Ok(Some(Policy::round_robin(priority))),
        Some("deadline") => {
            let runtime_ns = needed("runtime", row.runtime.as_ref())?;
            let period_ns = needed("period", row.period.as_ref())?;
            let deadline_ns = needed("deadline", row.deadline.as_ref().or(row.period.as_ref()))?;
            Ok(Some(Policy::deadline(Reservation { runtime_ns, deadline_ns, period_ns })))
        }
        Some(other) => wrong(format!("policy {other:?}"), "other, fifo, rr or deadline"),
    }
}

fn node(place: &str, graph: &Graph, row: NodeRow) -> Result<Node, Error> {
    let at = format!("{place}: node {:?}", row.name);
    let executor = position(&at, "executor", row.executor.as_deref(), &graph.executors, |one| &one.name)?;
    let namespace = row.namespace.unwrap_or_default();
    let namespace = namespace.trim_matches('/');
    let mut node = Node {
        name: row.name,
        namespace: if namespace.is_empty() { String::new() } else { format!("/{namespace}") },
        executor,
        timers: row.timer,
        publishers: row.publisher,
        subscribers: row.subscriber,
        clients: row.client,
        servers: row.server,
    };
    let payloads = node.publishers.iter_mut().map(|one| (&one.message, &mut one.bytes));
    let payloads = payloads.chain(node.clients.iter_mut().map(|one| (&one.message, &mut one.bytes)));
    let payloads = payloads.chain(node.servers.iter_mut().map(|one| (&one.message, &mut one.bytes)));
    for (message, bytes) in payloads {
        // A known type has its size; anything else is given one.
        match messages::bytes_of_type(message, *bytes) {
            Some(known) if *bytes == 0 || *bytes == known => *bytes = known,
            Some(known) => {
                let what = format!("bytes = {bytes} of type {message:?}");
                return Err(Error::invalid(at, what, format!("{known}, or a type of your own")));
            }
            None => {}
        }
    }
    Ok(node)
}

/// A graph as a text that [`read`] reads back as the same graph; an error if that is impossible
/// because two of its nodes have one name.
pub fn write(graph: &Graph) -> Result<String, Error> {
    check::names(&graph.name, graph)?;
    let namespace = |node: &Node| (!node.namespace.is_empty()).then(|| node.namespace.clone());
    let file = File {
        schema: SCHEMA.to_owned(),
        name: Some(graph.name.clone()),
        about: graph.about.clone(),
        files: graph.files,
        process: graph.processes.clone(),
        executor: graph.executors.iter().map(|executor| executor_row(graph, executor)).collect(),
        node: graph
            .nodes
            .iter()
            .map(|node| NodeRow {
                name: node.name.clone(),
                namespace: namespace(node),
                executor: Some(graph.executors[node.executor].name.clone()),
                timer: node.timers.clone(),
                publisher: node.publishers.clone(),
                subscriber: node.subscribers.clone(),
                client: node.clients.clone(),
                server: node.servers.clone(),
            })
            .collect(),
        topic: graph.topics.clone(),
        chain: graph.chains.clone(),
    };
    toml::to_string(&file).map_err(|error| Error::invalid(&graph.name, error, "a graph that TOML can hold"))
}

fn executor_row(graph: &Graph, executor: &Executor) -> ExecutorRow {
    let policy = executor.policy.as_ref();
    let reserved = policy.and_then(|policy| policy.reservation);
    let name = policy.map(|policy| match policy.name.as_str() {
        "SCHED_FIFO" => "fifo",
        "SCHED_RR" => "rr",
        "SCHED_DEADLINE" => "deadline",
        _ => "other",
    });
    ExecutorRow {
        name: executor.name.clone(),
        process: Some(graph.processes[executor.process].name.clone()),
        policy: name.map(str::to_owned),
        priority: policy.map(|policy| policy.priority).filter(|priority| *priority > 0),
        runtime: reserved.map(|reserved| spelled(reserved.runtime_ns)),
        deadline: reserved.map(|reserved| spelled(reserved.deadline_ns)),
        period: reserved.map(|reserved| spelled(reserved.period_ns)),
        cpus: executor.cpus.clone(),
        threads: (executor.threads != 1).then_some(executor.threads),
    }
}

#[cfg(test)]
mod tests;
