//! From a trace's bytes to [`WatchEvent`]s. Fields are found by name in the trace's own formats.

use super::event::{Leaves, WatchEvent, What};
use super::kernel_lock::{self, Seen};
use crate::labels::{LabelId, Labels};
use crate::names::Names;
use crate::prio::Prio;
use crate::records::{Record, TaskField};
use crate::stacks::INSIDE;
use ftrace::{Event, EventFormat, Field, Formats, Symbols, UserStackLayout};
use model::events::PAGE_FAULT;
use model::kernel_locks::{self, OwnedKind};
use model::locking;
use model::user_frames::UserFrames;
use rustc_hash::FxHashMap;

/// Bits of `common_flags` that mark an interrupt: hard, soft, NMI (include/linux/trace_events.h).
const INTERRUPT: u8 = 0x08 | 0x10 | 0x40;
/// States in `prev_state` (kernel/trace print format of sched_switch): the scheduler's own bit for
/// "preempted" lies above.
const STATES: u64 = 0xff;
/// Of these, those of a task that has ended: X, Z.
const ENDED: u64 = 0x30;
/// D. States of a kernel thread that idles have a letter, and a bit, of their own.
const UNINTERRUPTIBLE: u64 = 0x02;
/// Softirqs by number, include/linux/interrupt.h.
const SOFTIRQS: [&str; 10] =
    ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];

/// The tick's own timer, renamed in 6.8 and in 6.9: its expiry is not the release of what it wakes.
const TICKS: [&str; 3] = ["tick_sched_timer", "tick_nohz_highres_handler", "tick_nohz_handler"];

/// The fields of a switch record.
struct Switched {
    prev: Field,
    prev_comm: Field,
    state: Field,
    next: Field,
    next_comm: Field,
    /// Of both; older traces may lack them.
    prios: [Option<Field>; 2],
}

/// The fields to read of one event.
enum Pick {
    Switch(Box<Switched>),
    Waking { pid: Field, comm: Field, prio: Option<Field> },
    Woken { pid: Field, new: bool },
    Migrate { pid: Field, to: Field },
    Fork { parent: Field, child: Field, comm: Field },
    Armed { timer: Field, expires: Field },
    Expires { timer: Field, now: Field, function: Field },
    EnterFunction(Field),
    EnterIrq(Field),
    EnterSoftirq(Field),
    Exit,
    Signal { signal: Field, pid: Field },
    CallEnter { number: Field, arguments: Field },
    CallExit { result: Field },
    LockWords(Box<[Field; 5]>),
    Asks { lock: Field, condition: Option<Field>, kind: Option<Field> },
    Asked { result: Field },
    Releases { lock: Field },
    Signals { condition: Field },
    Boost { pid: Field, prios: [Field; 2] },
    PageFault { address: Field },
    Callers(Box<UserStackLayout>),
    Delivered { signal: Field, handler: Field },
    Contends { lock: Field, flags: Field },
    KernelOwner(Box<kernel_lock::Fields>),
    Contended { lock: Field, result: Field },
}

/// The reader of one trace.
pub(crate) struct Decoder {
    /// By number of the event.
    picks: Vec<Option<Pick>>,
    endian: ftrace::Endian,
    symbols: Symbols,
    functions: FxHashMap<u64, LabelId>,
    /// Functions of programs, by process and address.
    users: FxHashMap<(u32, u64), String>,
    softirqs: [LabelId; SOFTIRQS.len()],
    ticks: [LabelId; TICKS.len()],
}

impl Decoder {
    /// For a trace with these formats.
    pub(crate) fn new(formats: &Formats, symbols: Symbols, labels: &mut Labels) -> Self {
        let mut picks = Vec::new();
        for format in formats.iter() {
            let at = usize::from(format.id);
            if picks.len() <= at {
                picks.resize_with(at + 1, || None);
            }
            picks[at] = pick(format);
        }
        let softirqs = SOFTIRQS.map(|name| labels.id(name));
        let ticks = TICKS.map(|name| labels.id(name));
        let (endian, functions) = (formats.endian(), FxHashMap::default());
        Self { picks, endian, symbols, functions, users: FxHashMap::default(), softirqs, ticks }
    }

    /// The same for a trace with stacks of programs, by their names.
    pub(crate) fn naming(mut self, formats: &Formats, frames: UserFrames) -> Self {
        if let Some(layout) = UserStackLayout::of(formats)
            && let Some(pick) = self.picks.get_mut(usize::from(layout.id))
        {
            *pick = Some(Pick::Callers(Box::new(layout)));
        }
        self.users = frames.frames.into_iter().map(|one| ((one.tgid, one.address), one.function)).collect();
        self
    }

    /// Whether events of this number are used here.
    #[inline]
    pub(crate) fn knows(&self, id: u16) -> bool {
        self.picks.get(usize::from(id)).is_some_and(Option::is_some)
    }

    /// Decodes an event.
    pub(crate) fn decode(&mut self, event: &Event<'_>, tasks: &mut Names) -> WatchEvent {
        WatchEvent { what: self.what(event, tasks).unwrap_or(What::Other), ..head(event) }
    }

    /// The same by its record, where that is one of those. `names`: those of its tasks
    /// ([`Names::of_record`]).
    pub(crate) fn of_record(
        &mut self,
        event: &Event<'_>,
        record: &Record<'_>,
        names: [LabelId; 2],
        tasks: &mut Names,
    ) -> WatchEvent {
        let prio = |field: &TaskField<'_>| Prio::of(Some(i64::from(field.prio)), field.comm);
        let what = match record {
            Record::Switch { prev, state, next } => What::Switch {
                prev: (prev.pid, names[0]),
                leaves: leaves(*state),
                next: (next.pid, names[1]),
                prios: [prio(prev), prio(next)],
            },
            Record::Wake { task: field, done: false, .. } => {
                What::Waking { task: (field.pid, names[0]), prio: prio(field) }
            }
            Record::Wake { task: field, .. } => What::Woken { pid: field.pid, new: false },
            Record::Other => return self.decode(event, tasks),
        };
        WatchEvent { what, ..head(event) }
    }

    #[inline]
    fn what(&mut self, event: &Event<'_>, tasks: &mut Names) -> Option<What> {
        let Self { picks, endian, symbols, functions, users, softirqs, ticks } = self;
        let Names { labels, comms, .. } = tasks;
        let Event { id, data, cpu, .. } = *event;
        let endian = *endian;
        let int = |field: &Field| field.int(data, endian);
        let pid = |field: &Field| int(field).map(|pid| pid as i32);
        let bytes = |field: &Field| field.bytes(data, endian).unwrap_or_default();
        let prio = |number: &Option<Field>, comm: &Field| {
            Prio::of(number.as_ref().and_then(int), comm.bytes(data, endian).unwrap_or_default())
        };
        Some(match picks.get(usize::from(id))?.as_ref()? {
            Pick::Switch(fields) => {
                let Switched { prev, prev_comm, state, next, next_comm, prios } = &**fields;
                let leaves = leaves(state.uint(data, endian)?);
                let mut task = |task: &Field, name: &Field| {
                    let tid = pid(task)?;
                    Some((tid, comms.id((tid, cpu), bytes(name), labels)))
                };
                What::Switch {
                    prev: task(prev, prev_comm)?,
                    leaves,
                    next: task(next, next_comm)?,
                    prios: [prio(&prios[0], prev_comm), prio(&prios[1], next_comm)],
                }
            }
            Pick::Waking { pid: task, comm, prio: number } => {
                let tid = pid(task)?;
                let name = comms.id((tid, cpu), bytes(comm), labels);
                What::Waking { task: (tid, name), prio: prio(number, comm) }
            }
            Pick::Woken { pid: task, new } => What::Woken { pid: pid(task)?, new: *new },
            Pick::Migrate { pid: task, to } => What::Migrate { pid: pid(task)?, to: int(to)? as u32 },
            Pick::Fork { parent, child, comm } => {
                let child = pid(child)?;
                comms.id((child, cpu), bytes(comm), labels);
                What::Fork { parent: pid(parent)?, child }
            }
            Pick::Armed { timer, expires } => {
                What::Armed { timer: timer.uint(data, endian)?, expires_ns: int(expires)? }
            }
            Pick::Expires { timer, now, function } => {
                let function = name(functions, symbols, labels, function.uint(data, endian)?);
                if ticks.contains(&function) {
                    return Some(What::Enter(function));
                }
                What::Expires { timer: timer.uint(data, endian)?, now_ns: int(now)?, function }
            }
            Pick::EnterFunction(function) => {
                What::Enter(name(functions, symbols, labels, function.uint(data, endian)?))
            }
            Pick::EnterIrq(irq) => What::Enter(labels.id_of_field(bytes(irq))),
            Pick::EnterSoftirq(vector) => What::Enter(*softirqs.get(vector.uint(data, endian)? as usize)?),
            Pick::Exit => What::Exit,
            Pick::Signal { signal, pid: task } => What::Signal { signal: pid(signal)?, pid: pid(task)? },
            Pick::CallEnter { number, arguments } => {
                let (words, _) = arguments.bytes(data, endian)?.as_chunks::<8>();
                let [first, second, third, ..] = words else { return None };
                let arguments = [first, second, third].map(|word| match endian {
                    ftrace::Endian::Little => u64::from_le_bytes(*word),
                    ftrace::Endian::Big => u64::from_be_bytes(*word),
                });
                What::CallEnter { number: number.uint(data, endian)?, arguments }
            }
            Pick::CallExit { result } => What::CallExit { result: int(result)? },
            Pick::LockWords(fields) => {
                let mut words = [0; 5];
                for (word, field) in words.iter_mut().zip(&**fields) {
                    *word = field.uint(data, endian)? as u32;
                }
                What::LockWords(words)
            }
            Pick::Asks { lock, condition, kind } => {
                let condition = match condition {
                    Some(condition) => Some(condition.uint(data, endian)?),
                    None => None,
                };
                let kind = kind.as_ref().and_then(|kind| kind.uint(data, endian)).map(|kind| kind as u32);
                What::Asks { lock: lock.uint(data, endian)?, condition, kind }
            }
            Pick::Asked { result } => What::Asked { result: int(result)? },
            Pick::Releases { lock } => What::Releases { lock: lock.uint(data, endian)? },
            Pick::Signals { condition } => What::Signals { condition: condition.uint(data, endian)? },
            // By default a signal is ignored, or ends the process.
            Pick::Delivered { signal, handler } => {
                What::Delivered { signal: pid(signal)?, handled: handler.uint(data, endian)? != 0 }
            }
            // What has no name is no frame: frame pointers were not kept there.
            Pick::Callers(layout) => {
                let (process, frames) = layout.frames(data);
                let names: Vec<&str> =
                    frames.map_while(|frame| users.get(&(process, frame)).map(String::as_str)).collect();
                if names.is_empty() {
                    return None;
                }
                What::Callers(labels.id(&names.join(INSIDE)))
            }
            Pick::Contends { lock, flags } => {
                let (lock, kind) =
                    (lock.uint(data, endian)?, OwnedKind::of_flags(flags.uint(data, endian)?)?);
                What::Contends { lock, kind, name: kernel_lock::name(symbols, labels, lock) }
            }
            Pick::KernelOwner(fields) => {
                let seen = fields.read(event.pid, &|field: &Field| field.uint(data, endian))?;
                let Seen { lock, kind, owner, is_mmap_lock } = seen;
                let name = if is_mmap_lock {
                    Some(labels.id(kernel_locks::MMAP_LOCK))
                } else {
                    kernel_lock::name(symbols, labels, lock)
                };
                What::KernelOwner { lock, kind, name, owner }
            }
            Pick::Contended { lock, result } => {
                What::Contended { lock: lock.uint(data, endian)?, result: int(result)? }
            }
            Pick::PageFault { address } => What::PageFault { address: address.uint(data, endian)? },
            Pick::Boost { pid: task, prios: [before, after] } => {
                What::Boost { pid: pid(task)?, raised: int(after)? < int(before)? }
            }
        })
    }
}

/// Why a task leaves, by `prev_state`.
fn leaves(state: u64) -> Leaves {
    match state & STATES {
        0 => Leaves::Runnable,
        bits if bits & ENDED != 0 => Leaves::Ended,
        bits if bits & UNINTERRUPTIBLE != 0 => Leaves::Blocks,
        _ => Leaves::Sleeps,
    }
}

/// The common part of an event.
#[inline(always)]
pub(crate) fn head(event: &Event<'_>) -> WatchEvent {
    WatchEvent {
        ts_ns: i64::try_from(event.ts_ns).unwrap_or(i64::MAX),
        cpu: event.cpu,
        pid: event.pid,
        in_task: event.flags & INTERRUPT == 0,
        what: What::Other,
    }
}

/// The name of a kernel function, or its address where there are no symbols.
fn name(
    functions: &mut FxHashMap<u64, LabelId>,
    symbols: &Symbols,
    labels: &mut Labels,
    address: u64,
) -> LabelId {
    *functions.entry(address).or_insert_with(|| match symbols.resolve(address) {
        Some((name, _)) => labels.id(&name),
        None => labels.id(&format!("{address:#x}")),
    })
}

fn pick(format: &EventFormat) -> Option<Pick> {
    let field = |name: &str| format.field(name).cloned();
    Some(match format.full_name().as_str() {
        "sched:sched_switch" => Pick::Switch(Box::new(Switched {
            prev: field("prev_pid")?,
            prev_comm: field("prev_comm")?,
            state: field("prev_state")?,
            next: field("next_pid")?,
            next_comm: field("next_comm")?,
            prios: [field("prev_prio"), field("next_prio")],
        })),
        "sched:sched_waking" => {
            Pick::Waking { pid: field("pid")?, comm: field("comm")?, prio: field("prio") }
        }
        "sched:sched_wakeup" => Pick::Woken { pid: field("pid")?, new: false },
        "sched:sched_wakeup_new" => Pick::Woken { pid: field("pid")?, new: true },
        "sched:sched_migrate_task" => Pick::Migrate { pid: field("pid")?, to: field("dest_cpu")? },
        "sched:sched_process_fork" => Pick::Fork {
            parent: field("parent_pid")?,
            child: field("child_pid")?,
            comm: field("child_comm")?,
        },
        "timer:hrtimer_start" => Pick::Armed { timer: field("hrtimer")?, expires: field("softexpires")? },
        "timer:hrtimer_expire_entry" => {
            Pick::Expires { timer: field("hrtimer")?, now: field("now")?, function: field("function")? }
        }
        "timer:timer_expire_entry" => Pick::EnterFunction(field("function")?),
        "irq:irq_handler_entry" => Pick::EnterIrq(field("name")?),
        "irq:softirq_entry" => Pick::EnterSoftirq(field("vec")?),
        "timer:hrtimer_expire_exit"
        | "timer:timer_expire_exit"
        | "irq:irq_handler_exit"
        | "irq:softirq_exit" => Pick::Exit,
        "signal:signal_generate" => Pick::Signal { signal: field("sig")?, pid: field("pid")? },
        "raw_syscalls:sys_enter" => Pick::CallEnter { number: field("id")?, arguments: field("args")? },
        "raw_syscalls:sys_exit" => Pick::CallExit { result: field("ret")? },
        "stillcore:lock_words" => {
            let word = |at: usize| field(&format!("word{at}"));
            Pick::LockWords(Box::new([word(0)?, word(1)?, word(2)?, word(3)?, word(4)?]))
        }
        locking::ASK => Pick::Asks { lock: field("lock")?, condition: None, kind: field("kind") },
        locking::WAIT => {
            let condition = Some(field("condition")?);
            Pick::Asks { lock: field("lock")?, condition, kind: field("kind") }
        }
        locking::RETURN => Pick::Asked { result: field("result")? },
        locking::RELEASE => Pick::Releases { lock: field("lock")? },
        locking::SIGNAL => Pick::Signals { condition: field("condition")? },
        "lock:contention_begin" => Pick::Contends { lock: field("lock_addr")?, flags: field("flags")? },
        "lock:contention_end" => Pick::Contended { lock: field("lock_addr")?, result: field("ret")? },
        kernel_locks::OWNER => Pick::KernelOwner(Box::new(kernel_lock::Fields::of(&field)?)),
        "signal:signal_deliver" => Pick::Delivered { signal: field("sig")?, handler: field("sa_handler")? },
        PAGE_FAULT => Pick::PageFault { address: field("address")? },
        "sched:sched_pi_setprio" => {
            Pick::Boost { pid: field("pid")?, prios: [field("oldprio")?, field("newprio")?] }
        }
        _ => return None,
    })
}
