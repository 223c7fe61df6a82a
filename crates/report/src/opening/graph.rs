//! The opening of a communication graph: messages that arrived, the slowest edge, lateness.

use analysis::graph::GraphEdge;

use super::{Card, Opening};
use crate::{Document, format};

pub(super) fn opening(document: &Document) -> Option<Opening> {
    let graph = document.analysis.graph.as_ref()?;
    let sum = |of: fn(&GraphEdge) -> u64| graph.edges.iter().map(of).fold(0, u64::saturating_add);
    let (sent, received) = (sum(|edge| edge.account.sent), sum(|edge| edge.account.received));
    let late = sum(|edge| edge.irobot.late).saturating_add(sum(|edge| edge.irobot.too_late));
    let slowest = graph.edges.iter().filter(|edge| edge.latency.from_release.n > 0);
    let slowest = slowest.max_by_key(|edge| edge.latency.from_release.max_ns);
    let arrived = format!("{} of {} messages arrived", format::count(received), format::count(sent));
    let name = |edge: &GraphEdge| format!("{} to {}", edge.topic, edge.to);
    let sentence = match slowest {
        Some(edge) => format!(
            "{arrived}; the slowest, on {}, {} after its release.",
            name(edge),
            format::ns(edge.latency.from_release.max_ns)
        ),
        None => format!("{arrived}."),
    };
    let mut cards = Vec::new();
    if let Some(edge) = slowest {
        cards.push(Card::of_one(
            "Latency from the release, observed maximum",
            format::ns(edge.latency.from_release.max_ns),
            format!("{}; n = {}", name(edge), format::count(received)),
        ));
    }
    cards.push(Card::of_one(
        "Messages lost",
        format::count(sent.saturating_sub(received)),
        format!("of {} sent", format::count(sent)),
    ));
    cards.push(Card::of_one(
        "Messages late",
        format::count(late),
        format!("of {} received, by the limits of ros2-performance", format::count(received)),
    ));
    Some(Opening { sentence, cause: None, cards })
}
