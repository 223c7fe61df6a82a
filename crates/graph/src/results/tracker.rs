//! Late, too late and lost as ros2-performance defines them (`performance_metrics/src/tracker.cpp`,
//! 2023-12), to the letter.
//!
//! The latency is that of one hop, in whole microseconds: stamp just before `publish()` to the
//! entry of the callback. A message is too late above the smaller of an absolute bound and a share
//! of the period, and late above the same of smaller bounds, if tracking is on; by default it is
//! off there, and then nothing is classified and everything is counted. This tracker excludes what
//! those formulas exclude, which is why [`super::honest`] stands beside it. With tracking, messages
//! that are too late are in no mean and no maximum; a timer that fires late is no latency, and
//! messages lost behind the last received one are not lost.

use serde::{Deserialize, Serialize};

/// The bounds, as the command line of ros2-performance spells them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    /// Whether messages are classified at all: `--tracking` there, off by default. Without, none is
    /// late, too late or lost, and all are in the mean and the maximum.
    pub tracking: bool,
    /// Share of the period above which a message is late, percent.
    pub late_percentage: u32,
    /// Latency above which it is late in any case, µs.
    pub late_absolute_us: u32,
    /// Share of the period above which it is too late, percent.
    pub too_late_percentage: u32,
    /// Latency above which it is too late in any case, µs.
    pub too_late_absolute_us: u32,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            tracking: false,
            late_percentage: 20,
            late_absolute_us: 5_000,
            too_late_percentage: 100,
            too_late_absolute_us: 50_000,
        }
    }
}

/// The two bounds for one period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Whether messages are classified.
    pub tracking: bool,
    /// Above it a message is late, µs.
    pub late_us: u64,
    /// Above it a message is too late, and not late, µs.
    pub too_late_us: u64,
}

impl Bounds {
    /// The bounds of a message published with this period, ns. The period is taken in whole
    /// microseconds, and its share is cut to whole ones, as integer arithmetic does.
    pub fn of(&self, period_ns: u64) -> Limits {
        let share = |percentage: u32| u64::from(percentage) * (period_ns / 1_000) / 100;
        Limits {
            tracking: self.tracking,
            late_us: share(self.late_percentage).min(self.late_absolute_us.into()),
            too_late_us: share(self.too_late_percentage).min(self.too_late_absolute_us.into()),
        }
    }
}

/// What a message was found to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judged {
    /// Neither late nor too late.
    OnTime,
    /// Late.
    Late,
    /// Too late.
    TooLate,
}

/// The running statistics of one subscriber and topic.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Tracker {
    /// Messages received.
    pub received: u64,
    /// Of these, late.
    pub late: u64,
    /// Of these, too late.
    pub too_late: u64,
    /// Gaps in the numbers of received messages. Negative where messages came out of order, which
    /// the formulas do not expect.
    pub lost: i64,
    /// Latencies that the following statistics include: all but those too late.
    pub counted: u64,
    /// Their mean, µs.
    pub mean_us: f64,
    /// Sum of squared deviations from it, µs².
    squares_us2: f64,
    /// Smallest, µs.
    pub min_us: u64,
    /// Largest, µs.
    pub max_us: u64,
    /// Number expected next.
    next: u64,
}

impl Tracker {
    /// Counts a message with its number (from 0), published and received at these times, ns.
    /// Returns its classification and how many are missing before it, tracked or not.
    pub fn scan(&mut self, limits: Limits, number: u64, sent_ns: i64, received_ns: i64) -> (Judged, i64) {
        // A stamp from the future is a huge latency there: unsigned.
        let latency_us = ((received_ns - sent_ns) / 1_000) as u64;
        let lost = number as i64 - self.next as i64;
        self.next = number + 1;
        self.received += 1;
        if limits.tracking {
            self.lost += lost;
        }
        let judged = match latency_us {
            _ if !limits.tracking => Judged::OnTime,
            us if us > limits.too_late_us => Judged::TooLate,
            us if us > limits.late_us => Judged::Late,
            _ => Judged::OnTime,
        };
        match judged {
            Judged::TooLate => self.too_late += 1,
            Judged::Late => self.late += 1,
            Judged::OnTime => {}
        }
        if judged != Judged::TooLate {
            self.add(latency_us);
        }
        (judged, lost)
    }

    /// Counts what one publication took: there it is in the statistics and not among the received.
    pub fn published(&mut self, took_ns: i64) {
        self.add((took_ns / 1_000).max(0) as u64);
    }

    /// B. P. Welford, "Note on a method for calculating corrected sums of squares and products",
    /// Technometrics 4, 1962.
    fn add(&mut self, latency_us: u64) {
        self.min_us = if self.counted == 0 { latency_us } else { self.min_us.min(latency_us) };
        self.max_us = self.max_us.max(latency_us);
        self.counted += 1;
        let off = latency_us as f64 - self.mean_us;
        self.mean_us += off / self.counted as f64;
        self.squares_us2 += off * (latency_us as f64 - self.mean_us);
    }

    /// Both together, as one tracker of both would have them: T. F. Chan and others, "Updating
    /// formulae and a pairwise algorithm for computing sample variances", 1979.
    #[must_use]
    pub fn with(&self, other: &Self) -> Self {
        let counted = self.counted + other.counted;
        if counted == 0 {
            return Self { received: self.received + other.received, ..*self };
        }
        let (own, theirs) = (self.counted as f64, other.counted as f64);
        let off = other.mean_us - self.mean_us;
        let min_of = |one: &Self| if one.counted == 0 { u64::MAX } else { one.min_us };
        Self {
            received: self.received + other.received,
            late: self.late + other.late,
            too_late: self.too_late + other.too_late,
            lost: self.lost + other.lost,
            counted,
            mean_us: self.mean_us + off * theirs / (own + theirs),
            squares_us2: self.squares_us2 + other.squares_us2 + off * off * own * theirs / (own + theirs),
            min_us: min_of(self).min(min_of(other)),
            max_us: self.max_us.max(other.max_us),
            next: self.next.max(other.next),
        }
    }

    /// Standard deviation of the population, µs.
    pub fn sd_us(&self) -> f64 {
        if self.counted == 0 { 0.0 } else { (self.squares_us2 / self.counted as f64).sqrt() }
    }
}

/// The sums over all subscribers that decide whether targets are met.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Total {
    /// Messages received.
    pub received: u64,
    /// Mean latency, µs: that of each subscriber, weighted by the messages it received, including
    /// those too late.
    pub mean_us: f64,
    /// Late messages.
    pub late: u64,
    /// Too late ones.
    pub too_late: u64,
    /// Lost ones.
    pub lost: i64,
}

impl Total {
    /// The sums.
    pub fn of<'a>(trackers: impl Iterator<Item = &'a Tracker>) -> Self {
        let mut total = Self::default();
        for one in trackers {
            total.received += one.received;
            total.late += one.late;
            total.too_late += one.too_late;
            total.lost += one.lost;
            total.mean_us += one.received as f64 * one.mean_us;
        }
        total.mean_us =
            if total.received == 0 { 0.0 } else { (total.mean_us / total.received as f64).round() };
        total
    }

    /// Late messages of those received, percent.
    pub fn late_percent(&self) -> f64 {
        percent(self.late as f64, self.received as f64)
    }

    /// Too late messages of those received, percent.
    pub fn too_late_percent(&self) -> f64 {
        percent(self.too_late as f64, self.received as f64)
    }

    /// Lost messages of those received and lost, percent.
    pub fn lost_percent(&self) -> f64 {
        percent(self.lost as f64, self.received as f64 + self.lost as f64)
    }
}

fn percent(part: f64, whole: f64) -> f64 {
    if whole == 0.0 { 0.0 } else { part / whole * 100.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PERIOD_NS: u64 = 10_000_000;

    fn tracked() -> Bounds {
        Bounds { tracking: true, ..Bounds::default() }
    }

    fn limits() -> Limits {
        tracked().of(PERIOD_NS)
    }

    #[test]
    fn without_tracking_nothing_is_classified_and_everything_is_counted() {
        let limits = Bounds::default().of(PERIOD_NS);
        let mut tracker = Tracker::default();
        // The maximum of 884 ms of the replication's table VIII is one of these.
        for (number, latency_us) in [(0, 100), (1, 884_535), (5, 300)] {
            let found = tracker.scan(limits, number, 0, latency_us * 1_000);
            assert_eq!(found, (Judged::OnTime, if number == 5 { 3 } else { 0 }));
        }
        assert_eq!((tracker.late, tracker.too_late, tracker.lost), (0, 0, 0));
        assert_eq!((tracker.counted, tracker.max_us, tracker.mean_us.round()), (3, 884_535, 294_978.0));
    }

    #[test]
    fn two_publishers_on_a_topic_are_one_tracker() {
        let limits = Bounds::default().of(PERIOD_NS);
        let of = |latencies: &[i64]| {
            let mut tracker = Tracker::default();
            for (number, latency_us) in latencies.iter().enumerate() {
                tracker.scan(limits, number as u64, 0, latency_us * 1_000);
            }
            tracker
        };
        let (both, one) = (of(&[10, 30]).with(&of(&[50, 70, 90])), of(&[10, 30, 50, 70, 90]));
        assert!((both.mean_us - one.mean_us).abs() < 1e-9 && (both.sd_us() - one.sd_us()).abs() < 1e-9);
        assert_eq!((both.received, both.min_us, both.max_us), (5, 10, 90));
        assert_eq!(Tracker::default().with(&one).min_us, 10);
    }

    #[test]
    fn bounds_are_the_smaller_of_share_and_absolute() {
        // 100 Hz: 2 ms and 10 ms; 2 Hz: 5 ms and 50 ms; 15 Hz of iRobot's files (66666 us): 5 ms
        // and 50 ms; 1 kHz: 200 us and 1 ms.
        for (period_ns, late_us, too_late_us) in [
            (10_000_000, 2_000, 10_000),
            (500_000_000, 5_000, 50_000),
            (66_666_000, 5_000, 50_000),
            (1_000_000, 200, 1_000),
            (15_625_000, 3_125, 15_625),
            (1_033_000, 206, 1_033),
        ] {
            assert_eq!(
                tracked().of(period_ns),
                Limits { tracking: true, late_us, too_late_us },
                "{period_ns}"
            );
        }
    }

    #[test]
    fn a_bound_itself_is_not_late() {
        let mut tracker = Tracker::default();
        for (number, (latency_us, judged)) in [
            (2_000, Judged::OnTime),
            (2_001, Judged::Late),
            (10_000, Judged::Late),
            (10_001, Judged::TooLate),
            (0, Judged::OnTime),
        ]
        .into_iter()
        .enumerate()
        {
            let number = number as u64;
            assert_eq!(
                tracker.scan(limits(), number, 5, 5 + latency_us * 1_000),
                (judged, 0),
                "{latency_us}"
            );
        }
        assert_eq!((tracker.received, tracker.late, tracker.too_late), (5, 2, 1));
        // Too late: no statistic counts it.
        assert_eq!((tracker.counted, tracker.min_us, tracker.max_us), (4, 0, 10_000));
    }

    #[test]
    fn gaps_are_lost_and_trailing_losses_are_not() {
        let mut tracker = Tracker::default();
        let found: Vec<_> = [2, 3, 7].map(|number| tracker.scan(limits(), number, 0, 0).1).into();
        assert_eq!((found, tracker.lost), (vec![2, 0, 3], 5));
        assert!((Total::of([tracker].iter()).lost_percent() - 62.5).abs() < 1e-9);
    }

    #[test]
    fn a_stamp_from_the_future_is_too_late() {
        let mut tracker = Tracker::default();
        assert_eq!(tracker.scan(limits(), 0, 5_000_000, 0).0, Judged::TooLate);
        assert_eq!((tracker.counted, tracker.max_us), (0, 0));
    }

    #[test]
    fn the_total_weights_means_with_what_was_received() {
        let mut quick = Tracker::default();
        let mut slow = Tracker::default();
        for number in 0..3 {
            quick.scan(limits(), number, 0, 100_000);
        }
        slow.scan(limits(), 0, 0, 500_000);
        let total = Total::of([quick, slow].iter());
        assert_eq!((total.received, total.mean_us, total.late), (4, 200.0, 0));
        assert!(Total::of([].iter()).lost_percent().abs() < 1e-9);
    }

    proptest! {
        /// Mean and deviation are those of the definition, over what is not too late.
        #[test]
        fn figures_are_those_of_the_definition(latencies in proptest::collection::vec(0i64..20_000, 1..60)) {
            let mut tracker = Tracker::default();
            for (number, us) in latencies.iter().enumerate() {
                tracker.scan(limits(), number as u64, 0, us * 1_000);
            }
            let counted: Vec<f64> = latencies.iter().filter(|us| **us <= 10_000).map(|us| *us as f64).collect();
            let n = counted.len().max(1) as f64;
            let mean = counted.iter().sum::<f64>() / n;
            let sd = (counted.iter().map(|us| (us - mean).powi(2)).sum::<f64>() / n).sqrt();
            prop_assert!((tracker.mean_us - mean).abs() < 1e-6);
            prop_assert!((tracker.sd_us() - sd).abs() < 1e-6);
            prop_assert_eq!(tracker.late as usize, latencies.iter().filter(|us| (2_001..=10_000).contains(*us)).count());
            prop_assert_eq!(tracker.too_late as usize, latencies.len() - counted.len());
        }
    }
}
