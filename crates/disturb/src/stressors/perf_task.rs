//! `perf_task`: a counter of one's own task, opened and closed.
//!
//! The first task counter of a machine switches on the scheduler's hook for all
//! (kernel/events/core.c: `perf_sched_events`, a static key), which patches kernel text and
//! interrupts every CPU; the last one switches it off again a second later (`perf_sched_delayed`).

use crate::Error;
use crate::account::Account;
use crate::counters::{Page, lacking, of_this_task};
use crate::job::Job;
use crate::spec::StressorSpec;
use model::stressor::Witness;

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "perf_task",
    title: "a perf counter of its own task, with heirs, opened, read and closed",
    class: "poke",
    operation: "a counter opened, a page fault, the counter read and closed",
    needs: "perf_event_open; kernel.perf_event_paranoid of 2 at most for ordinary users",
    kernel_paths: &["perf_event_open", "perf_install_in_context", "static_key_enable(perf_sched_events)"],
    witness: "page faults that the counters have counted: one an operation",
    danger: "the scheduler's switches cost more while a counter is open",
    default_rate: Some(200.0),
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    let page = Page::new()?;
    drop(of_this_task(true).map_err(lacking)?);
    job.begin()?;
    let mut seen = 0;
    let done = job.repeat(|| {
        let mut counter = of_this_task(true)?;
        page.fault()?;
        seen += counter.read()?;
        Ok(())
    });
    let witness = Witness { name: "page faults counted".to_owned(), expected: done.tally.ok, seen };
    Ok(done.account(job, witness))
}
