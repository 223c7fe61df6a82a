//! Message latency over one link: a timer releases a publisher on one CPU; a subscriber on another
//! CPU sleeps until a message comes.
//!
//! Both latencies of each message are kept. One runs from the intended release: the application
//! sees it, and a late publisher cannot hide it. The other runs from the call of `send`, as other
//! tools report it (pmqtest, ddsperf, Apex.AI performance_test).

mod child;

pub use child::serve;

use crate::transport::{
    Balance, BellOrder, Doorbell, EndOrder, Error as LinkError, Facts, Kind, Link, LinkSpec, Parcel, WhenFull,
};
use model::sample::Policy;
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;
use sys::{clock, spawn};

/// Between the start order and the first release: long enough for both processes to read it.
const LEAD_NS: i64 = 50_000_000;
/// Interval of checks whether the user wants to end it.
const LOOK: Duration = Duration::from_millis(20);

/// What is measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The transport.
    pub kind: Kind,
    /// Payload, bytes.
    pub message_bytes: usize,
    /// Depth of the link.
    pub depth: usize,
    /// Release interval, ns.
    pub period_ns: i64,
    /// Releases.
    pub messages: u64,
    /// First messages that are sent and not counted.
    pub warm_up: u64,
    /// The publisher's CPU, and the subscriber's.
    pub cpus: [u32; 2],
    /// How publisher and subscriber are scheduled.
    pub policies: [Policy; 2],
    /// Whether both are threads of one process.
    pub threads: bool,
}

impl Plan {
    /// The link that is measured.
    pub fn link(&self) -> LinkSpec {
        LinkSpec {
            name: format!("{}-{}", self.kind, self.message_bytes),
            kind: self.kind,
            message_bytes: self.message_bytes,
            depth: self.depth,
            when_full: WhenFull::Refuse,
        }
    }
}

/// One message as the subscriber got it; CLOCK_MONOTONIC ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heard {
    /// Its number.
    pub sequence: u64,
    /// When it was to be sent.
    pub release_ns: i64,
    /// When it was sent.
    pub sent_ns: i64,
    /// When it was taken.
    pub taken_ns: i64,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// What the link became.
    pub facts: Facts,
    /// Every message that was taken, in order.
    pub heard: Vec<Heard>,
    /// Where every message went.
    pub balance: Balance,
    /// The policies that the kernel reports for publisher and subscriber.
    pub policies: Vec<Policy>,
    /// What the machine refused: policies, locked memory.
    pub refused: Vec<String>,
    /// CPU time of publisher and subscriber in the window, ns.
    pub cpu_ns: Vec<u64>,
}

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The link could not be made.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The system refused.
    #[error("cannot {action}: {source}")]
    Os {
        /// What was attempted.
        action: &'static str,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A process that was started did not do its part.
    #[error("the {role} of {kind} failed: {what}")]
    Failed {
        /// Which process.
        role: &'static str,
        /// Over which transport.
        kind: Kind,
        /// What it said.
        what: String,
    },
}

/// The order for a child.
#[derive(Debug, Serialize, Deserialize)]
struct Order {
    plan: Plan,
    role: Role,
    end: EndOrder,
    bell: Option<BellOrder>,
    descriptors: usize,
}

/// Which end a child has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Role {
    Publisher,
    Subscriber,
    Both,
}

impl Role {
    fn name(self) -> &'static str {
        match self {
            Self::Publisher => "publisher",
            Self::Subscriber => "subscriber",
            Self::Both => "process",
        }
    }
}

/// What a child says when it is done.
#[derive(Debug, Default, Serialize, Deserialize)]
struct ChildReport {
    heard: Vec<Heard>,
    policies: Vec<Policy>,
    refused: Vec<String>,
    cpu_ns: Vec<u64>,
}

/// Measures. `program` is this very command; `stopped` is polled.
pub fn measure(program: &Path, plan: &Plan, stopped: &dyn Fn() -> bool) -> Result<Outcome, Error> {
    let bell = Doorbell::new(&[plan.kind])?;
    let link = Link::new(&plan.link(), &bell)?;
    let roles: &[Role] = if plan.threads || !plan.kind.between_processes() {
        &[Role::Both]
    } else {
        &[Role::Subscriber, Role::Publisher]
    };
    let mut children = Vec::new();
    for role in roles {
        children.push(Process::start(program, plan, *role, &link, &bell)?);
    }
    children.iter_mut().try_for_each(Process::is_ready)?;
    let start_ns = clock::now_ns() + LEAD_NS;
    children.iter_mut().try_for_each(|child| child.begin(start_ns))?;
    let reports = Process::collect(children, &link, stopped)?;
    let balance = link.settle()?;
    let mut outcome = Outcome {
        facts: link.facts().clone(),
        heard: Vec::new(),
        balance,
        policies: Vec::new(),
        refused: Vec::new(),
        cpu_ns: Vec::new(),
    };
    // The subscriber was started first; its report comes last.
    for report in reports.into_iter().rev() {
        outcome.heard.extend(report.heard);
        outcome.policies.extend(report.policies);
        outcome.refused.extend(report.refused);
        outcome.cpu_ns.extend(report.cpu_ns);
    }
    Ok(outcome)
}

struct Process {
    role: Role,
    kind: Kind,
    child: Child,
    word: Option<ChildStdin>,
    says: Option<BufReader<ChildStdout>>,
}

impl Process {
    fn start(program: &Path, plan: &Plan, role: Role, link: &Link, bell: &Doorbell) -> Result<Self, Error> {
        let mut parcel = Parcel::default();
        let end = match role {
            Role::Publisher => link.sender_order(&mut parcel),
            Role::Subscriber => link.receiver_order(&mut parcel),
            Role::Both => link.pair_order(&mut parcel),
        }?;
        let bell = if role == Role::Publisher { None } else { Some(bell.order(&mut parcel)?) };
        let order = Order { plan: plan.clone(), role, end, bell, descriptors: parcel.descriptors().len() };
        let refused = |source| Error::Os { action: "start a process", source };
        let order = serde_json::to_string(&order).map_err(|error| refused(error.into()))?;
        let mut command = Command::new(program);
        command.args(["internal", "graph-latency", &order]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        spawn::die_with_parent(&mut command);
        spawn::share_all(&mut command, parcel.descriptors());
        let mut child = command.spawn().map_err(refused)?;
        let word = child.stdin.take();
        let says = child.stdout.take().map(BufReader::new);
        Ok(Self { role, kind: plan.kind, child, word, says })
    }

    fn is_ready(&mut self) -> Result<(), Error> {
        let mut line = String::new();
        let _ = self.says.as_mut().map(|says| says.read_line(&mut line));
        if line.trim() == READY { Ok(()) } else { Err(self.failed()) }
    }

    fn begin(&mut self, start_ns: i64) -> Result<(), Error> {
        let written = self.word.as_mut().map(|word| writeln!(word, "{start_ns}"));
        if matches!(written, Some(Ok(()))) { Ok(()) } else { Err(self.failed()) }
    }

    /// The children's reports, in order, when all have ended. A publisher that ends has closed the
    /// link, or it is closed for it. A publisher that finds it closed ends; this is how a user ends
    /// the measurement.
    fn collect(
        mut children: Vec<Self>,
        link: &Link,
        stopped: &dyn Fn() -> bool,
    ) -> Result<Vec<ChildReport>, Error> {
        // Who has much to say blocks until it is read.
        let texts: Vec<_> = children.iter_mut().map(Self::read).collect();
        while !texts.iter().all(JoinHandle::is_finished) {
            if stopped() || texts.last().is_some_and(JoinHandle::is_finished) {
                link.close();
            }
            std::thread::sleep(LOOK);
        }
        let reports = texts.into_iter().zip(&mut children).map(|(text, child)| {
            let text = text.join().unwrap_or_default();
            serde_json::from_str(&text).map_err(|_| child.failed())
        });
        reports.collect()
    }

    fn read(&mut self) -> JoinHandle<String> {
        let says = self.says.take();
        std::thread::spawn(move || {
            let mut text = String::new();
            // Unreadable output is not JSON, and is reported as such.
            let _ = says.map(|mut says| says.read_to_string(&mut text));
            text
        })
    }

    fn failed(&mut self) -> Error {
        let mut said = String::new();
        if let Some(mut stderr) = self.child.stderr.take() {
            let _ = stderr.read_to_string(&mut said);
        }
        let _ = self.child.kill();
        let status = self.child.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
        let what = if said.trim().is_empty() { status } else { said.trim().to_owned() };
        Error::Failed { role: self.role.name(), kind: self.kind, what }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // A child that still runs has nothing to undo, and its parent is giving up.
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// What a child says when everything is prepared.
const READY: &str = "ready";
