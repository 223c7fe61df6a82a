//! The order for a process of a graph, and its report afterwards.

use crate::results::tracker::Tracker;
use crate::transport::{BellOrder, EndOrder};
use measure::job::Work;
use measure::job::files::Pair;
use model::Cpus;
use model::sample::Policy;
use model::usage::Usage;
use serde::{Deserialize, Serialize};

/// The order for one process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct ProcessOrder {
    /// Its name.
    pub(super) name: String,
    /// Length of the run, ns.
    pub(super) duration_ns: i64,
    /// Inputs and expected outputs, where a node reads or compares.
    pub(super) files: Option<Pair>,
    /// Its executors.
    pub(super) executors: Vec<ExecutorOrder>,
    /// Its ends of links, with the edge's number.
    pub(super) links: Vec<(u32, LinkEnd)>,
}

/// Which end of a link a process gets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) enum LinkEnd {
    /// The publisher's.
    Sender(EndOrder),
    /// The subscriber's.
    Receiver(EndOrder),
    /// Both.
    Pair(EndOrder),
}

/// One executor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct ExecutorOrder {
    /// Its number in the graph.
    pub(super) number: u32,
    /// Where it may run.
    pub(super) cpus: Cpus,
    /// The requested policy.
    pub(super) policy: Policy,
    /// Timer slack of a policy that is not real-time, ns.
    pub(super) timer_slack_ns: u64,
    /// Threads.
    pub(super) threads: u32,
    /// Descriptor of its ring, in the process's parcel.
    pub(super) ring: usize,
    /// Its bell.
    pub(super) bell: BellOrder,
    /// Its nodes.
    pub(super) nodes: Vec<NodeOrder>,
}

impl ExecutorOrder {
    /// Whether its thread waits for a signal.
    pub(super) fn by_signal(&self) -> bool {
        self.nodes.iter().flat_map(|node| &node.timers).any(|timer| timer.by_signal)
    }
}

/// One node: timers and ports that all come down to actions.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct NodeOrder {
    /// Its name.
    pub(super) name: String,
    /// Its timers, those of publishers and clients among them.
    pub(super) timers: Vec<TimerOrder>,
    /// Its receiving ends.
    pub(super) ports: Vec<PortOrder>,
    /// What can be done.
    pub(super) actions: Vec<ActionOrder>,
    /// What can be published.
    pub(super) outs: Vec<OutOrder>,
    /// How many of these are topics' publishers, in their order: the first ones.
    pub(super) publishers: usize,
}

/// A timer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct TimerOrder {
    /// Its name, for its report.
    pub(super) name: String,
    /// Release interval, ns.
    pub(super) period_ns: i64,
    /// First release after the start, ns.
    pub(super) offset_ns: i64,
    /// Whether a signal announces each release.
    pub(super) by_signal: bool,
    /// Position of its action.
    pub(super) action: usize,
}

/// A receiving end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct PortOrder {
    /// The edge.
    pub(super) edge: u32,
    /// What is done with a message.
    pub(super) action: usize,
    /// Whether only a timer takes from it.
    pub(super) held: bool,
    /// Order among the ports of an executor: topics, requests, responses, as rclcpp serves them.
    pub(super) rank: u8,
}

/// What is done.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct ActionOrder {
    /// Ports that are emptied first.
    pub(super) takes: Vec<usize>,
    /// Whether the next record of the inputs is read.
    pub(super) reads: bool,
    /// What is computed.
    pub(super) computes: Option<Work>,
    /// Whether the message is compared with the next expected output.
    pub(super) compares: bool,
    /// Outs that are published.
    pub(super) sends: Vec<usize>,
}

/// Something published: the same payload to all of its edges.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct OutOrder {
    /// Payload, bytes.
    pub(super) bytes: usize,
    /// The edges.
    pub(super) edges: Vec<u32>,
}

/// What a process says of itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProcessReport {
    /// Peak resident memory, KiB.
    pub rss_kib: u64,
    /// Why memory is not locked.
    pub memory_unlocked: Option<String>,
    /// Its executors.
    pub executors: Vec<ExecutorReport>,
}

/// What an executor says of itself: sums over its threads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExecutorReport {
    /// Its number in the graph.
    pub(super) number: u32,
    /// Thread ids.
    pub tids: Vec<i32>,
    /// Policy the kernel reported back.
    pub policy_effective: Policy,
    /// Why another one was refused.
    pub policy_refused: Option<String>,
    /// Timer slack in force, ns.
    pub(super) timer_slack_ns: u64,
    /// Page faults and context switches inside the run.
    pub used: Usage,
    /// CPU time inside the run, ns.
    pub cpu_time_ns: u64,
    /// Its timers.
    pub timers: Vec<TimerReport>,
    /// Its publishers.
    #[serde(default)]
    pub publishers: Vec<PublisherReport>,
    /// Outputs compared with the expected ones.
    pub outputs_compared: u64,
    /// Those that were not as expected.
    pub outputs_wrong: u64,
    /// Releases at which a timer found nothing to take.
    pub nothing_taken: u64,
    /// What went wrong while it ran; it continued with the next message.
    pub failed: Option<String>,
}

/// How long its calls took a publisher.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PublisherReport {
    /// The node, by its full name.
    pub node: String,
    /// Place among the node's publishers.
    pub port: usize,
    /// From the stamp of a message to the end of the call, over all of its subscribers.
    pub took: Tracker,
}

/// What a timer did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimerReport {
    /// Node and timer.
    pub(super) name: String,
    /// Release interval, ns.
    pub(super) period_ns: i64,
    /// Releases served.
    pub served: u64,
    /// Releases that passed unserved.
    pub missed: u64,
    /// Of a timer by signal, the releases that passed while its signal waited to be taken, as the
    /// kernel counted them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overruns: Option<u64>,
}
