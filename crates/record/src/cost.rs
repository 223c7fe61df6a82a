//! What one recorded event, one recorded stack, and one probed function costs, measured on this
//! machine: a cheap system call with its tracepoint on and off, and with stacks behind it.
//!
//! The difference holds the recording of one event plus the slower path into the kernel that
//! system-call tracing takes, so it is an upper bound. The minimum of many batches is taken, since
//! a batch that something interrupts says nothing about the event.

use super::changes::{TraceInstance, kprobe_of};
use super::filter::Filter;
use super::instance::Instance;
use super::kprobe;
use journal::session::Session;
use model::events::EventSpec;
use model::{Cpus, off};
use std::path::{Path, PathBuf};
use sys::Error;
use sys::counter::batch_minimum_ns;

/// The function of the kernel that [`system_call_ns`] calls.
const FUNCTION: &str = "{syscall}getppid";

/// What a record costs, ns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cost {
    /// An event.
    pub event_ns: f64,
    /// The kernel's stack behind it, of a short system call: a deeper one costs more. `None` where
    /// the kernel does not record any.
    pub stack_ns: Option<f64>,
    /// The stack of user space behind it: every frame more costs more. `None` where the kernel does
    /// not record any.
    pub user_stack_ns: Option<f64>,
}

/// `None` where the kernel has no system-call tracepoint. Uses an instance at `path`, which it
/// removes.
pub fn cost(path: PathBuf, cpus: &Cpus) -> Result<Option<Cost>, Error> {
    let instance = Instance::create(path, cpus, 1024)?;
    let result = measure(&instance);
    instance.remove()?;
    result
}

fn measure(instance: &Instance) -> Result<Option<Cost>, Error> {
    const EVENT: &str = "raw_syscalls:sys_enter";
    let plain = system_call_ns();
    if instance.enable(EVENT, &[Filter::NONE])?.is_none() {
        return Ok(None);
    }
    instance.record(true)?;
    let traced = system_call_ns();
    // First, since the trigger stays.
    let with_users = if instance.user_stacks(true) {
        instance.clear()?;
        let cost = system_call_ns();
        // The option is there on processors, too, for which the kernel walks no such stacks.
        instance.has_user_stacks()?.then_some(cost)
    } else {
        None
    };
    instance.user_stacks(false);
    let stacked = instance.stack_behind(EVENT, "common_pid != 0").then(system_call_ns);
    instance.record(false)?;
    let more = |with: Option<f64>| with.map(|with| (with - traced).max(0.0));
    let (stack_ns, user_stack_ns) = (more(stacked), more(with_users));
    Ok(Some(Cost { event_ns: (traced - plain).max(0.0), stack_ns, user_stack_ns }))
}

/// What a call of a function costs more, ns, with a probe at its entry and one at its return that
/// are recorded: of a cheap system call, whose own path into the kernel stays as it is. `None`
/// where the kernel takes no such probes. Uses an instance of this name, which it removes.
pub fn pair_ns(session: &mut Session, tracefs: &Path, name: &str, cpus: &Cpus) -> Result<Option<f64>, Error> {
    probed_ns(session, tracefs, name, cpus, &off::pair(FUNCTION), &system_call_ns)
}

/// What a call costs more, ns, with these probes; `call` measures it.
pub(crate) fn probed_ns(
    session: &mut Session,
    tracefs: &Path,
    name: &str,
    cpus: &Cpus,
    specs: &[EventSpec],
    call: &dyn Fn() -> f64,
) -> Result<Option<f64>, Error> {
    let mut probes = Vec::new();
    for spec in specs {
        match session.change(kprobe_of(tracefs, spec), || kprobe::define(tracefs, spec, 0)) {
            Ok(((), ticket)) => probes.push(ticket),
            Err(_) => break,
        }
    }
    let path = Instance::path_of(tracefs, name);
    let mut cost = None;
    if probes.len() == specs.len() {
        let change = TraceInstance { path: path.clone() };
        let (measured, made) = session.change(change, || {
            let instance = Instance::create(path.clone(), cpus, 1024)?;
            let result = more_with(&instance, specs, call);
            instance.disable_events()?;
            instance.remove()?;
            result
        })?;
        session.take_back(made)?;
        cost = measured;
    }
    probes.into_iter().try_for_each(|probe| session.take_back(probe))?;
    Ok(cost)
}

fn more_with(instance: &Instance, specs: &[EventSpec], call: &dyn Fn() -> f64) -> Result<Option<f64>, Error> {
    let plain = call();
    for spec in specs {
        if instance.enable(&spec.name, &[Filter::NONE])?.is_none() {
            return Ok(None);
        }
    }
    instance.record(true)?;
    let probed = call();
    instance.record(false)?;
    Ok(Some((probed - plain).max(0.0)))
}

fn system_call_ns() -> f64 {
    batch_minimum_ns(|| {
        std::hint::black_box(rustix::process::getppid());
    })
}
