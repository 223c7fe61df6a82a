//! What to read of each event: made once from the trace's own formats and the catalogue.

use super::Decoder;
use crate::attribute::delay::Blocking;
use crate::labels::LabelId;
use crate::view::{Context, What};
use ftrace::{EventFormat, Field, Formats, StackLayout, UserStackLayout};
use model::EventClass;
use model::events::{EventCatalogue, EventSpec, KERNEL_STACK, Role, USER_STACK};
use model::off;
use rustc_hash::FxHashMap;

/// What to do with one event of the traced kernel.
pub(super) struct Plan {
    pub(super) event: u16,
    /// Field that must hold a value for the event to matter: the in-kernel filter, for traces
    /// recorded without it.
    pub(super) only: Option<(Field, u64)>,
    pub(super) pick: Pick,
}

/// The fields to read.
pub(super) enum Pick {
    Enter {
        class: EventClass,
        context: Context,
        key: Option<Field>,
        label: Naming,
        when: FxHashMap<LabelId, EventClass>,
    },
    Exit {
        of: u16,
        class: EventClass,
        key: Option<Field>,
        label: LabelId,
    },
    Instant {
        class: EventClass,
        label: Naming,
        length: Option<Field>,
    },
    Switch(Box<Switched>),
    Wake(Woken),
    Armed {
        timer: Field,
        expires: Option<Field>,
    },
    Raised {
        vector: Field,
    },
    Queued {
        work: Field,
    },
    CallQueued {
        csd: Field,
        target: Field,
        site: Field,
        function: Option<Field>,
        /// The name of the function that queues irq_work.
        queue_on: LabelId,
    },
    Sent {
        target: Field,
        many: bool,
        site: Field,
        kind: SentKind,
    },
    Shootdown {
        reason: Field,
        class: EventClass,
        label: LabelId,
    },
    Migrate {
        pid: Field,
        from: Field,
        to: Field,
        comm: Field,
    },
    Prio {
        pid: Field,
        new: Field,
        comm: Field,
    },
    Called {
        function: Field,
        csd: Option<Field>,
    },
    /// A lock is taken by another task.
    Contended {
        lock: Field,
        flags: Field,
    },
    /// Interrupts or preemption are turned off by a function, given by its offset from `base`.
    Off {
        blocking: Blocking,
        distance: Field,
        base: u64,
    },
    Unblocked {
        blocking: Blocking,
        lock: Option<Field>,
    },
    /// The same of every record.
    Always(What),
    Idle {
        state: Field,
    },
    Frequency {
        khz: Field,
        cpu: Field,
    },
    /// The kernel's stack.
    Stack(Box<StackLayout>),
    /// That of user space.
    UserStack(Box<UserStackLayout>),
    Other,
}

/// The fields of a wake-up record.
pub(super) struct Woken {
    pub(super) pid: Field,
    pub(super) comm: Option<Field>,
    pub(super) target: Field,
    pub(super) done: bool,
}

/// The fields of a switch record.
pub(super) struct Switched {
    pub(super) prev: SwitchedTask,
    /// Whether the previous task is runnable; older traces may lack it.
    pub(super) state: Option<Field>,
    pub(super) next: SwitchedTask,
}

/// The fields of one of the two tasks of a switch.
pub(super) struct SwitchedTask {
    pub(super) pid: Field,
    pub(super) prio: Option<Field>,
    pub(super) comm: Field,
}

/// How the class of an IPI is known when it is sent.
pub(super) enum SentKind {
    /// By the function it is to bring: none for a reschedule IPI. A CPU sends itself only
    /// irq_work.
    Callback(Field),
    /// By the text of its reason (arm64).
    Reason(FxHashMap<LabelId, EventClass>),
}

/// How what ran is named.
pub(super) enum Naming {
    Always(LabelId),
    Text(Field),
    Function(Field),
    /// The address of a constant text.
    Constant(Field),
    Softirq(Field),
    Number(Field),
}

impl Decoder {
    pub(super) fn plan(&mut self, catalogue: &EventCatalogue, formats: &Formats, format: &EventFormat) {
        let name = format.full_name();
        let found = catalogue.events.iter().position(|spec| spec.name == name);
        let plan = if let Some(event) = found {
            let spec = &catalogue.events[event];
            let pick = self.pick(catalogue, formats, format, spec).unwrap_or_else(|field| {
                self.unreadable.push(format!("{name} has no field {field}"));
                Pick::Other
            });
            Plan { event: event as u16, only: only(spec, format), pick }
        } else {
            let pick = self.probed(&name);
            self.names.push(name);
            Plan { event: (self.names.len() - 1) as u16, only: None, pick }
        };
        let id = usize::from(format.id);
        if self.plans.len() <= id {
            self.plans.resize_with(id + 1, || None);
        }
        self.plans[id] = Some(plan);
    }

    /// Err: the field that is missing.
    fn pick(
        &mut self,
        catalogue: &EventCatalogue,
        formats: &Formats,
        format: &EventFormat,
        spec: &EventSpec,
    ) -> Result<Pick, String> {
        let field = |name: &str| format.field(name).cloned().ok_or_else(|| name.to_owned());
        Ok(match (spec.role, spec.name.as_str(), spec.class) {
            (Role::Enter, _, Some(class)) => {
                let when =
                    spec.when.iter().map(|(text, class)| (self.tasks.labels.id(text), *class)).collect();
                let context = if spec.preemptible { Context::Preemptible } else { Context::Hard };
                let key = key(spec, formats).and_then(|key| format.field(key)).cloned();
                Pick::Enter { class, context, key, label: self.naming(spec, format)?, when }
            }
            (Role::Exit, name, _) => {
                let entry = catalogue.events.iter().position(|entry| entry.exit.as_deref() == Some(name));
                let Some(of) = entry else { return Ok(Pick::Other) };
                let entry = &catalogue.events[of];
                let key = key(entry, formats).and_then(|key| format.field(key)).cloned();
                let class = entry.class.unwrap_or(EventClass::Irq);
                Pick::Exit { of: of as u16, class, key, label: self.tasks.labels.id(short(&entry.name)) }
            }
            (Role::Instant, "sched:sched_migrate_task", _) => Pick::Migrate {
                pid: field("pid")?,
                from: field("orig_cpu")?,
                to: field("dest_cpu")?,
                comm: field("comm")?,
            },
            (Role::Instant, "tlb:tlb_flush", Some(class)) => Pick::Shootdown {
                reason: field("reason")?,
                class,
                label: self.tasks.labels.id(short(&spec.name)),
            },
            (Role::Instant, _, Some(class)) => {
                let length = spec.length_ns.as_deref().map(field).transpose()?;
                Pick::Instant { class, label: self.naming(spec, format)?, length }
            }
            (Role::Switch, _, _) => {
                let task = |pid: &str, prio: &str, comm: &str| -> Result<SwitchedTask, String> {
                    let prio = format.field(prio).cloned();
                    Ok(SwitchedTask { pid: field(pid)?, prio, comm: field(comm)? })
                };
                Pick::Switch(Box::new(Switched {
                    prev: task("prev_pid", "prev_prio", "prev_comm")?,
                    state: format.field("prev_state").cloned(),
                    next: task("next_pid", "next_prio", "next_comm")?,
                }))
            }
            (Role::Link, _, _) => self.link(catalogue, formats, format, spec)?,
            _ => Pick::Other,
        })
    }

    /// The fields that name causes. Err: the field that is missing.
    fn link(
        &mut self,
        catalogue: &EventCatalogue,
        formats: &Formats,
        format: &EventFormat,
        spec: &EventSpec,
    ) -> Result<Pick, String> {
        let field = |name: &str| format.field(name).cloned().ok_or_else(|| name.to_owned());
        Ok(match spec.name.as_str() {
            // The creator of a new task wakes it, without an earlier request.
            name @ ("sched:sched_waking" | "sched:sched_wakeup" | "sched:sched_wakeup_new") => {
                Pick::Wake(Woken {
                    pid: field("pid")?,
                    comm: format.field("comm").cloned(),
                    target: field("target_cpu")?,
                    done: name == "sched:sched_wakeup",
                })
            }
            "sched:sched_pi_setprio" => {
                Pick::Prio { pid: field("pid")?, new: field("newprio")?, comm: field("comm")? }
            }
            "timer:hrtimer_start" => {
                Pick::Armed { timer: field("hrtimer")?, expires: format.field("softexpires").cloned() }
            }
            model::idle::EVENT => Pick::Idle { state: field("state")? },
            model::frequency::EVENT => Pick::Frequency { khz: field("state")?, cpu: field("cpu_id")? },
            "timer:timer_start" => Pick::Armed { timer: field("timer")?, expires: None },
            "irq:softirq_raise" => Pick::Raised { vector: field("vec")? },
            "workqueue:workqueue_queue_work" => Pick::Queued { work: field("work")? },
            "csd:csd_queue_cpu" => Pick::CallQueued {
                csd: field("csd")?,
                target: field("cpu")?,
                site: field("callsite")?,
                function: format.field("func").cloned(),
                queue_on: self.tasks.labels.id("irq_work_queue_on"),
            },
            "csd:csd_function_entry" => {
                Pick::Called { function: field("func")?, csd: format.field("csd").cloned() }
            }
            "ipi:ipi_send_cpu" | "stillcore:call_queue" => Pick::Sent {
                target: field("cpu")?,
                many: false,
                site: field("callsite")?,
                kind: SentKind::Callback(field("callback")?),
            },
            "ipi:ipi_send_cpumask" | "stillcore:call_many" => Pick::Sent {
                target: field("cpumask")?,
                many: true,
                site: field("callsite")?,
                kind: SentKind::Callback(field("callback")?),
            },
            "ipi:ipi_raise" => {
                let received = catalogue.get("ipi:ipi_entry").into_iter().flat_map(|entry| &entry.when);
                let kinds = received.map(|(text, class)| (self.tasks.labels.id(text), *class)).collect();
                let kind = SentKind::Reason(kinds);
                Pick::Sent { target: field("target_cpus")?, many: true, site: field("reason")?, kind }
            }
            "lock:contention_begin" => Pick::Contended { lock: field("lock_addr")?, flags: field("flags")? },
            "lock:contention_end" => {
                Pick::Unblocked { blocking: Blocking::Lock, lock: Some(field("lock_addr")?) }
            }
            KERNEL_STACK => Pick::Stack(Box::new(StackLayout::of(formats).ok_or("caller")?)),
            USER_STACK => Pick::UserStack(Box::new(UserStackLayout::of(formats).ok_or("caller")?)),
            "preemptirq:irq_disable" => self.off(Blocking::InterruptsOff, field("parent_offs")?),
            "preemptirq:preempt_disable" => self.off(Blocking::PreemptionOff, field("parent_offs")?),
            "preemptirq:irq_enable" => Pick::Unblocked { blocking: Blocking::InterruptsOff, lock: None },
            "preemptirq:preempt_enable" => Pick::Unblocked { blocking: Blocking::PreemptionOff, lock: None },
            _ => Pick::Other,
        })
    }

    /// One end of a pair of probes on a function, which stands in the event's name.
    fn probed(&mut self, event: &str) -> Pick {
        let (Some(end), Some(function)) = (off::end_of(event), off::function_of(event)) else {
            return Pick::Other;
        };
        let (label, blocking) = (self.tasks.labels.id(function), Blocking::ProbedFunction);
        let lock = u64::from(label);
        Pick::Always(match end {
            off::End::Entry => What::Blocked { blocking, label, lock, sleeps: false },
            off::End::Return => What::Unblocked { blocking, lock },
        })
    }

    /// Offsets count from `_stext` (include/trace/events/preemptirq.h).
    fn off(&self, blocking: Blocking, distance: Field) -> Pick {
        Pick::Off { blocking, distance, base: self.symbols.find("_stext").unwrap_or(0) }
    }

    fn naming(&mut self, spec: &EventSpec, format: &EventFormat) -> Result<Naming, String> {
        let Some(name) = &spec.label else {
            return Ok(Naming::Always(self.tasks.labels.id(short(&spec.name))));
        };
        let field = format.field(name).cloned().ok_or_else(|| name.clone())?;
        Ok(if spec.row.as_deref() == Some("softirqs") {
            Naming::Softirq(field)
        } else if field.type_name.ends_with('*') && field.kind == ftrace::FieldKind::Scalar {
            if is_text_pointer(&field) { Naming::Constant(field) } else { Naming::Function(field) }
        } else if field.kind == ftrace::FieldKind::Scalar && !is_text_pointer(&field) {
            Naming::Number(field)
        } else {
            Naming::Text(field)
        })
    }
}

/// The field that pairs both ends, if both have it.
fn key<'a>(entry: &'a EventSpec, formats: &Formats) -> Option<&'a str> {
    let key = entry.key.as_deref()?;
    let has = |name: &str| formats.by_name(name).is_some_and(|format| format.field(key).is_some());
    (has(&entry.name) && entry.exit.as_deref().is_some_and(has)).then_some(key)
}

/// A filter of the form `field == number`.
fn only(spec: &EventSpec, format: &EventFormat) -> Option<(Field, u64)> {
    let (name, value) = spec.filter.as_deref()?.split_once("==")?;
    Some((format.field(name.trim())?.clone(), value.trim().parse().ok()?))
}

/// `irq_vectors:reschedule_entry` → `reschedule`.
fn short(name: &str) -> &str {
    let name = name.split_once(':').map_or(name, |(_, name)| name);
    name.strip_suffix("_entry").unwrap_or(name)
}

/// A `const char *` holds the address of a constant text of the kernel.
fn is_text_pointer(field: &Field) -> bool {
    field.type_name.contains("char")
}
