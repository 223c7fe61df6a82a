//! What `graph run` prints: one row per edge, the accounts, what the target says.

use super::answer::Ran;
use super::judge::verdict_table;
use crate::measure::carry_out::Outcome;
use crate::measure::table::{found, table};
use graph::results::honest::Spread;
use graph::run::Plan;
use report::format;
use std::fmt::Write;

/// Edges that are shown where there are many: those with the largest latencies. All are in
/// `graph.json`.
const SHOWN: usize = 40;

/// The summary.
pub(super) fn text(plan: &Plan, ran: &Ran, outcome: &Outcome) -> String {
    let graph = &plan.graph;
    let policies: std::collections::BTreeSet<_> = outcome
        .document
        .run
        .probes
        .iter()
        .map(|probe| format!("{} {}", probe.policy_effective.name, probe.policy_effective.priority))
        .collect();
    let mut text = format!(
        "{}: {} on CPUs {}, {}; latency from the intended release\n\n",
        graph.name,
        format::plural(graph.executors.len() as u64, "executor"),
        plan.all_cpus(),
        policies.into_iter().collect::<Vec<_>>().join(", "),
    );
    let mut order: Vec<_> = (0..ran.edges.len()).collect();
    let worst = |edge: &usize| ran.edges[*edge].latencies.from_release.max_ns;
    if order.len() > SHOWN {
        order.sort_by_key(|edge| std::cmp::Reverse(worst(edge)));
        order.truncate(SHOWN);
    }
    let rows = order.iter().map(|&edge| row(plan, ran, edge)).collect();
    text += &table(
        &["topic", "to", "by", "sent", "lost", "p50", "p99", "observed max", "hop max", "late", "too late"],
        rows,
    );
    if ran.edges.len() > SHOWN {
        let left_out = ran.edges.len() - SHOWN;
        let _ = writeln!(text, "{left_out} more edges with smaller maxima are in graph.json");
    }
    text.push('\n');
    for chain in &graph.chains {
        let last = chain.topics.last();
        let ends = plan.edges.iter().zip(&ran.edges).filter(|(edge, _)| Some(&edge.topic) == last);
        for (edge, found) in ends {
            let to = graph.nodes[edge.to.node].full_name();
            let _ = writeln!(text, "chain {} to {to}: {}", chain.name, spread(&found.latencies.from_release));
        }
    }
    text += &accounts(ran);
    text += &verdict_text(ran);
    text + &found(outcome)
}

fn row(plan: &Plan, ran: &Ran, at: usize) -> Vec<String> {
    let (edge, found) = (&plan.edges[at], &ran.edges[at]);
    let honest = &found.latencies.from_release;
    let time = |ns: i64| if honest.n == 0 { "-".to_owned() } else { format::ns(ns) };
    vec![
        edge.topic.clone(),
        plan.graph.nodes[edge.to.node].full_name(),
        plan.links[at].kind.to_string(),
        format::count(found.account.sent),
        format::count(found.account.lost()),
        time(honest.p50_ns),
        time(honest.p99_ns),
        time(honest.max_ns),
        time(found.latencies.hop.max_ns),
        classified(ran, found.tracker.late),
        classified(ran, found.tracker.too_late),
    ]
}

fn spread(spread: &Spread) -> String {
    let Spread { n, p50_ns, p99_ns, max_ns, .. } = *spread;
    let [p50, p99, max] = [p50_ns, p99_ns, max_ns].map(format::ns);
    format!("n {}, p50 {p50}, p99 {p99}, observed max {max}", format::count(n))
}

/// Where all messages went.
fn accounts(ran: &Ran) -> String {
    let all = &ran.account;
    let wheres = [
        ("refused by a full link", all.refused),
        ("replaced by newer ones", all.replaced),
        ("left in a link at the end", all.left),
        ("vanished with a killed process or in the kernel", all.vanished),
        ("received and not stored", all.unstored),
    ];
    let losses: Vec<_> = wheres
        .iter()
        .filter(|(_, n)| *n > 0)
        .map(|(what, n)| format!("{} {what}", format::count(*n)))
        .collect();
    let breakdown = if losses.is_empty() { String::new() } else { format!(" ({})", losses.join(", ")) };
    let count = format::count;
    let mut text = format!(
        "messages: sent {} = received {} + lost {}{breakdown}\n",
        count(all.sent),
        count(all.received),
        count(all.lost())
    );
    if !all.balances() {
        text += "THE ACCOUNT DOES NOT BALANCE\n";
    }
    let [served, missed] = ran.releases;
    let _ = writeln!(text, "releases of timers: {} served, {} missed", count(served), count(missed));
    let [cpu_ms, kib] = ran.used;
    let _ = writeln!(text, "processes: {cpu_ms} ms of CPU time, {} of memory at most", format::kib(kib));
    let [compared, wrong] = ran.outputs;
    if compared > 0 {
        let _ = writeln!(
            text,
            "outputs: {} compared with the expected ones, {} wrong",
            count(compared),
            count(wrong)
        );
    }
    let total = &ran.total;
    let _ = if ran.tracking {
        writeln!(
            text,
            "by ros2-performance's formulas: late {:.3} %, too late {:.3} %, lost {:.3} %, mean {:.0} us",
            total.late_percent(),
            total.too_late_percent(),
            total.lost_percent(),
            total.mean_us
        )
    } else {
        writeln!(text, "by ros2-performance's formulas, without tracking: mean {:.0} us", total.mean_us)
    };
    text
}

/// A number of late messages; none where nothing was classified.
fn classified(ran: &Ran, count: u64) -> String {
    if ran.tracking { format::count(count) } else { "-".to_owned() }
}

fn verdict_text(ran: &Ran) -> String {
    if ran.verdicts.is_empty() { String::new() } else { format!("\n{}\n", verdict_table(&ran.verdicts)) }
}
