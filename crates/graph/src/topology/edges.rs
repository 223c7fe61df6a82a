//! Who sends to whom: one edge per publisher and subscriber of the same topic, and two per service
//! with a client.
//!
//! A port without a match is reported and gets no edge, as DDS would have it: other type, or more
//! requested than offered.

use super::{Graph, Qos, hz};
use serde::{Deserialize, Serialize};

/// One publisher's way to one subscriber.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Edge {
    /// Resolved name of the topic, or of the service with `/request` or `/response`.
    pub topic: String,
    /// What it is.
    pub kind: EdgeKind,
    /// Who sends.
    pub from: End,
    /// Who receives.
    pub to: End,
    /// Payload, bytes.
    pub bytes: u64,
    /// Interval of the sender's own releases, ns, where it has any.
    pub period_ns: Option<u64>,
    /// What the receiver requests.
    pub qos: Qos,
}

/// What an edge carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EdgeKind {
    /// A topic's messages.
    Topic,
    /// Requests of a service.
    Request,
    /// Its responses.
    Response,
}

/// One end of an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct End {
    /// Position of the node in [`Graph::nodes`].
    pub node: usize,
    /// Position among the node's publishers, subscribers, clients or servers, according to the
    /// edge's kind.
    pub port: usize,
}

/// The edges of a graph, by publisher, and a sentence for each port without a match.
pub fn edges(graph: &Graph) -> (Vec<Edge>, Vec<String>) {
    let (mut found, mut unmatched) = (Vec::new(), Vec::new());
    topics(graph, &mut found, &mut unmatched);
    services(graph, &mut found, &mut unmatched);
    unheard(graph, &found, &mut unmatched);
    (found, unmatched)
}

fn topics(graph: &Graph, found: &mut Vec<Edge>, unmatched: &mut Vec<String>) {
    for (from, sender) in graph.nodes.iter().enumerate() {
        for (out, publisher) in sender.publishers.iter().enumerate() {
            let topic = sender.resolve(&publisher.topic);
            for (to, receiver) in graph.nodes.iter().enumerate() {
                for (port, subscriber) in receiver.subscribers.iter().enumerate() {
                    if receiver.resolve(&subscriber.topic) != topic {
                        continue;
                    }
                    let refused = subscriber.qos.refuses(&publisher.qos).map(str::to_owned);
                    let mismatch = (subscriber.message != publisher.message).then(|| {
                        format!("it expects {}, {} is published", subscriber.message, publisher.message)
                    });
                    if let Some(why) = mismatch.or(refused) {
                        let (from, to) = (sender.full_name(), receiver.full_name());
                        unmatched.push(format!("{to} hears nothing of {topic} from {from}: {why}"));
                        continue;
                    }
                    found.push(Edge {
                        topic: topic.clone(),
                        kind: EdgeKind::Topic,
                        from: End { node: from, port: out },
                        to: End { node: to, port },
                        bytes: publisher.bytes,
                        period_ns: publisher.period_ns,
                        qos: subscriber.qos,
                    });
                }
            }
        }
    }
}

fn services(graph: &Graph, found: &mut Vec<Edge>, unmatched: &mut Vec<String>) {
    for (from, asking) in graph.nodes.iter().enumerate() {
        for (port, client) in asking.clients.iter().enumerate() {
            let service = asking.resolve(&client.service);
            let servers = graph.nodes.iter().enumerate().flat_map(|(at, node)| {
                node.servers.iter().enumerate().map(move |(port, server)| (at, node, port, server))
            });
            let mut same = servers.filter(|(_, node, _, server)| {
                node.resolve(&server.service) == service && server.message == client.message
            });
            let (here, Some((at, _, answers, server))) = (End { node: from, port }, same.next()) else {
                unmatched.push(format!("nobody serves {service}, which {} asks", asking.full_name()));
                continue;
            };
            let there = End { node: at, port: answers };
            let edge = |topic, kind, from, to, bytes, qos| Edge {
                topic: format!("{service}/{topic}"),
                kind,
                from,
                to,
                bytes,
                period_ns: Some(client.period_ns),
                qos,
            };
            found.push(edge("request", EdgeKind::Request, here, there, client.bytes, server.qos));
            found.push(edge("response", EdgeKind::Response, there, here, server.bytes, client.qos));
            if let Some((_, other, _, _)) = same.next() {
                unmatched
                    .push(format!("{service} is served more than once; {} gets nothing", other.full_name()));
            }
        }
    }
}

/// Subscribers without a publisher.
fn unheard(graph: &Graph, found: &[Edge], unmatched: &mut Vec<String>) {
    for (node, receiver) in graph.nodes.iter().enumerate() {
        for (port, subscriber) in receiver.subscribers.iter().enumerate() {
            let topic = receiver.resolve(&subscriber.topic);
            let heard =
                found.iter().any(|edge| edge.kind == EdgeKind::Topic && edge.to == End { node, port });
            let published =
                graph.publishers().any(|(sender, publisher)| sender.resolve(&publisher.topic) == topic);
            if !heard && !published {
                unmatched
                    .push(format!("nobody publishes {topic}, which {} subscribes to", receiver.full_name()));
            }
        }
    }
}

/// What a graph moves.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Counts {
    /// Processes.
    pub processes: usize,
    /// Nodes.
    pub nodes: usize,
    /// Executors.
    pub executors: usize,
    /// Publishers.
    pub publishers: usize,
    /// Different topics that are published.
    pub topics: usize,
    /// Subscribers.
    pub subscribers: usize,
    /// Clients.
    pub clients: usize,
    /// Servers.
    pub servers: usize,
    /// Edges.
    pub edges: usize,
    /// Messages that publishers' own timers publish a second.
    pub publishes_hz: f64,
    /// Of these, messages that arrive per second: one for each subscriber.
    pub deliveries_hz: f64,
    /// Their payload, bytes a second.
    pub delivered_bytes_hz: f64,
}

/// Counts a graph and its edges.
pub fn counts(graph: &Graph, edges: &[Edge]) -> Counts {
    let mut topics: Vec<_> =
        graph.publishers().map(|(node, publisher)| node.resolve(&publisher.topic)).collect();
    topics.sort_unstable();
    topics.dedup();
    let timed = edges.iter().filter(|edge| edge.kind == EdgeKind::Topic);
    let timed: Vec<_> = timed.filter_map(|edge| Some((edge.bytes, hz(edge.period_ns?)))).collect();
    let sum = |of: fn(&super::Node) -> usize| graph.nodes.iter().map(of).sum();
    // The empty sum of floats is -0.
    let total = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, |sum, one| sum + one);
    Counts {
        processes: graph.processes.len(),
        nodes: graph.nodes.len(),
        executors: graph.executors.len(),
        publishers: sum(|node| node.publishers.len()),
        topics: topics.len(),
        subscribers: sum(|node| node.subscribers.len()),
        clients: sum(|node| node.clients.len()),
        servers: sum(|node| node.servers.len()),
        edges: edges.len(),
        publishes_hz: total(&mut graph.publishers().filter_map(|(_, one)| one.period_ns).map(hz)),
        deliveries_hz: total(&mut timed.iter().map(|(_, rate)| *rate)),
        delivered_bytes_hz: total(&mut timed.iter().map(|(bytes, rate)| *bytes as f64 * rate)),
    }
}
