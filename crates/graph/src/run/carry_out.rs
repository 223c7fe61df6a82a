//! The controlling side of a graph: links, processes, the rows of what they receive, and at the end
//! the account of every message.
//!
//! The maker keeps both ends of every link open, so that a process that is killed, stopped or slow
//! loses no message uncounted.

use super::children::{Process, Taken, said, start};
use super::order::{PublisherReport, TimerReport};
use super::records::{COLUMNS, Drain};
use super::tally::EdgeTally;
use super::usage::{ProcessUse, Watch};
use crate::Error;
use crate::results::accounts::Account;
use crate::results::events::Event;
use crate::results::honest::Latencies;
use crate::results::resources::Used;
use crate::results::tracker::Tracker;
use crate::run::request::Order;
use crate::transport::{Doorbell, Link};
use journal::session::{Session, Ticket};
use measure::counters::Counters;
use measure::ring::{BYTES, Ring, State};
use model::run::{ProbeRecord, StoppedAt, Window};
use model::sample::{Policy, ProbeKind, Sample, SampleMeta};
use model::samples_store::SampleStore;
use model::samples_tail::Opening;
use model::snapshots::SnapshotSample;
use model::store;
use record::recorder::Recorder;
use serde::{Deserialize, Serialize};
use std::path::Path;
use sys::{clock, memory, process};

/// Polling interval of rings and children, ns.
const POLL_NS: i64 = 10_000_000;
/// From the order to start to the first release, ns: long enough for every thread to see the order.
const LEAD_NS: i64 = 50_000_000;
/// How long processes may take to set themselves up, ns: busy work is calibrated, files are opened.
const PATIENCE_NS: i64 = 30 * clock::SECOND_NS;
/// How long after the end a process may still serve messages under way before it is killed, ns.
const GRACE_NS: i64 = 3 * clock::SECOND_NS;

/// What a running graph shows to whoever watches.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// Time since the start, ns.
    pub elapsed_ns: i64,
    /// Length of the run, ns.
    pub duration_ns: i64,
    /// Messages received.
    pub received: u64,
    /// The largest latency from the intended release so far, ns.
    pub worst_ns: i64,
}

/// What came of an edge.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EdgeRun {
    /// Where everything that was sent went.
    pub account: Account,
    /// Statistics that leave nothing out.
    pub latencies: Latencies,
    /// Statistics by the formulas of ros2-performance.
    pub tracker: Tracker,
    /// What the link became where that is not what was asked.
    pub notes: Vec<String>,
}

/// A run that has ended.
#[derive(Debug)]
pub struct Measured {
    /// The window.
    pub window: Window,
    /// One record an executor.
    pub probes: Vec<ProbeRecord>,
    /// What came of the edges, by their numbers.
    pub edges: Vec<EdgeRun>,
    /// What the timers did.
    pub timers: Vec<TimerReport>,
    /// How long publishing took.
    pub publishers: Vec<PublisherReport>,
    /// What the processes used.
    pub processes: Vec<ProcessUse>,
    /// All of them together over time.
    pub resources: Vec<Used>,
    /// What was late, too late or lost, as ros2-performance reports it.
    pub events: Vec<Event>,
    /// Outputs compared with the expected ones, and those that were wrong.
    pub outputs: [u64; 2],
    /// What could not be done.
    pub limits: Vec<String>,
    /// Whether the watcher ended it early.
    pub stopped: bool,
    /// The message that ended it, where its latency reached the limit.
    pub stopped_at: Option<StoppedAt>,
    /// Processes that did not come to their end.
    pub died: Vec<String>,
}

/// Runs a graph.
pub fn carry_out(
    session: &mut Session,
    mut recorder: Option<&mut Recorder>,
    order: &Order<'_>,
    watch: &mut dyn FnMut(Progress) -> bool,
) -> Result<Measured, Error> {
    let plan = order.plan;
    let mut running = Running::spawn(session, order)?;
    running.wait_ready()?;
    let cpus = plan.all_cpus();
    let counters = || {
        Counters::read(Path::new("/"), &cpus).map_err(|source| Error::os("read", "/proc/interrupts", source))
    };
    let before = counters()?;
    if let Some(recorder) = &mut recorder {
        recorder.record(true)?;
    }
    let t0_ns = clock::now_ns();
    let ran = running.run(t0_ns + LEAD_NS, recorder.as_deref_mut(), watch);
    if let Some(recorder) = &mut recorder {
        recorder.record(false)?;
    }
    let t1_ns = clock::now_ns();
    let growth = before.growth(&counters()?);
    if let Some(recorder) = recorder {
        recorder.look();
    }
    let stopped = ran?;
    let window = Window {
        phase: order.phase.to_owned(),
        probe: ProbeKind::Graph,
        t0_ns,
        t1_ns,
        interrupts: growth.interrupts,
        softirqs: growth.softirqs,
        steal_ns: growth.steal_ns,
        kernel_log: Vec::new(),
    };
    let adopted = std::mem::take(&mut running.adopted);
    let measured = running.finish(window, stopped)?;
    adopted.iter().try_for_each(|child| session.forget(*child))?;
    Ok(measured)
}

/// What an executor stores.
pub(super) struct Store {
    pub(super) ring: Ring,
    pub(super) drain: Drain,
    pub(super) file: String,
    pub(super) writer: SampleStore,
    /// Samples so far.
    pub(super) stored: u64,
}

/// What is known of the samples of an executor before its process has ended.
fn opening(order: &Order<'_>, at: usize) -> Opening {
    let plan = order.plan;
    // Which policy it got its process says at its end.
    let unknown = Policy { name: "unknown".to_owned(), ..Policy::other() };
    let meta = meta(order, at, order.phase, unknown.clone());
    let record = ProbeRecord {
        thread: at as u32,
        cpus: (plan.cpus[at].len() > 1).then(|| plan.cpus[at].clone()),
        counter: meta.counter.clone(),
        policy_effective: unknown,
        ..ProbeRecord::of(ProbeKind::Graph, meta.cpu, meta.policy_asked.clone())
    };
    Opening { meta, record, columns: COLUMNS.map(str::to_owned).to_vec(), last: 0, rows: 0 }
}

/// The metadata of the samples of an executor.
pub(super) fn meta(order: &Order<'_>, at: usize, phase: &str, policy_effective: Policy) -> SampleMeta {
    SampleMeta {
        probe: ProbeKind::Graph,
        cpu: order.plan.cpus[at].iter().next().unwrap_or(0),
        thread: at as u32,
        phase: phase.to_owned(),
        unit: "ns".to_owned(),
        clock: "CLOCK_MONOTONIC".to_owned(),
        counter: "CLOCK_MONOTONIC".to_owned(),
        policy_asked: order.plan.policies[at].clone(),
        policy_effective,
        period_ns: None,
        threshold_ns: None,
    }
}

/// A graph whose processes are there.
pub(super) struct Running<'a> {
    pub(super) order: &'a Order<'a>,
    pub(super) links: Vec<Link>,
    pub(super) processes: Vec<Process>,
    pub(super) stores: Vec<Store>,
    pub(super) edges: Vec<EdgeTally>,
    pub(super) adopted: Vec<Ticket>,
    pub(super) usage: Watch,
    pub(super) events: Events,
    pub(super) start_ns: i64,
    /// What has reached the limit.
    pub(super) stopped_at: Option<StoppedAt>,
    pub worst_ns: i64,
    pub received: u64,
}

/// Events up to a number that a file can hold.
#[derive(Default)]
pub(super) struct Events {
    pub(super) kept: Vec<Event>,
    pub(super) beyond: u64,
}

/// The most events that are kept.
const MOST_EVENTS: usize = 100_000;

impl<'a> Running<'a> {
    fn spawn(session: &mut Session, order: &'a Order<'a>) -> Result<Self, Error> {
        let plan = order.plan;
        // Both ends of every link stay open here, a handful of descriptors each.
        process::raise_open_files();
        let bells = (0..plan.cpus.len()).map(|executor| Doorbell::new(&plan.kinds_at(executor)));
        let bells = bells.collect::<Result<Vec<_>, _>>()?;
        let links = plan.edges.iter().zip(&plan.links);
        let links =
            links.map(|(edge, spec)| Link::new(spec, &bells[plan.graph.nodes[edge.to.node].executor]));
        let links = links.collect::<Result<Vec<_>, _>>()?;
        let rings = plan.cpus.iter().map(|_| memory::shared_file("stillcore-ring", BYTES));
        let failed = |source| Error::os("share memory with", "the processes of a graph", source);
        let rings = rings.collect::<Result<Vec<_>, _>>().map_err(failed)?;
        let mut processes = Vec::new();
        let mut adopted = Vec::new();
        for at in 0..plan.graph.processes.len() {
            let process = start(session.program(), order, at, &links, &rings, &bells)?;
            adopted.push(session.adopt(process.child.id())?);
            processes.push(process);
        }
        let stores = plan.cpus.iter().zip(rings).enumerate().map(|(at, (cpus, ring))| {
            let ring = Ring::map(&ring).map_err(failed)?;
            let cpu = cpus.iter().next().unwrap_or(0);
            let mut names = (0..).map(|k| store::samples_name(ProbeKind::Graph.name(), cpu, k));
            let file = names.find(|name| !order.run.join(name).exists()).unwrap_or_default();
            let writer = SampleStore::create(&order.run.join(&file), opening(order, at))?;
            Ok(Store { ring, drain: Drain::default(), file, writer, stored: 0 })
        });
        let tally = |(at, _)| EdgeTally::new(plan, at, order.bounds);
        let used = processes.iter().map(|process: &Process| ProcessUse {
            name: process.name.clone(),
            pid: process.child.id(),
            ..ProcessUse::default()
        });
        Ok(Self {
            stores: stores.collect::<Result<_, Error>>()?,
            edges: plan.edges.iter().enumerate().map(tally).collect(),
            usage: Watch::begin(used.collect(), order.cpus),
            order,
            links,
            processes,
            adopted,
            events: Events::default(),
            start_ns: 0,
            stopped_at: None,
            worst_ns: 0,
            received: 0,
        })
    }

    fn wait_ready(&mut self) -> Result<(), Error> {
        let give_up = clock::now_ns() + PATIENCE_NS;
        for process in &mut self.processes {
            while !process.executors.iter().all(|&at| self.stores[at].ring.reached(State::Ready)) {
                if !matches!(process.child.try_wait(), Ok(None)) {
                    return Err(sys::Error::failed(
                        format!("process {}", process.name),
                        said(&mut process.child),
                    )
                    .into());
                }
                if clock::now_ns() > give_up {
                    let what = "it was not ready within 30 s";
                    return Err(sys::Error::failed(format!("process {}", process.name), what).into());
                }
                clock::sleep_until(clock::now_ns() + 1_000_000);
            }
        }
        Ok(())
    }

    /// Starts all at once and stores what they receive until all have ended; returns whether they
    /// were stopped early.
    fn run(
        &mut self,
        start_ns: i64,
        mut recorder: Option<&mut Recorder>,
        watch: &mut dyn FnMut(Progress) -> bool,
    ) -> Result<bool, Error> {
        let duration_ns = self.order.plan.options.duration_ns;
        let over_ns = recorder.as_deref().and_then(Recorder::over_ns);
        self.start_ns = start_ns;
        self.usage.start();
        self.stores.iter().for_each(|store| store.ring.start_at(start_ns));
        let mut stopped = false;
        let mut kill_at_ns = start_ns + duration_ns + GRACE_NS;
        loop {
            let now_ns = clock::now_ns();
            let ended = self.ended();
            let large = self.poll(over_ns)?;
            if let Some(recorder) = &mut recorder
                && !large.is_empty()
            {
                recorder.seen(large);
            }
            self.usage.look(now_ns - start_ns, ended);
            if ended {
                return Ok(stopped);
            }
            if now_ns > kill_at_ns {
                self.kill_the_rest();
                continue;
            }
            let progress = Progress {
                elapsed_ns: now_ns - start_ns,
                duration_ns,
                received: self.received,
                worst_ns: self.worst_ns,
            };
            let broken = recorder.as_deref().is_some_and(Recorder::failed);
            if !stopped && (self.stopped_at.is_some() || broken || !watch(progress)) {
                stopped = true;
                kill_at_ns = now_ns + GRACE_NS;
                self.stores.iter().for_each(|store| store.ring.stop());
            }
            clock::sleep_until(now_ns + POLL_NS);
        }
    }

    /// Whether every process has ended; takes the reports of those that have.
    fn ended(&mut self) -> bool {
        let mut all = true;
        for process in &mut self.processes {
            if process.report.is_some() || process.died.is_some() {
                continue;
            }
            let done = process.executors.iter().all(|&at| self.stores[at].ring.reached(State::Done));
            let gone = !matches!(process.child.try_wait(), Ok(None));
            if !done && !gone {
                all = false;
                continue;
            }
            let Taken::Ended(report) = process.take_report() else {
                all = false;
                continue;
            };
            process.report = report;
            if process.report.is_none() {
                process.died = Some(format!(
                    "process {} did not come to its end: {}",
                    process.name,
                    said(&mut process.child)
                ));
                let plan = self.order.plan;
                // Whoever waits for its messages waits for nothing.
                let own = plan.edges.iter().zip(&self.links);
                own.filter(|(edge, _)| {
                    plan.graph.processes[plan.process_of(edge.from.node)].name == process.name
                })
                .for_each(|(_, link)| link.close());
            } else {
                let _ = process.child.wait();
            }
        }
        all
    }

    fn kill_the_rest(&mut self) {
        for process in &mut self.processes {
            if process.report.is_none() && process.died.is_none() {
                let _ = process.child.kill();
            }
        }
    }

    /// Stores the current contents of the rings; returns those sizes that the recorder asks for.
    pub(super) fn poll(&mut self, over_ns: Option<i64>) -> Result<Vec<SnapshotSample>, Error> {
        let mut large = Vec::new();
        let (order, start_ns) = (self.order, self.start_ns);
        let plan = order.plan;
        for (at, store) in self.stores.iter_mut().enumerate() {
            let filled = store.ring.filled();
            for record in (0..filled).map_while(|_| store.ring.pop()) {
                let Some(received) = store.drain.convert(record) else { continue };
                let Some(edge) = self.edges.get_mut(received.edge as usize) else { continue };
                let events = &mut self.events;
                let missed = edge.add(&received.arrival, start_ns, |event| events.add(event));
                let (sample, own) = store.drain.sample(&received, missed);
                self.received += 1;
                self.worst_ns = self.worst_ns.max(sample.value_ns);
                if over_ns.is_some_and(|over_ns| sample.value_ns >= over_ns) {
                    let cpu = plan.cpus[at].iter().next().unwrap_or(0);
                    let (t_ns, value_ns) = (sample.t_ns, sample.value_ns);
                    large.push(SnapshotSample { cpu, thread: at as u32, t_ns, value_ns, whole: false });
                }
                store.stored += 1;
                if self.stopped_at.is_none() {
                    self.stopped_at = stopped_at(order, at, store.stored, &sample, start_ns);
                }
                store.writer.push_with(sample, &own);
            }
            store.writer.keep()?;
        }
        Ok(large)
    }
}

/// What the run says of a sample of an executor that reaches the limit.
fn stopped_at(
    order: &Order<'_>,
    executor: usize,
    number: u64,
    sample: &Sample,
    start_ns: i64,
) -> Option<StoppedAt> {
    let over_ns = order.stop_over_ns.filter(|limit_ns| sample.counts() && sample.value_ns >= *limit_ns)?;
    Some(StoppedAt {
        over_ns,
        probe: ProbeKind::Graph,
        phase: order.phase.to_owned(),
        thread: executor as u32,
        cpu: order.plan.cpus[executor].iter().next().unwrap_or(0),
        sample: number,
        t_ns: sample.t_ns,
        value_ns: sample.value_ns,
        after_ns: sample.t_ns.saturating_add(sample.value_ns) - start_ns,
        planned_ns: order.plan.options.duration_ns,
    })
}

impl Events {
    fn add(&mut self, event: Event) {
        if self.kept.len() < MOST_EVENTS {
            self.kept.push(event);
        } else {
            self.beyond += 1;
        }
    }
}
