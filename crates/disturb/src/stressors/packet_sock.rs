//! `packet_sock`: what starting and stopping a packet capture does. A packet socket is opened on
//! loopback, shown a packet, and closed.
//!
//! Opening adds a tap to the receive path, closing removes it and waits until no CPU can still be
//! in it (net/packet/af_packet.c, `packet_release`, `synchronize_net`).

use crate::account::Account;
use crate::job::Job;
use crate::spec::StressorSpec;
use crate::{Error, namespaces};
use model::stressor::Witness;
use rustix::fd::{AsRawFd, FromRawFd, OwnedFd};
use rustix::io::Errno;
use std::cell::Cell;
use std::io;
use std::net::{Ipv4Addr, UdpSocket};

/// `include/uapi/linux/if_packet.h`.
const PACKET_STATISTICS: libc::c_int = 6;

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "packet_sock",
    title: "packet captures: a packet socket opened on loopback and closed",
    class: "net",
    operation: "a socket opened on every protocol, shown a packet, and closed",
    privilege: "CAP_SYS_ADMIN, for a network namespace of its own",
    needs: "CONFIG_PACKET, CONFIG_NET_NS",
    kernel_paths: &["packet_create", "dev_add_pack", "packet_rcv", "packet_release", "synchronize_net"],
    witness: "packets that the kernel says it has shown to the sockets (PACKET_STATISTICS)",
    cleanup: "none: sockets close with their process",
    danger: "every packet of its own network namespace is copied; bounded by one socket at a time",
    default_rate: Some(50.0),
    modules: &["af_packet"],
    peer: Some("--rawpkt"),
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    namespaces::need_own_network(job)?;
    let talker = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).map_err(Error::refused("make a socket"))?;
    let address = talker.local_addr().map_err(Error::refused("make a socket"))?;
    talker.connect(address).map_err(Error::refused("make a socket"))?;
    // SAFETY: the name is zero-terminated.
    let loopback = unsafe { libc::if_nametoindex(c"lo".as_ptr()) } as i32;
    match open(loopback) {
        Err(error) if error.raw_os_error() == Some(libc::EAFNOSUPPORT) => {
            return Err(Error::absent("this kernel has no packet sockets (CONFIG_PACKET)"));
        }
        other => other.map_err(Error::refused("open a packet socket"))?,
    };
    let shown = Cell::new(0);
    job.begin()?;
    let done = job.repeat(|| {
        let socket = open(loopback)?;
        talker.send(&[0x5a; 64])?;
        talker.recv(&mut [0; 64])?;
        shown.set(shown.get() + packets_shown(&socket)?);
        Ok(())
    });
    let name = "PACKET_STATISTICS packets".to_owned();
    let witness = Witness { name, expected: done.tally.ok, seen: shown.get() };
    Ok(done.account(job, witness))
}

/// A packet socket on every protocol of one interface.
fn open(interface: i32) -> io::Result<OwnedFd> {
    // SAFETY: makes a descriptor, which is owned at once.
    let socket = unsafe {
        match libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) {
            -1 => return Err(io::Error::last_os_error()),
            socket => OwnedFd::from_raw_fd(socket),
        }
    };
    // SAFETY: an all-zero sockaddr_ll is a valid one.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = interface;
    let length = size_of_val(&address) as libc::socklen_t;
    // SAFETY: the address is a sockaddr_ll of that length.
    match unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) } {
        0 => Ok(socket),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Packets that the kernel has shown to a socket since it was last asked.
fn packets_shown(socket: &OwnedFd) -> io::Result<u64> {
    // Packets shown, and those of them that were dropped for want of room.
    let mut counts = [0u32; 2];
    let mut length = size_of_val(&counts) as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes, which `counts` has.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            PACKET_STATISTICS,
            counts.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    match (result, length) {
        (0, 8) => Ok(u64::from(counts[0])),
        (0, _) => Err(Errno::INVAL.into()),
        _ => Err(io::Error::last_os_error()),
    }
}
