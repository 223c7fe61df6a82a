//! What a run of a graph leaves besides samples: `graph.json`, the graph itself, and the result
//! files of ros2-performance.

use super::show::edge_answer;
use graph::results::accounts::Account;
use graph::results::latency::{LatencyRow, Section};
use graph::results::target::{Target, Verdict, judge};
use graph::results::tracker::{Bounds, Total, Tracker};
use graph::results::{Generation, events, latency, resources};
use graph::run::carry_out::{EdgeRun, Measured};
use graph::run::{Plan, PublisherReport};
use graph::topology::edges::EdgeKind;
use graph::topology::file;
use model::store;
use model::stressor::StressorRecord;
use serde_json::{Value, json};
use std::path::Path;

/// File of the answer, and of the graph.
pub(super) const FILE: &str = "graph.json";
const TOPOLOGY: &str = "graph.toml";

/// The results of a run.
pub(super) struct Ran {
    /// The answer in JSON.
    pub(super) answer: Value,
    /// The result of each edge.
    pub(super) edges: Vec<EdgeRun>,
    /// All of them together.
    pub(super) account: Account,
    /// By the formulas of ros2-performance.
    pub(super) total: Total,
    /// Whether messages were classified.
    pub(super) tracking: bool,
    /// Limits of the target.
    pub(super) verdicts: Vec<Verdict>,
    /// Outputs compared, and wrong.
    pub(super) outputs: [u64; 2],
    /// Releases of timers served, and missed.
    pub(super) releases: [u64; 2],
    /// CPU time of all processes, ms, and their memory at its peak, KiB.
    pub(super) used: [u64; 2],
}

/// The conditions of a run, and the options of its answer.
pub(super) struct Conditions<'a> {
    /// When a message is late.
    pub(super) bounds: Bounds,
    /// The limits to compare it with.
    pub(super) target: Option<&'a Target>,
    /// Headers of the result files.
    pub(super) generation: Generation,
    /// Length of the run.
    pub(super) seconds: f64,
    /// What disturbed it.
    pub(super) stressors: &'a [StressorRecord],
}

/// Writes all of it into the run.
pub(super) fn write(
    dir: &Path,
    plan: &Plan,
    measured: &Measured,
    conditions: &Conditions<'_>,
) -> anyhow::Result<Ran> {
    let Conditions { bounds, target, generation, seconds, .. } = *conditions;
    let graph = &plan.graph;
    store::write_whole(&dir.join(TOPOLOGY), file::write(graph)?.as_bytes())?;
    let mut rows = rows(plan, measured, seconds);
    rows.extend(publishers(plan, measured, seconds));
    let tracked = plan.edges.iter().zip(&measured.edges).filter(|(edge, _)| edge.kind != EdgeKind::Request);
    let total = Total::of(tracked.map(|(_, edge)| &edge.tracker));
    let log = dir.join(format!("{}_log", graph.name));
    std::fs::create_dir(&log).map_err(|error| model::Error::io("create", &log, error))?;
    let files = [
        ("latency_all.txt", latency::write_all(&rows, generation, seconds)),
        ("latency_total.txt", latency::write_total(&total, generation)),
        ("resources.txt", resources::write(&measured.resources, generation)),
        ("events.txt", events::write(&measured.events)),
        ("metadata.txt", metadata(plan, bounds, seconds)),
    ];
    for (name, text) in files {
        store::write_whole(&log.join(name), text.as_bytes())?;
    }
    let verdicts = target.map_or_else(Vec::new, |target| judge(target, &total, &measured.resources));
    let mut account = Account::default();
    measured.edges.iter().for_each(|edge| account += edge.account);
    let ran = Ran {
        answer: Value::Null,
        edges: measured.edges.clone(),
        account,
        total,
        tracking: bounds.tracking,
        verdicts,
        outputs: measured.outputs,
        releases: [
            measured.timers.iter().map(|timer| timer.served).sum(),
            measured.timers.iter().map(|timer| timer.missed).sum(),
        ],
        used: [
            measured.processes.iter().map(|one| one.cpu_ms).sum(),
            measured.processes.iter().map(|one| one.rss_peak_kib).sum(),
        ],
    };
    let answer = answer(dir, plan, measured, conditions, &ran);
    store::write_json(&dir.join(FILE), &answer)?;
    Ok(Ran { answer, ..ran })
}

fn answer(dir: &Path, plan: &Plan, measured: &Measured, conditions: &Conditions<'_>, ran: &Ran) -> Value {
    let graph = &plan.graph;
    let edges = plan.edges.iter().zip(&measured.edges).enumerate().map(|(number, (edge, found))| {
        let link = &plan.links[number];
        let mut row = edge_answer(graph, number, edge);
        row["period_ns"] = json!(plan.periods_ns[number]);
        row["transport"] = json!(link.kind);
        row["depth"] = json!(link.depth);
        row["when_full"] = json!(link.when_full);
        row["account"] = json!(found.account);
        row["lost"] = json!(found.account.lost());
        row["balances"] = json!(found.account.balances());
        row["latency"] = json!(found.latencies);
        row["irobot"] = json!(found.tracker);
        row["irobot"]["sd_us"] = json!(found.tracker.sd_us());
        row
    });
    let executors = graph.executors.iter().enumerate().map(|(number, one)| {
        json!({
            "executor": number,
            "name": one.name,
            "process": graph.processes[one.process].name,
            "cpus": plan.cpus[number],
            "policy": plan.policies[number],
            "threads": one.threads,
        })
    });
    let chains = graph.chains.iter().map(|chain| {
        let last = chain.topics.last();
        let edges = plan.edges.iter().zip(&measured.edges).filter(|(edge, _)| Some(&edge.topic) == last);
        let ends: Vec<_> = edges
            .map(|(edge, found)| json!({"to": graph.nodes[edge.to.node].full_name(), "latency": found.latencies.from_release}))
            .collect();
        json!({"name": chain.name, "topics": chain.topics, "ends": ends})
    });
    json!({
        "schema": "stillcore.graph-run/1",
        "run": dir,
        "graph": graph.name,
        "duration_ns": plan.options.duration_ns,
        "copies": plan.options.copies,
        "bounds": conditions.bounds,
        "stressors": conditions.stressors,
        "executors": executors.collect::<Vec<_>>(),
        "edges": edges.collect::<Vec<_>>(),
        "chains": chains.collect::<Vec<_>>(),
        "account": ran.account,
        "total": ran.total,
        "timers": measured.timers,
        "publishers": measured.publishers,
        "processes": measured.processes,
        "outputs_compared": measured.outputs[0],
        "outputs_wrong": measured.outputs[1],
        "target": ran.verdicts,
        "died": measured.died,
        "limits": measured.limits,
        "stopped_at": measured.stopped_at,
    })
}

/// A row and its tracker, by the subscriber's node and the topic.
type Named<'a> = ((usize, &'a str), (LatencyRow, Tracker));

/// Rows of `latency_all.txt`: what each subscriber received on each topic, and what each client's
/// round trips took.
fn rows(plan: &Plan, measured: &Measured, seconds: f64) -> Vec<LatencyRow> {
    let graph = &plan.graph;
    let edges = plan.edges.iter().zip(&measured.edges).zip(&plan.periods_ns);
    let mut rows: Vec<Named<'_>> = Vec::new();
    for ((edge, found), period_ns) in edges {
        let section = match edge.kind {
            EdgeKind::Topic => Section::Subscriptions,
            EdgeKind::Response => Section::Clients,
            EdgeKind::Request => continue,
        };
        let node = graph.nodes[edge.to.node].full_name();
        let topic = edge.topic.strip_suffix("/response").unwrap_or(&edge.topic);
        let freq_hz = period_ns.map_or(0.0, |ns| 1e9 / ns as f64);
        let row = |tracker: &Tracker| {
            LatencyRow::of(section, (&node, topic), edge.bytes, freq_hz, tracker, seconds)
        };
        // A subscriber has one row a topic, whoever publishes on it.
        let key = (edge.to.node, edge.topic.as_str());
        match rows.iter_mut().find(|(known, _)| *known == key) {
            Some((_, (there, tracker))) => {
                *tracker = tracker.with(&found.tracker);
                *there = row(tracker);
            }
            None => rows.push((key, (row(&found.tracker), found.tracker))),
        }
    }
    rows.into_iter().map(|(_, (row, _))| row).collect()
}

/// Rows of publishers: what their calls took. None is among the received there.
fn publishers(plan: &Plan, measured: &Measured, seconds: f64) -> Vec<LatencyRow> {
    let nodes = &plan.graph.nodes;
    let row = |report: &PublisherReport| {
        let from = nodes.iter().position(|node| node.full_name() == report.node)?;
        let mut edges = plan.edges.iter().zip(&plan.periods_ns);
        let (edge, period_ns) = edges.find(|(edge, _)| {
            edge.kind == EdgeKind::Topic && (edge.from.node, edge.from.port) == (from, report.port)
        })?;
        let freq_hz = period_ns.map_or(0.0, |ns| 1e9 / ns as f64);
        let names = (report.node.as_str(), edge.topic.as_str());
        Some(LatencyRow::of(Section::Publishers, names, edge.bytes, freq_hz, &report.took, seconds))
    };
    measured.publishers.iter().filter_map(row).collect()
}

fn metadata(plan: &Plan, bounds: Bounds, seconds: f64) -> String {
    let Bounds { tracking, late_percentage, late_absolute_us, too_late_percentage, too_late_absolute_us } =
        bounds;
    let transport = plan.options.transport.map_or("default", graph::transport::Kind::name);
    format!(
        "topology {}\nduration_s {seconds}\ntransport {transport}\ntracking {}\nlate_percentage {late_percentage}\nlate_absolute_us \
         {late_absolute_us}\ntoo_late_percentage {too_late_percentage}\ntoo_late_absolute_us {too_late_absolute_us}\nstillcore {}\n",
        plan.graph.name,
        if tracking { "on" } else { "off" },
        env!("CARGO_PKG_VERSION")
    )
}
