//! Who caused the events of a window, as stored.

use super::Confidence;
use crate::attribute::delay::Blocking;
use crate::count_ns::is_zero;
use model::EventClass;
use model::groups::TaskGroup;
use model::sample::ProbeKind;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The sources of one window's events on one CPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Attribution {
    /// Phase of the window.
    pub phase: String,
    /// Probe of the window.
    pub probe: ProbeKind,
    /// The CPU.
    pub cpu: u32,
    /// Number of its thread in the window.
    #[serde(default)]
    pub thread: u32,
    /// Events whose source is known exactly; events of the probe itself and ticks are not among
    /// these three.
    pub exact: u64,
    /// Events whose source is known by order in time.
    pub by_order: u64,
    /// Events whose source is not known.
    pub unknown: u64,
    /// Senders that served the same event as others and are on no row.
    pub more_senders: u64,
    /// Most time first; at most 100.
    pub rows: Vec<AttributedRow>,
}

/// What one source has caused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttributedRow {
    /// Class of the interference events that the source caused, such as `ipi.call`.
    pub class: EventClass,
    /// What ran.
    pub label: String,
    /// Who caused it; absent where that is not known.
    pub source: Option<SourceText>,
    /// How the source is known.
    pub confidence: Option<Confidence>,
    /// Events that it took part in.
    pub count: u64,
    /// Pieces of time in which one of them continued after an interruption: no separate events.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub resumed: u64,
    /// Its share of their time, nested events excluded.
    pub net_ns: u64,
    /// Median of one event's share.
    pub p50_ns: u64,
    /// Its 99th percentile.
    pub p99_ns: u64,
    /// The longest observed.
    pub max_ns: u64,
}

/// A source in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceText {
    /// Where it acted.
    pub cpu: u32,
    /// A task's name, `idle`, or the interrupt, timer or device.
    pub who: String,
    /// The task's number.
    pub pid: Option<i32>,
    /// The kernel function that asked; where its stack was recorded, the innermost one that does
    /// not only pass on what another asks for.
    pub site: Option<String>,
    /// What it was in the kernel for, by that stack: `system call munmap`, `page fault`, `kernel
    /// thread`, `interrupt`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began: Option<String>,
    /// The functions of that stack, innermost first; in a sum, of one of its events.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub frames: Vec<String>,
    /// Where the task was in user space, innermost first, in the same event.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub users: Vec<String>,
    /// The task's container, service, or control group; absent where none was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
}

impl SourceText {
    /// Nothing more is known of it.
    pub fn new(cpu: u32, who: &str, pid: Option<i32>) -> Self {
        let (frames, users) = (Vec::new(), Vec::new());
        Self { cpu, who: who.to_owned(), pid, site: None, began: None, frames, users, group: None }
    }

    /// The functions of the kernel, and those of the program that called it, innermost first.
    pub fn functions(&self) -> Vec<String> {
        self.frames.iter().chain(&self.users).cloned().collect()
    }

    /// Whether both are the same source, whatever their stacks.
    pub fn is(&self, other: &Self) -> bool {
        (self.cpu, &self.who, self.pid, &self.site, &self.began)
            == (other.cpu, &other.who, other.pid, &other.site, &other.began)
    }

    /// Names its group, where one was seen.
    pub fn find_group(&mut self, groups: &BTreeMap<i32, &TaskGroup>) {
        self.group = self.pid.and_then(|pid| groups.get(&pid)).map(|group| group.words());
    }

    /// Its name, with number and group: `bash[812] (cron.service)`.
    pub fn name(&self) -> String {
        let pid = self.pid.filter(|pid| *pid > 0).map(|pid| format!("[{pid}]")).unwrap_or_default();
        let group = self.group.as_ref().map(|group| format!(" ({group})")).unwrap_or_default();
        format!("{}{pid}{group}", self.who)
    }

    /// Where in the kernel it acted, and what for: `flush_tlb_mm_range (system call munmap)`.
    pub fn place(&self) -> Option<String> {
        let began = self.began.as_deref().filter(|began| *began != crate::stacks::INTERRUPT);
        match (&self.site, began) {
            (Some(site), Some(began)) => Some(format!("{site} ({began})")),
            (site, began) => site.clone().or(began.map(str::to_owned)),
        }
    }
}

/// How a class is observed on this kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coverage {
    /// Class of interference events that this entry is about, such as `softirq`.
    pub class: EventClass,
    /// Whether its events are recorded.
    pub seen: bool,
    /// How well their sources can be known at best; absent where not at all.
    pub sources: Option<Confidence>,
    /// By what.
    pub how: String,
    /// Further events to record, to know the sources, or to know them better.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
}

/// What is known of waiting where nothing else runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockingCoverage {
    /// What keeps it waiting.
    pub blocking: Blocking,
    /// Whether its events are recorded.
    pub seen: bool,
    /// By what, or where the time is instead.
    pub how: String,
    /// Events that would have to be recorded for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
}
