//! An executor: threads that serve the timers and messages of its nodes.
//!
//! The order is that of `rclcpp` (T. Blass et al., "A ROS 2 response-time analysis exploiting
//! starvation freedom and execution-time variance", RTSS 2021): in each pass timers first, then
//! subscriptions, services, clients, and of each at most one message. With several threads, one of
//! them searches for work at a time; it lets the next one search as soon as it has found some. One
//! thread at a time serves a node (a mutually exclusive callback group).

use super::node::{Node, Served};
use super::order::ExecutorOrder;
use super::{by_signal, records};
pub(super) use crate::run::by_signal::{GRACE_NS, LONGEST_SLEEP_NS};
use crate::transport::{Doorbell, Error, Waiter};
use measure::ring::Ring;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use sys::clock;
use sys::timersignal::SignalTimer;

/// What its threads share.
pub(super) struct Executor {
    nodes: Vec<Mutex<Node>>,
    units: Vec<Unit>,
    pass: Mutex<Pass>,
    ring: Mutex<Ring>,
    /// The same ring, for what is read without a lock.
    control: Ring,
    bell: Doorbell,
    threads: u32,
}

/// Something that may have work: a timer or a port of a node.
#[derive(Debug, Clone, Copy)]
enum Unit {
    Timer { node: usize, at: usize },
    Port { node: usize, at: usize },
}

/// Where the present pass is.
struct Pass {
    waiter: Waiter,
    /// The next unit.
    at: usize,
    /// Whether any had work.
    ran: bool,
    /// Where the bell stood when it began.
    seen: u32,
    /// The earliest release that has not come.
    due_ns: i64,
    /// Whether any port may still get messages.
    open: bool,
}

impl Executor {
    /// Puts the parts together.
    pub(super) fn new(
        order: &ExecutorOrder,
        nodes: Vec<Node>,
        rings: [Ring; 2],
        bell: Doorbell,
    ) -> Result<Self, Error> {
        let receivers: Vec<_> =
            nodes.iter().flat_map(|node| node.ports.iter().map(|port| &port.receiver)).collect();
        let waiter = bell.waiter(&receivers)?;
        let timers = nodes
            .iter()
            .enumerate()
            .flat_map(|(node, one)| (0..one.timers()).map(move |at| Unit::Timer { node, at }));
        let mut units: Vec<_> = timers.collect();
        for rank in 0..3 {
            for (node, one) in order.nodes.iter().enumerate() {
                let ports = one.ports.iter().enumerate().filter(|(_, port)| port.rank == rank && !port.held);
                units.extend(ports.map(|(at, _)| Unit::Port { node, at }));
            }
        }
        let [ring, control] = rings;
        let pass = Pass { waiter, at: 0, ran: false, seen: 0, due_ns: i64::MAX, open: false };
        let nodes = nodes.into_iter().map(Mutex::new).collect();
        let (pass, ring) = (Mutex::new(pass), Mutex::new(ring));
        Ok(Self { nodes, units, pass, ring, control, bell, threads: order.threads })
    }

    /// The ring, for its states.
    pub(super) fn control(&self) -> &Ring {
        &self.control
    }

    /// Sets the start for all nodes.
    pub(super) fn start_at(&self, start_ns: i64) {
        self.nodes.iter().for_each(|node| lock(node).start_at(start_ns));
    }

    /// One thread's share: serves until the end, and a little longer while senders still live. With
    /// a signal it serves the only timer there is.
    pub(super) fn serve(&self, end_ns: i64, signal: Option<&SignalTimer>) -> Result<(), Error> {
        match (signal, self.units.first()) {
            (Some(signal), Some(Unit::Timer { node, at })) => {
                by_signal::serve(signal, &mut lock(&self.nodes[*node]), *at, &self.control, end_ns)?;
            }
            _ => while !self.control.stopped() && self.turn(end_ns)? {},
        }
        // Others may sleep, and would only see the end when they wake up.
        self.bell.ring();
        Ok(())
    }

    /// Serves the next unit that has work, or sleeps until one may have. False when the run is
    /// over.
    fn turn(&self, end_ns: i64) -> Result<bool, Error> {
        let mut held = Some(lock(&self.pass));
        while let Some(pass) = held.as_deref_mut() {
            let Some(unit) = self.units.get(pass.at).copied() else {
                return end_of_pass(pass, end_ns);
            };
            if pass.at == 0 {
                (pass.seen, pass.ran, pass.due_ns, pass.open) = (pass.waiter.look(), false, i64::MAX, false);
            }
            pass.at += 1;
            let Some(mut node) = self.free(unit) else {
                // Somebody is in it, and rings when it is free.
                pass.open = true;
                continue;
            };
            let mut store = |edge, bytes, arrival| {
                records::store(&mut lock(&self.ring), edge, bytes, arrival);
            };
            let begun = || {
                if let Some(mut pass) = held.take() {
                    pass.ran = true;
                }
            };
            let served = match unit {
                Unit::Timer { at, .. } => node.timer(at, end_ns, &mut store, begun),
                Unit::Port { at, .. } => node.port(at, &mut store, begun),
            };
            let open = matches!(unit, Unit::Port { at, .. } if !node.ports[at].closed);
            drop(node);
            if let Some(pass) = held.as_deref_mut() {
                pass.open |= open;
                if let Served::Due(due_ns) = served {
                    pass.due_ns = pass.due_ns.min(due_ns);
                }
            }
        }
        if self.threads > 1 {
            self.bell.ring();
        }
        Ok(true)
    }

    /// The node of a unit, unless another thread is in it.
    fn free(&self, unit: Unit) -> Option<MutexGuard<'_, Node>> {
        let (Unit::Timer { node, .. } | Unit::Port { node, .. }) = unit;
        match self.nodes[node].try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Its nodes, when all threads have ended.
    pub(super) fn into_nodes(self) -> impl Iterator<Item = Node> {
        self.nodes.into_iter().map(|node| node.into_inner().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Begins the next pass; sleeps first where this one found no work. False when the run is over.
fn end_of_pass(pass: &mut Pass, end_ns: i64) -> Result<bool, Error> {
    pass.at = 0;
    if pass.ran {
        return Ok(true);
    }
    let now_ns = clock::now_ns();
    let over = now_ns >= end_ns && (!pass.open || now_ns >= end_ns + GRACE_NS);
    if over {
        return Ok(false);
    }
    let until_ns = if now_ns < end_ns { end_ns } else { end_ns + GRACE_NS };
    let until_ns = until_ns.min(pass.due_ns).min(now_ns + LONGEST_SLEEP_NS);
    let waited = pass.waiter.wait(pass.seen, Some(until_ns));
    waited.map_err(|source| Error::Os { link: "doorbell".to_owned(), action: "wait for", source })?;
    Ok(true)
}

/// A thread that panicked leaves its counts as they were.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
