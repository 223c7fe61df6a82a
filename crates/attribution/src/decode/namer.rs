//! One record read by its plan.

use super::known_stacks::KnownStacks;
use super::plan::{Naming, Pick, SentKind, SwitchedTask, Woken};
use crate::attribute::delay::Blocking;
use crate::comms::Comms;
use crate::labels::{CpuSets, LabelId, Labels};
use crate::prio::Prio;
use crate::stacks;
use crate::view::{Change, IdleState, Target, Task, Way, What};
use ftrace::{Endian, Field, StackLayout, Symbols};
use model::EventClass;
use model::cpu_states::FrequencyChanges;
use model::events::Helpers;
use rustc_hash::FxHashMap;
use std::borrow::Cow;

/// `enum tlb_flush_reason` (include/linux/mm_types.h): the receiving end of a shootdown.
const TLB_REMOTE_SHOOTDOWN: u64 = 1;
/// The sending end.
const TLB_REMOTE_SEND_IPI: u64 = 4;

/// `LCB_F_*` (include/trace/events/lock.h): the waiting task spins.
const SPIN: u64 = 1;
/// To read.
const READ: u64 = 1 << 1;
/// To write.
const WRITE: u64 = 1 << 2;
/// A lock of `PREEMPT_RT`, with a queue by priority.
const RT: u64 = 1 << 3;
/// A read-write semaphore with a counter per CPU.
const PERCPU: u64 = 1 << 4;
/// A mutex, which is spun for while its owner runs.
const MUTEX: u64 = 1 << 5;

/// The bits of `prev_state` that say why a task sleeps (`TASK_REPORT`, include/linux/sched.h): with
/// none of them it is runnable, and the bit above them marks preemption.
pub(super) const TASK_STATES: u64 = 0xff;

/// `PWR_EVENT_EXIT` (include/trace/events/power.h): stands for no idle state.
const AWAKE: u64 = u32::MAX as u64;

/// An address further than this behind a symbol, bytes, is not in its function, but in code without
/// symbols: a trampoline, a BPF program.
const LONGEST_FUNCTION: u64 = 1 << 16;

/// Name prefixes of the threads that serve a CPU's softirqs (kernel/softirq.c; the last is of
/// 5.10-rt and older).
const SOFTIRQ_THREADS: [&[u8]; 3] = [b"ksoftirqd/", b"ktimers/", b"ktimersoftd/"];

/// Whether a task of this name serves a CPU's softirqs.
#[inline(always)]
pub(super) fn is_softirqd(name: &[u8]) -> bool {
    name.first() == Some(&b'k') && SOFTIRQ_THREADS.iter().any(|start| name.starts_with(start))
}

/// Reads the fields of one record.
pub(super) struct Namer<'a> {
    pub(super) symbols: &'a Symbols,
    /// Functions that only pass on the request of another one.
    pub(super) helpers: &'a Helpers,
    pub(super) functions: &'a mut FxHashMap<u64, LabelId>,
    pub(super) labels: &'a mut Labels,
    pub(super) sets: &'a mut CpuSets,
    pub(super) endian: Endian,
    pub(super) data: &'a [u8],
    /// Where it was recorded.
    pub(super) cpu: u32,
    pub(super) comms: &'a mut Comms,
    /// Idle states by CPU and number.
    pub(super) idle_states: &'a FxHashMap<(u32, u64), IdleState>,
    /// The upper limit of a frequency change by CPU, ns.
    pub(super) changes_ns: &'a FrequencyChanges,
    /// Stacks already read, by their addresses.
    pub(super) stacks: &'a mut KnownStacks,
}

impl Woken {
    /// Reads a wake-up, and its task's name, in a record of a CPU.
    #[inline]
    pub(super) fn what(
        &self,
        data: &[u8],
        endian: Endian,
        cpu: u32,
        comms: &mut Comms,
        labels: &mut Labels,
    ) -> What {
        let number = |field: &Field| field.uint(data, endian).unwrap_or(0) as u32;
        let pid = number(&self.pid).cast_signed();
        if let Some(comm) = &self.comm {
            comms.id((pid, cpu), comm.bytes(data, endian).unwrap_or(b"?"), labels);
        }
        What::Wake { pid, target: number(&self.target), done: self.done }
    }
}

impl<'d> Namer<'d> {
    pub(super) fn number(&self, field: &Field) -> u64 {
        field.uint(self.data, self.endian).unwrap_or(0)
    }

    /// A change of a CPU's frequency to so many kHz.
    fn change(&mut self, cpu: u32, khz: u64) -> Option<Change> {
        let most_ns = i64::try_from(*self.changes_ns.get(&cpu)?).unwrap_or(i64::MAX);
        let label =
            self.labels.id(&format!("to {} MHz, at most {} us", khz / 1_000, (most_ns + 999) / 1_000));
        Some(Change { label, most_ns })
    }

    fn key(&self, field: Option<&Field>) -> u64 {
        field.map_or(0, |field| self.number(field))
    }

    fn pid(&self, field: &Field) -> i32 {
        self.number(field) as u32 as i32
    }

    fn field(&self, field: &Field) -> &'d [u8] {
        field.bytes(self.data, self.endian).unwrap_or(b"?")
    }

    fn text(&mut self, field: &Field) -> LabelId {
        self.labels.id_of_field(self.field(field))
    }

    /// Both tasks of a switch: the previous and the next one.
    fn switched(&mut self, left: &SwitchedTask, comes: &SwitchedTask) -> [Task; 2] {
        [left, comes].map(|fields| {
            let (pid, name) = (self.pid(&fields.pid), self.field(&fields.comm));
            let number = fields.prio.as_ref().and_then(|prio| prio.int(self.data, self.endian));
            Task {
                pid,
                prio: Prio::of(number, name),
                comm: self.named(pid, name),
                softirqd: is_softirqd(name),
            }
        })
    }

    /// The name that an event gives a task, as its field holds it.
    fn named(&mut self, pid: i32, field: &[u8]) -> LabelId {
        self.comms.id((pid, self.cpu), field, self.labels)
    }

    fn function(&mut self, field: &Field) -> LabelId {
        let address = self.number(field);
        if let Some(&id) = self.functions.get(&address) {
            return id;
        }
        let id = match self.symbols.resolve(address) {
            Some((name, 0)) => self.labels.id(plain(&name)),
            _ => self.labels.id(&format!("{address:#x}")),
        };
        self.functions.insert(address, id);
        id
    }

    /// The same, if the address is the start of a function.
    fn whole(&mut self, field: &Field) -> Option<LabelId> {
        self.symbols.begins(self.number(field)).then(|| self.function(field))
    }

    fn name(&mut self, naming: &Naming) -> LabelId {
        match naming {
            Naming::Always(id) => *id,
            Naming::Text(field) => self.text(field),
            Naming::Function(field) | Naming::Constant(field) => self.function(field),
            Naming::Softirq(field) => {
                let vector = self.number(field) as usize;
                self.labels.id(super::SOFTIRQS.get(vector).copied().unwrap_or("?"))
            }
            Naming::Number(field) => {
                let number = self.number(field).to_string();
                self.labels.id(&number)
            }
        }
    }

    /// The function that a return address lies in.
    fn site(&mut self, field: &Field) -> LabelId {
        self.site_at(self.number(field))
    }

    fn site_at(&mut self, address: u64) -> LabelId {
        if let Some(&id) = self.functions.get(&address) {
            return id;
        }
        let id = match self.symbols.resolve(address) {
            Some((name, _)) => self.labels.id(plain(&name)),
            None => self.labels.id(&format!("{address:#x}")),
        };
        self.functions.insert(address, id);
        id
    }

    /// The kind of a lock, and its name if it has a symbol; those without are many.
    fn lock(&mut self, address: u64, flags: u64) -> LabelId {
        let kind = match flags & !(READ | WRITE) {
            SPIN => "spinning lock",
            RT => "rt_mutex",
            PERCPU => "percpu_rwsem",
            0 => "rwsem",
            flags if flags & MUTEX != 0 => "mutex",
            _ => "lock",
        };
        let how = match flags & (READ | WRITE) {
            READ => " (read)",
            WRITE => " (write)",
            _ => "",
        };
        let name = match self.symbols.resolve(address) {
            Some((name, 0)) => format!(" {name}"),
            _ => String::new(),
        };
        self.labels.id(&format!("{kind}{name}{how}"))
    }

    fn stack(&mut self, layout: &StackLayout) -> What {
        let bytes = layout.bytes(self.data);
        if let Some(known) = self.stacks.get(bytes) {
            return known;
        }
        let symbols = self.symbols;
        let name = |address| match symbols.resolve(address) {
            Some((name, offset)) if offset < LONGEST_FUNCTION => name,
            _ => Cow::Borrowed(stacks::UNNAMED),
        };
        let names: Vec<Cow<'_, str>> = layout.frames(self.data).map(name).collect();
        let names: Vec<&str> = names.iter().map(|name| plain(name)).collect();
        let reading = stacks::read(&names, |name| self.helpers.has(name));
        let mut id = |text: Option<String>| text.map(|text| self.labels.id(&text));
        let mut way =
            |way: stacks::Way| Way { began: id(way.began), site: id(way.site), frames: id(way.frames) };
        let (code, act) = (reading.code.map(&mut way), way(reading.act));
        let stacks::Reading { at_switch, in_user_space, high_resolution, .. } = reading;
        let what = What::Stack { at_switch, code, in_user_space, high_resolution, act };
        self.stacks.add(bytes, what);
        what
    }

    fn sent(&mut self, target: &Field, many: bool, site: &Field, kind: &SentKind) -> What {
        let target = if many {
            let mask = target.bytes(self.data, self.endian).unwrap_or_default();
            Target::Set(self.sets.id(mask))
        } else {
            Target::One(self.number(target) as u32)
        };
        let (class, site) = match kind {
            SentKind::Callback(callback) => {
                let class = if self.number(callback) == 0 {
                    EventClass::IpiResched
                } else if target == Target::One(self.cpu) {
                    EventClass::IpiIrqwork
                } else {
                    EventClass::IpiCall
                };
                // irq_work is always queued by the same function; the function it runs shows why.
                let work = if class == EventClass::IpiIrqwork { self.whole(callback) } else { None };
                (class, work.unwrap_or_else(|| self.site(site)))
            }
            SentKind::Reason(kinds) => {
                let reason = self.function(site);
                (kinds.get(&reason).copied().unwrap_or(EventClass::IpiCall), reason)
            }
        };
        What::Sent { target, class, site }
    }

    pub(super) fn what(&mut self, pick: &Pick) -> What {
        match pick {
            Pick::Enter { class, context, key, label, when } => {
                let label = self.name(label);
                let class = when.get(&label).copied().unwrap_or(*class);
                What::Enter { class, context: *context, key: self.key(key.as_ref()), label }
            }
            Pick::Exit { of, class, key, label } => {
                What::Exit { of: *of, key: self.key(key.as_ref()), class: *class, label: *label }
            }
            Pick::Instant { class, label, length } => {
                let length = length.as_ref().and_then(|field| field.int(self.data, self.endian)).unwrap_or(0);
                What::Instant { class: *class, label: self.name(label), length_ns: length.max(0) as u64 }
            }
            Pick::Switch(fields) => {
                let [prev, next] = self.switched(&fields.prev, &fields.next);
                let runnable =
                    fields.state.as_ref().is_some_and(|state| self.number(state) & TASK_STATES == 0);
                What::Switch { prev, runnable, next }
            }
            Pick::Wake(fields) => fields.what(self.data, self.endian, self.cpu, self.comms, self.labels),
            Pick::Armed { timer, expires } => {
                let expires = expires.as_ref().and_then(|field| field.int(self.data, self.endian));
                What::Armed { timer: self.number(timer), expires_ns: expires.unwrap_or(0) }
            }
            Pick::Raised { vector } => What::Raised { vector: self.number(vector) },
            Pick::Queued { work } => What::Queued { work: self.number(work) },
            Pick::CallQueued { csd, target, site, function, queue_on } => {
                let site = self.site(site);
                let irq_work = site == *queue_on;
                let work = function.as_ref().filter(|_| irq_work).and_then(|function| self.whole(function));
                What::CallQueued {
                    csd: self.number(csd),
                    target: self.number(target) as u32,
                    site: work.unwrap_or(site),
                    irq_work,
                }
            }
            Pick::Sent { target, many, site, kind } => self.sent(target, *many, site, kind),
            Pick::Shootdown { reason, class, label } => match self.number(reason) {
                TLB_REMOTE_SHOOTDOWN => What::Instant { class: *class, label: *label, length_ns: 0 },
                TLB_REMOTE_SEND_IPI => What::Shootdown,
                _ => What::Other,
            },
            Pick::Migrate { pid, from, to, comm } => What::Migrate {
                pid: self.pid(pid),
                from: self.number(from) as u32,
                to: self.number(to) as u32,
                label: self.text(comm),
            },
            Pick::Prio { pid, new, comm } => What::Prio {
                pid: self.pid(pid),
                prio: Prio::of(
                    new.int(self.data, self.endian),
                    comm.bytes(self.data, self.endian).unwrap_or_default(),
                ),
            },
            Pick::Called { function, csd } => {
                What::Called { label: self.function(function), csd: self.key(csd.as_ref()) }
            }
            Pick::Contended { lock, flags } => {
                let (lock, flags) = (self.number(lock), self.number(flags));
                let (label, sleeps) = (self.lock(lock, flags), flags & SPIN == 0);
                What::Blocked { blocking: Blocking::Lock, label, lock, sleeps }
            }
            Pick::Off { blocking, distance, base } => {
                let distance = distance.int(self.data, self.endian).unwrap_or(0);
                let label = self.site_at(base.wrapping_add_signed(distance));
                What::Blocked { blocking: *blocking, label, lock: 0, sleeps: false }
            }
            Pick::Unblocked { blocking, lock } => {
                What::Unblocked { blocking: *blocking, lock: self.key(lock.as_ref()) }
            }
            Pick::Always(what) => *what,
            Pick::Idle { state } => match self.number(state) {
                AWAKE => What::Awake,
                state => What::Idle(self.idle_states.get(&(self.cpu, state)).copied()),
            },
            Pick::Frequency { khz, cpu } => {
                let cpu = self.number(cpu) as u32;
                What::Frequency { cpu, change: self.change(cpu, self.number(khz)) }
            }
            Pick::Stack(layout) => self.stack(layout),
            Pick::UserStack(_) => What::UserStack,
            Pick::Other => What::Other,
        }
    }
}

/// Clones by the compiler (`.isra.0`, `.llvm.1`) are the same function.
fn plain(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}
