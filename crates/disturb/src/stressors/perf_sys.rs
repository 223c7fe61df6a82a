//! `perf_sys`: a counter of every CPU, the measured ones included, opened and closed:
//! `perf stat -a`, and a positive control.
//!
//! A counter of a CPU is switched on and off by a call to that CPU (kernel/events/core.c:
//! `perf_install_in_context`, `perf_remove_from_context`): two interrupts for each CPU and
//! operation, on every kernel and whatever the load. The counters of other CPUs are not read,
//! because that would be a third. The first and the last counter of page faults flip a static key
//! as well (`perf_swevent_enabled`): on x86 three broadcasts each, six an operation.

use crate::Error;
use crate::account::Account;
use crate::counters::{lacking, on_cpu};
use crate::job::Job;
use crate::spec::StressorSpec;
use crate::witness::{self, Counter};
use model::Cpus;
use std::{fs, io};

const ONLINE: &str = "/sys/devices/system/cpu/online";

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "perf_sys",
    title: "a positive control: perf counters of all CPUs, measured ones too, opened and closed",
    class: "broadcast",
    operation: "a counter of each CPU opened, then all closed: two interrupts a CPU",
    privilege: "root, CAP_PERFMON, or kernel.perf_event_paranoid of 0 at most",
    needs: "perf_event_open; a CPU that is not its own",
    kernel_paths: &[
        "perf_event_open",
        "smp_call_function_single",
        "perf_install_in_context",
        "perf_remove_from_context",
    ],
    witness: "function call interrupts of the CPUs that are not its own: one in a hundred operations (idle ones may poll)",
    danger: "two interrupts on every CPU for each operation; bounded by the rate",
    default_rate: Some(50.0),
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    let online = online()?;
    let others = online.minus(&job.cpus);
    if others.is_empty() {
        return Err(Error::absent("there is no CPU that is not its own"));
    }
    online.iter().try_for_each(|cpu| on_cpu(cpu).map(drop)).map_err(lacking)?;
    let before = job.begin_counting(Counter::read(
        format!("/proc/interrupts {} of CPU {others}", witness::FUNCTION_CALL),
        || witness::interrupts(witness::FUNCTION_CALL, Some(&others)),
    )?)?;
    let done = job.repeat(|| online.iter().map(on_cpu).collect::<io::Result<Vec<_>>>().map(drop));
    let witness = before.grown((done.tally.ok / 100).max(1))?;
    Ok(done.account(job, witness))
}

fn online() -> Result<Cpus, Error> {
    let text = fs::read_to_string(ONLINE).map_err(Error::refused("read which CPUs are online"))?;
    text.trim().parse().map_err(|_| {
        Error::refused("read which CPUs are online")(io::Error::from(io::ErrorKind::InvalidData))
    })
}
