//! The same work on several things at once: threads take one after the other, and results come in the order of the things.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{Builder, available_parallelism, scope};

/// What `each` makes of every item, on as many threads as there are CPUs; this one is among them, and all where no other can be had.
pub fn map<T: Sync, R: Send>(items: &[T], each: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(at) else { return done };
            done.push((at, each(item)));
        }
    };
    let threads = available_parallelism().map_or(1, NonZero::get).min(items.len());
    let mut all = scope(|scope| {
        let started = (1..threads).filter_map(|_| Builder::new().spawn_scoped(scope, work).ok());
        let others: Vec<_> = started.collect();
        let mut all = work();
        for other in others {
            all.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        all
    });
    all.sort_unstable_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, made)| made).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_items() {
        let items: Vec<u64> = (0..500).collect();
        let slow_first = |item: &u64| {
            (0..(500 - item) * 20).fold(*item, |sum, k| std::hint::black_box(sum ^ k ^ k));
            item * 3
        };
        assert_eq!(map(&items, slow_first), items.iter().map(|item| item * 3).collect::<Vec<_>>());
        assert!(map(&[], slow_first).is_empty());
    }
}
