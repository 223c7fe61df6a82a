//! Breaches: what is late at one time is one of them, however often it is; only so many are kept in
//! an hour; and every one has exactly one fate.
//!
//! What is late joins the breach that is open if it begins at most [`Limits::quiet_ns`] behind its
//! end and before it has lasted [`Limits::longest_ns`]: lateness that goes on for hours is many
//! breaches, each of a length whose events are still held. A breach is over when nothing was late
//! for that quiet time, or at its greatest length. How many are kept is limited by a bucket of
//! tokens: so many at once, and so many more an hour.

use model::monitor::{Dropped, Fate, FateCount, Late, NotRecorded};
use std::collections::BTreeMap;

/// One hour, ns.
const HOUR_NS: i64 = 3_600_000_000_000;

/// What breaches are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How long nothing may be late before a breach is over, ns.
    pub quiet_ns: i64,
    /// How long a breach may last, ns.
    pub longest_ns: i64,
    /// Breaches that are kept in an hour, in the long run.
    pub per_hour: u32,
    /// Breaches that are kept at once, after a quiet time.
    pub at_once: u32,
}

/// A breach that goes on, or is over and has no fate yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Open {
    /// When its first lateness began, CLOCK_MONOTONIC, ns.
    pub from_ns: i64,
    /// When its last one ended, ns.
    pub to_ns: i64,
    /// How often something was late.
    pub times: u64,
    /// The worst: reports of programs first, then the longest.
    pub worst: Late,
}

/// Whether the events of a breach are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Events {
    /// All of them.
    Whole,
    /// Not all of them.
    Missing(NotRecorded),
}

/// The account.
#[derive(Debug)]
pub struct Ledger {
    limits: Limits,
    open: Option<Open>,
    over: Vec<Open>,
    fates: BTreeMap<(model::monitor::BreachKind, FateKey), u64>,
    /// Tokens, in parts of an hour's nanoseconds, and when they were counted.
    tokens: i128,
    counted_ns: Option<i64>,
}

/// A fate as a key of the table.
type FateKey = (&'static str, Option<&'static str>);

impl Ledger {
    /// An empty account.
    pub fn new(limits: Limits) -> Self {
        let tokens = i128::from(limits.at_once) * i128::from(HOUR_NS);
        Self { limits, open: None, over: Vec::new(), fates: BTreeMap::new(), tokens, counted_ns: None }
    }

    /// Something was late. They may come in any order of a second or so.
    pub fn late(&mut self, late: Late) {
        let (from_ns, to_ns) = (late.t_ns, late.end_ns());
        match &mut self.open {
            Some(open) if open.joins(from_ns, to_ns, self.limits) => {
                open.from_ns = open.from_ns.min(from_ns);
                open.to_ns = open.to_ns.max(to_ns);
                open.times += 1;
                if worse(&late, &open.worst) {
                    open.worst = late;
                }
            }
            _ => {
                let new = Open { from_ns, to_ns, times: 1, worst: late };
                self.over.extend(self.open.replace(new));
            }
        }
    }

    /// Everything that was late until `now_ns` is known: takes the breaches that are over. Each is
    /// to be [ended](Ledger::end).
    pub fn over(&mut self, now_ns: i64) -> Vec<Open> {
        let is_over = |open: &Open| {
            open.to_ns.saturating_add(self.limits.quiet_ns) < now_ns
                || open.from_ns.saturating_add(self.limits.longest_ns) < now_ns
        };
        if self.open.as_ref().is_some_and(is_over) {
            self.over.extend(self.open.take());
        }
        std::mem::take(&mut self.over)
    }

    /// Watching has ended: takes what goes on.
    pub fn rest(&mut self) -> Vec<Open> {
        self.over.extend(self.open.take());
        std::mem::take(&mut self.over)
    }

    /// What is to become of a breach that is over, whose events are there or not: takes a token for
    /// one that is to be kept.
    pub fn fate(&mut self, events: Events, now_ns: i64) -> Fate {
        if let Events::Missing(why) = events {
            return Fate::NotRecorded(why);
        }
        let since_ns = now_ns - self.counted_ns.replace(now_ns).unwrap_or(now_ns);
        let most = i128::from(self.limits.at_once) * i128::from(HOUR_NS);
        let grown = i128::from(since_ns.max(0)) * i128::from(self.limits.per_hour);
        self.tokens = (self.tokens + grown).min(most);
        if self.tokens < i128::from(HOUR_NS) {
            return Fate::Dropped(Dropped::Rate);
        }
        self.tokens -= i128::from(HOUR_NS);
        Fate::Kept
    }

    /// Enters what has become of a breach. Call it once for each.
    pub fn end(&mut self, breach: &Open, fate: Fate) {
        *self.fates.entry((breach.worst.kind, (fate.name(), fate.why()))).or_default() += 1;
    }

    /// How often breaches had which fate.
    pub fn fates(&self) -> Vec<FateCount> {
        let row = |(&(kind, (fate, why)), &count): (&(model::monitor::BreachKind, FateKey), &u64)| {
            FateCount { kind, fate: fate.to_owned(), why: why.map(str::to_owned), count }
        };
        self.fates.iter().map(row).collect()
    }
}

impl Open {
    fn joins(&self, from_ns: i64, to_ns: i64, limits: Limits) -> bool {
        let near = from_ns <= self.to_ns.saturating_add(limits.quiet_ns)
            && to_ns.saturating_add(limits.quiet_ns) >= self.from_ns;
        let [first_ns, last_ns] = [self.from_ns.min(from_ns), self.to_ns.max(to_ns)];
        let begins_within = from_ns <= self.from_ns.saturating_add(limits.longest_ns);
        // One that is as long by itself is not cut.
        near && begins_within && last_ns.saturating_sub(first_ns) <= limits.longest_ns.saturating_mul(2)
    }
}

/// Whether one is worse than another.
fn worse(one: &Late, other: &Late) -> bool {
    let rank = |late: &Late| (late.kind == model::monitor::BreachKind::Reported, late.value_ns);
    rank(one) > rank(other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::monitor::BreachKind;
    use proptest::prelude::*;

    const LIMITS: Limits = Limits { quiet_ns: 100, longest_ns: 1_000, per_hour: 2, at_once: 3 };

    fn late(t_ns: i64, ns: u64) -> Late {
        let (kind, comm) = (BreachKind::Wakeup, "x".to_owned());
        Late { kind, cpu: Some(2), tid: Some(7), comm, t_ns, value_ns: Some(ns) }
    }

    #[test]
    fn what_is_late_at_one_time_is_one_breach() {
        let mut ledger = Ledger::new(LIMITS);
        [late(1_000, 50), late(1_120, 70), late(1_040, 20)].into_iter().for_each(|one| ledger.late(one));
        assert!(ledger.over(1_250).is_empty());
        let over = ledger.over(1_300);
        assert_eq!((over.len(), over[0].times, over[0].worst.t_ns), (1, 3, 1_120));
        assert_eq!([over[0].from_ns, over[0].to_ns], [1_000, 1_190]);
        ledger.late(late(5_000, 1));
        ledger.late(late(6_000, 1));
        assert_eq!(ledger.over(6_050).len(), 1);
        assert_eq!(ledger.rest().len(), 1);
    }

    #[test]
    fn lateness_that_goes_on_is_many_breaches() {
        let mut ledger = Ledger::new(LIMITS);
        (0..100).for_each(|at| ledger.late(late(at * 50, 10)));
        let over = ledger.rest();
        assert_eq!(over.iter().map(|one| one.times).sum::<u64>(), 100);
        assert!((4..=6).contains(&over.len()), "{}", over.len());
    }

    #[test]
    fn so_many_at_once_and_so_many_an_hour() {
        let mut ledger = Ledger::new(LIMITS);
        let mut kept = |now_ns| ledger.fate(Events::Whole, now_ns) == Fate::Kept;
        assert_eq!([0, 1, 2, 3].map(&mut kept), [true, true, true, false]);
        assert!(!kept(HOUR_NS / 2 - 1));
        assert!(kept(HOUR_NS / 2) && !kept(HOUR_NS / 2 + 4));
        // Tokens do not pile up.
        assert_eq!((0..9).filter(|at| kept(100 * HOUR_NS + at)).count(), 3);
    }

    #[test]
    fn what_is_not_recorded_takes_no_token() {
        let mut ledger = Ledger::new(LIMITS);
        let missing = Events::Missing(NotRecorded::Lost);
        (0..50).for_each(|at| {
            assert_eq!(ledger.fate(missing, at), Fate::NotRecorded(NotRecorded::Lost));
        });
        assert_eq!(ledger.fate(Events::Whole, 50), Fate::Kept);
    }

    proptest! {
        /// Every lateness is in one breach, every breach has one fate, however they come.
        #[test]
        fn accounts_add_up(
            steps in prop::collection::vec((0i64..400, 0u64..300, any::<bool>(), any::<bool>()), 0..200),
        ) {
            let mut ledger = Ledger::new(LIMITS);
            let (mut now, mut times, mut ended) = (0, 0, 0);
            for (step, ns, look, whole) in &steps {
                now += step;
                ledger.late(late(now, *ns));
                if *look {
                    for breach in ledger.over(now) {
                        prop_assert!(breach.to_ns - breach.from_ns <= 2 * LIMITS.longest_ns);
                        let events = if *whole { Events::Whole } else { Events::Missing(NotRecorded::Lost) };
                        let fate = ledger.fate(events, now);
                        ledger.end(&breach, fate);
                        (times, ended) = (times + breach.times, ended + 1);
                    }
                }
            }
            for breach in ledger.rest() {
                ledger.end(&breach, Fate::NotRecorded(NotRecorded::Ended));
                (times, ended) = (times + breach.times, ended + 1);
            }
            prop_assert_eq!(times, steps.len() as u64);
            prop_assert_eq!(ledger.fates().iter().map(|one| one.count).sum::<u64>(), ended);
            prop_assert!(ledger.rest().is_empty());
        }
    }
}
