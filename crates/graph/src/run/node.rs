//! A node at work: its timers, its receiving ends, its actions. Only one thread is in a node at a
//! time.

use super::order::{ActionOrder, NodeOrder, PublisherReport, TimerReport};
use crate::results::honest::Arrival;
use crate::results::tracker::Tracker;
use crate::transport::{Receiver, Sender, Take};
use measure::job::files::Pair;
use measure::job::{INPUT_BYTES, Job, OUTPUT_BYTES, bytes_of, words_of};
use std::fs::File;
use std::io::{self, Read, Seek};
use sys::clock;

/// A node with all that it needs.
pub(super) struct Node {
    name: String,
    timers: Vec<Timer>,
    pub(super) ports: Vec<Port>,
    actions: Vec<Action>,
    outs: Vec<Out>,
    /// How many of the outs are publishers: the first ones.
    publishers: usize,
    files: Files,
    /// What came of its actions.
    pub(super) tally: Tally,
}

struct Timer {
    name: String,
    first_ns: i64,
    period_ns: i64,
    /// Number of the next release.
    next: i64,
    served: u64,
    missed: u64,
    /// Of those, the ones that the kernel counted, where signals announce releases.
    overruns: Option<u64>,
    action: usize,
}

/// A receiving end.
pub(super) struct Port {
    edge: u32,
    pub(super) receiver: Receiver,
    action: usize,
    pub(super) closed: bool,
}

struct Action {
    order: ActionOrder,
    job: Option<Job>,
}

struct Out {
    senders: Vec<Sender>,
    payload: Vec<u8>,
    /// How long publishing took.
    took: Tracker,
}

#[derive(Default)]
struct Files {
    inputs: Option<File>,
    expected: Option<File>,
}

/// What came of a node's actions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Tally {
    pub(super) compared: u64,
    pub(super) wrong: u64,
    pub(super) nothing_taken: u64,
    pub(super) failed: Option<String>,
}

/// Whether there was something to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Served {
    /// Yes, and it was done.
    Ran,
    /// Not before this time, CLOCK_MONOTONIC ns.
    Due(i64),
    /// Nothing.
    Idle,
}

/// One message received: its edge, its payload's length, its times.
pub(super) type Store<'a> = &'a mut dyn FnMut(u32, u64, Arrival);

/// A record of a file or a message: what a computation works on.
type Given = [u8; INPUT_BYTES];

impl Node {
    /// Sets a node up: memory touched, computations calibrated, files open.
    pub(super) fn new(
        order: &NodeOrder,
        files: Option<&Pair>,
        mut sender: impl FnMut(u32) -> Option<Sender>,
        mut receiver: impl FnMut(u32) -> Option<Receiver>,
    ) -> io::Result<Self> {
        let missing = || io::Error::new(io::ErrorKind::InvalidInput, "an end of a link is missing");
        let timer = |one: &super::order::TimerOrder| Timer {
            name: one.name.clone(),
            first_ns: one.offset_ns,
            period_ns: one.period_ns,
            next: 0,
            served: 0,
            missed: 0,
            overruns: one.by_signal.then_some(0),
            action: one.action,
        };
        let mut ports = Vec::new();
        for one in &order.ports {
            let receiver = receiver(one.edge).ok_or_else(missing)?;
            ports.push(Port { edge: one.edge, receiver, action: one.action, closed: false });
        }
        let mut outs = Vec::new();
        for one in &order.outs {
            let senders = one.edges.iter().map(|edge| sender(*edge).ok_or_else(missing));
            outs.push(Out {
                senders: senders.collect::<Result<_, _>>()?,
                payload: vec![1; one.bytes],
                took: Tracker::default(),
            });
        }
        let action = |one: &ActionOrder| Action { order: one.clone(), job: one.computes.map(Job::new) };
        let wanted = |wants: fn(&ActionOrder) -> bool| order.actions.iter().any(wants);
        let open = |wants, path: fn(&Pair) -> &std::path::Path| {
            files.filter(|_| wanted(wants)).map(|pair| File::open(path(pair))).transpose()
        };
        Ok(Self {
            name: order.name.clone(),
            timers: order.timers.iter().map(timer).collect(),
            ports,
            actions: order.actions.iter().map(action).collect(),
            outs,
            publishers: order.publishers,
            files: Files {
                inputs: open(|action| action.reads, |pair| &pair.inputs)?,
                expected: open(|action| action.compares, |pair| &pair.expected)?,
            },
            tally: Tally::default(),
        })
    }

    /// Sets the time from which offsets of timers count.
    pub(super) fn start_at(&mut self, start_ns: i64) {
        self.timers.iter_mut().for_each(|timer| timer.first_ns += start_ns);
    }

    /// How many timers it has.
    pub(super) fn timers(&self) -> usize {
        self.timers.len()
    }

    /// Serves a timer if its release has come and lies before `end_ns`. Calls `begun` once it is
    /// certain that there is work.
    pub(super) fn timer(&mut self, at: usize, end_ns: i64, store: Store<'_>, begun: impl FnOnce()) -> Served {
        let timer = &mut self.timers[at];
        let release_ns = timer.first_ns + timer.next * timer.period_ns;
        if release_ns >= end_ns {
            return Served::Idle;
        }
        let now_ns = clock::now_ns();
        if now_ns < release_ns {
            return Served::Due(release_ns);
        }
        begun();
        timer.served += 1;
        // As in rclcpp: of the releases that have passed meanwhile, only the last is served.
        let passed = (now_ns.min(end_ns - 1) - timer.first_ns).div_euclid(timer.period_ns);
        let next = (timer.next + 1).max(passed);
        timer.missed += (next - timer.next - 1) as u64;
        timer.next = next;
        let action = timer.action;
        if self.actions[action].order.takes.is_empty() {
            self.act(action, release_ns, [0; INPUT_BYTES]);
        } else if !self.take_waiting(action, store) {
            self.tally.nothing_taken += 1;
        }
        Served::Ran
    }

    /// First release and period of a timer, ns.
    pub(super) fn releases(&self, at: usize) -> [i64; 2] {
        [self.timers[at].first_ns, self.timers[at].period_ns]
    }

    /// Whether a release of a timer before `end_ns` is still to come or to be served.
    pub(super) fn awaits(&self, at: usize, end_ns: i64) -> bool {
        let timer = &self.timers[at];
        timer.first_ns + timer.next * timer.period_ns < end_ns
    }

    /// Serves the last of the releases that a signal stands for: its own and `overruns` more. The
    /// others are missed. Those at `end_ns` and later do not belong to the run.
    pub(super) fn signalled(&mut self, at: usize, overruns: u64, end_ns: i64) {
        if !self.awaits(at, end_ns) {
            return;
        }
        let timer = &mut self.timers[at];
        let last_before_end = (end_ns - 1 - timer.first_ns).div_euclid(timer.period_ns);
        let last = timer.next.saturating_add_unsigned(overruns).min(last_before_end);
        let missed = (last - timer.next) as u64;
        timer.served += 1;
        timer.missed += missed;
        timer.overruns = timer.overruns.map(|before| before + missed);
        timer.next = last + 1;
        let (action, release_ns) = (timer.action, timer.first_ns + last * timer.period_ns);
        self.act(action, release_ns, [0; INPUT_BYTES]);
    }

    /// Counts the releases before `end_ns` that no signal announced.
    pub(super) fn give_up(&mut self, at: usize, end_ns: i64) {
        while self.awaits(at, end_ns) {
            self.timers[at].next += 1;
            self.timers[at].missed += 1;
        }
    }

    /// Runs an action for each message that waits at the ports it takes from, the oldest first;
    /// returns whether there was any.
    fn take_waiting(&mut self, action: usize, store: Store<'_>) -> bool {
        let mut any = false;
        for taken in 0..self.actions[action].order.takes.len() {
            let at = self.actions[action].order.takes[taken];
            while let Some((arrival, given)) = self.ports[at].take(store, &mut self.tally, || ()) {
                any = true;
                self.act(action, arrival.release_ns, given);
            }
        }
        any
    }

    /// Serves a port if a message waits there.
    pub(super) fn port(&mut self, at: usize, store: Store<'_>, begun: impl FnOnce()) -> Served {
        match self.ports[at].take(store, &mut self.tally, begun) {
            None => Served::Idle,
            Some((arrival, given)) => {
                self.act(self.ports[at].action, arrival.release_ns, given);
                Served::Ran
            }
        }
    }

    /// Reads, compares, computes and publishes; the output inherits the release of its input.
    fn act(&mut self, action: usize, release_ns: i64, mut given: Given) {
        let Self { actions, outs, files, tally, .. } = self;
        let Action { order, job } = &mut actions[action];
        if order.reads {
            tally.note(next_record(files.inputs.as_mut(), &mut given));
        }
        if order.compares {
            let mut expected = [0; OUTPUT_BYTES];
            if tally.note(next_record(files.expected.as_mut(), &mut expected)) {
                tally.compared += 1;
                tally.wrong += u64::from(given[..OUTPUT_BYTES] != expected);
            }
        }
        if let Some(job) = job {
            let output = job.step(&words_of(&given));
            bytes_of(&output, &mut given[..OUTPUT_BYTES]);
        }
        for &out in &order.sends {
            let Out { senders, payload, took } = &mut outs[out];
            let length = given.len().min(payload.len());
            payload[..length].copy_from_slice(&given[..length]);
            for sender in &mut *senders {
                tally.note(sender.send(release_ns, payload));
            }
            // The stamp of the first is read anyway: nothing is added in front of it.
            if let Some(first) = senders.first() {
                took.published(clock::now_ns() - first.stamped_ns());
            }
        }
    }

    /// How long its publishers took; of those without a subscriber nothing is known.
    pub(super) fn publisher_reports(&self) -> impl Iterator<Item = PublisherReport> + '_ {
        let heard =
            self.outs.iter().take(self.publishers).enumerate().filter(|(_, out)| !out.senders.is_empty());
        heard.map(|(port, out)| PublisherReport { node: self.name.clone(), port, took: out.took })
    }

    /// What its timers did.
    pub(super) fn timer_reports(&self) -> impl Iterator<Item = TimerReport> + '_ {
        self.timers.iter().map(|timer| TimerReport {
            name: format!("{}/{}", self.name, timer.name),
            period_ns: timer.period_ns,
            served: timer.served,
            missed: timer.missed,
            overruns: timer.overruns,
        })
    }
}

impl Port {
    /// Takes the oldest message and stores its times.
    fn take(
        &mut self,
        store: Store<'_>,
        tally: &mut Tally,
        begun: impl FnOnce(),
    ) -> Option<(Arrival, Given)> {
        match self.receiver.take() {
            Ok(Take::Message(message)) => {
                let received_ns = clock::now_ns();
                begun();
                let header = message.header;
                let arrival = Arrival {
                    number: header.sequence,
                    release_ns: header.release_ns,
                    sent_ns: header.sent_ns,
                    received_ns,
                };
                let mut given = [0; INPUT_BYTES];
                let length = message.payload.len().min(INPUT_BYTES);
                given[..length].copy_from_slice(&message.payload[..length]);
                store(self.edge, header.bytes, arrival);
                Some((arrival, given))
            }
            Ok(Take::Empty) => None,
            Ok(Take::Closed) => {
                self.closed = true;
                None
            }
            Err(error) => {
                // A link that cannot be read will not be readable at the next turn either.
                self.closed = true;
                tally.failed.get_or_insert_with(|| error.to_string());
                None
            }
        }
    }
}

impl Tally {
    /// Keeps the first thing that went wrong; whether nothing did.
    fn note<T, E: std::fmt::Display>(&mut self, result: Result<T, E>) -> bool {
        match result {
            Ok(_) => true,
            Err(error) => {
                self.failed.get_or_insert_with(|| error.to_string());
                false
            }
        }
    }
}

/// The next record of a file, which begins anew at its end.
fn next_record(file: Option<&mut File>, into: &mut [u8]) -> io::Result<()> {
    let Some(file) = file else { return Err(io::Error::new(io::ErrorKind::NotFound, "no file of records")) };
    match file.read_exact(into) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            file.rewind()?;
            file.read_exact(into)
        }
        result => result,
    }
}
