//! What a graph declares, as plain data, whatever file it came from: processes, executors, nodes,
//! what they publish and serve, chains.
//!
//! The vocabulary is that of ROS 2 (REP 2007 and `rclcpp`): a process holds executors, an executor
//! is one or more threads that serve the timers and messages of its nodes. `irobot` reads the JSON
//! of irobot-ros/ros2-performance, `file` our own TOML, whose tables are the structs here; `edges`
//! says who sends to whom.

pub mod builtin;
mod check;
pub mod copies;
pub mod edges;
pub mod file;
pub mod irobot;
mod messages;
mod places;
pub mod qos;
mod spelling;

pub use messages::bytes_of_type;
pub use qos::Qos;

use measure::job::Work;
use model::Cpus;
use model::sample::Policy;
use serde::{Deserialize, Serialize};

/// A graph of processes that send messages to one another.
#[derive(Debug, Clone, PartialEq)]
pub struct Graph {
    /// Its name: the file's, without its ending.
    pub name: String,
    /// What it is, for readers.
    pub about: String,
    /// Whether copies share the files of their nodes, or have inodes of their own.
    pub files: Files,
    /// Processes.
    pub processes: Vec<Process>,
    /// Executors, each of one process.
    pub executors: Vec<Executor>,
    /// Nodes, each of one executor.
    pub nodes: Vec<Node>,
    /// Settings of a topic as a whole; topics that are not named here take those of the run.
    pub topics: Vec<Topic>,
    /// Ways through the graph whose latency is wanted as a whole.
    pub chains: Vec<Chain>,
}

/// Whose files nodes read and compare with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Files {
    /// One set for all.
    #[default]
    Shared,
    /// One each.
    Own,
}

/// A process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Process {
    /// Its name, unique in the graph.
    pub name: String,
}

/// One or more threads that serve nodes.
#[derive(Debug, Clone, PartialEq)]
pub struct Executor {
    /// Its name, unique in the graph.
    pub name: String,
    /// Its process, a position in [`Graph::processes`].
    pub process: usize,
    /// How it is scheduled; none leaves it to the run.
    pub policy: Option<Policy>,
    /// Where its threads run; none leaves it to the run.
    pub cpus: Option<Cpus>,
    /// How many threads it has: one is `rclcpp`'s single-threaded executor.
    pub threads: u32,
}

/// A node: callbacks that never run at the same time.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Its namespace, empty or with a leading slash.
    pub namespace: String,
    /// Its executor, a position in [`Graph::executors`].
    pub executor: usize,
    /// Timers that do more than publish one topic.
    pub timers: Vec<Timer>,
    /// What it publishes.
    pub publishers: Vec<Publisher>,
    /// What it receives.
    pub subscribers: Vec<Subscriber>,
    /// What it asks other nodes.
    pub clients: Vec<Client>,
    /// What it answers.
    pub servers: Vec<Server>,
}

impl Node {
    /// Namespace and name, as ROS 2 prints it; a name alone without namespace.
    pub fn full_name(&self) -> String {
        if self.namespace.is_empty() {
            self.name.clone()
        } else {
            format!("{}/{}", self.namespace, self.name)
        }
    }

    /// A topic or service name as the node means it: a relative one lies in its namespace (ROS 2
    /// design, "Topic and Service names").
    pub fn resolve(&self, name: &str) -> String {
        match name.strip_prefix('/') {
            Some(absolute) => absolute.to_owned(),
            None if self.namespace.is_empty() => name.to_owned(),
            None => format!("{}/{name}", self.namespace.trim_start_matches('/')),
        }
    }
}

/// Releases at a fixed distance, and what is done at each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Timer {
    /// Its name.
    pub name: String,
    /// Release interval, ns.
    #[serde(rename = "period", with = "spelling::time")]
    pub period_ns: u64,
    /// First release after the common start, ns.
    #[serde(
        default,
        rename = "offset",
        with = "spelling::time",
        skip_serializing_if = "spelling::is_default"
    )]
    pub offset_ns: u64,
    /// How its thread learns of a release.
    #[serde(default, skip_serializing_if = "spelling::is_default")]
    pub by: By,
    /// What is done.
    #[serde(default, rename = "then", skip_serializing_if = "spelling::is_default")]
    pub action: Action,
}

/// How a timer's thread learns of a release.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum By {
    /// It sleeps until then.
    #[default]
    Sleep,
    /// A POSIX timer sends a signal, which it waits for.
    Signal,
}

/// What a callback does, in this order.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Action {
    /// Takes the waiting messages of these subscribers of the node, which are not served on
    /// arrival. The action runs for each of them.
    #[serde(skip_serializing_if = "spelling::is_default")]
    pub takes: Vec<String>,
    /// Whether it takes the next record of the inputs file as its input.
    #[serde(skip_serializing_if = "spelling::is_default")]
    pub reads: bool,
    /// What it computes on what it received, took or read.
    #[serde(with = "spelling::work", skip_serializing_if = "spelling::is_default")]
    pub computes: Option<Work>,
    /// Whether it compares what it received with the next record of the file of expected outputs.
    #[serde(skip_serializing_if = "spelling::is_default")]
    pub compares: bool,
    /// What it publishes then: topics of publishers of the same node.
    #[serde(skip_serializing_if = "spelling::is_default")]
    pub publishes: Vec<String>,
}

/// A publisher; with a period it has a timer of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Publisher {
    /// The topic, as written.
    pub topic: String,
    /// Name of the message type.
    #[serde(default = "spelling::vector", rename = "type")]
    pub message: String,
    /// Payload, bytes.
    #[serde(default)]
    pub bytes: u64,
    /// Interval of its own releases, ns; none: only actions publish it.
    #[serde(
        default,
        rename = "period",
        with = "spelling::maybe_time",
        skip_serializing_if = "spelling::is_default"
    )]
    pub period_ns: Option<u64>,
    /// How a message is handed on inside a process.
    #[serde(default = "spelling::unique")]
    pub pass_by: PassBy,
    /// Quality of service.
    #[serde(default, skip_serializing_if = "spelling::is_default")]
    pub qos: Qos,
}

/// A subscriber.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subscriber {
    /// The topic, as written.
    pub topic: String,
    /// Name of the message type.
    #[serde(default = "spelling::vector", rename = "type")]
    pub message: String,
    /// How a message is handed over inside a process.
    #[serde(default = "spelling::shared")]
    pub pass_by: PassBy,
    /// Quality of service.
    #[serde(default, skip_serializing_if = "spelling::is_default")]
    pub qos: Qos,
    /// What is done with a message.
    #[serde(default, rename = "then", skip_serializing_if = "spelling::is_default")]
    pub action: Action,
}

/// A client: asks a service at a fixed distance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Client {
    /// The service, as written.
    pub service: String,
    /// Name of the service type.
    #[serde(default = "spelling::vector", rename = "type")]
    pub message: String,
    /// Payload of a request, bytes.
    #[serde(default)]
    pub bytes: u64,
    /// Interval of requests, ns.
    #[serde(rename = "period", with = "spelling::time")]
    pub period_ns: u64,
    /// Quality of service.
    #[serde(default, skip_serializing_if = "spelling::is_default")]
    pub qos: Qos,
}

/// A server: answers each request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Server {
    /// The service, as written.
    pub service: String,
    /// Name of the service type.
    #[serde(default = "spelling::vector", rename = "type")]
    pub message: String,
    /// Payload of a response, bytes.
    #[serde(default)]
    pub bytes: u64,
    /// What it computes before it answers.
    #[serde(default, with = "spelling::work", skip_serializing_if = "spelling::is_default")]
    pub computes: Option<Work>,
    /// Quality of service.
    #[serde(default, skip_serializing_if = "spelling::is_default")]
    pub qos: Qos,
}

/// How `rclcpp` hands a message on inside a process: the value of iRobot's `msg_pass_by`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PassBy {
    /// Each subscriber gets a copy of its own.
    UniquePtr,
    /// Subscribers share it.
    SharedPtr,
    /// Memory lent by the middleware.
    LoanedMsg,
}

/// What is said of a topic as a whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Topic {
    /// Its resolved name.
    pub name: String,
    /// Name of the transport of its edges; none leaves it to the run.
    #[serde(default, skip_serializing_if = "spelling::is_default")]
    pub transport: Option<String>,
}

/// A way through the graph: each of its topics is published by the action that serves the one
/// before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chain {
    /// Its name.
    pub name: String,
    /// Resolved names of its topics, in order.
    pub topics: Vec<String>,
}

impl Graph {
    /// Every publisher with its node.
    pub fn publishers(&self) -> impl Iterator<Item = (&Node, &Publisher)> {
        self.nodes.iter().flat_map(|node| node.publishers.iter().map(move |one| (node, one)))
    }

    /// Every subscriber with its node.
    pub fn subscribers(&self) -> impl Iterator<Item = (&Node, &Subscriber)> {
        self.nodes.iter().flat_map(|node| node.subscribers.iter().map(move |one| (node, one)))
    }
}

/// The rate of a release interval, Hz.
pub(crate) fn hz(period_ns: u64) -> f64 {
    1e9 / period_ns as f64
}
