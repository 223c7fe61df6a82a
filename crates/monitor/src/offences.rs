//! Offences: what tasks on other CPUs ask for that then runs on a watched one, whether or not
//! anything was late. A bounded number of callers, with exact counts since each was first seen.
//!
//! These are not metrics ([`crate::rows`]): who called once a week is what one wants to know of, so
//! one call is enough for a row. When all are taken, the one with the fewest calls makes room, of
//! several the one that was not seen for longest, and what it had is added to the others. A program
//! that runs under thousands of names takes the place of those with as few calls as it has under
//! one name.

use model::{Cpus, EventClass};
use std::collections::{BTreeMap, HashMap};

/// Who called what.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Call {
    /// Class of what ran.
    pub class: EventClass,
    /// What ran.
    pub what: String,
    /// The task that asked for it.
    pub who: String,
    /// Its container, service or control group, where one was seen.
    pub group: Option<String>,
    /// What it was in the kernel for, else the kernel function that asked; none where neither is
    /// known.
    pub call: Option<String>,
    /// How it is known that it was this one: `exact`, `by-order`.
    pub confidence: &'static str,
}

/// How often, and how it went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Calls {
    /// The watched CPUs on which it ran.
    pub cpus: Cpus,
    /// Events.
    pub count: u64,
    /// Their time, ns.
    pub ns: u64,
    /// When it was first seen, and last, in the clock of who adds.
    pub since_ns: i64,
    /// As above.
    pub last_ns: i64,
}

/// The callers.
#[derive(Debug)]
pub struct Offences {
    most: usize,
    calls: HashMap<Call, Calls>,
    /// Events of those that made room, and their time, ns.
    others: [u64; 2],
    by_class: BTreeMap<EventClass, [u64; 2]>,
    unnamed: u64,
}

impl Offences {
    /// At most so many callers.
    pub fn new(most: usize) -> Self {
        Self {
            most: most.max(1),
            calls: HashMap::new(),
            others: [0; 2],
            by_class: BTreeMap::new(),
            unnamed: 0,
        }
    }

    /// Adds events that somebody has asked for, and it is not known who.
    pub fn add_unnamed(&mut self, count: u64) {
        self.unnamed = self.unnamed.saturating_add(count);
    }

    /// Events of which it is not known who asked for them: in no row and no class.
    pub fn unnamed(&self) -> u64 {
        self.unnamed
    }

    /// Adds `count` events of `ns` together, on one CPU.
    pub fn add(&mut self, call: Call, cpu: u32, [count, ns]: [u64; 2], now_ns: i64) {
        add(self.by_class.entry(call.class).or_default(), [count, ns]);
        if self.calls.len() >= self.most && !self.calls.contains_key(&call) {
            self.make_room();
        }
        let begun = || Calls { cpus: Cpus::default(), count: 0, ns: 0, since_ns: now_ns, last_ns: now_ns };
        let calls = self.calls.entry(call).or_insert_with(begun);
        calls.cpus = calls.cpus.or(&Cpus::one(cpu));
        calls.count = calls.count.saturating_add(count);
        calls.ns = calls.ns.saturating_add(ns);
        calls.last_ns = now_ns;
    }

    fn make_room(&mut self) {
        let least = self.calls.iter().min_by_key(|(call, calls)| (calls.count, calls.last_ns, *call));
        let Some((call, Calls { count, ns, .. })) = least else { return };
        let call = call.clone();
        add(&mut self.others, [*count, *ns]);
        self.calls.remove(&call);
    }

    /// The callers, those with the most events first.
    pub fn all(&self) -> Vec<(&Call, &Calls)> {
        let mut all: Vec<_> = self.calls.iter().collect();
        all.sort_by_key(|(call, calls)| (std::cmp::Reverse(calls.count), *call));
        all
    }

    /// Events of those that have no row any more, and their time, ns.
    pub fn others(&self) -> [u64; 2] {
        self.others
    }

    /// All events and their time, ns, by class.
    pub fn by_class(&self) -> &BTreeMap<EventClass, [u64; 2]> {
        &self.by_class
    }
}

fn add(sum: &mut [u64; 2], more: [u64; 2]) {
    sum.iter_mut().zip(more).for_each(|(sum, more)| *sum = sum.saturating_add(more));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn call(who: &str) -> Call {
        let (what, call) = ("flush_tlb_func".to_owned(), Some("system call munmap".to_owned()));
        Call { class: EventClass::IpiCall, what, who: who.to_owned(), group: None, call, confidence: "exact" }
    }

    #[test]
    fn one_call_is_enough_and_says_where_and_when() {
        let mut offences = Offences::new(4);
        offences.add(call("a"), 3, [1, 500], 10);
        offences.add(call("a"), 2, [2, 900], 20);
        offences.add(call("a"), 3, [1, 100], 30);
        let all = offences.all();
        let [(who, calls)] = all.as_slice() else { panic!("{all:?}") };
        assert_eq!((who.who.as_str(), calls.cpus.to_string().as_str()), ("a", "2,3"));
        assert_eq!((calls.count, calls.ns, calls.since_ns, calls.last_ns), (4, 1500, 10, 30));
    }

    #[test]
    fn a_bomb_of_names_does_not_push_out_who_calls_often() {
        let mut offences = Offences::new(8);
        offences.add(call("often"), 1, [5, 50], 0);
        for at in 0..10_000 {
            offences.add(call(&format!("bomb-{at}")), 1, [1, 1], at);
        }
        let all = offences.all();
        assert_eq!((all.len(), all[0].0.who.as_str(), all[0].1.count), (8, "often", 5));
        assert_eq!(offences.others(), [10_000 - 7, 10_000 - 7]);
        assert_eq!(offences.by_class()[&EventClass::IpiCall], [10_005, 10_050]);
    }

    proptest! {
        /// Every event is in a row or among the others, and in its class.
        #[test]
        fn nothing_is_lost(adds in prop::collection::vec((0u8..20, 0u64..9, 0u64..1000), 0..200), most in 1usize..9) {
            let mut offences = Offences::new(most);
            let mut sum = [0, 0];
            for (at, (who, count, ns)) in adds.into_iter().enumerate() {
                offences.add(call(&who.to_string()), 0, [count, ns], at as i64);
                add(&mut sum, [count, ns]);
            }
            let mut rows = offences.others();
            offences.all().into_iter().for_each(|(_, calls)| add(&mut rows, [calls.count, calls.ns]));
            prop_assert!(offences.all().len() <= most);
            prop_assert_eq!(rows, sum);
            prop_assert_eq!(offences.by_class().values().fold([0, 0], |mut all, one| { add(&mut all, *one); all }), sum);
        }
    }
}
