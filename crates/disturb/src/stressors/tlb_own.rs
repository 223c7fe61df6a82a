//! `tlb_own`: TLB shootdowns among the process's own CPUs: a page is protected while threads spin
//! on the others.
//!
//! The counterpart of `tlb_span`. The flush goes to the CPUs that run the process
//! (arch/x86/mm/tlb.c, `mm_cpumask`), and those are all its own: a measured CPU that sees these
//! flushes runs something it should not. arm64 broadcasts the flush in hardware.

use super::tlb_span::Page;
use crate::Error;
use crate::account::Account;
use crate::job::Job;
use crate::spec::StressorSpec;
use crate::spinners::{with_spinners, worker_and_others};
use crate::witness::{self, Counter};
use sys::sched;

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "tlb_own",
    title: "TLB shootdowns that stay at home: pages protected, threads on its own CPUs only",
    class: "mm",
    operation: "a page written and then protected",
    needs: "two CPUs of its own; an architecture that flushes by interrupts (x86)",
    kernel_paths: &["mprotect", "flush_tlb_mm_range", "smp_call_function_many_cond", "flush_tlb_func"],
    witness: "TLB shootdowns of its own CPUs: one in a hundred operations at least",
    danger: "takes its own CPUs; bounded by one thread each at a weak nice value, 9 at most",
    default_rate: Some(1000.0),
    peer: Some("--tlb-shootdown"),
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    if cfg!(not(target_arch = "x86_64")) {
        return Err(Error::absent("TLB flushes of this architecture interrupt nobody"));
    }
    let (own, others) =
        worker_and_others(&job.cpus).ok_or_else(|| Error::absent("it has one CPU, and no other to flush"))?;
    sched::pin(&own).map_err(Error::refused("run on one CPU"))?;
    let page = Page::new().map_err(Error::refused("map a page"))?;
    with_spinners(&others, || {
        let before = job
            .begin_counting(Counter::read("/proc/interrupts TLB shootdowns of its own CPUs", || {
                witness::interrupts("TLB shootdowns", Some(&others))
            })?)?;
        let done = job.repeat(|| page.flush());
        let witness = before.grown(done.tally.ok.div_ceil(100))?;
        Ok(done.account(job, witness))
    })
}
