//! `userfaultfd`: page faults that another thread of the program resolves, as live migration of
//! virtual machines and collectors of garbage do.
//!
//! A page that is not there is touched. The kernel puts the thread to sleep, writes a message that
//! the other thread reads (fs/userfaultfd.c: `handle_userfault`, `userfaultfd_read`); that one
//! provides the page and wakes the first (`UFFDIO_COPY`), and the page is thrown away again. So
//! each operation is two wake-ups from CPU to CPU, and a TLB flush on the CPUs that run the two
//! threads.

use crate::Error;
use crate::account::Account;
use crate::job::Job;
use crate::spec::StressorSpec;
use crate::uffd::{Faults, Handler};
use model::stressor::Witness;

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "userfaultfd",
    title: "page faults resolved by another thread of the program",
    class: "mm",
    operation: "a missing page touched, provided by the other thread, checked and thrown away",
    needs: "CONFIG_USERFAULTFD; Linux 5.11 or vm.unprivileged_userfaultfd of 1 without privilege",
    kernel_paths: &[
        "handle_userfault",
        "userfaultfd_read",
        "mfill_atomic_copy",
        "try_to_wake_up",
        "reschedule IPI",
        "zap_page_range",
        "flush_tlb_mm_range",
    ],
    witness: "messages of faults that the kernel has written: one an operation",
    cleanup: "none: memory and descriptor go with the process",
    danger: "a thread that is never woken; the end of its descriptor wakes it, and the alarm ends it",
    default_rate: Some(1000.0),
    peer: Some("--userfaultfd"),
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    let (faults, resolver) = Faults::prepare()?;
    let handler = Handler::start(resolver).map_err(Error::refused("start a thread"))?;
    job.begin()?;
    let mut number = 0;
    let done = job.repeat(|| {
        number += 1;
        faults.touch(number)
    });
    let seen = handler.end();
    let name = "fault messages read from the userfaultfd".to_owned();
    let witness = Witness { name, expected: done.tally.ok, seen };
    Ok(done.account(job, witness))
}
