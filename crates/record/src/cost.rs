//! What one recorded event, and one recorded stack, costs, measured on this machine: a cheap system
//! call with its tracepoint on and off, and with stacks behind it.
//!
//! The difference holds the recording of one event plus the slower path into the kernel that
//! system-call tracing takes, so it is an upper bound. The minimum of many batches is taken, since
//! a batch that something interrupts says nothing about the event.

use super::filter::Filter;
use super::instance::Instance;
use model::Cpus;
use std::path::PathBuf;
use sys::Error;
use sys::counter::batch_minimum_ns;

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
    let with_users = instance.user_stacks(true).then(system_call_ns);
    instance.user_stacks(false);
    let stacked = instance.stack_behind(EVENT, "common_pid != 0").then(system_call_ns);
    instance.record(false)?;
    let more = |with: Option<f64>| with.map(|with| (with - traced).max(0.0));
    let (stack_ns, user_stack_ns) = (more(stacked), more(with_users));
    Ok(Some(Cost { event_ns: (traced - plain).max(0.0), stack_ns, user_stack_ns }))
}

fn system_call_ns() -> f64 {
    batch_minimum_ns(|| {
        std::hint::black_box(rustix::process::getppid());
    })
}
