//! The edges of a graph: their latencies under each other, and a row an edge with where everything
//! went.

use analysis::graph::{EdgeSpread, GraphEdge, GraphSection};
use minijinja::{Value, context};

use super::chart;
use super::plot::rooms;
use crate::svg::{Room, Spread, spread};
use crate::{Document, format};

/// Edges of the chart: of more, those with the largest maxima.
const DRAWN: usize = 24;
/// Rows of the table, likewise.
const ROWS: usize = 120;

pub(super) fn figures(document: &Document) -> Value {
    let none = GraphSection::default();
    let graph = document.analysis.graph.as_ref().unwrap_or(&none);
    let mut edges: Vec<&GraphEdge> = graph.edges.iter().collect();
    edges.sort_by_key(|edge| std::cmp::Reverse(edge.latency.from_release.max_ns));
    let sum = |of: fn(&GraphEdge) -> u64| graph.edges.iter().map(of).fold(0, u64::saturating_add);
    context! {
        graph => graph.graph.as_str(),
        chart => drawn(&edges),
        undrawn => edges.iter().filter(|edge| edge.latency.from_release.n > 0).count().saturating_sub(DRAWN),
        sent => sum(|edge| edge.account.sent),
        received => sum(|edge| edge.account.received),
        lost => sum(|edge| edge.account.lost()),
        places => places(graph),
        rows => edges.iter().take(ROWS).map(|edge| row(edge)).collect::<Vec<_>>(),
        left_out => edges.len().saturating_sub(ROWS),
        chains => graph.chains.iter().flat_map(|chain| {
            chain.ends.iter().map(|end| context! {
                name => chain.name.as_str(), topics => chain.topics.join(", "), to => end.to.as_str(),
                latency => times(&end.latency),
            })
        }).collect::<Vec<_>>(),
        died => graph.died.clone(),
    }
}

/// The edges with the largest maxima.
pub(super) fn opening(document: &Document) -> Value {
    const EDGES: usize = 12;
    let Some(graph) = &document.analysis.graph else { return Value::UNDEFINED };
    let mut edges: Vec<&GraphEdge> = graph.edges.iter().collect();
    edges.sort_by_key(|edge| std::cmp::Reverse(edge.latency.from_release.max_ns));
    edges.truncate(EDGES);
    let caption = "Latency from the intended release: from the least to the observed maximum, a dot at the \
                   median, a bar to the 99th percentile; slowest edges first.";
    let draw = |room| latencies(if room == Room::Desk { "og" } else { "ogh" }, &edges, room);
    rooms(draw, caption.to_owned())
}

/// From the least to the largest, most severe first.
fn drawn(edges: &[&GraphEdge]) -> Value {
    chart(latencies("gr", edges, Room::Desk))
}

fn latencies(id: &str, edges: &[&GraphEdge], room: Room) -> Option<String> {
    let bar = |edge: &&&GraphEdge| {
        let spread = edge.latency.from_release;
        let EdgeSpread { n, min_ns, p50_ns, max_ns, .. } = spread;
        (n > 0).then(|| Spread {
            label: format!("{} to {}", edge.topic, edge.to),
            min_ns,
            median_ns: p50_ns,
            p99_ns: spread.reportable_p99_ns(),
            max_ns,
            calculated_ns: None,
            deadline_ns: None,
        })
    };
    let bars: Vec<Spread> = edges.iter().take(DRAWN).filter_map(|edge| bar(&edge)).collect();
    spread(id, "Latency of the edges", "latency from the intended release", &bars, room)
}

/// Where messages were lost: only places that have any.
fn places(graph: &GraphSection) -> String {
    type Part = fn(&GraphEdge) -> u64;
    let all: [(&str, Part); 5] = [
        ("refused by a full link", |edge| edge.account.refused),
        ("replaced by newer ones", |edge| edge.account.replaced),
        ("left in a link at the end", |edge| edge.account.left),
        ("vanished with a killed process or in the kernel", |edge| edge.account.vanished),
        ("received and not stored", |edge| edge.account.unstored),
    ];
    let counts = all.iter().filter_map(|(what, of)| {
        let n: u64 = graph.edges.iter().map(of).sum();
        (n > 0).then(|| format!("{} {what}", format::count(n)))
    });
    counts.collect::<Vec<_>>().join(", ")
}

fn row(edge: &GraphEdge) -> Value {
    context! {
        topic => edge.topic.as_str(), from => edge.from.as_str(), to => edge.to.as_str(),
        transport => edge.transport.as_str(), bytes => format::size(edge.bytes),
        period_ns => edge.period_ns, sent => edge.account.sent, received => edge.account.received,
        lost => edge.account.lost(), late => edge.irobot.late, too_late => edge.irobot.too_late,
        latency => times(&edge.latency.from_release), hop => times(&edge.latency.hop),
    }
}

/// Latencies; none for an edge that received nothing.
fn times(spread: &EdgeSpread) -> Value {
    let some = |ns: i64| (spread.n > 0).then_some(ns);
    context! { n => spread.n, p50_ns => some(spread.p50_ns), p99_ns => spread.reportable_p99_ns(), max_ns => some(spread.max_ns) }
}
