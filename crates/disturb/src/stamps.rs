//! Whether the kernel stamps packets with the time they came in, seen without requesting it.
//!
//! The kernel stamps a packet before it knows the receiver, so all get stamps as soon as one socket
//! requests them. A socket that requests reports of stamps but not their creation
//! (`SOF_TIMESTAMPING_SOFTWARE` alone) gets the stamps that others have requested (Linux
//! `Documentation/networking/timestamping.rst`, "SOF_TIMESTAMPING_OPT_RX_FILTER").

use super::sockopt::set;
use rustix::fd::AsRawFd;
use rustix::io::Errno;
use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;
use sys::clock::{now_ns, sleep_until};

/// A packet over loopback that is not there by now never comes.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long a change may take: a work item's turn on a crowded machine.
const CHANGE_NS: i64 = 2_000_000_000;
const NAP_NS: i64 = 200_000;

/// A socket that sends packets to itself and looks at them.
pub(super) struct Onlooker(UdpSocket);

impl Onlooker {
    /// An error where no packet comes back.
    pub(super) fn new() -> io::Result<Self> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        socket.connect(socket.local_addr()?)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        // SAFETY: a number holds no pointer.
        unsafe { set(&socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, &libc::SOF_TIMESTAMPING_SOFTWARE)? };
        let onlooker = Self(socket);
        onlooker.stamped().map(|_| onlooker)
    }

    /// Whether a packet that is sent now is stamped.
    pub(super) fn stamped(&self) -> io::Result<bool> {
        self.0.send(&[0])?;
        let mut byte = [0u8; 1];
        // Aligned as control messages have to be, and room for the three times of
        // `struct scm_timestamping` and more.
        let mut control = [0u64; 32];
        let mut data = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: byte.len() };
        // SAFETY: an all-zero msghdr is a valid, empty one.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        (message.msg_iov, message.msg_iovlen) = (&raw mut data, 1);
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(&control) as _;
        // SAFETY: all that the message leads to lives until the call returns, and is as long as
        // said.
        if unsafe { libc::recvmsg(self.0.as_raw_fd(), &raw mut message, 0) } < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(has_stamp(&message))
    }

    /// Waits until packets are stamped, or no longer are.
    pub(super) fn await_stamps(&self, wanted: bool) -> io::Result<()> {
        let until_ns = now_ns() + CHANGE_NS;
        while self.stamped()? != wanted {
            if now_ns() > until_ns {
                return Err(Errno::TIMEDOUT.into());
            }
            sleep_until(now_ns() + NAP_NS);
        }
        Ok(())
    }
}

/// Whether a message that was received has a control message with the time that the kernel has seen
/// it at.
fn has_stamp(message: &libc::msghdr) -> bool {
    // SAFETY: the kernel has filled in the message; the macros stay within its control messages.
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(message);
        while let Some(found) = header.as_ref() {
            if (found.cmsg_level, found.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING) {
                let software = libc::CMSG_DATA(header).cast::<libc::timespec>().read_unaligned();
                return software.tv_sec != 0;
            }
            header = libc::CMSG_NXTHDR(message, header);
        }
    }
    false
}
