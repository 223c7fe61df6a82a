//! `so_timestamp`: a static key that anybody can switch. It creates a socket that requests time
//! stamps of its packets, and closes it.
//!
//! The first such socket of a machine makes the kernel stamp every packet (net/core/dev.c:
//! `net_enable_timestamp`, `netstamp_needed_key`): kernel text is patched and every CPU has to take
//! part. Switching the option off again leaves the key on (net/core/sock.c: only `SOCK_RCVTSTAMP`
//! is cleared, and `SOCK_TIMESTAMP`, which holds the key, at the socket's end): on one socket,
//! whatever the rate, the key changes once. A TCP socket, because a UDP one ends a grace period
//! later.
//!
//! The key is switched by a work item, so that on and off in quick succession cancel out; and where
//! another holds it, nothing changes at all. So each change is waited for, and counts only where
//! packets show it ([`Onlooker`]). From 6.10 on the kernel itself holds the key where CPUs are
//! isolated at boot ("net: enable timestamp static key if CPU isolation is configured").

use crate::account::Account;
use crate::job::Job;
use crate::sockopt::switch;
use crate::spec::StressorSpec;
use crate::stamps::Onlooker;
use crate::witness::{Counter, calls_of, function_calls, patch_interrupts};
use crate::{Error, namespaces};
use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, SocketType, socket};
use std::io;

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "so_timestamp",
    title: "static keys: sockets with SO_TIMESTAMP, made and closed",
    class: "poke",
    operation: "one change, seen in the packets of another socket",
    privilege: "none; CAP_SYS_ADMIN for a network namespace of its own",
    needs: "nobody else who has packets stamped: chrony and ntpd do, and since 6.10 the kernel where CPUs are isolated at boot",
    kernel_paths: &[
        "net_enable_timestamp",
        "netstamp_clear",
        "static_key_enable",
        "on_each_cpu(do_sync_core)",
    ],
    witness: "function call interrupts of the measured CPUs, or of all where none is measured: one a change at least, where there are two CPUs; a CPU that polls in idle needs no interrupt, and counts where it leaves that state",
    danger: "packets are stamped while it is on",
    default_rate: Some(50.0),
    aimed: true,
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    namespaces::own_or_host_network(job)?;
    let onlooker = Onlooker::new()
        .map_err(|error| Error::absent(format!("no packet goes over the loopback interface: {error}")))?;
    let mut key = Key { onlooker, held: None };
    // Another stressor of this kind releases the key between two changes.
    if key.onlooker.await_stamps(false).is_err() {
        return Err(Error::absent(
            "packets are stamped already, so that no socket changes anything: another asks for it (chrony and ntpd do), or the kernel itself, \
             which does since 6.10 where CPUs are isolated at boot",
        ));
    }
    // On and off once, so that the side effects of a machine's first sockets are over. Operations
    // show whether it works.
    let _ = key.change().and_then(|()| key.change());
    let measured = (!job.measured.is_empty()).then(|| job.measured.clone());
    let whose = measured.as_ref().map_or_else(String::new, |cpus| format!(" of CPU {cpus}"));
    let counter = Counter::read(calls_of(&whose), || function_calls(measured.as_ref()))?;
    let before = job.begin_counting(counter)?;
    let done = job.repeat(|| key.change());
    let witness = before.grown(patch_interrupts(done.tally.ok))?;
    Ok(done.account(job, witness))
}

/// The kernel's key, held by a socket or not.
struct Key {
    onlooker: Onlooker,
    held: Option<OwnedFd>,
}

impl Key {
    /// Switches it, and waits until packets show that. No change is one where another holds it.
    fn change(&mut self) -> io::Result<()> {
        let on = self.held.is_none();
        self.onlooker.await_stamps(!on)?;
        self.held = if on { Some(asking()?) } else { None };
        // A key that does not follow is released: the next change begins where this one did.
        self.onlooker.await_stamps(on).inspect_err(|_| self.held = None)
    }
}

/// A socket that requests stamps.
fn asking() -> io::Result<OwnedFd> {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None)?;
    switch(&socket, libc::SO_TIMESTAMP, true)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_one_that_packets_show() {
        let Ok(onlooker) = Onlooker::new() else {
            println!("skipped: no socket may be made here");
            return;
        };
        // A machine whose clock is kept by packets has them stamped for good.
        if onlooker.await_stamps(false).is_err() {
            println!("skipped: this machine stamps packets for good");
            return;
        }
        let mut key = Key { onlooker, held: None };
        key.change().unwrap();
        assert!(key.held.is_some() && key.onlooker.stamped().unwrap());
        // Another holds the key as well: releasing it changes nothing, and is no success.
        let other = asking().unwrap();
        assert_eq!(key.change().unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert_eq!(key.change().unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert!(key.held.is_none());
        drop(other);
        key.change().unwrap();
        key.change().unwrap();
        assert!(key.held.is_none());
    }
}
