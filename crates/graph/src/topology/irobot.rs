//! The JSON topology files of irobot-ros/ros2-performance, every key that its factory reads
//! (`performance_test_factory`, 2023-12).
//!
//! ros2-performance silently skips unknown keys and ends on missing ones. Here the first are
//! warnings and the second errors, both with file, line and key. `freq_hz` wins over `period_ms`,
//! and both are cut to whole microseconds, in single precision as there. Each file is one process;
//! each `executor_id` of a file one single-threaded executor.

use super::messages;
use super::places::{self, Json, Spot};
use super::qos::{Durability, History, Liveliness, Reliability};
use super::{
    Action, Client, Executor, Files, Graph, Node, PassBy, Process, Publisher, Qos, Server, Subscriber,
};
use model::Error;
use std::path::Path;

const NODE: &[&str] = &[
    "node_name",
    "node_namespace",
    "number",
    "executor_id",
    "publishers",
    "subscribers",
    "clients",
    "servers",
];
const PUBLISHER: &[&str] = &["topic_name", "msg_type", "freq_hz", "period_ms", "msg_size", "msg_pass_by"];
const SUBSCRIBER: &[&str] = &["topic_name", "msg_type", "msg_pass_by"];
const CLIENT: &[&str] = &["service_name", "srv_type", "freq_hz", "period_ms"];
const SERVER: &[&str] = &["service_name", "srv_type"];
const QOS: &[&str] = &[
    "qos_history",
    "qos_depth",
    "qos_reliability",
    "qos_durability",
    "qos_liveliness",
    "qos_avoid_ros_namespace_conventions",
    "qos_deadline",
    "qos_lifespan",
    "qos_liveliness_lease_duration",
];
/// The most copies of a node: each is served by a thread.
const MOST_COPIES: f64 = 1_000.0;
/// The largest payload.
const MOST_BYTES: f64 = crate::transport::MOST_BYTES as f64;
/// The shortest period, us.
const LEAST_US: i32 = 20;

/// A graph and what of its files means nothing.
pub type Read = (Graph, Vec<String>);

/// Reads one text a process; each with the path it came from.
pub fn read(texts: &[(&Path, String)]) -> Result<Read, Error> {
    let mut graph = Graph {
        name: texts.iter().map(|(path, _)| stem(path)).collect::<Vec<_>>().join("+"),
        about: String::new(),
        files: Files::Shared,
        processes: Vec::new(),
        executors: Vec::new(),
        nodes: Vec::new(),
        topics: Vec::new(),
        chains: Vec::new(),
    };
    let mut warnings = Vec::new();
    for (path, text) in texts {
        let mut file = File { path, warnings: &mut warnings };
        file.read(text, &mut graph)?;
    }
    Ok((graph, warnings))
}

/// A file's name without directory and ending.
pub(super) fn stem(path: &Path) -> String {
    path.file_stem().map_or_else(|| "graph".to_owned(), |stem| stem.to_string_lossy().into_owned())
}

/// One file being read.
struct File<'a> {
    path: &'a Path,
    warnings: &'a mut Vec<String>,
}

/// One object of a file: its keys, and its name in messages.
struct Table<'a> {
    kind: &'static str,
    line: usize,
    entries: &'a [(String, usize, Spot)],
}

impl<'a> Table<'a> {
    fn find(&self, key: &str) -> Option<&'a Spot> {
        self.entries.iter().rev().find(|(name, _, _)| name == key).map(|(_, _, spot)| spot)
    }

    /// Where a key's value stands, or the object that lacks it.
    fn line_of(&self, key: &str) -> usize {
        self.find(key).map_or(self.line, |spot| spot.line)
    }
}

impl File<'_> {
    fn read(&mut self, text: &str, graph: &mut Graph) -> Result<(), Error> {
        let root = places::read(self.path, text)?;
        let root = self.table("file", &root, &["nodes"], false)?;
        let nodes = self.needed(&root, "nodes", "a list of nodes")?;
        let Json::List(nodes) = &nodes.value else {
            return Err(self.wrong(nodes.line, "nodes", &nodes.value, "a list of nodes"));
        };
        let name = stem(self.path);
        let twins = graph.processes.iter().filter(|process| process.name.starts_with(&name)).count();
        let name = if twins > 0 { format!("{name}-{}", twins + 1) } else { name };
        let process = graph.processes.len();
        graph.processes.push(Process { name: name.clone() });
        for node in nodes {
            let table = self.table("node", node, NODE, false)?;
            let id = self.number(&table, "executor_id")?.unwrap_or(0.0) as i64;
            let executor = format!("{name}.{id}");
            let known = graph.executors.iter().position(|one| one.name == executor);
            let executor = known.unwrap_or_else(|| {
                let (policy, cpus) = (None, None);
                graph.executors.push(Executor { name: executor, process, policy, cpus, threads: 1 });
                graph.executors.len() - 1
            });
            let node = self.node(&table, executor)?;
            let copies = self.number(&table, "number")?;
            if let Some(copies) = copies.filter(|copies| !(0.0..=MOST_COPIES).contains(copies)) {
                return Err(self.wrong(table.line, "number", &Json::Number(copies), "0 to 1000 copies"));
            }
            match copies {
                None => graph.nodes.push(node),
                Some(copies) => graph.nodes.extend((1..=copies as u32).map(|copy| numbered(&node, copy))),
            }
        }
        Ok(())
    }

    fn node(&mut self, table: &Table<'_>, executor: usize) -> Result<Node, Error> {
        let name = self.text(table, "node_name")?;
        let namespace = match table.find("node_namespace") {
            Some(_) => self.text(table, "node_namespace")?,
            None => String::new(),
        };
        let namespace = namespace.trim_matches('/');
        let namespace = if namespace.is_empty() { String::new() } else { format!("/{namespace}") };
        let mut node = Node {
            name,
            namespace,
            executor,
            timers: Vec::new(),
            publishers: Vec::new(),
            subscribers: Vec::new(),
            clients: Vec::new(),
            servers: Vec::new(),
        };
        for spot in self.list(table, "publishers")? {
            let one = self.table("publisher", spot, PUBLISHER, true)?;
            node.publishers.push(self.publisher(&one)?);
        }
        for spot in self.list(table, "subscribers")? {
            let one = self.table("subscriber", spot, SUBSCRIBER, true)?;
            node.subscribers.push(self.subscriber(&one)?);
        }
        for spot in self.list(table, "clients")? {
            let one = self.table("client", spot, CLIENT, true)?;
            node.clients.push(self.client(&one)?);
        }
        for spot in self.list(table, "servers")? {
            let one = self.table("server", spot, SERVER, true)?;
            node.servers.push(self.server(&one)?);
        }
        Ok(node)
    }

    fn publisher(&mut self, table: &Table<'_>) -> Result<Publisher, Error> {
        let size = self.number(table, "msg_size")?;
        if let Some(size) = size.filter(|size| !(0.0..=MOST_BYTES).contains(size)) {
            return Err(self.wrong(table.line, "msg_size", &Json::Number(size), "0 to 16777216 bytes"));
        }
        let topic = self.text(table, "topic_name")?;
        let (message, bytes) = self.message(table, "msg_type", size.unwrap_or(0.0) as u64)?;
        if size.is_some() && message != messages::VECTOR {
            self.warn(table, "msg_size", "has no effect: only vectors have a size of their own");
        }
        Ok(Publisher {
            topic,
            message,
            bytes,
            period_ns: Some(self.period(table)?),
            pass_by: self.pass_by(table, PassBy::UniquePtr)?,
            qos: self.qos(table)?,
        })
    }

    fn subscriber(&mut self, table: &Table<'_>) -> Result<Subscriber, Error> {
        let topic = self.text(table, "topic_name")?;
        let (message, _) = self.message(table, "msg_type", 0)?;
        let mut pass_by = self.pass_by(table, PassBy::SharedPtr)?;
        if pass_by == PassBy::LoanedMsg {
            self.warn(
                table,
                "msg_pass_by",
                "of a subscriber cannot be loaned_msg; it is taken as shared_ptr",
            );
            pass_by = PassBy::SharedPtr;
        }
        Ok(Subscriber { topic, message, pass_by, qos: self.qos(table)?, action: Action::default() })
    }

    fn client(&mut self, table: &Table<'_>) -> Result<Client, Error> {
        let service = self.text(table, "service_name")?;
        let (message, bytes) = self.message(table, "srv_type", 0)?;
        Ok(Client { service, message, bytes, period_ns: self.period(table)?, qos: self.qos(table)? })
    }

    fn server(&mut self, table: &Table<'_>) -> Result<Server, Error> {
        let service = self.text(table, "service_name")?;
        let (message, bytes) = self.message(table, "srv_type", 0)?;
        Ok(Server { service, message, bytes, computes: None, qos: self.qos(table)? })
    }

    fn message(&self, table: &Table<'_>, key: &str, size: u64) -> Result<(String, u64), Error> {
        let message = self.text(table, key)?;
        if let Some(bytes) = messages::bytes_of_type(&message, size) {
            return Ok((message, bytes));
        }
        let expected = format!("one of {}", messages::known());
        Err(self.wrong(table.line_of(key), key, &Json::Text(message), &expected))
    }

    /// Release interval, ns.
    fn period(&mut self, table: &Table<'_>) -> Result<u64, Error> {
        let rate = self.number(table, "freq_hz")?;
        let period = self.number(table, "period_ms")?;
        let (key, period_ms) = match (rate, period) {
            (Some(rate), other) => {
                if other.is_some() {
                    self.warn(table, "period_ms", "has no effect beside freq_hz");
                }
                ("freq_hz", 1000.0 / rate as f32)
            }
            (None, Some(period)) => ("period_ms", period as f32),
            (None, None) => {
                let place = self.place(table.line);
                let what = format!("a {} without freq_hz and period_ms", table.kind);
                return Err(Error::invalid(place, what, "one of the two"));
            }
        };
        let period_us = (period_ms * 1000.0) as i32;
        if period_us < LEAST_US {
            let found = table.find(key).map_or(Json::Number(0.0), |spot| spot.value.clone());
            return Err(self.wrong(
                table.line_of(key),
                key,
                &found,
                "a distance of releases of 20 us or more",
            ));
        }
        Ok(period_us as u64 * 1_000)
    }

    fn pass_by(&self, table: &Table<'_>, default: PassBy) -> Result<PassBy, Error> {
        let words = [
            ("unique_ptr", PassBy::UniquePtr),
            ("shared_ptr", PassBy::SharedPtr),
            ("loaned_msg", PassBy::LoanedMsg),
        ];
        Ok(self.word(table, "msg_pass_by", &words)?.unwrap_or(default))
    }

    fn qos(&self, table: &Table<'_>) -> Result<Qos, Error> {
        let default = Qos::default();
        for key in ["qos_deadline", "qos_lifespan", "qos_liveliness_lease_duration"] {
            self.word(table, key, &[("default", ())])?;
        }
        let depth = self.number(table, "qos_depth")?;
        if let Some(depth) = depth.filter(|depth| !(0.0..=65_536.0).contains(depth)) {
            let line = table.line_of("qos_depth");
            return Err(self.wrong(line, "qos_depth", &Json::Number(depth), "0 to 65536 messages"));
        }
        let conventions = [("true", true), ("false", false)];
        Ok(Qos {
            history: self.word(table, "qos_history", History::WORDS)?.unwrap_or(default.history),
            depth: depth.map_or(default.depth, |depth| depth as u32),
            reliability: self
                .word(table, "qos_reliability", Reliability::WORDS)?
                .unwrap_or(default.reliability),
            durability: self.word(table, "qos_durability", Durability::WORDS)?.unwrap_or(default.durability),
            liveliness: self.word(table, "qos_liveliness", Liveliness::WORDS)?.unwrap_or(default.liveliness),
            avoid_ros_namespace_conventions: self
                .word(table, "qos_avoid_ros_namespace_conventions", &conventions)?
                .unwrap_or(false),
        })
    }

    /// An object, with a warning for each key that means nothing in it.
    fn table<'s>(
        &mut self,
        kind: &'static str,
        spot: &'s Spot,
        keys: &[&str],
        qos: bool,
    ) -> Result<Table<'s>, Error> {
        let Json::Table(entries) = &spot.value else {
            return Err(self.wrong(spot.line, kind, &spot.value, "an object"));
        };
        for (index, (key, line, _)) in entries.iter().enumerate() {
            let known = keys.contains(&key.as_str()) || (qos && QOS.contains(&key.as_str()));
            let twice = entries[..index].iter().any(|(other, _, _)| other == key);
            let what = match (known, twice) {
                (true, false) => continue,
                (true, true) => "is given twice; the last counts",
                (false, _) => "is not known and has no effect",
            };
            self.warnings.push(format!("{}: {key} of a {kind} {what}", self.place(*line)));
        }
        Ok(Table { kind, line: spot.line, entries })
    }

    fn list<'s>(&self, table: &Table<'s>, key: &str) -> Result<&'s [Spot], Error> {
        match table.find(key) {
            None => Ok(&[]),
            Some(Spot { value: Json::List(list), .. }) => Ok(list),
            Some(spot) => Err(self.wrong(spot.line, key, &spot.value, "a list")),
        }
    }

    fn text(&self, table: &Table<'_>, key: &str) -> Result<String, Error> {
        let spot = self.needed(table, key, "a text")?;
        match &spot.value {
            Json::Text(text) if !text.is_empty() => Ok(text.clone()),
            other => Err(self.wrong(spot.line, key, other, "a text")),
        }
    }

    fn number(&self, table: &Table<'_>, key: &str) -> Result<Option<f64>, Error> {
        match table.find(key) {
            None => Ok(None),
            Some(Spot { value: Json::Number(number), .. }) if *number >= 0.0 => Ok(Some(*number)),
            Some(spot) => Err(self.wrong(spot.line, key, &spot.value, "a number, 0 or more")),
        }
    }

    fn word<T: Copy>(&self, table: &Table<'_>, key: &str, words: &[(&str, T)]) -> Result<Option<T>, Error> {
        let Some(spot) = table.find(key) else { return Ok(None) };
        let found = match &spot.value {
            Json::Text(text) => words.iter().find(|(word, _)| word == text),
            _ => None,
        };
        let expected = words.iter().map(|(word, _)| format!("{word:?}")).collect::<Vec<_>>().join(" or ");
        found.map(|(_, value)| Some(*value)).ok_or_else(|| self.wrong(spot.line, key, &spot.value, &expected))
    }

    fn needed<'s>(&self, table: &Table<'s>, key: &str, expected: &str) -> Result<&'s Spot, Error> {
        table.find(key).ok_or_else(|| {
            let what = format!("a {} without {key}", table.kind);
            Error::invalid(self.place(table.line), what, format!("{key}: {expected}"))
        })
    }

    fn warn(&mut self, table: &Table<'_>, key: &str, what: &str) {
        let place = self.place(table.line_of(key));
        self.warnings.push(format!("{place}: {key} {what}"));
    }

    fn place(&self, line: usize) -> String {
        format!("{}: line {line}", self.path.display())
    }

    fn wrong(&self, line: usize, key: &str, found: &Json, expected: &str) -> Error {
        Error::invalid(self.place(line), format!("{key} is {}", found.kind()), expected)
    }
}

/// A copy: the number is in its name, and in its namespace if it has one.
fn numbered(node: &Node, copy: u32) -> Node {
    let namespace = match node.namespace.as_str() {
        "" => String::new(),
        namespace => format!("{namespace}_{copy}"),
    };
    Node { name: format!("{}_{copy}", node.name), namespace, ..node.clone() }
}

#[cfg(test)]
mod tests;
