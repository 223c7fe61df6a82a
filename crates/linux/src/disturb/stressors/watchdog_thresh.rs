//! `watchdog_thresh`: the threshold of the lockup detectors changed.
//!
//! Each change stops and starts the detector on every CPU (kernel/watchdog.c: `lockup_detector_reconfigure`): a work item on each, and on
//! kernels before 4.19 a thread. Both 5.10 kernels of our measurements deadlocked in it, unkillable, hence dangerous.

use crate::disturb::Error;
use crate::disturb::catalogue::StressorSpec;
use crate::disturb::child::Account;
use crate::disturb::job::Job;
use crate::disturb::witness::own_waits;
use model::stressor::Witness;
use std::fs;
use std::io;

const PATH: &str = "/proc/sys/kernel/watchdog_thresh";

pub(in crate::disturb) const SPEC: StressorSpec = StressorSpec {
    name: "watchdog_thresh",
    title: "the lockup detectors' threshold changed: a work item on every CPU",
    class: "machine",
    operation: "one change by a second, up or down, read back",
    privilege: "root",
    needs: "CONFIG_SOFTLOCKUP_DETECTOR or CONFIG_HARDLOCKUP_DETECTOR",
    kernel_paths: &[
        "lockup_detector_reconfigure",
        "smp_call_on_cpu",
        "hrtimer_start",
        "perf_event_create_kernel_counter",
    ],
    witness: "how often the writer has waited for others meanwhile (getrusage, voluntary switches): one an operation",
    cleanup: "the value before is given back",
    danger: "kernels (5.10) that deadlock in it, unkillable",
    default_rate: Some(2.0),
    writes: &[PATH],
    dangerous: true,
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    let first = fs::read_to_string(PATH).map_err(|_| Error::absent("this kernel has no lockup detector"))?;
    let value: u32 = first.trim().parse().map_err(|_| Error::absent("the threshold is no number"))?;
    if value == 0 {
        return Err(Error::absent("the lockup detectors are switched off"));
    }
    job.begin()?;
    let (mut up, mut seen) = (false, 0);
    let done = job.repeat(|| {
        up = !up;
        let wanted = (value + u32::from(up)).to_string();
        let before = own_waits()?;
        fs::write(PATH, &wanted)?;
        seen += own_waits()? - before;
        if fs::read_to_string(PATH)?.trim() == wanted {
            Ok(())
        } else {
            Err(io::ErrorKind::InvalidData.into())
        }
    });
    let _ = fs::write(PATH, first.trim());
    let witness = Witness { name: "waits of the writer".to_owned(), expected: done.tally.ok, seen };
    Ok(done.account(job, witness))
}
