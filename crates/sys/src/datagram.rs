//! Sockets that keep the boundaries of messages: a pair of `SOCK_SEQPACKET` (unix(7)), and UDP over
//! the loopback device (udp(7)).
//!
//! What a socket may queue is counted in the kernel's own bytes, buffers and their descriptions
//! included (`sk_buff.truesize`), and is doubled from what is asked (socket(7)). For `AF_UNIX` the
//! sender's buffer counts, for UDP the receiver's.

use rustix::fd::{AsFd, OwnedFd};
use rustix::net::{
    AddressFamily, Ipv4Addr, RecvFlags, SendAncillaryBuffer, SendFlags, SocketAddrAny, SocketAddrV4,
    SocketFlags, SocketType, bind, connect, getsockname, recv, sendmsg, socket_with, socketpair, sockopt,
};
use std::io::{self, IoSlice};

/// The longest UDP datagram over IPv4: 65535 bytes less the headers of IP and UDP.
pub const UDP_MOST: usize = 65_507;

const FLAGS: SocketFlags = SocketFlags::CLOEXEC.union(SocketFlags::NONBLOCK);

/// Two connected ends (AF_UNIX, SOCK_SEQPACKET).
pub fn seqpacket() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, FLAGS, None)?)
}

/// Two UDP sockets of 127.0.0.1 that know only each other. ENETUNREACH or EADDRNOTAVAIL where the
/// loopback device is down.
pub fn udp() -> io::Result<(OwnedFd, OwnedFd)> {
    let (one, address) = bound()?;
    let (other, others) = bound()?;
    connect(&one, &others)?;
    connect(&other, &address)?;
    Ok((one, other))
}

fn bound() -> io::Result<(OwnedFd, SocketAddrAny)> {
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, FLAGS, None)?;
    bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0))?;
    let address = getsockname(&socket)?;
    Ok((socket, address))
}

/// Which of the two buffers of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// What it sends (`SO_SNDBUF`).
    Send,
    /// What it receives (`SO_RCVBUF`).
    Receive,
}

/// Lets a socket queue at least so many of the kernel's bytes, or as many as a user without
/// CAP_NET_ADMIN may (`net.core.wmem_max`, `net.core.rmem_max`); returns how many it may.
pub fn widen(socket: &impl AsFd, side: Side, bytes: usize) -> io::Result<usize> {
    let asked = (bytes.div_ceil(2)).min(i32::MAX as usize / 2);
    let get = || match side {
        Side::Send => sockopt::socket_send_buffer_size(socket),
        Side::Receive => sockopt::socket_recv_buffer_size(socket),
    };
    if get()? < bytes {
        let forced = match side {
            Side::Send => sockopt::set_socket_send_buffer_size_force(socket, asked),
            Side::Receive => sockopt::set_socket_recv_buffer_size_force(socket, asked),
        };
        if forced.is_err() {
            match side {
                Side::Send => sockopt::set_socket_send_buffer_size(socket, asked),
                Side::Receive => sockopt::set_socket_recv_buffer_size(socket, asked),
            }?;
        }
    }
    Ok(get()?)
}

/// Sends both parts as one message. EAGAIN where the sender's buffer is full, EMSGSIZE where the
/// message does not fit into it.
#[inline]
pub fn send_parts(socket: &impl AsFd, parts: [&[u8]; 2]) -> io::Result<usize> {
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    Ok(sendmsg(socket, &parts.map(IoSlice::new), &mut SendAncillaryBuffer::default(), flags)?)
}

/// Takes one message, and its length. EAGAIN where there is none; 0 where the other end of a pair
/// is gone.
#[inline]
pub fn receive(socket: &impl AsFd, buffer: &mut [u8]) -> io::Result<usize> {
    let (length, _) = recv(socket, buffer, RecvFlags::DONTWAIT)?;
    Ok(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_keep_their_boundaries() {
        for (send, take) in [seqpacket().unwrap(), udp().unwrap()] {
            send_parts(&send, [b"ab", b"cde"]).unwrap();
            send_parts(&send, [b"f", b""]).unwrap();
            let mut buffer = [0u8; 16];
            assert_eq!(receive(&take, &mut buffer).unwrap(), 5);
            assert_eq!(&buffer[..5], b"abcde");
            assert_eq!(receive(&take, &mut buffer).unwrap(), 1);
            assert_eq!(receive(&take, &mut buffer).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        }
    }

    #[test]
    fn the_longest_datagram_arrives_and_one_more_byte_is_refused() {
        let (send, take) = udp().unwrap();
        let bytes = vec![5u8; UDP_MOST + 1];
        widen(&take, Side::Receive, 300_000).unwrap();
        send_parts(&send, [&bytes[..UDP_MOST], &[]]).unwrap();
        assert_eq!(receive(&take, &mut vec![0u8; UDP_MOST]).unwrap(), UDP_MOST);
        assert_eq!(send_parts(&send, [&bytes, &[]]).unwrap_err().raw_os_error(), Some(libc::EMSGSIZE));
    }
}
