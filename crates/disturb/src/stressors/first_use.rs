//! `first_use`: what the first user of a kernel feature costs everybody. Each is used once, and
//! held until the end.
//!
//! Many features are behind a static key that their first user switches on: TCP signatures
//! (`tcp_md5_needed`), encapsulation in UDP (`udp_encap_needed_key`), task counters
//! (`perf_sched_events`). Some never go off again, so that the first run after boot shows more than
//! those that follow: nothing seen in a later one says nothing. Time stamps of packets are
//! `so_timestamp`'s, which would find them on.

use crate::Error;
use crate::account::Account;
use crate::counters::of_this_task;
use crate::job::{Done, Job, Pace};
use crate::sockopt::set;
use crate::spec::StressorSpec;
use crate::tally::Tally;
use crate::witness::{self, Counter, proc_dir};
use rustix::net::sockopt::set_socket_linger;
use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;
use sys::clock::now_ns;

/// include/uapi/linux/udp.h: `UDP_ENCAP`, `UDP_ENCAP_ESPINUDP`.
const UDP_ENCAP: i32 = 100;
const ESP_IN_UDP: i32 = 2;
/// include/uapi/linux/tcp.h: `TCP_MD5SIG`.
const TCP_MD5SIG: i32 = 14;
/// Polls for the end, per second.
const LOOKS: f64 = 50.0;

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "first_use",
    title: "features used for the first time: TCP and its signatures, UDP encapsulation, task counters",
    class: "poke",
    operation: "one feature used, and held until the end",
    needs: "loopback; a machine that has just booted, to see the keys that never go off again",
    kernel_paths: &["static_key_enable", "tcp_md5_needed", "udp_encap_enable", "perf_sched_events"],
    witness: "PassiveOpens in /proc/net/snmp: the one connection",
    cleanup: "none: keys that stay on do so by the kernel's own choice",
    danger: "packets take a little longer once the keys are on",
    work,
    ..StressorSpec::PLAIN
};

/// What a feature holds while it is used.
type Held = Box<dyn std::any::Any>;

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    const FEATURES: [fn() -> io::Result<Held>; 4] = [connection, signature, encapsulation, counter];
    let before = job.begin_counting(Counter::read("/proc/net/snmp Tcp PassiveOpens", || {
        witness::passive_opens(proc_dir())
    })?)?;
    let (mut tally, mut held, t0_ns) = (Tally::default(), Vec::new(), now_ns());
    for feature in FEATURES {
        let used = feature().map(|use_| held.push(use_));
        job.meter.add(u64::from(tally.count(used)));
    }
    let t1_ns = now_ns();
    let mut wait = Pace::new(&job.end, Some(LOOKS), job.end_ns);
    while wait.proceed(1) {}
    drop(held);
    job.linger();
    let witness = before.grown(1)?;
    Ok(Done { tally, t0_ns, t1_ns }.account(job, witness))
}

/// A connection, closed by a reset so that nothing stays in TIME_WAIT.
fn connection() -> io::Result<Held> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let client = TcpStream::connect(listener.local_addr()?)?;
    set_socket_linger(&client, Some(Duration::ZERO))?;
    let (server, _) = listener.accept()?;
    Ok(Box::new((client, server)))
}

/// `struct tcp_md5sig` (include/uapi/linux/tcp.h).
#[repr(C)]
struct Signature {
    address: libc::sockaddr_storage,
    flags: u8,
    prefix: u8,
    key_length: u16,
    interface: i32,
    key: [u8; 80],
}

fn signature() -> io::Result<Held> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    // SAFETY: all of it is numbers, for which zero is valid.
    let mut signature: Signature = unsafe { std::mem::zeroed() };
    signature.address.ss_family = libc::AF_INET as libc::sa_family_t;
    signature.key_length = 4;
    signature.key[..4].copy_from_slice(b"none");
    // SAFETY: it holds no pointer.
    unsafe { set(&listener, libc::IPPROTO_TCP, TCP_MD5SIG, &signature)? };
    Ok(Box::new(listener))
}

fn encapsulation() -> io::Result<Held> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    // SAFETY: a number holds no pointer.
    unsafe { set(&socket, libc::IPPROTO_UDP, UDP_ENCAP, &ESP_IN_UDP)? };
    Ok(Box::new(socket))
}

fn counter() -> io::Result<Held> {
    Ok(Box::new(of_this_task(true)?))
}
