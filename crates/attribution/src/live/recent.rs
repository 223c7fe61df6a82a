//! The last seconds: of each the sums, or the longest.

use super::view::SECONDS;
use std::collections::VecDeque;

/// One second of a row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Second {
    pub(super) count: u32,
    pub(super) ns: u64,
}

/// The seconds of a row in which there was anything: nothing has to be done for the others.
#[derive(Debug, Default)]
pub(super) struct Recent(VecDeque<(u64, Second)>);

impl Recent {
    /// The second with this number, which is the newest.
    pub(super) fn now(&mut self, now_s: u64) -> &mut Second {
        if self.at(now_s).is_none() {
            while self.0.front().is_some_and(|(at_s, _)| is_over(*at_s, now_s)) {
                self.0.pop_front();
            }
            self.0.push_back((now_s, Second::default()));
        }
        let last = self.0.len() - 1;
        &mut self.0[last].1
    }

    /// The second with this number, if it is the newest with anything in it.
    pub(super) fn at(&self, now_s: u64) -> Option<Second> {
        self.0.back().filter(|(at_s, _)| *at_s == now_s).map(|(_, second)| *second)
    }

    /// Count and time of the last minute.
    pub(super) fn sum(&self, now_s: u64) -> (u64, u64) {
        let seconds = self.0.iter().filter(|(at_s, _)| !is_over(*at_s, now_s));
        seconds.fold((0, 0), |(count, ns), (_, second)| {
            (count + u64::from(second.count), ns.saturating_add(second.ns))
        })
    }
}

fn is_over(at_s: u64, now_s: u64) -> bool {
    at_s + SECONDS as u64 <= now_s
}

/// The longest of each of the last seconds, ns.
#[derive(Debug, Default)]
pub(super) struct Longest {
    seconds: VecDeque<u64>,
}

impl Longest {
    /// An event of this second.
    pub(super) fn add(&mut self, ns: u64) {
        match self.seconds.back_mut() {
            Some(now) => *now = (*now).max(ns),
            None => self.seconds.push_back(ns),
        }
    }

    /// The next second begins.
    pub(super) fn second(&mut self) {
        if self.seconds.is_empty() {
            self.seconds.push_back(0);
        }
        if self.seconds.len() == SECONDS {
            self.seconds.pop_front();
        }
        self.seconds.push_back(0);
    }

    /// Of each second, newest last.
    pub(super) fn each(&self) -> Vec<u64> {
        self.seconds.iter().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_is_the_last_sixty_seconds_also_where_some_were_silent() {
        let mut recent = Recent::default();
        for now_s in [3, 4, 62, 63, 200] {
            let now = recent.now(now_s);
            (now.count, now.ns) = (now.count + 1, now.ns + 10);
            recent.now(now_s).count += 1;
        }
        assert_eq!(recent.sum(200), (2, 10));
        assert_eq!((recent.at(200), recent.at(201)), (Some(Second { count: 2, ns: 10 }), None));
        assert_eq!((recent.sum(259), recent.sum(260), recent.0.len()), ((2, 10), (0, 0), 1));
        let mut recent = Recent::default();
        (0..1_000).for_each(|now_s| recent.now(now_s).count += 1);
        assert_eq!((recent.sum(999), recent.sum(1_000)), ((60, 0), (59, 0)));
        assert!(recent.0.len() <= SECONDS);
    }

    #[test]
    fn the_longest_come_oldest_first() {
        let mut longest = Longest::default();
        for ns in 0..SECONDS as u64 + 3 {
            longest.add(ns);
            longest.add(1);
            longest.second();
        }
        let each = longest.each();
        assert_eq!((each.len(), each[0], each[SECONDS - 2], each[SECONDS - 1]), (SECONDS, 4, 62, 0));
    }
}
