//! The texts of a trace and the names of its tasks: once for all who read it, each event's looked
//! up once.

use crate::comms::Comms;
use crate::labels::{LabelId, Labels};
use crate::records::{Record, TaskField};

/// What idle is called, of which there is one a CPU.
const IDLE: &str = "idle";

/// The names.
#[derive(Debug)]
pub(crate) struct Names {
    pub(crate) labels: Labels,
    pub(crate) comms: Comms,
    idle: LabelId,
}

impl Default for Names {
    fn default() -> Self {
        let mut labels = Labels::default();
        let idle = labels.id(IDLE);
        Self { labels, comms: Comms::default(), idle }
    }
}

impl Names {
    /// The names of the tasks in a record of a CPU: who leaves and who comes; of a wake-up one task
    /// twice.
    #[inline(always)]
    pub(crate) fn of_record(&mut self, record: &Record<'_>, cpu: u32) -> [LabelId; 2] {
        match record {
            Record::Switch { prev, next, .. } => [self.of_field(prev, cpu), self.of_field(next, cpu)],
            Record::Wake { task, .. } => [self.of_field(task, cpu); 2],
            Record::Other => [0; 2],
        }
    }

    #[inline(always)]
    fn of_field(&mut self, task: &TaskField<'_>, cpu: u32) -> LabelId {
        self.comms.id_of(task.pid, cpu, task.comm, &mut self.labels)
    }

    /// The name of a task, as the last event so far that named it did.
    pub(crate) fn of(&self, pid: i32) -> Option<LabelId> {
        if pid == 0 { Some(self.idle) } else { self.comms.of(pid) }
    }
}
