//! One of the recorder's instances: its events, its reader, its accounts.

use super::changes::TraceInstance;
use super::filter::{Filter, filters, on_cpus};
use super::instance::{self, Instance};
use super::kept::RawPages;
use super::kprobe;
use super::live::{Keep, Tap};
use super::reader::{Reader, Sinks};
use super::ring::{Pages, Ring};
use journal::session::{Session, Ticket};
use model::Cpus;
use model::events::{EventCatalogue, EventSpec, KERNEL_STACK, Side, USER_STACK};
use model::run::TraceCpu;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use sys::{Error, tracefs};

/// What an instance is for.
pub(crate) struct Order<'a> {
    /// Name of the instance.
    pub name: &'a str,
    /// Which events of the catalogue.
    pub side: Side,
    /// On which CPUs.
    pub cpus: &'a Cpus,
    /// The CPUs that senders aim at.
    pub measured: &'a Cpus,
    /// Buffer per CPU, KiB.
    pub buffer_kib: u64,
    /// Whether the kernel may be probed for events that it lacks.
    pub kprobes: bool,
    /// The tasks to follow; all, where it is empty.
    pub tids: &'a [i32],
}

/// A private instance with its events enabled.
pub(crate) struct Buffer {
    /// Where it records.
    pub instance: Instance,
    /// What the session knows it by.
    pub target: String,
    ticket: Ticket,
    /// Its CPUs.
    pub cpus: Vec<u32>,
    /// The events that this kernel has.
    pub events: Vec<EventSpec>,
    /// Events of the catalogue that it lacks.
    pub absent: Vec<String>,
    /// Probes of our own, as the session knows them.
    probes: Vec<Ticket>,
    scratch: PathBuf,
    /// Buffer per CPU, KiB.
    kib: u64,
    reader: Option<Reader>,
}

/// What was taken out of an instance.
#[derive(Default)]
pub(crate) struct Drained {
    /// CPU and raw pages.
    pub files: Vec<(u32, PathBuf)>,
    /// The kernel's account of each CPU.
    pub accounts: Vec<TraceCpu>,
    /// Since when everything is there, where the beginning was not kept; CLOCK_MONOTONIC, ns.
    pub reaches_to_ns: Option<i64>,
}

impl Buffer {
    /// Makes the instance and enables its events, with `tracing_on` still off.
    pub(crate) fn create(
        session: &mut Session,
        tracefs: &Path,
        catalogue: &EventCatalogue,
        order: &Order<'_>,
        scratch: &Path,
    ) -> Result<Self, Error> {
        // Before the instance: undoing newest first ends the events before it removes the probes,
        // which are busy until then.
        let (probes, refused) =
            if order.kprobes { define(session, tracefs, catalogue, order) } else { Default::default() };
        let path = Instance::path_of(tracefs, order.name);
        let target = path.display().to_string();
        let (instance, ticket) = session.change(TraceInstance { path: path.clone() }, || {
            Instance::create(path.clone(), order.cpus, order.buffer_kib).inspect_err(|_| {
                let _ = instance::remove(&path);
            })
        })?;
        if !order.tids.is_empty() {
            instance.follow(order.tids)?;
        }
        let (events, mut absent) = enable(&instance, catalogue, order)?;
        absent.extend(refused);
        fs::create_dir_all(scratch).map_err(|source| Error::os("create", scratch.display(), source))?;
        let (cpus, scratch, kib) = (order.cpus.iter().collect(), scratch.to_owned(), order.buffer_kib);
        Ok(Self { instance, target, ticket, cpus, events, absent, probes, scratch, kib, reader: None })
    }

    /// Starts to take pages out of the buffers.
    pub(crate) fn start_reader(
        &mut self,
        pages: Pages,
        keep: Keep,
        tap: Option<Arc<Tap>>,
    ) -> Result<(), Error> {
        let sinks = Sinks { dir: &self.scratch, keep, tap };
        let reader = Reader::start(&self.instance.path, &self.cpus, self.kib, pages, sinks)?;
        self.reader = Some(reader);
        Ok(())
    }

    /// Its buffers for snapshots, instead of a reader: they overwrite their oldest events.
    pub(super) fn rings(&self) -> Result<Vec<Ring>, Error> {
        self.instance.overwrite()?;
        self.cpus.iter().map(|cpu| Ring::open(&self.instance, *cpu)).collect()
    }

    /// Where its raw pages go.
    pub(super) fn scratch(&self) -> &Path {
        &self.scratch
    }

    /// Starts or stops recording.
    pub(crate) fn record(&self, on: bool) -> Result<(), Error> {
        self.instance.record(on)
    }

    /// Whether the reader has died.
    pub(crate) fn failed(&self) -> bool {
        self.reader.as_ref().is_some_and(Reader::failed)
    }

    /// Takes out the rest, recording being off.
    pub(crate) fn drain(&mut self) -> Result<Drained, Error> {
        let lanes = match self.reader.take() {
            Some(reader) => reader.finish()?,
            None => Vec::new(),
        };
        let account = |lane: &RawPages| {
            let RawPages { cpu, pages, discarded, .. } = *lane;
            self.instance.account(cpu).map(|account| TraceCpu { pages, discarded, ..account })
        };
        let accounts = lanes.iter().map(account).collect::<Result<_, _>>()?;
        let reaches_to_ns = lanes.iter().filter_map(|lane| lane.reaches_to_ns).max();
        let files = lanes.into_iter().map(|lane| (lane.cpu, lane.path)).collect();
        Ok(Drained { files, accounts, reaches_to_ns })
    }

    /// CPU and text of `per_cpu/cpuN/stats`.
    pub(crate) fn stats(&self) -> Result<Vec<(u32, String)>, Error> {
        let text = |cpu: &u32| {
            let path = self.instance.path.join(format!("per_cpu/cpu{cpu}/stats"));
            tracefs::read(&path).map(|text| (*cpu, text))
        };
        self.cpus.iter().map(text).collect()
    }

    /// Removes raw pages and the instance.
    pub(crate) fn remove(self, session: &mut Session) -> Result<(), Error> {
        fs::remove_dir_all(&self.scratch)
            .map_err(|source| Error::os("remove", self.scratch.display(), source))?;
        self.instance.disable_events()?;
        session.take_back(self.ticket)?;
        self.probes.iter().try_for_each(|probe| session.take_back(*probe))
    }
}

/// Defines probes for what the kernel has no event for; returns the probes, and the events whose
/// function it lacks too.
fn define(
    session: &mut Session,
    tracefs: &Path,
    catalogue: &EventCatalogue,
    order: &Order<'_>,
) -> (Vec<Ticket>, Vec<String>) {
    let has = |name: &str| tracefs.join("events").join(name.replace(':', "/")).is_dir();
    let wanted = |event: &&EventSpec| {
        let is_needless = || event.unless.as_deref().is_some_and(has);
        event.on.contains(&order.side) && event.is_probe() && !is_needless()
    };
    let highest = order.cpus.iter().chain(order.measured.iter()).max().unwrap_or(0);
    let (mut probes, mut refused) = (Vec::new(), Vec::new());
    for event in catalogue.events.iter().filter(wanted).filter(|event| !has(&event.name)) {
        let probe = crate::changes::kprobe_of(tracefs, event);
        match session.change(probe, || kprobe::define(tracefs, event, highest)) {
            Ok(((), ticket)) => probes.push(ticket),
            Err(_) => refused.push(event.name.clone()),
        }
    }
    (probes, refused)
}

/// Enables what the kernel has; returns both what it has and what it lacks.
fn enable(
    instance: &Instance,
    catalogue: &EventCatalogue,
    order: &Order<'_>,
) -> Result<(Vec<EventSpec>, Vec<String>), Error> {
    let (mut events, mut absent, mut triggers) = (Vec::new(), Vec::new(), Vec::new());
    let here = catalogue.events.iter().filter(|event| {
        event.on.contains(&order.side)
            && event.arch.as_deref().is_none_or(|arch| arch == std::env::consts::ARCH)
    });
    let mut stacks = None;
    for event in here {
        if event.name == KERNEL_STACK {
            stacks = Some(event.clone());
            continue;
        }
        if event.name == USER_STACK {
            if instance.user_stacks(true) {
                events.push(event.clone());
            } else {
                absent.push(event.name.clone());
            }
            continue;
        }
        match instance.enable(&event.name, &filters(event, order.side, order.measured))? {
            Some(filter) => {
                if let Some(condition) = stack_condition(instance, event, order, filter) {
                    triggers.push(instance.stack_behind(&event.name, &condition));
                }
                events.push(event.clone());
            }
            None if !event.is_probe() => absent.push(event.name.clone()),
            None => {}
        }
    }
    // Stacks count as recorded only if no trigger is missing: otherwise a missing stack proves
    // nothing.
    let with_stacks = !triggers.is_empty() && triggers.iter().all(|set| *set);
    match stacks {
        Some(stacks) if with_stacks => events.push(stacks),
        Some(stacks) => absent.push(stacks.name),
        None => {}
    }
    Ok((events, absent))
}

/// On what the kernel's stack is recorded behind an event; `None`: not at all. A sender pays for
/// its stack, so it has one only for what is aimed at measured CPUs.
fn stack_condition(
    instance: &Instance,
    event: &EventSpec,
    order: &Order<'_>,
    filter: &Filter,
) -> Option<String> {
    let own = event.stack.get(&order.side).filter(|_| filter.aimed)?;
    if event.stack_unless.as_deref().is_some_and(|other| instance.has(other)) {
        return None;
    }
    let here = on_cpus(order.cpus);
    let conditions = [Some(own.as_str()), filter.text.as_deref(), Some(&here)];
    let conditions = conditions.into_iter().flatten().filter(|text| !text.is_empty());
    Some(conditions.map(|text| format!("({text})")).collect::<Vec<_>>().join(" && "))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An instance whose kernel has the switch and reschedule IPIs.
    fn instance(root: &Path) -> Instance {
        for event in ["sched/sched_switch", "irq_vectors/reschedule_entry"] {
            let dir = root.join("events").join(event);
            fs::create_dir_all(&dir).unwrap();
            for file in ["enable", "filter", "trigger"] {
                fs::write(dir.join(file), "").unwrap();
            }
        }
        Instance { path: root.to_owned() }
    }

    fn enabled(instance: &Instance) -> (Vec<String>, Vec<String>) {
        let catalogue = EventCatalogue::embedded().unwrap();
        let cpus = "2-3".parse().unwrap();
        let order = Order {
            name: "x",
            side: Side::Victim,
            cpus: &cpus,
            measured: &cpus,
            buffer_kib: 1,
            kprobes: false,
            tids: &[],
        };
        let (events, absent) = enable(instance, &catalogue, &order).unwrap();
        (events.into_iter().map(|event| event.name).collect(), absent)
    }

    #[test]
    fn stacks_have_their_conditions_and_are_recorded_if_every_trigger_is_set() {
        let dir = tempfile::tempdir().unwrap();
        let instance = instance(dir.path());
        let (events, absent) = enabled(&instance);
        assert!(events.iter().any(|name| name == KERNEL_STACK), "{absent:?}");
        let trigger = dir.path().join("events/sched/sched_switch/trigger");
        assert_eq!(
            fs::read_to_string(&trigger).unwrap().trim(),
            "stacktrace if (prev_pid != 0 && ((next_prio < 100 && prev_prio >= 100) || (next_prio < 98 && prev_prio >= 98) \
             || (next_prio < 49 && prev_prio >= 49))) && ((CPU >= 2 && CPU <= 3))"
        );
        // The kernel refuses one of them.
        fs::remove_file(&trigger).unwrap();
        fs::create_dir(&trigger).unwrap();
        let (events, absent) = enabled(&instance);
        assert!(events.iter().any(|name| name == "sched:sched_switch"));
        assert!(absent.iter().any(|name| name == KERNEL_STACK), "{events:?}");
    }
}
