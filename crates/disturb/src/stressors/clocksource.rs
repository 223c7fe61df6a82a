//! `clocksource`: the kernel's clock source changed and changed back.
//!
//! The change is made with all CPUs stopped (kernel/time/clocksource.c: `timekeeping_notify`,
//! `stop_machine`). While a slow source is in use every clock read of the machine is slow, and time
//! may shift a little at each change.

use crate::Error;
use crate::account::Account;
use crate::job::Job;
use crate::spec::StressorSpec;
use crate::witness::{Counter, stopper_runs};
use std::path::Path;
use std::{fs, io};

const DIR: &str = "/sys/devices/system/clocksource/clocksource0";
const CURRENT: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "clocksource",
    title: "the kernel's clock source changed and changed back, all CPUs stopped each time",
    class: "machine",
    operation: "a change and its return, both read back",
    privilege: "root",
    needs: "two clock sources",
    kernel_paths: &["timekeeping_notify", "stop_machine", "multi_cpu_stop"],
    witness: "switches of the kernel's stopper threads: two an operation",
    cleanup: "the source before is given back",
    danger: "clock reads are slow meanwhile, and time may shift",
    default_rate: Some(1.0),
    writes: &[CURRENT],
    dangerous: true,
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    let read = |name: &str| fs::read_to_string(Path::new(DIR).join(name)).unwrap_or_default();
    let first = read("current_clocksource").trim().to_owned();
    let all = read("available_clocksource");
    let Some(other) = all.split_whitespace().find(|name| *name != first) else {
        return Err(Error::absent("there is only one clock source"));
    };
    let before = job.begin_counting(Counter::read("switches of the stopper threads", stopper_runs)?)?;
    let done = job.repeat(|| change(other).and_then(|()| change(&first)));
    let _ = change(&first);
    let witness = before.grown(2 * done.tally.ok)?;
    Ok(done.account(job, witness))
}

fn change(to: &str) -> io::Result<()> {
    fs::write(CURRENT, to)?;
    // The kernel takes any name and keeps its own where that is none of its sources, or not good
    // enough.
    if fs::read_to_string(CURRENT)?.trim() == to { Ok(()) } else { Err(io::ErrorKind::InvalidData.into()) }
}
