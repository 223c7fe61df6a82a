//! The executing side of a graph: one process, its executors' threads, its report. Runs as
//! `stillcore internal graph COUNT`, with COUNT descriptors from number 3 on, of which the first
//! holds the order.

use super::executor::Executor;
use super::node::Node;
use super::order::{ExecutorOrder, ExecutorReport, LinkEnd, ProcessOrder, ProcessReport};
use crate::Error;
use crate::transport::{Doorbell, Parcel, Receiver, Sender};
use journal::enter;
use measure::ring::{Ring, State};
use model::sample::Policy;
use model::usage::Usage;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::sync::Barrier;
use std::thread;
use sys::timersignal::SignalTimer;
use sys::{clock, memory, policy, sched};

/// Polling interval of the ring while waiting for the start, ns.
const WAIT_STEP_NS: i64 = 2_000_000;
/// A process whose parent never starts it ends by itself.
const WAIT_LIMIT_NS: i64 = 60 * clock::SECOND_NS;

/// Does what the order says. The only caller is the hidden verb.
pub fn run(descriptors: usize) -> Result<ProcessReport, Error> {
    let mut parcel =
        Parcel::inherited(descriptors).map_err(|error| Error::os("take up", "descriptors", error))?;
    let order = read_order(File::from(parcel.take("order", 0)?))?;
    let memory_unlocked = memory::lock_on_fault().err().map(|error| error.to_string());
    let mut ends = adopt(&order, &mut parcel)?;
    let mut executors = Vec::new();
    for one in &order.executors {
        executors.push(executor(one, &order, &mut ends, &mut parcel)?);
    }
    let reports = thread::scope(|scope| {
        let running: Vec<_> = order
            .executors
            .iter()
            .zip(executors)
            .map(|(order_of, executor)| {
                let duration_ns = order.duration_ns;
                scope.spawn(move || serve(order_of, executor, duration_ns))
            })
            .collect();
        running.into_iter().map(joined).collect::<Result<Vec<_>, _>>()
    })?;
    Ok(ProcessReport { rss_kib: clock::peak_rss_kib(), memory_unlocked, executors: reports })
}

fn joined<T>(thread: thread::ScopedJoinHandle<'_, Result<T, Error>>) -> Result<T, Error> {
    thread.join().unwrap_or_else(|_| Err(sys::Error::failed("a thread of an executor", "it panicked").into()))
}

fn read_order(mut file: File) -> Result<ProcessOrder, Error> {
    let failed = |error: io::Error| Error::os("read", "the order of a graph's process", error);
    let mut text = String::new();
    file.rewind().and_then(|()| file.read_to_string(&mut text)).map_err(failed)?;
    serde_json::from_str(&text).map_err(|error| failed(error.into()))
}

/// The ends of links by edge.
#[derive(Default)]
struct Ends {
    senders: BTreeMap<u32, Sender>,
    receivers: BTreeMap<u32, Receiver>,
}

fn adopt(order: &ProcessOrder, parcel: &mut Parcel) -> Result<Ends, Error> {
    let mut ends = Ends::default();
    for (edge, end) in &order.links {
        match end {
            LinkEnd::Sender(end) => drop(ends.senders.insert(*edge, Sender::adopt(end, parcel)?)),
            LinkEnd::Receiver(end) => drop(ends.receivers.insert(*edge, Receiver::adopt(end, parcel)?)),
            LinkEnd::Pair(end) => {
                let (sender, receiver) = end.adopt_pair(parcel)?;
                ends.senders.insert(*edge, sender);
                ends.receivers.insert(*edge, receiver);
            }
        }
    }
    // All of this process's are there to be found by now.
    ends.senders.values_mut().try_for_each(Sender::wait_until_joined)?;
    ends.receivers.values_mut().try_for_each(Receiver::wait_until_joined)?;
    Ok(ends)
}

fn executor(
    order: &ExecutorOrder,
    process: &ProcessOrder,
    ends: &mut Ends,
    parcel: &mut Parcel,
) -> Result<Executor, Error> {
    let failed = |error: io::Error| Error::os("set up", format!("executor {}", order.number), error);
    let file = parcel.take("ring", order.ring)?;
    let rings = [Ring::map(&file).map_err(failed)?, Ring::map(&file).map_err(failed)?];
    let bell = Doorbell::adopt(&order.bell, parcel)?;
    let nodes = order.nodes.iter().map(|node| {
        let (senders, receivers) = (&mut ends.senders, &mut ends.receivers);
        let files = process.files.as_ref();
        Node::new(node, files, |edge| senders.remove(&edge), |edge| receivers.remove(&edge)).map_err(failed)
    });
    Ok(Executor::new(order, nodes.collect::<Result<_, _>>()?, rings, bell)?)
}

/// What one thread used and got.
struct Thread {
    tid: i32,
    policy_effective: Policy,
    policy_refused: Option<String>,
    timer_slack_ns: u64,
    used: Usage,
    cpu_time_ns: u64,
}

/// All threads of one executor, of which this is the first.
fn serve(order: &ExecutorOrder, executor: Executor, duration_ns: i64) -> Result<ExecutorReport, Error> {
    let ready = Barrier::new(order.threads as usize);
    let one = || thread_of(order, &executor, &ready, duration_ns);
    let threads = thread::scope(|scope| {
        let others: Vec<_> = (1..order.threads).map(|_| scope.spawn(one)).collect();
        let first = one();
        others.into_iter().map(joined).chain([first]).collect::<Result<Vec<_>, _>>()
    })?;
    executor.control().set_state(State::Done);
    Ok(report(order, threads, executor))
}

fn report(order: &ExecutorOrder, threads: Vec<Thread>, executor: Executor) -> ExecutorReport {
    let sum = |of: fn(&Thread) -> u64| threads.iter().map(of).sum();
    let last = threads.last();
    let mut report = ExecutorReport {
        number: order.number,
        tids: threads.iter().map(|thread| thread.tid).collect(),
        policy_effective: last.map_or_else(Policy::other, |thread| thread.policy_effective.clone()),
        policy_refused: threads.iter().find_map(|thread| thread.policy_refused.clone()),
        timer_slack_ns: last.map_or(0, |thread| thread.timer_slack_ns),
        used: threads.iter().fold(Usage::default(), |sum, thread| sum + thread.used),
        cpu_time_ns: sum(|thread| thread.cpu_time_ns),
        timers: Vec::new(),
        publishers: Vec::new(),
        outputs_compared: 0,
        outputs_wrong: 0,
        nothing_taken: 0,
        failed: None,
    };
    for mut node in executor.into_nodes() {
        // Messages still in a queue of this process vanish with the process: count them as left
        // before.
        for port in &mut node.ports {
            if let Err(error) = port.receiver.leave() {
                node.tally.failed.get_or_insert_with(|| error.to_string());
            }
        }
        report.timers.extend(node.timer_reports());
        report.publishers.extend(node.publisher_reports());
        report.outputs_compared += node.tally.compared;
        report.outputs_wrong += node.tally.wrong;
        report.nothing_taken += node.tally.nothing_taken;
        report.failed = report.failed.or(node.tally.failed);
    }
    report
}

fn thread_of(
    order: &ExecutorOrder,
    executor: &Executor,
    ready: &Barrier,
    duration_ns: i64,
) -> Result<Thread, Error> {
    let set = set_up(order);
    let signal = order.by_signal().then(SignalTimer::new).transpose();
    memory::prefault_stack();
    // Others wait here for this one, even if its setup failed.
    if ready.wait().is_leader() {
        executor.control().set_state(State::Ready);
    }
    let (policy_effective, policy_refused) = set?;
    let signal = signal.map_err(|error| Error::os("make", "a timer with a signal", error))?;
    let start_ns = wait_for_start(executor.control())?;
    if ready.wait().is_leader() {
        executor.start_at(start_ns);
    }
    ready.wait();
    let used = || clock::thread_usage().map_err(|error| Error::os("read", "the usage of a thread", error));
    let (before, cpu_before) = (used()?, clock::thread_cpu_ns());
    clock::sleep_until(start_ns);
    executor.serve(start_ns + duration_ns, signal.as_ref())?;
    let (after, cpu_after) = (used()?, clock::thread_cpu_ns());
    policy::leave_class(&policy_effective)
        .map_err(|error| Error::os("take", "a thread out of its class", error))?;
    Ok(Thread {
        tid: sched::tid(),
        policy_effective,
        policy_refused,
        timer_slack_ns: sched::timer_slack(),
        used: after - before,
        cpu_time_ns: (cpu_after - cpu_before) as u64,
    })
}

/// Puts the thread on its CPUs and requests its policy; returns what it got, and why if that
/// differs.
fn set_up(order: &ExecutorOrder) -> Result<(Policy, Option<String>), Error> {
    let failed = |error: io::Error| Error::os("set up", format!("a thread on CPUs {}", order.cpus), error);
    enter::onto(&order.cpus).map_err(failed)?;
    if order.timer_slack_ns > 0 {
        sched::set_timer_slack(order.timer_slack_ns).map_err(failed)?;
    }
    let refused = policy::set_policy(&order.policy).err();
    let refused = refused.map(|error| sched::refusal(&order.policy, &error, true));
    Ok((policy::effective().map_err(failed)?, refused))
}

fn wait_for_start(ring: &Ring) -> Result<i64, Error> {
    let give_up = clock::now_ns() + WAIT_LIMIT_NS;
    loop {
        if let Some(start_ns) = ring.start_ns() {
            return Ok(start_ns);
        }
        let now_ns = clock::now_ns();
        if ring.stopped() || now_ns > give_up {
            return Err(sys::Error::failed("a process of the graph", "its run never began").into());
        }
        clock::sleep_until(now_ns + WAIT_STEP_NS);
    }
}
