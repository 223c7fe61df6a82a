//! The parent's side of a disturbance: one child a stressor, watched, ended in time, and accounted
//! for.
//!
//! All children are started, watched and reaped by one thread that lives as long as the
//! disturbance, because the kernel ties a child's death signal to the thread that started it. That
//! thread runs on the housekeeping CPUs only, so that neither it nor a child that has not confined
//! itself yet ever touches a measured CPU. A child leads a process group; its tree ends with it.

use super::leaving::Leaving;
use super::rates::Rates;
use super::watch::Sightings;
use super::{Error, Options, Order, catalogue};
use crate::protocol::{Line, StressArgs};
use crate::witness::proc_dir;
use model::Cpus;
use model::sample::Policy;
use model::stressor::{StressorRecord, StressorState, Witness};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use sys::clock::now_ns;
use sys::{pipes, sched, spawn};

/// How often the operations of a disturbance are read, and at its beginning where its threads are.
const LOOK: Duration = Duration::from_millis(100);
/// The longest time between two looks at where its threads are, which read a file for each.
const RAREST_LOOK: Duration = Duration::from_secs(1);
/// How often children are asked after while something is expected of them.
const TURN: Duration = Duration::from_millis(5);
/// How long a process may take to die of SIGKILL before it is left behind, in an uninterruptible
/// sleep.
const DEATH: Duration = Duration::from_secs(5);

/// Running stressors. Dropping it kills them at once; [`stop`](Self::stop) ends them in order and
/// returns what they did.
#[derive(Debug)]
pub struct Disturbance {
    status: Arc<Mutex<Vec<Status>>>,
    control: Option<Sender<Word>>,
    thread: Option<JoinHandle<Vec<StressorRecord>>>,
}

/// An order to the supervising thread.
#[derive(Debug, Clone, Copy)]
enum Word {
    /// Held stressors may begin.
    Go,
    /// All are to end, and have so long.
    Stop(Duration),
}

/// One stressor as of now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// Its name.
    pub name: String,
    /// Its process.
    pub pid: i32,
    /// Whether its operations have begun.
    pub ready: bool,
    /// Whether it has ended.
    pub ended: bool,
    /// Operations that have succeeded so far, as far as it reports them before its end.
    pub ops_ok: u64,
}

impl Disturbance {
    /// Starts one child for each order, as `exe VERB… NAME JSON`. Returns once all are started, not
    /// yet once they disturb: see [`wait_ready`](Self::wait_ready). What a started child then fails
    /// at is said in its record.
    pub fn start(exe: &Path, orders: &[Order], options: &Options) -> Result<Self, Error> {
        for order in orders {
            catalogue::find(&order.name)?;
            if order.cpus.is_empty() {
                return Err(Error::NoCpu { what: order.name.clone() });
            }
        }
        let status = Arc::new(Mutex::new(Vec::new()));
        let (control, words) = channel();
        let (started, outcome) = channel();
        let plan = Plan {
            exe: exe.to_owned(),
            orders: orders.to_vec(),
            cpus: orders.iter().flat_map(|order| order.cpus.iter()).collect(),
            options: options.clone(),
        };
        let shared = Arc::clone(&status);
        let thread = std::thread::Builder::new()
            .name("disturb".to_owned())
            .spawn(move || supervise(&plan, &shared, &started, &words))
            .map_err(Error::refused("start a thread"))?;
        let disturbance = Self { status, control: Some(control), thread: Some(thread) };
        let gone = || Error::refused("start the disturbances")(std::io::Error::other("their thread ended"));
        outcome.recv().map_err(|_| gone())?.map(|()| disturbance)
    }

    /// Waits until every stressor has begun or ended; false if some had not by the timeout.
    pub fn wait_ready(&self, timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        loop {
            if self.status().iter().all(|child| child.ready || child.ended) {
                return true;
            }
            if Instant::now() >= deadline {
                return false;
            }
            std::thread::sleep(TURN);
        }
    }

    /// Lets held stressors begin their operations.
    pub fn go(&self) {
        // A thread that has panicked has no receiver, and no record to give.
        let _ = self.control.as_ref().map(|control| control.send(Word::Go));
    }

    /// Each stressor as of the last look, at most 100 ms ago.
    pub fn status(&self) -> Vec<Status> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The names of the stressors that have begun and not ended.
    pub fn running(&self) -> Vec<String> {
        self.status()
            .into_iter()
            .filter(|child| child.ready && !child.ended)
            .map(|child| child.name)
            .collect()
    }

    /// Asks all to end, kills after `patience` those that have not (`stuck`), and returns one
    /// record for each, in the order of the request.
    pub fn stop(mut self, patience: Duration) -> Vec<StressorRecord> {
        // A thread that has panicked has no receiver; joining then yields no records.
        let _ = self.control.as_ref().map(|control| control.send(Word::Stop(patience)));
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

impl Drop for Disturbance {
    fn drop(&mut self) {
        // A closed channel means: kill.
        self.control = None;
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

struct Plan {
    exe: PathBuf,
    orders: Vec<Order>,
    /// Of all of them.
    cpus: Cpus,
    options: Options,
}

/// The supervising thread, from the first spawn to the last record.
fn supervise(
    plan: &Plan,
    status: &Mutex<Vec<Status>>,
    started: &Sender<Result<(), Error>>,
    words: &Receiver<Word>,
) -> Vec<StressorRecord> {
    let mut children = match start_all(plan) {
        Ok(children) => children,
        Err(error) => {
            let _ = started.send(Err(error));
            return Vec::new();
        }
    };
    publish(&children, status);
    let _ = started.send(Ok(()));
    let patience = watch_until_stop(&mut children, status, words);
    end_all(&mut children, patience);
    publish(&children, status);
    children.into_iter().map(Stressor::into_record).collect()
}

fn start_all(plan: &Plan) -> Result<Vec<Stressor>, Error> {
    sched::pin(&plan.cpus).map_err(Error::refused("run on the housekeeping CPUs"))?;
    // The caller may be a real-time thread, whose policy this one has inherited. Where that cannot
    // be shed it is ordinary already.
    let _ = sys::policy::set_policy(&Policy::other());
    let mut children = Vec::new();
    for (number, order) in plan.orders.iter().enumerate() {
        match Stressor::start(order, number, plan) {
            Ok(child) => children.push(child),
            Err(error) => {
                end_all(&mut children, Duration::ZERO);
                return Err(error);
            }
        }
    }
    Ok(children)
}

/// Watches the children until an order to stop arrives; returns the patience to stop with.
fn watch_until_stop(
    children: &mut [Stressor],
    status: &Mutex<Vec<Status>>,
    words: &Receiver<Word>,
) -> Duration {
    let begun = Instant::now();
    let (mut next_look, mut next_sighting) = (begun, begun);
    loop {
        children.iter_mut().for_each(Stressor::attend);
        let now = Instant::now();
        if now >= next_look {
            next_look = now + LOOK;
            children.iter_mut().for_each(Stressor::look_at_rate);
        }
        if now >= next_sighting {
            next_sighting = now + between_sightings(now - begun);
            children.iter_mut().for_each(Stressor::look_at_threads);
        }
        publish(children, status);
        let expecting = children.iter().any(|child| !child.ready && !child.ended);
        let pause = if expecting { TURN } else { next_look.saturating_duration_since(Instant::now()) };
        match words.recv_timeout(pause) {
            Ok(Word::Go) => children.iter_mut().for_each(Stressor::go),
            Ok(Word::Stop(patience)) => return patience,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Duration::ZERO,
        }
    }
}

/// A disturbance that has stayed where it may for long is looked at less often: the looks take time
/// of the CPUs that it is to disturb with.
fn between_sightings(since_begin: Duration) -> Duration {
    (since_begin / 100).clamp(LOOK, RAREST_LOOK)
}

fn publish(children: &[Stressor], status: &Mutex<Vec<Status>>) {
    let now = children.iter().map(|child| Status {
        name: child.order.name.clone(),
        pid: child.pid.as_raw_nonzero().get(),
        ready: child.ready,
        ended: child.ended,
        ops_ok: child.rates.total(),
    });
    *status.lock().unwrap_or_else(PoisonError::into_inner) = now.collect();
}

/// SIGTERM, patience, SIGKILL, and a last wait.
fn end_all(children: &mut [Stressor], patience: Duration) {
    for child in children.iter_mut().filter(|child| !child.ended) {
        child.stop_requested = true;
        let _ = kill_process_group(child.pid, Signal::TERM);
    }
    attend_until(children, Instant::now() + patience);
    for child in children.iter_mut().filter(|child| !child.ended) {
        child.stuck = true;
        let _ = kill_process_group(child.pid, Signal::KILL);
    }
    attend_until(children, Instant::now() + DEATH);
}

fn attend_until(children: &mut [Stressor], deadline: Instant) {
    loop {
        children.iter_mut().for_each(Stressor::attend);
        if children.iter().all(|child| child.ended) || Instant::now() >= deadline {
            return;
        }
        std::thread::sleep(TURN);
    }
}

/// One child.
struct Stressor {
    order: Order,
    /// Where its threads may be: on its CPUs, and for some on the measured ones.
    allowed: Cpus,
    child: Child,
    pid: Pid,
    pipe: ChildStdout,
    /// On which a held child waits for the word to begin.
    word: Option<ChildStdin>,
    text: Vec<u8>,
    started_ns: i64,
    ready: bool,
    confined_by: Vec<String>,
    outcome: Option<Line>,
    ended: bool,
    /// How it ended, where that could be learned.
    status: Option<ExitStatus>,
    stop_requested: bool,
    stuck: bool,
    sightings: Sightings,
    rates: Rates,
}

impl Stressor {
    fn start(order: &Order, number: usize, plan: &Plan) -> Result<Self, Error> {
        let options = &plan.options;
        let spec = catalogue::find(&order.name)?;
        let leaves = crate::foreseen::of(order, number, options.tracefs.as_deref())?;
        let rates = Rates::new(order.rate.or(spec.default_rate))?;
        let measured = if spec.colocated || spec.aimed { options.measured.clone() } else { Cpus::default() };
        let shared = if spec.colocated { measured.clone() } else { Cpus::default() };
        let args = StressArgs {
            cpus: order.cpus.clone(),
            duration_ns: i64::try_from(options.duration.as_nanos()).unwrap_or(i64::MAX),
            rate: order.rate,
            bytes: order.bytes,
            workers: order.workers,
            measured,
            dir: order.dir.clone().or_else(|| options.dir.clone()),
            supervisor: rustix::process::getpid().as_raw_nonzero().get(),
            groups: options.groups.clone(),
            leaves: leaves.iter().map(Leaving::target).collect(),
            metered: true,
            nice: options.nice,
            held: options.held,
            linger_ns: i64::try_from(options.linger.as_nanos()).unwrap_or(i64::MAX),
        };
        let json = serde_json::to_string(&args)
            .map_err(|error| Error::refused("pass arguments")(std::io::Error::from(error)))?;
        let mut command = Command::new(&plan.exe);
        command.args(&options.verb).arg(&order.name).arg(json);
        // What a child has to say about a failure comes as a line; nothing of it may reach a
        // terminal.
        command.stdin(if options.held { Stdio::piped() } else { Stdio::null() });
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        spawn::die_with_parent(&mut command);
        spawn::share(&mut command, rates.file());
        let failed = |source| Error::Spawn { exe: plan.exe.clone(), source };
        let mut child = command.spawn().map_err(failed)?;
        let pid = Pid::from_child(&child);
        let pipe = child.stdout.take().ok_or_else(|| failed(std::io::Error::other("it has no output")))?;
        let word = child.stdin.take();
        let stressor = Self {
            order: order.clone(),
            allowed: order.cpus.iter().chain(shared.iter()).collect(),
            child,
            pid,
            pipe,
            word,
            text: Vec::new(),
            started_ns: now_ns(),
            ready: false,
            confined_by: Vec::new(),
            outcome: None,
            ended: false,
            status: None,
            stop_requested: false,
            stuck: false,
            sightings: Sightings::default(),
            rates,
        };
        let never_waits = pipes::never_wait(&stressor.pipe);
        never_waits.map_err(Error::refused("read from a child without waiting")).map(|()| stressor)
    }

    /// Sends the word to begin. A child that is gone already is noticed by its end.
    fn go(&mut self) {
        let _ = self.word.take().map(|mut word| word.write_all(b"."));
    }

    /// Reads what the child has written and notices its end, without waiting.
    fn attend(&mut self) {
        if self.ended {
            return;
        }
        // Checked before the pipe: a child that has ended writes no more, so what is read
        // afterwards is complete. A caller that ignores SIGCHLD has the kernel reap its children:
        // then an error, not a status, shows the end.
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let over = !matches!(waitid(WaitId::Pid(self.pid), options), Ok(None));
        self.read_lines();
        if over {
            // The dead child still holds its process group's number, so this reaches its own
            // descendants and nobody else.
            let _ = kill_process_group(self.pid, Signal::KILL);
            self.status = self.child.wait().ok();
            self.ended = true;
        }
    }

    fn read_lines(&mut self) {
        let mut buffer = [0; 4096];
        while let Ok(bytes @ 1..) = self.pipe.read(&mut buffer) {
            self.text.extend_from_slice(&buffer[..bytes]);
        }
        while let Some(end) = self.text.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.text.drain(..=end).collect();
            match serde_json::from_slice(&line) {
                Ok(Line::Ready { confined_by }) => (self.ready, self.confined_by) = (true, confined_by),
                Ok(outcome) => self.outcome = Some(outcome),
                Err(_) => {
                    let reason =
                        format!("its output was not understood: {:?}", String::from_utf8_lossy(&line));
                    self.outcome = Some(Line::Failed { reason });
                }
            }
        }
    }

    /// Until it is ready it comes from where its supervisor may run, which is where any stressor
    /// may.
    fn look_at_threads(&mut self) {
        if self.ready && !self.ended {
            self.sightings.look(proc_dir(), self.pid.as_raw_nonzero().get(), &self.allowed);
        }
    }

    fn look_at_rate(&mut self) {
        if self.ready && !self.ended {
            self.rates.look(now_ns());
        }
    }

    /// The record of a child that has ended, or that was left behind.
    fn into_record(mut self) -> StressorRecord {
        let why = self.why_no_record();
        let absent = matches!(self.outcome, Some(Line::Absent { .. }));
        let mut record = match self.outcome.take() {
            Some(Line::Record(record)) => *record,
            _ => self.empty_record(why, if absent { StressorState::Absent } else { StressorState::Void }),
        };
        if self.stuck {
            record.state = StressorState::Stuck;
            let end = if self.ended { "was killed" } else { "survived SIGKILL" };
            record.reason = Some(format!("it did not end on request and {end}"));
        }
        if let Some(leak) = self.sightings.complaint() {
            record.state = if record.state.happened() { StressorState::Void } else { record.state };
            record.reason = Some(record.reason.map_or(leak.clone(), |reason| format!("{reason}; {leak}")));
        }
        (record.rates, record.stalls) = self.rates.finish(record.t1_ns);
        record
    }

    fn why_no_record(&self) -> String {
        let when = if self.ready { "before it reported what it did" } else { "before it began" };
        match (&self.outcome, self.status) {
            (Some(Line::Failed { reason } | Line::Absent { reason }), _) => reason.clone(),
            _ if !self.ended => "it is still there".to_owned(),
            _ if self.stop_requested && !self.ready => "stopped before it began".to_owned(),
            (_, Some(status)) => format!("it ended {when}: {status}"),
            (_, None) => format!("it ended {when}"),
        }
    }

    fn empty_record(&self, reason: String, state: StressorState) -> StressorRecord {
        let witness = catalogue::find(&self.order.name).map_or("", |spec| spec.witness);
        StressorRecord {
            name: self.order.name.clone(),
            cpus: self.order.cpus.clone(),
            ops_asked: None,
            ops_ok: 0,
            ops_failed: [].into(),
            parts: [].into(),
            t0_ns: self.started_ns,
            t1_ns: now_ns(),
            witness: Witness { name: witness.to_owned(), expected: 0, seen: 0 },
            state,
            reason: Some(reason),
            confined_by: self.confined_by.clone(),
            rates: Vec::new(),
            stalls: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_looked_at_often_at_first_and_every_second_in_a_long_run() {
        let after = |s| between_sightings(Duration::from_secs(s)).as_millis();
        assert_eq!([0, 10, 50, 100, 86_400].map(after), [100, 100, 500, 1_000, 1_000]);
    }
}
