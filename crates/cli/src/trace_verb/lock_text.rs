//! Waits for locks in words and a table.

use crate::measure::table::table;
use attribution::attribute::locks::shape::{EveryLock, LockSection, LockWait};
use attribution::attribute::watch::WatchSection;
use model::Run;
use report::{every_lock, format, locks};
use std::fmt::Write;

/// Locks and waits that are printed.
const LOCKS: usize = 8;
const WAITS: usize = 4;

/// Everything about locks; empty where nobody waited for one.
pub(super) fn text(run: &Run, section: &WatchSection) -> String {
    let Some(section) = &section.locks else { return String::new() };
    let every = section.every.as_ref().map(|every| every_lock(run, every)).unwrap_or_default();
    if section.locks.is_empty() && section.withheld == 0 {
        return every;
    }
    let mut text = format!("locks: {}\n", locks::account(section));
    section.worst.iter().take(WAITS).for_each(|wait| text.push_str(&story(wait)));
    text.push_str(&rows(section));
    for sentence in locks::unknown(section) {
        let _ = writeln!(text, "  {sentence}");
    }
    text + "\n" + &every
}

/// Every locking, where that was recorded.
fn every_lock(run: &Run, every: &EveryLock) -> String {
    let mut text = format!("every locking: {}\n", every_lock::account(run, every));
    let rows = every.locks.iter().take(every_lock::ROWS).map(every_lock::row);
    text.push_str(&table(&every_lock::HEAD, rows.collect()));
    let more = every.locks.len().saturating_sub(every_lock::ROWS);
    if more > 0 {
        let _ = writeln!(text, "and {more} more locks (--json lists all)");
    }
    for sentence in every_lock::signals(every) {
        let _ = writeln!(text, "  {sentence}");
    }
    text + "\n"
}

fn story(wait: &LockWait) -> String {
    let mut text = format!("  {}\n", locks::sentence(wait));
    if let Some(callers) = locks::callers(wait) {
        let _ = writeln!(text, "            {callers}");
    }
    if !wait.holders.is_empty() {
        let _ = writeln!(text, "            the holder is known {}", locks::evidence(wait));
    }
    if let Some(advice) = locks::advice(wait) {
        let _ = writeln!(text, "            remedy: {advice}");
    }
    text
}

fn rows(section: &LockSection) -> String {
    let head =
        ["lock", "kind", "waits", "median", "observed max", "waited", "held or released by", "inversions"];
    let rows = section.locks.iter().take(LOCKS).map(|lock| {
        let of = |value: Option<i64>| value.map_or_else(|| "-".to_owned(), format::ns);
        let inversions: u64 = lock.waiters.iter().map(|waiter| waiter.inversions).sum();
        vec![
            locks::which(lock.name.as_deref(), lock.word),
            lock.kind.words().to_owned(),
            format::count(lock.n),
            of(lock.waited.map(|waited| waited.median_ns)),
            of(lock.waited.map(|waited| waited.max_ns)),
            locks::names(lock.waiters.iter().map(|waiter| &waiter.thread)),
            locks::names(lock.holders.iter().map(|holder| &holder.thread)),
            format::count(inversions),
        ]
    });
    let mut text = table(&head, rows.collect());
    let more = section.locks.len().saturating_sub(LOCKS);
    if more > 0 {
        let _ = writeln!(text, "and {more} more locks (--json lists all)");
    }
    text
}
