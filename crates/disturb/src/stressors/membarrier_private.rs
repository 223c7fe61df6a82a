//! `membarrier_private`: a memory barrier for the threads of one process, all on its own CPUs.
//!
//! The counterpart of `membarrier_expedited`: `MEMBARRIER_CMD_PRIVATE_EXPEDITED` interrupts the
//! CPUs that run this process and no other (kernel/sched/membarrier.c). Language runtimes and
//! user-space RCU call it often; a measured CPU must not notice.

use crate::Error;
use crate::account::Account;
use crate::job::Job;
use crate::spec::StressorSpec;
use crate::spinners::{with_spinners, worker_and_others};
use crate::witness::{self, Counter};
use rustix::thread::{MembarrierCommand, membarrier, membarrier_query};
use sys::sched;

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "membarrier_private",
    title: "memory barriers for the threads of one process, on its own CPUs only",
    class: "broadcast",
    operation: "MEMBARRIER_CMD_PRIVATE_EXPEDITED",
    needs: "CONFIG_MEMBARRIER of 4.14 at least; two CPUs of its own",
    kernel_paths: &["membarrier_private_expedited", "smp_call_function_many", "ipi_mb"],
    witness: "function call interrupts of its own CPUs: one in a hundred operations at least",
    danger: "takes its own CPUs; bounded by one thread each at a weak nice value, 9 at most",
    default_rate: Some(2000.0),
    peer: Some("--membarrier"),
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    let (own, others) = worker_and_others(&job.cpus)
        .ok_or_else(|| Error::absent("it has one CPU, and no other to interrupt"))?;
    if !membarrier_query().contains_command(MembarrierCommand::PrivateExpedited) {
        return Err(Error::absent("this kernel has no private expedited memory barriers"));
    }
    membarrier(MembarrierCommand::RegisterPrivateExpedited)
        .map_err(Error::refused("register for private memory barriers"))?;
    sched::pin(&own).map_err(Error::refused("run on one CPU"))?;
    with_spinners(&others, || {
        let before = job
            .begin_counting(Counter::read("/proc/interrupts function calls of its own CPUs", || {
                witness::interrupts(witness::FUNCTION_CALL, Some(&others))
            })?)?;
        let done = job.repeat(|| Ok(membarrier(MembarrierCommand::PrivateExpedited)?));
        let witness = before.grown(done.tally.ok.div_ceil(100))?;
        Ok(done.account(job, witness))
    })
}
