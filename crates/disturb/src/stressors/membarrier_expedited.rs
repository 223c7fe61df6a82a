//! `membarrier_expedited`: a positive control. A memory barrier for all registered processes, one
//! of which spins on each measured CPU.
//!
//! `MEMBARRIER_CMD_GLOBAL_EXPEDITED` interrupts every CPU that runs a registered process
//! (kernel/sched/membarrier.c), whoever calls it and whosever the process is: one function call an
//! operation to each measured CPU, by design. The process that spins registers itself; as the one
//! that calls would do, it is the same one here.

use crate::Error;
use crate::account::Account;
use crate::job::Job;
use crate::spec::StressorSpec;
use crate::spinners::with_spinners;
use crate::witness::{self, Counter};
use rustix::thread::{MembarrierCommand, membarrier, membarrier_query};

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "membarrier_expedited",
    title: "memory barriers that interrupt a registered process on each measured CPU",
    class: "broadcast",
    operation: "MEMBARRIER_CMD_GLOBAL_EXPEDITED",
    needs: "CONFIG_MEMBARRIER of 4.16 at least; a measured CPU",
    kernel_paths: &["membarrier_global_expedited", "smp_call_function_many", "ipi_mb"],
    witness: "function call interrupts of the measured CPUs: one in a hundred operations at least",
    danger: "takes the measured CPUs; bounded by one SCHED_OTHER thread each",
    default_rate: Some(500.0),
    colocated: true,
    peer: Some("--membarrier"),
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    if job.measured.is_empty() {
        return Err(Error::absent("no CPU is measured"));
    }
    if !membarrier_query().contains_command(MembarrierCommand::GlobalExpedited) {
        return Err(Error::absent("this kernel has no expedited memory barriers"));
    }
    membarrier(MembarrierCommand::RegisterGlobalExpedited)
        .map_err(Error::refused("register for expedited memory barriers"))?;
    let measured = job.measured.clone();
    with_spinners(&measured, || {
        let before = job
            .begin_counting(Counter::read("/proc/interrupts function calls of the measured CPUs", || {
                witness::interrupts(witness::FUNCTION_CALL, Some(&measured))
            })?)?;
        let done = job.repeat(|| Ok(membarrier(MembarrierCommand::GlobalExpedited)?));
        let witness = before.grown(done.tally.ok.div_ceil(100))?;
        Ok(done.account(job, witness))
    })
}
