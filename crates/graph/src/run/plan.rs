//! From a graph to a run: where each executor runs and how, which transport each edge takes, what
//! each node does.

use super::order::{ActionOrder, NodeOrder, OutOrder, PortOrder, TimerOrder};
use crate::Error;
use crate::topology::edges::{Edge, EdgeKind, End, edges};
use crate::topology::qos::History;
use crate::topology::{Action, By, Graph};
use crate::transport::{Kind, LinkSpec, MOST_DEPTH, WhenFull};
use model::Cpus;
use model::sample::Policy;

/// What all messages of a full link may take together, bytes.
const MOST_WAITING_BYTES: usize = 64 << 20;

/// What the run says where the graph does not.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Transport of edges whose topic names none. Where this is none too: a queue inside a process,
    /// a shared-memory ring between two.
    pub transport: Option<Kind>,
    /// CPUs of executors that name none.
    pub cpus: Cpus,
    /// Whether each executor gets one of these CPUs in turn; else each may run on all of them.
    pub spread: bool,
    /// The policy of all executors, whatever the graph says.
    pub policy: Option<Policy>,
    /// The policy of those of which the graph says nothing.
    pub default_policy: Policy,
    /// Timer slack of threads that are not real-time, ns.
    pub timer_slack_ns: u64,
    /// Length of the run, ns.
    pub duration_ns: i64,
    /// How many copies of a graph this graph is.
    pub copies: u32,
}

/// A graph ready to be run.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The graph.
    pub graph: Graph,
    /// Its edges; their positions are their numbers.
    pub edges: Vec<Edge>,
    /// The link of each edge.
    pub links: Vec<LinkSpec>,
    /// Where each executor runs.
    pub cpus: Vec<Cpus>,
    /// How each executor is to be scheduled.
    pub policies: Vec<Policy>,
    /// Interval of the releases that each edge's messages come from, ns: the sender's own, or those
    /// of what it reacts to.
    pub periods_ns: Vec<Option<u64>>,
    /// The options.
    pub options: Options,
    /// Ports without a match, one sentence each.
    pub unmatched: Vec<String>,
}

impl Plan {
    /// Makes a plan; refuses what cannot be run.
    pub fn new(graph: Graph, options: Options) -> Result<Self, Error> {
        let (edges, unmatched) = edges(&graph);
        let mut plan = Self {
            links: Vec::new(),
            periods_ns: (0..edges.len()).map(|at| period_of(&graph, &edges, at, edges.len())).collect(),
            cpus: placed(&graph, &options),
            policies: graph
                .executors
                .iter()
                .map(|one| {
                    let own = options.policy.clone().or_else(|| one.policy.clone());
                    own.unwrap_or_else(|| options.default_policy.clone())
                })
                .collect(),
            graph,
            edges,
            options,
            unmatched,
        };
        plan.links = plan.edges.iter().map(|edge| plan.link(edge)).collect::<Result<_, _>>()?;
        plan.polling()?;
        Ok(plan)
    }

    /// The process of a node.
    pub fn process_of(&self, node: usize) -> usize {
        self.graph.executors[self.graph.nodes[node].executor].process
    }

    /// Whether an edge leaves its process.
    pub fn leaves(&self, edge: &Edge) -> bool {
        self.process_of(edge.from.node) != self.process_of(edge.to.node)
    }

    /// Everything that executors may run on.
    pub fn all_cpus(&self) -> Cpus {
        self.cpus.iter().fold(Cpus::default(), |all, one| all.or(one))
    }

    /// The kinds of all links that end at an executor.
    pub(super) fn kinds_at(&self, executor: usize) -> Vec<Kind> {
        let ends = self.edges.iter().zip(&self.links);
        ends.filter(|(edge, _)| self.graph.nodes[edge.to.node].executor == executor)
            .map(|(_, link)| link.kind)
            .collect()
    }

    fn link(&self, edge: &Edge) -> Result<LinkSpec, Error> {
        let own = self.graph.topics.iter().find(|topic| topic.name == edge.topic);
        let own = own.and_then(|topic| topic.transport.as_ref()).map(|name| {
            let place = format!("transport of topic {:?}", edge.topic);
            name.parse::<Kind>().map_err(|_| {
                let known = Kind::ALL.map(Kind::name).join(", ");
                model::Error::invalid(place, format!("{name:?}"), format!("one of {known}"))
            })
        });
        let kind = own.transpose()?.or(self.options.transport).unwrap_or(Kind::Queue);
        let kind = if kind == Kind::Queue && self.leaves(edge) { Kind::ShmFutex } else { kind };
        let message_bytes = edge.bytes as usize;
        let keeps_all = edge.qos.history == History::KeepAll;
        let depth = if keeps_all { MOST_DEPTH } else { (edge.qos.depth as usize).clamp(1, MOST_DEPTH) };
        let room = MOST_WAITING_BYTES / message_bytes.max(1);
        let nodes = &self.graph.nodes;
        let (from, to) = (nodes[edge.from.node].full_name(), nodes[edge.to.node].full_name());
        Ok(LinkSpec {
            name: format!("{} {from} -> {to}", edge.topic),
            kind,
            message_bytes,
            depth: depth.min(room.max(1)),
            when_full: if keeps_all { WhenFull::Refuse } else { WhenFull::ReplaceOldest },
        })
    }

    /// An executor that never sleeps needs a CPU that no other one needs.
    fn polling(&self) -> Result<(), Error> {
        let polls = |at: &usize| self.kinds_at(*at).contains(&Kind::ShmPoll);
        let polling: Vec<_> = (0..self.cpus.len()).filter(polls).collect();
        let alone = |at: &usize| {
            let others = (0..self.cpus.len()).filter(|other| other != at);
            let used = others.fold(Cpus::default(), |used, other| used.or(&self.cpus[other]));
            !self.cpus[*at].minus(&used).is_empty()
        };
        match polling.iter().find(|at| !alone(at)) {
            None => Ok(()),
            Some(at) => {
                let name = &self.graph.executors[*at].name;
                let what = format!("executor {name:?} on CPUs {}, which others use too", self.cpus[*at]);
                Err(model::Error::invalid(
                    "shm-poll",
                    what,
                    "a CPU of its own for an executor that never sleeps",
                )
                .into())
            }
        }
    }

    /// What a node is ordered to do.
    pub(super) fn node_order(&self, node: usize) -> NodeOrder {
        Ordering { plan: self, node, order: NodeOrder::default() }.made()
    }
}

fn placed(graph: &Graph, options: &Options) -> Vec<Cpus> {
    let cpus: Vec<_> = options.cpus.iter().collect();
    let mut turns = cpus.iter().copied().cycle();
    let executors = graph.executors.iter().map(|one| match &one.cpus {
        Some(cpus) => cpus.clone(),
        None if options.spread => turns.next().map(Cpus::one).unwrap_or_default(),
        None => options.cpus.clone(),
    });
    executors.collect()
}

/// The period behind an edge: its own, or that of the first timer or edge whose action publishes
/// it, at most `depth` reactions away.
fn period_of(graph: &Graph, edges: &[Edge], at: usize, depth: usize) -> Option<u64> {
    let edge = &edges[at];
    if edge.period_ns.is_some() || depth == 0 || edge.kind != EdgeKind::Topic {
        return edge.period_ns;
    }
    let node = &graph.nodes[edge.from.node];
    let topic = &node.publishers[edge.from.port].topic;
    if let Some(timer) = node.timers.iter().find(|timer| timer.action.publishes.contains(topic)) {
        return Some(timer.period_ns);
    }
    let cause = |port: usize| node.subscribers[port].action.publishes.contains(topic);
    let mut causes = edges.iter().enumerate().filter(|(_, before)| {
        before.kind == EdgeKind::Topic && before.to.node == edge.from.node && cause(before.to.port)
    });
    causes.find_map(|(before, _)| period_of(graph, edges, before, depth - 1))
}

/// A node's order in the making.
struct Ordering<'a> {
    plan: &'a Plan,
    node: usize,
    order: NodeOrder,
}

impl Ordering<'_> {
    fn made(mut self) -> NodeOrder {
        let node = &self.plan.graph.nodes[self.node];
        self.order.name = node.full_name();
        // Outs of publishers stand where publishers stand.
        self.order.publishers = node.publishers.len();
        for port in 0..node.publishers.len() {
            let edges = self.edges_from(EdgeKind::Topic, port);
            self.order.outs.push(OutOrder { bytes: node.publishers[port].bytes as usize, edges });
        }
        for (port, subscriber) in node.subscribers.iter().enumerate() {
            let held = node.timers.iter().any(|timer| timer.action.takes.contains(&subscriber.topic));
            let action = self.action(&subscriber.action);
            self.ports(EdgeKind::Topic, port, action, held, 0);
        }
        for timer in &node.timers {
            let mut action = action_order(&self, &timer.action);
            action.takes = self.ports_of(&timer.action.takes);
            let action = self.push(action);
            self.timer(&timer.name, timer.period_ns, timer.offset_ns, action);
            if let Some(made) = self.order.timers.last_mut() {
                made.by_signal = timer.by == By::Signal;
            }
        }
        for (port, publisher) in node.publishers.iter().enumerate() {
            if let Some(period_ns) = publisher.period_ns {
                let action = self.push(ActionOrder { sends: vec![port], ..ActionOrder::default() });
                self.timer(&publisher.topic, period_ns, 0, action);
            }
        }
        for (port, client) in node.clients.iter().enumerate() {
            let edges = self.edges_from(EdgeKind::Request, port);
            let out = self.out(client.bytes, edges);
            let action = self.push(ActionOrder { sends: vec![out], ..ActionOrder::default() });
            self.timer(&client.service, client.period_ns, 0, action);
            let nothing = self.push(ActionOrder::default());
            self.ports(EdgeKind::Response, port, nothing, false, 2);
        }
        for (port, server) in node.servers.iter().enumerate() {
            self.serve(port, server.bytes, server.computes);
        }
        self.order
    }

    /// A request port for each client, whose action answers that client.
    fn serve(&mut self, port: usize, bytes: u64, computes: Option<measure::job::Work>) {
        let edges = &self.plan.edges;
        let here = End { node: self.node, port };
        let asked =
            edges.iter().zip(0u32..).filter(|(edge, _)| edge.kind == EdgeKind::Request && edge.to == here);
        for (request, number) in asked {
            let answers =
                |edge: &Edge| edge.kind == EdgeKind::Response && edge.from == here && edge.to == request.from;
            let responses = edges.iter().zip(0u32..).filter(|(edge, _)| answers(edge)).map(|(_, at)| at);
            let out = self.out(bytes, responses.collect());
            let action = self.push(ActionOrder { computes, sends: vec![out], ..ActionOrder::default() });
            self.order.ports.push(PortOrder { edge: number, action, held: false, rank: 1 });
        }
    }

    fn action(&mut self, action: &Action) -> usize {
        let order = action_order(self, action);
        self.push(order)
    }

    fn push(&mut self, action: ActionOrder) -> usize {
        self.order.actions.push(action);
        self.order.actions.len() - 1
    }

    fn out(&mut self, bytes: u64, edges: Vec<u32>) -> usize {
        self.order.outs.push(OutOrder { bytes: bytes as usize, edges });
        self.order.outs.len() - 1
    }

    fn timer(&mut self, name: &str, period_ns: u64, offset_ns: u64, action: usize) {
        let (period_ns, offset_ns) = (period_ns as i64, offset_ns as i64);
        self.order.timers.push(TimerOrder {
            name: name.to_owned(),
            period_ns,
            offset_ns,
            by_signal: false,
            action,
        });
    }

    fn ports(&mut self, kind: EdgeKind, port: usize, action: usize, held: bool, rank: u8) {
        let here = End { node: self.node, port };
        let edges = self.plan.edges.iter().zip(0u32..);
        let edges = edges.filter(|(edge, _)| edge.kind == kind && edge.to == here);
        self.order.ports.extend(edges.map(|(_, edge)| PortOrder { edge, action, held, rank }));
    }

    fn edges_from(&self, kind: EdgeKind, port: usize) -> Vec<u32> {
        let here = End { node: self.node, port };
        let edges = self.plan.edges.iter().zip(0u32..);
        edges.filter(|(edge, _)| edge.kind == kind && edge.from == here).map(|(_, at)| at).collect()
    }

    /// The ports of subscribers of these topics.
    fn ports_of(&self, topics: &[String]) -> Vec<usize> {
        let node = &self.plan.graph.nodes[self.node];
        let of_topic = |edge: u32| {
            let edge = &self.plan.edges[edge as usize];
            edge.kind == EdgeKind::Topic && topics.contains(&node.subscribers[edge.to.port].topic)
        };
        let ports = self.order.ports.iter().enumerate();
        ports.filter(|(_, port)| of_topic(port.edge)).map(|(at, _)| at).collect()
    }
}

fn action_order(ordering: &Ordering<'_>, action: &Action) -> ActionOrder {
    let node = &ordering.plan.graph.nodes[ordering.node];
    let publisher = |topic: &String| node.publishers.iter().position(|one| one.topic == *topic);
    ActionOrder {
        takes: Vec::new(),
        reads: action.reads,
        computes: action.computes,
        compares: action.compares,
        sends: action.publishes.iter().filter_map(publisher).collect(),
    }
}
