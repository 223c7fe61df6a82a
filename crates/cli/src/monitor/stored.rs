//! What a monitor has stored: `monitor status`, `list` and `show`.

use super::Kept;
use super::keeping::explained;
use super::offences;
use super::store::{BREACHES, INDEX, INDEX_BEFORE, STATUS};
use anyhow::Context;
use clap::Args;
use journal::alone::{self, Role};
use model::monitor::{Actions, Breach, BreachKind, Explained, FILE, Fate, Status};
use model::{Error, store};
use report::breach::line;
use report::format;
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// The longest index that is read, bytes.
const MOST_INDEX: u64 = 64 << 20;

/// Arguments of `monitor status`.
#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// Where it keeps what it knows.
    #[command(flatten)]
    kept: Kept,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

/// Arguments of `monitor list`.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Where it keeps what it knows.
    #[command(flatten)]
    kept: Kept,
    /// List at most so many, the latest.
    #[arg(long, value_name = "N", default_value_t = 50)]
    last: usize,
    /// Print one JSON object per breach.
    #[arg(long)]
    json: bool,
}

/// Arguments of `monitor show`.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// Name of the breach, as monitor list gives it; `last` for the latest one that was kept.
    #[arg(value_name = "ID")]
    id: String,
    /// Where it keeps what it knows.
    #[command(flatten)]
    kept: Kept,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

/// Shows how things stand.
pub(crate) fn status(args: &StatusArgs) -> anyhow::Result<u8> {
    let dir = args.kept.path()?;
    let status: Status = store::read_json(&dir.join(STATUS))?;
    let runs = dir.parent().and_then(|state| alone::holder(state, Role::Monitor)) == Some(status.pid);
    if args.json {
        let mut all = serde_json::to_value(&status)?;
        all["runs"] = json!(runs);
        println!("{all}");
    } else {
        print!("{}", status_text(&status, runs));
    }
    Ok(0)
}

fn status_text(status: &Status, runs: bool) -> String {
    let mut text = String::new();
    let state = if runs { "runs" } else { "does not run; this is how it ended" };
    let watched = format::span(status.watched_ns);
    let over = format::ns(status.limit_ns as i64);
    let _ = writeln!(
        text,
        "monitor {state}: process {}, CPUs {} watched for {watched}, as of {}",
        status.pid, status.cpus, status.at
    );
    let _ = writeln!(text, "wake-ups of {}; longer than {over} is a breach", status.threads_watched);
    let total: u64 = status.breaches.iter().map(|row| row.count).sum();
    let fates = status.breaches.iter().map(|row| {
        let why = row.why.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
        format!("{} {} {}{why}", format::count(row.count), row.kind.name(), row.fate)
    });
    let fates: Vec<String> = fates.collect();
    let _ = match fates.as_slice() {
        [] if status.unjudged + status.lost_events > 0 => {
            writeln!(text, "breaches: none seen, but not every wake-up could be judged")
        }
        [] => writeln!(text, "breaches: none seen"),
        fates => writeln!(text, "breaches: {}: {}", format::count(total), fates.join(", ")),
    };
    let kept = format!("{} of {}", size(status.kept_bytes), size(status.quota_bytes));
    let _ = writeln!(text, "disk: {kept}; {} kept ones gave way to later ones", status.given_up);
    if let Some(Actions { done, failed, skipped }) = status.actions {
        let _ = writeln!(text, "actions: {done} done, {failed} failed, {skipped} not started");
    }
    if let Some(last) = &status.last {
        let _ = writeln!(text, "last: {}", line(last));
    }
    threads(&mut text, status);
    let more = if status.offence_sums.is_empty() { "" } else { "; stillcore monitor offences lists who" };
    let _ = writeln!(text, "{}{more}", offences::sentence(status));
    if let Some(drifted) = &status.drifted {
        let _ = match drifted.as_slice() {
            [] => writeln!(text, "isolation: holds"),
            drifted => writeln!(text, "isolation: {} settings have drifted", drifted.len()),
        };
        drifted.iter().for_each(|one| {
            let _ = writeln!(text, "  {one}");
        });
    }
    if let Some(hot) = status.throttled.as_ref().filter(|all| all.iter().any(|count| *count > 0)) {
        let all = status.cpus.iter().zip(hot).filter(|(_, count)| **count > 0);
        let all: Vec<String> = all.map(|(cpu, count)| format!("CPU {cpu} {count} times")).collect();
        let _ = writeln!(text, "slowed by heat: {}", all.join(", "));
    }
    let cost = &status.cost;
    let of_time = |ns: u64| 100.0 * ns as f64 / status.watched_ns.max(1) as f64;
    let _ = writeln!(
        text,
        "cost: {:.2} % of one CPU and {:.2} % for explaining, {} events recorded, {} of memory",
        of_time(cost.process_ns),
        of_time(cost.children_ns),
        format::count(cost.events),
        size(cost.rss_kib * 1024),
    );
    if status.lost_events > 0 || status.unjudged > 0 {
        let (lost, unjudged) = (format::count(status.lost_events), format::count(status.unjudged));
        let _ = writeln!(
            text,
            "lost: {lost} events; {unjudged} wake-ups not judged, as not all of them was recorded"
        );
    }
    status.limits.iter().for_each(|limit| {
        let _ = writeln!(text, "note: {limit}");
    });
    text
}

/// The names whose wake-ups took longest.
fn threads(text: &mut String, status: &Status) {
    const SHOWN: usize = 8;
    let mut rows: Vec<_> = status.threads.iter().collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.latency.max_ns));
    for row in rows.iter().take(SHOWN) {
        let latency = &row.latency;
        let n = latency.count();
        let mean = latency.sum_ns.checked_div(n).unwrap_or(0);
        let _ = writeln!(
            text,
            "  {:<15} CPU {:<3} {:>12} wake-ups, mean {}, observed maximum {}",
            row.comm,
            row.cpu,
            format::count(n),
            format::ns(mean as i64),
            format::ns(latency.max_ns as i64)
        );
    }
    if rows.len() > SHOWN {
        let _ = writeln!(text, "  and {} more rows (--json lists all)", rows.len() - SHOWN);
    }
}

fn size(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / 1_048_576.0)
}

/// Lists breaches.
pub(crate) fn list(args: &ListArgs) -> anyhow::Result<u8> {
    let all = index(&args.kept.path()?)?;
    let from = all.len().saturating_sub(args.last);
    let mut text = String::new();
    for breach in &all[from..] {
        if args.json {
            text += &(serde_json::to_string(breach)? + "\n");
        } else {
            text += &(line(breach) + "\n");
        }
    }
    if all.is_empty() && !args.json {
        text.push_str("no breach was seen; stillcore monitor status says what could not be judged\n");
    }
    print!("{text}");
    Ok(0)
}

/// Every breach of the index, by time; of several lines the last one.
fn index(dir: &Path) -> anyhow::Result<Vec<Breach>> {
    let mut all: BTreeMap<String, Breach> = BTreeMap::new();
    for name in [INDEX_BEFORE, INDEX] {
        let path = dir.join(name);
        if !path.exists() {
            continue;
        }
        let text = String::from_utf8_lossy(&store::read_whole(&path, MOST_INDEX)?).into_owned();
        for (number, line) in (1..).zip(text.lines()) {
            let ended = text.ends_with('\n') || number < text.lines().count();
            match serde_json::from_str::<Breach>(line) {
                Ok(breach) => drop(all.insert(breach.id.clone(), breach)),
                // A line that was being written when the power went.
                Err(_) if !ended => {}
                Err(error) => {
                    let what = format!("{}, line {number}", path.display());
                    return Err(Error::invalid(what, error, "a breach").into());
                }
            }
        }
    }
    Ok(all.into_values().collect())
}

/// Shows a breach.
pub(crate) fn show(args: &ShowArgs) -> anyhow::Result<u8> {
    let dir = args.kept.path()?;
    let all = index(&dir)?;
    let found = match args.id.as_str() {
        "last" => all.iter().rev().find(|breach| breach.fate == Fate::Kept),
        id => all.iter().find(|breach| breach.id == id),
    };
    let breach = found.with_context(|| {
        format!("{}: no such breach; stillcore monitor list names them", model::foreign::escaped(&args.id))
    })?;
    let run = dir.join(BREACHES).join(&breach.id);
    let there = run.join(FILE).exists();
    let mut breach = if there { store::read_json(&run.join(FILE))? } else { breach.clone() };
    if there && breach.explained.is_none() {
        breach.explained = Some(explained(&run, &breach)?);
    }
    if args.json {
        println!("{}", serde_json::to_string(&breach)?);
        return Ok(0);
    }
    let mut text = line(&breach) + "\n";
    if breach.times > 1 {
        let lasted = format::ns(breach.lasted_ns as i64);
        let _ = writeln!(text, "  {} times late within {lasted}; this is the worst", breach.times);
    }
    if let Some(Explained { against, .. }) = &breach.explained {
        against.iter().for_each(|one| {
            let _ = writeln!(text, "  against it: {one}");
        });
    }
    breach.changed.iter().for_each(|one| {
        let _ = writeln!(text, "  changed: {one}");
    });
    let gone = match breach.fate {
        Fate::Kept if there => None,
        Fate::Kept => Some("its recording has given way to those of later breaches"),
        _ => Some("its recording is not kept"),
    };
    if let Some(gone) = gone {
        let _ = writeln!(text, "  {gone}");
    } else {
        let run = run.display();
        let (worst, trace) = (&breach.worst, store::TRACE);
        if let Some(tid) = worst.tid.filter(|_| worst.kind != BreachKind::Interference) {
            let _ = writeln!(text, "  more: stillcore trace explain {run}/{trace} --pid {tid}");
        }
        let _ = writeln!(text, "  report: stillcore report {run}");
    }
    print!("{text}");
    Ok(0)
}
