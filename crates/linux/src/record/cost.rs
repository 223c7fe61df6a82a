//! What one recorded event costs, measured on this machine: a cheap system call with its tracepoint on and off.
//!
//! The difference holds the recording of one event plus the slower path into the kernel that system-call tracing takes, so it is an
//! upper bound. The minimum of many batches is taken, since a batch that something interrupts says nothing about the event.

use super::instance::Instance;
use crate::error::Error;
use crate::sys::counter::batch_minimum_ns;
use model::Cpus;
use std::path::PathBuf;

/// ns per recorded event; `None` where the kernel has no system-call tracepoint. Uses an instance at `path`, which it removes.
pub fn event_ns(path: PathBuf, cpus: &Cpus) -> Result<Option<f64>, Error> {
    let instance = Instance::create(path, cpus, 1024)?;
    let result = measure(&instance);
    instance.remove()?;
    result
}

fn measure(instance: &Instance) -> Result<Option<f64>, Error> {
    let plain = system_call_ns();
    if !instance.enable("raw_syscalls:sys_enter", &[None])? {
        return Ok(None);
    }
    instance.record(true)?;
    let traced = system_call_ns();
    instance.record(false)?;
    Ok(Some((traced - plain).max(0.0)))
}

fn system_call_ns() -> f64 {
    batch_minimum_ns(|| {
        std::hint::black_box(rustix::process::getppid());
    })
}
