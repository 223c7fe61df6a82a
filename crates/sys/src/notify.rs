//! Telling the service manager how a service is: sd_notify(3), a datagram to the socket that it
//! names in `NOTIFY_SOCKET`, and the watchdog of systemd.service(5), whose time is in
//! `WATCHDOG_USEC` (sd_watchdog_enabled(3)).

use rustix::net::SocketAddrUnix;
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, sendto, socket_with};
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

/// The longest text of a status that is sent, characters.
const LONGEST: usize = 400;

/// Where to tell it; nowhere outside of a service.
#[derive(Debug, Default)]
pub struct Notify {
    to: Option<(OwnedFd, SocketAddrUnix)>,
    watchdog: Option<Duration>,
}

impl Notify {
    /// Of these variables of the environment: `NOTIFY_SOCKET`, `WATCHDOG_USEC`, `WATCHDOG_PID`.
    pub fn of(socket: Option<&OsStr>, usec: Option<&str>, pid: Option<&str>) -> Self {
        let to = socket.and_then(|path| {
            let address = address(path.as_bytes())?;
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let socket = socket_with(AddressFamily::UNIX, SocketType::DGRAM, flags, None).ok()?;
            Some((socket, address))
        });
        let own = std::process::id();
        let for_us = pid.is_none_or(|pid| pid.parse() == Ok(own));
        let usec = usec.and_then(|usec| usec.parse().ok()).filter(|usec| *usec > 0 && for_us);
        Self { watchdog: usec.map(Duration::from_micros).filter(|_| to.is_some()), to }
    }

    /// How often the manager wants to hear of this process at least; it is ended otherwise.
    pub fn watchdog(&self) -> Option<Duration> {
        self.watchdog
    }

    /// Everything is set up.
    pub fn ready(&self) {
        self.send("READY=1");
    }

    /// It is alive.
    pub fn alive(&self) {
        if self.watchdog.is_some() {
            self.send("WATCHDOG=1");
        }
    }

    /// It is about to end.
    pub fn stopping(&self) {
        self.send("STOPPING=1");
    }

    /// What `systemctl status` shows, one line.
    pub fn status(&self, text: &str) {
        let plain = |c: char| if c.is_control() { ' ' } else { c };
        let line: String = text.chars().take(LONGEST).map(plain).collect();
        self.send(&format!("STATUS={line}"));
    }

    fn send(&self, text: &str) {
        if let Some((socket, address)) = &self.to {
            // A manager that does not listen is no reason to end.
            let _ = sendto(socket, text.as_bytes(), SendFlags::NOSIGNAL, address);
        }
    }
}

/// An absolute path, or an abstract name behind `@`.
fn address(path: &[u8]) -> Option<SocketAddrUnix> {
    match path.split_first()? {
        (b'@', name) => SocketAddrUnix::new_abstract_name(name).ok(),
        (b'/', _) => SocketAddrUnix::new(path).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixDatagram;

    #[test]
    fn the_manager_hears_what_it_asks_for() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notify");
        let manager = UnixDatagram::bind(&path).unwrap();
        let heard = || {
            let mut bytes = [0u8; 1024];
            let length = manager.recv(&mut bytes).unwrap();
            String::from_utf8_lossy(&bytes[..length]).into_owned()
        };
        let own = std::process::id().to_string();
        let notify = Notify::of(Some(path.as_os_str()), Some("2000000"), Some(&own));
        assert_eq!(notify.watchdog(), Some(Duration::from_secs(2)));
        notify.ready();
        notify.alive();
        notify.status("two\nlines");
        assert_eq!([heard(), heard(), heard()], ["READY=1", "WATCHDOG=1", "STATUS=two lines"]);
        let of_another = Notify::of(Some(path.as_os_str()), Some("2000000"), Some("1"));
        assert_eq!(of_another.watchdog(), None);
        of_another.alive();
        of_another.stopping();
        assert_eq!(heard(), "STOPPING=1", "the watchdog was not asked of this process");
    }

    #[test]
    fn outside_of_a_service_nothing_is_told() {
        for socket in [None, Some(OsStr::new("")), Some(OsStr::new("relative"))] {
            let notify = Notify::of(socket, Some("1000"), None);
            assert_eq!(notify.watchdog(), None);
            notify.ready();
        }
    }
}
