//! The boots of a study in their order, and the next step.
//!
//! What is stored is enough to go on after the machine went down at any moment: it is written
//! before each step. A boot that was chosen and did not come up, and one in which the machine goes
//! down before a further cell has a result, is tried again after the others, a few times, and then
//! given up.

use super::boot::BootOf;
use serde::{Deserialize, Serialize};

/// Schema of the file that keeps it.
pub const CHAIN_SCHEMA: &str = "stillcore.study-boots/1";

/// How often a boot may fail in a row: a power cut while a kernel comes up looks like a kernel that
/// does not.
const TRIES: u32 = 5;

/// All of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chain {
    /// [`CHAIN_SCHEMA`].
    pub schema: String,
    /// CPUs to measure.
    pub cpus: String,
    /// The kernels of the machine that cells run on, by the lab's names.
    pub kernels: Vec<String>,
    /// The boot that it began in.
    pub home: Home,
    /// The boots in their order.
    pub stages: Vec<Stage>,
    /// The step that was taken last.
    pub last: Option<Last>,
    /// Whether the user has stopped it.
    #[serde(default)]
    pub stopped: bool,
    /// Whether the machine was asked to boot as it does by itself, and has booted since.
    #[serde(default)]
    pub returned: bool,
}

/// The machine's own boot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Home {
    /// `uname -r`.
    pub release: String,
    /// `/proc/cmdline`.
    pub line: String,
}

/// One boot, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stage {
    /// Kernel and words.
    pub boot: BootOf,
    /// Release of the installed kernel; empty where any boot will do.
    pub release: String,
    /// The whole line it boots with.
    pub line: String,
    /// Failures in a row: it did not come up, or went down before a cell had ended.
    #[serde(default)]
    pub failures: u32,
    /// Whether all its cells have run.
    #[serde(default)]
    pub done: bool,
    /// Why it is not tried any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given_up: Option<String>,
}

/// The step that was taken last, in the boot with this id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Last {
    /// What was to be done.
    pub step: Step,
    /// `/proc/sys/kernel/random/boot_id` then.
    pub boot_id: String,
    /// Results that there were.
    pub results: usize,
}

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Run the cells of a stage in this boot.
    Run(usize),
    /// Boot a stage.
    Boot(usize),
    /// Give everything back, and boot as the machine does by itself.
    Home,
    /// Nothing is left: report.
    Report,
}

/// This boot, as whoever drives the chain sees it.
#[derive(Debug, Clone, Copy)]
pub struct Now<'a> {
    /// `/proc/sys/kernel/random/boot_id`.
    pub boot_id: &'a str,
    /// Results that there are, over all stages.
    pub results: usize,
    /// Of each stage, why this boot is not its boot; nothing where it is.
    pub differs: &'a [Option<String>],
    /// Whether it is the machine's own.
    pub at_home: bool,
}

impl Chain {
    /// Settles the last step, and says what is next. Is to be stored before that is done.
    pub fn next(&mut self, now: &Now<'_>) -> Step {
        if let Some(last) = self.last.take() {
            self.settle(&last, now);
        }
        let step = self.step(now);
        self.last = Some(Last { step, boot_id: now.boot_id.to_owned(), results: now.results });
        step
    }

    /// Says that all cells of a stage have run.
    pub fn done(&mut self, stage: usize) {
        self.stages[stage].done = true;
        self.last = None;
    }

    /// Says that a stage cannot be booted.
    pub fn give_up(&mut self, stage: usize, why: String) {
        self.stages[stage].given_up = Some(why);
        self.last = None;
    }

    /// Stages whose cells have not all run and that are still tried.
    pub fn waiting(&self) -> impl Iterator<Item = usize> {
        let open = |stage: &Stage| !stage.done && stage.given_up.is_none();
        self.stages.iter().enumerate().filter(move |(_, stage)| open(stage)).map(|(at, _)| at)
    }

    fn settle(&mut self, last: &Last, now: &Now<'_>) {
        let rebooted = last.boot_id != now.boot_id;
        match last.step {
            Step::Boot(at) if rebooted => {
                if let Some(why) = &now.differs[at] {
                    self.failed(at, format!("did not come up: {why}"));
                }
            }
            Step::Run(at) if rebooted && now.results <= last.results => {
                self.failed(at, "the machine went down before a further cell had ended".to_owned());
            }
            // What was run has results, so the boot is good.
            Step::Run(at) if rebooted => self.stages[at].failures = 0,
            _ => {}
        }
        // The own boot is asked for once: whatever came up then is taken for it.
        self.returned |= last.step == Step::Home && rebooted;
    }

    fn failed(&mut self, at: usize, why: String) {
        let stage = &mut self.stages[at];
        stage.failures += 1;
        if stage.failures >= TRIES {
            stage.given_up = Some(format!("{why} ({TRIES} times)"));
        }
    }

    fn step(&self, now: &Now<'_>) -> Step {
        if self.stopped || self.waiting().next().is_none() {
            return if now.at_home || self.returned { Step::Report } else { Step::Home };
        }
        let here = self.waiting().find(|&at| now.differs[at].is_none());
        // Of two that have failed as often the first comes first.
        let next = self.waiting().min_by_key(|&at| self.stages[at].failures);
        match (here, next) {
            (Some(at), _) => Step::Run(at),
            (None, Some(at)) => Step::Boot(at),
            (None, None) => Step::Report,
        }
    }
}
