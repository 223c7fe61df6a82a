//! `affinity_flip`: a process changes its own affinity, from one of its CPUs to the next.
//!
//! A running thread cannot move itself: the stopper thread of its CPU does it (kernel/sched/core.c:
//! `__set_cpus_allowed_ptr`, `migration_cpu_stop`), at the highest priority there is. Only CPUs
//! that the disturbance has anyway are used.

use crate::Error;
use crate::account::Account;
use crate::job::Job;
use crate::kernel_counts::children_switches;
use crate::spec::StressorSpec;
use crate::workers::repeat_in;
use model::Cpus;
use rustix::io::Errno;
use sys::sched;

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "affinity_flip",
    title: "migrations: a process that moves itself from one of its CPUs to the next",
    class: "sched",
    operation: "the affinity set to another CPU, and the process found there",
    needs: "two CPUs of its own",
    kernel_paths: &["sched_setaffinity", "affine_move_task", "migration_cpu_stop", "stopper threads"],
    witness: "context switches of the workers (getrusage): one a move at the least",
    danger: "stopper threads of its CPUs; bounded by its workers, one by default, and the rate",
    default_rate: Some(500.0),
    peer: Some("--affinity"),
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    let cpus: Vec<u32> = job.cpus.iter().collect();
    if cpus.len() < 2 {
        return Err(Error::absent("it has one CPU, and nowhere to move"));
    }
    let before = job.begin_counting(children_switches()?)?;
    let workers = job.workers.unwrap_or(1).max(1);
    let done = repeat_in(job, workers, |number| {
        // Already on the CPU before its first one, so that the first operation moves it too.
        let at = number as usize % cpus.len();
        sched::pin(&Cpus::one(cpus[at])).map_err(Error::refused("run on one CPU"))?;
        let mut next = cpus.iter().copied().cycle().skip(at + 1);
        Ok(move || {
            let cpu = next.next().unwrap_or_default();
            sched::pin(&Cpus::one(cpu))?;
            if sched::current_cpu() == cpu { Ok(()) } else { Err(Errno::AGAIN.into()) }
        })
    })?;
    let witness = before.grown(done.tally.ok)?;
    Ok(done.account(job, witness))
}
