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
    let arrived = if document.run.has_ended() {
        format!("{} of {} messages arrived", format::count(received), format::count(sent))
    } else {
        format!("{} messages arrived, of how many is not known", format::count(received))
    };
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
            format!("{}; n = {}", name(edge), format::count(edge.latency.from_release.n)),
        ));
    }
    let lost = sent.saturating_sub(received);
    let note = format!("of {} sent", format::count(sent));
    cards.push(Card::of_losses(document, "Messages lost", lost, note));
    // Only with --tracking is a message classified at all, so that 0 says nothing.
    if late > 0 {
        let note = format!("of {} received, by the limits of ros2-performance", format::count(received));
        cards.push(Card::of_one("Messages late", format::count(late), note));
    }
    Some(Opening { sentence, cause: None, cards })
}
