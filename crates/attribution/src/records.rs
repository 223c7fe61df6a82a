//! The records of the three most frequent events of the scheduler, where they stand as every 64-bit
//! kernel lays them out today: `sched_switch`, `sched_waking` and `sched_wakeup`
//! (include/trace/events/sched.h). Millions of them are read a second, and fields at places that
//! are known while this is built cost next to nothing. Other layouts are read field by field, by
//! name.

use ftrace::{Endian, Event, EventFormat, Field, FieldKind, Formats};

/// Bytes of a task's name in a record (`TASK_COMM_LEN`).
pub(crate) const COMM: usize = 16;

/// A task as a record has it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TaskField<'d> {
    pub(crate) comm: &'d [u8; COMM],
    pub(crate) pid: i32,
    pub(crate) prio: i32,
}

impl<'d> TaskField<'d> {
    /// The one that begins at a byte: name, number, priority.
    #[inline(always)]
    fn at<const SIZE: usize>(bytes: &'d [u8; SIZE], at: usize) -> Self {
        Self {
            comm: array(&bytes[at..at + COMM]),
            pid: i32::from_le_bytes(*array(&bytes[at + COMM..at + COMM + 4])),
            prio: i32::from_le_bytes(*array(&bytes[at + COMM + 4..at + COMM + 8])),
        }
    }
}

#[inline(always)]
fn array<const N: usize>(bytes: &[u8]) -> &[u8; N] {
    bytes.try_into().expect("as long as it was cut")
}

/// A record.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Record<'d> {
    /// `sched_switch`; `state` is `prev_state`.
    Switch { prev: TaskField<'d>, state: u64, next: TaskField<'d> },
    /// `sched_waking`, or `sched_wakeup` where it is `done`.
    Wake { task: TaskField<'d>, target: u32, done: bool },
    /// Any other.
    Other,
}

/// Bytes of a switch.
const SWITCH: usize = 64;
/// Bytes of a wake-up up to the CPU it is for, and of one of kernels before 5.16, which have a
/// field between.
const WAKE: usize = 36;
const WAKE_OLD: usize = 40;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Other,
    Switch,
    Wake { old: bool, done: bool },
}

/// Which events of a trace are laid out so.
#[derive(Debug)]
pub(crate) struct Records {
    /// By number of the event.
    kinds: Vec<Kind>,
}

impl Records {
    /// For a trace with these formats; `says_all`: whether an event's fields, as they stand here,
    /// are all that is to be read of it.
    pub(crate) fn of(formats: &Formats, says_all: impl Fn(&EventFormat) -> bool) -> Self {
        let mut kinds = Vec::new();
        for format in formats.iter().filter(|one| formats.endian() == Endian::Little && says_all(one)) {
            let at = usize::from(format.id);
            if kinds.len() <= at {
                kinds.resize(at + 1, Kind::Other);
            }
            kinds[at] = kind(format);
        }
        Self { kinds }
    }

    /// What an event's record holds.
    #[inline(always)]
    pub(crate) fn read<'d>(&self, event: &Event<'d>) -> Record<'d> {
        match self.kinds.get(usize::from(event.id)) {
            Some(Kind::Switch) => match event.data.first_chunk::<SWITCH>() {
                Some(bytes) => Record::Switch {
                    prev: TaskField::at(bytes, 8),
                    state: u64::from_le_bytes(*array(&bytes[32..40])),
                    next: TaskField::at(bytes, 40),
                },
                None => Record::Other,
            },
            Some(&Kind::Wake { old, done }) => {
                let Some(bytes) = event.data.first_chunk::<WAKE>() else { return Record::Other };
                let target = match event.data.first_chunk::<WAKE_OLD>() {
                    Some(bytes) if old => *array(&bytes[36..40]),
                    None if old => return Record::Other,
                    _ => *array(&bytes[32..36]),
                };
                Record::Wake { task: TaskField::at(bytes, 8), target: u32::from_le_bytes(target), done }
            }
            _ => Record::Other,
        }
    }
}

fn kind(format: &EventFormat) -> Kind {
    let stands = |name: &str, offset: usize, size: usize| {
        let is = |field: &Field| match field.kind {
            FieldKind::Scalar => size != COMM,
            FieldKind::Array { count, element_size } => size == COMM && (count, element_size) == (COMM, 1),
            _ => false,
        };
        format.field(name).is_some_and(|field| (field.offset, field.size) == (offset, size) && is(field))
    };
    let task = |[comm, pid, prio]: [&str; 3], at: usize| {
        let signed = |name: &str| format.field(name).is_some_and(|field| field.signed);
        stands(comm, at, COMM) && stands(pid, at + COMM, 4) && stands(prio, at + COMM + 4, 4) && signed(prio)
    };
    let wake = |done| {
        let one = task(["comm", "pid", "prio"], 8);
        match (stands("target_cpu", 32, 4), stands("target_cpu", 36, 4)) {
            (true, _) if one => Kind::Wake { old: false, done },
            (_, true) if one => Kind::Wake { old: true, done },
            _ => Kind::Other,
        }
    };
    match format.full_name().as_str() {
        "sched:sched_switch"
            if task(["prev_comm", "prev_pid", "prev_prio"], 8)
                && stands("prev_state", 32, 8)
                && task(["next_comm", "next_pid", "next_prio"], 40) =>
        {
            Kind::Switch
        }
        "sched:sched_waking" => wake(false),
        "sched:sched_wakeup" => wake(true),
        _ => Kind::Other,
    }
}

#[cfg(test)]
mod tests;
