//! Network links made and removed by raw rtnetlink, one message each, acknowledged by the kernel.
//!
//! `rtnetlink(7)`, `netlink(7)`; attributes of `include/uapi/linux/if_link.h`. A network namespace
//! numbers its links and never uses a number twice unless one is requested (net/core/dev.c,
//! `dev_new_index`). So the last number is a witness that no loop can invent.

use super::Error;
use super::job::Job;
use super::netlink::{Message, Netlink, terminated};
use super::witness::Counter;
use crate::account::Account;
use rustix::fd::{AsRawFd, BorrowedFd};
use rustix::io::Errno;
use std::ffi::CString;
use std::io;

const NAME: &str = "still0";
const PEER: &str = "still1";

const IFLA_IFNAME: u16 = 3;
const IFLA_LINKINFO: u16 = 18;
const IFLA_NET_NS_FD: u16 = 28;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const VETH_INFO_PEER: u16 = 1;

/// A kind of link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kind {
    /// What rtnetlink calls it.
    pub(super) name: &'static str,
    /// Whether it comes as a pair.
    pub(super) paired: bool,
    /// Whether it is set up as it is made.
    pub(super) raised: bool,
}

/// Makes and removes a link until the job ends. The process must be in a network namespace of its
/// own.
pub(super) fn repeat(job: &mut Job<'_>, kind: Kind) -> Result<Account, Error> {
    let links = Links::open().map_err(Error::refused("open an rtnetlink socket"))?;
    match links.next_number(kind) {
        Err(error) if lacks(&error) => {
            return Err(Error::absent(format!("this kernel makes no {} link", kind.name)));
        }
        other => other.map_err(Error::refused("make a link"))?,
    };
    let numbers = || links.next_number(kind).map_err(Error::refused("read the number of a link"));
    // Reading it makes a link; the namespace is its own, where nobody else does.
    let before = Counter::read(format!("numbers of {} links", kind.name), numbers)?.start()?;
    job.begin()?;
    let done = job.repeat(|| links.make(kind).and_then(|()| links.remove()));
    let witness = before.grown(done.tally.ok * if kind.paired { 2 } else { 1 })?;
    Ok(done.account(job, witness))
}

/// Whether this kernel, or what is loaded of it, does not know the kind.
pub(super) fn lacks(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EOPNOTSUPP)
}

/// An rtnetlink socket.
pub(super) struct Links(Netlink);

impl Links {
    pub(super) fn open() -> io::Result<Self> {
        Netlink::open(None).map(Self)
    }

    pub(super) fn make(&self, kind: Kind) -> io::Result<()> {
        self.0.ask(&new_link(kind).finish())?;
        if kind.paired && kind.raised {
            // A failed operation must leave nothing that the next one would stumble over.
            return self.raise(PEER).inspect_err(|_| drop(self.remove()));
        }
        Ok(())
    }

    /// Sets a link up. The far end of a pair refuses that (ENOTCONN) while the pair is still being
    /// made.
    fn raise(&self, name: &str) -> io::Result<()> {
        let mut message = about_link(libc::RTM_NEWLINK, 0, libc::IFF_UP as u32);
        message.attribute(IFLA_IFNAME, &terminated(name));
        self.0.ask(&message.finish())
    }

    /// Removes what [`make`](Self::make) made; a pair goes with either of its ends.
    pub(super) fn remove(&self) -> io::Result<()> {
        let mut message = about_link(libc::RTM_DELLINK, 0, 0);
        message.attribute(IFLA_IFNAME, &terminated(NAME));
        self.0.ask(&message.finish())
    }

    /// Moves a link of the socket's network namespace into another one; it arrives down and without
    /// addresses.
    pub(super) fn move_to(&self, name: &str, namespace: BorrowedFd<'_>) -> io::Result<()> {
        let mut message = about_link(libc::RTM_NEWLINK, 0, 0);
        message.attribute(IFLA_IFNAME, &terminated(name));
        message.attribute(IFLA_NET_NS_FD, &namespace.as_raw_fd().to_ne_bytes());
        self.0.ask(&message.finish())
    }

    /// The number that a link gets that is made now.
    pub(super) fn next_number(&self, kind: Kind) -> io::Result<u64> {
        self.make(kind)?;
        let name = CString::new(NAME).map_err(io::Error::other)?;
        // SAFETY: `name` is zero-terminated and lives until the call returns.
        let number = unsafe { libc::if_nametoindex(name.as_ptr()) };
        self.remove()?;
        if number == 0 { Err(Errno::NODEV.into()) } else { Ok(u64::from(number)) }
    }
}

fn new_link(kind: Kind) -> Message {
    let up = if kind.raised { libc::IFF_UP as u32 } else { 0 };
    let mut message = about_link(libc::RTM_NEWLINK, libc::NLM_F_CREATE | libc::NLM_F_EXCL, up);
    message.attribute(IFLA_IFNAME, &terminated(NAME));
    message.nested(IFLA_LINKINFO, |info| {
        info.attribute(IFLA_INFO_KIND, kind.name.as_bytes());
        if kind.paired {
            info.nested(IFLA_INFO_DATA, |data| {
                data.nested(VETH_INFO_PEER, |peer| {
                    peer.append(&link_header(0));
                    peer.attribute(IFLA_IFNAME, &terminated(PEER));
                });
            });
        }
    });
    message
}

/// A message about a link, with its flags set to `up`, to be acknowledged.
fn about_link(kind: u16, flags: i32, up: u32) -> Message {
    Message::new(kind, libc::NLM_F_ACK | flags, &link_header(up))
}

/// `struct ifinfomsg`: family and type any, number 0, flags, and which of them change.
fn link_header(up: u32) -> [u8; 16] {
    let mut header = [0; 16];
    header[8..12].copy_from_slice(&up.to_ne_bytes());
    header[12..].copy_from_slice(&up.to_ne_bytes());
    header
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::attributes;

    const VETH: Kind = Kind { name: "veth", paired: true, raised: true };

    #[test]
    fn a_pair_is_one_message_of_well_formed_attributes() {
        let message = new_link(VETH).finish();
        assert_eq!(u32::from_ne_bytes(message[..4].try_into().unwrap()) as usize, message.len());
        let outer = attributes(&message[32..]);
        assert_eq!(outer[0], (IFLA_IFNAME, &b"still0\0"[..]));
        assert_eq!(outer[1].0, IFLA_LINKINFO);
        let info = attributes(outer[1].1);
        assert_eq!(info[0], (IFLA_INFO_KIND, &b"veth"[..]));
        let peer = attributes(info[1].1);
        assert_eq!((info[1].0, peer[0].0), (IFLA_INFO_DATA, VETH_INFO_PEER));
        assert_eq!(attributes(&peer[0].1[16..]), [(IFLA_IFNAME, &b"still1\0"[..])]);
        assert_eq!((message[24], peer[0].1[8]), (libc::IFF_UP as u8, 0));
    }
}
