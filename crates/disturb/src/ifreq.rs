//! Network interfaces set up by `ioctl(2)` on any socket of their namespace, `netdevice(7)`:
//! raised, given an address, asked whether they have a carrier.

use rustix::fd::AsRawFd;
use std::io;
use std::net::{Ipv4Addr, UdpSocket};

/// Sets an interface of the calling thread's network namespace up, with an address first where one
/// is given; its network is then the address's class, which makes a route.
pub(super) fn raise(name: &str, address: Option<Ipv4Addr>) -> io::Result<()> {
    if let Some(address) = address {
        ask(name, libc::SIOCSIFADDR as _, |request| request.ifr_ifru.ifru_addr = socket_address(address))?;
    }
    // All flags are set at once: those that it has besides are to stay.
    let with = flags(name)? | libc::IFF_UP as libc::c_short;
    ask(name, libc::SIOCSIFFLAGS as _, |request| request.ifr_ifru.ifru_flags = with).map(drop)
}

/// Whether an interface is up and has a carrier.
pub(super) fn is_running(name: &str) -> io::Result<bool> {
    let flags = libc::c_int::from(flags(name)?);
    Ok(flags & libc::IFF_RUNNING != 0 && flags & libc::IFF_UP != 0)
}

fn flags(name: &str) -> io::Result<libc::c_short> {
    let request = ask(name, libc::SIOCGIFFLAGS as _, |_| {})?;
    // SAFETY: SIOCGIFFLAGS has filled in the flags.
    Ok(unsafe { request.ifr_ifru.ifru_flags })
}

/// `what` is cast where it is used: the type of a request's number differs between libcs.
fn ask(name: &str, what: libc::c_ulong, fill: impl FnOnce(&mut libc::ifreq)) -> io::Result<libc::ifreq> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    // SAFETY: an all-zero ifreq is a valid one.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if name.len() >= request.ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    fill(&mut request);
    // SAFETY: each of these requests reads or writes one ifreq, which lives until the call returns.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), what as _, &raw mut request) };
    if result == 0 { Ok(request) } else { Err(io::Error::last_os_error()) }
}

/// A `sockaddr_in` with the address in the order of the network, as a `sockaddr`.
fn socket_address(address: Ipv4Addr) -> libc::sockaddr {
    // SAFETY: an all-zero sockaddr is a valid one.
    let mut general: libc::sockaddr = unsafe { std::mem::zeroed() };
    general.sa_family = libc::AF_INET as libc::sa_family_t;
    // Two bytes of port come first.
    for (to, from) in general.sa_data[2..].iter_mut().zip(address.octets()) {
        *to = from as libc::c_char;
    }
    general
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_stands_behind_the_port_in_the_order_of_the_network() {
        let general = socket_address(Ipv4Addr::new(192, 0, 2, 1));
        assert_eq!(general.sa_family, libc::AF_INET as u16);
        assert_eq!(
            general.sa_data[..7].iter().flat_map(|byte| byte.to_ne_bytes()).collect::<Vec<_>>(),
            [0, 0, 192, 0, 2, 1, 0]
        );
    }

    #[test]
    fn an_interface_that_is_not_there_or_has_no_name_is_an_error() {
        let error = is_running("still-absent0").unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENODEV));
        assert_eq!(is_running("a-name-that-is-too-long").unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}
