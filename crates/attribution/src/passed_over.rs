//! Who had a CPU while a task could run and did not: tasks with precedence over it, or those that
//! ought to have waited. For the latter there is one reason: the task was out of budget, and the
//! scheduler passed it over ([`crate::attribute::step`] has the same of wake-ups). Who ran is not
//! to blame for that.

use crate::Error;
use crate::prio::Prio;
use ftrace::{Field, Formats, Item, TraceFile};

/// The event.
const SWITCH: &str = "sched_switch";

/// For how long, ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Had {
    /// Tasks that may run while it waits.
    pub precedence_ns: u64,
    /// Tasks that may not, and idle.
    pub below_ns: u64,
    /// What ran is not known, or the priority of one of the two.
    pub unknown_ns: u64,
}

impl Had {
    /// Nothing is known of that time.
    pub fn unknown([from_ns, to_ns]: [i64; 2]) -> Self {
        Self { unknown_ns: to_ns.saturating_sub(from_ns).max(0).unsigned_abs(), ..Self::default() }
    }
}

/// A task in a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Task {
    pid: i32,
    prio: Prio,
}

/// A switch of the CPU.
#[derive(Debug, Clone, Copy)]
struct Switch {
    ts_ns: i64,
    prev: Task,
    next: Task,
}

/// What had this CPU from and until these times of the trace's clock, while the task waited.
/// `buffers`: names of the file's buffers, "" for the top one.
///
/// # Errors
///
/// The file cannot be read.
pub fn had_the_cpu(
    file: &TraceFile,
    buffers: &[&str],
    cpu: u32,
    tid: i32,
    window: [i64; 2],
) -> Result<Had, Error> {
    let formats = file.formats();
    let Some(fields) = Fields::of(formats) else { return Ok(Had::unknown(window)) };
    let mut stream = file.stream_buffers(buffers)?;
    let (mut switches, mut holes) = (Vec::new(), Vec::new());
    while let Some(item) = stream.next()? {
        match item {
            Item::Event(event) if event.cpu == cpu && event.id == fields.id => {
                let ts_ns = i64::try_from(event.ts_ns).unwrap_or(i64::MAX);
                switches.extend(fields.switch(ts_ns, event.data, formats));
            }
            Item::Lost { cpu: lost, .. } if lost == cpu => holes.push(switches.len()),
            _ => {}
        }
    }
    Ok(had(&switches, &holes, tid, window))
}

/// `holes`: before which switches events are missing.
fn had(switches: &[Switch], holes: &[usize], tid: i32, window: [i64; 2]) -> Had {
    let [from_ns, to_ns] = window;
    let Some(prio) = waits_with(switches, tid, from_ns) else { return Had::unknown(window) };
    let mut had = Had::default();
    let mut at_ns = from_ns;
    let mut add = |until_ns: i64, task: Option<Task>| {
        let until_ns = until_ns.clamp(at_ns, to_ns.max(at_ns));
        let ns = until_ns.abs_diff(at_ns);
        at_ns = until_ns;
        let of = match task {
            Some(task) if task.pid == tid => return,
            Some(task) if task.pid == 0 => &mut had.below_ns,
            Some(task) if task.prio.is_known() && prio.is_known() => {
                if task.prio.may_delay(prio) {
                    &mut had.precedence_ns
                } else {
                    &mut had.below_ns
                }
            }
            _ => &mut had.unknown_ns,
        };
        *of += ns;
    };
    for (number, switch) in switches.iter().enumerate() {
        // Some kernels leave out switches, and events may be lost: then who ran until here is not
        // whom the last switch named.
        let before = number.checked_sub(1).and_then(|before| switches.get(before));
        let torn = holes.contains(&number) || before.is_some_and(|before| before.next.pid != switch.prev.pid);
        add(switch.ts_ns, Some(switch.prev).filter(|_| !torn));
    }
    let end = switches.last().map(|switch| switch.next).filter(|_| !holes.contains(&switches.len()));
    add(to_ns, end);
    had
}

/// The priority with which the task waits from then on: that of the last switch from it until then,
/// and of the first to it from there; the lower where it came back with another, since it may have
/// had that one while it waited.
fn waits_with(switches: &[Switch], tid: i32, from_ns: i64) -> Option<Prio> {
    let from = switches.iter().rev().find(|switch| switch.ts_ns <= from_ns && switch.prev.pid == tid);
    let to = switches.iter().find(|switch| switch.ts_ns > from_ns && switch.next.pid == tid);
    from.map(|switch| switch.prev.prio).into_iter().chain(to.map(|switch| switch.next.prio)).max()
}

/// Where a switch has what.
struct Fields<'f> {
    id: u16,
    /// Number, priority and name of the one that goes, and of the one that comes.
    tasks: [[&'f Field; 3]; 2],
}

impl<'f> Fields<'f> {
    fn of(formats: &'f Formats) -> Option<Self> {
        let format = formats.by_name(SWITCH)?;
        let task = |which: &str| -> Option<[&'f Field; 3]> {
            let field = |what: &str| format.field(&format!("{which}_{what}"));
            Some([field("pid")?, field("prio")?, field("comm")?])
        };
        Some(Self { id: format.id, tasks: [task("prev")?, task("next")?] })
    }

    fn switch(&self, ts_ns: i64, data: &[u8], formats: &Formats) -> Option<Switch> {
        let endian = formats.endian();
        let task = |[pid, prio, comm]: [&Field; 3]| {
            let name = comm.bytes(data, endian)?;
            let pid = i32::try_from(pid.int(data, endian)?).ok()?;
            Some(Task { pid, prio: Prio::of(prio.int(data, endian), name) })
        };
        let [prev, next] = self.tasks;
        Some(Switch { ts_ns, prev: task(prev)?, next: task(next)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VICTIM: i32 = 7;

    fn task(pid: i32) -> Task {
        // 7: priority 50; below 7 more urgent ones; from 8 on fair ones.
        let prio = match pid {
            VICTIM => 49,
            0..VICTIM => 20,
            _ => 120,
        };
        Task { pid, prio: Prio::new(prio) }
    }

    fn switches(all: &[(i64, i32, i32)]) -> Vec<Switch> {
        all.iter()
            .map(|(ts_ns, prev, next)| Switch { ts_ns: *ts_ns, prev: task(*prev), next: task(*next) })
            .collect()
    }

    #[test]
    fn who_has_precedence_is_told_from_who_ought_to_have_waited() {
        let all = switches(&[(10, VICTIM, 3), (40, 3, 9), (90, 9, 0), (95, 0, VICTIM)]);
        let found = had(&all, &[], VICTIM, [10, 95]);
        assert_eq!(found, Had { precedence_ns: 30, below_ns: 55, unknown_ns: 0 });
        // A part of it; and until something that is not recorded any more.
        assert_eq!(had(&all, &[], VICTIM, [30, 60]), Had { precedence_ns: 10, below_ns: 20, unknown_ns: 0 });
        assert_eq!(had(&all[..2], &[], VICTIM, [10, 95]).below_ns, 55);
        // What it ran itself does not count.
        assert_eq!(had(&all, &[], VICTIM, [0, 10]), Had::default());
    }

    #[test]
    fn where_switches_are_missing_nobody_is_named() {
        let all = switches(&[(10, VICTIM, 3), (90, 9, VICTIM)]);
        assert_eq!(had(&all, &[], VICTIM, [10, 90]), Had { unknown_ns: 80, ..Had::default() });
        let all = switches(&[(10, VICTIM, 9), (90, 9, VICTIM)]);
        assert_eq!(had(&all, &[1], VICTIM, [10, 90]), Had { unknown_ns: 80, ..Had::default() });
        assert_eq!(had(&all, &[], 55, [10, 90]), Had { unknown_ns: 80, ..Had::default() });
        assert_eq!(had(&[], &[], VICTIM, [10, 90]).unknown_ns, 80);
        let mut strange = switches(&[(10, VICTIM, 9), (90, 9, VICTIM)]);
        strange[1].prev.prio = Prio::UNKNOWN;
        assert_eq!(had(&strange, &[], VICTIM, [10, 90]), Had { unknown_ns: 80, ..Had::default() });
    }

    /// It may have become an ordinary one while it waited, as others are.
    #[test]
    fn a_task_that_comes_back_with_less_precedence_had_no_more() {
        let mut all = switches(&[(10, VICTIM, 9), (90, 9, VICTIM)]);
        assert_eq!(had(&all, &[], VICTIM, [10, 90]).below_ns, 80);
        all[1].next.prio = Prio::new(120);
        assert_eq!(had(&all, &[], VICTIM, [10, 90]), Had { precedence_ns: 80, ..Had::default() });
        all[1].next.prio = Prio::UNKNOWN;
        assert_eq!(had(&all, &[], VICTIM, [10, 90]), Had { unknown_ns: 80, ..Had::default() });
    }

    #[test]
    fn fair_tasks_share_a_cpu() {
        let all = switches(&[(10, 8, 9), (90, 9, 8)]);
        assert_eq!(had(&all, &[], 8, [10, 90]), Had { precedence_ns: 80, ..Had::default() });
    }
}
