//! How often a setting is set again: a program that sets it otherwise each time is not fought.
//!
//! Time is whatever the caller counts, so that a day passes in a test at once.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

/// What to do about a setting that has drifted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Set it again.
    Heal,
    /// It was set again so often that it is left from now on.
    GiveUp,
    /// It is left already.
    Left,
}

/// How often each was set again lately.
#[derive(Debug)]
pub struct Pace {
    /// So often within the window.
    most: usize,
    window: Duration,
    times: BTreeMap<String, VecDeque<Duration>>,
    left: BTreeSet<String>,
}

impl Pace {
    /// At most `most` times in each `window`.
    pub fn new(most: usize, window: Duration) -> Self {
        Self { most, window, times: BTreeMap::new(), left: BTreeSet::new() }
    }

    /// Asks for one more time, `now` after the beginning. Each answer [`Answer::Heal`] counts.
    pub fn ask(&mut self, target: &str, now: Duration) -> Answer {
        if self.left.contains(target) {
            return Answer::Left;
        }
        self.forget(now);
        let times = self.times.entry(target.to_owned()).or_default();
        if times.len() >= self.most {
            self.times.remove(target);
            self.left.insert(target.to_owned());
            return Answer::GiveUp;
        }
        times.push_back(now);
        Answer::Heal
    }

    /// Those that are left.
    pub fn left(&self) -> &BTreeSet<String> {
        &self.left
    }

    /// How often each is set again within the window at most, and the window.
    pub fn bound(&self) -> (usize, Duration) {
        (self.most, self.window)
    }

    /// Drops what is older than the window: tasks and interrupts come and go for as long as a
    /// machine runs.
    fn forget(&mut self, now: Duration) {
        let window = self.window;
        self.times.retain(|_, times| {
            while times.front().is_some_and(|time| *time + window <= now) {
                times.pop_front();
            }
            !times.is_empty()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::Answer::{GiveUp, Heal, Left};
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_fight_ends_and_what_happens_now_and_then_does_not() {
        let mut pace = Pace::new(3, 60 * SECOND);
        for hour in 0..100 {
            assert_eq!(pace.ask("now and then", hour * 3600 * SECOND), Heal);
        }
        let begin = 1_000_000 * SECOND;
        let asked: Vec<_> = (0..5).map(|second| pace.ask("fought", begin + second * SECOND)).collect();
        assert_eq!(asked, [Heal, Heal, Heal, GiveUp, Left]);
        assert_eq!(pace.ask("fought", begin + 86_400 * SECOND), Left, "as long as it runs");
        assert_eq!(pace.ask("another", begin + 5 * SECOND), Heal);
        assert_eq!(pace.left().iter().collect::<Vec<_>>(), ["fought"]);
    }

    #[test]
    fn what_is_past_takes_no_memory() {
        let mut pace = Pace::new(3, 60 * SECOND);
        for number in 0..10_000u32 {
            pace.ask(&format!("task {number}"), number * SECOND);
        }
        assert!(pace.times.len() <= 60, "{}", pace.times.len());
    }
}
