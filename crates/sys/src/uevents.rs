//! What the kernel announces of devices: `NETLINK_KOBJECT_UEVENT` (lib/kobject_uevent.c), its own
//! group. CPUs that go and come, devices that are added, removed or bound to a driver: with these
//! come interrupts, threads and files with values of their own.

use crate::Error;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, bind, recvfrom, socket_with};

/// The group of what the kernel sends; the other one is udev's.
const KERNEL: u32 = 1;

/// The longest message (`UEVENT_BUFFER_SIZE` and the line before it).
const LONGEST: usize = 8 << 10;

/// An announcement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uevent {
    /// `add`, `remove`, `online`, `offline`, `bind` and so on.
    pub action: String,
    /// The device, below `/sys`.
    pub device: String,
}

/// What has been announced since the last look.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Announced {
    /// Oldest first.
    pub events: Vec<Uevent>,
    /// Whether the kernel has dropped some.
    pub lost: bool,
}

/// Listens to the kernel.
#[derive(Debug)]
pub struct Uevents {
    socket: OwnedFd,
}

impl Uevents {
    /// Listens from now on.
    pub fn new() -> Result<Self, Error> {
        let failed = |error: Errno| Error::os("listen to", "the kernel's uevents", error);
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let protocol = Some(netlink::KOBJECT_UEVENT);
        let socket =
            socket_with(AddressFamily::NETLINK, SocketType::DGRAM, flags, protocol).map_err(failed)?;
        bind(&socket, &SocketAddrNetlink::new(0, KERNEL)).map_err(failed)?;
        Ok(Self { socket })
    }

    /// What has been announced since the last call.
    pub fn read(&self) -> Result<Announced, Error> {
        let mut all = Announced::default();
        let mut bytes = [0u8; LONGEST];
        loop {
            let (length, from) = match recvfrom(&self.socket, &mut bytes, RecvFlags::empty()) {
                Ok((length, _, from)) => (length, from),
                Err(Errno::AGAIN) => return Ok(all),
                Err(Errno::NOBUFS) => {
                    all.lost = true;
                    continue;
                }
                Err(Errno::INTR) => continue,
                Err(error) => return Err(Error::os("read", "the kernel's uevents", error)),
            };
            // Only the kernel has the number 0.
            let kernel =
                from.is_some_and(|from| SocketAddrNetlink::try_from(from).is_ok_and(|from| from.pid() == 0));
            if kernel {
                all.events.extend(parse(&bytes[..length.min(LONGEST)]));
            }
        }
    }
}

impl AsFd for Uevents {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// `ACTION@DEVPATH`, then words that say more.
fn parse(message: &[u8]) -> Option<Uevent> {
    let first = message.split(|byte| *byte == 0).next()?;
    let (action, device) = std::str::from_utf8(first).ok()?.split_once('@')?;
    Some(Uevent { action: action.to_owned(), device: device.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_names_action_and_device() {
        let message = b"offline@/devices/system/cpu/cpu3\0ACTION=offline\0SUBSYSTEM=cpu\0";
        let expected = Uevent { action: "offline".into(), device: "/devices/system/cpu/cpu3".into() };
        assert_eq!(parse(message), Some(expected));
        for other in [&b""[..], b"libudev\0\xfe\xed", b"no at sign\0", b"\xff@x"] {
            assert_eq!(parse(other), None);
        }
    }

    /// Writing `change` to a device's `uevent` makes the kernel announce it.
    #[test]
    fn the_kernel_is_heard() {
        let Ok(uevents) = Uevents::new() else { return eprintln!("no netlink here: skipped") };
        if std::fs::write("/sys/devices/system/cpu/cpu0/uevent", "change").is_err() {
            return eprintln!("not root: skipped");
        }
        let heard = uevents.read().unwrap().events;
        let ours = |event: &Uevent| event.action == "change" && event.device.ends_with("/cpu/cpu0");
        assert!(heard.iter().any(ours), "{heard:?}");
    }
}
