//! Work on a thread of its own: it takes in batches, in order, what another thread makes.
//!
//! A batch is large enough that handing it over costs nothing beside what it holds, and small
//! enough to stay in a processor's cache. Where there is one CPU, or no thread can be had, the
//! maker does the work itself, and the result is the same.

use std::num::NonZero;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread::{Builder, JoinHandle, available_parallelism};

/// The most batches that wait; then their maker does, too.
const WAITING: usize = 4;

/// What is done with batches.
pub(crate) trait Work: Send + 'static {
    /// The result; empty by default.
    type Batch: Default + Send + 'static;

    /// Processes a batch and empties it. False if all further batches are useless.
    fn work(&mut self, batch: &mut Self::Batch) -> bool;
}

/// The work, and whether further batches are useful.
struct Done<W>(W, bool);

impl<W: Work> Done<W> {
    fn work(&mut self, batch: &mut W::Batch) -> bool {
        self.1 = self.1 && self.0.work(batch);
        self.1
    }
}

enum Where<W: Work> {
    /// On the thread of the maker.
    Here(Done<W>),
    /// On its own.
    There { full: SyncSender<W::Batch>, empty: Receiver<W::Batch>, thread: JoinHandle<Done<W>> },
}

/// Starts a thread for a piece of work; returns the work if no thread can be started.
fn start<W: Work>(work: Done<W>) -> Where<W> {
    let (full, batches) = sync_channel::<W::Batch>(WAITING);
    let (back, empty) = channel();
    let (hand, taken) = channel::<Done<W>>();
    let run = move || {
        let mut work = taken.recv().expect("whoever starts a thread hands its work over");
        while let Ok(mut batch) = batches.recv() {
            let goes_on = work.work(&mut batch);
            if !goes_on || back.send(batch).is_err() {
                break;
            }
        }
        work
    };
    let is_alone = available_parallelism().map_or(1, NonZero::get) == 1;
    let thread = if is_alone { None } else { Builder::new().spawn(run).ok() };
    let Some(thread) = thread else { return Where::Here(work) };
    match hand.send(work) {
        Ok(()) => Where::There { full, empty, thread },
        Err(unsent) => Where::Here(unsent.0),
    }
}

/// Work that is done beside its maker.
pub(crate) struct Beside<W: Work> {
    place: Option<Where<W>>,
    is_started: bool,
}

impl<W: Work> Beside<W> {
    /// Nothing is done yet: the thread is started for the first batch.
    pub(crate) fn new(work: W) -> Self {
        Self { place: Some(Where::Here(Done(work, true))), is_started: false }
    }

    /// Hands a batch over and leaves an empty one. False if all further batches are useless.
    pub(crate) fn give(&mut self, batch: &mut W::Batch) -> bool {
        if !std::mem::replace(&mut self.is_started, true)
            && let Some(Where::Here(work)) = self.place.take()
        {
            self.place = Some(start(work));
        }
        match &mut self.place {
            Some(Where::Here(work)) => work.work(batch),
            Some(Where::There { full, empty, .. }) => {
                let empty = empty.try_recv().unwrap_or_default();
                full.send(std::mem::replace(batch, empty)).is_ok()
            }
            None => false,
        }
    }

    /// Does the last batch, and waits until all is done. `None` where some of it was of no use.
    pub(crate) fn finish(self, mut last: W::Batch) -> Option<W> {
        let Done(work, useful) = match self.place? {
            Where::Here(mut work) => {
                work.work(&mut last);
                work
            }
            Where::There { full, thread, .. } => {
                // An end that is closed has its reason in what it returns.
                drop(full.send(last));
                drop(full);
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            }
        };
        useful.then_some(work)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sums all values up to the first zero.
    #[derive(Default)]
    struct Sum(Vec<u64>);

    impl Work for Sum {
        type Batch = Vec<u64>;

        fn work(&mut self, batch: &mut Vec<u64>) -> bool {
            let wanted = !batch.contains(&0);
            self.0.append(batch);
            wanted
        }
    }

    #[test]
    fn all_batches_are_worked_off_in_order() {
        let (mut beside, mut batch) = (Beside::new(Sum::default()), Vec::new());
        for one in 1..10_000 {
            batch.push(one);
            if batch.len() == 7 {
                assert!(beside.give(&mut batch));
                assert!(batch.is_empty());
            }
        }
        assert_eq!(beside.finish(batch).unwrap().0, (1..10_000).collect::<Vec<_>>());
    }

    #[test]
    fn the_maker_learns_that_nothing_more_is_wanted() {
        let mut beside = Beside::new(Sum::default());
        let tries = (0..1_000_000).find(|one| !beside.give(&mut vec![u64::from(*one < 3)]));
        assert!(tries.is_some());
        assert!(beside.finish(Vec::new()).is_none());
        assert!(Beside::new(Sum::default()).finish(vec![0]).is_none());
        assert_eq!(Beside::new(Sum::default()).finish(vec![4]).unwrap().0, [4]);
    }
}
