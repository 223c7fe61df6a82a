//! Small steps of a guest's start: modules, host name, loopback.

use super::{FirstProgram, problem};
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with};
use std::fs::{self, File};
use std::path::Path;
use std::time::Duration;

/// `uname -r`.
pub fn kernel_release() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

/// Time since the kernel's start.
pub fn uptime() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Duration::from_secs(now.tv_sec.cast_unsigned())
}

/// Sets the host name.
pub fn set_hostname(_: &FirstProgram, name: &str) -> Result<(), String> {
    rustix::system::sethostname(name.as_bytes())
        .map_err(|error| problem(format_args!("host name {name:?}"), error))
}

/// Loads a decompressed module; one that is there already is no failure.
pub fn load_module(_: &FirstProgram, path: &Path) -> Result<(), String> {
    let describe = |error: &dyn std::fmt::Display| problem(format_args!("module {}", path.display()), error);
    let file = File::open(path).map_err(|error| describe(&error))?;
    match rustix::system::finit_module(&file, c"", 0) {
        Ok(()) | Err(rustix::io::Errno::EXIST) => Ok(()),
        Err(error) => Err(describe(&error)),
    }
}

/// Sets the loopback interface up; the kernel then gives it 127.0.0.1 and ::1 by itself.
pub fn loopback_up() -> Result<(), String> {
    let index =
        fs::read_to_string("/sys/class/net/lo/ifindex").map_err(|error| problem("interface lo", error))?;
    let index: i32 = index.trim().parse().map_err(|error| problem("index of lo", error))?;
    let failed = |error: rustix::io::Errno| problem("interface lo up", error);
    let flags = SocketFlags::CLOEXEC;
    // No protocol is protocol 0, which is NETLINK_ROUTE.
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None).map_err(failed)?;
    sendto(&socket, &link_up(index), SendFlags::empty(), &SocketAddrNetlink::new(0, 0)).map_err(failed)?;
    let mut answer = [0; 256];
    let (len, _) = recv(&socket, &mut answer[..], RecvFlags::empty()).map_err(failed)?;
    match answer_code(&answer[..len]) {
        Some(0) => Ok(()),
        Some(code) => Err(failed(rustix::io::Errno::from_raw_os_error(-code))),
        None => Err(problem("interface lo up", "unexpected netlink answer")),
    }
}

/// `RTM_NEWLINK` that sets `IFF_UP` and requests a reply (rtnetlink(7): nlmsghdr, then ifinfomsg).
fn link_up(index: i32) -> Vec<u8> {
    const LEN: u32 = 32;
    const RTM_NEWLINK: u16 = 16;
    const NLM_F_REQUEST_ACK: u16 = 1 | 4;
    const IFF_UP: u32 = 1;
    let mut message = Vec::with_capacity(LEN as usize);
    message.extend(LEN.to_ne_bytes());
    message.extend(RTM_NEWLINK.to_ne_bytes());
    message.extend(NLM_F_REQUEST_ACK.to_ne_bytes());
    // Sequence number and port; family, padding and hardware type of ifinfomsg.
    message.extend([0; 8 + 4]);
    message.extend(index.to_ne_bytes());
    message.extend(IFF_UP.to_ne_bytes());
    // Which flags are meant.
    message.extend(IFF_UP.to_ne_bytes());
    message
}

/// The error code in an `NLMSG_ERROR` message: 0 for success, else a negative errno.
fn answer_code(answer: &[u8]) -> Option<i32> {
    const NLMSG_ERROR: u16 = 2;
    let kind = u16::from_ne_bytes(answer.get(4..6)?.try_into().ok()?);
    (kind == NLMSG_ERROR).then_some(())?;
    Some(i32::from_ne_bytes(answer.get(16..20)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_is_as_long_as_it_says() {
        let message = link_up(1);
        assert_eq!(message.len(), 32);
        assert_eq!(u32::from_ne_bytes(message[..4].try_into().unwrap()), 32);
        assert_eq!(i32::from_ne_bytes(message[20..24].try_into().unwrap()), 1);
    }

    #[test]
    fn answers() {
        let mut answer = [0; 36];
        answer[4] = 2;
        assert_eq!(answer_code(&answer), Some(0));
        answer[16..20].copy_from_slice(&(-1i32).to_ne_bytes());
        assert_eq!(answer_code(&answer), Some(-1));
        assert_eq!(answer_code(&answer[..18]), None);
        answer[4] = 3;
        assert_eq!(answer_code(&answer), None);
    }

    #[test]
    fn setting_an_interface_that_is_up_needs_no_more_than_the_kernel_says() {
        // Unprivileged, the kernel answers EPERM; in either case the exchange itself must work.
        if Path::new("/sys/class/net/lo/ifindex").exists()
            && fs::read_to_string("/sys/class/net/lo/flags").is_ok_and(|f| f.trim() == "0x9")
        {
            let result = loopback_up();
            assert!(
                result.is_ok() || result.as_ref().is_err_and(|text| text.contains("not permitted")),
                "{result:?}"
            );
        }
    }
}
