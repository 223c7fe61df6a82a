//! Short messages from other processes to a socket with a name, each with the process and user that
//! the kernel says it is from: `AF_UNIX` datagrams with `SO_PASSCRED` (unix(7)). A sender that is
//! not privileged cannot claim to be another one.

use super::Error;
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, chmod};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendFlags,
    SocketAddrUnix, SocketFlags, SocketType, bind, recvmsg, sendto, socket_with, sockopt,
};
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::path::{Path, PathBuf};

/// The longest message, bytes.
pub const MOST: usize = 256;

/// The socket; its name is removed when it is dropped.
#[derive(Debug)]
pub struct Letterbox {
    socket: OwnedFd,
    path: PathBuf,
}

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Letter {
    /// The process that sent it.
    pub pid: i32,
    /// Its user.
    pub uid: u32,
    /// What it says; what is no UTF-8 is replaced.
    pub text: String,
}

impl Letterbox {
    /// Opens it at a path in a directory of this process' own, in place of one that was left there.
    /// `all`: whether everybody may write to it; else only its user may.
    pub fn open(path: &Path, all: bool) -> Result<Self, Error> {
        let failed = |source: Errno| Error::os("open", path.display(), source);
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::DGRAM, flags, None).map_err(failed)?;
        sockopt::set_socket_passcred(&socket, true).map_err(failed)?;
        match std::fs::remove_file(path) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::os("remove", path.display(), source));
            }
            _ => {}
        }
        bind(&socket, &SocketAddrUnix::new(path).map_err(failed)?).map_err(failed)?;
        let mode = if all { 0o666 } else { 0o600 };
        let letterbox = Self { socket, path: path.to_owned() };
        chmod(path, Mode::from_raw_mode(mode)).map_err(failed)?;
        Ok(letterbox)
    }

    /// The next message; `None` where there is none now. Those that are too long, or that the
    /// kernel does not say the sender of, are passed over.
    pub fn next(&self) -> Result<Option<Letter>, Error> {
        loop {
            let mut text = [0; MOST];
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmCredentials(1))];
            let mut control = RecvAncillaryBuffer::new(&mut space);
            let mut parts = [IoSliceMut::new(&mut text)];
            let received = match recvmsg(&self.socket, &mut parts, &mut control, RecvFlags::empty()) {
                Ok(received) => received,
                Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(Error::os("read", self.path.display(), error)),
            };
            let sender = control.drain().find_map(|message| match message {
                RecvAncillaryMessage::ScmCredentials(sender) => Some(sender),
                _ => None,
            });
            if let Some(sender) = sender.filter(|_| !received.flags.contains(ReturnFlags::TRUNC)) {
                return Ok(Some(Letter {
                    pid: sender.pid.as_raw_nonzero().get(),
                    uid: sender.uid.as_raw(),
                    text: String::from_utf8_lossy(&text[..received.bytes]).into_owned(),
                }));
            }
        }
    }
}

impl Drop for Letterbox {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Sends a message to the socket at a path. Returns whether somebody is behind it: who was killed
/// leaves its file.
pub fn send(path: &Path, text: &str) -> Result<bool, Error> {
    let failed = |source: Errno| Error::os("write to", path.display(), source);
    let socket =
        socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None).map_err(failed)?;
    let address = SocketAddrUnix::new(path).map_err(failed)?;
    match sendto(&socket, text.as_bytes(), SendFlags::NOSIGNAL | SendFlags::DONTWAIT, &address) {
        Err(Errno::CONNREFUSED | Errno::NOENT) => Ok(false),
        sent => sent.map(|_| true).map_err(failed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_letter_bears_its_sender() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("box");
        std::fs::write(&path, "left behind").unwrap();
        let letterbox = Letterbox::open(&path, false).unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(letterbox.next().unwrap(), None);
        send(&path, &"x".repeat(MOST + 1)).unwrap();
        assert!(send(&path, "late loop 5ms").unwrap());
        let letter = letterbox.next().unwrap().unwrap();
        assert_eq!((letter.pid, letter.text.as_str()), (std::process::id() as i32, "late loop 5ms"));
        assert_eq!(letter.uid, rustix::process::getuid().as_raw());
        assert_eq!(letterbox.next().unwrap(), None);
        drop(letterbox);
        assert!(!path.exists() && !send(&path, "x").unwrap());
    }
}
