//! A word on standard error while something takes unusually long.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// After so long a notice is printed, and then again each time as much has passed.
const PATIENCE: Duration = Duration::from_secs(10);

/// Does it, and meanwhile prints `still SAYING` each ten seconds.
pub(crate) fn with_notice<T>(saying: &str, it: impl FnOnce() -> T) -> T {
    notice_each(PATIENCE, |waited| eprintln!("still {saying}, for {} s now", waited.as_secs()), it)
}

fn notice_each<T>(each: Duration, notice: impl Fn(Duration) + Sync, it: impl FnOnce() -> T) -> T {
    let (done, wait) = channel::<()>();
    std::thread::scope(|scope| {
        let notice = &notice;
        scope.spawn(move || {
            let begun = Instant::now();
            // Only the end of `done` wakes it earlier.
            while wait.recv_timeout(each) == Err(RecvTimeoutError::Timeout) {
                notice(begun.elapsed());
            }
        });
        let result = it();
        drop(done);
        result
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn what_is_quick_says_nothing_and_what_is_slow_says_so_each_time() {
        let notices = AtomicU32::new(0);
        let notice = |_| {
            notices.fetch_add(1, Ordering::Relaxed);
        };
        assert_eq!(notice_each(Duration::from_secs(3_600), notice, || 7), 7);
        assert_eq!(notices.load(Ordering::Relaxed), 0);
        notice_each(Duration::from_millis(1), notice, || {
            while notices.load(Ordering::Relaxed) < 2 {
                std::thread::yield_now();
            }
        });
        assert!(notices.load(Ordering::Relaxed) >= 2);
    }

    #[test]
    fn a_panic_of_what_is_waited_for_ends_it() {
        let panicked =
            std::panic::catch_unwind(|| notice_each(Duration::from_secs(3_600), |_| {}, || panic!("x")));
        assert!(panicked.is_err());
    }
}
