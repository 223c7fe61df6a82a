//! What a thread of a load demands: how often, how much, how it sleeps meanwhile.

use super::{Load, LoadThread, Phase, Releases, Share, Step};
use std::collections::BTreeMap;

/// One round of a thread that does the same for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cycle {
    /// Its period, or the least time from one release to the next, ns; 0 where another thread
    /// releases it.
    pub period_ns: u64,
    /// From one release to the next on average, ns; 0 as above.
    pub mean_period_ns: u64,
    /// The first release, from the start of the load, ns.
    pub offset_ns: u64,
    /// How late releases may be, ns.
    pub jitter_ns: u64,
    /// The most that a job executes, ns.
    pub cost_ns: u64,
    /// What it executes on average, ns.
    pub mean_cost_ns: u64,
    /// The longest that it sleeps, ns.
    pub suspension_ns: u64,
    /// In how many pieces.
    pub suspensions: u64,
    /// The channel that it waits for.
    pub waits_for: Option<usize>,
    /// Whether a mutex or a barrier may keep it waiting.
    pub meets_others: bool,
}

impl LoadThread {
    /// Its cycle; why there is none, in words, where it does one thing after another, is not
    /// released by one clock or one channel a round, or ends by itself.
    pub fn cycle(&self) -> Result<Cycle, String> {
        let [phase] = self.phases.as_slice() else {
            return Err(format!("it has {} phases: a task has one", self.phases.len()));
        };
        if self.rounds.is_some() {
            return Err("it ends after some rounds: a task has none".to_owned());
        }
        let mut cycle = Cycle { offset_ns: self.delay_ns, ..Cycle::default() };
        let mut releases = 0;
        for step in &phase.steps {
            releases += u32::from(cycle.add(step));
        }
        if releases != 1 {
            return Err(format!(
                "{releases} steps of a round wait for its release: a task has one, a timer or a channel"
            ));
        }
        Ok(cycle)
    }
}

impl Cycle {
    /// Adds a step; whether it waits for the next release.
    fn add(&mut self, step: &Step) -> bool {
        match step {
            Step::Release(Releases::Periodic { period_ns, offset_ns, jitter_ns, left_out }) => {
                (self.period_ns, self.mean_period_ns) = (*period_ns, *period_ns);
                // Those that are left out do not change how dense releases can be.
                if let Share { n, of } = *left_out
                    && n < of
                {
                    self.mean_period_ns = scaled(*period_ns, of, of - n);
                }
                self.offset_ns = self.offset_ns.saturating_add(*offset_ns);
                self.jitter_ns = *jitter_ns;
            }
            Step::Release(Releases::Apart { least_ns, mean_ns, .. }) => {
                self.period_ns = least_ns.first().copied().unwrap_or(*mean_ns);
                self.mean_period_ns = *mean_ns;
            }
            Step::Timer { period_ns, .. } => {
                (self.period_ns, self.mean_period_ns) = (*period_ns, *period_ns);
            }
            Step::Wait { channel } => self.waits_for = Some(*channel),
            Step::Job(jobs) => {
                let mean_ns = jobs.total_ns / jobs.n.max(1);
                self.executes(jobs.most_ns.first().copied().unwrap_or(mean_ns), mean_ns);
                self.sleeps(jobs.sleeps.longest_ns, jobs.sleeps.most);
            }
            Step::Execute(ns) | Step::Spin(ns) => self.executes(*ns, *ns),
            Step::Sleep(ns) => self.sleeps(*ns, 1),
            Step::Lock(_) | Step::Barrier(_) => self.meets_others = true,
            Step::Send { .. } | Step::Unlock(_) | Step::Yield => {}
        }
        matches!(step, Step::Release(_) | Step::Timer { .. } | Step::Wait { .. })
    }

    fn executes(&mut self, most_ns: u64, mean_ns: u64) {
        self.cost_ns = self.cost_ns.saturating_add(most_ns);
        self.mean_cost_ns = self.mean_cost_ns.saturating_add(mean_ns);
    }

    fn sleeps(&mut self, ns: u64, n: u64) {
        if ns > 0 {
            self.suspension_ns = self.suspension_ns.saturating_add(ns);
            self.suspensions = self.suspensions.saturating_add(n.max(1));
        }
    }
}

impl Load {
    /// The part of a CPU that each thread takes on average, 1 where nothing is known that would
    /// keep it from executing all the time.
    pub fn utilizations(&self) -> Vec<f64> {
        let cycles: Vec<Option<Cycle>> = self.threads.iter().map(|thread| thread.cycle().ok()).collect();
        // Jobs per ns; those that others release after these.
        let mut rates: Vec<Option<f64>> = cycles
            .iter()
            .map(|cycle| {
                cycle.filter(|one| one.mean_period_ns > 0).map(|one| 1.0 / one.mean_period_ns as f64)
            })
            .collect();
        for _ in 0..self.threads.len() {
            for (at, cycle) in cycles.iter().enumerate() {
                if let (None, Some(Cycle { waits_for: Some(channel), .. })) = (rates[at], cycle) {
                    rates[at] = self.rate(*channel, &rates);
                }
            }
        }
        let part = |at: usize| {
            let (Some(cycle), Some(rate)) = (cycles[at], rates[at]) else {
                return busiest(&self.threads[at]);
            };
            (cycle.mean_cost_ns as f64 * rate).min(1.0)
        };
        (0..self.threads.len()).map(part).collect()
    }

    /// Messages of a channel per ns; `None` where that is not known of one of its senders.
    fn rate(&self, channel: usize, rates: &[Option<f64>]) -> Option<f64> {
        let sends = |step: &Step| match step {
            Step::Send { channel: to, share } if *to == channel => share.n as f64 / share.of.max(1) as f64,
            _ => 0.0,
        };
        let mut sum = 0.0;
        for (thread, rate) in self.threads.iter().zip(rates) {
            let steps = thread.phases.iter().flat_map(|phase| &phase.steps);
            let each: f64 = steps.map(sends).sum();
            if each > 0.0 {
                sum += each * (*rate)?;
            }
        }
        Some(sum)
    }
}

/// The part of a CPU that the busiest phase of a thread takes; a wait may take no time.
fn busiest(thread: &LoadThread) -> f64 {
    let part = |phase: &Phase| {
        let (mut cycle, mut periods_ns) = (Cycle::default(), BTreeMap::new());
        for step in &phase.steps {
            cycle.add(step);
            if let Step::Timer { timer, period_ns, .. } = step {
                let sum_ns: &mut u64 = periods_ns.entry(timer).or_default();
                *sum_ns = sum_ns.saturating_add(*period_ns);
            }
        }
        let periods_ns = periods_ns.into_values().max().unwrap_or(0);
        let least_ns = cycle.cost_ns.saturating_add(cycle.suspension_ns).max(periods_ns);
        if least_ns == 0 { 1.0 } else { cycle.cost_ns as f64 / least_ns as f64 }
    };
    thread.phases.iter().map(part).fold(0.0, f64::max)
}

fn scaled(ns: u64, by: u64, of: u64) -> u64 {
    let scaled = u128::from(ns) * u128::from(by) / u128::from(of.max(1));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Jobs;
    use crate::sample::Policy;

    const MS: u64 = 1_000_000;

    fn thread(steps: Vec<Step>) -> LoadThread {
        LoadThread {
            name: "t".to_owned(),
            policy: Policy::fifo(1),
            cpus: None,
            delay_ns: MS,
            phases: vec![Phase { rounds: 1, steps }],
            rounds: None,
        }
    }

    fn periodic(period_ns: u64) -> Step {
        let left_out = Share { n: 1, of: 4 };
        Step::Release(Releases::Periodic { period_ns, offset_ns: 2 * MS, jitter_ns: 5, left_out })
    }

    #[test]
    fn a_thread_has_a_cycle_if_one_thing_releases_it() {
        let jobs = Jobs { most_ns: vec![MS], total_ns: 5 * MS, n: 10, ..Jobs::default() };
        let cycle = thread(vec![periodic(6 * MS), Step::Job(jobs), Step::Sleep(3)]).cycle().unwrap();
        assert_eq!((cycle.period_ns, cycle.mean_period_ns, cycle.offset_ns), (6 * MS, 8 * MS, 3 * MS));
        assert_eq!((cycle.cost_ns, cycle.mean_cost_ns, cycle.suspension_ns), (MS, MS / 2, 3));
        for steps in [vec![Step::Execute(1)], vec![periodic(MS), Step::Wait { channel: 0 }]] {
            assert!(thread(steps).cycle().unwrap_err().contains("wait for its release"));
        }
        assert!(LoadThread { rounds: Some(3), ..thread(vec![periodic(MS)]) }.cycle().is_err());
    }

    #[test]
    fn threads_take_the_part_that_their_releases_give_them() {
        let send = Step::Send { channel: 0, share: Share { n: 1, of: 2 } };
        let first = thread(vec![periodic(6 * MS), Step::Execute(2 * MS), send]);
        let second = thread(vec![Step::Wait { channel: 0 }, Step::Execute(4 * MS)]);
        let busy = thread(vec![Step::Execute(MS), Step::Sleep(3 * MS), Step::Yield]);
        let twice = Step::Timer { timer: 0, period_ns: 5 * MS, absolute: true };
        let phases = vec![
            Phase { rounds: 1, steps: vec![Step::Execute(MS), twice.clone(), Step::Execute(MS), twice] },
            Phase { rounds: 1, steps: vec![Step::Execute(MS), Step::Sleep(19 * MS)] },
        ];
        let two = LoadThread { phases, ..thread(Vec::new()) };
        let never = thread(vec![Step::Wait { channel: 1 }, Step::Execute(MS)]);
        let load = Load { threads: vec![first, second, busy, two, never], ..Load::default() };
        assert_eq!(load.utilizations(), [0.25, 0.25, 0.25, 0.2, 0.0]);
    }
}
