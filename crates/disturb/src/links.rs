//! Network links made and removed by raw rtnetlink, one message each, acknowledged by the kernel.
//!
//! `rtnetlink(7)`, `netlink(7)`; attributes of `include/uapi/linux/if_link.h`. A network namespace
//! numbers its links and never uses a number twice unless one is requested (net/core/dev.c,
//! `dev_new_index`). So the last number is a witness that no loop can invent.

use super::Error;
use super::job::Job;
use super::witness::Counter;
use crate::account::Account;
use rustix::fd::{AsRawFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with};
use std::ffi::CString;
use std::io;
use std::time::Duration;

/// The kernel answers while the message is being sent; only a kernel without rtnetlink would not.
const PATIENCE: Duration = Duration::from_secs(2);
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
pub(super) struct Links {
    socket: OwnedFd,
}

impl Links {
    pub(super) fn open() -> io::Result<Self> {
        // No protocol is protocol 0: NETLINK_ROUTE.
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
        set_socket_timeout(&socket, Timeout::Recv, Some(PATIENCE))?;
        Ok(Self { socket })
    }

    pub(super) fn make(&self, kind: Kind) -> io::Result<()> {
        self.ask(new_link(kind).finish())?;
        if kind.paired && kind.raised {
            // A failed operation must leave nothing that the next one would stumble over.
            return self.raise(PEER).inspect_err(|_| drop(self.remove()));
        }
        Ok(())
    }

    /// Sets a link up. The far end of a pair refuses that (ENOTCONN) while the pair is still being
    /// made.
    fn raise(&self, name: &str) -> io::Result<()> {
        let mut message = Message::new(libc::RTM_NEWLINK, 0, libc::IFF_UP as u32);
        message.attribute(IFLA_IFNAME, &terminated(name));
        self.ask(message.finish())
    }

    /// Removes what [`make`](Self::make) made; a pair goes with either of its ends.
    pub(super) fn remove(&self) -> io::Result<()> {
        let mut message = Message::new(libc::RTM_DELLINK, 0, 0);
        message.attribute(IFLA_IFNAME, &terminated(NAME));
        self.ask(message.finish())
    }

    /// Moves a link of the socket's network namespace into another one; it arrives down and without
    /// addresses.
    pub(super) fn move_to(&self, name: &str, namespace: BorrowedFd<'_>) -> io::Result<()> {
        let mut message = Message::new(libc::RTM_NEWLINK, 0, 0);
        message.attribute(IFLA_IFNAME, &terminated(name));
        message.attribute(IFLA_NET_NS_FD, &namespace.as_raw_fd().to_ne_bytes());
        self.ask(message.finish())
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

    /// Sends a message and takes its acknowledgement.
    fn ask(&self, message: Vec<u8>) -> io::Result<()> {
        send(&self.socket, &message, SendFlags::empty())?;
        let mut answer = [0; 1024];
        let (_, length) = recv(&self.socket, &mut answer[..], RecvFlags::empty())?;
        verdict(answer.get(..length).unwrap_or(&answer))
    }
}

/// What an answer says: an error message with 0 is the acknowledgement.
fn verdict(answer: &[u8]) -> io::Result<()> {
    let short = || io::Error::from(io::ErrorKind::InvalidData);
    let kind =
        answer.get(4..6).and_then(|bytes| bytes.try_into().ok()).map(u16::from_ne_bytes).ok_or_else(short)?;
    let error = answer
        .get(16..20)
        .and_then(|bytes| bytes.try_into().ok())
        .map(i32::from_ne_bytes)
        .ok_or_else(short)?;
    match (i32::from(kind), error) {
        (libc::NLMSG_ERROR, 0) => Ok(()),
        (libc::NLMSG_ERROR, error) => Err(io::Error::from_raw_os_error(-error)),
        _ => Err(short()),
    }
}

fn new_link(kind: Kind) -> Message {
    let up = if kind.raised { libc::IFF_UP as u32 } else { 0 };
    let mut message = Message::new(libc::RTM_NEWLINK, libc::NLM_F_CREATE | libc::NLM_F_EXCL, up);
    message.attribute(IFLA_IFNAME, &terminated(NAME));
    message.nested(IFLA_LINKINFO, |info| {
        info.attribute(IFLA_INFO_KIND, kind.name.as_bytes());
        if kind.paired {
            info.nested(IFLA_INFO_DATA, |data| {
                data.nested(VETH_INFO_PEER, |peer| {
                    peer.link_header(0);
                    peer.attribute(IFLA_IFNAME, &terminated(PEER));
                });
            });
        }
    });
    message
}

fn terminated(name: &str) -> Vec<u8> {
    [name.as_bytes(), &[0]].concat()
}

/// A netlink message as it grows.
struct Message(Vec<u8>);

impl Message {
    /// A message about a link, with its flags set to `up`.
    fn new(kind: u16, flags: i32, up: u32) -> Self {
        let mut message = Self(vec![0; 16]);
        message.0[4..6].copy_from_slice(&kind.to_ne_bytes());
        let flags = (libc::NLM_F_REQUEST | libc::NLM_F_ACK | flags) as u16;
        message.0[6..8].copy_from_slice(&flags.to_ne_bytes());
        message.link_header(up);
        message
    }

    /// `struct ifinfomsg`: family and type any, number 0, flags, and which of them change.
    fn link_header(&mut self, up: u32) {
        self.0.extend([0; 8]);
        self.0.extend(up.to_ne_bytes());
        self.0.extend(up.to_ne_bytes());
    }

    fn attribute(&mut self, kind: u16, value: &[u8]) {
        self.nested(kind, |message| message.0.extend(value));
    }

    /// An attribute whose value is what `fill` appends, aligned to 4 bytes afterwards.
    fn nested(&mut self, kind: u16, fill: impl FnOnce(&mut Self)) {
        let start = self.0.len();
        self.0.extend([0; 4]);
        fill(self);
        let length = (self.0.len() - start) as u16;
        self.0[start..start + 2].copy_from_slice(&length.to_ne_bytes());
        self.0[start + 2..start + 4].copy_from_slice(&kind.to_ne_bytes());
        self.0.resize(self.0.len().next_multiple_of(4), 0);
    }

    fn finish(mut self) -> Vec<u8> {
        let length = self.0.len() as u32;
        self.0[..4].copy_from_slice(&length.to_ne_bytes());
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VETH: Kind = Kind { name: "veth", paired: true, raised: true };

    /// The attributes of a message or of an attribute's value.
    fn attributes(mut bytes: &[u8]) -> Vec<(u16, &[u8])> {
        let mut found = Vec::new();
        while bytes.len() >= 4 {
            let length = usize::from(u16::from_ne_bytes([bytes[0], bytes[1]]));
            found.push((u16::from_ne_bytes([bytes[2], bytes[3]]), &bytes[4..length]));
            bytes = &bytes[length.next_multiple_of(4).min(bytes.len())..];
        }
        found
    }

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

    #[test]
    fn an_answer_is_an_acknowledgement_an_error_or_nonsense() {
        let answer = |kind: i32, error: i32| {
            let mut bytes = vec![0; 36];
            bytes[4..6].copy_from_slice(&(kind as u16).to_ne_bytes());
            bytes[16..20].copy_from_slice(&error.to_ne_bytes());
            verdict(&bytes)
        };
        assert!(answer(libc::NLMSG_ERROR, 0).is_ok());
        assert!(lacks(&answer(libc::NLMSG_ERROR, -libc::EOPNOTSUPP).unwrap_err()));
        assert!(answer(libc::NLMSG_DONE, 0).is_err());
        assert!(verdict(&[0; 10]).is_err());
    }
}
