//! `netns`: network namespaces made and left, one after the other, as starting containers does.
//!
//! Each is set up by every part of the network stack (net/core/net_namespace.c, `setup_net`) and
//! taken down by one kernel worker for all that have died meanwhile (`cleanup_net`), which waits
//! for RCU grace periods.

use crate::account::Account;
use crate::job::Job;
use crate::spec::StressorSpec;
use crate::{Error, ledger, namespaces};
use rustix::io::Errno;

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "netns",
    title: "network namespaces made and left",
    class: "net",
    operation: "a namespace made with its loopback up, the one before left",
    privilege: "CAP_SYS_ADMIN",
    needs: "CONFIG_NET_NS",
    kernel_paths: &[
        "copy_net_ns",
        "setup_net",
        "cleanup_net work",
        "unregister_netdevice_many",
        "synchronize_net",
    ],
    witness: "growth of /sys/kernel/uevent_seqnum, machine-wide: a loopback interface comes with each; a lower bound",
    cleanup: "the kernel takes down the last one when the process ends",
    danger: "dying namespaces pile up where the kernel's one worker is slower; bounded by the rate and user.max_net_namespaces",
    default_rate: Some(10.0),
    memory_bytes: 128 << 20,
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    namespaces::need_own_network(job)?;
    let before = job.begin_counting(ledger::uevents()?)?;
    let done = job.repeat(|| match namespaces::own_network() {
        Ok(true) => Ok(()),
        Ok(false) => Err(std::io::Error::last_os_error()),
        Err(Error::Refused { source, .. }) => Err(source),
        Err(_) => Err(Errno::IO.into()),
    });
    let witness = before.grown(done.tally.ok)?;
    Ok(done.account(job, witness))
}
