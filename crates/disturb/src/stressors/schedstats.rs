//! `schedstats`: a static key. Statistics of the scheduler are switched on and off.
//!
//! Each change patches kernel text (`text_poke`, kernel/sched/core.c: `sched_schedstats`), and
//! every CPU has to take part: on x86 three rounds of interrupts a change, on arm64 an instruction
//! cache maintenance that is broadcast and, for some patches, an interrupt each.

use crate::Error;
use crate::account::Account;
use crate::job::Job;
use crate::spec::StressorSpec;
use crate::witness::Counter;
use std::{fs, io};

const PATH: &str = "/proc/sys/kernel/sched_schedstats";

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "schedstats",
    title: "static keys: scheduler statistics switched on and off",
    class: "poke",
    operation: "one change, read back",
    privilege: "root",
    needs: "CONFIG_SCHEDSTATS",
    kernel_paths: &["static_key_enable", "text_poke_bp", "on_each_cpu(do_sync_core)"],
    witness: "function call interrupts of all CPUs: one a change at least where there are two CPUs; a CPU that polls in idle needs no interrupt, and counts where it leaves that state",
    cleanup: "the value before is given back",
    danger: "every scheduler event costs a little more while they are on",
    default_rate: Some(20.0),
    writes: &[PATH],
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    let first =
        fs::read_to_string(PATH).map_err(|_| Error::absent("this kernel has no scheduler statistics"))?;
    let before = job.begin_counting(Counter::call_interrupts()?)?;
    let mut on = first.trim() != "0";
    let done = job.repeat(|| {
        on = !on;
        fs::write(PATH, if on { "1" } else { "0" })?;
        let now = fs::read_to_string(PATH)?;
        if (now.trim() != "0") == on { Ok(()) } else { Err(io::ErrorKind::InvalidData.into()) }
    });
    let _ = fs::write(PATH, first.trim());
    let witness = before.grown(done.tally.ok)?;
    Ok(done.account(job, witness))
}
