//! An executor whose only work is a POSIX timer that sends a signal: the thread of cFS's time base,
//! which takes a signal and gives a semaphore (NASA's OSAL, `osapi-timebase`).
//!
//! The kernel sends no signal twice before it is taken, and counts the expiries in between as
//! overruns. A signal therefore stands for one release or several. The last of them is served, as
//! elsewhere, and the others are missed. Releases without a signal at the end of the run are missed
//! as well, so that served and missed are always all releases of the run.

use super::node::Node;
use crate::transport::Error;
use measure::ring::Ring;
use std::io;
use sys::clock;
use sys::timersignal::SignalTimer;

/// Serves the timer `at` of a node until `end_ns`, or until it is stopped.
pub(super) fn serve(
    signal: &SignalTimer,
    node: &mut Node,
    at: usize,
    control: &Ring,
    end_ns: i64,
) -> Result<(), Error> {
    let failed = |action| move |source: io::Error| Error::Os { link: "timer".to_owned(), action, source };
    let [first_ns, period_ns] = node.releases(at);
    signal.arm(first_ns, period_ns).map_err(failed("start"))?;
    while !control.stopped() && node.awaits(at, end_ns) {
        let waited = signal.wait(clock::now_ns() + LONGEST_SLEEP_NS);
        match waited.map_err(failed("wait for the signal of"))? {
            Some(overruns) => node.signalled(at, overruns, end_ns),
            None if clock::now_ns() >= end_ns + GRACE_NS => node.give_up(at, end_ns),
            None => {}
        }
    }
    Ok(())
}

/// How long messages are still served after the end, while their senders live, ns: a message that
/// is on its way at the end is not lost.
pub(super) const GRACE_NS: i64 = 250_000_000;

/// The longest sleep, ns: within it an executor notices that its parent wants the end.
pub(super) const LONGEST_SLEEP_NS: i64 = 100_000_000;

#[cfg(test)]
mod tests {
    use super::super::order::{ActionOrder, NodeOrder, TimerOrder};
    use super::*;
    use measure::job::Work;
    use measure::ring::BYTES;
    use sys::memory::shared_file;

    const MS: i64 = 1_000_000;

    /// What a timer of 1 ms does in 20 ms, if each release takes so much CPU time.
    fn served(busy_ns: u64) -> (u64, u64, u64) {
        let signal = SignalTimer::new().unwrap();
        let timer =
            TimerOrder { name: "t".to_owned(), period_ns: MS, offset_ns: 0, by_signal: true, action: 0 };
        let computes = Some(Work::Busy { ns: busy_ns });
        let order = NodeOrder {
            timers: vec![timer],
            actions: vec![ActionOrder { computes, ..ActionOrder::default() }],
            ..NodeOrder::default()
        };
        let mut node = Node::new(&order, None, |_| None, |_| None).unwrap();
        let control = Ring::map(&shared_file("by-signal-test", BYTES).unwrap()).unwrap();
        let start_ns = clock::now_ns();
        node.start_at(start_ns);
        serve(&signal, &mut node, 0, &control, start_ns + 20 * MS).unwrap();
        let report = node.timer_reports().next().unwrap();
        (report.served, report.missed, report.overruns.unwrap())
    }

    #[test]
    fn every_release_is_served_or_an_overrun() {
        let (few, missed, overruns) = served(1_000);
        assert_eq!((few + missed, missed), (20, overruns));
        // Several periods each: the kernel counts what it does not send.
        let (few, missed, overruns) = served(5 * MS as u64);
        assert_eq!((few + missed, missed), (20, overruns));
        assert!(few > 0 && missed > 0, "{few}");
    }

    #[test]
    fn releases_without_a_signal_are_missed() {
        let timer =
            TimerOrder { name: "t".to_owned(), period_ns: MS, offset_ns: 5 * MS, by_signal: true, action: 0 };
        let actions = vec![ActionOrder::default()];
        let order = NodeOrder { timers: vec![timer], actions, ..NodeOrder::default() };
        let mut node = Node::new(&order, None, |_| None, |_| None).unwrap();
        node.signalled(0, 2, 20 * MS);
        node.give_up(0, 20 * MS);
        // Nothing after the end is a release.
        node.signalled(0, 7, 20 * MS);
        let report = node.timer_reports().next().unwrap();
        assert_eq!((report.served, report.missed, report.overruns), (1, 14, Some(2)));
    }
}
