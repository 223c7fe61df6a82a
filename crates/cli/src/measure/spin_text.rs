//! What `measure spin` prints: the gaps, who took the time, buckets, and samples over the
//! threshold.

use super::carry_out::Outcome;
use super::contexts;
use super::table::{found, quantile, table, threads, time};
use analysis::buckets::Buckets;
use analysis::noise_causes::Totals;
use model::run::{Budget, ProbeRecord};
use report::{Thieves, format};
use std::fmt::Write;

/// The summary. `buckets`: one per thread, if the user asked for them.
pub(super) fn text(outcome: &Outcome, buckets: &[Buckets]) -> String {
    let rows = threads(outcome).map(|(record, figures)| {
        let stolen = figures.stolen.as_ref();
        let (iterations, spin_ns) = record.noise().map_or((0, 0), |noise| (noise.iterations, noise.spin_ns));
        let turn = spin_ns as f64 / iterations.max(1) as f64;
        vec![
            record.cpu.to_string(),
            format::count(iterations),
            format!("{turn:.1} ns"),
            format::count(figures.n),
            stolen.map_or_else(String::new, |stolen| format::share(stolen.share)),
            time(quantile(&figures.quantiles, 0.5)),
            time(quantile(&figures.quantiles, 0.99)),
            time(figures.observed_max_ns),
        ]
    });
    let mut text = outcome.document.run.probes.first().map_or_else(String::new, header);
    let head = ["CPU", "turns", "a turn", "gaps", "stolen", "p50", "p99", "observed max"];
    text += &table(&head, rows.collect());
    text += &causes(outcome);
    text += &histogram(outcome, buckets);
    text += &contexts::text(outcome);
    text + &found(outcome)
}

/// What was run, and with which counter.
fn header(record: &ProbeRecord) -> String {
    let mut text = format!(
        "noise: gaps of a busy loop of {} and longer; {} {}\n",
        time(record.noise().map(|noise| noise.threshold_ns as i64)),
        record.policy_effective.name,
        record.policy_effective.priority,
    );
    if record.policy_effective.priority > 0 {
        text += "ordinary tasks wait while a real-time loop runs: what they would take shows with --policy other\n";
    }
    let Some(noise) = record.noise().and_then(|noise| noise.noise.as_ref()) else { return text };
    let cost = |name: &str| noise.read_ns.get(name).map_or_else(|| "-".to_owned(), |ns| format::ns_f(*ns));
    let others = noise.read_ns.keys().filter(|name| **name != record.counter);
    let others: Vec<_> = others.map(|name| format!("{name} {}", cost(name))).collect();
    let _ = writeln!(
        text,
        "counter {}, {} a read (not taken: {})",
        record.counter,
        cost(&record.counter),
        others.join(", ")
    );
    if noise.bias_ns > 0 {
        let _ = writeln!(text, "every gap less {} ns, the smallest turn of the loop", noise.bias_ns);
    }
    text
}

/// Who took the time, one row per source; below it the totals of the counters.
fn causes(outcome: &Outcome) -> String {
    let all = &outcome.document.analysis.noise_causes;
    let rows: Vec<_> = report::thieves(&outcome.document).iter().map(row).collect();
    let mut text = String::new();
    if !rows.is_empty() {
        text += "\nwho took the time\n";
        text += &table(&["CPU", "cause", "times", "together", "longest", "how sure"], rows);
    }
    for (one, record) in
        all.iter().zip(outcome.document.run.probes.iter().filter(|record| record.noise().is_some()))
    {
        let _ = writeln!(text, "CPU {}: {}", one.cpu, of_thread(&one.counted));
        let _ = writeln!(text, "  {}", of_cpu(&one.counted));
        text += &by_design(record);
    }
    text + "\n"
}

fn row(one: &Thieves) -> Vec<String> {
    vec![
        one.cpu.to_string(),
        one.cause.clone(),
        format::count(one.times),
        one.range_words(),
        format::ns(one.max_ns as i64),
        one.sure.to_owned(),
    ]
}

fn of_thread(totals: &Totals) -> String {
    format!(
        "ready but not running {}, switched away {} times, page faults {}, charged to nobody {}",
        length(totals.run_delay_ns),
        count(totals.involuntary),
        count(totals.page_faults),
        length(totals.not_charged_ns),
    )
}

fn of_cpu(totals: &Totals) -> String {
    format!(
        "interrupts {}, softirqs {}, steal time {}",
        count(totals.interrupts),
        count(totals.softirqs),
        length(totals.steal_ns)
    )
}

fn length(ns: Option<u64>) -> String {
    time(ns.map(|ns| ns as i64))
}

fn count(count: Option<u64>) -> String {
    count.map_or_else(|| "-".to_owned(), format::count)
}

/// What may take the CPU by design, and whether SMIs were counted.
fn by_design(record: &ProbeRecord) -> String {
    let Some(noise) = record.noise().and_then(|noise| noise.noise.as_ref()) else { return String::new() };
    let budget = |budget: Option<Budget>| match budget {
        None => "off".to_owned(),
        Some(budget) => format!(
            "{} in {}{}",
            format::ns(budget.runtime_ns as i64),
            format::ns(budget.period_ns as i64),
            if budget.assumed { " (assumed)" } else { "" }
        ),
    };
    format!(
        "  RT throttling: {}; fair server: {}\n  SMIs: {}\n",
        budget(noise.throttling),
        budget(noise.fair_server),
        noise.smi
    )
}

/// The buckets that are not empty, one column per CPU.
fn histogram(outcome: &Outcome, buckets: &[Buckets]) -> String {
    let Some(first) = buckets.first() else { return String::new() };
    let cpus = outcome.document.run.probes.iter().map(|record| format!("CPU {}", record.cpu));
    let head: Vec<String> = std::iter::once("from".to_owned()).chain(cpus).collect();
    let full = (0..first.counts.len()).filter(|&at| buckets.iter().any(|one| one.counts[at] > 0));
    let row = |label: String, count: &dyn Fn(&Buckets) -> u64| {
        std::iter::once(label).chain(buckets.iter().map(|one| format::count(count(one)))).collect()
    };
    let mut rows: Vec<Vec<String>> =
        full.map(|at| row(format::ns(at as i64 * first.width_ns as i64), &|one| one.counts[at])).collect();
    let over_ns = first.counts.len() as i64 * first.width_ns as i64;
    rows.push(row(format!("{} and over", format::ns(over_ns)), &|one| one.over));
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    let text = format!(
        "gaps in {} buckets of {}; those without any are left out\n",
        first.counts.len(),
        format::ns(first.width_ns as i64)
    );
    text + &table(&head, rows) + "\n"
}
