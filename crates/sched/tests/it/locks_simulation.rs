//! Simulated spin locks never contradict a response time.
//!
//! A unit-step simulation of cores with fixed priorities or EDF and locks between them, which shares no formula with the library: it knows
//! arrivals, who runs, who waits, and who is served next. Jobs arrive at random, as early as they may or later.

use proptest::prelude::*;
use sched::locks::{Protocol, analyze_with_locks};
use sched::overheads::{Overheads, analyze_with_locks_and_overheads};
use sched::{Access, Limits, Request, System, SystemTask, Task, Test};

struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before its request, or back there after losing its place.
    Before,
    /// Spinning since.
    Waiting(u64),
    /// In its critical section.
    Inside,
    After,
}

#[derive(Debug, Clone)]
struct Job {
    task: usize,
    arrival: u64,
    ready: u64,
    before: u64,
    inside: u64,
    after: u64,
    state: State,
}

fn done(job: &Job) -> bool {
    job.state == State::After && job.after == 0
}

struct Simulation<'a> {
    system: &'a System,
    protocol: Protocol,
    edf: bool,
    seed: u64,
    numbers: Numbers,
    jobs: Vec<Job>,
    /// Whether the last phase of a resource was a writer's.
    wrote: [bool; 2],
    /// Interrupts: ticks and releases.
    overheads: Overheads,
    /// What each core still has to do for interrupts.
    backlog: [u64; 3],
}

impl<'a> Simulation<'a> {
    fn new(system: &'a System, protocol: Protocol, edf: bool, seed: u64, horizon: u64) -> Self {
        let mut simulation = Self {
            system,
            protocol,
            edf,
            seed,
            numbers: Numbers(seed),
            jobs: Vec::new(),
            wrote: [false; 2],
            overheads: Overheads::default(),
            backlog: [0; 3],
        };
        for (task, one) in system.tasks.iter().enumerate() {
            let dense = simulation.numbers.below(3) > 0;
            let mut arrival = if dense { 0 } else { simulation.numbers.below(one.task.period_ns) };
            while arrival < horizon {
                let inside = one.requests.first().map_or(0, |request| request.length_ns);
                let before = simulation.numbers.below(one.task.cost_ns - inside + 1);
                let ready = arrival + simulation.numbers.below(one.task.jitter_ns + 1);
                let after = one.task.cost_ns - inside - before;
                simulation.jobs.push(Job {
                    task,
                    arrival,
                    ready,
                    before,
                    inside,
                    after,
                    state: State::Before,
                });
                arrival += one.task.period_ns + if dense { 0 } else { simulation.numbers.below(9) };
            }
        }
        simulation
    }

    fn preemptable(&self) -> bool {
        matches!(
            self.protocol,
            Protocol::FifoP | Protocol::PriorityP | Protocol::PriorityFifoP | Protocol::UnorderedP
        )
    }

    fn request(&self, job: &Job) -> Option<Request> {
        self.system.tasks[job.task].requests.first().copied()
    }

    /// The users of a resource that one core keeps to itself, as ceiling.
    fn local_ceiling(&self, resource: u32) -> Option<usize> {
        let users = || {
            let tasks = self.system.tasks.iter().enumerate();
            tasks.filter(move |(_, one)| one.requests.iter().any(|request| request.resource == resource))
        };
        let core = users().next()?.1.core;
        users().all(|(_, one)| one.core == core).then(|| users().next().map(|(at, _)| at))?
    }

    /// Who runs: rank 0 cannot be preempted, then by priority or deadline; in a local section at its ceiling, before equals.
    fn rank(&self, job: &Job) -> (u64, bool) {
        let deadline = |task: usize| self.system.tasks[task].task.deadline_ns;
        let place = if self.edf { job.arrival + deadline(job.task) } else { job.task as u64 };
        match job.state {
            State::Inside => match self.request(job).and_then(|one| self.local_ceiling(one.resource)) {
                None => (0, false),
                Some(_) if self.edf => (place + 1, false),
                Some(ceiling) => (place.min(ceiling as u64) + 1, false),
            },
            State::Waiting(_) if !self.preemptable() => (0, false),
            _ => (place + 1, true),
        }
    }

    /// Under EDF a job starts only if its deadline is shorter than that of every user of a local resource that another holds (the stack
    /// resource policy).
    fn held_back(&self, job: &Job) -> bool {
        let core = self.system.tasks[job.task].core;
        let holds = |one: &&Job| {
            one.state == State::Inside && self.system.tasks[one.task].core == core && !std::ptr::eq(*one, job)
        };
        self.edf
            && self.jobs.iter().filter(holds).any(|holder| {
                let resource = self.request(holder).map_or(u32::MAX, |one| one.resource);
                let users = self.system.tasks.iter().filter(|one| {
                    one.core == core && one.requests.iter().any(|request| request.resource == resource)
                });
                let ceiling = users.map(|one| one.task.deadline_ns).min();
                ceiling.is_some_and(|ceiling| self.system.tasks[job.task].task.deadline_ns >= ceiling)
            })
    }

    fn running(&self, now: u64) -> Vec<usize> {
        let core = |core| {
            let here = self.jobs.iter().enumerate().filter(|(_, job)| {
                job.ready <= now
                    && self.system.tasks[job.task].core == core
                    && !done(job)
                    && !self.held_back(job)
            });
            here.min_by_key(|(_, job)| (self.rank(job), job.arrival)).map(|(at, _)| at)
        };
        (0..self.system.cores).filter_map(core).collect()
    }

    /// Who waits for a resource may enter now.
    fn serve(&mut self, resource: u32) {
        let of = |job: &Job, wanted: fn(State) -> bool| {
            wanted(job.state) && self.request(job).is_some_and(|one| one.resource == resource)
        };
        let reads = |at: usize| {
            self.reader_writer() && self.request(&self.jobs[at]).is_some_and(|one| one.access == Access::Read)
        };
        let all = || 0..self.jobs.len();
        let holders: Vec<usize> =
            all().filter(|&at| of(&self.jobs[at], |one| one == State::Inside)).collect();
        let mut waiting: Vec<usize> =
            all().filter(|&at| of(&self.jobs[at], |one| matches!(one, State::Waiting(_)))).collect();
        if waiting.is_empty() || holders.iter().any(|&at| !reads(at)) {
            return;
        }
        let since = |at: usize| match self.jobs[at].state {
            State::Waiting(since) => since,
            _ => u64::MAX,
        };
        let lock_priority = |at: usize| {
            self.system.tasks[self.jobs[at].task].lock_priority.unwrap_or(self.jobs[at].task as u32)
        };
        let shuffle: Vec<u64> = {
            let mut numbers = Numbers(self.numbers.0);
            all().map(|_| numbers.below(1000)).collect()
        };
        waiting.sort_by_key(|&at| match self.protocol {
            Protocol::Priority | Protocol::PriorityP => (u64::from(lock_priority(at)), shuffle[at]),
            Protocol::PriorityFifo | Protocol::PriorityFifoP => (u64::from(lock_priority(at)), since(at)),
            Protocol::Unordered | Protocol::UnorderedP => (shuffle[at], 0),
            // Who came in the same instant stands in one order for good.
            _ => (since(at), Numbers(self.seed + at as u64).below(1000)),
        });
        let wrote = self.wrote[resource as usize];
        let writers: Vec<usize> = waiting.iter().copied().filter(|&at| !reads(at)).collect();
        let readers: Vec<usize> = waiting.iter().copied().filter(|&at| reads(at)).collect();
        let entering: Vec<usize> = match self.protocol {
            Protocol::PhaseFair | Protocol::PhaseFairOblivious if holders.is_empty() => {
                match (writers.first(), readers.is_empty()) {
                    (Some(&writer), true) => vec![writer],
                    (Some(&writer), false) if !wrote => vec![writer],
                    _ => readers,
                }
            }
            Protocol::PhaseFair | Protocol::PhaseFairOblivious if writers.is_empty() => readers,
            Protocol::PhaseFair | Protocol::PhaseFairOblivious => Vec::new(),
            // Readers that stand together enter together, and join readers inside.
            _ if reads(waiting[0]) => waiting.iter().copied().take_while(|&at| reads(at)).collect(),
            _ if holders.is_empty() => vec![waiting[0]],
            _ => Vec::new(),
        };
        let writes = entering.first().map(|&first| !reads(first));
        self.wrote[resource as usize] = writes.unwrap_or(wrote);
        for at in entering {
            self.jobs[at].state = State::Inside;
        }
    }

    fn reader_writer(&self) -> bool {
        matches!(self.protocol, Protocol::PhaseFair | Protocol::PhaseFairOblivious | Protocol::TaskFair)
    }

    /// Which cores take interrupts in this unit of time. Who runs there stays where it is, holds what it holds, and gets nowhere.
    fn interrupted(&mut self, now: u64) -> [bool; 3] {
        for core in 0..3 {
            let phase = self.seed >> (4 * core) & 15;
            if self.overheads.tick_ns > 0 && (now + phase).is_multiple_of(self.overheads.tick_period_ns) {
                self.backlog[core] += self.overheads.tick_ns;
            }
        }
        for job in self.jobs.iter().filter(|job| job.ready == now) {
            self.backlog[self.system.tasks[job.task].core as usize] += self.overheads.release_ns;
        }
        let interrupted = self.backlog.map(|left| left > 0);
        self.backlog = self.backlog.map(|left| left.saturating_sub(1));
        interrupted
    }

    /// The longest response of each task, from the arrival.
    fn responses(&mut self, horizon: u64) -> Vec<u64> {
        let mut worst = vec![0; self.system.tasks.len()];
        for now in 0..horizon {
            self.numbers.below(2);
            let interrupted = self.interrupted(now);
            let running = self.running(now);
            let stands = |job: &Job| interrupted[self.system.tasks[job.task].core as usize];
            for at in 0..self.jobs.len() {
                let asks = self.request(&self.jobs[at]).is_some();
                let job = &mut self.jobs[at];
                if stands(job) {
                    continue;
                }
                match (job.state, running.contains(&at)) {
                    (State::Before, true) if job.before == 0 => {
                        job.state = if asks { State::Waiting(now) } else { State::After };
                    }
                    // Preempted: it gives up its place.
                    (State::Waiting(_), false) => job.state = State::Before,
                    _ => {}
                }
            }
            self.serve(0);
            self.serve(1);
            for at in running {
                let asks = self.request(&self.jobs[at]).is_some();
                let job = &mut self.jobs[at];
                if stands(job) {
                    continue;
                }
                match job.state {
                    State::Before => {
                        job.before -= 1;
                        if job.before == 0 && !asks {
                            job.state = State::After;
                        }
                    }
                    State::Waiting(_) => {}
                    State::Inside => {
                        job.inside -= 1;
                        if job.inside == 0 {
                            job.state = State::After;
                        }
                    }
                    State::After => job.after -= 1,
                }
                if done(job) {
                    worst[job.task] = worst[job.task].max(now + 1 - job.arrival);
                }
            }
        }
        worst
    }
}

const PROTOCOLS: [Protocol; 14] = [
    Protocol::FifoNp,
    Protocol::FifoP,
    Protocol::Priority,
    Protocol::PriorityP,
    Protocol::PriorityFifo,
    Protocol::PriorityFifoP,
    Protocol::Unordered,
    Protocol::UnorderedP,
    Protocol::PhaseFair,
    Protocol::PhaseFairOblivious,
    Protocol::TaskFair,
    Protocol::TaskFairMutex,
    Protocol::MsrpHolistic,
    Protocol::MsrpClassic,
];

/// Period, work outside the section, jitter, core, locking priority, request, and by how much the deadline is shorter.
type Drawn = (u64, u64, u64, u32, u32, Option<Request>, u64);

fn systems() -> impl Strategy<Value = System> {
    let request = (0u32..2, 1u64..5, prop::bool::ANY).prop_map(|(resource, length_ns, reads)| Request {
        resource,
        count: 1,
        length_ns,
        access: if reads { Access::Read } else { Access::Write },
    });
    let task =
        (20u64..90, 1u64..7, 0u64..9, 0u32..3, 0u32..3, prop::option::weighted(0.8, request), 0u64..15);
    prop::collection::vec(task, 3..8).prop_map(|mut tasks| {
        tasks.sort_by_key(|one| one.0);
        let task = |(period, work, jitter, core, rank, request, shorter): Drawn| {
            let inside = request.map_or(0, |one: Request| one.length_ns);
            SystemTask {
                core,
                lock_priority: Some(rank),
                requests: request.into_iter().collect(),
                ..Task {
                    deadline_ns: period - shorter,
                    jitter_ns: jitter,
                    ..Task::implicit(period, work + inside)
                }
                .into()
            }
        };
        System { cores: 3, tasks: tasks.into_iter().map(task).collect() }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn no_job_takes_longer_than_its_bound(system in systems(), seed in 0u64..1 << 40) {
        for protocol in PROTOCOLS {
            let verdict = analyze_with_locks(&system, Test::FpRta, protocol, Limits::default()).unwrap();
            if !verdict.schedulable {
                continue;
            }
            for turn in 0..4 {
                let seen = Simulation::new(&system, protocol, false, seed + turn, 400).responses(400);
                for (task, (seen, bound)) in seen.iter().zip(&verdict.response_times).enumerate() {
                    prop_assert!(Some(*seen) <= *bound, "{protocol:?}, task {task}: {seen} above {bound:?}");
                }
            }
        }
    }

    #[test]
    fn nor_where_cores_take_interrupts(
        system in systems(), seed in 0u64..1 << 40, tick_ns in 0u64..3, tick_period_ns in 15u64..50, release_ns in 0u64..3,
    ) {
        let overheads = Overheads { tick_ns, tick_period_ns, release_ns, ..Overheads::default() };
        for protocol in PROTOCOLS {
            let told = analyze_with_locks_and_overheads(&system, Test::FpRta, protocol, &overheads, Limits::default());
            // Refused where interrupts lengthen queues.
            let Some(verdict) = told.ok().filter(|verdict| verdict.schedulable) else { continue };
            for turn in 0..4 {
                let mut simulation = Simulation::new(&system, protocol, false, seed + turn, 400);
                simulation.overheads = overheads;
                for (task, (seen, bound)) in simulation.responses(400).iter().zip(&verdict.response_times).enumerate() {
                    prop_assert!(Some(*seen) <= *bound, "{protocol:?}, task {task}: {seen} above {bound:?}");
                }
            }
        }
    }

    #[test]
    fn no_deadline_is_missed_under_edf(system in systems(), seed in 0u64..1 << 40) {
        for protocol in [Protocol::MsrpClassic, Protocol::MsrpLp] {
            if !analyze_with_locks(&system, Test::EdfQpa, protocol, Limits::default()).unwrap().schedulable {
                continue;
            }
            for turn in 0..6 {
                let seen = Simulation::new(&system, protocol, true, seed + turn, 400).responses(400);
                for (task, (seen, one)) in seen.iter().zip(&system.tasks).enumerate() {
                    prop_assert!(*seen <= one.task.deadline_ns, "{protocol:?}, task {task}: {seen}");
                }
            }
        }
    }
}
