//! Every test and protocol against the adversary.

use super::Numbers;
use super::chains::{self, Seen};
use super::executors;
use super::job::Job;
use super::search::{Effort, Late, Search, promises};
use super::sets::{Kind, draw};
use super::simulate::{Interrupt, Rules};
use super::supplies::withheld;
use sched::asked::{Question, Unit};
use sched::executor::ReadyOrder;
use sched::global::GlobalTest;
use sched::locks::{Locks, Protocol};
use sched::overheads::Overheads;
use sched::{Ask, EdfJitter, Limits, Order, System, Test, equals};

/// A test, with all that is counted beside it, and the sets it is applied to.
#[derive(Debug, Clone)]
pub(crate) struct Trial {
    pub(crate) name: String,
    kind: Kind,
    ask: Ask,
    /// Whether tasks share priorities.
    ties: bool,
    /// Systems of executors in place of tasks.
    executors: Option<ReadyOrder>,
}

/// What came of it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    /// Sets that the test accepted.
    pub(crate) accepted: u64,
    /// Of these, those in which a job was late or later than its bound.
    pub(crate) wrong: u64,
    /// The first of them, in words.
    pub(crate) first: Option<String>,
    /// Sets that the test refused and the adversary looked at.
    pub(crate) refused: u64,
    /// Of these, those in which it found no late job.
    pub(crate) none_found: u64,
}

/// All of them.
pub(crate) fn trials() -> Vec<Trial> {
    let trial = |name: &str, kind: Kind, ask: Ask| Trial {
        name: name.to_owned(),
        kind,
        ask,
        ties: false,
        executors: None,
    };
    let one = Kind::ONE_CORE;
    let beyond_periods = Kind { deadlines: (60, 220), ..one };
    let suspends = Kind { suspension: 25, utilization: (35, 90), ..one };
    let sections = Kind { sections: true, utilization: (35, 95), deadlines: (60, 220), ..one };
    let fp = Ask::of(Test::FpRta);
    let edf = Ask::of(Test::EdfQpa);
    let mut all = vec![
        trial("fp-rta", one, fp),
        trial("fp-rta, D beyond T", beyond_periods, fp),
        Trial { ties: true, ..trial("fp-rta, equal priorities", one, fp) },
        trial("fp-rta, order audsley", beyond_periods, Ask { order: Some(Order::Audsley), ..fp }),
        trial("fp-rta, self-suspension", suspends, fp),
        Trial { ties: true, ..trial("fp-rta, self-suspension of equals", suspends, fp) },
        trial("fp-rta, self-suspension, D beyond T of others", Kind { deadlines: (60, 220), ..suspends }, fp),
        trial("fp-limited", sections, Ask::of(Test::FpLimited)),
        trial(
            "fp-limited, order audsley",
            sections,
            Ask { order: Some(Order::Audsley), ..Ask::of(Test::FpLimited) },
        ),
        Trial { ties: true, ..trial("fp-limited, equal priorities", sections, Ask::of(Test::FpLimited)) },
        trial("edf-qpa", one, edf),
        trial("edf-qpa, D beyond T", beyond_periods, edf),
        trial("edf-rta", one, Ask::of(Test::EdfRta)),
        trial("edf-rta, D beyond T", beyond_periods, Ask::of(Test::EdfRta)),
        trial("edf-qpa, jitter td", one, Ask { edf_jitter: EdfJitter::PeriodsToo, ..edf }),
    ];
    let curves = Kind { curves: true, utilization: (25, 80), deadlines: (60, 400), ..one };
    let supplies = Kind { cores: (1, 2), supplies: true, utilization: (15, 70), deadlines: (60, 300), ..one };
    let both = Kind { curves: true, deadlines: (100, 600), ..supplies };
    let chained = Kind {
        cores: (1, 2),
        tasks: (3, 5),
        chains: true,
        utilization: (20, 70),
        deadlines: (80, 300),
        ..one
    };
    all.extend([
        trial("fp-rta, curves", curves, fp),
        trial("fp-rta, supply", supplies, fp),
        trial("fp-rta, curves and supply", both, fp),
        Trial { ties: true, ..trial("fp-rta, curves and supply, equal priorities", both, fp) },
        trial("edf-rta, curves and supply", both, Ask::of(Test::EdfRta)),
        trial("chains, fp-rta", chained, fp),
        trial("chains, edf-rta", chained, Ask::of(Test::EdfRta)),
        trial("chains, fp-limited", Kind { sections: true, ..chained }, Ask::of(Test::FpLimited)),
        trial("chains, fp-rta, curves", Kind { curves: true, deadlines: (100, 600), ..chained }, fp),
    ]);
    for order in ReadyOrder::ALL {
        let name = format!("executors, {}", order.name());
        all.push(Trial { executors: Some(order), ..trial(&name, one, fp) });
    }
    for test in GlobalTest::ALL {
        let deadlines = if test == GlobalTest::EdfDa { (100, 120) } else { (50, 120) };
        all.push(trial(test.name(), Kind { deadlines, ..Kind::GLOBAL }, Ask::of(Test::Global(test))));
    }
    for test in GlobalTest::ALL.into_iter().filter(|test| *test != GlobalTest::EdfDa) {
        let kind = Kind { deadlines: (60, 120), shares: true, utilization: (15, 60), ..Kind::GLOBAL };
        let ask = Ask { locks: Some(Protocol::Omlp.into()), ..Ask::of(Test::Global(test)) };
        all.push(trial(&format!("{}, omlp", test.name()), kind, ask));
    }
    let overheads = Overheads { tick_ns: 2, tick_period_ns: 45, release_ns: 1, ..Overheads::default() };
    for protocol in Protocol::ALL.into_iter().filter(|one| *one != Protocol::MsrpLp) {
        let name = protocol.name();
        all.push(trial(name, Kind::SHARING, Ask { locks: Some(protocol.into()), ..fp }));
        if let Some(locks) = Locks::with_ceilings(protocol).filter(|locks| locks.adds_ceilings()) {
            let name = format!("{name}, ceilings");
            all.push(trial(&name, Kind::SHARING, Ask { locks: Some(locks), ..fp }));
        }
        let queue_grows =
            matches!(protocol, Protocol::PriorityP | Protocol::PriorityFifoP | Protocol::UnorderedP);
        if !queue_grows && !protocol.suspends() {
            let ask = Ask { locks: Some(protocol.into()), overheads: Some(overheads), ..fp };
            all.push(trial(&format!("{name}, interrupts"), Kind::SHARING, ask));
        }
    }
    for protocol in Protocol::ALL.into_iter().filter(|one| one.suspends()) {
        let name = format!("{}, one core", protocol.name());
        let kind = Kind { shares: true, jitter: 12, ..one };
        all.push(trial(&name, kind, Ask { locks: Some(protocol.into()), ..fp }));
    }
    let inherits = Ask { locks: Some(Protocol::Pip.into()), ..fp };
    let shares = Kind { shares: true, jitter: 12, ..one };
    let and_suspends = Kind { suspension: 25, utilization: (35, 90), ..shares };
    let beyond = Kind { deadlines: (60, 220), ..shares };
    all.extend([
        trial("pip, one core, self-suspension", and_suspends, inherits),
        trial("pip, one core, D beyond T", beyond, inherits),
        Trial { ties: true, ..trial("pip, one core, equal priorities", beyond, inherits) },
        Trial { ties: true, ..trial("pip, one core, self-suspension of equals", and_suspends, inherits) },
    ]);
    for protocol in [Protocol::MsrpClassic, Protocol::MsrpLp] {
        let name = format!("edf-qpa, {}", protocol.name());
        all.push(trial(&name, Kind::SHARING, Ask { locks: Some(protocol.into()), ..edf }));
    }
    all
}

impl Trial {
    /// Draws sets until this many are accepted, or two hundred times as many are drawn. Checks at
    /// most as many refused sets as accepted ones.
    pub(crate) fn run(&self, accepted: u64, effort: Effort, seed: u64) -> Tally {
        let mut numbers = Numbers(seed);
        let mut tally = Tally::default();
        for _ in 0..200 * accepted {
            if tally.accepted >= accepted {
                break;
            }
            self.look_at_one(effort, &mut numbers, &mut tally);
        }
        tally
    }

    fn look_at_executors(order: ReadyOrder, effort: Effort, numbers: &mut Numbers, tally: &mut Tally) {
        let all = tally.refused < tally.accepted + 10;
        match executors::look_at_one(order, all, effort, numbers) {
            executors::Seen::Holds => tally.accepted += 1,
            executors::Seen::Refused { late } => {
                tally.refused += u64::from(late.is_some());
                tally.none_found += u64::from(late == Some(false));
            }
            executors::Seen::Exceeded { system, seen, bounds } => {
                tally.accepted += 1;
                tally.wrong += 1;
                let words = || format!("{seen:?} beyond {bounds:?} in {system:?}");
                tally.first.get_or_insert_with(words);
            }
        }
    }

    fn look_at_chains(&self, effort: Effort, numbers: &mut Numbers, tally: &mut Tally) {
        match chains::look_at_one(self.kind, &self.ask, effort, numbers) {
            Seen::Refused => {}
            Seen::Holds => tally.accepted += 1,
            Seen::Exceeded { system, seen, bounds } => {
                tally.accepted += 1;
                tally.wrong += 1;
                let words = || format!("{seen:?} beyond {bounds:?} in {system:?}");
                tally.first.get_or_insert_with(words);
            }
        }
    }

    fn look_at_one(&self, effort: Effort, numbers: &mut Numbers, tally: &mut Tally) {
        if let Some(order) = self.executors {
            Self::look_at_executors(order, effort, numbers, tally);
            return;
        }
        if self.kind.chains {
            self.look_at_chains(effort, numbers, tally);
            return;
        }
        let system = draw(self.kind, numbers);
        let levels = levels(system.tasks.len(), self.ties, numbers);
        let mut question = Question {
            unit: Unit::Ns,
            places: (0..system.tasks.len()).collect(),
            placed: true,
            equals: equals(&levels),
            system,
        };
        let verdict =
            self.ask.answer(&mut question, Limits::default()).expect("the test knows sets of this kind");
        let system = &question.system;
        let bounds_alone = self.ask.test == Test::Global(GlobalTest::EdfDa);
        let accepted = verdict.schedulable;
        if !accepted && tally.refused >= tally.accepted + 10 {
            return;
        }
        let promises = if accepted {
            promises(&verdict, system, !bounds_alone)
        } else {
            system.tasks.iter().map(|one| Some(one.task.deadline_ns)).collect()
        };
        let phase = numbers.between(0, 40);
        let search = Search {
            system,
            rules: self.rules(&levels),
            promises: &promises,
            interrupts: &|jobs| self.interrupts(system, jobs, phase),
            effort,
        };
        let late = search.late_job(numbers);
        match (accepted, late) {
            (true, None) => tally.accepted += 1,
            (true, Some(late)) => {
                tally.accepted += 1;
                tally.wrong += 1;
                let Late { task, response, at_most } = late;
                let words = || format!("task {task} took {response} ns of {at_most} in {system:?}");
                tally.first.get_or_insert_with(words);
            }
            (false, late) => {
                tally.refused += 1;
                tally.none_found += u64::from(late.is_none());
            }
        }
    }

    fn rules<'a>(&self, levels: &'a [usize]) -> Rules<'a> {
        let by_priority = self.ask.test.is_by_priority();
        let global = matches!(self.ask.test, Test::Global(_));
        Rules { by_deadline: !by_priority, global, levels, locks: self.ask.locks }
    }

    /// Ticks of every core, each with a phase of its own, and releases, in order of time.
    fn interrupts(&self, system: &System, jobs: &[Vec<Job>], phase: u64) -> Vec<Interrupt> {
        let Some(overheads) = self.ask.overheads else { return withheld(system, jobs) };
        let mut all: Vec<Interrupt> = Vec::new();
        let end = jobs.iter().flatten().map(|job| job.due).max().unwrap_or(0);
        for core in 0..system.cores {
            let first = phase * (u64::from(core) + 1) % overheads.tick_period_ns;
            let ticks = (first..=end).step_by(overheads.tick_period_ns as usize);
            all.extend(ticks.map(|at| Interrupt { core, at, ns: overheads.tick_ns }));
        }
        for (task, jobs) in jobs.iter().enumerate() {
            let core = system.tasks[task].core;
            all.extend(jobs.iter().map(|job| Interrupt { core, at: job.ready, ns: overheads.release_ns }));
        }
        all.sort_by_key(|one| one.at);
        all
    }
}

/// Priorities, ascending; with ties some neighbours have the same.
fn levels(tasks: usize, ties: bool, numbers: &mut Numbers) -> Vec<usize> {
    let mut level = 0;
    let next = |task| {
        level += usize::from(task > 0 && !(ties && numbers.between(0, 1) == 0));
        level
    };
    (0..tasks).map(next).collect()
}
