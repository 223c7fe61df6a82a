//! `so_timestamp`: a static key that anybody can switch. A socket that asks for time stamps of its packets is made, and closed.
//!
//! The first such socket of a machine makes the kernel stamp every packet (net/core/dev.c: `net_enable_timestamp`, `netstamp_needed_key`):
//! kernel text is patched and every CPU has to take part. Switching the option off again leaves the key on (net/core/sock.c: only
//! `SOCK_RCVTSTAMP` is cleared, and `SOCK_TIMESTAMP`, which holds the key, at the socket's end): on one socket, whatever the rate, the key
//! changes once. A TCP socket, because a UDP one ends a grace period later. The key is switched by a work item, so that on and off in
//! quick succession cancel out and interrupt nobody: each change is given its time.

use crate::disturb::Error;
use crate::disturb::catalogue::StressorSpec;
use crate::disturb::child::Account;
use crate::disturb::job::Job;
use crate::disturb::sockopt::switch;
use crate::disturb::witness::{Counter, told_to_all};
use rustix::net::{AddressFamily, SocketType, socket};

/// Up to this many changes a second each one gets through.
const DISTINCT: f64 = 200.0;

pub(in crate::disturb) const SPEC: StressorSpec = StressorSpec {
    name: "so_timestamp",
    title: "static keys: sockets with SO_TIMESTAMP, made and closed",
    class: "poke",
    operation: "one change",
    needs: "no other socket that has its packets stamped (chrony and ntpd do)",
    kernel_paths: &[
        "net_enable_timestamp",
        "netstamp_clear",
        "static_key_enable",
        "on_each_cpu(do_sync_core)",
    ],
    witness: "function call interrupts of all CPUs: one in two changes at least, where there are two CPUs",
    danger: "packets are stamped while it is on",
    default_rate: Some(50.0),
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    job.begin()?;
    // Whoever measures has set up by now, and sends nothing more that would be counted.
    let before = Counter::call_interrupts()?;
    let mut stamped = None;
    let done = job.repeat(|| {
        if stamped.take().is_none() {
            let socket = socket(AddressFamily::INET, SocketType::STREAM, None)?;
            switch(&socket, libc::SO_TIMESTAMP, true)?;
            stamped = Some(socket);
        }
        Ok(())
    });
    let distinct = job.rate.is_some_and(|rate| rate <= DISTINCT);
    let witness = before.grown(told_to_all(if distinct { done.tally.ok / 2 } else { 1 }))?;
    Ok(done.account(job, witness))
}
