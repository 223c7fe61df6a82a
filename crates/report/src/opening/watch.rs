//! The opening of a program that was watched: its latest start, and where its time went.

use attribution::attribute::watch::shape::{ThreadSection, Times};

use super::{Card, Opening};
use crate::{Document, format, locks};

pub(super) fn opening(document: &Document) -> Option<Opening> {
    let watch = document.analysis.watch.as_ref()?;
    let latency = |one: &ThreadSection| one.run_latency.map(|figures| figures.max_ns);
    let worst = watch.threads.iter().filter_map(|one| Some((latency(one)?, one))).max_by_key(|(ns, _)| *ns);
    let threads = format::plural(watch.threads.len() as u64, "thread");
    let sentence = match worst {
        Some((most_ns, one)) => format!(
            "Of {threads}, {} waited longest for a CPU after a wake-up: {}.",
            one.comm,
            format::ns(most_ns)
        ),
        None => format!("{threads} watched; no wake-up was seen."),
    };
    let inverted = watch.locks.as_ref().and_then(locks::first);
    let sentence = inverted.map_or(sentence, |wait| {
        let remedy = locks::advice(wait).map(|advice| format!(" Remedy: {advice}.")).unwrap_or_default();
        format!("{}.{remedy}", locks::sentence(wait))
    });
    let mut cards = Vec::new();
    if let (Some(wait), Some(section)) = (inverted, &watch.locks) {
        let waits: u64 = section.locks.iter().map(|lock| lock.n).sum();
        let (what, n) = match locks::inversions(section) {
            (0, n) if n > 0 => ("Waits with priority inversion, if for a lock", n),
            (n, _) => ("Waits for a lock with priority inversion", n),
        };
        cards.push(Card::of_one(
            what,
            format::count(n),
            format!("of {} for {}", format::count(waits), format::plural(section.locks.len() as u64, "lock")),
        ));
        let waited_ns = wait.t1_ns.saturating_sub(wait.t0_ns);
        cards.push(Card::of_one("The worst of them", format::ns(waited_ns), wait.waiter.comm.clone()));
    }
    if let Some((most_ns, one)) = worst {
        let n = one.run_latency.map_or(0, |figures| figures.n);
        cards.push(Card::of_one(
            "From the wake-up to running, observed maximum",
            format::ns(most_ns),
            format!("{}; n = {}", one.comm, format::count(n)),
        ));
    }
    let sum =
        |of: fn(&Times) -> u64| watch.threads.iter().map(|one| of(&one.times)).fold(0, u64::saturating_add);
    let ran = sum(|times| times.on_cpu_ns);
    let time = |what: &str, ns: u64| {
        Card::of_one(
            what,
            format::ns(ns as i64),
            format!("all threads; on a CPU: {}", format::ns(ran as i64)),
        )
    };
    if inverted.is_some() {
        return Some(Opening { sentence, cause: None, cards });
    }
    cards.push(time("Woken and waiting for a CPU", sum(|times| times.waiting_ns)));
    cards.push(time("Preempted", sum(|times| times.preempted_ns)));
    Some(Opening { sentence, cause: None, cards })
}
