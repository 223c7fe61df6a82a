//! `userns`: what a container or a browser's sandbox starts with. A process enters new namespaces
//! of every kind at once, and ends.
//!
//! User, mount, pid, ipc, uts, cgroup and network namespace (`user_namespaces(7)`): an ordinary
//! user may, where user namespaces are allowed at all. Copying the mounts, setting up and taking
//! down the network is most of the work (kernel/nsproxy.c, `create_new_namespaces`; `cleanup_net`).

use crate::account::Account;
use crate::job::Job;
use crate::spec::StressorSpec;
use crate::workers::exit_now;
use crate::{Error, ledger, namespaces};
use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, waitpid};
use rustix::thread::UnshareFlags;
use std::io;

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "userns",
    title: "sandboxes: a process enters namespaces of every kind and ends",
    class: "net",
    operation: "a process made that entered seven new namespaces and ended",
    privilege: "none where user namespaces are allowed to ordinary users, else CAP_SYS_ADMIN",
    needs: "CONFIG_USER_NS, CONFIG_NET_NS, CONFIG_PID_NS, CONFIG_IPC_NS, CONFIG_UTS_NS, CONFIG_CGROUPS",
    kernel_paths: &[
        "create_new_namespaces",
        "copy_mnt_ns",
        "setup_net",
        "cleanup_net work",
        "put_mnt_ns",
        "free_user_ns work",
    ],
    witness: "growth of /sys/kernel/uevent_seqnum, machine-wide: a loopback interface comes with each; a lower bound",
    cleanup: "the namespaces go with their process",
    danger: "dying namespaces pile up where the kernel's one worker is slower; bounded by the rate and user.max_user_namespaces",
    default_rate: Some(10.0),
    memory_bytes: 128 << 20,
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    sandbox().map_err(|error| Error::absent(format!("new namespaces are not to be had here: {error}")))?;
    let before = job.begin_counting(ledger::uevents()?)?;
    let done = job.repeat(sandbox);
    let witness = before.grown(done.tally.ok)?;
    Ok(done.account(job, witness))
}

/// One operation. The child ends with the errno of what it was refused.
fn sandbox() -> io::Result<()> {
    let all = UnshareFlags::NEWUSER
        | UnshareFlags::NEWNS
        | UnshareFlags::NEWPID
        | UnshareFlags::NEWIPC
        | UnshareFlags::NEWUTS
        | UnshareFlags::NEWCGROUP
        | UnshareFlags::NEWNET;
    // SAFETY: the stressor's process has one thread, so no lock is held by a thread that the copy
    // lacks; the copy makes one call and leaves.
    match unsafe { libc::fork() } {
        0 => exit_now(namespaces::unshare(all).map_or_else(Errno::raw_os_error, |()| 0)),
        -1 => Err(io::Error::last_os_error()),
        pid => match waitpid(Pid::from_raw(pid), WaitOptions::empty())? {
            Some((_, status)) if status.exit_status() == Some(0) => Ok(()),
            Some((_, status)) => {
                Err(io::Error::from_raw_os_error(status.exit_status().unwrap_or(libc::ECHILD)))
            }
            None => Err(Errno::CHILD.into()),
        },
    }
}
