//! The closed optima of the spin-lock bounds equal their integer programs, searched exhaustively.
//!
//! Every request of another core that can be issued while the job is pending is a variable that may
//! delay spinning, delay the arrival, or neither (Wieder and Brandenburg, RTSS 2013). The
//! constraints are written here as they stand there, one request at a time, and every assignment is
//! tried.

use proptest::prelude::*;
use sched::locks::{Blocking, LocalLocks, Protocol, Semantics, Sharing, blocking};
use sched::{Access, Request, System, SystemTask, Task};

/// A remote request: its task, core, resource and length.
#[derive(Debug, Clone, Copy)]
struct Variable {
    task: usize,
    core: u32,
    resource: u32,
    length: u64,
}

struct Program<'a> {
    system: &'a System,
    responses: &'a [u64],
    task: usize,
    protocol: Protocol,
    /// How resources of one core are held.
    local: LocalLocks,
    variables: Vec<Variable>,
}

const RESOURCES: u32 = 2;

impl<'a> Program<'a> {
    fn new(
        system: &'a System,
        responses: &'a [u64],
        task: usize,
        protocol: Protocol,
        local: LocalLocks,
    ) -> Self {
        let mut program = Self { system, responses, task, protocol, local, variables: Vec::new() };
        let core = program.core();
        for (index, other) in system.tasks.iter().enumerate().filter(|(_, other)| other.core != core) {
            for request in &other.requests {
                for _ in 0..program.jobs(index, responses[task]) * request.count {
                    let variable = Variable {
                        task: index,
                        core: other.core,
                        resource: request.resource,
                        length: request.length_ns,
                    };
                    program.variables.push(variable);
                }
            }
        }
        program
    }

    fn core(&self) -> u32 {
        self.system.tasks[self.task].core
    }

    fn jobs(&self, task: usize, interval: u64) -> u64 {
        (interval + self.responses[task]).div_ceil(self.system.tasks[task].task.period_ns)
    }

    /// The job and local jobs above it: task and jobs.
    fn local(&self) -> Vec<(usize, u64)> {
        let higher = (0..self.task).filter(|&one| self.system.tasks[one].core == self.core());
        let releases = |one: usize| self.responses[self.task].div_ceil(self.system.tasks[one].task.period_ns);
        higher.map(|one| (one, releases(one))).chain([(self.task, 1)]).collect()
    }

    fn count(&self, task: usize, resource: u32) -> u64 {
        let requests = self.system.tasks[task].requests.iter();
        requests.filter(|one| one.resource == resource).map(|one| one.count).sum()
    }

    fn requests(&self, resource: u32) -> u64 {
        self.local().iter().map(|&(one, jobs)| jobs * self.count(one, resource)).sum()
    }

    /// The longest local lower-priority request of a resource that may block an arrival.
    fn section(&self, resource: u32) -> Option<u64> {
        let users: Vec<usize> =
            (0..self.system.tasks.len()).filter(|&one| self.count(one, resource) > 0).collect();
        let global = users.iter().any(|&one| self.system.tasks[one].core != self.system.tasks[users[0]].core);
        let lower =
            users.iter().filter(|&&one| one > self.task && self.system.tasks[one].core == self.core());
        let lengths =
            lower.flat_map(|&one| &self.system.tasks[one].requests).filter(|one| one.resource == resource);
        lengths
            .map(|one| one.length_ns)
            .max()
            .filter(|_| self.local == LocalLocks::NonPreemptable || global || users[0] <= self.task)
    }

    fn preemptions(&self) -> u64 {
        self.local().iter().rev().skip(1).map(|&(_, jobs)| jobs).sum()
    }

    /// Whether these may delay spinning, each resource having so many extra places.
    fn spins(&self, spinning: &[Variable], extra: [u64; 2]) -> bool {
        let fifo = (0..RESOURCES).all(|resource| {
            let places = self.requests(resource);
            let places = if places > 0 { places + extra[resource as usize] } else { 0 };
            (0..self.system.cores).all(|core| {
                let here = spinning.iter().filter(|one| (one.core, one.resource) == (core, resource));
                here.count() as u64 <= places
            })
        });
        // Only while a job is pending that requests the resource.
        let met = (0..self.system.tasks.len()).all(|task| {
            (0..RESOURCES).all(|resource| {
                let local = self.local().into_iter().filter(|&(one, _)| self.count(one, resource) > 0);
                let jobs: u64 = local.map(|(one, jobs)| jobs * self.jobs(task, self.responses[one])).sum();
                let here = spinning.iter().filter(|one| (one.task, one.resource) == (task, resource));
                here.count() as u64 <= jobs * self.count(task, resource)
            })
        });
        let waits =
            self.protocol != Protocol::Unordered || self.caps(spinning, |resource| self.requests(resource));
        (fifo || self.protocol == Protocol::Unordered) && met && waits
    }

    /// Whether each task has at most so many requests among these as it issues while `waits`
    /// requests wait.
    fn caps(&self, some: &[Variable], waits: impl Fn(u32) -> u64) -> bool {
        (0..self.system.tasks.len()).all(|task| {
            (0..RESOURCES).all(|resource| {
                let here = some.iter().filter(|one| (one.task, one.resource) == (task, resource));
                let each = self.jobs(task, self.wait(resource)) * self.count(task, resource);
                here.count() as u64 <= waits(resource) * each
            })
        })
    }

    /// The longest that one request waits without any order: one more than all that is issued
    /// meanwhile.
    fn wait(&self, resource: u32) -> u64 {
        let issued = |jobs: &dyn Fn(usize) -> u64| -> u64 {
            let tasks = self.system.tasks.iter().enumerate().filter(|(_, one)| one.core != self.core());
            let requests = tasks.flat_map(|(at, one)| one.requests.iter().map(move |request| (at, request)));
            let same = requests.filter(|(_, request)| request.resource == resource);
            same.map(|(at, request)| jobs(at) * request.count * request.length_ns).sum()
        };
        let period = self.system.tasks[self.task].task.period_ns;
        let first = issued(&|_| 1);
        let solved = (first..=period).find(|&wait| issued(&|task| self.jobs(task, wait)) < wait);
        solved.unwrap_or(self.responses[self.task])
    }

    fn arrives(&self, arriving: &[Variable], blocker: Option<u32>) -> bool {
        let one_a_core = arriving
            .iter()
            .enumerate()
            .all(|(at, one)| arriving[..at].iter().all(|before| before.core != one.core));
        match self.protocol {
            Protocol::FifoNp => one_a_core && arriving.iter().all(|one| Some(one.resource) == blocker),
            Protocol::Unordered => {
                self.caps(arriving, |_| 1) && arriving.iter().all(|one| Some(one.resource) == blocker)
            }
            _ => arriving.is_empty(),
        }
    }

    /// The largest sum of delays.
    fn optimum(&self) -> u64 {
        let blockers = (0..RESOURCES).filter_map(|one| self.section(one).map(|length| (Some(one), length)));
        let most = if self.protocol == Protocol::FifoP { self.preemptions() } else { 0 };
        let extras: Vec<[u64; 2]> = (0..=most).map(|first| [first, most - first]).collect();
        let mut best = 0;
        for (blocker, section) in [(None, 0)].into_iter().chain(blockers) {
            for code in 0..3u32.pow(self.variables.len() as u32) {
                let role = |at: usize| code / 3u32.pow(at as u32) % 3;
                let of = |wanted: u32| -> Vec<Variable> {
                    let some = self.variables.iter().enumerate().filter(|(at, _)| role(*at) == wanted);
                    some.map(|(_, one)| *one).collect()
                };
                let (spinning, arriving) = (of(1), of(2));
                let sum: u64 = spinning.iter().chain(&arriving).map(|one| one.length).sum::<u64>() + section;
                if sum > best
                    && self.arrives(&arriving, blocker)
                    && extras.iter().any(|extra| self.spins(&spinning, *extra))
                {
                    best = sum;
                }
            }
        }
        best
    }
}

fn totals(system: &System, responses: &[u64], protocol: Protocol, local: LocalLocks) -> Vec<u64> {
    let sharing = Sharing::of(system, local);
    let Blocking { spin, arrival } = blocking(&sharing, protocol, Semantics::Sound, responses);
    spin.iter().zip(&arrival).map(|(spin, arrival)| spin + arrival).collect()
}

/// Small systems, and for each task how long it is pending.
fn systems() -> impl Strategy<Value = (System, Vec<u64>)> {
    let request = (0..RESOURCES, 1u64..3, 1u64..9).prop_map(|(resource, count, length_ns)| Request {
        resource,
        count,
        length_ns,
        access: Access::Write,
    });
    let task = (30u64..60, 0u32..3, prop::option::of(request), 5u64..30);
    prop::collection::vec(task, 2..6).prop_map(|tasks| {
        let responses = tasks.iter().map(|one| one.3).collect();
        let task = |(period, core, request, _): (u64, u32, Option<Request>, u64)| SystemTask {
            core,
            requests: request.into_iter().collect(),
            ..Task::implicit(period, 5).into()
        };
        (System { cores: 3, tasks: tasks.into_iter().map(task).collect() }, responses)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn fifo_and_no_order_equal_their_integer_programs((system, responses) in systems(), ceilings in any::<bool>()) {
        let local = if ceilings { LocalLocks::Ceiling } else { LocalLocks::NonPreemptable };
        for protocol in [Protocol::FifoNp, Protocol::FifoP, Protocol::Unordered] {
            let totals = totals(&system, &responses, protocol, local);
            for (task, total) in totals.iter().enumerate() {
                let program = Program::new(&system, &responses, task, protocol, local);
                // Nine requests of other cores are 3^9 assignments.
                if program.variables.len() <= 9 {
                    prop_assert_eq!(*total, program.optimum(), "{:?}, task {}", protocol, task);
                }
            }
        }
    }

    #[test]
    fn an_order_never_blocks_longer_than_none((system, responses) in systems()) {
        let of = |protocol| totals(&system, &responses, protocol, LocalLocks::NonPreemptable);
        for (fifo, baseline) in of(Protocol::FifoNp).iter().zip(of(Protocol::Baseline)) {
            prop_assert!(*fifo <= baseline);
        }
        for (unordered, baseline) in of(Protocol::Unordered).iter().zip(of(Protocol::Baseline)) {
            prop_assert!(*unordered <= baseline);
        }
    }
}
