//! Every locking of a watched program in words: the same rows on a terminal and on a page.

use crate::{format, locks};
use attribution::attribute::locks::shape::{EveryLock, FreeSignal, TakenLock};
use model::Run;
use model::foreign::in_a_line;

/// What the columns of [`row`] are.
pub const HEAD: [&str; 8] =
    ["lock", "taken", "in vain", "held, median", "p99", "observed max", "longest by", "taken by"];

/// How the events of these probes begin, and the one that is of waits.
const PROBES: &str = "stillcore:lock_";
const WORDS: &str = "words";

/// Locks that are printed.
pub const ROWS: usize = 12;

/// One lock.
pub fn row(lock: &TakenLock) -> Vec<String> {
    let time = |ns: Option<i64>| ns.map_or_else(|| "-".to_owned(), format::ns);
    let held = lock.held;
    let longest =
        lock.by.iter().filter(|by| by.held.is_some()).max_by_key(|by| by.held.map(|held| held.max_ns));
    vec![
        format!("{:#x}", lock.word),
        format::count(lock.taken),
        format::count(lock.refused),
        time(held.map(|held| held.median_ns)),
        time(held.map(|held| held.p99_ns)),
        time(held.map(|held| held.max_ns)),
        longest.map_or_else(|| "-".to_owned(), |by| locks::thread(&by.thread)),
        locks::names(lock.by.iter().map(|by| &by.thread)),
    ]
}

/// How many lockings, and what recording them has cost.
pub fn account(run: &Run, every: &EveryLock) -> String {
    let listed: u64 = every.locks.iter().map(|lock| lock.taken).sum();
    let lockings = listed.saturating_add(every.unlisted);
    let cost = match run.observer.trace_lock_ns {
        Some(ns) => format!(
            "; recording each took about {} more, {} in all, and so did those of other programs that use the same library",
            format::ns_f(ns),
            format::ns_f(ns * lockings as f64)
        ),
        None => String::new(),
    };
    let unpaired = match every.unpaired {
        0 => String::new(),
        n => format!("; {} whose other end was not recorded", format::count(n)),
    };
    let absent = run.trace.iter().filter_map(|trace| trace.watched.as_ref()).flat_map(|one| &one.absent);
    let refused: Vec<&str> =
        absent.filter_map(|event| event.strip_prefix(PROBES)).filter(|event| *event != WORDS).collect();
    let too_low = if refused.is_empty() {
        String::new()
    } else {
        format!("; the kernel refused probes ({}), so that counts are too low", refused.join(", "))
    };
    format!(
        "{} of {}{unpaired}{too_low}{cost}",
        format::plural(lockings, "locking"),
        format::plural(every.locks.len() as u64, "lock")
    )
}

/// Conditions that were signalled without the mutex of those who waited, most signals first.
pub fn signals(every: &EveryLock) -> impl Iterator<Item = String> {
    every.signals.iter().take(ROWS).map(signal)
}

fn signal(one: &FreeSignal) -> String {
    let from = one.callers.as_ref().map(|callers| format!("; from {}", in_a_line(callers)));
    let from = from.unwrap_or_default();
    format!(
        "{} signalled condition {:#x} {} without mutex {:#x}, with which {} waited for it: another thread may take the \
         mutex before them{from}",
        locks::thread(&one.thread),
        one.condition,
        format::plural(one.n, "time"),
        one.mutex,
        locks::names(one.waiters.iter())
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use attribution::attribute::locks::shape::{TakenBy, ThreadName};
    use attribution::attribute::watch::shape::Figures;

    #[test]
    fn a_lock_has_its_count_its_holds_and_who_held_it_longest() {
        let figures = |n: u64, max_ns: i64| Figures {
            n,
            min_ns: 100,
            mean_ns: 200.0,
            median_ns: 150,
            p99_ns: 900,
            max_ns,
        };
        let by = |tid: i32, comm: &str, max_ns: i64| TakenBy {
            thread: ThreadName { tid, comm: comm.to_owned(), prio: None },
            taken: 500,
            held: Some(figures(500, max_ns)),
        };
        let lock = TakenLock {
            word: 0x4c0,
            tgid: Some(7),
            taken: 1_000,
            refused: 3,
            held: Some(figures(1_000, 70_000)),
            by: vec![by(7, "main", 1_200), by(8, "log", 70_000)],
        };
        assert_eq!(row(&lock).join("|"), "0x4c0|1,000|3|150 ns|900 ns|70.00 us|log[8]|main, log");
        let every = EveryLock { locks: vec![lock], unlisted: 0, unpaired: 2, signals: Vec::new() };
        let mut run = crate::fixture::document().run;
        run.observer.trace_lock_ns = Some(13_000.0);
        assert_eq!(
            account(&run, &every),
            "1,000 lockings of 1 lock; 2 whose other end was not recorded; recording each took about 13.00 us more, 13.00 ms \
             in all, and so did those of other programs that use the same library"
        );
    }

    #[test]
    fn a_signal_without_the_mutex_has_its_threads_and_its_count() {
        let name = |tid: i32, comm: &str| ThreadName { tid, comm: comm.to_owned(), prio: None };
        let one = FreeSignal {
            condition: 0x80,
            tgid: Some(7),
            mutex: 0x10,
            thread: name(8, "control"),
            n: 40,
            first_ns: 5,
            waiters: vec![name(7, "main")],
            callers: Some("notify (robot) < main (robot)".to_owned()),
        };
        let every = EveryLock { signals: vec![one], ..EveryLock::default() };
        assert_eq!(
            signals(&every).collect::<Vec<_>>(),
            [
                "control[8] signalled condition 0x80 40 times without mutex 0x10, with which main waited for it: another thread may \
              take the mutex before them; from notify (robot) < main (robot)"
            ]
        );
    }
}
