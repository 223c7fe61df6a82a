//! `bpf_filter`: a packet filter attached to a socket and detached, which anybody may do.
//!
//! The filter is compiled to machine code (net/core/filter.c: `bpf_migrate_filter`, the JIT), and
//! memory that is made executable or given back is a change to the kernel's own page table, which
//! every CPU has to learn of (`set_memory_ro`, `flush_tlb_kernel_range`). Programs share pages
//! since 5.18 (`bpf_prog_pack`), which takes most of that away.

use crate::Error;
use crate::account::Account;
use crate::job::Job;
use crate::sockopt::{set, switch};
use crate::spec::StressorSpec;
use crate::witness::Counter;
use rustix::fd::AsRawFd;
use std::io;
use std::net::{Ipv4Addr, UdpSocket};

/// `BPF_RET | BPF_K` with 0: takes nothing of the packet.
const DROP: libc::sock_filter = libc::sock_filter { code: 0x06, jt: 0, jf: 0, k: 0 };
/// `getsockopt` SO_MEMINFO, and in what it fills the packets dropped
/// (include/uapi/linux/sock_diag.h: `SK_MEMINFO_DROPS`).
const SO_MEMINFO: libc::c_int = 55;
const DROPS: usize = 8;

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "bpf_filter",
    title: "a packet filter that drops all, attached to a socket, met by a packet, and detached",
    class: "poke",
    operation: "a filter attached, a packet sent into it, the filter detached",
    needs: "a loopback interface that is up",
    kernel_paths: &[
        "bpf_prog_alloc",
        "bpf_int_jit_compile",
        "set_memory_ro",
        "flush_tlb_kernel_range",
        "bpf_prog_free_deferred",
    ],
    witness: "packets that the socket has dropped (SO_MEMINFO): one in two operations at least",
    danger: "memory for machine code runs out; bounded by one filter at a time",
    default_rate: Some(500.0),
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    let socket = socket_to_itself()
        .map_err(|error| Error::absent(format!("no packet goes over the loopback interface: {error}")))?;
    let before = job.begin_counting(Counter::read("packets dropped by the socket", || {
        dropped(&socket).map_err(Error::refused("read what a socket has dropped"))
    })?)?;
    let done = job.repeat(|| attach_meet_detach(&socket));
    let witness = before.grown(done.tally.ok / 2)?;
    Ok(done.account(job, witness))
}

/// A socket that sends to itself.
fn socket_to_itself() -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    socket.connect(socket.local_addr()?)?;
    socket.set_nonblocking(true)?;
    socket.send(&[0])?;
    Ok(socket)
}

fn attach_meet_detach(socket: &UdpSocket) -> io::Result<()> {
    let mut filter = DROP;
    let program = libc::sock_fprog { len: 1, filter: &raw mut filter };
    // SAFETY: the program's one instruction lives until the end of this function; the kernel makes
    // a copy.
    unsafe { set(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)? };
    // One that came through before the filter was there makes room.
    while socket.recv(&mut [0]).is_ok() {}
    let sent = socket.send(&[0]);
    switch(socket, libc::SO_DETACH_FILTER, false)?;
    sent.map(drop)
}

fn dropped(socket: &UdpSocket) -> io::Result<u64> {
    let mut words = [0u32; 16];
    let mut length = size_of_val(&words) as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to `words`.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            SO_MEMINFO,
            words.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if result == 0 { Ok(u64::from(words[DROPS])) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_meets_the_filter_is_dropped_and_nothing_else() {
        let Ok(socket) = socket_to_itself() else {
            println!("skipped: no socket may be made here");
            return;
        };
        let before = dropped(&socket).unwrap();
        socket.send(&[0]).unwrap();
        assert_eq!(dropped(&socket).unwrap(), before);
        for _ in 0..20 {
            attach_meet_detach(&socket).unwrap();
        }
        assert!(dropped(&socket).unwrap() > before);
    }
}
