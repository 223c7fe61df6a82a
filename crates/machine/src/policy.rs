//! Scheduling policies as the kernel numbers and the field names them (sched(7); Linux
//! `include/uapi/linux/sched.h`).

use serde::{Deserialize, Serialize};

/// A task's policy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// `SCHED_OTHER`.
    #[default]
    Other,
    /// `SCHED_FIFO`.
    Fifo,
    /// `SCHED_RR`.
    Rr,
    /// `SCHED_BATCH`.
    Batch,
    /// `SCHED_IDLE`.
    Idle,
    /// `SCHED_DEADLINE`.
    Deadline,
    /// `SCHED_EXT`.
    Ext,
}

impl Policy {
    const ALL: [(u64, Self, &'static str); 7] = [
        (0, Self::Other, "other"),
        (1, Self::Fifo, "fifo"),
        (2, Self::Rr, "rr"),
        (3, Self::Batch, "batch"),
        (5, Self::Idle, "idle"),
        (6, Self::Deadline, "deadline"),
        (7, Self::Ext, "ext"),
    ];

    /// By the number in field 41 of `/proc/PID/stat` (proc(5)).
    pub(super) fn of_number(number: u64) -> Self {
        Self::ALL.iter().find(|(own, _, _)| *own == number).map(|(_, policy, _)| *policy).unwrap_or_default()
    }

    /// By name: `fifo`, `rr`, `deadline` and so on.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, _, own)| *own == name).map(|(_, policy, _)| *policy)
    }

    /// The name on command lines.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, policy, _)| *policy == self).map_or("", |(_, _, name)| name)
    }

    /// The name with the real-time priority, where there is one: `fifo 80`.
    pub fn with_priority(self, priority: u32) -> String {
        match priority {
            0 => self.name().to_owned(),
            _ => format!("{} {priority}", self.name()),
        }
    }

    /// Whether its tasks run before those of ordinary ones.
    pub fn is_real_time(self) -> bool {
        matches!(self, Self::Fifo | Self::Rr | Self::Deadline)
    }
}
