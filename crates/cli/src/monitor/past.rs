//! What a monitor's history says: `monitor history`, day by day, and `monitor compare`, two
//! periods.

use super::{Kept, history};
use clap::Args;
use model::monitor_history::Interval;
use monitor::periods::{Pair, compare as held_against, same_question};
use report::format;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Arguments of `monitor history`.
#[derive(Debug, Args)]
pub(crate) struct HistoryArgs {
    /// Where it keeps what it knows.
    #[command(flatten)]
    kept: Kept,
    /// Show at most so many days, the latest.
    #[arg(long, value_name = "N", default_value_t = 14)]
    last: usize,
    /// Print one JSON object per stretch of time.
    #[arg(long)]
    json: bool,
}

/// Arguments of `monitor compare`.
#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// Where it keeps what it knows.
    #[command(flatten)]
    kept: Kept,
    /// So many days against so many before them.
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=366))]
    days: u32,
    /// Against the days before this time, as when something was changed: 2026-01-02T03:04:05Z
    /// [default: so many days before the end of the history].
    #[arg(long, value_name = "TIME", value_parser = time)]
    at: Option<jiff::Timestamp>,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

fn time(text: &str) -> Result<jiff::Timestamp, String> {
    text.parse().map_err(|_| format!("invalid time {text:?}: expected one such as 2026-01-02T03:04:05Z"))
}

/// Shows a history, a line a day.
pub(crate) fn history(args: &HistoryArgs) -> anyhow::Result<u8> {
    let all = read(&args.kept)?;
    let mut days = BTreeMap::<String, Vec<&Interval>>::new();
    for one in &all {
        days.entry(one.at.chars().take(10).collect()).or_default().push(one);
    }
    let shown = days.len().saturating_sub(args.last);
    let mut text = String::new();
    if !args.json {
        let _ = writeln!(
            text,
            "{:<10}  {:>9}  {:>14}  {:>8}  {:>6}  {:>14}  {:>10}  {:>10}",
            "day (UTC)", "watched", "wake-ups", "breaches", "kept", "interference", "offences", "not judged"
        );
    }
    for (day, intervals) in days.iter().skip(shown) {
        if args.json {
            for one in intervals {
                text.push_str(&serde_json::to_string(one)?);
                text.push('\n');
            }
        } else {
            text.push_str(&line(day, intervals));
        }
    }
    print!("{text}");
    Ok(0)
}

fn line(day: &str, intervals: &[&Interval]) -> String {
    let sum = |of: &dyn Fn(&Interval) -> u64| intervals.iter().map(|one| of(one)).sum::<u64>();
    let watched_ns = sum(&|one| one.watched_ns);
    let wakeups = sum(&|one| one.threads.iter().flat_map(|row| row.counts).sum());
    let late = sum(&|one| one.breaches.iter().map(|row| row.count).sum());
    let kept = sum(&|one| one.breaches.iter().filter(|row| row.fate == "kept").map(|row| row.count).sum());
    let foreign_ns = sum(&|one| one.interference.iter().map(|row| row.ns).sum());
    let cpus_ns: u64 = sum(&|one| one.watched_ns.saturating_mul(one.cpus.iter().count() as u64));
    let share = foreign_ns as f64 / cpus_ns.max(1) as f64;
    let unseen = sum(&|one| one.unjudged + one.lost_events);
    let asked = |one: &&Interval| Some(one.offences.as_ref()?.iter().map(|row| row.count).sum::<u64>());
    // Of a day on which none could be seen for a while the sum is not known.
    let asked: Option<u64> = intervals.iter().map(asked).sum();
    format!(
        "{day:<10}  {:>9}  {:>14}  {:>8}  {:>6}  {:>14}  {:>10}  {:>10}\n",
        format::span(watched_ns),
        format::count(wakeups),
        format::count(late),
        format::count(kept),
        format::share(share),
        asked.map_or_else(|| "-".to_owned(), format::count),
        format::count(unseen)
    )
}

/// The answer of `monitor compare`.
#[derive(Serialize)]
struct Compared<'a> {
    schema: &'static str,
    at: String,
    days: u32,
    /// Hours watched before and after.
    watched_ns: [u64; 2],
    kernels: [Vec<&'a str>; 2],
    /// Whether limit, CPUs and threads were the same; otherwise late threads are not compared.
    same_question: bool,
    figures: Vec<Judged>,
}

#[derive(Serialize)]
struct Judged {
    #[serde(flatten)]
    figure: Pair,
    verdict: &'static str,
}

/// Holds two periods against each other.
pub(crate) fn compare(args: &CompareArgs) -> anyhow::Result<u8> {
    let all = read(&args.kept)?;
    let days = jiff::SignedDuration::from_hours(24 * i64::from(args.days));
    let end = all.last().map(history::ended).transpose()?;
    let at = match (args.at, end) {
        (Some(at), _) => at,
        (None, Some(end)) => end.checked_sub(days)?,
        (None, None) => anyhow::bail!("the history is empty"),
    };
    let [mut earlier, mut later] = [Vec::new(), Vec::new()];
    for one in &all {
        let ended = history::ended(one)?;
        if ended <= at && ended > at.checked_sub(days)? {
            earlier.push(one.clone());
        } else if ended > at && ended <= at.checked_add(days)? {
            later.push(one.clone());
        }
    }
    let periods = [&earlier[..], &later[..]];
    let figures = held_against(periods[0], periods[1]);
    let kernels = periods.map(|all| {
        let mut kernels: Vec<&str> = all.iter().map(|one| one.kernel.as_str()).collect();
        kernels.sort_unstable();
        kernels.dedup();
        kernels
    });
    let watched_ns = periods.map(|all| all.iter().map(|one| one.watched_ns).sum());
    let judge = |figure: Pair| Judged { verdict: figure.verdict(), figure };
    let figures = figures.into_iter().map(judge).collect();
    let schema = "stillcore.monitor-compare/1";
    let compared = Compared {
        schema,
        at: at.to_string(),
        days: args.days,
        watched_ns,
        kernels,
        same_question: same_question(periods),
        figures,
    };
    if args.json {
        println!("{}", serde_json::to_string(&compared)?);
    } else {
        print!("{}", words(&compared));
    }
    Ok(0)
}

fn words(compared: &Compared<'_>) -> String {
    let Compared { at, days, watched_ns, kernels, figures, .. } = compared;
    let [before, after] = watched_ns.map(format::span);
    let days = format::plural(u64::from(*days), "day");
    let mut text = format!("{days} before {at} ({before} watched) and {days} after ({after} watched)\n");
    if kernels[0] != kernels[1] && kernels.iter().all(|all| !all.is_empty()) {
        let _ = writeln!(text, "kernel: {} before, {} after", kernels[0].join(", "), kernels[1].join(", "));
    }
    if !compared.same_question {
        text.push_str(
            "late threads are not compared: the limit, the CPUs or the threads were not the same\n",
        );
    }
    if figures.is_empty() {
        text.push_str("nothing was seen in both\n");
        return text;
    }
    let value = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.3}"));
    for Judged { figure, verdict } in figures {
        let [before, after] = figure.values.map(value);
        let by =
            figure.difference.map(|[low, high]| format!(" (by {low:+.3} to {high:+.3})")).unwrap_or_default();
        let _ = writeln!(
            text,
            "  {:<40} {before:>12} -> {after:>12} {}: {verdict}{by}",
            figure.what, figure.unit
        );
    }
    let _ = writeln!(
        text,
        "Intervals of 95 % each, hours drawn whole: of twenty rows in which nothing has changed, one says otherwise."
    );
    text
}

pub(super) fn read(kept: &Kept) -> anyhow::Result<Vec<Interval>> {
    let dir = kept.path()?;
    let all = history::read(&dir)?;
    anyhow::ensure!(
        !all.is_empty(),
        "{}: no history yet; the first line comes ten minutes after the start, or when it stops",
        dir.join(history::HISTORY).display()
    );
    Ok(all)
}
