//! Attributes gaps to thieves, interval by interval.

use super::{Cause, Certainty, Evidence, Thief};
use model::growth::{Growth, ReadBy};
use model::run::Budget;
use model::sample::Sample;
use std::collections::{BTreeMap, VecDeque};

/// Getting off the CPU and back costs the loop a little more than the kernel counts as waiting.
const SWITCH_NS: u64 = 20_000;
/// A hypervisor that gives a CPU to somebody else, or a signal that stops a thread, takes at least
/// so long.
const LEAST_AWAY_NS: u64 = 20_000;
/// An SMI takes at least so long: entering and leaving the mode alone does.
const LEAST_SMI_NS: u64 = 5_000;
/// An interrupt with its softirqs takes at most so long (`MAX_SOFTIRQ_TIME`, 2 ms, and one round
/// more).
const LONGEST_INTERRUPT_NS: u64 = 4_000_000;
/// A gap of which less than one part in so many was counted as waiting has another cause.
const LEAST_SHARE: u64 = 8;
/// Steps of the times in `/proc/stat`.
const TICK_NS: u64 = 10_000_000;
/// Steal time is posted by the tick, so it may show a look later; over so long it evens out.
const STEAL_SPAN_NS: i64 = 1_000_000_000;

/// The gaps, and the thief of each.
pub(super) struct Ledger<'a> {
    gaps: &'a [Sample],
    given: Vec<Option<(Thief, Certainty)>>,
    /// The most that interrupts may have taken, ns.
    interrupts_most_ns: u64,
    /// The most that the hypervisor may have taken, ns.
    steal_most_ns: u64,
}

impl<'a> Ledger<'a> {
    pub(super) fn new(gaps: &'a [Sample]) -> Self {
        Self { gaps, given: vec![None; gaps.len()], interrupts_most_ns: 0, steal_most_ns: 0 }
    }

    fn length_ns(&self, at: usize) -> u64 {
        self.gaps[at].value_ns.max(0) as u64
    }

    fn end_ns(&self, at: usize) -> i64 {
        self.gaps[at].t_ns.saturating_add(self.gaps[at].value_ns)
    }

    /// Gaps without a thief that share time with an interval, longest first; of equal ones the
    /// first.
    fn open(&self, t0_ns: i64, t1_ns: i64) -> Vec<usize> {
        // Gaps lie one behind the other, so their ends ascend as their starts do.
        let first = self.gaps.partition_point(|gap| gap.t_ns.saturating_add(gap.value_ns) <= t0_ns);
        let inside = (first..self.gaps.len()).take_while(|&at| self.gaps[at].t_ns < t1_ns);
        let mut open: Vec<usize> = inside.filter(|&at| self.given[at].is_none()).collect();
        open.sort_by_key(|&at| std::cmp::Reverse(self.length_ns(at)));
        open
    }

    /// Time that the thread was ready and did not run.
    pub(super) fn off_the_cpu(&mut self, evidence: &Evidence<'_>) {
        let mut away = Vec::new();
        let own: Vec<_> = evidence.growths.iter().filter(|growth| growth.read_by != ReadBy::Drain).collect();
        let looks: Vec<_> =
            evidence.growths.iter().filter(|growth| growth.read_by == ReadBy::Drain).collect();
        for interval in &own {
            let Some(mut left) = Waiting::of(interval) else { continue };
            // The looks are closer together than the stretches' ends: where they agree, the gap is
            // known better.
            for look in looks.iter().filter(|look| look.t0_ns < interval.t1_ns && interval.t0_ns < look.t1_ns)
            {
                let Some(mut here) = Waiting::of(look) else { continue };
                here.limit_to(left);
                let span = (look.t0_ns.max(interval.t0_ns), look.t1_ns.min(interval.t1_ns));
                away.extend(self.wait(span, &mut here, &mut left));
            }
            let mut rest = left;
            away.extend(self.wait((interval.t0_ns, interval.t1_ns), &mut rest, &mut left));
        }
        if own.iter().all(|growth| growth.run_delay_ns.is_none()) {
            self.by_pattern_alone(evidence);
            return;
        }
        away.sort_unstable();
        self.who_was_it(&away, evidence);
    }

    /// Takes gaps of the span as waiting: at most one per switch of the thread, until they cover
    /// the waiting that the kernel counted. A gap is never shorter than its waiting, but may be
    /// longer: a hypervisor or an interrupt may continue where the wait ended.
    fn wait(&mut self, (t0_ns, t1_ns): (i64, i64), here: &mut Waiting, whole: &mut Waiting) -> Vec<usize> {
        let mut taken = Vec::new();
        let mut open = self.open(t0_ns, t1_ns);
        while here.goes_on() && whole.goes_on() {
            // Longest first: those behind `holds` are no longer than what is left to be waited.
            let holds = open.partition_point(|&at| self.length_ns(at) > here.at_most_ns());
            let last_one = here.arrivals == 1 || holds == open.len();
            let next = match holds.checked_sub(1) {
                // The last wait is as long as all that is left: the shortest gap that has room for
                // it.
                Some(room)
                    if last_one
                        && here.delay_ns >= self.length_ns(open[room]) / LEAST_SHARE
                        && open.get(holds).is_none_or(|&at| self.length_ns(at) < here.at_least_ns()) =>
                {
                    room
                }
                _ => holds,
            };
            if next >= open.len() {
                break;
            }
            let at = open.remove(next);
            let length_ns = self.length_ns(at);
            let counted = here.delay_ns >= length_ns / 2;
            here.spend(length_ns);
            whole.spend(length_ns);
            let certainty = if counted { Certainty::Counted } else { Certainty::Fits };
            self.given[at] = Some((Thief::Preemption, certainty));
            taken.push(at);
        }
        taken
    }

    /// Separates throttling and the fair server from other tasks among the gaps that the thread
    /// spent waiting.
    fn who_was_it(&mut self, away: &[usize], evidence: &Evidence<'_>) {
        if !evidence.real_time {
            return;
        }
        if let Some(budget) = evidence.throttling {
            for &at in away {
                // Ready and real-time, and yet the CPU had nothing to do: only throttling does
                // that.
                if self.idled(at, evidence.growths) {
                    self.given[at] = Some((Thief::Throttling, Certainty::Counted));
                } else if throttled(self.length_ns(at), budget) {
                    let logged = evidence.throttling_logged;
                    let sure = if logged { Certainty::Counted } else { Certainty::Fits };
                    self.given[at] = Some((Thief::Throttling, sure));
                }
            }
        }
        if let Some(budget) = evidence.fair_server {
            let mut period: VecDeque<usize> = VecDeque::new();
            for &at in away {
                let from_ns = self.end_ns(at).saturating_sub_unsigned(budget.period_ns);
                while period.front().is_some_and(|&first| self.end_ns(first) <= from_ns) {
                    period.pop_front();
                }
                let used_ns: u64 = period.iter().map(|&at| self.length_ns(at)).sum();
                let most_ns = budget.runtime_ns + budget.runtime_ns / 10 + SWITCH_NS;
                let length_ns = self.length_ns(at);
                // Any stretch of a period's length may hold the end of one period's runtime and the
                // beginning of the next one's.
                if length_ns <= most_ns && used_ns + length_ns <= 2 * most_ns {
                    period.push_back(at);
                    self.given[at] = Some((Thief::FairServer, Certainty::Fits));
                }
            }
        }
    }

    /// Whether the CPU idled for most of a gap; unknown for a gap of a few ticks.
    fn idled(&self, at: usize, growths: &[Growth]) -> bool {
        let (t0_ns, t1_ns, length_ns) = (self.gaps[at].t_ns, self.end_ns(at), self.length_ns(at));
        if length_ns < 3 * TICK_NS {
            return false;
        }
        let meets = |growth: &Growth| growth.t0_ns < t1_ns && t0_ns < growth.t1_ns;
        let looks = || growths.iter().filter(|growth| growth.read_by == ReadBy::Drain && meets(growth));
        let idle_ns: u64 = looks().filter_map(|look| look.idle_ns).sum();
        // The loop's own pauses idle, too.
        let pauses = growths.iter().filter(|growth| growth.read_by == ReadBy::Pause);
        let paused_ns: u64 = pauses
            .flat_map(|pause| looks().map(|look| pause.t1_ns.min(look.t1_ns) - pause.t0_ns.max(look.t0_ns)))
            .map(|shared_ns| shared_ns.max(0) as u64)
            .sum();
        idle_ns.saturating_sub(paused_ns) >= length_ns / 2
    }

    /// Without a counter of waiting: gaps of throttling's length that recur with its period.
    fn by_pattern_alone(&mut self, evidence: &Evidence<'_>) {
        let Some(budget) = evidence.throttling.filter(|_| evidence.real_time) else { return };
        let period_ns = budget.period_ns.min(i64::MAX as u64) as i64;
        let fitting: Vec<usize> =
            (0..self.gaps.len()).filter(|&at| throttled(self.length_ns(at), budget)).collect();
        // It ends when the period does: ends lie whole periods apart.
        let apart = |one: usize, other: usize| {
            let off_ns = (self.end_ns(one) - self.end_ns(other)).rem_euclid(period_ns.max(1));
            off_ns.min(period_ns - off_ns) <= period_ns / 50
        };
        let again = |&at: &usize| fitting.iter().any(|&other| other != at && apart(at, other));
        for at in fitting.iter().copied().filter(again).collect::<Vec<_>>() {
            self.given[at] = Some((Thief::Throttling, Certainty::Fits));
        }
    }

    /// Switches that the loop does not make by itself. Before the waiting is looked for only gaps
    /// that are longer than all of it; then those that are left.
    pub(super) fn stopped(&mut self, growths: &[Growth], before_waiting: bool) {
        for stretch in growths.iter().filter(|growth| growth.read_by == ReadBy::Stretch) {
            let (switches, faults) =
                (stretch.voluntary.unwrap_or(0) as usize, stretch.major_faults.unwrap_or(0));
            if switches == 0 {
                continue;
            }
            let (thief, certainty) = match faults {
                0 => (Thief::Stopped, Certainty::Counted),
                _ => (Thief::Fault, Certainty::Fits),
            };
            let least_ns = match (before_waiting, Waiting::of(stretch)) {
                (true, Some(waiting)) => waiting.at_most_ns() + 1,
                _ => LEAST_AWAY_NS,
            };
            let found = self.given_in(stretch.t0_ns, stretch.t1_ns, thief);
            let open = self.open(stretch.t0_ns, stretch.t1_ns);
            let long = open.into_iter().take_while(|&at| self.length_ns(at) >= least_ns);
            for at in long.take(switches.saturating_sub(found)).collect::<Vec<_>>() {
                self.given[at] = Some((thief, certainty));
            }
        }
    }

    /// Gaps of an interval that are attributed to this thief.
    fn given_in(&self, t0_ns: i64, t1_ns: i64, thief: Thief) -> usize {
        let first = self.gaps.partition_point(|gap| gap.t_ns.saturating_add(gap.value_ns) <= t0_ns);
        let inside = (first..self.gaps.len()).take_while(|&at| self.gaps[at].t_ns < t1_ns);
        inside.filter(|&at| self.given[at].is_some_and(|(given, _)| given == thief)).count()
    }

    /// Steal time.
    pub(super) fn hypervisor(&mut self, growths: &[Growth]) {
        let mut looks: Vec<_> = growths.iter().filter(|growth| growth.read_by == ReadBy::Drain).collect();
        looks.sort_by_key(|look| look.t0_ns);
        let grown_ns: u64 = looks.iter().filter_map(|look| look.steal_ns).sum();
        if grown_ns == 0 {
            return;
        }
        self.steal_most_ns = grown_ns + TICK_NS;
        let (mut from, mut left_ns) = (0, self.steal_most_ns);
        while let Some(first) = looks.get(from) {
            let until_ns = first.t0_ns.saturating_add(STEAL_SPAN_NS);
            let count = looks[from..].iter().take_while(|look| look.t0_ns < until_ns).count().max(1);
            let span = &looks[from..from + count];
            let stolen_ns: u64 = span.iter().filter_map(|look| look.steal_ns).sum();
            let t1_ns = span.last().map_or(first.t1_ns, |last| last.t1_ns);
            if stolen_ns > 0 {
                left_ns -= self.steal((first.t0_ns, t1_ns), left_ns.min(stolen_ns + TICK_NS));
            }
            from += count;
        }
    }

    /// Attributes the longest gaps that steal time covers; returns their total length, ns.
    fn steal(&mut self, (t0_ns, t1_ns): (i64, i64), most_ns: u64) -> u64 {
        let mut left_ns = most_ns;
        for at in self.open(t0_ns, t1_ns) {
            let length_ns = self.length_ns(at);
            if (LEAST_AWAY_NS..=left_ns).contains(&length_ns) {
                left_ns -= length_ns;
                self.given[at] = Some((Thief::Hypervisor, Certainty::Fits));
            }
        }
        most_ns - left_ns
    }

    /// System management interrupts: as many as counted, which of the gaps is by length.
    pub(super) fn smi(&mut self, growths: &[Growth]) {
        for stretch in growths.iter().filter(|growth| growth.read_by == ReadBy::Stretch) {
            let smi = stretch.smi.unwrap_or(0) as usize;
            let open = self.open(stretch.t0_ns, stretch.t1_ns);
            let long = open.into_iter().take(smi).filter(|&at| self.length_ns(at) >= LEAST_SMI_NS);
            for at in long.collect::<Vec<_>>() {
                self.given[at] = Some((Thief::Smi, Certainty::Fits));
            }
        }
    }

    /// Interrupts and softirqs: as many gaps as there were of them, the shortest first.
    pub(super) fn interrupts(&mut self, growths: &[Growth]) {
        for look in growths.iter().filter(|growth| growth.read_by == ReadBy::Drain) {
            let count = look.interrupts.unwrap_or(0).saturating_add(look.softirqs.unwrap_or(0));
            self.interrupts_most_ns += self.longest_ns(look.t0_ns, look.t1_ns, count);
            let open = self.open(look.t0_ns, look.t1_ns);
            // A gap on the edge of two looks is counted where it began.
            let short = open
                .into_iter()
                .rev()
                .filter(|&at| self.gaps[at].t_ns >= look.t0_ns && self.length_ns(at) <= LONGEST_INTERRUPT_NS);
            for at in short.take(usize::try_from(count).unwrap_or(usize::MAX)).collect::<Vec<_>>() {
                self.given[at] = Some((Thief::Interrupts, Certainty::Fits));
            }
        }
    }

    /// So many of the longest gaps that interrupts may have made in an interval, and that no
    /// counter gave to somebody else, ns.
    fn longest_ns(&self, t0_ns: i64, t1_ns: i64, count: u64) -> u64 {
        let first = self.gaps.partition_point(|gap| gap.t_ns < t0_ns);
        let inside = (first..self.gaps.len()).take_while(|&at| self.gaps[at].t_ns < t1_ns);
        let sure = |at: usize| self.given[at].is_some_and(|(_, certainty)| certainty == Certainty::Counted);
        let mut lengths: Vec<u64> = inside.filter(|&at| !sure(at)).map(|at| self.length_ns(at)).collect();
        lengths.retain(|ns| *ns <= LONGEST_INTERRUPT_NS);
        lengths.sort_unstable_by_key(|ns| std::cmp::Reverse(*ns));
        lengths.iter().take(usize::try_from(count).unwrap_or(usize::MAX)).sum()
    }

    /// The range of each cause. A gap that no counter names may belong to any thief with room left.
    fn ranges(&self, causes: &mut [Cause]) {
        let open_ns: u64 =
            causes.iter().filter(|one| one.certainty != Certainty::Counted).map(|one| one.total_ns).sum();
        let most_ns = |cause: &Cause| match cause.thief {
            Thief::Hypervisor => self.steal_most_ns.min(open_ns),
            Thief::Interrupts => self.interrupts_most_ns.max(cause.total_ns),
            _ => cause.total_ns,
        };
        let fitting = causes.iter().filter(|one| one.certainty == Certainty::Fits);
        let fitting_ns: u64 = fitting.map(most_ns).fold(0, u64::saturating_add);
        for cause in causes {
            cause.range_ns = match cause.certainty {
                Certainty::Counted => [cause.total_ns; 2],
                Certainty::Fits => [0, most_ns(cause)],
                Certainty::None => [open_ns.saturating_sub(fitting_ns), open_ns],
            };
        }
    }

    /// The sums by thief and certainty.
    pub(super) fn causes(self) -> Vec<Cause> {
        let mut causes = BTreeMap::new();
        for (at, given) in self.given.iter().enumerate() {
            let (thief, certainty) = given.unwrap_or((Thief::Unknown, Certainty::None));
            let cause = causes.entry((thief, certainty)).or_insert(Cause {
                thief,
                certainty,
                gaps: 0,
                total_ns: 0,
                max_ns: 0,
                range_ns: [0; 2],
            });
            let length_ns = self.length_ns(at);
            cause.gaps += 1;
            cause.total_ns = cause.total_ns.saturating_add(length_ns);
            cause.max_ns = cause.max_ns.max(length_ns);
        }
        let mut causes: Vec<Cause> = causes.into_values().collect();
        self.ranges(&mut causes);
        causes
    }
}

/// Whether a gap has the length of a period's rest. Throttling sets in at a tick, so it may be
/// shorter by some.
fn throttled(length_ns: u64, budget: Budget) -> bool {
    let rest_ns = budget.period_ns.saturating_sub(budget.runtime_ns);
    (rest_ns / 2..=rest_ns + rest_ns / 20 + SWITCH_NS).contains(&length_ns)
}

/// The rest of the waiting that the kernel counted.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    delay_ns: u64,
    arrivals: u64,
}

impl Waiting {
    /// None if there was none, or no counter was read.
    fn of(growth: &Growth) -> Option<Self> {
        // Inside a stretch only who is switched away against its will waits; before one, the thread
        // has also slept.
        let switches = if growth.read_by == ReadBy::Stretch { growth.involuntary } else { None };
        let waiting = Self { delay_ns: growth.run_delay_ns?, arrivals: switches.or(growth.arrivals)? };
        (waiting.delay_ns > 0 && waiting.arrivals > 0).then_some(waiting)
    }

    fn limit_to(&mut self, other: Self) {
        self.delay_ns = self.delay_ns.min(other.delay_ns);
        self.arrivals = self.arrivals.min(other.arrivals);
    }

    fn goes_on(self) -> bool {
        self.arrivals > 0 && self.delay_ns > 0
    }

    /// The longest gap that nothing but this waiting makes.
    fn at_most_ns(self) -> u64 {
        self.delay_ns + self.delay_ns / 50 + SWITCH_NS
    }

    /// The shortest gap that has room for it.
    fn at_least_ns(self) -> u64 {
        (self.delay_ns - self.delay_ns / 50).saturating_sub(SWITCH_NS)
    }

    fn spend(&mut self, length_ns: u64) {
        self.delay_ns = self.delay_ns.saturating_sub(length_ns);
        self.arrivals -= 1;
    }
}
