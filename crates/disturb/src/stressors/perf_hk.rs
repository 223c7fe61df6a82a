//! `perf_hk`: counters of its own CPUs, opened and closed.
//!
//! It acts as a monitoring agent that is configured to leave the measured CPUs alone. Each open and
//! close is a call to the CPU in question (kernel/events/core.c: `cpu_function_call`), so it should
//! reach no other: any trace of it elsewhere is a finding.

use crate::Error;
use crate::account::Account;
use crate::counters::{Page, lacking, on_cpu};
use crate::job::Job;
use crate::spec::StressorSpec;
use model::stressor::Witness;
use std::io;

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "perf_hk",
    title: "perf counters of each of its own CPUs opened, read and closed",
    class: "poke",
    operation: "a counter of each CPU opened, a page fault, all read and closed",
    privilege: "root, CAP_PERFMON, or kernel.perf_event_paranoid of 0 at most",
    needs: "perf_event_open",
    kernel_paths: &["perf_event_open", "cpu_function_call", "perf_install_in_context", "event_function_call"],
    witness: "page faults that the counters have counted: one an operation",
    danger: "an interrupt on each of its CPUs for every open, read and close",
    default_rate: Some(50.0),
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    let page = Page::new()?;
    let cpus: Vec<u32> = job.cpus.iter().collect();
    cpus.iter().try_for_each(|cpu| on_cpu(*cpu).map(drop)).map_err(lacking)?;
    job.begin()?;
    let mut seen = 0;
    let done = job.repeat(|| {
        let mut counters = cpus.iter().map(|cpu| on_cpu(*cpu)).collect::<io::Result<Vec<_>>>()?;
        page.fault()?;
        for counter in &mut counters {
            seen += counter.read()?;
        }
        Ok(())
    });
    let witness = Witness { name: "page faults counted".to_owned(), expected: done.tally.ok, seen };
    Ok(done.account(job, witness))
}
