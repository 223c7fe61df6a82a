//! `cpu_hotplug`: one of its own CPUs taken off line and back.
//!
//! The last step of taking a CPU away stops all others (kernel/cpu.c: `takedown_cpu`,
//! `stop_machine_cpuslocked`), and every subsystem with per-CPU state is notified
//! (Documentation/core-api/cpu_hotplug.rst). Tasks and interrupts bound to that CPU go elsewhere
//! and do not come back by themselves, and version 1 cpusets lose it, hence dangerous.

use crate::Error;
use crate::account::Account;
use crate::job::Job;
use crate::leaving::{Leaving, Mark};
use crate::spec::StressorSpec;
use crate::witness::{Counter, stopper_runs};
use std::path::Path;
use std::{fs, io};

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "cpu_hotplug",
    title: "one of its own CPUs taken off line and back, all others stopped meanwhile",
    class: "machine",
    operation: "a CPU off and on, both read back",
    privilege: "root",
    needs: "CONFIG_HOTPLUG_CPU; two CPUs of its own, one of which can be taken away",
    kernel_paths: &[
        "cpu_down",
        "stop_machine_cpuslocked",
        "cpuhp_invoke_callback",
        "rebuild_sched_domains",
        "cpu_up",
    ],
    witness: "switches of the kernel's stopper threads: one an operation",
    cleanup: "the CPU is on line, as before; affinities that the kernel has changed are given back",
    danger: "what was bound to the CPU moves: interrupts, kernel threads, cpusets of version 1",
    default_rate: Some(0.5),
    leaves: |mark| {
        online(mark).into_iter().flat_map(|online| [Leaving::Affinities(mark.cpus.clone()), online]).collect()
    },
    dangerous: true,
    work,
    ..StressorSpec::PLAIN
};

/// The highest of its CPUs that can be taken away, if another is left.
fn online(mark: &Mark<'_>) -> Option<Leaving> {
    let file = |cpu: u32| format!("/sys/devices/system/cpu/cpu{cpu}/online");
    let removable = mark.cpus.iter().skip(1).map(file).filter(|file| Path::new(file).exists());
    removable.last().map(|file| Leaving::Value(file.into()))
}

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    let Some(file) = job.leaves.last().cloned() else {
        return Err(Error::absent("none of its CPUs can be taken away with another left"));
    };
    let before = job.begin_counting(Counter::read("switches of the stopper threads", stopper_runs)?)?;
    let done = job.repeat(|| {
        let off = set(&file, "0");
        // Whatever happened: an offline CPU is not to be left.
        let on = set(&file, "1");
        off.and(on)
    });
    let witness = before.grown(done.tally.ok)?;
    Ok(done.account(job, witness))
}

fn set(file: &str, value: &str) -> io::Result<()> {
    fs::write(file, value)?;
    if fs::read_to_string(file)?.trim() == value { Ok(()) } else { Err(io::ErrorKind::InvalidData.into()) }
}
