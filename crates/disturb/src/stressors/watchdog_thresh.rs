//! `watchdog_thresh`: the threshold of the lockup detectors changed.
//!
//! Each change stops and starts the detector on every CPU (kernel/watchdog.c:
//! `lockup_detector_reconfigure`): a work item on each, and on kernels before 4.19 a thread. The
//! item waits for the detector of the CPU that it finds itself on (`softlockup_stop_fn`). On 5.10
//! the end of a cpuset partition lets the kernel's bound workers run anywhere; then it waits on
//! another CPU, for ever, and so does whoever writes or reads the threshold (seen in guests: the
//! writer in `smp_call_on_cpu`, `kworker/1:0` in `softlockup_stop_fn` on CPU 0). Where workers are
//! astray nothing is written. Dangerous all the same: without its work item the writer cannot be
//! killed.

use crate::Error;
use crate::account::Account;
use crate::job::Job;
use crate::spec::StressorSpec;
use crate::witness::own_waits;
use model::Cpus;
use model::stressor::Witness;
use std::collections::BTreeMap;
use std::{fs, io};
use sys::clock::{now_ns, sleep_until};
use sys::sched;

const PATH: &str = "/proc/sys/kernel/watchdog_thresh";
const ONLINE: &str = "/sys/devices/system/cpu/online";
const SECOND_LOOK_NS: i64 = 50_000_000;

pub(crate) const SPEC: StressorSpec = StressorSpec {
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
    danger: "a writer that waits for ever, unkillable, where bound workers are not on their CPUs; looked at before",
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
    if let Some(name) = astray() {
        return Err(Error::absent(format!(
            "{name} may run on other CPUs than its own, as after a cpuset partition on old kernels: the change would wait for ever"
        )));
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

/// A bound worker of the kernel that may run elsewhere. One that has just been made is bound a
/// moment later: so it is looked at twice.
fn astray() -> Option<String> {
    let first = unbound_workers();
    sleep_until(now_ns() + SECOND_LOOK_NS);
    let second = if first.is_empty() { BTreeMap::new() } else { unbound_workers() };
    first.into_iter().find(|(pid, _)| second.contains_key(pid)).map(|(_, name)| name)
}

/// Workers, by process id, that are named after a CPU which is online and may run on others.
fn unbound_workers() -> BTreeMap<i32, String> {
    let online: Cpus = fs::read_to_string(ONLINE).unwrap_or_default().trim().parse().unwrap_or_default();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let worker = |entry: fs::DirEntry| {
        let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
        let name = fs::read_to_string(entry.path().join("comm")).ok()?.trim().to_owned();
        let cpu = cpu_of(&name).filter(|cpu| online.contains(*cpu))?;
        (sched::affinity_of(pid).ok()? != Cpus::one(cpu)).then_some((pid, name))
    };
    processes.filter_map(worker).collect()
}

/// The CPU that a worker is bound to: `kworker/1:0H-events` to 1, `kworker/u8:3` to none.
fn cpu_of(name: &str) -> Option<u32> {
    name.strip_prefix("kworker/")?.split_once(':')?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bound_workers_are_recognised_by_their_names() {
        assert_eq!((cpu_of("kworker/1:0H-events_highpri"), cpu_of("kworker/12:3")), (Some(1), Some(12)));
        assert_eq!(
            (cpu_of("kworker/u8:3-flush"), cpu_of("kworker/R-rcu_g"), cpu_of("bash")),
            (None, None, None)
        );
    }
}
