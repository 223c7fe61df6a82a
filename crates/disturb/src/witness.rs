//! Kernel counters that grow with a stressor's work whatever its own loop believes.
//!
//! Some are shared with the whole machine (`/proc/stat`), and several stressors run at once: growth
//! is then a lower bound, and "seen ≥ expected" can only refute a stressor, never flatter it.
//! Formats: Linux `Documentation/filesystems/proc.rst` (`/proc/stat`, `/proc/net/snmp`).

use super::Error;
use machine::{CpuCounts, cpu_table};
use model::Cpus;
use model::stressor::Witness;
use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// A counter of the kernel that can be read here. It counts from
/// [`Job::begin_counting`](super::job::Job::begin_counting) on: what making the stressor has added,
/// and what others have while it was held, witnesses nothing.
pub(super) struct Counter<F> {
    name: String,
    read: F,
}

impl<F: Fn() -> Result<u64, Error>> Counter<F> {
    /// Makes sure that it can be read, while there is still time to be absent.
    pub(super) fn read(name: impl Into<String>, read: F) -> Result<Self, Error> {
        read()?;
        Ok(Self { name: name.into(), read })
    }

    /// Counts from now on. Before the beginning this is right only for what nobody else counts up,
    /// and what cannot be read without an operation of the stressor's own.
    pub(super) fn start(self) -> Result<Growth<F>, Error> {
        Ok(Growth { before: (self.read)()?, counter: self })
    }
}

/// A counter, and how it stood when it began to count.
pub(super) struct Growth<F> {
    counter: Counter<F>,
    before: u64,
}

impl<F: Fn() -> Result<u64, Error>> Growth<F> {
    /// Reads it again: it must have grown by `expected` at least.
    pub(super) fn grown(&self, expected: u64) -> Result<Witness, Error> {
        let seen = (self.counter.read)()?.saturating_sub(self.before);
        Ok(Witness { name: self.counter.name.clone(), expected, seen })
    }
}

/// A directory a CPU.
const CPUS: &str = "/sys/devices/system/cpu";

/// What `/proc/interrupts` calls cross-CPU calls, on x86 and arm64 alike.
pub(super) const FUNCTION_CALL: &str = "Function call interrupts";

/// The least growth of function call interrupts by so many patches of kernel text: one each on x86,
/// where there is another CPU to interrupt. Other architectures broadcast in hardware.
pub(super) fn patch_interrupts(patches: u64) -> u64 {
    let alone = std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() == 1)
        && !Path::new("/sys/devices/system/cpu/cpu1").exists();
    if cfg!(target_arch = "x86_64") && !alone { patches } else { 0 }
}

/// A function that reads a counter.
pub(super) type Read = fn() -> Result<u64, Error>;

impl Counter<Read> {
    /// Processes and threads made, machine-wide.
    pub(super) fn forks() -> Result<Self, Error> {
        Self::read("/proc/stat processes", || forks(proc_dir()))
    }

    /// Function calls by interrupt and by polling, machine-wide ([`function_calls`]).
    pub(super) fn call_interrupts() -> Result<Self, Error> {
        Self::read(calls_of(""), || function_calls(None))
    }
}

/// Reads a counter with `find`; a file that lacks it is an error, because a witness that says
/// nothing must not look like a no.
fn counter(path: &Path, find: impl Fn(&str) -> Option<u64>) -> Result<u64, Error> {
    let text = fs::read_to_string(path).map_err(|error| Error::io("read", path, error))?;
    let absent = || Error::io("find the witness counter in", path, ErrorKind::InvalidData.into());
    find(&text).ok_or_else(absent)
}

/// Processes and threads made since boot: `processes` of `/proc/stat` counts both.
pub(super) fn forks(proc_dir: &Path) -> Result<u64, Error> {
    counter(&proc_dir.join("stat"), |text| stat_field(text, "processes"))
}

/// TCP connections accepted in this network namespace: `PassiveOpens`.
pub(super) fn passive_opens(proc_dir: &Path) -> Result<u64, Error> {
    counter(&proc_dir.join("self/net/snmp"), |text| snmp_field(text, "Tcp", "PassiveOpens"))
}

/// Timer interrupts since boot, with the name of the row; all interrupts where no row is known to
/// be the timer's.
pub(super) fn timer_interrupts(proc_dir: &Path) -> Result<(&'static str, u64), Error> {
    if let Ok(sum) = counter(&proc_dir.join("interrupts"), timer_rows) {
        return Ok(("/proc/interrupts timer rows", sum));
    }
    let all = counter(&proc_dir.join("stat"), |text| stat_field(text, "intr"))?;
    Ok(("/proc/stat intr", all))
}

/// Interrupts since boot of the rows with this description, on these CPUs or on all.
pub(super) fn interrupts(description: &str, cpus: Option<&Cpus>) -> Result<u64, Error> {
    counter(&proc_dir().join("interrupts"), |text| described_rows(text, description, cpus))
}

/// What [`function_calls`] is called, of the CPUs that are named.
pub(super) fn calls_of(whose: &str) -> String {
    format!("/proc/interrupts {FUNCTION_CALL}{whose}, and entries of idle POLL")
}

/// Function call interrupts of these CPUs or of all, and how often these have polled in idle: a
/// cross-CPU call reaches a CPU that polls without an interrupt, and ends that (Linux kernel/smp.c,
/// `send_call_function_single_ipi`; kernel/sched/core.c, `set_nr_if_polling`). CPUs poll for other
/// reasons, too: as every witness, this can only refute.
pub(super) fn function_calls(cpus: Option<&Cpus>) -> Result<u64, Error> {
    Ok(interrupts(FUNCTION_CALL, cpus)?.saturating_add(polls(Path::new(CPUS), cpus)))
}

/// How often CPUs have entered the idle state in which they poll; 0 where none has a counted one
/// (`Documentation/admin-guide/pm/cpuidle.rst`, `POLL`).
fn polls(sysfs: &Path, cpus: Option<&Cpus>) -> u64 {
    let of_entry = |entry: fs::DirEntry| {
        let cpu = entry.file_name().to_str()?.strip_prefix("cpu")?.parse::<u32>().ok()?;
        let state = entry.path().join("cpuidle/state0");
        let is_one = cpus.is_none_or(|cpus| cpus.contains(cpu))
            && fs::read_to_string(state.join("name")).is_ok_and(|name| name.trim() == "POLL");
        let usage = is_one.then(|| fs::read_to_string(state.join("usage")).ok())??;
        usage.trim().parse::<u64>().ok()
    };
    fs::read_dir(sysfs).into_iter().flatten().flatten().filter_map(of_entry).sum()
}

/// Interrupts since boot of the lines with these numbers, on these CPUs or on all.
pub(super) fn rows_of(lines: &BTreeSet<u32>, cpus: Option<&Cpus>) -> Result<u64, Error> {
    let ours = |row: &CpuCounts| row.name.parse().is_ok_and(|line| lines.contains(&line));
    counter(&proc_dir().join("interrupts"), |text| rows(text, ours, cpus).or(Some(0)))
}

/// Events that the kernel has sent to user space: a device comes, goes, or changes its state
/// (`Documentation/ABI/testing/sysfs-uevent`).
pub(super) fn uevents() -> Result<u64, Error> {
    counter(Path::new("/sys/kernel/uevent_seqnum"), |text| text.trim().parse().ok())
}

/// How often the calling thread has given up its CPU to wait for something.
pub(super) fn own_waits() -> std::io::Result<u64> {
    // SAFETY: an all-zero rusage is a valid one, and getrusage fills it.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        match libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) {
            0 => Ok(usage.ru_nvcsw as u64),
            _ => Err(std::io::Error::last_os_error()),
        }
    }
}

/// Switches of the kernel's stopper threads (`migration/N`), which run whenever CPUs are stopped,
/// and to move tasks.
pub(super) fn stopper_runs() -> Result<u64, Error> {
    let processes = fs::read_dir(proc_dir()).map_err(|error| Error::io("read", proc_dir(), error))?;
    let runs = |dir: &Path| {
        let name = fs::read_to_string(dir.join("comm")).ok()?;
        let status =
            name.starts_with("migration/").then(|| fs::read_to_string(dir.join("status")).ok())??;
        Some(switches(&status))
    };
    let all: Vec<u64> = processes.flatten().filter_map(|entry| runs(&entry.path())).collect();
    if all.is_empty() { Err(Error::absent("no stopper thread is to be seen")) } else { Ok(all.iter().sum()) }
}

/// Switches of either kind, from `/proc/PID/status`.
fn switches(status: &str) -> u64 {
    let lines = status.lines().filter_map(|line| line.split_once("_ctxt_switches:"));
    lines.filter_map(|(_, count)| count.trim().parse::<u64>().ok()).sum()
}

/// CPU time of the children that have been waited for, us.
pub(super) fn children_cpu_us() -> Result<u64, Error> {
    // SAFETY: an all-zero rusage is a valid one, and getrusage fills it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        match libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage) {
            0 => usage,
            _ => return Err(Error::refused("read the resource usage")(std::io::Error::last_os_error())),
        }
    };
    let us = |time: libc::timeval| time.tv_sec as u64 * 1_000_000 + time.tv_usec as u64;
    Ok(us(usage.ru_utime) + us(usage.ru_stime))
}

fn stat_field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
    line.split_whitespace().next()?.parse().ok()
}

/// `/proc/net/snmp` has, for each protocol, a line of names and a line of values.
fn snmp_field(text: &str, protocol: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(protocol)?.strip_prefix(": "));
    let (names, values) = (lines.next()?, lines.next()?);
    let index = names.split_whitespace().position(|word| word == name)?;
    values.split_whitespace().nth(index)?.parse().ok()
}

/// Sums the per-CPU columns of the rows of local timers: `LOC` (x86), `HVS` (Hyper-V), `arch_timer`
/// (arm64), `riscv-timer`.
fn timer_rows(text: &str) -> Option<u64> {
    let is_timer = |row: &CpuCounts| {
        matches!(row.name.as_str(), "LOC" | "HVS")
            || row.text.split_whitespace().any(|word| matches!(word, "arch_timer" | "riscv-timer"))
    };
    rows(text, is_timer, None)
}

/// Sums the columns of some CPUs over the rows that are described so.
fn described_rows(text: &str, description: &str, cpus: Option<&Cpus>) -> Option<u64> {
    rows(text, |row| row.text.ends_with(description), cpus)
}

/// Sums the columns of some CPUs over the rows wanted. None where there is no such row.
fn rows(text: &str, wanted: impl Fn(&CpuCounts) -> bool, cpus: Option<&Cpus>) -> Option<u64> {
    let counted = |cpu: u32| cpus.is_none_or(|cpus| cpus.contains(cpu));
    let sum = |row: CpuCounts| {
        row.counts.iter().filter(|(cpu, _)| counted(**cpu)).map(|(_, count)| count).sum::<u64>()
    };
    cpu_table(text, None)?.into_iter().filter(wanted).map(sum).reduce(|left, right| left + right)
}

/// Where the live machine's counters are.
pub(crate) fn proc_dir() -> &'static Path {
    Path::new("/proc")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_name() {
        let stat = "cpu  1 2\nintr 900 1 2\nctxt 5\nprocesses 27855\nprocs_running 3\n";
        assert_eq!(stat_field(stat, "processes"), Some(27855));
        assert_eq!(stat_field(stat, "intr"), Some(900));
        assert_eq!(stat_field(stat, "proc"), None);
        let snmp =
            "Ip: Forwarding\nIp: 1\nTcp: RtoAlgorithm ActiveOpens PassiveOpens\nTcp: 1 20 21\nTcpExt: A\n";
        assert_eq!(snmp_field(snmp, "Tcp", "PassiveOpens"), Some(21));
        assert_eq!(snmp_field(snmp, "Tcp", "NoSuch"), None);
        assert_eq!(snmp_field("Tcp: A\n", "Tcp", "A"), None);
    }

    #[test]
    fn only_a_state_that_polls_counts_and_only_of_the_requested_cpus() {
        let dir = tempfile::tempdir().unwrap();
        for (cpu, name, usage) in [("cpu0", "POLL", "7"), ("cpu1", "POLL", "40"), ("cpu2", "C1", "900")] {
            let state = dir.path().join(cpu).join("cpuidle/state0");
            fs::create_dir_all(&state).unwrap();
            fs::write(state.join("name"), format!("{name}\n")).unwrap();
            fs::write(state.join("usage"), format!("{usage}\n")).unwrap();
        }
        fs::create_dir(dir.path().join("cpuidle")).unwrap();
        assert_eq!(polls(dir.path(), None), 47);
        assert_eq!(polls(dir.path(), Some(&Cpus::one(1))), 40);
        assert_eq!(polls(dir.path(), Some(&Cpus::one(2))), 0);
        assert_eq!(polls(&dir.path().join("none"), None), 0);
    }

    #[test]
    fn switches_of_either_kind_are_summed() {
        assert_eq!(
            switches("Threads: 1\nvoluntary_ctxt_switches:\t40\nnonvoluntary_ctxt_switches:\t2\n"),
            42
        );
        assert!(own_waits().is_ok() && uevents().is_ok());
    }

    #[test]
    fn timer_rows_of_both_architectures_are_summed() {
        let x86 = "      CPU0 CPU1\n  0:   9   0  IO-APIC 2-edge timer\nLOC:  100  50  Local timer interrupts\nRES: 1 1 x\n";
        assert_eq!(timer_rows(x86), Some(150));
        let arm =
            "      CPU0 CPU1\n 11:  70  30  GICv3  27 Level  arch_timer\nIPI0: 5 5 Rescheduling interrupts\n";
        assert_eq!(timer_rows(arm), Some(100));
        assert_eq!(timer_rows("   CPU0\n 4: 7 x serial\n"), None);
    }

    #[test]
    fn rows_are_found_by_what_they_are_called_and_cpus_by_their_column() {
        let x86 =
            "      CPU0 CPU2\nCAL:  100  50  Function call interrupts\nTLB: 1 7 TLB shootdowns\nERR: 0\n";
        assert_eq!(described_rows(x86, FUNCTION_CALL, None), Some(150));
        assert_eq!(described_rows(x86, "TLB shootdowns", Some(&Cpus::one(2))), Some(7));
        assert_eq!(described_rows(x86, "TLB shootdowns", Some(&Cpus::one(1))), Some(0));
        assert_eq!(described_rows(x86, "Rescheduling interrupts", None), None);
        let lines = "   CPU0 CPU2\n 8: 1 2 IO-APIC rtc0\n22: 30 4 IO-APIC 22-fasteoi eth0\n222: 9 9 x eth1\n";
        assert_eq!(rows(lines, |row| row.name == "22", None), Some(34));
        assert_eq!(rows(lines, |row| row.name == "22", Some(&Cpus::one(2))), Some(4));
        let arm =
            "      CPU0 CPU1\nIPI0:  1  2  Rescheduling interrupts\nIPI1:  3  4  Function call interrupts\n";
        assert_eq!(described_rows(arm, FUNCTION_CALL, Some(&Cpus::one(1))), Some(4));
    }

    #[test]
    fn this_machine_has_every_counter() {
        let proc_dir = Path::new("/proc");
        assert!(forks(proc_dir).unwrap() > 0);
        assert!(timer_interrupts(proc_dir).unwrap().1 > 0);
        assert!(passive_opens(proc_dir).is_ok());
    }

    #[test]
    fn a_kernel_without_the_counter_is_an_error_that_names_the_file() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("stat"), "cpu 1\nintr 77 1\n").unwrap();
        let error = forks(root.path()).unwrap_err().to_string();
        assert!(error.contains("find the witness counter in") && error.contains("stat"), "{error}");
        assert!(passive_opens(root.path()).is_err());
        assert_eq!(timer_interrupts(root.path()).unwrap(), ("/proc/stat intr", 77));
    }
}
