//! Netlink: one message sent, its acknowledgement taken (`netlink(7)`,
//! `include/uapi/linux/netlink.h`).

use rustix::fd::OwnedFd;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType};
use rustix::net::{recv, send, socket_with};
use std::io;
use std::time::Duration;

/// The kernel answers while the message is being sent; only one that does not know the protocol
/// would not.
const PATIENCE: Duration = Duration::from_secs(2);
/// `struct nlmsghdr`.
const HEADER: usize = 16;

/// A netlink socket.
pub(super) struct Netlink {
    socket: OwnedFd,
}

impl Netlink {
    /// Opens one; no protocol is protocol 0, NETLINK_ROUTE.
    pub(super) fn open(protocol: Option<Protocol>) -> io::Result<Self> {
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, protocol)?;
        set_socket_timeout(&socket, Timeout::Recv, Some(PATIENCE))?;
        Ok(Self { socket })
    }

    /// Sends messages of which one asks for an acknowledgement, and takes it. After a failure
    /// nothing is left to be read: each message that failed has an answer of its own.
    pub(super) fn ask(&self, messages: &[u8]) -> io::Result<()> {
        let verdict = verdict(&self.answer(messages)?);
        if verdict.is_err() {
            while recv(&self.socket, &mut [0; 64][..], RecvFlags::DONTWAIT).is_ok() {}
        }
        verdict
    }

    /// Sends a message, and takes what the kernel answers.
    pub(super) fn answer(&self, messages: &[u8]) -> io::Result<Vec<u8>> {
        send(&self.socket, messages, SendFlags::empty())?;
        let mut answer = vec![0; 1024];
        let (_, length) = recv(&self.socket, &mut answer[..], RecvFlags::empty())?;
        answer.truncate(length);
        Ok(answer)
    }
}

/// What an answer says: an error message with 0 is the acknowledgement.
fn verdict(answer: &[u8]) -> io::Result<()> {
    let short = || io::Error::from(io::ErrorKind::InvalidData);
    let kind =
        answer.get(4..6).and_then(|bytes| bytes.try_into().ok()).map(u16::from_ne_bytes).ok_or_else(short)?;
    let error = answer
        .get(HEADER..HEADER + 4)
        .and_then(|bytes| bytes.try_into().ok())
        .map(i32::from_ne_bytes)
        .ok_or_else(short)?;
    match (i32::from(kind), error) {
        (libc::NLMSG_ERROR, 0) => Ok(()),
        (libc::NLMSG_ERROR, error) => Err(io::Error::from_raw_os_error(error.saturating_neg())),
        _ => Err(short()),
    }
}

/// A netlink message as it grows.
pub(super) struct Message(Vec<u8>);

impl Message {
    /// A message of this type, which begins with the header of its family.
    pub(super) fn new(kind: u16, flags: i32, family: &[u8]) -> Self {
        let mut message = Self(vec![0; HEADER]);
        message.0[4..6].copy_from_slice(&kind.to_ne_bytes());
        let flags = (libc::NLM_F_REQUEST | flags) as u16;
        message.0[6..8].copy_from_slice(&flags.to_ne_bytes());
        message.append(family);
        message
    }

    /// Appends bytes as they are.
    pub(super) fn append(&mut self, bytes: &[u8]) {
        self.0.extend(bytes);
    }

    pub(super) fn attribute(&mut self, kind: u16, value: &[u8]) {
        self.nested(kind, |message| message.append(value));
    }

    /// An attribute whose value is what `fill` appends, aligned to 4 bytes afterwards.
    pub(super) fn nested(&mut self, kind: u16, fill: impl FnOnce(&mut Self)) {
        let start = self.0.len();
        self.0.extend([0; 4]);
        fill(self);
        let length = (self.0.len() - start) as u16;
        self.0[start..start + 2].copy_from_slice(&length.to_ne_bytes());
        self.0[start + 2..start + 4].copy_from_slice(&kind.to_ne_bytes());
        self.0.resize(self.0.len().next_multiple_of(4), 0);
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        let length = self.0.len() as u32;
        self.0[..4].copy_from_slice(&length.to_ne_bytes());
        self.0
    }
}

/// A name as attributes have it, with a zero at its end.
pub(super) fn terminated(name: &str) -> Vec<u8> {
    [name.as_bytes(), &[0]].concat()
}

/// The attributes of a message behind its headers, or of an attribute's value; what is cut off is
/// left out.
pub(super) fn attributes(mut bytes: &[u8]) -> Vec<(u16, &[u8])> {
    let mut found = Vec::new();
    while let Some((head, _)) = bytes.split_first_chunk::<4>() {
        let length = usize::from(u16::from_ne_bytes([head[0], head[1]]));
        let Some(value) = bytes.get(4..length) else { break };
        found.push((u16::from_ne_bytes([head[2], head[3]]), value));
        bytes = &bytes[length.next_multiple_of(4).min(bytes.len())..];
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_read_as_they_were_written() {
        let mut message = Message::new(16, 0, &[]);
        message.attribute(3, b"still0\0");
        message.nested(4, |inner| inner.attribute(5, &[9]));
        let bytes = message.finish();
        assert_eq!(u32::from_ne_bytes(bytes[..4].try_into().unwrap()) as usize, bytes.len());
        let outer = attributes(&bytes[HEADER..]);
        assert_eq!(outer[0], (3, &b"still0\0"[..]));
        assert_eq!((outer[1].0, attributes(outer[1].1)), (4, vec![(5, &[9][..])]));
        assert_eq!(attributes(&[200, 0, 1, 0, 7]), [], "cut off");
        assert_eq!(attributes(&[3, 0, 1, 0, 7]), [], "shorter than its own head");
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
        let refused = answer(libc::NLMSG_ERROR, -libc::EOPNOTSUPP).unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::EOPNOTSUPP));
        assert!(answer(libc::NLMSG_DONE, 0).is_err());
        assert!(verdict(&[0; 10]).is_err());
    }
}
