//! The names of tasks, as the last event that named them did.

use crate::by_task::ByTask;
use crate::labels::{LabelId, Labels};
use crate::records::COMM;

/// By number; of idle, which has one a CPU, by [`key_of`].
#[derive(Debug, Default)]
pub(crate) struct Comms(ByTask<Comm>);

/// The name of a task.
#[derive(Debug, Clone, Copy, Default)]
struct Comm {
    /// The field of the event that named it.
    bytes: [u8; COMM],
    name: LabelId,
}

impl Comm {
    #[inline(never)]
    fn names(&mut self, field: &[u8; COMM], labels: &mut Labels) {
        *self = Self { bytes: *field, name: labels.id_of_field(field) };
    }
}

/// By what the name of a task is kept that an event of a CPU names.
fn key_of(pid: i32, cpu: u32) -> i32 {
    if pid == 0 { !(cpu as i32) } else { pid }
}

impl Comms {
    /// The name that an event of a CPU gives a task, as its field holds it.
    #[inline]
    pub(crate) fn id(&mut self, (pid, cpu): (i32, u32), field: &[u8], labels: &mut Labels) -> LabelId {
        if let Ok(field) = field.try_into() {
            return self.id_of(pid, cpu, field, labels);
        }
        let name = labels.id_of_field(field);
        *self.0.entry(key_of(pid, cpu)) = Comm { bytes: [0; COMM], name };
        name
    }

    /// The same of a field that has the kernel's length.
    #[inline(always)]
    pub(crate) fn id_of(&mut self, pid: i32, cpu: u32, field: &[u8; COMM], labels: &mut Labels) -> LabelId {
        // Hardly a task changes its name: one look-up, by its number, for all others.
        self.0.with(key_of(pid, cpu), |named| {
            if named.bytes != *field || named.bytes == [0; COMM] {
                named.names(field, labels);
            }
            named.name
        })
    }

    /// Gives a task a name.
    #[cfg(test)]
    pub(crate) fn set(&mut self, pid: i32, name: LabelId) {
        self.0.insert(pid, Comm { bytes: [0; COMM], name });
    }

    /// The name of a task.
    pub(crate) fn of(&self, pid: i32) -> Option<LabelId> {
        self.0.get(pid).map(|comm| comm.name)
    }

    /// How many tasks have a name.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// All tasks but idle.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (i32, LabelId)> {
        self.0.iter().filter(|(pid, _)| *pid > 0).map(|(pid, comm)| (pid, comm.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_has_the_name_of_its_last_event_and_idle_one_a_cpu() {
        let (mut comms, mut labels) = (Comms::default(), Labels::default());
        let mut names = |task, field: &[u8]| {
            let id = comms.id(task, field, &mut labels);
            labels.text(id).to_owned()
        };
        let (old, new) = (b"sh\0\0\0\0\0\0\0\0\0\0\0\0\0\0", b"make\0\0\0\0\0\0\0\0\0\0\0\0");
        assert_eq!([names((7, 0), old), names((7, 1), new), names((7, 0), new)], ["sh", "make", "make"]);
        assert_eq!([names((0, 0), b"swapper/0"), names((0, 1), b"swapper/1")], ["swapper/0", "swapper/1"]);
        assert_eq!(names((0, 0), b"swapper/0"), "swapper/0");
        let all: Vec<_> = comms.iter().map(|(pid, name)| (pid, labels.text(name))).collect();
        assert_eq!((all, comms.of(0)), (vec![(7, "make")], None));
    }
}
