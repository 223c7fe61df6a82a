//! `cpu_methods`: a CPU kept busy in many ways, one after another: integers, floating point,
//! branches, calls, sorting, hashing, search …
//!
//! What it takes from others is heat, frequency, shared execution units (SMT), and never a system
//! call: a control, like `calc_pi`, for a core that shares more than software can part. The
//! multicore deployments paper loads its CPUs so, "every CPU method in turn" (IEEE Access 2020,
//! §V). Each method, in `methods`, is checked against a result that anyone can look up or derive.

mod methods;

use crate::Error;
use crate::account::Account;
use crate::job::Job;
use crate::shared::Counters;
use crate::spec::StressorSpec;
use crate::witness::{self, Counter};
use crate::workers::repeat_in;
use methods::METHODS;
use model::Cpus;
use rustix::io::Errno;
use std::sync::atomic::Ordering;
use sys::sched;

/// No method is done in less, ns: each makes some thousands of operations at least.
const LEAST_COST_NS: u64 = 1_000;

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "cpu_methods",
    title: "a CPU kept busy in fifteen ways, one after another, one worker a CPU",
    class: "ctl",
    operation: "one method done, and its result right",
    needs: "a CPU",
    kernel_paths: &[],
    witness: "CPU time of the workers, us (1 us an operation at the very least), with the operations by method; every result known",
    danger: "the CPUs' time and heat; bounded by one worker a CPU at a weak nice value",
    peer: Some("--cpu"),
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    let cpus: Vec<u32> = job.cpus.iter().collect();
    let workers = job.workers.unwrap_or(cpus.len() as u32).max(1);
    let counts = Counters::new(METHODS.len())?;
    let before =
        job.begin_counting(Counter::read("CPU time of the workers, us", witness::children_cpu_us)?)?;
    let done = repeat_in(job, workers, |number| {
        let cpu = cpus.get(number as usize % cpus.len().max(1)).copied().unwrap_or_default();
        sched::pin(&Cpus::one(cpu)).map_err(Error::refused("run on one CPU"))?;
        let mut turns = METHODS.iter().zip(counts.all()).cycle();
        Ok(move || {
            let ((_, method), count) = turns.next().ok_or(Errno::NODATA)?;
            if !method() {
                return Err(Errno::BADMSG.into());
            }
            count.fetch_add(1, Ordering::Relaxed);
            Ok(())
        })
    })?;
    let mut witness = before.grown(done.tally.ok * LEAST_COST_NS / 1000)?;
    let by_method = METHODS.iter().zip(counts.all());
    let by_method = by_method.map(|((name, _), count)| format!("{name} {}", count.load(Ordering::Relaxed)));
    witness.name = format!("{}; by method: {}", witness.name, by_method.collect::<Vec<_>>().join(", "));
    let wrong = done.tally.failed.values().sum::<u64>();
    let mut account = done.account(job, witness);
    account.wrong =
        (wrong > 0).then(|| format!("{wrong} of {} results were wrong", account.tally.ok + wrong));
    Ok(account)
}
