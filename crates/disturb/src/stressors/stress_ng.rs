//! `stress-ng:NAME`: a stressor of stress-ng as a disturbance, confined and accounted for like
//! ours.
//!
//! It is one program started once, with `--metrics --yaml` into memory of ours; its "bogo
//! operations" are the operations. As root it has a mount namespace with an own `/tmp` and a
//! process namespace, so that neither files nor processes survive it; else it has the process group
//! and the control groups that all stressors have. Its number of workers is `--workers`; a pace of
//! its own it has not.

use crate::Error;
use crate::account::Account;
use crate::job::{Done, Job, Pace};
use crate::settle::die_with;
use crate::spec::StressorSpec;
use crate::tally::Tally;
use crate::witness::{Counter, children_cpu_us};
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::Errno;
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use sys::clock::{SECOND_NS, now_ns};

/// The prefix of the stressor's name.
pub(crate) const PREFIX: &str = "stress-ng:";
const PROGRAM: &str = "stress-ng";
/// Those that change the machine beyond their own end.
const HARMFUL: [&str; 4] = ["cpu-online", "module", "smi", "watchdog"];
/// Those whose files would not fit into their own /tmp.
const SMALLER: [(&str, [&str; 2]); 1] = [("iomix", ["--iomix-bytes", "64m"])];
/// What is read of what it wrote, bytes.
const MOST_WORDS: u64 = 1 << 20;
/// Polls for the end, per second.
const LOOKS: f64 = 50.0;
/// How long it may take to write its results after it was asked to end, ns.
const PATIENCE_NS: i64 = 3 * SECOND_NS;

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: PROGRAM,
    title: "a stressor of stress-ng, by its name there",
    class: "ctl",
    operation: "what stress-ng counts as a bogo operation of that stressor",
    needs: "stress-ng, found by PATH",
    kernel_paths: &["whatever the stressor exercises"],
    witness: "CPU time of the program (getrusage): 1 ms at least",
    cleanup: "as root none: it has an own /tmp and an own process namespace; else files of some stressors in /tmp",
    danger: "that of the stressor; bounded by control groups, and memory and process limits",
    memory_bytes: 1 << 30,
    processes: 300,
    work,
    ..StressorSpec::PLAIN
};

const HARMFUL_SPEC: StressorSpec = StressorSpec { dangerous: true, ..SPEC };

/// The entry of a name that begins with [`PREFIX`]; only stress-ng itself knows whether it has such
/// a stressor.
pub(crate) fn find(name: &str) -> Option<&'static StressorSpec> {
    static PLAIN: StressorSpec = SPEC;
    static HARMFUL_ENTRY: StressorSpec = HARMFUL_SPEC;
    let theirs = name.strip_prefix(PREFIX)?;
    let letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let named = theirs.bytes().all(letter) && theirs.starts_with(|first: char| first != '-');
    named.then_some(if HARMFUL.contains(&theirs) { &HARMFUL_ENTRY } else { &PLAIN })
}

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    if job.rate.is_some() {
        return Err(Error::absent("stress-ng has no pace of its own; expected no --rate, or 0"));
    }
    let theirs = job.name.strip_prefix(PREFIX).unwrap_or_default().to_owned();
    knows(&theirs)?;
    enter_namespaces(job)?;
    let results = memfd_create("stillcore-figures", MemfdFlags::CLOEXEC)
        .map_err(Error::refused("make a file in memory"))?;
    let before = job.begin_counting(Counter::read("CPU time of the program, us", children_cpu_us)?)?;
    // It cannot be held: what it does to start is part of the disturbance.
    let words = memfd_create("stillcore-words", MemfdFlags::CLOEXEC)
        .map_err(Error::refused("make a file in memory"))?;
    let mut child = start(job, &theirs, &results, &words)?;
    let t0_ns = now_ns();
    let ended = wait(job, &mut child)?;
    job.linger();
    let t1_ns = now_ns();
    let tally = Tally { ok: bogo_operations(&written(results)?), ..Tally::default() };
    let witness = before.grown(1000)?;
    let said = written(words)?;
    let mut account = Done { tally, t0_ns, t1_ns }.account(job, witness);
    account.wrong = ended.map(|how| complaint(&said).map_or(how.clone(), |what| format!("{how}: {what}")));
    Ok(account)
}

/// Whether the program is there and has a stressor of this name: it refuses an option that it does
/// not know before it does anything.
fn knows(theirs: &str) -> Result<(), Error> {
    let mut command = Command::new(PROGRAM);
    command
        .args([&format!("--{theirs}"), "1", "--dry-run", "--quiet", "--temp-path", "/tmp"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(Error::absent(format!("this stress-ng has no stressor {theirs}"))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(Error::absent("stress-ng is not installed"))
        }
        Err(error) => Err(Error::refused("start stress-ng")(error)),
    }
}

/// What the program makes goes with it, where that is allowed. What starts next is the first
/// process of its namespace: with it all end.
fn enter_namespaces(job: &mut Job<'_>) -> Result<(), Error> {
    // SAFETY: this process has one thread, and holds no path that the mounts below would change.
    match unsafe { unshare_unsafe(UnshareFlags::NEWNS | UnshareFlags::NEWPID) } {
        Ok(()) => {}
        Err(error) => {
            job.confined_by.push(format!("not mount and process namespaces: {error}"));
            return Ok(());
        }
    }
    let own = || -> Result<(), Errno> {
        mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
        mount(PROGRAM, "/tmp", "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, Some(c"size=256m"))
    };
    own().map_err(Error::refused("mount an own /tmp"))?;
    job.confined_by.extend(["mount namespace", "process namespace"].map(str::to_owned));
    Ok(())
}

/// What the program wrote into a file of ours.
fn written(file: OwnedFd) -> Result<String, Error> {
    let mut file = File::from(file);
    let mut bytes = Vec::new();
    file.rewind()
        .and_then(|()| file.take(MOST_WORDS).read_to_end(&mut bytes))
        .map_err(Error::refused("read what stress-ng wrote"))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The first of its lines that states why it failed: `stress-ng: error: [123] what`.
fn complaint(said: &str) -> Option<&str> {
    let begins = |kind: &'static str| move |line: &&str| line.starts_with(&format!("stress-ng: {kind}:"));
    let refusal = |line: &&str| line.contains("skipping") || line.contains("must not");
    let line = said.lines().find(refusal).or_else(|| said.lines().find(begins("fail")));
    let line = line.or_else(|| said.lines().find(begins("error")))?;
    line.split_once("] ").map(|(_, what)| what)
}

fn start(job: &Job<'_>, theirs: &str, results: &OwnedFd, words: &OwnedFd) -> Result<Child, Error> {
    let workers = job.workers.unwrap_or(job.cpus.len() as u32).to_string();
    // Its own timeout is a safeguard: it is asked to end when our duration is over.
    let seconds = (job.duration_ns / SECOND_NS + 2).to_string();
    let path = format!("/proc/{}/fd/{}", std::process::id(), results.as_raw_fd());
    let mut command = Command::new(PROGRAM);
    command.args([&format!("--{theirs}"), &workers]);
    command.args(["--timeout", &format!("{seconds}s"), "--metrics", "--yaml", &path]);
    // Not --temp-path: its io-uring then looks for its file in another place than where it made it.
    command.current_dir("/tmp");
    command.args(SMALLER.iter().filter(|(name, _)| *name == theirs).flat_map(|(_, options)| options.iter()));
    let copy = || words.try_clone().map(Stdio::from).map_err(Error::refused("copy a descriptor"));
    command.stdin(Stdio::null()).stdout(copy()?).stderr(copy()?);
    // SAFETY: between fork and exec the closure makes system calls only. Signals that we have
    // blocked must reach the program.
    unsafe {
        command.pre_exec(|| {
            die_with(0).map_err(|_| io::Error::last_os_error())?;
            let mut none: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut none);
            match libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut()) {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            }
        });
    }
    command.spawn().map_err(Error::refused("start stress-ng"))
}

/// Waits for the end, asks the program to stop, and waits for its results; returns what went wrong
/// with it, if anything.
fn wait(job: &Job<'_>, child: &mut Child) -> Result<Option<String>, Error> {
    let exited = |child: &mut Child| child.try_wait().map_err(Error::refused("wait for stress-ng"));
    let pid = Pid::from_child(child);
    let mut pace = Pace::new(&job.end, Some(LOOKS), job.end_ns);
    while pace.proceed(1) {
        if let Some(status) = exited(child)? {
            return Ok(Some(format!("stress-ng ended early: {status}")));
        }
    }
    // One that has just ended cannot be signalled.
    let _ = kill_process(pid, Signal::TERM);
    let give_up_ns = now_ns() + PATIENCE_NS;
    while now_ns() < give_up_ns {
        if let Some(status) = exited(child)? {
            return Ok((!status.success()).then(|| format!("stress-ng ended with {status}")));
        }
        sys::clock::sleep_until(now_ns() + SECOND_NS / LOOKS as i64);
    }
    let _ = kill_process(pid, Signal::KILL);
    let _ = child.wait();
    Ok(Some("stress-ng did not end on request and was killed".to_owned()))
}

/// The sum of `bogo-ops` over the stressors in its results.
fn bogo_operations(yaml: &str) -> u64 {
    let counts = yaml.lines().filter_map(|line| line.trim().strip_prefix("bogo-ops:"));
    counts.filter_map(|count| count.trim().parse::<f64>().ok()).map(|count| count as u64).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_read_by_their_whole_name() {
        let yaml = "metrics:\n    - stressor: fork\n      bogo-ops: 117\n      bogo-ops-per-second-real-time: 116.1\n";
        assert_eq!((bogo_operations(yaml), bogo_operations("")), (117, 0));
    }

    #[test]
    fn its_own_errors_are_reported() {
        let said = "stress-ng: info:  [7] exec stressor must not run as root, skipping the stressor\nstress-ng: info:  [7] setting to\nstress-ng: error: [7] No stress workers invoked";
        assert_eq!(complaint(said), Some("exec stressor must not run as root, skipping the stressor"));
        assert_eq!(complaint("stress-ng: info:  [7] a\nstress-ng: error: [7] cannot do"), Some("cannot do"));
        assert_eq!(complaint("stress-ng: info:  [7] dispatching hogs"), None);
    }

    #[test]
    fn a_name_is_a_name_and_no_option_of_another_kind() {
        assert!(find("stress-ng:fork").is_some_and(|spec| !spec.dangerous));
        assert!(find("stress-ng:cpu-online").is_some_and(|spec| spec.dangerous));
        for name in ["stress-ng", "stress-ng:", "stress-ng:-x", "stress-ng:a b", "stress-ng:fork=1", "fork"] {
            assert!(find(name).is_none(), "{name}");
        }
    }
}
