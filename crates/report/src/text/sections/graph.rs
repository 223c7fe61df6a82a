//! The edges of a graph: a row an edge, those with the largest maxima first.

use super::time;
use crate::text::layout::Page;
use crate::{Document, format};
use analysis::graph::GraphEdge;

/// Rows before the table is cut.
const ROWS: usize = 40;

pub(crate) fn section(page: &mut Page, document: &Document) {
    let Some(graph) = &document.analysis.graph else { return };
    page.heading(&format!("EDGES OF {}   latency from the intended release", graph.graph));
    let mut edges: Vec<&GraphEdge> = graph.edges.iter().collect();
    edges.sort_by_key(|edge| std::cmp::Reverse(edge.latency.from_release.max_ns));
    let row = |edge: &&GraphEdge| {
        let latency = &edge.latency.from_release;
        let some = |ns: i64| time((latency.n > 0).then_some(ns));
        vec![
            edge.topic.clone(),
            edge.to.clone(),
            format::count(edge.account.sent),
            format::count(edge.account.lost()),
            some(latency.p50_ns),
            time(latency.reportable_p99_ns()),
            some(latency.max_ns),
            some(edge.latency.hop.max_ns),
        ]
    };
    let head = ["topic", "to", "sent", "lost", "p50", "p99", "observed max", "hop max"];
    page.table(2, &head, &edges.iter().take(ROWS).map(row).collect::<Vec<_>>());
    if edges.len() > ROWS {
        page.item("  ", &format!("{} more edges with smaller maxima are in graph.json", edges.len() - ROWS));
    }
    for chain in &graph.chains {
        for end in &chain.ends {
            let [p50, max] =
                [end.latency.p50_ns, end.latency.max_ns].map(|ns| time((end.latency.n > 0).then_some(ns)));
            let p99 = time(end.latency.reportable_p99_ns());
            let what = format!(
                "chain {} to {}: n {}, p50 {p50}, p99 {p99}, observed max {max}",
                chain.name,
                end.to,
                format::count(end.latency.n)
            );
            page.item("  ", &what);
        }
    }
}
