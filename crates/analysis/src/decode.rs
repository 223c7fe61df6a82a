//! The one place where the bytes of a trace become [`KernelEvent`]s: fields by name, functions by symbol, classes by catalogue.
//!
//! Names, order and types of fields differ between kernels, so each event gets a plan once, when the trace is opened. An event
//! whose fields cannot be found is counted, said to be unreadable, and its class is not taken for observed.
//! `TRACE_FLAG_*`: Linux include/linux/trace_events.h. Softirq numbers: include/linux/interrupt.h.

use crate::hash::FastMap;
use crate::labels::{LabelId, Labels};
use crate::spans::KnownLabels;
use crate::view::{Context, KernelEvent, What};
use ftrace::{Constants, Endian, Event, EventFormat, Field, Formats, Symbols};
use model::EventClass;
use model::events::{EventCatalogue, EventSpec, Role};
use std::collections::BTreeSet;

/// `TRACE_FLAG_HARDIRQ | TRACE_FLAG_SOFTIRQ | TRACE_FLAG_NMI`.
const IN_INTERRUPT: u8 = 0x08 | 0x10 | 0x40;

/// The softirqs by number, as `/proc/softirqs` names them.
pub const SOFTIRQS: [&str; 10] =
    ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];

/// The function of timers that end a sleep (kernel/time/hrtimer.c).
const SLEEPER: &str = "hrtimer_wakeup";

/// Turns the events of one trace into [`KernelEvent`]s.
pub struct Decoder {
    endian: Endian,
    /// By event number of the traced kernel.
    plans: Vec<Option<Plan>>,
    names: Vec<String>,
    symbols: Symbols,
    /// Functions already named, and constant texts.
    functions: FastMap<u64, LabelId>,
    has_constants: bool,
    labels: Labels,
    known: KnownLabels,
    unreadable: Vec<String>,
}

struct Plan {
    event: u16,
    /// Field that must hold a value for the event to matter: the in-kernel filter, for traces recorded without it.
    only: Option<(Field, u64)>,
    pick: Pick,
}

enum Pick {
    Enter {
        class: EventClass,
        context: Context,
        key: Option<Field>,
        label: Naming,
        when: FastMap<LabelId, EventClass>,
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
    Switch {
        prev: Field,
        next: Field,
        comm: Field,
    },
    Wake {
        pid: Field,
        target: Field,
    },
    Armed {
        timer: Field,
    },
    Migrate {
        pid: Field,
        from: Field,
        to: Field,
        comm: Field,
    },
    Called {
        function: Field,
    },
    Other,
}

enum Naming {
    Always(LabelId),
    Text(Field),
    Function(Field),
    /// The address of a constant text.
    Constant(Field),
    Softirq(Field),
    Number(Field),
}

impl Decoder {
    /// A plan for every event of the trace. Events that the catalogue lacks are counted under their own names.
    pub fn new(
        catalogue: &EventCatalogue,
        formats: &Formats,
        symbols: Symbols,
        constants: &Constants,
    ) -> Self {
        let mut labels = Labels::default();
        // Addresses of functions and of texts do not meet, so one table names both.
        let functions = constants.iter().map(|(address, text)| (address, labels.id(text))).collect();
        let known = KnownLabels {
            sleeper: (!symbols.is_empty()).then(|| labels.id(SLEEPER)),
            unnamed: labels.id("(running when recording began)"),
        };
        let names = catalogue.events.iter().map(|spec| spec.name.clone()).collect();
        let (plans, unreadable, has_constants) = (Vec::new(), Vec::new(), !constants.is_empty());
        let endian = formats.endian();
        let mut decoder =
            Self { endian, plans, names, symbols, functions, has_constants, labels, known, unreadable };
        for format in formats.iter() {
            decoder.plan(catalogue, formats, format);
        }
        decoder
    }

    fn plan(&mut self, catalogue: &EventCatalogue, formats: &Formats, format: &EventFormat) {
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
            self.names.push(name);
            Plan { event: (self.names.len() - 1) as u16, only: None, pick: Pick::Other }
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
                let when = spec.when.iter().map(|(text, class)| (self.labels.id(text), *class)).collect();
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
                Pick::Exit { of: of as u16, class, key, label: self.labels.id(short(&entry.name)) }
            }
            (Role::Instant, "sched:sched_migrate_task", _) => Pick::Migrate {
                pid: field("pid")?,
                from: field("orig_cpu")?,
                to: field("dest_cpu")?,
                comm: field("comm")?,
            },
            (Role::Instant, _, Some(class)) => {
                let length = spec.length_ns.as_deref().map(field).transpose()?;
                Pick::Instant { class, label: self.naming(spec, format)?, length }
            }
            (Role::Switch, _, _) => {
                Pick::Switch { prev: field("prev_pid")?, next: field("next_pid")?, comm: field("next_comm")? }
            }
            (Role::Link, "sched:sched_waking" | "sched:sched_wakeup" | "sched:sched_wakeup_new", _) => {
                Pick::Wake { pid: field("pid")?, target: field("target_cpu")? }
            }
            (Role::Link, "timer:hrtimer_start", _) => Pick::Armed { timer: field("hrtimer")? },
            (Role::Link, "csd:csd_function_entry", _) => Pick::Called { function: field("func")? },
            _ => Pick::Other,
        })
    }

    fn naming(&mut self, spec: &EventSpec, format: &EventFormat) -> Result<Naming, String> {
        let Some(name) = &spec.label else { return Ok(Naming::Always(self.labels.id(short(&spec.name)))) };
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

    /// What an event says. `None` for a number that no format of the trace has.
    #[inline]
    pub fn decode(&mut self, event: &Event<'_>) -> Option<KernelEvent> {
        let Self { plans, symbols, functions, labels, endian, .. } = self;
        let plan = plans.get(usize::from(event.id))?.as_ref()?;
        let mut namer = Namer { symbols, functions, labels, endian: *endian, data: event.data };
        let matters = plan.only.as_ref().is_none_or(|(field, value)| namer.number(field) == *value);
        Some(KernelEvent {
            ts_ns: event.ts_ns.min(i64::MAX as u64) as i64,
            cpu: event.cpu,
            pid: event.pid,
            in_task: event.flags & IN_INTERRUPT == 0,
            event: plan.event,
            what: if matters { namer.what(&plan.pick) } else { What::Other },
        })
    }

    /// Names of the events by [`KernelEvent::event`].
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The texts of the labels.
    pub fn labels(&self) -> &Labels {
        &self.labels
    }

    /// What the span rules need.
    pub fn known(&self) -> KnownLabels {
        self.known
    }

    /// Whether functions can be named.
    pub fn has_symbols(&self) -> bool {
        !self.symbols.is_empty()
    }

    /// Events that this kernel writes in a form the analysis cannot use, one sentence each.
    pub fn unreadable(&self) -> &[String] {
        &self.unreadable
    }

    /// The classes of which something was recorded, so that zero means zero.
    pub fn observable(&self, catalogue: &EventCatalogue, recorded: &[String]) -> BTreeSet<EventClass> {
        let mut classes = BTreeSet::new();
        for (index, spec) in
            catalogue.events.iter().enumerate().filter(|(_, spec)| recorded.contains(&spec.name))
        {
            let plan = self.plans.iter().flatten().find(|plan| usize::from(plan.event) == index);
            match plan.map(|plan| &plan.pick) {
                None | Some(Pick::Other) => {}
                Some(Pick::Switch { .. }) => classes.extend([EventClass::Switch, EventClass::SelfCaused]),
                Some(Pick::Enter { class, label, when, .. }) => {
                    classes.insert(*class);
                    // A class that is told by what an address means is not seen where it means nothing.
                    let told = match label {
                        Naming::Function(_) => self.has_symbols(),
                        Naming::Constant(_) => self.has_constants,
                        _ => true,
                    };
                    if told {
                        classes.extend(when.values());
                    }
                }
                Some(_) => classes.extend(spec.class),
            }
        }
        classes
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

/// Reads the fields of one record.
struct Namer<'a> {
    symbols: &'a Symbols,
    functions: &'a mut FastMap<u64, LabelId>,
    labels: &'a mut Labels,
    endian: Endian,
    data: &'a [u8],
}

impl Namer<'_> {
    fn number(&self, field: &Field) -> u64 {
        field.uint(self.data, self.endian).unwrap_or(0)
    }

    fn key(&self, field: Option<&Field>) -> u64 {
        field.map_or(0, |field| self.number(field))
    }

    fn pid(&self, field: &Field) -> i32 {
        self.number(field) as u32 as i32
    }

    fn text(&mut self, field: &Field) -> LabelId {
        let bytes = field.bytes(self.data, self.endian).unwrap_or(b"?");
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        self.labels.id_of_bytes(&bytes[..end])
    }

    fn function(&mut self, field: &Field) -> LabelId {
        let address = self.number(field);
        if let Some(&id) = self.functions.get(&address) {
            return id;
        }
        let id = match self.symbols.resolve(address) {
            // Clones by the compiler (`.isra.0`, `.llvm.1`) are the same function.
            Some((name, 0)) => self.labels.id(name.split('.').next().unwrap_or(name)),
            _ => self.labels.id(&format!("{address:#x}")),
        };
        self.functions.insert(address, id);
        id
    }

    fn name(&mut self, naming: &Naming) -> LabelId {
        match naming {
            Naming::Always(id) => *id,
            Naming::Text(field) => self.text(field),
            Naming::Function(field) | Naming::Constant(field) => self.function(field),
            Naming::Softirq(field) => {
                let vector = self.number(field) as usize;
                self.labels.id(SOFTIRQS.get(vector).copied().unwrap_or("?"))
            }
            Naming::Number(field) => {
                let number = self.number(field).to_string();
                self.labels.id(&number)
            }
        }
    }

    fn what(&mut self, pick: &Pick) -> What {
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
            Pick::Switch { prev, next, comm } => {
                What::Switch { prev: self.pid(prev), next: self.pid(next), label: self.text(comm) }
            }
            Pick::Wake { pid, target } => {
                What::Wake { pid: self.pid(pid), target: self.number(target) as u32 }
            }
            Pick::Armed { timer } => What::Armed { timer: self.number(timer) },
            Pick::Migrate { pid, from, to, comm } => What::Migrate {
                pid: self.pid(pid),
                from: self.number(from) as u32,
                to: self.number(to) as u32,
                label: self.text(comm),
            },
            Pick::Called { function } => What::Called { label: self.function(function) },
            Pick::Other => What::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMON: &str = "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
                          \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
                          \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n";

    /// A decoder for one event with the given fields, and the names under which it was recorded.
    fn decoder(name: &str, fields: &str) -> (Decoder, EventCatalogue) {
        let catalogue = EventCatalogue::embedded().unwrap();
        let mut formats = Formats::new(Endian::Little, "", 8).unwrap();
        let (system, event) = name.split_once(':').unwrap();
        formats.add(system, &format!("name: {event}\nID: 7\nformat:\n{COMMON}{fields}")).unwrap();
        (
            Decoder::new(
                &catalogue,
                &formats,
                Symbols::parse("ffffffff81000000 t tick_nohz_handler.llvm.9\n"),
                &Constants::parse("0xffff800009c50b70 : \"Rescheduling interrupts\"\n"),
            ),
            catalogue,
        )
    }

    fn decode(decoder: &mut Decoder, flags: u8, data: &[u8]) -> KernelEvent {
        decoder.decode(&Event { ts_ns: 5, cpu: 2, id: 7, flags, pid: 9, data }).unwrap()
    }

    #[test]
    fn the_filter_holds_for_traces_recorded_without_it() {
        let (mut tlb, _) = decoder("tlb:tlb_flush", "\tfield:int reason;\toffset:8;\tsize:4;\tsigned:1;\n");
        let mut what = |reason: u8| decode(&mut tlb, 0, &[7, 0, 0, 0, 9, 0, 0, 0, reason, 0, 0, 0]).what;
        assert!(matches!(what(1), What::Instant { class: EventClass::Tlb, .. }));
        assert_eq!(what(0), What::Other);
    }

    #[test]
    fn a_function_is_named_without_its_clone_and_decides_the_class() {
        let fields = "\tfield:void * hrtimer;\toffset:8;\tsize:8;\tsigned:0;\n\
                      \tfield:void * function;\toffset:16;\tsize:8;\tsigned:0;\n";
        let (mut expire, _) = decoder("timer:hrtimer_expire_entry", fields);
        let mut data = vec![0u8; 24];
        data[16..].copy_from_slice(&0xffff_ffff_8100_0000u64.to_le_bytes());
        let What::Enter { class, label, .. } = decode(&mut expire, 8, &data).what else { panic!() };
        assert_eq!((class, expire.labels().text(label)), (EventClass::TimerTick, "tick_nohz_handler"));
        data[16] = 1;
        let What::Enter { class, label, .. } = decode(&mut expire, 8, &data).what else { panic!() };
        assert_eq!((class, expire.labels().text(label)), (EventClass::TimerHrtimer, "0xffffffff81000001"));
    }

    #[test]
    fn an_arm64_ipi_is_told_by_the_text_its_reason_points_to() {
        let fields = "\tfield:const char * reason;\toffset:8;\tsize:8;\tsigned:0;\n";
        let (mut ipi, catalogue) = decoder("ipi:ipi_entry", fields);
        let mut data = vec![0u8; 16];
        data[8..].copy_from_slice(&0xffff_8000_09c5_0b70u64.to_le_bytes());
        let What::Enter { class, label, .. } = decode(&mut ipi, 8, &data).what else { panic!() };
        assert_eq!((class, ipi.labels().text(label)), (EventClass::IpiResched, "Rescheduling interrupts"));
        let seen = ipi.observable(&catalogue, &["ipi:ipi_entry".to_owned()]);
        assert!(seen.contains(&EventClass::IpiResched) && seen.contains(&EventClass::IpiIrqwork));
    }

    #[test]
    fn an_event_without_its_fields_is_said_to_be_unreadable_and_not_observed() {
        let (decoder, catalogue) =
            decoder("sched:sched_switch", "\tfield:pid_t prev_pid;\toffset:8;\tsize:4;\tsigned:1;\n");
        assert_eq!(decoder.unreadable(), ["sched:sched_switch has no field next_pid"]);
        assert!(decoder.observable(&catalogue, &["sched:sched_switch".to_owned()]).is_empty());
    }

    #[test]
    fn only_what_was_recorded_is_observed() {
        let (decoder, catalogue) = decoder("irq_vectors:reschedule_entry", "");
        let recorded = ["irq_vectors:reschedule_entry".to_owned()];
        assert_eq!(decoder.observable(&catalogue, &recorded), BTreeSet::from([EventClass::IpiResched]));
        assert!(decoder.observable(&catalogue, &[]).is_empty());
    }

    #[test]
    fn interrupts_do_not_speak_for_the_task_they_interrupt() {
        let (mut plain, _) = decoder("irq_vectors:reschedule_entry", "");
        for (flags, in_task) in [(0x00, true), (0x05, true), (0x08, false), (0x10, false), (0x40, false)] {
            assert_eq!(decode(&mut plain, flags, &[0; 8]).in_task, in_task, "{flags:#x}");
        }
    }
}
