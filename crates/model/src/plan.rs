//! A plan: the ordered changes that would make CPUs still, each in the spelling of the file or call
//! it goes to.

use crate::Cpus;
use crate::boot::BootLine;
use serde::{Deserialize, Serialize};

/// Schema of a plan.
pub const SCHEMA: &str = "stillcore.plan/1";

/// How a change is made, read back and undone. Every kind is a target with a value that can be read
/// and written as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepKind {
    /// A file; target: its absolute path; value: its text.
    File,
    /// One flag of a file that lists many, as the scheduler's features are; target: `FILE#NAME`;
    /// value: `on` or `off`.
    Flag,
    /// Where a task may run; target: `PID/STARTTIME/NAME`; value: a CPU list.
    Task,
    /// A systemd unit; target: its name; value: `active` or `inactive`.
    Service,
    /// A process that no service manager holds; target: `PID/STARTTIME/NAME`; value: `running` or
    /// `stopped` (SIGSTOP).
    Process,
    /// A swap area; target: its path; value: `on PRIORITY` or `off`.
    Swap,
    /// A control group; target: its directory; value: `present` or `absent`.
    Group,
    /// The version 2 group of a process and what it started, whose affinities stay; target:
    /// `PID/STARTTIME/NAME`; value: the group's directory.
    Member,
    /// A controller of a version 2 group; target: `DIRECTORY#CONTROLLER`; value: `on` or `off`.
    Controller,
    /// A value that holds as long as a process keeps a file open; target: `PATH=VALUE`; value:
    /// `held` or `not held`.
    Held,
    /// Nothing now; undoing it restores the affinities of tasks and interrupts, which undoing later
    /// steps widens. Target: `all`; value: the affinities, as JSON.
    Affinities,
    /// Nothing now; undoing it restores a file's value, which a later change makes the kernel
    /// recompute. Target: its path.
    Kept,
}

impl StepKind {
    /// Whether it only stores what undoing other changes would not restore.
    pub fn remembers(self) -> bool {
        matches!(self, Self::Affinities | Self::Kept)
    }
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// The mechanism's id in the catalogue.
    pub mechanism: String,
    /// How the change is made.
    pub kind: StepKind,
    /// What is changed.
    pub target: String,
    /// The value when the plan was made; `None` where it could not be read.
    pub old: Option<String>,
    /// The value wanted.
    pub new: String,
    /// What an isolated CPU suffers without it: a clause.
    pub why: String,
    /// What the change costs, one sentence.
    pub cost: String,
    /// Whether a mistake in what then runs can take the machine away.
    pub risky: bool,
    /// What is unusual about this change: a clause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// What only another boot can change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootStep {
    /// The mechanism's id.
    pub mechanism: String,
    /// The parameter, as on the kernel command line; `None` where another kernel is needed.
    pub parameter: Option<String>,
    /// What to do, one sentence.
    pub what: String,
}

/// What stays as it is although isolation wants it otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Left {
    /// The mechanism's id.
    pub mechanism: String,
    /// Why, one sentence.
    pub reason: String,
}

/// How the scheduler is kept off the CPUs at run time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// The kernel was booted with these CPUs outside its scheduling domains; tasks that may still
    /// run there are moved.
    Boot,
    /// An isolated partition of cgroup version 2.
    Partition,
    /// Two cpusets of cgroup version 1, without load balancing across them.
    Cpuset,
    /// Affinities alone: the scheduler still balances tasks that ask for these CPUs.
    Affinity,
}

impl Placement {
    /// The name used in files and on screen.
    pub fn name(self) -> &'static str {
        match self {
            Self::Boot => "boot",
            Self::Partition => "partition",
            Self::Cpuset => "cpuset",
            Self::Affinity => "affinity",
        }
    }
}

/// The ordered changes that would make CPUs still.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// [`SCHEMA`].
    pub schema: String,
    /// The CPUs that are to be still.
    pub cpus: Cpus,
    /// They and their SMT siblings.
    pub isolated: Cpus,
    /// Those left for everything else.
    pub housekeeping: Cpus,
    /// How the scheduler is kept off.
    pub placement: Placement,
    /// Why this placement and no better one, one sentence.
    pub placement_reason: String,
    /// Changes to make now, in order.
    pub steps: Vec<Step>,
    /// Changes for the next boot.
    pub boot: Vec<BootStep>,
    /// What stays.
    pub left: Vec<Left>,
    /// The kernel command line of the next boot.
    #[serde(default)]
    pub boot_line: BootLine,
    /// What the user keeps where it is, as `--keep` takes it.
    #[serde(default)]
    pub keep: Vec<String>,
    /// Who lives on the CPUs to isolate and may be there on purpose.
    #[serde(default)]
    pub residents: Vec<Resident>,
    /// Whether those are to leave that somebody has pinned there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub move_pinned: bool,
}

/// A task or an interrupt that may be on the CPUs to isolate on purpose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resident {
    /// What it is.
    pub kind: ResidentKind,
    /// The number of the thread or of the interrupt.
    pub id: u32,
    /// The process of a thread of user space.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<u32>,
    /// Its name, of an interrupt those of its handlers.
    pub name: String,
    /// A policy other than the ordinary one: `fifo`, `rr`, `deadline` and so on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// Its real-time priority.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<u32>,
    /// Where it may run or be handled.
    pub cpus: Cpus,
    /// What becomes of it.
    pub fate: Fate,
    /// Whether somebody has put it there: applying does not move it away unasked.
    pub deliberate: bool,
}

/// What lives on a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ResidentKind {
    /// A thread of user space.
    Task,
    /// A kernel thread.
    KernelThread,
    /// An interrupt.
    Interrupt,
}

/// What a plan does with a resident.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fate {
    /// It stays, because the user keeps it or has put it there.
    Kept,
    /// It stays, because the plan does not touch it.
    Stays,
    /// It is moved away.
    Moves,
}
